//! Runs of which somebody outside is told: one task tells of each.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hotcell_runtime::RunId;

/// Runs of which somebody outside is told at the moment.
#[derive(Default)]
pub(crate) struct ToldRuns(Mutex<HashSet<RunId>>);

impl ToldRuns {
    fn runs(&self) -> MutexGuard<'_, HashSet<RunId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has whoever calls this tell of a run. False if somebody does so already.
    pub(crate) fn begin(&self, run: &RunId) -> bool {
        self.runs().insert(run.clone())
    }

    /// Ends telling of a run if that is over, and says whether it is. Nobody begins to tell of it while that is looked at.
    pub(crate) fn end_if<E>(&self, run: &RunId, is_over: impl FnOnce() -> Result<bool, E>) -> Result<bool, E> {
        let mut runs = self.runs();
        let is_over = is_over()?;
        if is_over {
            runs.remove(run);
        }
        Ok(is_over)
    }

    /// Ends telling of a run.
    pub(crate) fn end(&self, run: &RunId) {
        self.runs().remove(run);
    }
}
