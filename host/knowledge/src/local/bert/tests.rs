//! The encoder on weights that are made up here. Whether it computes what it should is seen with a real model
//! (`tests/quality/model.rs`).

use std::collections::BTreeMap;

use safetensors::{Dtype, serialize, tensor::TensorView};
use serde_json::{Value, json};

use super::*;

type Tensors = BTreeMap<String, (Vec<usize>, Vec<f32>)>;

fn config(change: &Value) -> Config {
    let mut config = json!({
        "vocab_size": 5, "hidden_size": 4, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 6,
        "hidden_act": "gelu", "max_position_embeddings": 3, "type_vocab_size": 2, "layer_norm_eps": 1e-12,
    });
    for (name, value) in change.as_object().expect("an object") {
        config[name] = value.clone();
    }
    serde_json::from_value(config).expect("a configuration")
}

/// Numbers that half precision holds, too.
fn tensors(prefix: &str) -> Tensors {
    let mut tensors = Tensors::new();
    let mut add = |name: &str, shape: &[usize]| {
        let count = shape.iter().product::<usize>();
        let seed = name.len() + 3 * tensors.len();
        let numbers = (0..count).map(|number| ((number * 7 + seed * 5) % 13) as f32 / 8.0 - 0.75).collect();
        tensors.insert(format!("{prefix}{name}"), (shape.to_vec(), numbers));
    };
    for (table, rows) in [("word", 5), ("position", 3), ("token_type", 2)] {
        add(&format!("embeddings.{table}_embeddings.weight"), &[rows, 4]);
    }
    let mut pairs = vec![("embeddings.LayerNorm".to_owned(), vec![4])];
    for layer in 0..2 {
        for (name, shape) in [
            ("attention.self.query", vec![4, 4]),
            ("attention.self.key", vec![4, 4]),
            ("attention.self.value", vec![4, 4]),
            ("attention.output.dense", vec![4, 4]),
            ("attention.output.LayerNorm", vec![4]),
            ("intermediate.dense", vec![6, 4]),
            ("output.dense", vec![4, 6]),
            ("output.LayerNorm", vec![4]),
        ] {
            pairs.push((format!("encoder.layer.{layer}.{name}"), shape));
        }
    }
    for (name, shape) in pairs {
        add(&format!("{name}.weight"), &shape);
        add(&format!("{name}.bias"), &shape[..1]);
    }
    tensors
}

fn file(tensors: &Tensors, kind: Dtype) -> Vec<u8> {
    let bytes: Vec<(&String, &Vec<usize>, Vec<u8>)> = tensors
        .iter()
        .map(|(name, (shape, numbers))| {
            let bytes = numbers.iter().flat_map(|&number| match kind {
                Dtype::F32 => number.to_le_bytes().to_vec(),
                Dtype::F64 => f64::from(number).to_le_bytes().to_vec(),
                Dtype::BF16 => number.to_bits().to_le_bytes()[2..].to_vec(),
                // Multiples of 1/8 below 2 lose nothing but zeros of their fraction.
                Dtype::F16 if number == 0.0 => vec![0, 0],
                Dtype::F16 => {
                    let (sign, rest) = (number.to_bits() >> 31 << 15, number.to_bits() & 0x7fff_ffff);
                    ((sign | ((rest >> 13) - (112 << 10))) as u16).to_le_bytes().to_vec()
                }
                _ => vec![0; 8],
            });
            (name, shape, bytes.collect())
        })
        .collect();
    let views = bytes
        .iter()
        .map(|(name, shape, bytes)| (name.as_str(), TensorView::new(kind, (*shape).clone(), bytes).expect("a tensor")));
    serialize(views, None).expect("a file")
}

fn load(file: &[u8], change: &Value) -> Result<Bert, String> {
    Bert::load(&Weights::new(file)?, &config(change))
}

