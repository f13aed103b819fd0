//! Building a knowledge base.
//!
//! Why this exists: reading, cutting and embedding documents takes long and costs money. It is done once, can be
//! interrupted at any moment and goes on where it stopped: chunks are committed batch by batch, with the hash of the
//! document that they belong to, into a file beside the place of the knowledge base, which takes that place when it is
//! complete.
//!
//! What it must not do: embed a chunk again that is committed, touch a knowledge base that is there, or leave the file
//! half-built in its place.

mod pipeline;

use std::{
    collections::HashSet,
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use thiserror::Error;
use tokio::task::JoinError;

use crate::{
    chunk::{ChunkError, Cutter},
    embed::{EmbedError, Embedder},
    lock::BuildLock,
    outside::Outside,
    source::{self, Document, DocumentError, Documents, SourceError},
    store::{Settings, State, StoreError, Writer},
};
use pipeline::Pipeline;

/// A knowledge base that is to be built.
#[derive(Clone)]
pub struct Build {
    /// Where it is to be. Until it is complete there are `<file>.building` and `<file>.lock` beside it, also after a build
    /// that failed.
    pub file: PathBuf,
    /// The folder that paths are relative to and do not leave.
    pub folder: PathBuf,
    /// What it is made of: files, directories, patterns, addresses and `LOADER:PATH`.
    pub documents: Vec<String>,
    /// How.
    pub settings: Settings,
    /// The model that makes the vectors.
    pub embedder: Arc<dyn Embedder>,
    /// What is outside of this crate.
    pub outside: Outside,
}

/// How far a build is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// How many documents are in the file, those of an earlier attempt included.
    pub documents: usize,
    /// How many there are to be.
    pub total: usize,
    /// How many chunks this build has embedded and committed.
    pub chunks: usize,
    /// How many bytes of documents it has read.
    pub bytes: u64,
}

/// What a build did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// Whether the knowledge base was there already; then nothing was done.
    pub already_built: bool,
    /// How many documents it has.
    pub documents: usize,
    /// How many chunks it has.
    pub chunks: usize,
    /// How many of them this build embedded.
    pub embedded: usize,
    /// Files that were found in directories and left out because their format is unknown or binary.
    pub unknown: Vec<String>,
    /// Files that were found in directories and left out because they are empty.
    pub empty: Vec<String>,
    /// What the person who asked for it should know, in sentences.
    pub warnings: Vec<String>,
}

