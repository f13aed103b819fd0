//! Doing something at its times: each time once, however often the server ends in between.
//!
//! The time is kept up to which nothing is left to do. Whoever does something at a time knows by that time whether it was done: between
//! doing it and keeping the time the server may end.

use std::time::{Duration, SystemTime};

use futures::future::BoxFuture;
use hotcell_runtime::{Clock, Counted};
use jiff::Timestamp;

use super::times::{Times, instant};
use crate::store::StoreError;

/// How long is waited before something is tried again.
const AGAIN: Duration = Duration::from_secs(5);
/// How exact times are.
pub(crate) const MINUTE: Duration = Duration::from_secs(60);

/// What becomes of times that were missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Missed {
    /// Whether each of them is made good; otherwise only the last one is
    pub(crate) all: bool,
    /// How late something may be done
    pub(crate) grace: Duration,
}

/// What came of doing something.
pub(crate) enum Fired {
    /// It is done, or was done before, or is not to be done; what there is to say was said
    Done,
    /// It cannot be done yet
    NotYet(String),
    /// The next server does it
    Ending,
}

/// Something that is done at times.
pub(crate) trait Scheduled: Send + Sync {
    /// What it is called in the log.
    fn name(&self) -> &str;

    /// When it is done.
    fn times(&self) -> &Times;

    /// What becomes of times that were missed.
    fn missed(&self) -> Missed;

    /// The time up to which nothing is left to do.
    fn done(&self) -> Result<Option<Timestamp>, StoreError>;

    /// Keeps the time up to which nothing is left to do.
    fn note(&self, done: Timestamp) -> Result<(), StoreError>;

    /// Does it, for one of its times.
    fn fire(&self, due: Timestamp) -> BoxFuture<'_, Result<Fired, StoreError>>;
}

/// Does something at its times. Ends when there are no more, or the server ends; where the server's file cannot be used for a while, it
/// goes on afterwards. It counts as work from `begun` on whenever it does not wait.
pub(crate) async fn go_on(clock: &dyn Clock, what: &dyn Scheduled, begun: Counted) {
    let mut working = Some(begun);
    while let Err(error) = try_on(clock, what, &mut working).await {
        tracing::error!(target: "hotcell::serve", schedule = what.name(), %error, "it is tried again");
        wait(clock, AGAIN, &mut working).await;
    }
}

/// Waits for so long, which is no work: from when the clock knows of it on.
async fn wait(clock: &dyn Clock, length: Duration, working: &mut Option<Counted>) {
    let sleep = clock.sleep(length);
    drop(working.take());
    sleep.await;
    *working = Some(clock.working());
}

async fn try_on(clock: &dyn Clock, what: &dyn Scheduled, working: &mut Option<Counted>) -> Result<(), StoreError> {
    let known = what.done()?;
    let mut done = known.unwrap_or_else(|| instant(clock.now()));
    if known.is_none() {
        what.note(done)?;
    }
    let Missed { all, grace } = what.missed();
    loop {
        // What was missed by more than that is left out.
        let oldest = clock.now().checked_sub(grace.saturating_add(MINUTE)).unwrap_or(SystemTime::UNIX_EPOCH);
        let Some(mut due) = what.times().next(done.max(instant(oldest))) else { return Ok(()) };
        if let Ok(left) = SystemTime::from(due).duration_since(clock.now()) {
            wait(clock, left, working).await;
        }
        let now = clock.now();
        // Of several that were missed, the last one is made good.
        while let Some(later) = what.times().next(due).filter(|later| !all && SystemTime::from(*later) <= now) {
            due = later;
        }
        while clock.now().duration_since(due.into()).unwrap_or_default() <= grace {
            match what.fire(due).await? {
                Fired::Done => break,
                Fired::Ending => return Ok(()),
                Fired::NotYet(reason) => {
                    tracing::warn!(target: "hotcell::serve", schedule = what.name(), reason, "it cannot be done yet");
                    wait(clock, AGAIN, working).await;
                }
            }
        }
        what.note(due)?;
        done = due;
    }
}
