//! The trait of everything that turns text into vectors.

use async_trait::async_trait;
use thiserror::Error;

use crate::{local_error::LocalModelError, remote::RemoteError};

/// A model that turns texts into vectors whose angles tell how close the texts are in meaning.
#[async_trait]
pub trait Embedder: Send + Sync {
    /// The model's full name. It is written into every knowledge base, and one built with another model is refused.
    fn name(&self) -> &str;

    /// The byte at which each token of `text` begins, in ascending order; how many there are is the text's length in
    /// tokens. Chunks are measured with it, so it must cost no more than linear time.
    fn token_starts(&self, text: &str) -> Vec<usize>;

    /// The most tokens of one text that the model looks at, if it is known; what stands after them is not in the
    /// vector.
    fn max_tokens(&self) -> Option<usize> {
        None
    }

    /// How many calls of [`embed`](Self::embed) are worth having under way at once.
    fn in_flight(&self) -> usize {
        1
    }

    /// One vector for each of `texts`, in their order, all of the same length.
    ///
    /// # Errors
    ///
    /// Whatever keeps the model from answering, after the attempts that the implementation makes by itself.
    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbedError>;
}

/// Why texts could not be embedded.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EmbedError {
    /// The server that has the model failed.
    #[error("the embedding model `{model}` cannot be asked: {source}")]
    Remote {
        /// The model.
        model: String,
        /// What happened.
        source: RemoteError,
    },
    /// The model on this machine failed.
    #[error(transparent)]
    Local(#[from] LocalModelError),
    /// There are more or fewer vectors than texts.
    #[error("the embedding model `{model}` gave {got} vectors for {asked} texts; it cannot be used")]
    Count {
        /// The model.
        model: String,
        /// How many texts there were.
        asked: usize,
        /// How many vectors came back.
        got: usize,
    },
    /// The vectors differ in length from each other, or from those of the knowledge base.
    #[error(
        "the embedding model `{model}` gave a vector of {got} numbers where {expected} are expected; \
         it is another model than the one of that name before: delete the knowledge base to have it built again"
    )]
    Dimensions {
        /// The model.
        model: String,
        /// The length of the vectors before.
        expected: usize,
        /// The length of this one.
        got: usize,
    },
    /// A vector has no numbers, or one that is infinite or none.
    #[error("the embedding model `{model}` gave a vector that is empty or not finite; it cannot be used")]
    NotFinite {
        /// The model.
        model: String,
    },
}

/// Checks that there is one vector for each text and that all can be compared with each other and, if there are any
/// already, with vectors of `expected` numbers. Gives the number of dimensions.
pub(crate) fn check_vectors(
    model: &str,
    asked: usize,
    vectors: &[Vec<f32>],
    expected: Option<usize>,
) -> Result<usize, EmbedError> {
    let model = || model.to_owned();
    if vectors.len() != asked {
        return Err(EmbedError::Count { model: model(), asked, got: vectors.len() });
    }
    let expected = expected.or_else(|| vectors.first().map(Vec::len)).unwrap_or(0);
    for vector in vectors {
        if vector.is_empty() || vector.iter().any(|number| !number.is_finite()) {
            return Err(EmbedError::NotFinite { model: model() });
        }
        if vector.len() != expected {
            return Err(EmbedError::Dimensions { model: model(), expected, got: vector.len() });
        }
    }
    Ok(expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_are_checked() {
        let one = vec![1.0, 2.0];
        assert!(matches!(check_vectors("m", 1, std::slice::from_ref(&one), None), Ok(2)));
        let said = |asked, vectors: &[Vec<f32>], expected| {
            check_vectors("m", asked, vectors, expected).expect_err("an error").to_string()
        };
        assert!(said(2, std::slice::from_ref(&one), None).contains("1 vectors for 2 texts"));
        assert!(said(2, &[one.clone(), vec![1.0]], None).contains("1 numbers where 2"));
        assert!(said(1, std::slice::from_ref(&one), Some(3)).contains("2 numbers where 3"));
        assert!(said(1, &[vec![f32::NAN, 1.0]], None).contains("not finite"));
        assert!(said(1, &[vec![]], None).contains("empty"));
    }
}
