//! The trait of models that order passages by how well they answer a question.

use async_trait::async_trait;
use thiserror::Error;

use crate::remote::RemoteError;

/// A model that looks at a question and a passage together. It is slower and better than comparing vectors.
#[async_trait]
pub trait Reranker: Send + Sync {
    /// The model's full name.
    fn name(&self) -> &str;

    /// The places in `passages` of the `top` that answer `query` best, best first, each with how relevant it is
    /// (larger is better; the scale is the model's own).
    ///
    /// # Errors
    ///
    /// Whatever keeps the model from answering.
    async fn rerank(&self, query: &str, passages: &[String], top: usize) -> Result<Vec<(usize, f64)>, RerankError>;
}

/// Why passages could not be reranked.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RerankError {
    /// The server that has the model failed.
    #[error("the reranker `{model}` cannot be asked: {source}")]
    Remote {
        /// The model.
        model: String,
        /// What happened.
        source: RemoteError,
    },
    /// The answer names a passage twice, or one that it was not given.
    #[error("the reranker `{model}` answered with passage {index} of {passages}; it cannot be used")]
    Index {
        /// The model.
        model: String,
        /// The place that it named, counted from 0.
        index: usize,
        /// How many passages it was given.
        passages: usize,
    },
}
