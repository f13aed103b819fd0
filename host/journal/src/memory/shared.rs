//! What all users of a store in memory share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use super::run::{Run, locked};
use crate::artefact::Artefact;
use crate::entry::RunHeader;
use crate::ids::RunId;
use crate::mail::Bells;
use crate::store::JournalError;
use crate::timers::Timers;

/// The runs, and who waits for something of them.
#[derive(Default)]
pub(super) struct Shared {
    pub(super) runs: Mutex<Runs>,
    pub(super) bells: Bells,
    /// Rung when a run has more entries
    pub(super) grown: Bells,
    pub(super) timers: Arc<Timers>,
}

/// The runs, and what they are found by.
#[derive(Default)]
pub(super) struct Runs {
    pub(super) by_id: HashMap<RunId, Arc<Mutex<Run>>>,
    /// In the order in which they began
    pub(super) order: Vec<RunId>,
    /// The runs of each thread in the order in which they began, by source and name
    pub(super) threads: HashMap<(String, String), Vec<RunId>>,
    /// The artefacts of each revision
    pub(super) revisions: HashMap<String, Vec<Artefact>>,
}

impl Runs {
    /// Whether a revision is kept.
    pub(super) fn has(&self, revision: &str) -> Result<(), JournalError> {
        match self.revisions.contains_key(revision) {
            true => Ok(()),
            false => Err(JournalError::NotKept(revision.to_owned())),
        }
    }

    /// The name of a run that is to begin.
    pub(super) fn name_for(&self, header: &RunHeader) -> Result<RunId, JournalError> {
        match header.wanted_name() {
            Some(wanted) if self.by_id.contains_key(&wanted) => Err(JournalError::Exists(wanted)),
            Some(wanted) => Ok(wanted),
            None => Ok(std::iter::repeat_with(RunId::random)
                .find(|id| !self.by_id.contains_key(id))
                .unwrap_or_else(RunId::random)),
        }
    }

    /// The run of the thread that somebody works on. Runs of other threads are not looked at.
    pub(super) fn busy(&self, header: &RunHeader) -> Option<RunId> {
        let thread = (header.source.clone(), header.thread()?.to_owned());
        let is_owned = |run: &&RunId| self.by_id.get(*run).is_some_and(|run| locked(run).owned);
        self.threads.get(&thread)?.iter().rev().find(is_owned).cloned()
    }

    /// Adds a run, which is the last of its thread if it belongs to one.
    pub(super) fn add(&mut self, id: RunId, header: &RunHeader, run: Arc<Mutex<Run>>) {
        if let Some(thread) = header.thread() {
            self.threads.entry((header.source.clone(), thread.to_owned())).or_default().push(id.clone());
        }
        self.order.push(id.clone());
        self.by_id.insert(id, run);
    }
}
