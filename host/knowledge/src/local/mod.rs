//! Embedding models that run on this machine.
//!
//! Why this exists: documents that may not leave the machine still need vectors. A model is a directory in the layout of
//! sentence-transformers, of the BERT family, and runs on the CPU.
//!
//! What it must not do: fetch anything, or map a file into memory (another process could change it meanwhile).

mod bert;
mod layout;
mod math;
mod model;
mod tokenizer;
mod weights;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use async_trait::async_trait;

use crate::embed::{EmbedError, Embedder, check_vectors};
use crate::local_error::LocalModelError;
use layout::Layout;
use model::Model;

/// The calls that are worth having under way: each uses all processors, and while one comes to its end another goes on.
const IN_FLIGHT: usize = 2;

/// An embedding model of the BERT family that runs on the CPU of this machine. Lengths in tokens are exact.
pub struct LocalEmbedder {
    name: String,
    directory: PathBuf,
    model: Arc<Model>,
}

impl LocalEmbedder {
    /// Loads the model in `directory`, to be called `name` in knowledge bases. Takes about as long as reading its files.
    ///
    /// # Errors
    ///
    /// A file is missing or cannot be used, or the model is of another kind.
    pub async fn open(name: impl Into<String>, directory: impl AsRef<Path>) -> Result<Self, LocalModelError> {
        let directory = directory.as_ref().to_owned();
        let from = directory.clone();
        let model = tokio::task::spawn_blocking(move || Model::load(Layout::read(&from)?)).await;
        let failed = |reason| LocalModelError::Failed { directory: directory.clone(), reason };
        let model = Arc::new(model.map_err(|error| failed(error.to_string()))??);
        Ok(Self { name: name.into(), directory, model })
    }
}

#[async_trait]
impl Embedder for LocalEmbedder {
    fn name(&self) -> &str {
        &self.name
    }

    fn token_starts(&self, text: &str) -> Vec<usize> {
        self.model.token_starts(text)
    }

    fn max_tokens(&self) -> Option<usize> {
        Some(self.model.max_tokens())
    }

    fn in_flight(&self) -> usize {
        IN_FLIGHT
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let (model, asked) = (self.model.clone(), texts.len());
        let texts = texts.to_vec();
        let failed = |reason| LocalModelError::Failed { directory: self.directory.clone(), reason };
        let vectors = tokio::task::spawn_blocking(move || model.embed(&texts)).await;
        let vectors = vectors.map_err(|error| failed(error.to_string()))?.map_err(failed)?;
        check_vectors(&self.name, asked, &vectors, None)?;
        Ok(vectors)
    }
}
