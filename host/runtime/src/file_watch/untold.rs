//! A system that tells nothing of files: it is looked from time to time.

use std::convert::Infallible;
use std::io::{Error, ErrorKind};
use std::sync::Arc;

use super::folders::Folders;
use super::outcome::Outcome;
use super::written::Written;

/// What the system tells of files: nothing, so there is none.
pub(super) struct Watcher(Infallible);

impl Watcher {
    /// There is none.
    ///
    /// # Errors
    /// Always: the system does not tell of files.
    pub(super) fn new(_: Arc<Written>) -> Result<Self, Error> {
        Err(ErrorKind::Unsupported.into())
    }

    /// Watches these folders from now on, and no others.
    pub(super) async fn watch(&self, _: Folders) -> Outcome {
        match self.0 {}
    }

    /// Ends when something was told since this was called last.
    pub(super) async fn changed(&self) {
        match self.0 {}
    }

    /// How much was told so far.
    pub(super) fn seen(&self) -> u64 {
        match self.0 {}
    }
}
