//! Asking a knowledge base.
//!
//! Why this exists: words find what is called by its name (a code, an identifier, a rare term), vectors find what is said
//! in other words. Both are asked and their answers are fused; a reranker may have the last word.
//!
//! What it must not do: embed anything but the question, write to the file, or give another answer to the same question.

mod fuse;

use std::{path::Path, sync::Arc};

use thiserror::Error;

use crate::{
    embed::{EmbedError, Embedder, check_vectors},
    rerank::{RerankError, Reranker},
    store::{About, Found, Reader, StoreError},
    untrusted::shown,
};
use fuse::fuse;

/// Each way of searching gives so many times as many chunks as are asked for.
const CANDIDATES: usize = 4;
/// And at least so many.
const FEWEST_CANDIDATES: usize = 20;
/// The most tokens of a question that are embedded, where chunks are not larger. Models refuse texts beyond some length.
const QUESTION: usize = 512;

/// Which ways of searching are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// Words only; nothing is embedded.
    Words,
    /// Vectors only.
    Vectors,
    /// Both.
    Both,
}

/// A passage that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Passage {
    /// The document that it is from, as the list of documents wrote it.
    pub source: String,
    /// The passage.
    pub text: String,
    /// How well it fits: larger is better. Only scores of one search can be compared.
    pub score: f64,
}

/// The passages for a question, best first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Retrieved {
    /// The passages.
    pub passages: Vec<Passage>,
}

impl Retrieved {
    /// All passages as one text, each after a line with its source, with an empty line between them.
    #[must_use]
    pub fn context(&self) -> String {
        let blocks = self.passages.iter().map(|passage| format!("[Source: {}]\n{}", passage.source, passage.text));
        blocks.collect::<Vec<_>>().join("\n\n")
    }

    /// The sources of the passages, each once, in the order of the passages.
    #[must_use]
    pub fn sources(&self) -> Vec<&str> {
        let mut sources: Vec<&str> = Vec::new();
        for passage in &self.passages {
            if !sources.contains(&passage.source.as_str()) {
                sources.push(&passage.source);
            }
        }
        sources
    }
}

