//! Searching a knowledge base.

use std::{
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use rusqlite::{Connection, OpenFlags, OptionalExtension};

use super::{
    About, StoreError,
    schema::{self, Guard, count, failed},
    vectors, words,
};

/// The most chunks that one search gives, whatever a file asks for.
const MAX_FOUND: usize = 10_000;
/// The most bytes of all of them: in a file that somebody made up, many chunks can be the same pages.
const MAX_FOUND_BYTES: usize = 32 << 20;
/// How many connections are kept open for the next searches.
const IDLE: usize = 8;

/// A finished file, opened for reading only. Searches run side by side, each with a connection of its own.
pub(crate) struct Reader {
    file: PathBuf,
    about: About,
    idle: Mutex<Vec<Guarded>>,
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
        let guarded = Guarded::connect(file).map_err(failed)?;
        guarded.guard.begin();
        schema::check_header(&guarded.connection, file)?;
        let about = guarded
            .connection
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
        let about = About { top_k: about.top_k.min(MAX_FOUND), ..about };
        Ok(Self { file: file.to_owned(), about, idle: Mutex::new(vec![guarded]) })
    }

    pub(crate) fn about(&self) -> &About {
        &self.about
    }

    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// The chunks with words of `question`, the `count` best, best first, each with its share of the question.
    pub(crate) fn by_words(&self, question: &str, count: usize) -> Result<Vec<(i64, f64)>, StoreError> {
        self.with_connection(|connection| words::matching(connection, question, count.min(MAX_FOUND)))
    }

    /// The chunks closest to `vector`, the `count` best, best first. It has as many numbers as those of the file.
    pub(crate) fn by_vector(&self, vector: &[f32], count: usize) -> Result<Vec<i64>, StoreError> {
        let vector = vectors::normalised(vector);
        self.with_connection(|connection| vectors::closest(connection, &vector, count.min(MAX_FOUND)))
    }

    /// The chunks of these numbers, in their order.
    pub(crate) fn chunks(&self, numbers: &[i64]) -> Result<Vec<Found>, StoreError> {
        let found = self.with_connection(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT source, text FROM chunks JOIN documents ON documents.id = document WHERE chunks.id = ?1",
            )?;
            let (mut all, mut bytes) = (Vec::new(), 0);
            for number in numbers {
                let row = |row: &rusqlite::Row<'_>| Ok(Found { source: row.get(0)?, text: row.get(1)? });
                let found = statement.query_row([number], row)?;
                bytes += found.source.len() + found.text.len();
                if bytes > MAX_FOUND_BYTES {
                    return Ok(None);
                }
                all.push(found);
            }
            Ok(Some(all))
        })?;
        found.ok_or_else(|| StoreError::Failed {
            file: self.file.clone(),
            doing: "read",
            reason: format!("the passages found have more than {} MiB; ask for fewer", MAX_FOUND_BYTES >> 20),
        })
    }

    fn with_connection<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = idle().pop();
        let failed = |error| failed(&self.file, error);
        let guarded = match kept {
            Some(guarded) => guarded,
            None => {
                let guarded = Guarded::connect(&self.file).map_err(failed)?;
                guarded.guard.begin();
                // The file of before may have been exchanged since it was opened.
                schema::check_header(&guarded.connection, &self.file)?;
                guarded
            }
        };
        guarded.guard.begin();
        let result = work(&guarded.connection).map_err(failed)?;
        let mut idle = idle();
        if idle.len() < IDLE {
            idle.push(guarded);
        }
        Ok(result)
    }
}

/// A connection, and what ends its work when that takes too long.
struct Guarded {
    connection: Connection,
    guard: Guard,
}

impl Guarded {
    /// A connection for reading. A finished file does not change: it is replaced as a whole.
    fn connect(file: &Path) -> rusqlite::Result<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(file, flags)?;
        // The file is read and not mapped: whoever copies another one over a mapped file ends the process.
        connection.pragma_update(None, "mmap_size", 0)?;
        let guard = schema::guard(&mut connection)?;
        Ok(Self { connection, guard })
    }
}
