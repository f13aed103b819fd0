//! Following a run: its entries from one of them on, as they are committed.
//!
//! Nothing is kept for whoever follows but the number of the last entry that it has: it reads the journal at its own pace.

use std::sync::Arc;

use hotcell_runtime::{Clock, EntryPage, Fact, JournalError, NumberedEntry, RunId, RunStatus, RunStore};

use crate::live::InHand;

/// Entries that are read at once.
const AT_ONCE: usize = 256;

/// Somebody who follows a run.
pub(crate) struct Follower {
    store: Arc<dyn RunStore>,
    in_hand: Arc<InHand>,
    run: RunId,
    after: u64,
    /// Whether it was said that every entry was read
    has_caught_up: bool,
    /// Whether the last entry was a cancellation
    is_cancelled: bool,
    /// Counts the reading as work, if somebody acts on what is read
    clock: Option<Arc<dyn Clock>>,
}

impl Follower {
    pub(crate) fn new(store: Arc<dyn RunStore>, in_hand: Arc<InHand>, run: RunId, after: u64) -> Self {
        Follower { store, in_hand, run, after, has_caught_up: false, is_cancelled: false, clock: None }
    }

    /// The same for somebody who acts on what is read: to read it is work on this clock.
    pub(crate) fn on(self, clock: Arc<dyn Clock>) -> Self {
        Follower { clock: Some(clock), ..self }
    }

    /// Further entries; waits for them as long as the run goes on. None at all once, when everything was read that there was. Nothing
    /// when it rests: it has ended, or waits for a person, or nobody works on it.
    ///
    /// Whoever drops this while it waits misses nothing.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<NumberedEntry>>, JournalError> {
        let mut is_free = false;
        loop {
            // Before the entries are read: what was in hand then may have added to them since.
            let live = self.in_hand.get(&self.run);
            let EntryPage { entries, status, .. } = {
                let _reads = self.clock.as_ref().map(|clock| clock.working());
                self.store.entries(&self.run, self.after, AT_ONCE).await?
            };
            if let Some(last) = entries.last() {
                self.after = last.number;
                self.is_cancelled = last.entry.fact == Fact::Cancelled;
                return Ok(Some(entries));
            }
            let rests = match status {
                RunStatus::Running => false,
                // It was said, and whoever works on the run has yet to notice.
                RunStatus::Cancelled => self.is_cancelled || is_free,
                RunStatus::Waiting | RunStatus::Paused | RunStatus::Interrupted => live.is_none(),
                RunStatus::Completed | RunStatus::Failed | RunStatus::Stopped => true,
            };
            if rests {
                return Ok(None);
            }
            if !std::mem::replace(&mut self.has_caught_up, true) {
                return Ok(Some(Vec::new()));
            }
            let grown = self.store.grown(&self.run, self.after);
            match (status, live) {
                (RunStatus::Waiting | RunStatus::Paused | RunStatus::Interrupted, Some(live)) => tokio::select! {
                    grown = grown => grown?,
                    () = live.done.cancelled() => {}
                },
                _ => tokio::select! {
                    biased;
                    grown = grown => grown?,
                    released = self.store.released(&self.run) => {
                        released?;
                        is_free = true;
                    }
                },
            }
        }
    }

    /// The same where the run rests, and goes on by itself: waits until it does. What another process does with it is not noticed before
    /// this one has it again.
    pub(crate) async fn go_on(&mut self) -> Result<Option<Vec<NumberedEntry>>, JournalError> {
        self.store.grown(&self.run, self.after).await?;
        self.next().await
    }
}
