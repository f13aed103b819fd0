//! Waking those who wait for messages or for a run to be released, within one process.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::Notify;

use crate::ids::RunId;

/// Who waits for news of which run.
#[derive(Default)]
pub(crate) struct Bells {
    runs: Mutex<HashMap<RunId, Weak<Notify>>>,
    /// How often one of them was rung
    rung: AtomicU64,
}

impl Bells {
    /// The bell of a run: everybody who waits for news of it listens to the same one.
    pub(crate) fn of(&self, run: &RunId) -> Arc<Notify> {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bell) = runs.get(run).and_then(Weak::upgrade) {
            return bell;
        }
        if runs.len() >= 64 && runs.len().is_power_of_two() {
            runs.retain(|_, bell| bell.strong_count() > 0);
        }
        let bell = Arc::new(Notify::new());
        runs.insert(run.clone(), Arc::downgrade(&bell));
        bell
    }

    /// How often one of the bells was rung, whether or not somebody heard it. As long as that stays the same, there is news of no run.
    pub(crate) fn rung(&self) -> u64 {
        self.rung.load(Ordering::SeqCst)
    }

    /// Wakes everybody who waits for news of a run.
    pub(crate) fn ring(&self, run: &RunId) {
        // Whoever counts before this listens before the bell rings.
        self.rung.fetch_add(1, Ordering::SeqCst);
        let bell = self.runs.lock().unwrap_or_else(PoisonError::into_inner).get(run).and_then(Weak::upgrade);
        if let Some(bell) = bell {
            bell.notify_waiters();
        }
    }

    /// Wakes everybody.
    pub(crate) fn ring_all(&self) {
        self.rung.fetch_add(1, Ordering::SeqCst);
        let runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        runs.values().filter_map(Weak::upgrade).for_each(|bell| bell.notify_waiters());
    }
}
