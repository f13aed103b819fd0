//! Runs of which there is something to tell to others, or something to be done about.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use hotcell_runtime::RunId;
use tokio::sync::Notify;

/// Runs to which something happened (they asked, came to rest, went on), each once until somebody takes it.
#[derive(Default)]
pub(crate) struct News {
    /// Whether anybody takes them
    wanted: AtomicBool,
    runs: Mutex<HashSet<RunId>>,
    more: Notify,
}

impl News {
    /// Has news kept from now on.
    pub(crate) fn want(&self) {
        self.wanted.store(true, Ordering::Relaxed);
    }

    /// Whether somebody takes them.
    pub(crate) fn are_wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed)
    }

    /// There is something to tell of a run.
    pub(crate) fn add(&self, run: &RunId) {
        if self.are_wanted() {
            self.runs.lock().unwrap_or_else(PoisonError::into_inner).insert(run.clone());
            self.more.notify_one();
        }
    }

    /// All of them.
    pub(crate) fn take(&self) -> HashSet<RunId> {
        std::mem::take(&mut self.runs.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Ends when there are more.
    pub(crate) async fn more(&self) {
        self.more.notified().await;
    }
}
