//! How much of the file is looked at, for tests of that.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Shared;

impl Shared {
    /// The steps by which SQLite does something, as it says them.
    pub(super) fn plan(&self, text: &str) -> Vec<String> {
        let steps = self.read(|connection| {
            let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {text}"))?;
            // What is not bound is null.
            let mut rows = statement.raw_query();
            let mut steps = Vec::new();
            while let Some(row) = rows.next()? {
                steps.push(row.get(3)?);
            }
            Ok(steps)
        });
        steps.expect("explained")
    }

    /// How many steps SQLite's machine takes, about, with the connection of all who commit while this is done. For each row that is
    /// looked at, there is at least one.
    pub(super) fn steps(&self, work: impl FnOnce()) -> u64 {
        let steps = Arc::new(AtomicU64::new(0));
        let counted = steps.clone();
        let count = move || {
            counted.fetch_add(1, Ordering::Relaxed);
            false
        };
        self.connection().progress_handler(1, Some(count)).expect("counted");
        work();
        self.connection().progress_handler(0, None::<fn() -> bool>).expect("not counted any more");
        steps.load(Ordering::Relaxed)
    }
}
