//! Searching a knowledge base.

use std::{
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use rusqlite::{Connection, OpenFlags, OptionalExtension};

use super::{
    About, StoreError,
    schema::{self, count},
    vectors, words,
};

/// How many connections are kept open for the next searches.
const IDLE: usize = 8;

/// A finished file, opened for reading only. Searches run side by side, each with a connection of its own.
pub(crate) struct Reader {
    file: PathBuf,
    about: About,
    idle: Mutex<Vec<Connection>>,
}

/// A chunk that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) source: String,
    pub(crate) text: String,
}

impl Reader {
    pub(crate) fn open(file: &Path) -> Result<Self, StoreError> {
        schema::check_magic(file)?;
        let failed = |error: rusqlite::Error| failed(file, error);
        let connection = connect(file).map_err(failed)?;
        schema::check_header(&connection, file)?;
        let about = connection
            .query_row(
                "SELECT embedding_model, dimensions, chunk_size, chunk_overlap, top_k, reranker,
                        (SELECT count(*) FROM documents), (SELECT count(*) FROM chunks)
                 FROM about WHERE complete = 1 AND dimensions > 0",
                [],
                |row| {
                    Ok(About {
                        embedding_model: row.get(0)?,
                        dimensions: count(row, 1)?,
                        chunk_size: count(row, 2)?,
                        chunk_overlap: count(row, 3)?,
                        top_k: count(row, 4)?,
                        reranker: row.get(5)?,
                        documents: count(row, 6)?,
                        chunks: count(row, 7)?,
                    })
                },
            )
            .optional();
        let about = about.map_err(failed)?.ok_or_else(|| StoreError::Unfinished { file: file.to_owned() })?;
        Ok(Self { file: file.to_owned(), about, idle: Mutex::new(vec![connection]) })
    }

    pub(crate) fn about(&self) -> &About {
        &self.about
    }

    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// The chunks with words of `question`, the `count` best, best first, each with its share of the question.
    pub(crate) fn by_words(&self, question: &str, count: usize) -> Result<Vec<(i64, f64)>, StoreError> {
        self.with_connection(|connection| words::matching(connection, question, count))
    }

    /// The chunks closest to `vector`, the `count` best, best first. It has as many numbers as those of the file.
    pub(crate) fn by_vector(&self, vector: &[f32], count: usize) -> Result<Vec<i64>, StoreError> {
        let vector = vectors::normalised(vector);
        self.with_connection(|connection| vectors::closest(connection, &vector, count))
    }

    /// The chunks of these numbers, in their order.
    pub(crate) fn chunks(&self, numbers: &[i64]) -> Result<Vec<Found>, StoreError> {
        self.with_connection(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT source, text FROM chunks JOIN documents ON documents.id = document WHERE chunks.id = ?1",
            )?;
            let found = |row: &rusqlite::Row<'_>| Ok(Found { source: row.get(0)?, text: row.get(1)? });
            numbers.iter().map(|number| statement.query_row([number], found)).collect()
        })
    }

    fn with_connection<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = idle().pop();
        let failed = |error| failed(&self.file, error);
        let connection = kept.map_or_else(|| connect(&self.file), Ok).map_err(failed)?;
        let result = work(&connection).map_err(failed)?;
        let mut idle = idle();
        if idle.len() < IDLE {
            idle.push(connection);
        }
        Ok(result)
    }
}

fn failed(file: &Path, error: rusqlite::Error) -> StoreError {
    let reason = match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::NotADatabase | rusqlite::ErrorCode::DatabaseCorrupt) => {
            format!("{error}; delete it to have it built again")
        }
        _ => error.to_string(),
    };
    StoreError::Failed { file: file.to_owned(), doing: "read", reason }
}

/// A connection for reading. A finished file does not change: it is replaced as a whole.
fn connect(file: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(file, flags)?;
    // The file is read and not mapped: whoever copies another one over a mapped file ends the process.
    connection.pragma_update(None, "mmap_size", 0)?;
    // A file from elsewhere may have views and triggers; none of them may do anything.
    connection.pragma_update(None, "trusted_schema", false)?;
    Ok(connection)
}
