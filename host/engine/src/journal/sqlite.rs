//! The journal in a SQLite file.
//!
//! Write-ahead logging with `synchronous = NORMAL`: a commit survives the death of the process at any moment, and costs
//! microseconds. A loss of power may take the last commits, never the file.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hotcell_graph::value::parse_json;
use hotcell_graph::{Object, Value};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::encode::{decode, encode};
use super::{Entry, Journal, JournalError, Place, RunHeader, RunId, RunLock, RunRecord, RunStatus, choose};

/// The layout this version writes, kept in `user_version`.
const LAYOUT: i64 = 2;

/// Entries hang on the number of their run, not its name: numbers grow, so a new entry goes to the end of the tree.
const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS runs (
        number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, graph TEXT NOT NULL, source TEXT NOT NULL,
        digest TEXT NOT NULL, given TEXT NOT NULL, status TEXT NOT NULL, created INTEGER NOT NULL,
        updated INTEGER NOT NULL, outcome TEXT
    );
    CREATE TABLE IF NOT EXISTS entries (
        run INTEGER NOT NULL, number INTEGER NOT NULL, place TEXT NOT NULL, kind TEXT NOT NULL, body TEXT NOT NULL,
        PRIMARY KEY (run, number)
    ) WITHOUT ROWID;
";

/// Finds the runs of a thread. Made when a file is opened, because files of older versions do not have it.
const INDEX: &str =
    "CREATE INDEX IF NOT EXISTS runs_of_threads ON runs (source, json_extract(given, '$.thread'), number)";

/// A journal in a file, shared between processes.
pub struct SqliteJournal {
    path: PathBuf,
    connection: Mutex<Connection>,
}

impl SqliteJournal {
    /// Opens the journal at `path`; makes it, and the folder it is in, if they are not there.
    pub fn open(path: &Path) -> Result<Self, JournalError> {
        let fail = |cause: String| JournalError::Store { path: path.display().to_string(), doing: "opened", cause };
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder).map_err(|error| fail(error.to_string()))?;
        }
        if path.exists() {
            refuse_several_names(path).map_err(fail)?;
        }
        let open = || -> rusqlite::Result<Connection> {
            let connection = Connection::open(path)?;
            connection.busy_timeout(Duration::from_secs(10))?;
            connection.pragma_update(None, "journal_mode", "wal")?;
            connection.pragma_update(None, "synchronous", "normal")?;
            connection.pragma_update(None, "wal_autocheckpoint", 4000)?;
            let layout: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
            if layout == 0 {
                connection.execute_batch(SCHEMA)?;
                connection.pragma_update(None, "user_version", LAYOUT)?;
            }
            if matches!(layout, 0 | LAYOUT) {
                connection.execute_batch(INDEX)?;
            }
            Ok(connection)
        };
        let connection = open().map_err(|error| fail(error.to_string()))?;
        let layout: i64 = connection
            .pragma_query_value(None, "user_version", |row| row.get(0))
            .map_err(|error| fail(error.to_string()))?;
        if layout != LAYOUT {
            return Err(fail(format!(
                "its layout is {layout}, this version of hotcell reads {LAYOUT}; finish its runs with the version that made \
                 it, or move the file away"
            )));
        }
        // Locks lie beside the file: by whatever name it was opened, they must be the same ones.
        let path = std::fs::canonicalize(path).map_err(|error| fail(error.to_string()))?;
        Ok(SqliteJournal { path, connection: Mutex::new(connection) })
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn error(&self, doing: &'static str) -> impl Fn(rusqlite::Error) -> JournalError + '_ {
        move |error| JournalError::Store { path: self.path.display().to_string(), doing, cause: error.to_string() }
    }

    fn lock_path(&self, run: &RunId) -> PathBuf {
        let mut name = self.path.as_os_str().to_owned();
        name.push(format!("-lock-{run}"));
        name.into()
    }
}

/// An operating-system lock on a file: the kernel gives it free when the process dies.
struct FileLock {
    _file: File,
    path: PathBuf,
}

