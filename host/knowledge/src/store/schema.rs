//! The tables, and how a file is told from others.

use std::{
    fs::File,
    io::{ErrorKind, Read},
    path::Path,
};

use rusqlite::Connection;

use super::StoreError;

/// What SQLite writes into the header of our files: `hcKB`.
const APPLICATION_ID: i64 = 0x6863_4b42;
/// The format of the tables, of the chunks' cutting and of the words. It changes when a file of before would be read
/// wrongly, or would be gone on with wrongly.
const FORMAT: i64 = 1;
/// What every SQLite file begins with.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";
/// The bytes of a page: several vectors fit into one, so that reading them all is reading the file once.
const PAGE: u32 = 16 << 10;

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
    let mut opened = match File::open(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(StoreError::Missing { file: file.to_owned() });
        }
        opened => opened.map_err(failed)?,
    };
    if opened.metadata().map_err(failed)?.is_dir() {
        return Err(StoreError::Foreign { file: file.to_owned() });
    }
    let mut begin = [0; MAGIC.len()];
    match opened.read_exact(&mut begin) {
        Ok(()) if &begin == MAGIC => Ok(()),
        Err(error) if error.kind() != ErrorKind::UnexpectedEof => Err(failed(error)),
        _ => Err(StoreError::Foreign { file: file.to_owned() }),
    }
}

/// Refuses a SQLite file of another application or version.
pub(super) fn check_header(connection: &Connection, file: &Path) -> Result<(), StoreError> {
    let number = |pragma| connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
    let failed =
        |error: rusqlite::Error| StoreError::Failed { file: file.to_owned(), doing: "read", reason: error.to_string() };
    if number("application_id").map_err(failed)? != APPLICATION_ID {
        return Err(StoreError::Foreign { file: file.to_owned() });
    }
    match number("user_version").map_err(failed)? {
        FORMAT => Ok(()),
        found => Err(StoreError::Format { file: file.to_owned(), found, known: FORMAT }),
    }
}

/// A count as SQLite stores it.
pub(super) fn to_integer(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// A column that holds a count. One that holds anything else is none of ours and counts as nothing.
pub(super) fn count(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<usize> {
    Ok(usize::try_from(row.get::<_, i64>(column)?).unwrap_or(0))
}
