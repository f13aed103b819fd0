//! The tables, and how a file is told from others.

use std::{
    io::{ErrorKind, Read},
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use rusqlite::{Connection, config::DbConfig, limits::Limit};

use super::StoreError;
use crate::untrusted::shown;

/// What SQLite writes into the header of our files: `hcKB`.
const APPLICATION_ID: i64 = 0x6863_4b42;
/// The format of the tables, of the chunks' cutting and of the words. It changes when a file of before would be read
/// wrongly, or would be gone on with wrongly.
const FORMAT: i64 = 1;
/// What every SQLite file begins with.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";
/// The bytes of a page: several vectors fit into one, so that reading them all is reading the file once.
const PAGE: u32 = 16 << 10;

/// Tables and the like that are looked at: ours are fewer.
const MAX_PARTS: usize = 100;
/// Bytes of one value, a chunk or a vector.
const MAX_VALUE: i32 = 16 << 20;
/// How long one search in a file may take. A hundred thousand vectors are compared in a tenth of a second.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long the index of a file that was found may be put in order, with all words that are in it.
const MERGING: Duration = Duration::from_secs(600);
/// Operations of SQLite between two looks at the clock: some hundred microseconds.
const OPERATIONS: i32 = 10_000;

/// Makes the tables in an empty file. `about` has one row; `complete` is 1 from when nothing more is to be added.
/// `words` keeps no text of its own, only what is needed to find a chunk by its words. Vectors are little-endian
/// 32-bit floats of length one.
pub(super) fn create(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "page_size", PAGE)?;
    connection.execute_batch(&format!(
        "PRAGMA journal_mode = WAL;
         PRAGMA synchronous = NORMAL;
         BEGIN;
         PRAGMA application_id = {APPLICATION_ID};
         PRAGMA user_version = {FORMAT};
         CREATE TABLE about (
             embedding_model TEXT NOT NULL,
             dimensions INTEGER,
             chunk_size INTEGER NOT NULL,
             chunk_overlap INTEGER NOT NULL,
             top_k INTEGER NOT NULL,
             reranker TEXT,
             complete INTEGER NOT NULL DEFAULT 0
         ) STRICT;
         CREATE TABLE documents (
             id INTEGER PRIMARY KEY,
             source TEXT NOT NULL UNIQUE,
             sha256 BLOB NOT NULL,
             complete INTEGER NOT NULL DEFAULT 0
         ) STRICT;
         CREATE TABLE chunks (
             id INTEGER PRIMARY KEY,
             document INTEGER NOT NULL REFERENCES documents (id),
             place INTEGER NOT NULL,
             text TEXT NOT NULL,
             UNIQUE (document, place)
         ) STRICT;
         CREATE TABLE vectors (chunk INTEGER PRIMARY KEY, vector BLOB NOT NULL) STRICT;
         CREATE VIRTUAL TABLE words USING fts5 (
             text, content = '', contentless_delete = 1, tokenize = 'porter unicode61 remove_diacritics 2'
         );
         COMMIT;"
    ))
}

/// Refuses what is not a knowledge base before SQLite looks at it.
pub(super) fn check_magic(file: &Path) -> Result<(), StoreError> {
    let failed =
        |error: std::io::Error| StoreError::Failed { file: file.to_owned(), doing: "read", reason: error.to_string() };
    // A link would have SQLite read, and the builder replace, what lies elsewhere.
    if std::fs::symlink_metadata(file).is_ok_and(|metadata| !metadata.is_file()) {
        return Err(StoreError::Foreign { file: file.to_owned() });
    }
    let mut opened = match hotcell_files::open_regular(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(StoreError::Missing { file: file.to_owned() });
        }
        opened => opened.map_err(failed)?.0,
    };
    let mut begin = [0; MAGIC.len()];
    match opened.read_exact(&mut begin) {
        Ok(()) if &begin == MAGIC => Ok(()),
        Err(error) if error.kind() != ErrorKind::UnexpectedEof => Err(failed(error)),
        _ => Err(StoreError::Foreign { file: file.to_owned() }),
    }
}

