//! The writer of a run of which nothing is written any more.

use async_trait::async_trait;
use hotcell_journal::{Entry, JournalError, RecordedCall, RunId, RunWriter};

/// Refuses what would be written of a run.
pub(crate) struct NoWriter {
    run: RunId,
    is_over: bool,
}

impl NoWriter {
    /// For a run that is only looked at.
    pub(crate) fn looking_at(run: RunId) -> Self {
        NoWriter { run, is_over: false }
    }

    /// For a run that is over: nothing more is done for it.
    pub(crate) fn over(run: RunId) -> Self {
        NoWriter { run, is_over: true }
    }

    fn fenced(&self) -> JournalError {
        JournalError::Fenced(self.run.clone())
    }
}

#[async_trait]
impl RunWriter for NoWriter {
    fn run(&self) -> &RunId {
        &self.run
    }

    async fn append(&self, _: Vec<Entry>) -> Result<(), JournalError> {
        Err(self.fenced())
    }

    fn record(&self, _: RecordedCall) {}

    async fn settled(&self) -> Result<(), JournalError> {
        if self.is_over { Err(self.fenced()) } else { Ok(()) }
    }

    async fn receive(&self) -> Result<Vec<Entry>, JournalError> {
        std::future::pending().await
    }
}