impl RunLock for FileLock {}

impl Drop for FileLock {
    fn drop(&mut self) {
        // Removed while it is still held, so nobody holds a lock on a file that is about to disappear unseen: whoever
        // opened it before checks that it is still there (see `lock`).
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Journal for SqliteJournal {
    fn create(&self, header: &RunHeader) -> Result<(RunId, Box<dyn RunLock>), JournalError> {
        loop {
            let id = RunId::random();
            let lock = self.lock(&id)?;
            let now = microseconds(SystemTime::now());
            let inserted = self
                .connection()
                .prepare_cached(
                    "INSERT OR IGNORE INTO runs (id, graph, source, digest, given, status, created, updated)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7)",
                )
                .and_then(|mut statement| {
                    statement.execute(params![
                        id.as_str(),
                        header.graph,
                        header.source,
                        header.digest,
                        Value::Object(header.given.clone()).to_json(),
                        RunStatus::Running.as_str(),
                        now
                    ])
                })
                .map_err(self.error("written"))?;
            if inserted == 1 {
                return Ok((id, lock));
            }
        }
    }

    fn lock(&self, run: &RunId) -> Result<Box<dyn RunLock>, JournalError> {
        let path = self.lock_path(run);
        let fail = |cause: std::io::Error| JournalError::Store {
            path: path.display().to_string(),
            doing: "locked",
            cause: cause.to_string(),
        };
        loop {
            let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path).map_err(fail)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(JournalError::Busy(run.clone())),
                Err(TryLockError::Error(error)) => return Err(fail(error)),
            }
            // The holder before us may have removed the file between our opening and locking it.
            if same_file(&file, &path) {
                return Ok(Box::new(FileLock { _file: file, path }));
            }
        }
    }

    fn append(&self, run: &RunId, entry: &Entry) -> Result<(), JournalError> {
        let (kind, body) = encode(&entry.fact);
        let added = self
            .connection()
            .prepare_cached(
                "INSERT INTO entries (run, number, place, kind, body)
                 SELECT runs.number,
                        (SELECT coalesce(max(number), 0) + 1 FROM entries WHERE run = runs.number), ?2, ?3, ?4
                 FROM runs WHERE id = ?1 AND status <> 'cancelled'",
            )
            .and_then(|mut statement| statement.execute(params![run.as_str(), entry.place.0, kind, body]))
            .map_err(self.error("written"))?;
        if added == 1 {
            return Ok(());
        }
        // Nothing is added only to a run that is cancelled, or to none.
        self.status(run)?;
        Err(JournalError::Cancelled(run.clone()))
    }

    fn set_status(&self, run: &RunId, status: RunStatus, outcome: Option<&str>) -> Result<(), JournalError> {
        let changed = self
            .connection()
            .prepare_cached(
                "UPDATE runs SET status = ?2, outcome = ?3, updated = ?4
                 WHERE id = ?1 AND status <> 'cancelled'
                   AND (?2 <> 'cancelled' OR status IN ('running', 'waiting'))",
            )
            .and_then(|mut statement| {
                statement.execute(params![run.as_str(), status.as_str(), outcome, microseconds(SystemTime::now())])
            })
            .map_err(self.error("written"))?;
        if changed == 1 {
            return Ok(());
        }
        match (self.status(run)?, status) {
            (RunStatus::Cancelled, RunStatus::Cancelled) => Ok(()),
            (RunStatus::Cancelled, _) => Err(JournalError::Cancelled(run.clone())),
            (status, _) => Err(JournalError::Ended { run: run.clone(), status }),
        }
    }

    fn status(&self, run: &RunId) -> Result<RunStatus, JournalError> {
        let status: Option<String> = self
            .connection()
            .prepare_cached("SELECT status FROM runs WHERE id = ?1")
            .and_then(|mut statement| statement.query_row([run.as_str()], |row| row.get(0)).optional())
            .map_err(self.error("read"))?;
        let status = status.ok_or_else(|| JournalError::NoSuchRun(run.to_string()))?;
        RunStatus::from_word(&status).ok_or_else(|| JournalError::Unreadable {
            run: run.clone(),
            cause: format!("`{status}` is no status that this version knows"),
        })
    }

