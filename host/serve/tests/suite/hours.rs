//! Hours of a clock that tests move on.

use std::time::{Duration, SystemTime};

use hotcell_runtime::ManualClock;

pub(crate) const HOUR: Duration = Duration::from_secs(3600);
/// In real time.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Moves the clock on to so many hours after it began, through everything that becomes due.
pub(crate) async fn until(clock: &ManualClock, hours: u32) {
    let end = SystemTime::UNIX_EPOCH + HOUR * hours;
    loop {
        assert!(clock.settled(PATIENCE).await, "{clock:?}");
        let Some(due) = clock.next_due().filter(|due| *due <= end) else { break };
        clock.advance_to(due);
    }
    clock.advance_to(end);
    assert!(clock.settled(PATIENCE).await, "{clock:?}");
}
