//! So many in any minute, and no more.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

const MINUTE: Duration = Duration::from_secs(60);

/// Counts what happens, and lets so much of it happen in any minute.
pub(crate) struct Pace {
    most: u32,
    /// When the last ones happened, the oldest first; as many as may in a minute
    last: Mutex<VecDeque<SystemTime>>,
}

impl Pace {
    pub(crate) fn per_minute(most: u32) -> Self {
        Pace { most, last: Mutex::default() }
    }

    pub(crate) fn most(&self) -> u32 {
        self.most
    }

    /// Counts one more. The error is how long it has to wait.
    pub(crate) fn take(&self, now: SystemTime) -> Result<(), Duration> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        self.look_at(&mut last, now)?;
        last.push_back(now);
        Ok(())
    }

    /// Whether there is room for one more, which is not counted.
    pub(crate) fn look(&self, now: SystemTime) -> Result<(), Duration> {
        self.look_at(&mut self.last.lock().unwrap_or_else(PoisonError::into_inner), now)
    }

    fn look_at(&self, last: &mut VecDeque<SystemTime>, now: SystemTime) -> Result<(), Duration> {
        // A clock that was set back makes nothing older, and keeps nobody waiting for longer than a minute.
        last.iter_mut().for_each(|at| *at = (*at).min(now));
        while last.pop_front_if(|at| now.duration_since(*at).is_ok_and(|age| age >= MINUTE)).is_some() {}
        if last.len() >= usize::try_from(self.most).unwrap_or(usize::MAX) {
            let oldest = last.front().copied().unwrap_or(now);
            return Err(MINUTE.saturating_sub(now.duration_since(oldest).unwrap_or_default()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::Pace;

    #[test]
    fn no_minute_has_more_than_that() {
        let (pace, begin) = (Pace::per_minute(2), SystemTime::UNIX_EPOCH + Duration::from_secs(1_000));
        let at = |seconds: u64| begin + Duration::from_secs(seconds);
        assert_eq!((pace.take(at(0)), pace.look(at(30)), pace.take(at(30))), (Ok(()), Ok(()), Ok(())));
        assert_eq!(pace.look(at(40)), Err(Duration::from_secs(20)));
        assert_eq!(pace.take(at(40)), Err(Duration::from_secs(20)));
        assert_eq!(pace.take(at(60)), Ok(()));
        assert_eq!(pace.take(at(61)), Err(Duration::from_secs(29)));
        // The clock is set back by a day.
        let earlier = SystemTime::UNIX_EPOCH;
        assert_eq!(pace.take(earlier), Err(Duration::from_secs(60)));
        assert_eq!(pace.take(earlier + Duration::from_secs(60)), Ok(()));
    }
}