    fn entries(&self, run: &RunId) -> Result<Vec<Entry>, JournalError> {
        let rows: Vec<(String, String, String)> = self
            .connection()
            .prepare_cached(
                "SELECT place, kind, body FROM entries WHERE run = (SELECT number FROM runs WHERE id = ?1)
                 ORDER BY number",
            )
            .and_then(|mut statement| {
                statement.query_map([run.as_str()], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?.collect()
            })
            .map_err(self.error("read"))?;
        rows.into_iter()
            .map(|(place, kind, body)| match decode(&kind, &body) {
                Ok(fact) => Ok(Entry { place: Place(place), fact }),
                Err(cause) => Err(JournalError::Unreadable { run: run.clone(), cause }),
            })
            .collect()
    }

    fn find(&self, name: &str) -> Result<RunRecord, JournalError> {
        let exact = self
            .connection()
            .prepare_cached("SELECT * FROM runs WHERE id = ?1")
            .and_then(|mut statement| statement.query_row([name], record).optional())
            .map_err(self.error("read"))?;
        match exact {
            Some(record) => Ok(record),
            None => choose(self.list()?, name),
        }
    }

    fn list(&self) -> Result<Vec<RunRecord>, JournalError> {
        self.connection()
            .prepare_cached("SELECT * FROM runs ORDER BY created DESC, id")
            .and_then(|mut statement| statement.query_map([], record)?.collect())
            .map_err(self.error("read"))
    }

    fn last_of_thread(&self, source: &str, thread: &str) -> Result<Option<RunRecord>, JournalError> {
        self.connection()
            .prepare_cached(
                "SELECT * FROM runs WHERE source = ?1 AND json_extract(given, '$.thread') = ?2
                 ORDER BY number DESC LIMIT 1",
            )
            .and_then(|mut statement| statement.query_row([source, thread], record).optional())
            .map_err(self.error("read"))
    }
}

fn record(row: &Row<'_>) -> rusqlite::Result<RunRecord> {
    let status: String = row.get("status")?;
    let given: String = row.get("given")?;
    Ok(RunRecord {
        id: RunId(row.get("id")?),
        header: RunHeader {
            graph: row.get("graph")?,
            source: row.get("source")?,
            digest: row.get("digest")?,
            given: match parse_json(&given) {
                Ok(Value::Object(given)) => given,
                _ => Object::default(),
            },
        },
        status: RunStatus::from_word(&status).unwrap_or(RunStatus::Failed),
        created: time(row.get("created")?),
        updated: time(row.get("updated")?),
        outcome: row.get("outcome")?,
    })
}

fn microseconds(time: SystemTime) -> i64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

fn time(microseconds: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_micros(u64::try_from(microseconds).unwrap_or(0))
}

/// SQLite keeps what is not yet in the file beside it, under the name that was used: two names of one file lose commits.
#[cfg(unix)]
fn refuse_several_names(path: &Path) -> Result<(), String> {
    use std::os::unix::fs::MetadataExt;
    let names = std::fs::metadata(path).map_err(|error| error.to_string())?.nlink();
    if names > 1 {
        return Err(format!(
            "the file has {names} names (hard links), and SQLite loses data when they are used side by side; \
             remove all but one"
        ));
    }
    Ok(())
}

#[cfg(not(unix))]
fn refuse_several_names(_path: &Path) -> Result<(), String> {
    Ok(())
}

#[cfg(unix)]
fn same_file(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(opened), Ok(named)) => opened.ino() == named.ino() && opened.dev() == named.dev(),
        _ => false,
    }
}

#[cfg(not(unix))]
fn same_file(_file: &File, _path: &Path) -> bool {
    // Elsewhere an open file cannot be removed.
    true
}
