//! The store in a SQLite file, shared between processes.
//!
//! Write-ahead logging with `synchronous = NORMAL`: a commit survives the death of the process at any moment, and costs
//! microseconds. A loss of power may take the last commits, never the file.

mod artefacts;
mod begin;
mod calls;
mod census;
mod checkpoints;
mod commit;
mod elsewhere;
mod entries;
mod in_place;
#[cfg(test)]
mod looking;
mod migrate;
mod opening;
mod owner;
mod prune;
mod query;
mod reading;
mod release;
mod rows;
mod sending;
mod tables;
mod taking;
mod texts;
mod writer;

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use rusqlite::{Connection, ErrorCode, OptionalExtension, Transaction, TransactionBehavior};

use self::checkpoints::Checkpoints;
use self::elsewhere::Elsewhere;
use self::opening::Extent;
use self::owner::Owner;
use self::reading::{Readers, SHORT, aside};
use self::release::Unreleased;
use self::rows::{microseconds, unread};
use self::writer::Writers;
use crate::artefact::Revision;
use crate::calls::StoredCall;
use crate::entry::{Entry, Fact, RunHeader};
use crate::ids::RunId;
use crate::mail::Bells;
use crate::projection::RunStatus;
use crate::store::{
    Census, EntryPage, History, JournalError, NumberedEntry, PruneReport, RunPage, RunQuery, RunRecord, RunStore,
    RunWriter, Taken,
};

/// Of a file of which only a part is left.
const DAMAGED: &str =
    "the file is damaged or was cut off: what is left of it can be read, and nothing is written to it";

/// A store in a file.
pub struct SqliteStore {
    shared: Arc<Shared>,
}

struct Shared {
    path: PathBuf,
    extent: Extent,
    /// Before the connection: its thread ends first
    checkpoints: Checkpoints,
    connection: Arc<Mutex<Connection>>,
    /// For what takes longer than a commit; opened when they are needed
    readers: Readers,
    /// Made when this process works on a run for the first time
    owner: OnceLock<Owner>,
    queue: Arc<commit::Queue>,
    writers: Writers,
    /// Rung when something was sent to a run that this process works on
    mail: Bells,
    /// Rung when a run is released
    freed: Bells,
    /// Rung when a run has more entries
    grown: Bells,
    elsewhere: Elsewhere,
    /// Runs that are to be released as soon as that is possible
    unreleased: Unreleased,
}

impl SqliteStore {
    /// Opens the journal at `path`; makes it, and the folder it is in, if they are not there. A journal of the layout before
    /// this one is brought to this one. Of a file that was cut off, what is left can be read ([`RunStore::damage`]).
    ///
    /// # Errors
    /// [`JournalError::Store`] says why the file cannot be used.
    pub fn open(path: &Path) -> Result<Self, JournalError> {
        Self::open_with(path, false)
    }

    fn open_with(path: &Path, waits_for_disk: bool) -> Result<Self, JournalError> {
        let fail = |cause: String| JournalError::Store { path: path.display().to_string(), doing: "opened", cause };
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            let mut make = std::fs::DirBuilder::new();
            #[cfg(unix)]
            std::os::unix::fs::DirBuilderExt::mode(&mut make, 0o700);
            make.recursive(true).create(folder).map_err(|error| fail(error.to_string()))?;
        }
        if path.exists() {
            refuse_several_names(path).map_err(fail)?;
        } else {
            // What runs were told and gave is the business of their user alone. What SQLite puts beside the file has its mode.
            let made = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path);
            made.map_err(|error| fail(error.to_string()))?;
        }
        let (connection, extent) = opening::open(path).map_err(fail)?;
        if waits_for_disk {
            connection.pragma_update(None, "synchronous", "full").map_err(|error| fail(error.to_string()))?;
        }
        // Pipes lie beside the file: by whatever name it was opened, they must be the same ones.
        let path = std::fs::canonicalize(path).map_err(|error| fail(error.to_string()))?;
        let connection = Arc::new(Mutex::new(connection));
        let checkpoints = Checkpoints::new(&path, &connection).map_err(|error| fail(error.to_string()))?;
        let shared = Shared {
            path,
            extent,
            checkpoints,
            connection,
            readers: Readers::default(),
            owner: OnceLock::new(),
            queue: Arc::default(),
            writers: Writers::default(),
            mail: Bells::default(),
            freed: Bells::default(),
            grown: Bells::default(),
            elsewhere: Elsewhere::default(),
            unreleased: Unreleased::default(),
        };
        Ok(SqliteStore { shared: Arc::new(shared) })
    }
}

