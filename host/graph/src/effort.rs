//! What all expressions that are evaluated for one purpose may take together.
//!
//! Nothing else goes on meanwhile on the thread that evaluates. Each expression has a bound of its own, but a node may have thousands.

use std::cell::Cell;
use std::marker::PhantomData;

/// Steps of all of them: no single one takes a third.
pub(crate) const MOST: u64 = 6_000_000;

thread_local! {
    /// Steps that are left for what this thread evaluates
    static LEFT: Cell<Option<u64>> = const { Cell::new(None) };
}

/// While it lives, what is evaluated on this thread is for one purpose. What begins within another one counts for that.
#[derive(Debug)]
pub struct Effort {
    before: Option<u64>,
    /// It belongs to this thread
    here: PhantomData<*const ()>,
}

impl Effort {
    /// Begins one.
    #[must_use]
    pub fn begin() -> Self {
        let before = LEFT.get();
        LEFT.set(Some(before.unwrap_or(MOST)));
        Effort { before, here: PhantomData }
    }
}

impl Drop for Effort {
    fn drop(&mut self) {
        if self.before.is_none() {
            LEFT.set(None);
        }
    }
}

/// Steps that are left.
pub(crate) fn left() -> u64 {
    LEFT.get().unwrap_or(MOST)
}

/// Takes note of steps that were taken.
pub(crate) fn take(steps: u64) {
    LEFT.set(LEFT.get().map(|left| left.saturating_sub(steps)));
}
