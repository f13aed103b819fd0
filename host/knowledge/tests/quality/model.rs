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
    // A text has the same vector alone as among others, where it is padded.
    for (text, vector) in texts.iter().zip(&vectors) {
        let alone = embedder.embed(std::slice::from_ref(text)).await.expect("a vector");
        assert!(alone[0].iter().zip(vector).all(|(a, b)| (a - b).abs() < 1e-5));
    }
    assert_eq!(embedder.embed(&[]).await.expect("no vectors"), Vec::<Vec<f32>>::new());
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
