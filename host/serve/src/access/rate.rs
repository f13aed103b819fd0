//! How much one caller may ask for: so many requests a second, and so many at once.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Callers that are remembered; those that have been quiet are forgotten first.
const REMEMBERED: usize = 10_000;

/// How much each caller may ask for.
pub(crate) struct Rate {
    /// The time that one request stands for; none for no limit
    each: Option<Duration>,
    /// How far ahead of its time a caller may be
    ahead: Duration,
    /// When each caller has used up what it asked for
    until: Mutex<HashMap<String, Instant>>,
}

impl Rate {
    /// So many requests a second, and as many at once as come in two seconds. 0 means no limit.
    pub(crate) fn per_second(requests: u32) -> Self {
        let each = (requests > 0).then(|| Duration::from_secs(1) / requests);
        Rate { each, ahead: Duration::from_secs(2), until: Mutex::default() }
    }

    /// Counts a request. The error is how long the caller has to wait.
    pub(crate) fn take(&self, caller: &str, now: Instant) -> Result<(), Duration> {
        let Some(each) = self.each else { return Ok(()) };
        let mut until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        if until.len() >= REMEMBERED && !until.contains_key(caller) {
            until.retain(|_, until| *until > now);
        }
        let used = until.get(caller).copied().unwrap_or(now).max(now) + each;
        let over = used.saturating_duration_since(now).saturating_sub(self.ahead);
        if !over.is_zero() {
            return Err(over);
        }
        match until.get_mut(caller) {
            Some(until) => *until = used,
            None => drop(until.insert(caller.to_owned(), used)),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_too_much_waits_and_others_do_not() {
        let (rate, begin) = (Rate::per_second(10), Instant::now());
        for _ in 0..20 {
            assert_eq!(rate.take("a", begin), Ok(()));
        }
        let wait = rate.take("a", begin).expect_err("too many");
        assert_eq!(wait, Duration::from_millis(100));
        assert_eq!(rate.take("b", begin), Ok(()));
        assert_eq!(rate.take("a", begin + wait), Ok(()));
        assert!(rate.take("a", begin + wait).is_err());
        let none = Rate::per_second(0);
        assert!((0..100_000).all(|_| none.take("a", begin).is_ok()));
    }
}