/// Why a knowledge base could not be built.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A setting means nothing.
    #[error("the {setting} of a knowledge base must be at least 1")]
    Setting {
        /// Its name.
        setting: &'static str,
    },
    /// The sizes of chunks do not fit together.
    #[error(transparent)]
    Chunk(#[from] ChunkError),
    /// The list of documents cannot be followed.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// A document cannot be used.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// Chunks could not be embedded. What was committed before stays for the next attempt.
    #[error(transparent)]
    Embed(#[from] EmbedError),
    /// The file cannot be written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The lock beside the file cannot be used.
    #[error("the lock `{}` cannot be used: {reason}; check that its directory can be written", .file.display())]
    Lock {
        /// The lock.
        file: PathBuf,
        /// Why not.
        reason: String,
    },
    /// A part of the work ended abnormally.
    #[error("building a knowledge base ended abnormally: {reason}")]
    Abnormal {
        /// What happened.
        reason: String,
    },
}

impl From<JoinError> for BuildError {
    fn from(error: JoinError) -> Self {
        Self::Abnormal { reason: error.to_string() }
    }
}

impl Build {
    /// Builds it, or goes on where an earlier attempt with the same model and chunk sizes stopped. If it is there already
    /// nothing is done. Another process that builds it is waited for. `progress` is called after each commit.
    ///
    /// Dropping the future is as good as an error: what was committed stays for the next attempt.
    ///
    /// # Errors
    ///
    /// The first problem with a setting, a document, the model or the file.
    pub async fn run(&self, progress: &(dyn Fn(Progress) + Send + Sync)) -> Result<Report, BuildError> {
        for (setting, value) in [("batch size", self.settings.batch_size), ("top_k", self.settings.top_k)] {
            if value == 0 {
                return Err(BuildError::Setting { setting });
            }
        }
        Cutter::new(self.settings.chunk_size, self.settings.chunk_overlap, &*self.embedder)?;
        if self.is_built()? {
            return Ok(Report { already_built: true, ..Report::default() });
        }
        let (folder, entries) = (self.folder.clone(), self.documents.clone());
        let documents = tokio::task::spawn_blocking(move || Documents::find(&folder, &entries)).await??;

        let lock = beside(&self.file, ".lock");
        let failed = |error: io::Error| BuildError::Lock { file: lock.clone(), reason: error.to_string() };
        let lock = BuildLock::wait(lock.clone()).await.map_err(failed)?;
        if self.is_built()? {
            return Ok(Report { already_built: true, ..Report::default() });
        }
        let report = self.fill(documents, progress).await?;
        lock.finish();
        Ok(report)
    }

    fn is_built(&self) -> Result<bool, BuildError> {
        let failed = |error: io::Error| StoreError::Failed {
            file: self.file.clone(),
            doing: "looked for",
            reason: error.to_string(),
        };
        Ok(self.file.try_exists().map_err(failed)?)
    }

    async fn fill(
        &self,
        documents: Documents,
        progress: &(dyn Fn(Progress) + Send + Sync),
    ) -> Result<Report, BuildError> {
        let Documents { list, unknown } = documents;
        let mut report = Report { unknown, ..Report::default() };
        let (chunk_size, chunk_overlap) = self.sizes(&mut report.warnings);
        let (file, model) = (beside(&self.file, ".building"), self.embedder.name().to_owned());
        let settings = self.settings.clone();
        let writer = tokio::task::spawn_blocking(move || Writer::open(&file, &model, &settings)).await??;
        let writer = Arc::new(Mutex::new(writer));
        let mut pipeline = Pipeline::new(writer, self.embedder.clone(), self.settings.batch_size, progress, list.len());

        let mut kept = HashSet::new();
        for document in &list {
            let raw = source::read(document, self.settings.max_document, &self.outside).await?;
            pipeline.has_read(raw.size());
            let (sha256, name) = (raw.sha256, document.shown.clone());
            let (number, state) = pipeline.write(move |writer| writer.document(&name, &sha256)).await?;
            if state == State::Complete {
                kept.insert(document.shown.clone());
                pipeline.was_complete();
                continue;
            }
            let chunks = self.chunks(document, raw, chunk_size, chunk_overlap).await?;
            if chunks.is_empty() {
                report.empty.push(document.shown.clone());
                pipeline.was_complete();
                continue;
            }
            kept.insert(document.shown.clone());
            let begun = if let State::Begun(begun) = state { begun } else { 0 };
            for (place, text) in chunks.into_iter().enumerate().skip(begun) {
                pipeline.add(number, place, text).await?;
            }
            pipeline.ends(number);
        }
        let (writer, embedded) = pipeline.drain().await?;
        if kept.is_empty() {
            return Err(BuildError::Source(SourceError::Nothing {
                listed: self.documents.iter().map(|entry| format!("`{entry}`")).collect::<Vec<_>>().join(", "),
                unknown: report.unknown.len(),
                empty: report.empty.len(),
            }));
        }
        report.documents = kept.len();
        report.embedded = embedded;
        let place = self.file.clone();
        report.chunks = tokio::task::spawn_blocking(move || {
            let mut writer = writer;
            writer.retain(&kept)?;
            let chunks = writer.chunks()?;
            writer.finish(&place)?;
            Ok::<_, StoreError>(chunks)
        })
        .await??;
        Ok(report)
    }

    /// The chunk size and overlap, no larger than what the model looks at.
    fn sizes(&self, warnings: &mut Vec<String>) -> (usize, usize) {
        let (size, overlap) = (self.settings.chunk_size, self.settings.chunk_overlap);
        match self.embedder.max_tokens() {
            Some(most) if most < size && most > 0 => {
                warnings.push(format!(
                    "the embedding model `{}` looks at {most} tokens; chunks are cut to that instead of {size}",
                    self.embedder.name()
                ));
                // The overlap keeps its share.
                (most, (overlap as u128 * most as u128 / size as u128) as usize)
            }
            _ => (size, overlap),
        }
    }

    /// The chunks of a document; none if it is empty and may be.
    async fn chunks(
        &self,
        document: &Document,
        raw: source::Raw,
        size: usize,
        overlap: usize,
    ) -> Result<Vec<String>, BuildError> {
        let Some((kind, text)) = raw.text(&self.outside).await? else {
            tracing::warn!(document = %document.shown, "an empty document is left out");
            return Ok(Vec::new());
        };
        let embedder = self.embedder.clone();
        let cut = move || Ok::<_, ChunkError>(Cutter::new(size, overlap, &*embedder)?.cut(kind, &text));
        Ok(tokio::task::spawn_blocking(cut).await??)
    }
}

fn beside(file: &Path, end: &str) -> PathBuf {
    let mut path = file.as_os_str().to_owned();
    path.push(end);
    path.into()
}
