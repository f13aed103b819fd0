//! Runs that go on because their time has come.

use std::sync::atomic::Ordering;
use std::time::Duration;

use hotcell_runtime::{JournalError, RunId};

use super::Runs;
use crate::input::is_ours;

/// How long it is waited before it is looked again what is due, after a run that could not go on: that one is still due, and would be
/// tried again at once.
pub(super) const STUCK: Duration = Duration::from_secs(10);

impl Runs {
    /// Ends when a run has given control back since this was called last.
    pub(crate) async fn rested(&self) {
        self.rested.notified().await;
    }

    /// Goes on with a run that rests and something of which is due. False if it is not for this server.
    pub(crate) async fn wake(&self, run: &RunId) -> Result<bool, JournalError> {
        let record = self.store().find(run.as_str()).await?;
        if !is_ours(&record) || self.agents.id_of(&record.header.source).is_none() {
            return Ok(false);
        }
        match self.live(run) {
            None => self.resume(self.in_hand.take(run)),
            // Whoever has it in hand may be about to let it go, and did not see that something is due.
            Some(live) if !live.is_due.swap(true, Ordering::Relaxed) => {
                let rested = self.rested.clone();
                tokio::spawn(async move {
                    live.done.cancelled().await;
                    rested.notify_one();
                });
            }
            Some(_) => {}
        }
        Ok(true)
    }
}
