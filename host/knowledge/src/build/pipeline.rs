//! From chunks to committed chunks, with several batches at the model at once.
//!
//! Batches are committed in the order in which they were made, whichever is embedded first. So the chunks of a document
//! that are in the file are always its first ones, and a file is the same however fast the answers come.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::task::JoinSet;

use super::{BuildError, Progress};
use crate::{
    embed::{EmbedError, Embedder, check_vectors},
    store::{Chunk, StoreError, Writer},
};

/// Chunks that are embedded together.
#[derive(Default)]
struct Batch {
    /// The number of the document, the place in it, and the text.
    chunks: Vec<(i64, usize)>,
    texts: Vec<String>,
    /// The documents of which it has the last chunk.
    complete: Vec<i64>,
}

type Embedded = (u64, Batch, Result<Vec<Vec<f32>>, EmbedError>);

pub(super) struct Pipeline<'a> {
    writer: Arc<Mutex<Writer>>,
    embedder: Arc<dyn Embedder>,
    batch_size: usize,
    filling: Batch,
    /// Batches at the model.
    under_way: JoinSet<Embedded>,
    /// Embedded batches that wait for one before them.
    waiting: BTreeMap<u64, (Batch, Vec<Vec<f32>>)>,
    sent: u64,
    committed: u64,
    report: &'a (dyn Fn(Progress) + Send + Sync),
    progress: Progress,
}

impl<'a> Pipeline<'a> {
    pub(super) fn new(
        writer: Arc<Mutex<Writer>>,
        embedder: Arc<dyn Embedder>,
        batch_size: usize,
        report: &'a (dyn Fn(Progress) + Send + Sync),
        total: usize,
    ) -> Self {
        Self {
            writer,
            embedder,
            batch_size,
            filling: Batch::default(),
            under_way: JoinSet::new(),
            waiting: BTreeMap::new(),
            sent: 0,
            committed: 0,
            report,
            progress: Progress { total, ..Progress::default() },
        }
    }

    /// Does something with the file, where it may block.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Writer) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, BuildError> {
        let writer = self.writer.clone();
        let work = move || work(&mut writer.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(tokio::task::spawn_blocking(work).await??)
    }

    pub(super) fn has_read(&mut self, bytes: u64) {
        self.progress.bytes += bytes;
    }

    /// A document needs nothing more.
    pub(super) fn was_complete(&mut self) {
        self.progress.documents += 1;
        (self.report)(self.progress);
    }

    pub(super) async fn add(&mut self, document: i64, place: usize, text: String) -> Result<(), BuildError> {
        // Not when the batch is full but when there is more: so the last batch has its document's end with it.
        if self.filling.chunks.len() == self.batch_size {
            self.send().await?;
        }
        self.filling.chunks.push((document, place));
        self.filling.texts.push(text);
        Ok(())
    }

    /// All chunks of a document were added.
    pub(super) fn ends(&mut self, document: i64) {
        self.filling.complete.push(document);
    }

    /// Commits all that was added. Gives the file and how many chunks were embedded.
    pub(super) async fn drain(mut self) -> Result<(Writer, usize), BuildError> {
        self.send().await?;
        while self.committed < self.sent {
            self.receive().await?;
        }
        let Self { writer, progress, .. } = self;
        let abnormal = || BuildError::Abnormal { reason: "the file is still in use".to_owned() };
        let writer = Arc::into_inner(writer).ok_or_else(abnormal)?;
        Ok((writer.into_inner().unwrap_or_else(PoisonError::into_inner), progress.chunks))
    }

    async fn send(&mut self) -> Result<(), BuildError> {
        while self.under_way.len() >= self.embedder.in_flight().max(1) {
            self.receive().await?;
        }
        let (number, batch) = (self.sent, std::mem::take(&mut self.filling));
        self.sent += 1;
        if batch.texts.is_empty() {
            // Nothing to embed, only documents to complete.
            self.waiting.insert(number, (batch, Vec::new()));
            return self.commit().await;
        }
        let embedder = self.embedder.clone();
        self.under_way.spawn(async move {
            let vectors = embedder.embed(&batch.texts).await;
            (number, batch, vectors)
        });
        Ok(())
    }

    /// Takes one batch from the model and commits what can be.
    async fn receive(&mut self) -> Result<(), BuildError> {
        let Some(embedded) = self.under_way.join_next().await else {
            return Err(BuildError::Abnormal { reason: "a batch was lost".to_owned() });
        };
        let (number, batch, vectors) = embedded?;
        self.waiting.insert(number, (batch, vectors?));
        self.commit().await
    }

    async fn commit(&mut self) -> Result<(), BuildError> {
        while let Some((batch, vectors)) = self.waiting.remove(&self.committed) {
            let dimensions = self.write(|writer| writer.dimensions()).await?;
            check_vectors(self.embedder.name(), batch.texts.len(), &vectors, dimensions)?;
            let Batch { chunks, texts, complete } = batch;
            let (chunk_count, document_count) = (chunks.len(), complete.len());
            let chunks: Vec<Chunk> = chunks
                .into_iter()
                .zip(texts)
                .zip(vectors)
                .map(|(((document, place), text), vector)| Chunk { document, place, text, vector })
                .collect();
            self.write(move |writer| writer.commit(&chunks, &complete)).await?;
            self.committed += 1;
            self.progress.chunks += chunk_count;
            self.progress.documents += document_count;
            (self.report)(self.progress);
        }
        Ok(())
    }
}
