//! The file of a knowledge base.
//!
//! Why this exists: everything that retrieval needs is in one SQLite file that can be copied, and that says what it is
//! and with which model it was made.
//!
//! What it must not do: change a file that is not ours, or open one that is not finished for searching.

mod reader;
mod schema;
mod vectors;
mod words;
mod writer;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use thiserror::Error;

pub(crate) use reader::{Found, Reader};
pub(crate) use writer::{Chunk, State, Writer};

/// How a knowledge base is built.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// The most tokens of a chunk, as the embedding model counts them.
    pub chunk_size: usize,
    /// How many tokens at the end of a chunk the next one may begin with. Smaller than the chunk size.
    pub chunk_overlap: usize,
    /// How many passages a search gives that does not say.
    pub top_k: usize,
    /// The full name of the reranker, if there is to be one.
    pub reranker: Option<String>,
    /// How many chunks are embedded with one request.
    pub batch_size: usize,
    /// The most bytes of a document.
    pub max_document: u64,
}

impl Default for Settings {
    /// Chunks of 256 tokens, 32 of them from the one before; 5 passages, no reranker, batches of 64, 64 MiB.
    fn default() -> Self {
        Self { chunk_size: 256, chunk_overlap: 32, top_k: 5, reranker: None, batch_size: 64, max_document: 64 << 20 }
    }
}

/// What a knowledge base says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// The full name of the embedding model.
    pub embedding_model: String,
    /// How many numbers a vector has.
    pub dimensions: usize,
    /// The chunk size it was built with, in tokens.
    pub chunk_size: usize,
    /// The overlap it was built with, in tokens.
    pub chunk_overlap: usize,
    /// How many passages a search gives that does not say.
    pub top_k: usize,
    /// The full name of the reranker, if it wants one.
    pub reranker: Option<String>,
    /// How many documents it has.
    pub documents: usize,
    /// How many chunks it has.
    pub chunks: usize,
}

/// Why the file of a knowledge base cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// It is not there.
    #[error("there is no knowledge base `{}`; build it first", .file.display())]
    Missing {
        /// The file.
        file: PathBuf,
    },
    /// It is something else.
    #[error("`{}` is not a knowledge base of hotcell; delete it to have it built", .file.display())]
    Foreign {
        /// The file.
        file: PathBuf,
    },
    /// It was written by another version.
    #[error(
        "the knowledge base `{}` has format {found}, and this version reads format {known}; \
         delete it to have it built again", .file.display()
    )]
    Format {
        /// The file.
        file: PathBuf,
        /// The format that it has.
        found: i64,
        /// The format that is read.
        known: i64,
    },
    /// It is not complete.
    #[error("the knowledge base `{}` is not finished; delete it to have it built", .file.display())]
    Unfinished {
        /// The file.
        file: PathBuf,
    },
    /// SQLite or the file system failed.
    #[error("the knowledge base `{}` cannot be {doing}: {reason}", .file.display())]
    Failed {
        /// The file.
        file: PathBuf,
        /// What was to be done.
        doing: &'static str,
        /// What happened.
        reason: String,
    },
}
