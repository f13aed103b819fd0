//! The model on this machine.

use std::fs;

use hotcell_knowledge::{Embedder, LocalEmbedder, LocalModelError};
use tempfile::TempDir;

/// The first numbers of vectors and the sum of all of them, computed by other means from the same files in double
/// precision. The last text is longer than the model takes.
#[rustfmt::skip]
const REFERENCE: [(&str, [f32; 8], f32); 4] = [
    ("This is an example sentence",
     [0.067657, 0.063496, 0.048713, 0.079305, 0.037448, 0.002653, 0.039375, -0.007098], 0.271751),
    ("Float glass is poured onto a bath of molten tin.",
     [-0.013409, 0.016137, 0.001818, -0.011432, -0.067632, -0.01156, 0.124889, -0.022964], 0.184178),
    ("hi",
     [-0.090476, 0.04044, 0.023906, 0.058948, -0.022882, -0.04722, 0.045048, 0.015786], 0.736129),
    ("word and more words, ",
     [-0.013385, -0.020244, -0.048734, -0.084033, -0.007818, 0.033701, 0.050198, -0.014292], -0.838357),
];

#[tokio::test]
async fn vectors_are_those_of_the_reference() {
    let embedder = super::embedder().await;
    let mut texts: Vec<String> = REFERENCE.iter().map(|(text, ..)| (*text).to_owned()).collect();
    texts[3] = texts[3].repeat(100);
    let vectors = embedder.embed(&texts).await.expect("vectors");
    for ((text, numbers, sum), vector) in REFERENCE.iter().zip(&vectors) {
        assert_eq!(vector.len(), 384);
        for (got, expected) in vector.iter().zip(numbers) {
            assert!((got - expected).abs() < 1e-4, "{text}: {got} is not {expected}");
        }
        assert!((vector.iter().sum::<f32>() - sum).abs() < 1e-3, "{text}");
        assert!((vector.iter().map(|number| number * number).sum::<f32>() - 1.0).abs() < 1e-4, "{text}");
    }
    // A text has the same vector alone as among others.
    for (text, vector) in texts.iter().zip(&vectors) {
        let alone = embedder.embed(std::slice::from_ref(text)).await.expect("a vector");
        assert!(alone[0].iter().zip(vector).all(|(a, b)| (a - b).abs() < 1e-5));
    }
    assert_eq!(embedder.embed(&[]).await.expect("no vectors"), Vec::<Vec<f32>>::new());
}

/// The same from candle 0.11, which computed the vectors of knowledge bases before; those stay in use.
#[rustfmt::skip]
const BEFORE: [(&str, usize, [f32; 8], f32); 3] = [
    ("", 1,
     [-0.118838, 0.048299, -0.002548, -0.011011, 0.051951, 0.010292, 0.115433, 0.000701], 0.629071),
    ("Zürich, Züge. 日本語を話します — 🌕🚢 e\u{301} Привет мир\u{0}", 1,
     [0.042844, 0.110723, 0.036276, -0.047042, -0.032105, 0.010557, 0.088008, 0.043235], -0.231483),
    ("supercalifragilisticexpialidocious", 20,
     [-0.041596, -0.024682, 0.077893, -0.006149, 0.017001, 0.001262, 0.12374, -0.001971], 0.427909),
];

#[tokio::test]
async fn vectors_are_those_of_before() {
    let embedder = super::embedder().await;
    let texts: Vec<String> = BEFORE.iter().map(|(text, times, ..)| text.repeat(*times)).collect();
    let vectors = embedder.embed(&texts).await.expect("vectors");
    for ((text, _, numbers, sum), vector) in BEFORE.iter().zip(&vectors) {
        for (got, expected) in vector.iter().zip(numbers) {
            assert!((got - expected).abs() < 1e-5, "{text}: {got} is not {expected}");
        }
        assert!((vector.iter().sum::<f32>() - sum).abs() < 1e-4, "{text}");
    }
}

#[tokio::test]
async fn a_model_of_other_sizes_is_said() {
    let (model, folder) = (super::directory(), TempDir::new().expect("a directory"));
    for file in ["tokenizer.json", "model.safetensors"] {
        fs::copy(model.join(file), folder.path().join(file)).expect("a copy");
    }
    let config = fs::read_to_string(model.join("config.json")).expect("a file");
    for (from, to, part) in [
        (
            "\"hidden_size\": 384",
            "\"hidden_size\": 768",
            "has the shape [30522, 384]; by `config.json` it is [30522, 768]",
        ),
        ("\"num_attention_heads\": 12", "\"num_attention_heads\": 7", "not a multiple of `num_attention_heads`"),
        ("\"num_hidden_layers\": 6", "\"num_hidden_layers\": 7", "no tensor `encoder.layer.6."),
    ] {
        fs::write(folder.path().join("config.json"), config.replace(from, to)).expect("a file");
        let error = LocalEmbedder::open("x", folder.path()).await.err().expect("an error").to_string();
        assert!(error.contains(part), "{error}");
    }
}

#[tokio::test]
async fn lengths_are_those_of_the_tokeniser() {
    let embedder = super::embedder().await;
    assert_eq!((embedder.max_tokens(), embedder.name()), (Some(254), "local:all-minilm-l6-v2"));
    for (text, starts) in
        [("", vec![]), ("This is an example", vec![0, 5, 8, 11]), ("Zürich, Züge.", vec![0, 7, 9, 12, 14])]
    {
        assert_eq!(embedder.token_starts(text), starts, "{text}");
    }
    assert_eq!(embedder.token_starts(&"word ".repeat(5000)).len(), 5000);
}

#[tokio::test]
async fn what_is_no_model_is_said() {
    let model = super::directory();
    let copy = |without: &str, config: Option<&str>| {
        let folder = TempDir::new().expect("a directory");
        for file in ["config.json", "tokenizer.json", "model.safetensors", "modules.json"] {
            if file != without {
                fs::copy(model.join(file), folder.path().join(file)).expect("a copy");
            }
        }
        if let Some(config) = config {
            fs::write(folder.path().join("config.json"), config).expect("a file");
        }
        folder
    };
    let said = async |folder: &TempDir| {
        let error: LocalModelError = LocalEmbedder::open("x", folder.path()).await.err().expect("an error");
        error.to_string()
    };
    for file in ["config.json", "tokenizer.json", "model.safetensors"] {
        let error = said(&copy(file, None)).await;
        assert!(error.contains(&format!("has no `{file}`")), "{error}");
    }
    let error = said(&copy("", Some(r#"{"model_type": "t5"}"#))).await;
    assert!(error.contains("of the architecture `t5`") && error.contains("only BERT"), "{error}");
    let error = said(&copy("", Some("{}"))).await;
    assert!(error.contains("`config.json`") && error.contains("model_type"), "{error}");
    for file in ["config.json", "tokenizer.json", "model.safetensors"] {
        let folder = copy("", None);
        fs::write(folder.path().join(file), b"rubbish").expect("a file");
        let error = said(&folder).await;
        assert!(error.contains(&format!("`{file}`")) && error.contains("cannot be used"), "{error}");
    }
    let folder = copy("", None);
    let modules = r#"[{"path": "", "type": "a.Transformer"}, {"path": "2_Dense", "type": "a.Dense"}]"#;
    fs::write(folder.path().join("modules.json"), modules).expect("a file");
    assert!(said(&folder).await.contains("module `Dense`"));
    assert!(said(&TempDir::new().expect("a directory")).await.contains("has no `config.json`"));
}
