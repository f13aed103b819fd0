//! The host as a recording has it: nothing outside is asked, and what the recording does not hold ends the call.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::Value;
use thiserror::Error;

use super::readings::Tape;
use super::{HostFunction, Recording, Taken};
use crate::clock::ReadingsSource;

/// The guest wants something that the recording does not hold; it ends the call.
#[derive(Debug, Error)]
#[error("it asks {0}, which the recording does not hold")]
pub(crate) struct NotRecorded(pub(crate) String);

/// Gives what a recording holds.
pub(crate) struct Player {
    taken: Mutex<Held>,
    clocks: Mutex<(Tape, Tape)>,
    missing: Mutex<Option<String>>,
    /// What was used up of the network when the call was recorded
    pub(crate) exhausted: Option<String>,
    /// Where the random numbers come from
    pub(crate) random: super::Random,
    /// What the placeholders of secrets are made of, and which secrets there are
    pub(crate) secrets: Option<(u64, Vec<String>)>,
    denied: Vec<String>,
}

#[derive(Default)]
struct Held {
    taken: Vec<Option<Taken>>,
    /// Everything before this was given
    first: usize,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Player {
    pub(crate) fn new(recording: &Recording) -> Self {
        let readings = recording.readings.clone();
        Player {
            taken: Mutex::new(Held { taken: recording.taken.iter().cloned().map(Some).collect(), first: 0 }),
            clocks: Mutex::new((Tape::new(readings.wall), Tape::new(readings.monotonic))),
            missing: Mutex::default(),
            exhausted: recording.exhausted.clone(),
            random: recording.random.clone(),
            secrets: recording.secrets.clone(),
            denied: recording.denied.clone(),
        }
    }

    /// The first reply that is left for this.
    fn find(&self, from: HostFunction, asked: &str) -> Option<Value> {
        let held = &mut *locked(&self.taken);
        while held.taken.get(held.first).is_some_and(Option::is_none) {
            held.first += 1;
        }
        let fits =
            |taken: &&mut Option<Taken>| taken.as_ref().is_some_and(|one| one.from == from && one.asked == asked);
        let found = held.taken.iter_mut().skip(held.first).find(fits)?.take();
        found.map(|taken| taken.gave)
    }

    /// What the host gave for this.
    ///
    /// # Errors
    /// When nothing of the kind is left.
    pub(crate) fn take<T: DeserializeOwned>(&self, from: HostFunction, asked: &str) -> Result<T, NotRecorded> {
        self.take_one_of(from, [asked])
    }

    /// The same for what may have been noted under several names, the likeliest first.
    pub(crate) fn take_one_of<T: DeserializeOwned, const N: usize>(
        &self,
        from: HostFunction,
        names: [&str; N],
    ) -> Result<T, NotRecorded> {
        let wanted = || crate::text::one_line(&from.describe(names.first().copied().unwrap_or_default()), 300);
        let found = names.into_iter().find_map(|asked| self.find(from, asked));
        let Some(value) = found else { return Err(self.miss(wanted())) };
        serde_json::from_value(value).map_err(|_| self.miss(format!("{} in another form", wanted())))
    }

    /// Notes that the guest wants something that is not there.
    pub(crate) fn miss(&self, wanted: String) -> NotRecorded {
        locked(&self.missing).get_or_insert_with(|| wanted.clone());
        NotRecorded(wanted)
    }

    /// What the guest wanted first that is not there: a reply, or a capability that it was not denied before.
    pub(crate) fn missing(&self, denied: &[String]) -> Option<String> {
        let more = || denied.iter().find(|denied| !self.denied.contains(denied));
        locked(&self.missing).clone().or_else(|| more().map(|denied| format!("for {denied}")))
    }
}

impl ReadingsSource for Player {
    fn wall(&self) -> Duration {
        locked(&self.clocks).0.next()
    }

    fn monotonic(&self) -> Duration {
        locked(&self.clocks).1.next()
    }
}
