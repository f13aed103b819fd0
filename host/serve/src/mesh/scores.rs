//! Scores that are worked on, each once at a time.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

/// Scores that are being worked on by this process.
#[derive(Default)]
pub(super) struct Scores(Mutex<HashSet<String>>);

impl Scores {
    /// Takes a score in hand; false if it is.
    pub(super) fn take(&self, id: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id.to_owned())
    }

    /// It is not worked on any more.
    pub(super) fn let_go(&self, id: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }
}
