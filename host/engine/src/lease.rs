//! The writer of a run, which lets a run write so much and no more, seals what is redacted, and tells when nobody holds it any more.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use async_trait::async_trait;
use hotcell_journal::{Entry, JournalError, RecordedCall, RunId, RunWriter};
use tokio::sync::oneshot;

use crate::redaction::Redaction;

/// The part of what a run may write that a process may add to it in recordings; of further calls none is kept.
const RECORDED: u64 = 4;

/// A writer that tells when it is gone. Turns that were stopped hold it until their tasks are taken apart, and as long the run
/// belongs to nobody else.
pub(crate) struct Lease {
    // Dropped before the sender.
    writer: Box<dyn RunWriter>,
    most: u64,
    written: AtomicU64,
    recorded: AtomicU64,
    /// What of entries the journal gets sealed
    redaction: Option<Arc<Redaction>>,
    _gone: oneshot::Sender<()>,
}

/// Is done when a [`Lease`] is gone.
pub(crate) type Gone = oneshot::Receiver<()>;

impl Lease {
    /// The writer of a run with this history, which may write `most` bytes in all.
    pub(crate) fn new(
        writer: Box<dyn RunWriter>,
        history: &[Entry],
        most: u64,
        redaction: Option<Arc<Redaction>>,
    ) -> (Self, Gone) {
        let (sender, gone) = oneshot::channel();
        let (written, recorded) = (AtomicU64::new(weight(history)), AtomicU64::new(0));
        (Lease { writer, most, written, recorded, redaction, _gone: sender }, gone)
    }

    /// The entries as the journal gets them, if the run may write so much.
    fn admit(&self, entries: Vec<Entry>) -> Result<Vec<Entry>, JournalError> {
        let more = weight(&entries);
        let written = self.written.fetch_add(more, Ordering::Relaxed).saturating_add(more);
        // How a run stands can always be said.
        if written > self.most && !entries.iter().any(|entry| entry.fact.is_rest()) {
            return Err(JournalError::Full { most: self.most });
        }
        Ok(match &self.redaction {
            Some(redaction) => entries.into_iter().map(|entry| redaction.seal(entry)).collect(),
            None => entries,
        })
    }
}

#[async_trait]
impl RunWriter for Lease {
    fn run(&self) -> &RunId {
        self.writer.run()
    }

    async fn append(&self, entries: Vec<Entry>) -> Result<(), JournalError> {
        self.writer.append(self.admit(entries)?).await
    }

    async fn append_later(&self, entries: Vec<Entry>) -> Result<(), JournalError> {
        self.writer.append_later(self.admit(entries)?).await
    }

    fn catch_up(&self) -> Result<(), JournalError> {
        self.writer.catch_up()
    }

    fn record(&self, call: RecordedCall) {
        // What a call was given cannot be told apart from what is redacted in it.
        if self.redaction.is_some() {
            return;
        }
        let more = call.body.len() as u64;
        if self.recorded.fetch_add(more, Ordering::Relaxed).saturating_add(more) <= self.most / RECORDED {
            self.writer.record(call);
        }
    }

    async fn settled(&self) -> Result<(), JournalError> {
        self.writer.settled().await
    }

    async fn receive(&self) -> Result<Vec<Entry>, JournalError> {
        let received = self.writer.receive().await?;
        Ok(match &self.redaction {
            Some(redaction) => received.into_iter().map(|entry| redaction.open_entry(entry)).collect(),
            None => received,
        })
    }

    fn times(&self) -> Option<(SystemTime, SystemTime)> {
        self.writer.times()
    }
}

fn weight(entries: &[Entry]) -> u64 {
    entries.iter().map(|entry| entry.fact.weight() as u64).sum()
}
