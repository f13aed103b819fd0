//! Removing runs, and giving their space back.

use std::collections::HashMap;
use std::thread;
use std::time::Duration;

use rusqlite::types::Value as Sql;
use rusqlite::{Connection, OptionalExtension as _, params_from_iter};

use super::query::Alive;
use super::{Shared, artefacts, texts};
use crate::projection::RunStatus;
use crate::store::{JournalError, PruneReport, RunQuery};

/// How many rows are removed in one transaction, and how many pages are given back in one: others want to write, too.
const ROWS: u64 = 1000;
const PAGES: i64 = 64;
/// How long others may write in between. Whoever waits for a lock does not get it from one who takes it again at once.
const PAUSE: Duration = Duration::from_millis(1);
/// Bytes of the file from which on its log is given back with them: that holds up commits, and a log that is begun anew is no larger.
const MUCH: i64 = 1 << 20;

/// What is removed with a run, by its number.
const REMOVED: [&str; 8] = [
    "DELETE FROM entries WHERE run = ?1",
    "DELETE FROM calls WHERE run = ?1",
    "DELETE FROM mail WHERE run = ?1",
    "DELETE FROM timers WHERE run = ?1",
    "DELETE FROM waits WHERE run = ?1",
    "DELETE FROM former WHERE run = ?1",
    "DELETE FROM texts WHERE rowid = ?1",
    "DELETE FROM runs WHERE number = ?1",
];

impl Shared {
    pub(super) fn prune(&self, query: &RunQuery) -> Result<PruneReport, JournalError> {
        let mut query = RunQuery { after: None, limit: 0, ..query.clone() };
        query.statuses.retain(|status| status.is_final());
        if query.statuses.is_empty() {
            query.statuses = RunStatus::ALL.into_iter().filter(|status| status.is_final()).collect();
        }
        let mut alive = Alive { shared: self, known: HashMap::new() };
        let Some((conditions, values)) = self.filters(&query, &mut alive)? else { return Ok(PruneReport::default()) };
        let source = if query.text.is_some() { "texts JOIN runs ON runs.number = texts.rowid" } else { "runs" };
        let before = self.read(size)?;
        let chosen = self.read(|connection| choose(connection, &format!("{source}{conditions}"), values))?;
        let (mut left, mut runs) = (&chosen[..], 0);
        while !left.is_empty() {
            let (others, removed) = self.remove(left)?;
            (left, runs) = (others, runs + removed);
            if !left.is_empty() {
                thread::sleep(PAUSE);
            }
        }
        // They are looked for while others write. Few runs need a revision of their own.
        for revision in self.read(artefacts::unneeded)? {
            let mut connection = self.connection();
            let transaction = self.begin(&mut connection)?;
            let removed = artefacts::remove(&transaction, revision).and_then(|()| transaction.commit());
            removed.map_err(self.error("written"))?;
            drop(connection);
            thread::sleep(PAUSE);
        }
        self.give_pages_back()?;
        let freed = before - self.read(size)?;
        if freed >= MUCH {
            self.checkpoints.empty().map_err(self.error("written"))?;
        }
        Ok(PruneReport { runs, bytes: u64::try_from(freed).unwrap_or(0) })
    }

    /// Removes some of these runs. Gives those that are left, and how many were removed.
    fn remove<'r>(&self, runs: &'r [i64]) -> Result<(&'r [i64], u64), JournalError> {
        let mut connection = self.connection();
        let transaction = self.begin(&mut connection)?;
        let begun = transaction.total_changes();
        let remove = || -> rusqlite::Result<(&'r [i64], u64)> {
            let (mut left, mut removed) = (runs, 0);
            while let [run, others @ ..] = left
                && transaction.total_changes() - begun < ROWS
            {
                left = others;
                // Since they were chosen, it may have been retried or removed, and another one may have gone on from it.
                let found: Option<(String, bool)> = transaction
                    .prepare_cached(
                        "SELECT status, EXISTS (SELECT 1 FROM runs AS later WHERE later.follows = runs.id AND later.number <> ?1)
                         FROM runs WHERE number = ?1",
                    )?
                    .query_row([run], |row| Ok((row.get(0)?, row.get(1)?)))
                    .optional()?;
                let may_go = found.is_some_and(|(status, is_needed)| {
                    !is_needed && RunStatus::from_word(&status).is_some_and(RunStatus::is_final)
                });
                if !may_go {
                    continue;
                }
                for text in REMOVED {
                    transaction.prepare_cached(text)?.execute([run])?;
                }
                removed += 1;
            }
            texts::merge(&transaction)?;
            Ok((left, removed))
        };
        let written = self.error("written");
        let done = remove().map_err(&written)?;
        transaction.commit().map_err(&written)?;
        Ok(done)
    }

    /// Makes the file smaller by what is free in it.
    fn give_pages_back(&self) -> Result<(), JournalError> {
        let mut free: i64 =
            self.read(|connection| connection.pragma_query_value(None, "freelist_count", |row| row.get(0)))?;
        while free > 0 {
            let connection = self.connection();
            let give_back = || -> rusqlite::Result<()> {
                // It gives back a page a step.
                let mut freed = connection.prepare(&format!("PRAGMA incremental_vacuum({PAGES})"))?;
                let mut rows = freed.query([])?;
                while rows.next()?.is_some() {}
                Ok(())
            };
            give_back().map_err(self.error("written"))?;
            drop(connection);
            free -= PAGES;
            if free > 0 {
                thread::sleep(PAUSE);
            }
        }
        Ok(())
    }
}

