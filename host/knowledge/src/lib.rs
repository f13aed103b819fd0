//! Knowledge bases: documents to chunks to hybrid retrieval, in one SQLite file.
//!
//! Why this exists: a graph that answers from documents needs the few passages that bear on a question. This crate
//! reads documents, cuts them into chunks, has each chunk embedded once, keeps all of it in one file, and finds the
//! passages for a question by words and by meaning together. [`Build`] makes such a file, [`KnowledgeBase`] asks it.
//!
//! What it must not do: reach the network by itself (the caller gives a [`Fetch`] and the HTTP client, and with them
//! the policy), parse PDF or HTML (the caller gives an [`Extract`] that does it in a sealed cell), leave the folder
//! that it was given, embed a document twice, or know what a graph is. A question is data: it never becomes an
//! expression of a query language.

mod build;
mod chunk;
mod embed;
mod local;
mod local_error;
mod lock;
mod outside;
mod remote;
mod rerank;
mod retrieve;
mod source;
mod store;
mod tokens;
mod untrusted;

pub use build::{Build, BuildError, Progress, Report};
pub use chunk::ChunkError;
pub use embed::{EmbedError, Embedder};
pub use local::LocalEmbedder;
pub use local_error::LocalModelError;
pub use outside::{Extract, Fetch, Fetched, Format, Loader, Outside, OutsideError};
pub use remote::{Endpoint, Protocol, RemoteEmbedder, RemoteError, RemoteReranker};
pub use rerank::{RerankError, Reranker};
pub use retrieve::{KnowledgeBase, Passage, Retrieved, SearchError, Signal};
pub use source::{DocumentError, SourceError};
pub use store::{About, Settings, StoreError};