impl SqliteStore {
    /// Opens the journal so that commits survive a loss of power, too: each waits until the disk has it.
    ///
    /// # Errors
    /// [`JournalError::Store`] says why the file cannot be used.
    pub fn open_safe_from_power_loss(path: &Path) -> Result<Self, JournalError> {
        Self::open_with(path, true)
    }

    /// Lets the file grow to so many pages and no further, for tests of a full disk.
    #[doc(hidden)]
    pub fn limit_size(&self, pages: u32) {
        let _ = self.shared.connection().pragma_update(None, "max_page_count", pages);
    }

    /// Has the log written back to the file from so many pages on, for tests of that.
    #[doc(hidden)]
    pub fn checkpoint_from(&self, pages: u32) {
        self.shared.checkpoints.set_from(pages);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.queue.close();
    }
}

impl Shared {
    fn connection(&self) -> MutexGuard<'_, Connection> {
        locked(&self.connection)
    }

    fn error(&self, doing: &'static str) -> impl Fn(rusqlite::Error) -> JournalError + '_ {
        move |error| {
            let cause = match self.extent {
                Extent::Rest if error.sqlite_error_code() == Some(ErrorCode::ReadOnly) => {
                    format!("{DAMAGED}; restore a copy of the file, or name another one")
                }
                _ => error.to_string(),
            };
            JournalError::Store { path: self.path.display().to_string(), doing, cause }
        }
    }

    fn number(&self, connection: &Connection, run: &RunId) -> Result<(i64, RunStatus, Option<String>), JournalError> {
        let row = connection
            .prepare_cached("SELECT number, status, owner FROM runs WHERE id = ?1")
            .and_then(|mut statement| {
                statement
                    .query_row([run.as_str()], |row| Ok((row.get(0)?, row.get::<_, String>(1)?, row.get(2)?)))
                    .optional()
            })
            .map_err(self.error("read"))?;
        let (number, status, owner): (i64, String, Option<String>) =
            row.ok_or_else(|| JournalError::NoSuchRun(run.to_string()))?;
        let status = RunStatus::from_word(&status).unwrap_or(RunStatus::Failed);
        Ok((number, status, owner.filter(|owner| self.is_alive(owner))))
    }

    fn begin<'c>(&self, connection: &'c mut Connection) -> Result<Transaction<'c>, JournalError> {
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(self.error("written"))
    }
}

#[async_trait]
impl RunStore for SqliteStore {
    fn damage(&self) -> Option<String> {
        (self.shared.extent == Extent::Rest).then(|| format!("{}: {DAMAGED}", self.shared.path.display()))
    }

    async fn keep(&self, revision: &Revision) -> Result<(), JournalError> {
        self.shared.keep(revision)
    }

    async fn artefact(&self, digest: &str) -> Result<Vec<u8>, JournalError> {
        self.shared.artefact(digest)
    }

    async fn create(&self, header: &RunHeader, follows: Option<&RunId>) -> Result<Box<dyn RunWriter>, JournalError> {
        self.shared.create(header, follows).await
    }

    async fn fork(
        &self,
        header: &RunHeader,
        copied: Vec<NumberedEntry>,
        then: Vec<Entry>,
    ) -> Result<Box<dyn RunWriter>, JournalError> {
        self.shared.fork(header, copied, then)
    }

    async fn take(&self, run: &RunId, fact: Fact) -> Result<Taken, JournalError> {
        let mut known = self.shared.known(run, &fact, SHORT as u64)?;
        if known.is_none() {
            let (run, fact) = (run.clone(), fact.clone());
            known = aside(&self.shared, move |shared| shared.known(&run, &fact, u64::MAX)).await?;
        }
        self.shared.take(run, fact, known)
    }

    async fn send(&self, run: &RunId, entry: Entry) -> Result<(), JournalError> {
        self.shared.send(run, entry)
    }

