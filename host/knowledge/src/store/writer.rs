//! Filling a knowledge base.

use std::{
    collections::HashSet,
    fs, io,
    path::{Path, PathBuf},
};

use rusqlite::{Connection, OptionalExtension, params};

use super::{
    Settings, StoreError,
    schema::{self, Guard, count, to_integer},
    vectors,
};
use crate::untrusted::shown;

/// A file that is being built. What is committed stays when the process ends, however it ends.
pub(crate) struct Writer {
    connection: Connection,
    /// Ends what takes too long in a file that was found: somebody else may have made it
    guard: Guard,
    file: PathBuf,
}

/// How far a document is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Complete,
    /// So many of its chunks, from the first, are there.
    Begun(usize),
}

/// A chunk with its vector.
pub(crate) struct Chunk {
    pub(crate) document: i64,
    /// Which chunk of the document it is, counted from 0.
    pub(crate) place: usize,
    pub(crate) text: String,
    pub(crate) vector: Vec<f32>,
}

impl Writer {
    /// Goes on with `file` if it was begun with the same model and settings, and begins anew otherwise.
    pub(crate) fn open(file: &Path, model: &str, settings: &Settings) -> Result<Self, StoreError> {
        if let Some(writer) = Self::resume(file, model, settings) {
            return Ok(writer);
        }
        let failed = |error: &dyn std::fmt::Display| StoreError::Failed {
            file: file.to_owned(),
            doing: "begun",
            reason: error.to_string(),
        };
        for leftover in with_companions(file) {
            match fs::remove_file(&leftover) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(&error)),
                _ => {}
            }
        }
        let begin = || -> rusqlite::Result<Connection> {
            let connection = Connection::open(file)?;
            schema::create(&connection)?;
            connection.execute(
                "INSERT INTO about (embedding_model, chunk_size, chunk_overlap, top_k, reranker)
                 VALUES (?1, ?2, ?3, ?4, ?5)",
                params![
                    model,
                    to_integer(settings.chunk_size),
                    to_integer(settings.chunk_overlap),
                    to_integer(settings.top_k),
                    settings.reranker
                ],
            )?;
            Ok(connection)
        };
        let connection = begin().map_err(|error| failed(&error))?;
        // What we made ourselves needs none.
        Ok(Self { connection, guard: Guard::default(), file: file.to_owned() })
    }

    /// The file as it was left, or `None` if there is none that can be gone on with.
    fn resume(file: &Path, model: &str, settings: &Settings) -> Option<Self> {
        schema::check_magic(file).ok()?;
        // Ours has none while it is built: what a journal says is done to the file, and to others that it names.
        let [_, log, index, journal] = with_companions(file);
        let is_link = |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|metadata| !metadata.is_file());
        if fs::symlink_metadata(journal).is_ok() || is_link(&log) || is_link(&index) {
            return None;
        }
        let mut connection = Connection::open(file).ok()?;
        let guard = schema::guard(&mut connection).ok()?;
        guard.begin();
        schema::check_header(&connection, file).ok()?;
        let same = connection.query_row(
            "SELECT 1 FROM about WHERE embedding_model = ?1 AND chunk_size = ?2 AND chunk_overlap = ?3",
            params![model, to_integer(settings.chunk_size), to_integer(settings.chunk_overlap)],
            |_| Ok(()),
        );
        same.ok()?;
        // What does not change the chunks is taken as it is asked for now.
        connection
            .execute(
                "UPDATE about SET top_k = ?1, reranker = ?2",
                params![to_integer(settings.top_k), settings.reranker],
            )
            .ok()?;
        connection.pragma_update(None, "synchronous", "NORMAL").ok()?;
        Some(Self { connection, guard, file: file.to_owned() })
    }

    fn failed(&self, error: rusqlite::Error) -> StoreError {
        let reason = match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::OperationInterrupted) => {
                "it takes too long; delete it to have it built from the beginning".to_owned()
            }
            _ => shown(&error.to_string()),
        };
        StoreError::Failed { file: self.file.clone(), doing: "written", reason }
    }

    /// The number of a document with this content, and how far it is. What is there of another content is taken out.
    pub(crate) fn document(&mut self, source: &str, sha256: &[u8; 32]) -> Result<(i64, State), StoreError> {
        self.guard.begin();
        let mut document = || -> rusqlite::Result<(i64, State)> {
            let transaction = self.connection.transaction()?;
            let known = transaction
                .query_row("SELECT id, sha256, complete FROM documents WHERE source = ?1", [source], |row| {
                    Ok((row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?, row.get::<_, bool>(2)?))
                })
                .optional()?;
            let result = match known {
                Some((id, known, true)) if known == sha256 => (id, State::Complete),
                Some((id, known, false)) if known == sha256 => {
                    let chunks = "SELECT count(*) FROM chunks WHERE document = ?1";
                    (id, State::Begun(transaction.query_row(chunks, [id], |row| count(row, 0))?))
                }
                known => {
                    if let Some((id, ..)) = known {
                        remove(&transaction, id)?;
                    }
                    let insert = "INSERT INTO documents (source, sha256) VALUES (?1, ?2)";
                    transaction.execute(insert, params![source, sha256])?;
                    (transaction.last_insert_rowid(), State::Begun(0))
                }
            };
            transaction.commit()?;
            Ok(result)
        };
        let result = document();
        result.map_err(|error| self.failed(error))
    }

    /// How many numbers the vectors have, if there are any.
    pub(crate) fn dimensions(&self) -> Result<Option<usize>, StoreError> {
        self.guard.begin();
        let dimensions =
            self.connection.query_row("SELECT dimensions FROM about", [], |row| row.get::<_, Option<i64>>(0));
        let dimensions = dimensions.map(|dimensions| dimensions.and_then(|number| usize::try_from(number).ok()));
        dimensions.map_err(|error| self.failed(error))
    }

    /// Commits chunks, of one document in ascending order of their places, and that some documents have all of theirs.
    pub(crate) fn commit(&mut self, chunks: &[Chunk], complete: &[i64]) -> Result<(), StoreError> {
        self.guard.begin();
        let mut commit = || -> rusqlite::Result<()> {
            let transaction = self.connection.transaction()?;
            {
                let mut chunk =
                    transaction.prepare_cached("INSERT INTO chunks (document, place, text) VALUES (?1, ?2, ?3)")?;
                let mut vector = transaction.prepare_cached("INSERT INTO vectors (chunk, vector) VALUES (?1, ?2)")?;
                let mut words = transaction.prepare_cached("INSERT INTO words (rowid, text) VALUES (?1, ?2)")?;
                for Chunk { document, place, text, vector: numbers } in chunks {
                    chunk.execute(params![document, to_integer(*place), text])?;
                    let id = transaction.last_insert_rowid();
                    vector.execute(params![id, vectors::to_bytes(&vectors::normalised(numbers))])?;
                    words.execute(params![id, text])?;
                }
                let mut done = transaction.prepare_cached("UPDATE documents SET complete = 1 WHERE id = ?1")?;
                for document in complete {
                    done.execute([document])?;
                }
                if let Some(chunk) = chunks.first() {
                    let set = "UPDATE about SET dimensions = ?1 WHERE dimensions IS NULL";
                    transaction.execute(set, [to_integer(chunk.vector.len())])?;
                }
            }
            transaction.commit()
        };
        let result = commit();
        result.map_err(|error| self.failed(error))
    }

    /// Takes out the documents that are not in `sources`: what an earlier attempt had and this one has not.
    pub(crate) fn retain(&mut self, sources: &HashSet<String>) -> Result<(), StoreError> {
        self.guard.begin();
        let mut retain = || -> rusqlite::Result<()> {
            let transaction = self.connection.transaction()?;
            let known: Vec<(i64, String)> = transaction
                .prepare("SELECT id, source FROM documents")?
                .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
                .collect::<rusqlite::Result<_>>()?;
            for (id, _) in known.iter().filter(|(_, source)| !sources.contains(source.as_str())) {
                self.guard.begin();
                remove(&transaction, *id)?;
            }
            transaction.commit()
        };
        let result = retain();
        result.map_err(|error| self.failed(error))
    }

    /// How many chunks there are.
    pub(crate) fn chunks(&self) -> Result<usize, StoreError> {
        self.guard.begin();
        let chunks = self.connection.query_row("SELECT count(*) FROM chunks", [], |row| count(row, 0));
        chunks.map_err(|error| self.failed(error))
    }

    /// Makes the file complete and puts it into its place, where it is one file without companions.
    pub(crate) fn finish(self, place: &Path) -> Result<(), StoreError> {
        let Self { connection, guard, file } = self;
        guard.begin_merging();
        let failed = |error: &dyn std::fmt::Display| StoreError::Failed {
            file: file.clone(),
            doing: "finished",
            reason: error.to_string(),
        };
        connection
            .execute_batch(
                "UPDATE about SET complete = 1;
                 INSERT INTO words (words) VALUES ('optimize');
                 PRAGMA journal_mode = DELETE;",
            )
            .map_err(|error| failed(&error))?;
        connection.close().map_err(|(_, error)| failed(&error))?;
        let sync = |path: &Path| fs::File::open(path).and_then(|file| file.sync_all());
        sync(&file).map_err(|error| failed(&error))?;
        fs::rename(&file, place).map_err(|error| failed(&error))?;
        // Not every file system can do this for a directory; the rename itself is there either way.
        if let Some(directory) = place.parent() {
            let _ = sync(directory);
        }
        Ok(())
    }
}