/// The numbers of the runs that are to be removed: first those that others do not go on from, also when it is broken off in between.
fn choose(connection: &Connection, source: &str, values: Vec<Sql>) -> rusqlite::Result<Vec<i64>> {
    // All of it at one moment.
    let choosing = connection.unchecked_transaction()?;
    choosing.execute("CREATE TEMP TABLE chosen (number INTEGER PRIMARY KEY)", [])?;
    choosing.execute(&format!("INSERT INTO chosen SELECT number FROM {source}"), params_from_iter(values))?;
    // What a run that stays goes on from has to stay, too, and what that one goes on from.
    choosing.execute(
        "WITH RECURSIVE needed (id) AS (
             SELECT follows FROM runs WHERE follows IS NOT NULL AND number NOT IN (SELECT number FROM chosen)
             UNION SELECT runs.follows FROM runs JOIN needed ON runs.id = needed.id WHERE runs.follows IS NOT NULL
         )
         DELETE FROM chosen WHERE number IN (SELECT number FROM runs JOIN needed ON runs.id = needed.id)",
        [],
    )?;
    let chosen: rusqlite::Result<Vec<i64>> =
        choosing.prepare("SELECT number FROM chosen ORDER BY number DESC")?.query_map([], |row| row.get(0))?.collect();
    // Nothing is left of the table.
    choosing.finish()?;
    chosen
}

/// The size of the file in bytes.
fn size(connection: &Connection) -> rusqlite::Result<i64> {
    let pages: i64 = connection.pragma_query_value(None, "page_count", |row| row.get(0))?;
    let page: i64 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
    Ok(pages * page)
}

#[cfg(test)]
mod tests {
    use hotcell_graph::Object;

    use super::super::SqliteStore;
    use super::ROWS;
    use crate::entry::{Entry, Fact, RunHeader};
    use crate::ids::RunId;
    use crate::store::{JournalError, RunQuery, RunStore as _, RunWriter};

    /// A run that begins, and goes on from another one.
    async fn begun(store: &SqliteStore, after: Option<&RunId>) -> Box<dyn RunWriter> {
        let given: Object = after.iter().map(|after| ("after".into(), after.as_str().into())).collect();
        let header =
            RunHeader { graph: "test".into(), source: "test".into(), digest: String::new(), kept: false, given };
        store.create(&header, None).await.expect("begun")
    }

    /// A run that has ended, with so many entries in between, which goes on from another one.
    async fn ended(store: &SqliteStore, entries: u64, after: Option<&RunId>) -> RunId {
        let writer = begun(store, after).await;
        let fired = |_| Entry::of_run(Fact::TimerFired { node: "n".to_owned() });
        writer.append((0..entries).map(fired).collect()).await.expect("added");
        let end = Entry::of_run(Fact::Ended { result: Ok("done".into()), node: None });
        writer.append(vec![end]).await.expect("ended");
        writer.run().clone()
    }

    #[tokio::test]
    async fn others_may_write_while_much_is_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = SqliteStore::open(&folder.path().join("runs.db")).expect("opened");
        for _ in 0..3 {
            ended(&store, ROWS / 2, None).await;
        }
        let (left, removed) = store.shared.remove(&[3, 2, 1]).expect("removed");
        assert_eq!((left.len(), removed), (1, 2));
        assert_eq!(store.prune(&RunQuery::default()).await.expect("removed").runs, 1);
    }

    #[tokio::test]
    async fn a_run_stays_that_another_has_gone_on_from_since_it_was_chosen() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = SqliteStore::open(&folder.path().join("runs.db")).expect("opened");
        let first = ended(&store, 1, None).await;
        ended(&store, 1, Some(&first)).await;
        assert_eq!(store.shared.remove(&[1]).expect("looked at").1, 0);
        store.find(first.as_str()).await.expect("it is there");
        assert_eq!(store.shared.remove(&[2, 1]).expect("removed").1, 2);
        let gone = store.find(first.as_str()).await;
        assert!(matches!(gone, Err(JournalError::NoSuchRun(_))), "{gone:?}");
    }

    #[tokio::test]
    async fn a_run_stays_that_was_retried_since_it_was_chosen() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = SqliteStore::open(&folder.path().join("runs.db")).expect("opened");
        let failed = begun(&store, None).await;
        let end = Entry::of_run(Fact::Ended { result: Err("it failed".into()), node: None });
        failed.append(vec![end]).await.expect("ended");
        let run = failed.run().clone();
        drop(failed);
        let taken = store.take(&run, Fact::Retried).await.expect("taken");
        assert_eq!(store.shared.remove(&[1]).expect("looked at").1, 0);
        store.find(run.as_str()).await.expect("it is there");
        drop(taken);
    }
}