    async fn history(&self, run: &RunId) -> Result<History, JournalError> {
        if let Some(history) = self.shared.history(run, SHORT as u64)? {
            return Ok(history);
        }
        let run = run.clone();
        // None has more entries than there are numbers.
        Ok(aside(&self.shared, move |shared| shared.history(&run, u64::MAX)).await?.unwrap_or_default())
    }

    async fn unread(&self, run: &RunId) -> Result<Vec<Entry>, JournalError> {
        let found = self.shared.read(|connection| {
            let number = connection
                .prepare_cached("SELECT number FROM runs WHERE id = ?1")?
                .query_row([run.as_str()], |row| row.get(0))
                .optional()?;
            number.map(|number| unread(connection, number)).transpose()
        })?;
        found.ok_or_else(|| JournalError::NoSuchRun(run.to_string()))
    }

    async fn entries(&self, run: &RunId, after: u64, limit: usize) -> Result<EntryPage, JournalError> {
        match limit > SHORT && self.shared.is_long(run, after)? {
            true => {
                let run = run.clone();
                aside(&self.shared, move |shared| shared.entries(&run, after, limit)).await
            }
            false => self.shared.entries(run, after, limit),
        }
    }

    async fn last_entry(&self, run: &RunId) -> Result<u64, JournalError> {
        let last = self.shared.read(|connection| query::last_entry(connection, run))?;
        last.ok_or_else(|| JournalError::NoSuchRun(run.to_string()))
    }

    async fn grown(&self, run: &RunId, after: u64) -> Result<(), JournalError> {
        let bell = self.shared.grown.of(run);
        loop {
            let rung = bell.notified();
            if self.shared.read(|connection| query::last_entry(connection, run))?.is_some_and(|last| last > after) {
                return Ok(());
            }
            rung.await;
        }
    }

    async fn moved_on(&self, run: &RunId, after: u64) -> Result<(), JournalError> {
        self.shared.until_moved_on(run, after).await
    }

    async fn calls(&self, run: &RunId, after: u64, limit: usize) -> Result<Vec<StoredCall>, JournalError> {
        let (number, ..) = self.shared.read(|connection| Ok(self.shared.number(connection, run)))??;
        self.shared.read(|connection| calls::read(connection, number, after, limit))
    }

    async fn find(&self, name: &str) -> Result<RunRecord, JournalError> {
        self.shared.find(name)
    }

    async fn list(&self, query: &RunQuery) -> Result<RunPage, JournalError> {
        // Words are looked for in all runs.
        match query.text.is_some() || query.limit > SHORT {
            true => {
                let query = query.clone();
                aside(&self.shared, move |shared| shared.list(&query)).await
            }
            false => self.shared.list(query),
        }
    }

    async fn last_of_thread(&self, source: &str, thread: &str) -> Result<Option<RunRecord>, JournalError> {
        let last = self.shared.read(|connection| query::last_of_thread(connection, source, thread))?;
        last.map(|(_, id)| self.shared.find(id.as_str())).transpose()
    }

    async fn with_messages(&self) -> Result<Vec<RunId>, JournalError> {
        self.shared.with_messages()
    }

    async fn due(&self, now: SystemTime) -> Result<Vec<RunId>, JournalError> {
        // What is left of one that was cancelled was set by whoever died before they heard of that.
        let rows: Vec<(String, Option<String>)> = self.shared.read(|connection| {
            connection
                .prepare_cached(
                    "SELECT DISTINCT runs.id, runs.owner FROM timers JOIN runs ON runs.number = timers.run
                     WHERE timers.at <= ?1 AND runs.status NOT IN ('paused', 'cancelled') ORDER BY timers.at",
                )?
                .query_map([microseconds(now)], |row| Ok((row.get(0)?, row.get(1)?)))?
                .collect()
        })?;
        let is_free = |owner: &Option<String>| !owner.as_ref().is_some_and(|owner| self.shared.is_alive(owner));
        Ok(rows.into_iter().filter(|(_, owner)| is_free(owner)).map(|(id, _)| RunId::from(id)).collect())
    }