fn remove(connection: &Connection, document: i64) -> rusqlite::Result<()> {
    let of_document = "SELECT id FROM chunks WHERE document = ?1";
    connection.execute(&format!("DELETE FROM words WHERE rowid IN ({of_document})"), [document])?;
    connection.execute(&format!("DELETE FROM vectors WHERE chunk IN ({of_document})"), [document])?;
    connection.execute("DELETE FROM chunks WHERE document = ?1", [document])?;
    connection.execute("DELETE FROM documents WHERE id = ?1", [document])?;
    Ok(())
}

/// A file and those that SQLite puts beside it.
fn with_companions(file: &Path) -> [PathBuf; 4] {
    ["", "-wal", "-shm", "-journal"].map(|end| {
        let mut path = file.as_os_str().to_owned();
        path.push(end);
        path.into()
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn nothing_takes_forever_in_a_file_that_was_found() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("k.db.building");
        let open = || Writer::open(&file, "test:words", &Settings::default()).expect("a file");
        let id = open().document("a.md", &[0; 32]).expect("a document").0;
        let mut found = open();
        assert_eq!(found.document("a.md", &[0; 32]).expect("a document"), (id, State::Begun(0)), "it is gone on with");
        let endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n";
        found.guard.allow(Duration::ZERO);
        let error = found.connection.query_row(endless, [], |row| row.get::<_, i64>(0)).expect_err("no end");
        assert!(found.failed(error).to_string().contains("it takes too long"));
        // Each piece of work has its own time.
        assert_eq!(found.chunks().expect("a number"), 0);
    }
}
