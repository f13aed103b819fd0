//! The clocks and the random numbers a guest sees.
//!
//! Three kinds: coarse (the default: real time in whole milliseconds), precise (granted), and repeatable (a fixed
//! time that moves by a fixed step whenever it is read, and numbers from a fixed seed). Nothing here sleeps; how
//! long a guest waits is the deadline's business.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use wasmtime_wasi::{HostMonotonicClock, HostWallClock};

/// Step of a coarse clock.
const COARSE: Duration = Duration::from_millis(1);
/// How far a repeatable clock moves when it is read.
const STEP: Duration = Duration::from_millis(1);

/// A fixed clock and seed: the same call with the same input then does exactly the same, to the unit of fuel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeatable {
    /// The time every call starts at. It moves by one millisecond whenever the guest reads a clock.
    pub clock: SystemTime,
    /// Where the random numbers of every call start from.
    pub seed: u64,
}

/// Takes down what a guest reads.
pub(crate) trait ReadingsLog: Send + Sync {
    /// A reading of the wall clock, as time since 1970.
    fn wall(&self, reading: Duration);

    /// A reading of the monotonic clock.
    fn monotonic(&self, reading: Duration);
}

/// Says what a guest reads.
pub(crate) trait ReadingsSource: Send + Sync {
    /// The next reading of the wall clock, as time since 1970.
    fn wall(&self) -> Duration;

    /// The next reading of the monotonic clock.
    fn monotonic(&self) -> Duration;
}

/// How exactly a guest may tell the time.
#[derive(Clone)]
pub(crate) enum Clock {
    /// Real time, cut to whole steps of this length.
    Real { step: Duration, started: Instant },
    /// Fixed time that moves with every reading, shared by both clocks of a call.
    Fixed { start: Duration, readings: Arc<AtomicU64> },
    /// Another one, whose readings are recorded.
    Recorded { clock: Box<Clock>, log: Arc<dyn ReadingsLog> },
    /// As it was read when the call was recorded.
    Played { step: Duration, source: Arc<dyn ReadingsSource> },
}

impl Clock {
    pub(crate) fn coarse() -> Self {
        Self::Real { step: COARSE, started: Instant::now() }
    }

    pub(crate) fn precise() -> Self {
        Self::Real { step: Duration::from_nanos(1), started: Instant::now() }
    }

    /// The same, with its readings recorded.
    pub(crate) fn recorded(self, log: Arc<dyn ReadingsLog>) -> Self {
        Self::Recorded { clock: Box::new(self), log }
    }

    /// A clock that is read as it was when the call was recorded; `precise` as it was granted then.
    pub(crate) fn played(source: Arc<dyn ReadingsSource>, precise: bool) -> Self {
        let step = if precise { Duration::from_nanos(1) } else { COARSE };
        Self::Played { step, source }
    }

    /// A clock that starts at `repeatable.clock`; a time before 1970 counts as 1970.
    pub(crate) fn fixed(repeatable: &Repeatable) -> Self {
        let start = repeatable.clock.duration_since(UNIX_EPOCH).unwrap_or_default();
        Self::Fixed { start, readings: Arc::new(AtomicU64::new(0)) }
    }

    fn step(&self) -> Duration {
        match self {
            Self::Real { step, .. } | Self::Played { step, .. } => *step,
            Self::Fixed { .. } => STEP,
            Self::Recorded { clock, .. } => clock.step(),
        }
    }

    /// Time since the clock's own start.
    fn elapsed(&self) -> Duration {
        match self {
            Self::Real { step, started } => cut(started.elapsed(), *step),
            Self::Fixed { readings, .. } => fixed_step(readings),
            Self::Recorded { clock, log } => {
                let elapsed = clock.elapsed();
                log.monotonic(elapsed);
                elapsed
            }
            Self::Played { source, .. } => source.monotonic(),
        }
    }

    /// Time since 1970; a host clock before that counts as 1970.
    fn unix(&self) -> Duration {
        match self {
            Self::Real { step, .. } => cut(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default(), *step),
            Self::Fixed { start, readings } => start.saturating_add(fixed_step(readings)),
            Self::Recorded { clock, log } => {
                let unix = clock.unix();
                log.wall(unix);
                unix
            }
            Self::Played { source, .. } => source.wall(),
        }
    }
}

fn fixed_step(readings: &AtomicU64) -> Duration {
    let readings = readings.fetch_add(1, Ordering::Relaxed);
    Duration::from_millis(readings)
}

fn cut(time: Duration, step: Duration) -> Duration {
    let step = step.as_nanos().max(1);
    Duration::from_nanos(u64::try_from(time.as_nanos() / step * step).unwrap_or(u64::MAX))
}

/// The wall clock of a guest.
pub(crate) struct Wall(pub(crate) Clock);

impl HostWallClock for Wall {
    fn resolution(&self) -> Duration {
        self.0.step()
    }

    fn now(&self) -> Duration {
        self.0.unix()
    }
}

/// The monotonic clock of a guest; it starts at zero with every call.
pub(crate) struct Monotonic(pub(crate) Clock);

impl HostMonotonicClock for Monotonic {
    fn resolution(&self) -> u64 {
        nanoseconds(self.0.step())
    }

    fn now(&self) -> u64 {
        nanoseconds(self.0.elapsed())
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use wasmtime_wasi::{HostMonotonicClock as _, HostWallClock as _};

    use super::{Clock, Monotonic, Repeatable, Wall, cut};

    #[test]
    fn a_repeatable_clock_moves_one_step_a_reading() {
        let clock = Clock::fixed(&Repeatable { clock: UNIX_EPOCH + Duration::from_secs(9), seed: 0 });
        let (wall, monotonic) = (Wall(clock.clone()), Monotonic(clock));
        assert_eq!(wall.now(), Duration::from_millis(9_000));
        assert_eq!(monotonic.now(), 1_000_000);
        assert_eq!(wall.now(), Duration::from_millis(9_002));
    }

    #[test]
    fn a_time_before_the_epoch_counts_as_the_epoch() {
        let clock = Clock::fixed(&Repeatable { clock: UNIX_EPOCH - Duration::from_secs(9), seed: 0 });
        assert_eq!(Wall(clock).now(), Duration::ZERO);
    }

    #[test]
    fn coarse_time_is_cut_to_whole_steps() {
        assert_eq!(cut(Duration::from_micros(1_999), Duration::from_millis(1)), Duration::from_millis(1));
        assert_eq!(cut(Duration::from_nanos(7), Duration::from_nanos(1)), Duration::from_nanos(7));
    }
}
