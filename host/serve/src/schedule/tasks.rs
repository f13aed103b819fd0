//! The schedules that are gone by at this moment.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::definition::Definition;

/// The schedules that are gone by at this moment.
#[derive(Default)]
pub(crate) struct Schedules {
    tasks: TaskTracker,
    going: Mutex<HashMap<String, (Definition, CancellationToken)>>,
    /// Held while one is changed
    pub(crate) changing: tokio::sync::Mutex<()>,
    /// Held from reading which there are until they are gone by
    exchanging: Mutex<()>,
}

impl Schedules {
    fn going(&self) -> MutexGuard<'_, HashMap<String, (Definition, CancellationToken)>> {
        self.going.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has others wait who would exchange them, too.
    pub(crate) fn exchanging(&self) -> MutexGuard<'_, ()> {
        self.exchanging.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Goes by these from now on, and by no others: those that are as they were are left alone. Gives those that are to be begun, each
    /// with what tells when it is over.
    pub(crate) fn exchange(
        &self,
        wanted: Vec<Definition>,
        closing: &CancellationToken,
    ) -> Vec<(Definition, CancellationToken)> {
        let mut going = self.going();
        let mut before = std::mem::take(&mut *going);
        let mut new = Vec::new();
        for definition in wanted {
            let id = definition.id.clone();
            match before.remove(&id) {
                Some((known, over)) if known == definition => drop(going.insert(id, (known, over))),
                known => {
                    known.inspect(|(_, over)| over.cancel());
                    let over = closing.child_token();
                    going.insert(id, (definition.clone(), over.clone()));
                    new.push((definition, over));
                }
            }
        }
        before.into_values().for_each(|(_, over)| over.cancel());
        new
    }

    /// The schedules that are gone by.
    pub(crate) fn all(&self) -> Vec<Definition> {
        let mut all: Vec<Definition> = self.going().values().map(|(definition, _)| definition.clone()).collect();
        all.sort_by(|one, other| one.id.cmp(&other.id));
        all
    }

    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(work);
    }

    /// Waits until all of them have ended.
    pub(crate) async fn end(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }
}
