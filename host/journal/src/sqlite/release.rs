//! Releasing runs that nobody works on any more.
//!
//! That is a write, which fails where the disk is full, or somebody else has the file for too long. The process lives on, and as long as the
//! run has its name, nobody takes the run. So it is tried again until it is done.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rusqlite::Connection;

use super::entries::take_waiting;
use super::{Shared, locked};
use crate::ids::RunId;

/// How often it is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// A run that its writer has left.
pub(super) struct LeftRun {
    pub(super) id: RunId,
    pub(super) number: i64,
    /// The number of the last entry that its writer knows of
    pub(super) last: u64,
}

/// Runs that could not be released.
#[derive(Default)]
pub(super) struct Unreleased(Mutex<Trying>);

#[derive(Default)]
struct Trying {
    runs: Vec<LeftRun>,
    /// Whether a thread tries it
    is_tried: bool,
}

impl Shared {
    /// Releases a run, together with all that is to be committed before.
    pub(super) fn release(&self, run: &LeftRun) -> rusqlite::Result<()> {
        let mut connection = self.connection();
        let outcomes = self.flush(&mut connection);
        let last = i64::try_from(run.last).unwrap_or(i64::MAX);
        let give_free = |connection: &Connection| {
            // The run may have come to rest without its writer having been told, and another one of this process may have taken it
            // since: whoever takes a run adds an entry.
            connection
                .prepare_cached(
                    "UPDATE runs SET owner = NULL WHERE number = ?1 AND owner = ?2
                     AND NOT EXISTS (SELECT 1 FROM entries WHERE run = ?1 AND number > ?3)",
                )?
                .execute((run.number, self.owner_name(), last))?;
            take_waiting(connection, run.number)
        };
        let waiting = give_free(&connection);
        drop(connection);
        drop(outcomes);
        self.released(&run.id, waiting?);
        Ok(())
    }

    /// Releases a run as soon as that is possible.
    pub(super) fn release_later(self: &Arc<Self>, run: LeftRun) {
        let mut trying = locked(&self.unreleased.0);
        trying.runs.push(run);
        if trying.is_tried {
            return;
        }
        let left = Arc::downgrade(self);
        let again = move || {
            loop {
                thread::sleep(AGAIN);
                let Some(shared) = left.upgrade() else { return };
                if !shared.try_to_release() {
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name("journal-release".to_owned()).stack_size(128 * 1024);
        trying.is_tried = thread.spawn(again).is_ok();
    }

    /// Releases those that are left. Whether it has to be tried again.
    fn try_to_release(&self) -> bool {
        let runs = std::mem::take(&mut locked(&self.unreleased.0).runs);
        let still: Vec<LeftRun> = runs.into_iter().filter(|run| self.release(run).is_err()).collect();
        let mut trying = locked(&self.unreleased.0);
        trying.runs.extend(still);
        trying.is_tried = !trying.runs.is_empty();
        trying.is_tried
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::super::SqliteStore;
    use crate::entry::RunHeader;
    use crate::projection::RunStatus;
    use crate::store::RunStore as _;

    #[tokio::test]
    async fn a_run_that_cannot_be_released_is_released_later() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = SqliteStore::open(&folder.path().join("runs.db")).expect("opened");
        let header = RunHeader {
            graph: "test".into(),
            source: "test".into(),
            digest: String::new(),
            kept: false,
            given: Default::default(),
        };
        let writer = store.create(&header, None).await.expect("begun");
        let run = writer.run().clone();
        let may_write = |may: bool| {
            store.shared.connection().pragma_update(None, "query_only", !may).expect("set");
        };
        may_write(false);
        drop(writer);
        let status = async || store.find(run.as_str()).await.expect("found").status;
        assert_eq!(status().await, RunStatus::Running, "it could not be released");
        may_write(true);
        let begun = Instant::now();
        while status().await != RunStatus::Interrupted {
            assert!(begun.elapsed() < Duration::from_secs(60), "nobody tries it again");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}