/// Refuses a SQLite file of another application or version, or with anything in it but our own tables: a view, a trigger or an
/// index of somebody else's would do what it likes whenever we ask.
pub(super) fn check_header(connection: &Connection, file: &Path) -> Result<(), StoreError> {
    let number = |pragma| connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
    let failed = |error: rusqlite::Error| failed(file, error);
    if number("application_id").map_err(failed)? != APPLICATION_ID {
        return Err(StoreError::Foreign { file: file.to_owned() });
    }
    match number("user_version").map_err(failed)? {
        FORMAT => {}
        found => return Err(StoreError::Format { file: file.to_owned(), found, known: FORMAT }),
    }
    let ours = Connection::open_in_memory().and_then(|empty| {
        create(&empty)?;
        parts(&empty)
    });
    if parts(connection).map_err(failed)? == ours.map_err(failed)? {
        return Ok(());
    }
    Err(StoreError::Foreign { file: file.to_owned() })
}

/// Everything that a file defines: kind, name, table and text of each.
fn parts(connection: &Connection) -> rusqlite::Result<Vec<[Option<String>; 4]>> {
    let mut statement = connection.prepare(&format!(
        "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name LIMIT {MAX_PARTS}"
    ))?;
    let rows = statement.query_map([], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?]))?;
    rows.collect()
}

/// Limits what a file may have SQLite do, whatever is in it. Nothing of a query that takes longer than [`PATIENCE`] is of use.
pub(super) fn guard(connection: &mut Connection) -> rusqlite::Result<Guard> {
    // A view, trigger or function that a file brings may do nothing; neither may a table that hides in another one's pages.
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    for (setting, on) in [
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false),
    ] {
        connection.set_db_config(setting, on)?;
    }
    for (limit, most) in [
        (Limit::SQLITE_LIMIT_LENGTH, MAX_VALUE),
        (Limit::SQLITE_LIMIT_SQL_LENGTH, 100_000),
        (Limit::SQLITE_LIMIT_ATTACHED, 0),
        (Limit::SQLITE_LIMIT_TRIGGER_DEPTH, 1),
        (Limit::SQLITE_LIMIT_EXPR_DEPTH, 100),
        (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
    ] {
        connection.set_limit(limit, most)?;
    }
    let guard = Guard::default();
    let watched = guard.clone();
    connection.progress_handler(OPERATIONS, Some(move || watched.is_over()))?;
    Ok(guard)
}

/// Ends what takes too long.
#[derive(Clone, Default)]
pub(super) struct Guard(Arc<Mutex<Option<Instant>>>);

impl Guard {
    /// Begins a piece of work, which may take its time from now on.
    pub(super) fn begin(&self) {
        self.allow(PATIENCE);
    }

    /// The same for putting the index of all words in order.
    pub(super) fn begin_merging(&self) {
        self.allow(MERGING);
    }

    pub(super) fn allow(&self, time: Duration) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now().checked_add(time);
    }

    fn is_over(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some_and(|end| Instant::now() >= end)
    }
}

/// What went wrong in reading a file, and what to do. SQLite's words have names of the file in them.
pub(super) fn failed(file: &Path, error: rusqlite::Error) -> StoreError {
    let reason = match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::NotADatabase | rusqlite::ErrorCode::DatabaseCorrupt) => {
            format!("{}; delete it to have it built again", shown(&error.to_string()))
        }
        Some(rusqlite::ErrorCode::OperationInterrupted) => {
            "searching it takes too long; delete it to have it built again".to_owned()
        }
        _ => shown(&error.to_string()),
    };
    StoreError::Failed { file: file.to_owned(), doing: "read", reason }
}

/// A count as SQLite stores it.
pub(super) fn to_integer(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// A column that holds a count. One that holds anything else is none of ours and counts as nothing.
pub(super) fn count(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<usize> {
    Ok(usize::try_from(row.get::<_, i64>(column)?).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_without_end_is_ended() {
        let mut connection = Connection::open_in_memory().expect("SQLite");
        let guard = guard(&mut connection).expect("limits");
        let endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n";
        guard.allow(Duration::from_millis(20));
        let error = connection.query_row(endless, [], |row| row.get::<_, i64>(0)).expect_err("no end");
        assert_eq!(error.sqlite_error_code(), Some(rusqlite::ErrorCode::OperationInterrupted));
        guard.begin();
        assert_eq!(connection.query_row("SELECT 7", [], |row| row.get::<_, i64>(0)), Ok(7));
        for refused in ["ATTACH 'other.db' AS other", "SELECT zeroblob(100000000)"] {
            assert!(connection.query_row(refused, [], |_| Ok(())).is_err(), "{refused}");
        }
    }
}
