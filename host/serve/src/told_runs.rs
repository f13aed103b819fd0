//! Addresses outside that are told of runs: one task tells each of them, so that none waits for another one that is slow.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hotcell_runtime::RunId;

/// An address of a run, by its name among those of the run.
pub(crate) type Address = (RunId, String);

/// Addresses that are told of runs at the moment.
#[derive(Default)]
pub(crate) struct ToldRuns(Mutex<HashSet<Address>>);

impl ToldRuns {
    fn told(&self) -> MutexGuard<'_, HashSet<Address>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has whoever calls this tell an address. False if somebody does so already.
    pub(crate) fn begin(&self, address: &Address) -> bool {
        self.told().insert(address.clone())
    }

    /// Ends telling an address if that is over, and says whether it is. Nobody begins to tell it while that is looked at.
    pub(crate) fn end_if<E>(&self, address: &Address, is_over: impl FnOnce() -> Result<bool, E>) -> Result<bool, E> {
        let mut told = self.told();
        let is_over = is_over()?;
        if is_over {
            told.remove(address);
        }
        Ok(is_over)
    }

    /// Ends telling an address.
    pub(crate) fn end(&self, address: &Address) {
        self.told().remove(address);
    }
}