/// Why a knowledge base cannot be asked.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SearchError {
    /// The file cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// It was built with another model.
    #[error(
        "the knowledge base `{file}` was built with the embedding model `{built}`, and `{asked}` is asked for; \
         ask for `{built}`, or delete the file to have it built again"
    )]
    Model {
        /// The file.
        file: String,
        /// The model it was built with.
        built: String,
        /// The model that is asked for.
        asked: String,
    },
    /// The question could not be embedded.
    #[error(transparent)]
    Embed(#[from] EmbedError),
    /// The passages could not be reranked.
    #[error(transparent)]
    Rerank(#[from] RerankError),
    /// A part of the work ended abnormally.
    #[error("searching a knowledge base ended abnormally: {reason}")]
    Abnormal {
        /// What happened.
        reason: String,
    },
}

/// A finished knowledge base. It can be asked from many tasks at once.
pub struct KnowledgeBase {
    reader: Arc<Reader>,
    embedder: Arc<dyn Embedder>,
    reranker: Option<Arc<dyn Reranker>>,
}

impl KnowledgeBase {
    /// What the knowledge base in `file` says about itself, for example which models it wants.
    ///
    /// # Errors
    ///
    /// The file is missing, something else, not finished, or cannot be read.
    pub async fn about_file(file: impl AsRef<Path>) -> Result<About, SearchError> {
        Ok(Self::read(file.as_ref()).await?.about().clone())
    }

    /// Opens the knowledge base in `file` for asking. It keeps the settings it was built with.
    ///
    /// # Errors
    ///
    /// The file is missing, something else, not finished, cannot be read, or was built with another model than
    /// `embedder`.
    pub async fn open(file: impl AsRef<Path>, embedder: Arc<dyn Embedder>) -> Result<Self, SearchError> {
        let reader = Self::read(file.as_ref()).await?;
        if reader.about().embedding_model != embedder.name() {
            return Err(SearchError::Model {
                file: reader.file().display().to_string(),
                built: shown(&reader.about().embedding_model),
                asked: embedder.name().to_owned(),
            });
        }
        Ok(Self { reader: Arc::new(reader), embedder, reranker: None })
    }

    /// The same with a reranker that has the last word.
    #[must_use]
    pub fn with_reranker(mut self, reranker: Arc<dyn Reranker>) -> Self {
        self.reranker = Some(reranker);
        self
    }

    /// What it says about itself.
    #[must_use]
    pub fn about(&self) -> &About {
        self.reader.about()
    }

    /// The `top_k` passages that bear most on `query` by words and meaning; `None` is the number it was built with. A
    /// query without any text finds nothing.
    ///
    /// # Errors
    ///
    /// The question cannot be embedded, the passages cannot be reranked, or the file cannot be read.
    pub async fn search(&self, query: &str, top_k: Option<usize>) -> Result<Retrieved, SearchError> {
        self.search_by(Signal::Both, query, top_k).await
    }

    /// The same by one way of searching only, to compare them.
    ///
    /// # Errors
    ///
    /// As [`search`](Self::search).
    pub async fn search_by(&self, signal: Signal, query: &str, top_k: Option<usize>) -> Result<Retrieved, SearchError> {
        let top = top_k.unwrap_or(self.about().top_k);
        if query.trim().is_empty() || top == 0 {
            return Ok(Retrieved::default());
        }
        let count = top.saturating_mul(CANDIDATES).max(FEWEST_CANDIDATES);
        let by_words = async {
            if signal == Signal::Vectors {
                return Ok(Vec::new());
            }
            let query = query.to_owned();
            self.ask(move |reader| reader.by_words(&query, count)).await
        };
        let by_vector = async {
            if signal == Signal::Words {
                return Ok(Vec::new());
            }
            let vector = self.embed(query).await?;
            self.ask(move |reader| reader.by_vector(&vector, count)).await
        };
        let (words, vectors) = tokio::try_join!(by_words, by_vector)?;
        let mut fused = fuse(&words, &vectors);
        if self.reranker.is_none() {
            fused.truncate(top);
        }
        let numbers: Vec<i64> = fused.iter().map(|&(number, _)| number).collect();
        let found = self.ask(move |reader| reader.chunks(&numbers)).await?;
        let passages = match &self.reranker {
            Some(reranker) => rerank(&**reranker, query, found, top).await?,
            None => found.into_iter().zip(fused).map(|(found, (_, score))| found.passage(score)).collect(),
        };
        Ok(Retrieved { passages })
    }

    /// The vector of a question, of which no more is looked at than a model takes.
    async fn embed(&self, query: &str) -> Result<Vec<f32>, SearchError> {
        let starts = self.embedder.token_starts(query);
        let most = self.about().chunk_size.max(QUESTION);
        let end = starts.get(most).copied().unwrap_or(query.len());
        let text = query.get(..end).unwrap_or(query).to_owned();
        let mut vectors = self.embedder.embed(&[text]).await?;
        check_vectors(self.embedder.name(), 1, &vectors, Some(self.about().dimensions))?;
        Ok(vectors.swap_remove(0))
    }

    async fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Reader) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, SearchError> {
        let reader = self.reader.clone();
        Ok(blocking(move || work(&reader)).await??)
    }

    async fn read(file: &Path) -> Result<Reader, SearchError> {
        let file = file.to_owned();
        Ok(blocking(move || Reader::open(&file)).await??)
    }
}

impl Found {
    fn passage(self, score: f64) -> Passage {
        Passage { source: self.source, text: self.text, score }
    }
}

async fn rerank(
    reranker: &dyn Reranker,
    query: &str,
    found: Vec<Found>,
    top: usize,
) -> Result<Vec<Passage>, RerankError> {
    let texts: Vec<String> = found.iter().map(|found| found.text.clone()).collect();
    let count = found.len();
    let mut found: Vec<Option<Found>> = found.into_iter().map(Some).collect();
    let mut passages = Vec::new();
    for (index, score) in reranker.rerank(query, &texts, top).await?.into_iter().take(top) {
        let wrong = || RerankError::Index { model: reranker.name().to_owned(), index, passages: count };
        let found = found.get_mut(index).and_then(Option::take).ok_or_else(wrong)?;
        passages.push(found.passage(score));
    }
    Ok(passages)
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, SearchError> {
    let abnormal = |error: tokio::task::JoinError| SearchError::Abnormal { reason: error.to_string() };
    tokio::task::spawn_blocking(work).await.map_err(abnormal)
}
