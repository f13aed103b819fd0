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
        let times = senders.entry((entry.to_owned(), sender)).or_default();
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