    async fn next_due(&self, after: SystemTime) -> Result<Option<SystemTime>, JournalError> {
        let first: Option<i64> = self.shared.read(|connection| {
            connection
                .prepare_cached("SELECT MIN(at) FROM timers WHERE at > ?1")?
                .query_row([microseconds(after)], |row| row.get(0))
        })?;
        let since = |at: i64| SystemTime::UNIX_EPOCH + Duration::from_micros(u64::try_from(at).unwrap_or(0));
        Ok(first.map(since))
    }

    async fn census(&self) -> Result<Census, JournalError> {
        aside(&self.shared, Shared::census).await
    }

    async fn released(&self, run: &RunId) -> Result<(), JournalError> {
        self.shared.until_released(run).await
    }

    async fn prune(&self, query: &RunQuery) -> Result<PruneReport, JournalError> {
        // Also for a single run, all runs are looked at: which of them need it, and what it was loaded from.
        let query = query.clone();
        aside(&self.shared, move |shared| shared.prune(&query)).await
    }
}

/// SQLite keeps what is not yet in the file beside it, under the name that was used: two names of one file lose commits.
fn refuse_several_names(path: &Path) -> Result<(), String> {
    use std::os::unix::fs::MetadataExt;
    let found = std::fs::metadata(path).map_err(|error| error.to_string())?;
    if found.is_dir() {
        return Err("it is a directory; name a file in it".to_owned());
    }
    let names = found.nlink();
    if names > 1 {
        return Err(format!(
            "the file has {names} names (hard links), and SQLite loses data when they are used side by side; \
             remove all but one"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use rusqlite::{Connection, ErrorCode, StatementStatus};

    use super::SqliteStore;
    use super::rows::{Tail, insert};
    use crate::entry::{Entry, Fact};
    use crate::ids::RunId;

    #[test]
    fn nothing_is_written_after_an_entry_that_is_missing() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = SqliteStore::open(&folder.path().join("runs.db")).expect("opened");
        let mut tail = Tail::new(&RunId::from("a".to_owned()));
        let mut row = || tail.next(Entry::of_run(Fact::Resumed), Duration::ZERO, SystemTime::now());
        let (first, second, third) = (row(), row(), row());
        let connection = store.shared.connection();
        insert(&connection, 1, &first).expect("written");
        let early = insert(&connection, 1, &third).expect_err("there is no second one");
        assert_eq!(early.sqlite_error_code(), Some(ErrorCode::ConstraintViolation), "{early}");
        insert(&connection, 1, &second).expect("written");
        insert(&connection, 1, &third).expect("written");
    }

    #[test]
    fn no_statement_is_compiled_anew_for_the_values_that_are_bound() {
        let compiled_again = |connection: &Connection| {
            let mut statement = connection.prepare("SELECT count(*) FROM runs WHERE id LIKE ?1").expect("compiled");
            for value in ["a%", "b%"] {
                let _: i64 = statement.query_row([value], |row| row.get(0)).expect("read");
            }
            statement.get_status(StatementStatus::RePrepare)
        };
        // What SQLite does unless it is told otherwise.
        let usual = Connection::open_in_memory().expect("opened");
        usual.execute_batch("CREATE TABLE runs (id TEXT)").expect("made");
        assert!(compiled_again(&usual) > 0);

        let folder = tempfile::tempdir().expect("a folder");
        let store = SqliteStore::open(&folder.path().join("runs.db")).expect("opened");
        assert_eq!(compiled_again(&store.shared.connection()), 0, "of the connection that writes");
        let read = store.shared.read(|connection| Ok(compiled_again(connection))).expect("read");
        assert_eq!(read, 0, "of those that read");
    }

    #[test]
    fn commits_wait_for_the_disk_if_that_is_wanted() {
        let folder = tempfile::tempdir().expect("a folder");
        let level = |store: SqliteStore| -> i64 {
            store.shared.connection().pragma_query_value(None, "synchronous", |row| row.get(0)).expect("read")
        };
        let file = folder.path().join("runs.db");
        assert_eq!(level(SqliteStore::open(&file).expect("opened")), 1, "normal");
        assert_eq!(level(SqliteStore::open_safe_from_power_loss(&file).expect("opened")), 2, "full");
    }
}
