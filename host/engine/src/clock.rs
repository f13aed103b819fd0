//! The clock that a run goes by, and who is at work while it stands still.
//!
//! Every wait of a graph is on a clock that is handed in: how long a join waits, the pause before another attempt, what a
//! node may take. [`SystemClock`] is the time of the machine. A [`ManualClock`] stands still until somebody moves it, so that a
//! test can let hours pass without waiting for them.
//!
//! Whoever moves a clock has to know when it may be moved: when nothing goes on without it. So work is counted. A run
//! counts as one from its beginning to its end, and so does every turn of its nodes. Whoever waits for something that is
//! counted by itself (a run for its turns), for the clock, or for a person, takes one off again for so long
//! ([`Clock::idle`]). The count is 0 when everything waits for the clock or for somebody outside. A server that delays its
//! answer on the clock takes one off for its client. The system's clock counts nothing.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant, SystemTime};

use futures::FutureExt;
use futures::future::{BoxFuture, Either, select};

/// How long nothing may change before it counts as settled: what is handed from one task to another is counted by
/// neither for a moment.
const STILL: Duration = Duration::from_millis(25);
/// How often it is looked whether work goes on.
const LOOK: Duration = Duration::from_millis(5);
/// How often it has to be seen still: where the machine is busy, a task may get no time in [`STILL`].
const STILL_LOOKS: u32 = 6;
/// How many times as long as the slowest look nothing may change, for the same reason.
const STILL_FOR_LOOKS: u32 = 4;
/// The longest that nothing has to change, however slow a look was.
const LONGEST_STILL: Duration = Duration::from_secs(2);
/// Longer than anybody waits, and less than clocks can say.
const FAR: Duration = Duration::from_secs(1000 * 365 * 24 * 60 * 60);

/// What time it is, and how waits are waited.
pub trait Clock: fmt::Debug + Send + Sync {
    /// What time it is.
    fn now(&self) -> SystemTime;

    /// How long this clock has gone on. It is never set back, unlike the time of day.
    fn elapsed(&self) -> Duration;

    /// Ends when so much time has passed.
    fn sleep(&self, length: Duration) -> BoxFuture<'static, ()>;

    /// Somebody works as long as what is returned is there.
    fn working(&self) -> Counted {
        Counted(None)
    }

    /// Somebody who is counted waits, for as long as what is returned is there: for the clock, for a person, or for
    /// somebody else who is counted.
    fn idle(&self) -> Counted {
        Counted(None)
    }

    /// The sleep of somebody who is counted.
    fn pause(&self, length: Duration) -> BoxFuture<'static, ()> {
        let (idle, sleep) = (self.idle(), self.sleep(length));
        Box::pin(async move {
            sleep.await;
            drop(idle);
        })
    }
}

/// One more, or one less, of those who work, as long as this is there.
#[derive(Debug, Default)]
pub struct Counted(Option<(Arc<Dial>, i64)>);

impl Drop for Counted {
    fn drop(&mut self) {
        if let Some((dial, by)) = self.0.take() {
            dial.count(-by);
        }
    }
}

/// What comes of some work, unless it takes longer.
pub(crate) async fn timeout<W: Future>(clock: &dyn Clock, limit: Duration, work: Pin<&mut W>) -> Option<W::Output> {
    match select(work, clock.sleep(limit)).await {
        Either::Left((done, _)) => Some(done),
        Either::Right(_) => None,
    }
}

/// The time of the machine.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    begun: Instant,
}

impl Default for SystemClock {
    fn default() -> Self {
        SystemClock { begun: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }

    fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    fn sleep(&self, length: Duration) -> BoxFuture<'static, ()> {
        tokio::time::sleep(length).boxed()
    }
}

/// A clock for tests: it stands still until it is moved. Clones are the same clock.
#[derive(Clone, Debug)]
pub struct ManualClock(Arc<Dial>);

/// Where a clock stands, and who waits for it.
struct Dial {
    begun: SystemTime,
    hands: Mutex<Hands>,
}

struct Hands {
    now: SystemTime,
    /// Who sleeps until then, by a number
    sleepers: BTreeMap<(SystemTime, u64), Option<Waker>>,
    /// Sleepers whose time has come and who do not know it yet; they are counted
    woken: HashSet<u64>,
    number: u64,
    working: i64,
    /// How often the count changed
    changes: u64,
}

impl fmt::Debug for Dial {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hands = self.hands();
        write!(formatter, "{:?}, {} asleep, {} at work", hands.now, hands.sleepers.len(), hands.working)
    }
}

impl Dial {
    fn hands(&self) -> MutexGuard<'_, Hands> {
        self.hands.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, by: i64) {
        self.hands().count(by);
    }
}

impl Hands {
    fn count(&mut self, by: i64) {
        self.working += by;
        self.changes += 1;
    }
}

impl ManualClock {
    /// A clock that stands there.
    pub fn at(now: SystemTime) -> Self {
        let (sleepers, woken) = (BTreeMap::new(), HashSet::new());
        let hands = Hands { now, sleepers, woken, number: 0, working: 0, changes: 0 };
        ManualClock(Arc::new(Dial { begun: now, hands: Mutex::new(hands) }))
    }

    /// Moves it on by so much, and wakes everybody whose time has come.
    pub fn advance(&self, by: Duration) {
        let now = self.now();
        self.advance_to(now.checked_add(by).unwrap_or(now));
    }

    /// Moves it on to there. It is never set back.
    pub fn advance_to(&self, now: SystemTime) {
        let mut due = Vec::new();
        {
            let mut hands = self.0.hands();
            hands.now = hands.now.max(now);
            while let Some(first) = hands.sleepers.first_entry().filter(|first| first.key().0 <= now) {
                let ((_, number), waker) = first.remove_entry();
                hands.woken.insert(number);
                hands.count(1);
                due.extend(waker);
            }
        }
        due.into_iter().for_each(Waker::wake);
    }

