//! Models behind HTTP.
//!
//! What it must not do: follow a redirect (the client that it is given decides), try for ever, believe the size or the
//! form of an answer, or let a key into a message.

mod embedder;
mod exchange;
mod reranker;

pub use embedder::RemoteEmbedder;
pub use exchange::{Endpoint, Protocol, RemoteError};
pub use reranker::RemoteReranker;
