//! The times that runs wait for, in their order: what is due is found without looking at every run.

use std::collections::{BTreeSet, HashSet};
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use crate::ids::{EntryPath, RunId};

/// A time, whose it is, and what it is called there.
type Timer = (SystemTime, RunId, EntryPath, String);

/// The times that runs wait for.
#[derive(Default)]
pub(crate) struct Timers(Mutex<BTreeSet<Timer>>);

impl Timers {
    fn all(&self) -> MutexGuard<'_, BTreeSet<Timer>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, at: SystemTime, run: &RunId, (place, name): &(EntryPath, String)) {
        self.all().insert((at, run.clone(), place.clone(), name.clone()));
    }

    pub(crate) fn remove(&self, at: SystemTime, run: &RunId, (place, name): &(EntryPath, String)) {
        self.all().remove(&(at, run.clone(), place.clone(), name.clone()));
    }

    /// The runs that something is due of, each once, those that wait longest first.
    pub(crate) fn until(&self, now: SystemTime) -> Vec<RunId> {
        let mut seen = HashSet::new();
        let all = self.all();
        let due = all.iter().take_while(|(at, ..)| *at <= now).map(|(_, run, ..)| run);
        due.filter(|run| seen.insert(*run)).cloned().collect()
    }

    /// The first time after this one, with whose it is.
    pub(crate) fn after(&self, time: SystemTime) -> Option<(SystemTime, RunId)> {
        // No name is greater than all others, so those of the same time are passed over.
        let none = (time, RunId::from(String::new()), EntryPath::default(), String::new());
        let all = self.all();
        let mut later = all.range((Bound::Included(none), Bound::Unbounded));
        later.find(|(at, ..)| *at > time).map(|(at, run, ..)| (*at, run.clone()))
    }
}
