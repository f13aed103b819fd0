//! Reading beside what is written: connections for that, and threads for what may take long.

use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::{Connection, OptionalExtension};
use tokio::runtime::Handle;

use super::rows::{history, is_damage, unread};
use super::{Shared, opening, query};
use crate::ids::RunId;
use crate::store::{History, JournalError};

/// Connections that are kept for the next reader.
const MOST_KEPT: usize = 8;
/// What is read where it is asked for, in entries or runs: that takes less than a millisecond if they are short. More of them are read on a thread for
/// that.
pub(super) const SHORT: usize = 256;

/// Connections that nobody reads with at the moment.
#[derive(Default)]
pub(super) struct Readers(Mutex<Vec<Connection>>);

impl Readers {
    fn take(&self) -> Option<Connection> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    fn give_back(&self, connection: Connection) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < MOST_KEPT {
            kept.push(connection);
        }
    }
}

impl Shared {
    /// Reads beside what is written, and beside others who read.
    pub(super) fn read<T>(&self, read: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, JournalError> {
        let connection = match self.readers.take() {
            Some(connection) => connection,
            None => opening::connect(&self.path, self.extent).map_err(self.error("read"))?,
        };
        let done = read(&connection).map_err(self.error("read"));
        self.readers.give_back(connection);
        done
    }

    /// Reads a run by its number, as it is at one moment; nothing if it has more entries than that.
    pub(super) fn read_run<T>(
        &self,
        run: &RunId,
        most: u64,
        read: impl FnOnce(&Connection, i64) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, JournalError> {
        let found = self.read(|connection| {
            connection
                .prepare_cached("SELECT number FROM runs WHERE id = ?1")?
                // As long as the row is read, the file is locked for reading.
                .query_row([run.as_str()], |row| {
                    let number = row.get(0)?;
                    match query::is_longer(connection, number, most)? {
                        true => Ok(None),
                        false => read(connection, number).map(Some),
                    }
                })
                .optional()
        })?;
        found.ok_or_else(|| JournalError::NoSuchRun(run.to_string()))
    }

    /// Everything of a run, what was sent to it included; nothing if it has more entries than that.
    pub(super) fn history(&self, run: &RunId, most: u64) -> Result<Option<History>, JournalError> {
        self.read_run(run, most, |connection, number| {
            let (mut history, _) = history(connection, number, run)?;
            if history.damage.is_none() {
                history.entries.extend(unread(connection, number)?);
            }
            Ok(history)
        })
    }

    /// Whether a run has more entries after one of them than are read in a moment.
    pub(super) fn is_long(&self, run: &RunId, after: u64) -> Result<bool, JournalError> {
        let last = self.read(|connection| match query::last_entry(connection, run) {
            // Whoever reads the entries is told where they end.
            Err(error) if is_damage(&error) => Ok(None),
            last => last,
        })?;
        let last = last.unwrap_or(0);
        Ok(last.saturating_sub(after) > SHORT as u64)
    }
}

/// Does something with the file that may take long, on a thread for that where there is one: what else goes on in this thread, the
/// requests of others for instance, does not wait for it.
pub(super) async fn aside<T: Send + 'static>(
    shared: &Arc<Shared>,
    work: impl FnOnce(&Shared) -> Result<T, JournalError> + Send + 'static,
) -> Result<T, JournalError> {
    let Ok(runtime) = Handle::try_current() else { return work(shared) };
    let (path, shared, span) = (shared.path.display().to_string(), shared.clone(), tracing::Span::current());
    let done = runtime.spawn_blocking(move || span.in_scope(|| work(&shared))).await;
    done.unwrap_or_else(|lost| Err(JournalError::Store { path, doing: "read", cause: lost.to_string() }))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::super::SqliteStore;
    use super::{SHORT, aside};
    use crate::entry::{Entry, Fact, RunHeader};
    use crate::store::{JournalError, RunStore as _};

    fn store(folder: &tempfile::TempDir) -> SqliteStore {
        SqliteStore::open(&folder.path().join("runs.db")).expect("opened")
    }

    #[tokio::test(flavor = "current_thread")]
    async fn what_takes_long_keeps_nobody_else_waiting() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = store(&folder);
        let (tell, told) = channel();
        // There is one thread for both. If it waited, it would never be told.
        let long = aside(&store.shared, move |_| Ok::<i32, JournalError>(told.recv().unwrap_or(0)));
        let (read, sent) = tokio::join!(long, async move { tell.send(7) });
        assert_eq!((read.expect("read"), sent), (7, Ok(())));
    }

    #[test]
    fn who_reads_does_not_wait_for_others_who_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = store(&folder);
        let count = |connection: &rusqlite::Connection| {
            connection.query_row("SELECT count(*) FROM runs", [], |row| row.get::<_, i64>(0))
        };
        let both = store.shared.read(|one| Ok((count(one)?, store.shared.read(count)))).expect("read");
        assert_eq!((both.0, both.1.expect("read")), (0, 0));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_long_run_is_read_like_any_other() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = store(&folder);
        let header = RunHeader {
            graph: "test".into(),
            source: "test".into(),
            digest: String::new(),
            kept: false,
            given: Default::default(),
        };
        let writer = store.create(&header, None).await.expect("created");
        let many = 2 * SHORT;
        let fired = || Entry::of_run(Fact::TimerFired { node: "n".to_owned() });
        writer.append((0..many).map(|_| fired()).collect()).await.expect("added");
        let run = writer.run().clone();
        assert_eq!(store.history(&run).await.expect("read").whole().expect("whole").len(), many + 1);
        // So is one whose entries are long.
        let long = store.create(&header, None).await.expect("created");
        let fired = |bytes: usize| Entry::of_run(Fact::TimerFired { node: "n".repeat(bytes) });
        let entries: Vec<Entry> = [400_000, 10, 700_000, 2_000_000, 10].into_iter().map(fired).collect();
        long.append(entries.clone()).await.expect("added");
        assert_eq!(store.history(long.run()).await.expect("read").whole().expect("whole")[1..], entries);
        // A page of them ends with the one that makes it long.
        let (mut after, mut pages) = (1, Vec::new());
        loop {
            let page = store.entries(long.run(), after, 10).await.expect("read");
            let Some(last) = page.entries.last() else { break };
            after = last.number;
            pages.push((page.entries.len(), page.is_last));
        }
        assert_eq!(pages, [(3, false), (1, false), (1, true)]);
        for (after, limit, found) in [(0, 2 * many, many + 1), (0, 10, 10), (many as u64, 2 * many, 1)] {
            assert_eq!(store.entries(&run, after, limit).await.expect("read").entries.len(), found, "{after} {limit}");
        }
    }
}
