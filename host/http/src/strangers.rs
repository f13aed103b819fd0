//! Connections of people who have not shown yet that they may do anything here.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

/// Connections whose client has not been taken for known yet, the oldest first. Whoever opens many of them closes his own.
#[derive(Default)]
pub(crate) struct Strangers {
    next: AtomicU64,
    waiting: Mutex<BTreeMap<u64, CancellationToken>>,
}

impl Strangers {
    pub(crate) fn add(self: &Arc<Self>, address: IpAddr, shutdown: &CancellationToken) -> Stranger {
        let end = shutdown.child_token();
        let number = AtomicU64::new(self.put(&end));
        Stranger { number, address, end, all: self.clone() }
    }

    /// Counts a connection as the youngest of a stranger's, and gives its number.
    fn put(&self, end: &CancellationToken) -> u64 {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.waiting().insert(number, end.clone());
        number
    }

    pub(crate) fn close_oldest(&self) {
        if let Some((_, oldest)) = self.waiting().pop_first() {
            oldest.cancel();
        }
    }

    fn waiting(&self) -> MutexGuard<'_, BTreeMap<u64, CancellationToken>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One of them, for as long as it is one.
pub(crate) struct Stranger {
    number: AtomicU64,
    address: IpAddr,
    /// Ends the connection
    pub(crate) end: CancellationToken,
    all: Arc<Strangers>,
}

impl Stranger {
    fn take_out(&self) {
        self.all.waiting().remove(&self.number.load(Ordering::Relaxed));
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        self.take_out();
    }
}

/// The other end of a connection; every request has it as an extension.
#[derive(Clone)]
pub struct Peer(pub(crate) Arc<Stranger>);

impl Peer {
    /// It has shown that it may do something here: its connection is not closed to make place for others.
    pub fn is_known(&self) {
        self.0.take_out();
    }

    /// The same until what is returned is dropped: when the request is answered. A connection that lies idle after that makes place for
    /// others, whoever opened it.
    #[must_use]
    pub fn known_while(&self) -> Known {
        self.0.take_out();
        Known(self.clone())
    }

    /// Where it is.
    pub fn address(&self) -> IpAddr {
        self.0.address
    }
}

/// A connection over which somebody is answered who may do something here.
pub struct Known(Peer);

impl Drop for Known {
    fn drop(&mut self) {
        let Peer(stranger) = &self.0;
        stranger.number.store(stranger.all.put(&stranger.end), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_stranger_goes_first_and_whoever_is_known_stays() {
        let (strangers, shutdown) = (Arc::new(Strangers::default()), CancellationToken::new());
        let here = IpAddr::from([127, 0, 0, 1]);
        let [first, second, third] = [0; 3].map(|_| Peer(Arc::new(strangers.add(here, &shutdown))));
        first.is_known();
        strangers.close_oldest();
        assert_eq!([&first, &second, &third].map(|peer| peer.0.end.is_cancelled()), [false, true, false]);
        drop(third);
        strangers.close_oldest();
        assert!(strangers.waiting().is_empty() && !first.0.end.is_cancelled());
    }

    #[test]
    fn whoever_was_answered_is_the_youngest_stranger() {
        let (strangers, shutdown) = (Arc::new(Strangers::default()), CancellationToken::new());
        let here = IpAddr::from([127, 0, 0, 1]);
        let [first, second] = [0; 2].map(|_| Peer(Arc::new(strangers.add(here, &shutdown))));
        let answered = first.known_while();
        assert_eq!(strangers.waiting().len(), 1);
        drop(answered);
        strangers.close_oldest();
        assert_eq!([&first, &second].map(|peer| peer.0.end.is_cancelled()), [false, true]);
        // Again and again: it is there once.
        drop((first.known_while(), second));
        assert_eq!(strangers.waiting().len(), 1);
        drop(first);
        assert!(strangers.waiting().is_empty());
    }
}
