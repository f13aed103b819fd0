//! Adding entries to a run.

use rusqlite::{Connection, ErrorCode};

use super::artefacts::revise;
use super::calls;
use super::commit::Trouble;
use super::rows::{EntryRow, insert};
use super::texts::index_text;
use crate::calls::RecordedCall;
use crate::ids::RunId;
use crate::store::JournalError;

/// Entries of one run that are added together, or not at all.
pub(super) struct Addition {
    pub(super) run: i64,
    pub(super) id: RunId,
    pub(super) rows: Vec<EntryRow>,
    /// Recordings that are committed with them
    pub(super) calls: Vec<RecordedCall>,
    /// What the run can be found by from now on
    pub(super) text: Option<String>,
}

/// Processes that wait for the run to be released, by the names of their pipes.
pub(super) type Waiting = Vec<String>;

impl Addition {
    /// Whether the run rests afterwards.
    pub(super) fn rests(&self) -> bool {
        self.rows.iter().any(|row| row.change.as_ref().is_some_and(|change| change.rests))
    }

    /// The bytes of what the entries and recordings say.
    pub(super) fn bytes(&self) -> usize {
        let calls = self.calls.iter().map(|call| call.body.len());
        self.rows.iter().map(|row| row.body.len()).chain(calls).sum()
    }

    /// Whether nothing else is written for it than one row.
    pub(super) fn is_single(&self) -> bool {
        matches!(&self.rows[..], [row] if row.stands_alone()) && self.text.is_none() && self.calls.is_empty()
    }

    /// Writes it, and gives the processes that are to be told.
    pub(super) fn write(&self, connection: &Connection) -> Result<Waiting, Trouble> {
        let rests = self.rests();
        if rests {
            let unread: bool = connection
                .prepare_cached("SELECT EXISTS (SELECT 1 FROM mail WHERE run = ?1 AND body IS NOT NULL)")?
                .query_row([self.run], |row| row.get(0))?;
            if unread {
                return Err(Trouble::Refused(JournalError::Unread(self.id.clone())));
            }
        }
        for row in &self.rows {
            if let Some(subject) = &row.answers {
                self.take_seat(connection, row, subject)?;
            }
            if let Some(digest) = &row.revises
                && !revise(connection, self.run, digest)?
            {
                return Err(Trouble::Refused(JournalError::NotKept(digest.clone())));
            }
            insert(connection, self.run, row).map_err(|error| match error {
                // Somebody else added an entry of this number, or one before it could not be written.
                error if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => self.fenced(),
                error => Trouble::Store(error),
            })?;
        }
        calls::insert(connection, self.run, &self.calls)?;
        if let Some(text) = &self.text {
            index_text(connection, self.run, text)?;
        }
        if rests { Ok(take_waiting(connection, self.run)?) } else { Ok(Vec::new()) }
    }

    fn fenced(&self) -> Trouble {
        Trouble::Refused(JournalError::Fenced(self.id.clone()))
    }

    /// Of answers to a question, only the first is taken.
    fn take_seat(&self, connection: &Connection, row: &EntryRow, subject: &str) -> Result<(), Trouble> {
        let taken = connection
            .prepare_cached(
                "INSERT OR IGNORE INTO mail (run, subject, place, kind, body) VALUES (?1, ?2, ?3, ?4, NULL)",
            )?
            .execute((self.run, subject, row.place.as_str(), row.kind))?;
        if taken == 1 {
            return Ok(());
        }
        let (run, question) = (self.id.clone(), subject.to_owned());
        let first: String = connection
            .prepare_cached("SELECT kind FROM mail WHERE run = ?1 AND subject = ?2")?
            .query_row((self.run, subject), |row| row.get(0))?;
        Err(Trouble::Refused(match first.as_str() {
            "expired" => JournalError::Expired { run, question },
            _ => JournalError::NotAsked { run, question, why: "has an answer already" },
        }))
    }
}

/// The processes that wait for a run, which need not be remembered any more.
pub(super) fn take_waiting(connection: &Connection, run: i64) -> rusqlite::Result<Waiting> {
    let mut statement = connection.prepare_cached("SELECT owner FROM waits WHERE run = ?1")?;
    let waiting: Waiting = statement.query_map([run], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    // Whoever came in between found that the run is free, and is remembered all the same.
    for owner in &waiting {
        connection.prepare_cached("DELETE FROM waits WHERE run = ?1 AND owner = ?2")?.execute((run, owner))?;
    }
    Ok(waiting)
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::super::SqliteStore;
    use crate::entry::{Entry, Fact, RunHeader};
    use crate::store::RunStore as _;

    #[tokio::test]
    async fn no_entry_is_there_without_the_time_that_it_sets() {
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
        // What is written for the entry after its row fails, as it would if the process died in between.
        store.shared.connection().execute_batch("DROP TABLE timers").expect("dropped");
        let set = Entry::of_run(Fact::TimerSet { node: "n".to_owned(), at: SystemTime::UNIX_EPOCH });
        writer.append(vec![set]).await.expect_err("the time cannot be kept");
        let history = store.history(writer.run()).await.expect("read");
        assert_eq!(history.whole().expect("whole").len(), 1, "there is only how it began");
    }
}
