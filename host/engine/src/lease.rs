//! The writer of a run, which tells when nobody holds it any more.

use async_trait::async_trait;
use hotcell_journal::{Entry, JournalError, RecordedCall, RunId, RunWriter};
use tokio::sync::oneshot;

/// A writer that tells when it is gone. Turns that were stopped hold it until their tasks are taken apart, and as long the run
/// belongs to nobody else.
pub(crate) struct Lease {
    // Dropped before the sender.
    writer: Box<dyn RunWriter>,
    _gone: oneshot::Sender<()>,
}

/// Is done when a [`Lease`] is gone.
pub(crate) type Gone = oneshot::Receiver<()>;

impl Lease {
    pub(crate) fn new(writer: Box<dyn RunWriter>) -> (Self, Gone) {
        let (sender, gone) = oneshot::channel();
        (Lease { writer, _gone: sender }, gone)
    }
}

#[async_trait]
impl RunWriter for Lease {
    fn run(&self) -> &RunId {
        self.writer.run()
    }

    async fn append(&self, entries: Vec<Entry>) -> Result<(), JournalError> {
        self.writer.append(entries).await
    }

    fn record(&self, call: RecordedCall) {
        self.writer.record(call);
    }

    async fn settled(&self) -> Result<(), JournalError> {
        self.writer.settled().await
    }

    async fn receive(&self) -> Result<Vec<Entry>, JournalError> {
        self.writer.receive().await
    }
}
