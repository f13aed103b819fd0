//! How much whoever posts to an entry point may send.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// Senders that are remembered.
const SENDERS: usize = 10_000;

/// How often whom an entry point was called by, and when.
#[derive(Default)]
pub(super) struct Senders(Mutex<HashMap<(String, IpAddr), VecDeque<SystemTime>>>);

impl Senders {
    /// Counts a request. False if there were too many in the window.
    pub(super) fn count(&self, entry: &str, sender: IpAddr, now: SystemTime, most: u32, window: Duration) -> bool {
        let mut senders = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_old = |at: &SystemTime| now.duration_since(*at).is_ok_and(|age| age >= window);
        if senders.len() >= SENDERS {
            senders.retain(|_, times| times.back().is_some_and(|last| !is_old(last)));
        }
        let key = (entry.to_owned(), sender);
        // Whoever comes when so many others have posted within the window waits until they are forgotten.
        if senders.len() >= SENDERS && !senders.contains_key(&key) {
            return false;
        }
        let times = senders.entry(key).or_default();
        while times.front().is_some_and(is_old) {
            times.pop_front();
        }
        let fits = times.len() < most as usize;
        if fits {
            times.push_back(now);
        }
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sender_may_post_so_often_to_an_entry_point_in_a_window() {
        let (senders, begin, window) = (Senders::default(), SystemTime::UNIX_EPOCH, Duration::from_secs(20));
        let (one, other) = (IpAddr::from([127, 0, 0, 1]), IpAddr::from([10, 0, 0, 1]));
        let count = |entry: &str, sender, seconds| {
            senders.count(entry, sender, begin + Duration::from_secs(seconds), 3, window)
        };
        assert_eq!([0, 1, 2, 3, 19].map(|at| count("in", one, at)), [true, true, true, false, false]);
        assert!(count("in", other, 19) && count("out", one, 19));
        assert_eq!([20, 20, 21].map(|at| count("in", one, at)), [true, false, true]);
    }

    #[test]
    fn no_more_senders_are_remembered_than_there_is_room_for() {
        let (senders, now, window) = (Senders::default(), SystemTime::UNIX_EPOCH, Duration::from_secs(60));
        let sender = |number: usize| IpAddr::from(u32::try_from(number).unwrap_or(0).to_be_bytes());
        for number in 0..SENDERS {
            assert!(senders.count("in", sender(number), now, 3, window));
        }
        assert!(!senders.count("in", sender(SENDERS), now, 3, window));
        assert!(senders.count("in", sender(7), now, 3, window), "whoever is known goes on");
        assert!(senders.count("in", sender(SENDERS), now + window, 3, window), "the others are forgotten");
    }
}
