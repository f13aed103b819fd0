//! Locks by name, which are there as long as somebody holds or wants one.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::OwnedMutexGuard;

/// From how many locks on those that nobody wants any more are looked for.
const MANY: usize = 64;

/// Locks by name.
pub(crate) struct Locks<K>(Mutex<HashMap<K, Weak<tokio::sync::Mutex<()>>>>);

impl<K> Default for Locks<K> {
    fn default() -> Self {
        Locks(Mutex::default())
    }
}

impl<K: Clone + Eq + Hash> Locks<K> {
    /// Has what is called that for oneself.
    pub(crate) async fn lock(&self, name: &K) -> OwnedMutexGuard<()> {
        let lock = {
            let mut locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if locks.len() >= MANY && locks.len().is_power_of_two() {
                locks.retain(|_, lock| lock.strong_count() > 0);
            }
            let lock = locks.get(name).and_then(Weak::upgrade).unwrap_or_default();
            locks.insert(name.clone(), Arc::downgrade(&lock));
            lock
        };
        lock.lock_owned().await
    }
}