    /// When the next one who sleeps is to be woken.
    pub fn next_due(&self) -> Option<SystemTime> {
        self.0.hands().sleepers.first_key_value().map(|((due, _), _)| *due)
    }

    /// Who works at this moment.
    pub fn at_work(&self) -> i64 {
        self.0.hands().working
    }

    /// Waits in real time until nothing goes on without this clock, or so long: whether it is so.
    pub async fn settled(&self, within: Duration) -> bool {
        let begun = Instant::now();
        let mut still: Option<(u64, Instant, u32)> = None;
        let mut slowest = Duration::ZERO;
        loop {
            let (working, changes) = {
                let hands = self.0.hands();
                (hands.working, hands.changes)
            };
            still = match still {
                _ if working > 0 => None,
                Some((before, since, looks)) if before == changes => Some((before, since, looks + 1)),
                _ => Some((changes, Instant::now(), 1)),
            };
            let long_enough = STILL.max(STILL_FOR_LOOKS * slowest).min(LONGEST_STILL);
            if still.is_some_and(|(_, since, looks)| looks >= STILL_LOOKS && since.elapsed() >= long_enough) {
                return true;
            }
            if begun.elapsed() >= within {
                return false;
            }
            let looked = Instant::now();
            tokio::time::sleep(LOOK).await;
            slowest = slowest.max(looked.elapsed());
        }
    }
}

impl Clock for ManualClock {
    fn now(&self) -> SystemTime {
        self.0.hands().now
    }

    fn elapsed(&self) -> Duration {
        self.now().duration_since(self.0.begun).unwrap_or_default()
    }

    fn sleep(&self, length: Duration) -> BoxFuture<'static, ()> {
        let mut hands = self.0.hands();
        if length.is_zero() {
            return futures::future::ready(()).boxed();
        }
        let due = hands.now.checked_add(length.min(FAR)).unwrap_or(hands.now);
        hands.number += 1;
        let number = hands.number;
        hands.sleepers.insert((due, number), None);
        hands.changes += 1;
        Sleep { dial: self.0.clone(), due, number }.boxed()
    }

    fn working(&self) -> Counted {
        self.0.count(1);
        Counted(Some((self.0.clone(), 1)))
    }

    fn idle(&self) -> Counted {
        self.0.count(-1);
        Counted(Some((self.0.clone(), -1)))
    }
}

/// Somebody who sleeps until a clock that stands still has been moved far enough.
struct Sleep {
    dial: Arc<Dial>,
    due: SystemTime,
    number: u64,
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut hands = self.dial.hands();
        match hands.sleepers.get_mut(&(self.due, self.number)) {
            Some(waker) => {
                *waker = Some(context.waker().clone());
                Poll::Pending
            }
            None => {
                if hands.woken.remove(&self.number) {
                    hands.count(-1);
                }
                Poll::Ready(())
            }
        }
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        let mut hands = self.dial.hands();
        if hands.sleepers.remove(&(self.due, self.number)).is_none() && hands.woken.remove(&self.number) {
            hands.count(-1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn clock() -> ManualClock {
        ManualClock::at(SystemTime::UNIX_EPOCH)
    }

    #[tokio::test]
    async fn sleepers_wake_when_the_clock_was_moved_far_enough_and_not_before() {
        let clock = clock();
        let (mut short, mut long) = (clock.sleep(SECOND), clock.sleep(3 * SECOND));
        assert!(futures::poll!(&mut short).is_pending() && futures::poll!(&mut long).is_pending());
        assert_eq!(clock.next_due(), Some(SystemTime::UNIX_EPOCH + SECOND));
        clock.advance(SECOND);
        assert!(futures::poll!(&mut short).is_ready() && futures::poll!(&mut long).is_pending());
        clock.advance(SECOND);
        assert!(futures::poll!(&mut long).is_pending());
        drop(long);
        assert_eq!((clock.next_due(), clock.elapsed()), (None, 2 * SECOND));
        clock.sleep(Duration::ZERO).await;
        assert!(futures::poll!(clock.sleep(Duration::MAX)).is_pending());
    }

    #[tokio::test]
    async fn who_was_woken_is_at_work_until_it_knows_it() {
        let clock = clock();
        let sleep = clock.sleep(SECOND);
        assert_eq!(clock.at_work(), 0);
        clock.advance(SECOND);
        assert_eq!(clock.at_work(), 1);
        sleep.await;
        assert_eq!(clock.at_work(), 0);
        let sleep = clock.sleep(SECOND);
        clock.advance(SECOND);
        drop(sleep);
        assert_eq!(clock.at_work(), 0);
    }

    #[tokio::test]
    async fn it_is_settled_when_all_who_work_wait_for_the_clock() {
        let clock = clock();
        let working = clock.working();
        assert!(!clock.settled(2 * STILL).await);
        let idle = clock.idle();
        assert!(clock.settled(60 * SECOND).await);
        drop(idle);
        assert!(!clock.settled(2 * STILL).await);
        drop(working);
        assert!(clock.settled(60 * SECOND).await);
    }

    #[tokio::test]
    async fn work_that_takes_longer_than_it_may_is_given_up() {
        let clock = clock();
        let mut late = std::pin::pin!(async {
            let mut never = std::pin::pin!(std::future::pending::<()>());
            timeout(&clock, SECOND, never.as_mut()).await
        });
        assert!(futures::poll!(late.as_mut()).is_pending());
        clock.advance(SECOND);
        assert_eq!(late.await, None);
        let done = std::pin::pin!(async { 1 });
        assert_eq!(timeout(&SystemClock::default(), SECOND, done).await, Some(1));
    }
}
