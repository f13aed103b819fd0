//! What is wrong with an embedding model on this machine.

use std::path::PathBuf;

use thiserror::Error;

/// Why a model on this machine cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LocalModelError {
    /// A file of the model is not there.
    #[error(
        "the embedding model in `{}` has no `{file}`; a model is a directory with `config.json`, `tokenizer.json` \
         and `model.safetensors`", .directory.display()
    )]
    Missing {
        /// The directory.
        directory: PathBuf,
        /// The file that is not there.
        file: &'static str,
    },
    /// A file of the model cannot be read.
    #[error("`{file}` of the embedding model in `{}` cannot be used: {reason}", .directory.display())]
    Unusable {
        /// The directory.
        directory: PathBuf,
        /// The file.
        file: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// The model is of a kind that is not known here.
    #[error(
        "the embedding model in `{}` is {what}; only BERT models with mean or CLS pooling are known: \
         choose such a model or one behind a server", .directory.display()
    )]
    Unsupported {
        /// The directory.
        directory: PathBuf,
        /// What it is.
        what: String,
    },
    /// The model failed on a text.
    #[error("the embedding model in `{}` failed: {reason}", .directory.display())]
    Failed {
        /// The directory.
        directory: PathBuf,
        /// What happened.
        reason: String,
    },
}
