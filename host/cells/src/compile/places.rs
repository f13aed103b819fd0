//! How many compilations work at once: each may take gigabytes and all processors, and whoever sends a server a hundred components must not
//! have a hundred of them at work.

use std::sync::{Condvar, Mutex, PoisonError};

/// Places of which so many are taken.
pub(super) struct Places {
    taken: Mutex<usize>,
    freed: Condvar,
}

/// One place, until this is dropped.
pub(crate) struct Place<'a>(&'a Places);

impl Places {
    pub(super) const fn new() -> Self {
        Self { taken: Mutex::new(0), freed: Condvar::new() }
    }

    /// Waits until fewer than `most` places are taken, and takes one.
    pub(super) fn take(&self, most: usize) -> Place<'_> {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let mut taken = self.freed.wait_while(taken, |taken| *taken >= most).unwrap_or_else(PoisonError::into_inner);
        *taken += 1;
        Place(self)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        *self.0.taken.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        self.0.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::Places;

    #[test]
    fn no_more_work_at_once_than_there_are_places() {
        let (places, working) = (Places::new(), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        let _place = places.take(2);
                        assert!(working.fetch_add(1, Ordering::SeqCst) < 2);
                        std::thread::yield_now();
                        working.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
        });
    }
}