#[test]
fn the_same_numbers_are_the_same_model() {
    let texts: [&[u32]; 3] = [&[0, 4], &[1, 2, 3], &[2]];
    let expected =
        load(&file(&tensors(""), Dtype::F32), &json!({})).expect("a model").forward(&texts).expect("vectors");
    assert!(expected.len() == 24 && expected.iter().all(|number| number.is_finite()));
    let old = tensors("").into_iter().map(|(name, tensor)| {
        (name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"), tensor)
    });
    for file in [
        file(&tensors("bert."), Dtype::F32),
        file(&tensors(""), Dtype::F16),
        file(&tensors(""), Dtype::BF16),
        file(&tensors(""), Dtype::F64),
        file(&old.collect(), Dtype::F32),
    ] {
        let model = load(&file, &json!({})).expect("a model");
        assert_eq!(model.forward(&texts).expect("vectors"), expected);
        // A text has the same vectors alone as among others.
        assert_eq!(model.forward(&texts[1..2]).expect("vectors"), expected[8..20]);
        assert_eq!(model.forward(&[]).expect("no vectors"), [0.0; 0]);
    }
    for activation in ["relu", "gelu_new"] {
        let other = load(&file(&tensors(""), Dtype::F32), &json!({"hidden_act": activation})).expect("a model");
        assert_ne!(other.forward(&texts).expect("vectors"), expected);
    }
}

#[test]
fn texts_that_do_not_fit_are_errors() {
    let model = load(&file(&tensors(""), Dtype::F32), &json!({})).expect("a model");
    let said = |text: &[u32]| model.forward(&[text]).expect_err("an error");
    assert!(said(&[0, 5]).contains("the token 5"), "{}", said(&[0, 5]));
    assert!(said(&[u32::MAX]).contains("is not in the model"));
    assert!(said(&[0; 4]).contains("longer than the model takes"));
}

#[test]
fn weights_that_do_not_fit_are_said() {
    let whole = file(&tensors(""), Dtype::F32);
    let said = |file: &[u8], change: Value| load(file, &change).err().unwrap_or_else(|| panic!("{change}"));
    for (change, part) in [
        (
            json!({"vocab_size": 6}),
            "`embeddings.word_embeddings.weight` has the shape [5, 4]; by `config.json` it is [6, 4]",
        ),
        (json!({"hidden_size": 1_u64 << 40}), "by `config.json` it is [5, 1099511627776]"),
        (json!({"intermediate_size": u64::MAX}), "`encoder.layer.0.intermediate.dense.weight` has the shape [6, 4]"),
        (json!({"max_position_embeddings": 512}), "`embeddings.position_embeddings.weight` has"),
        (json!({"type_vocab_size": 1}), "`embeddings.token_type_embeddings.weight` has"),
        (json!({"num_hidden_layers": u64::MAX}), "no tensor `encoder.layer.2.attention.self.query.weight`"),
    ] {
        let error = said(&whole, change);
        assert!(error.contains(part), "{error}");
    }
    assert!(said(&file(&tensors(""), Dtype::I64), json!({})).contains("of the type I64"));
    assert!(said(&file(&tensors("other."), Dtype::F32), json!({})).contains("no tensor `embeddings.word_embeddings"));
    // Whatever is cut off or overwritten, it is an error or a model.
    for end in 0..whole.len() {
        assert!(load(&whole[..end], &json!({})).is_err());
    }
    for place in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[place] ^= 0x15;
        if let Ok(model) = load(&damaged, &json!({})) {
            let _ = model.forward(&[&[0, 1, 2]]);
        }
    }
}

#[test]
fn sizes_that_make_no_sense_are_refused() {
    for (name, size, part) in [
        ("hidden_size", 0, "`hidden_size` is 0"),
        ("num_hidden_layers", 0, "`num_hidden_layers` is 0"),
        ("num_attention_heads", 0, "`num_attention_heads` is 0"),
        ("num_attention_heads", 3, "not a multiple"),
        ("num_attention_heads", 8, "not a multiple"),
        ("type_vocab_size", 0, "`type_vocab_size` is 0"),
    ] {
        let error = config(&json!({ name: size })).check().expect_err("an error");
        assert!(error.contains(part), "{error}");
    }
    assert!(config(&json!({})).check().is_ok());
    for (name, value) in [("hidden_act", "swish"), ("position_embedding_type", "relative_key"), ("hidden_size", "4")] {
        let mut all = json!({
            "vocab_size": 5, "hidden_size": 4, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 6,
            "hidden_act": "relu", "max_position_embeddings": 3, "type_vocab_size": 2, "layer_norm_eps": 1e-12,
        });
        all[name] = json!(value);
        assert!(serde_json::from_value::<Config>(all).is_err(), "{name}");
    }
}
