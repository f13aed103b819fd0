//! Which process works on a run: it takes the run, and others wait until it is released or the process is gone.

use std::sync::Arc;
use std::time::SystemTime;

use rusqlite::Connection;

use super::Shared;
use super::owner::{Owner, is_alive, wake, when_gone};
use super::rows::{self, Tail, history, insert};
use super::texts::searched;
use super::writer::Writer;
use crate::entry::{Entry, Fact, RunHeader};
use crate::ids::RunId;
use crate::rules::may_take;
use crate::store::{History, JournalError, Taken};

impl Shared {
    /// The pipe by which this process is woken.
    pub(super) fn owner(self: &Arc<Self>) -> Result<&Owner, JournalError> {
        if let Some(owner) = self.owner.get() {
            return Ok(owner);
        }
        let fail = |error: std::io::Error| JournalError::Store {
            path: self.path.display().to_string(),
            doing: "worked on",
            cause: format!(
                "no named pipe can be made beside it ({error}); move it to a local folder that can be written"
            ),
        };
        let owner = Owner::new(&self.path).map_err(fail)?;
        let mut is_new = false;
        let owner = self.owner.get_or_init(|| {
            is_new = true;
            owner
        });
        if is_new {
            let shared = Arc::downgrade(self);
            owner
                .listen(move || match shared.upgrade() {
                    Some(shared) => {
                        shared.woken();
                        true
                    }
                    None => false,
                })
                .map_err(fail)?;
        }
        Ok(owner)
    }

    pub(super) fn owner_name(&self) -> &str {
        self.owner.get().map_or("", |owner| &owner.name)
    }

    pub(super) fn is_alive(&self, owner: &str) -> bool {
        self.owner.get().is_some_and(|mine| mine.name == owner) || is_alive(&self.path, owner)
    }

    /// The run of the thread that somebody works on.
    pub(super) fn busy(&self, connection: &Connection, header: &RunHeader) -> rusqlite::Result<Option<RunId>> {
        let Some(thread) = header.thread() else { return Ok(None) };
        let owned: Vec<(String, String)> = connection
            .prepare_cached("SELECT id, owner FROM runs WHERE thread = ?1 AND source = ?2 AND owner IS NOT NULL")?
            .query_map((thread, &header.source), |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<rusqlite::Result<_>>()?;
        Ok(owned.into_iter().find(|(_, owner)| self.is_alive(owner)).map(|(run, _)| RunId::from(run)))
    }

    /// What was committed of a run that can be taken for that. It is read before the run is taken, since nobody can commit meanwhile.
    /// Nothing if the run has more entries than that.
    pub(super) fn known(&self, run: &RunId, fact: &Fact, most: u64) -> Result<Option<(History, Tail)>, JournalError> {
        let (_, status, owner) = self.read(|connection| Ok(self.number(connection, run)))??;
        match owner.is_some() || may_take(run, status, fact).is_err() {
            true => Ok(Some((History::default(), Tail::new(run)))),
            false => self.read_run(run, most, |connection, number| history(connection, number, run)),
        }
    }

    /// Takes a run that nobody works on, with everything that was committed of it. What was `known` of it is not read again.
    pub(super) fn take(
        self: &Arc<Self>,
        run: &RunId,
        fact: Fact,
        known: Option<(History, Tail)>,
    ) -> Result<Taken, JournalError> {
        let owner = self.owner()?.name.clone();
        let written = self.error("written");
        let mut connection = self.connection();
        let transaction = self.begin(&mut connection)?;
        let (number, status, owned) = self.number(&transaction, run)?;
        if owned.is_some() {
            return Err(JournalError::Busy(run.clone()));
        }
        may_take(run, status, &fact)?;
        let known = known.unwrap_or_else(|| (History::default(), Tail::new(run)));
        let (mut history, mut tail) = rows::rest_of(&transaction, number, run, known).map_err(&written)?;
        if let Some(damage) = history.damage {
            return Err(damage);
        }
        let Some(Entry { fact: Fact::Started(header), .. }) = history.entries.first().cloned() else {
            return Err(JournalError::Damaged {
                run: run.clone(),
                sequence: 1,
                cause: "it does not say how the run began".to_owned(),
            });
        };
        if let Some(busy) = self.busy(&transaction, &header).map_err(&written)? {
            return Err(JournalError::ThreadBusy(busy));
        }
        let now = SystemTime::now();
        let mut take = || -> rusqlite::Result<()> {
            transaction.prepare_cached("UPDATE runs SET owner = ?2 WHERE number = ?1")?.execute((number, &owner))?;
            history.entries.extend(rows::receive(&transaction, number, &mut tail, history.worked, now)?);
            let entry = Entry::of_run(fact.clone());
            insert(&transaction, number, &tail.next(entry.clone(), history.worked, now))?;
            history.entries.push(entry);
            Ok(())
        };
        take().map_err(&written)?;
        transaction.commit().map_err(&written)?;
        drop(connection);
        self.grown.ring(run);
        let writer = Writer::new(self.clone(), run.clone(), number, searched(&header), tail, history.worked);
        Ok(Taken { writer: Box::new(writer), history })
    }

    /// Tells those who wait for a run that it is free.
    pub(super) fn released(&self, run: &RunId, waiting: Vec<String>) {
        self.freed.ring(run);
        waiting.iter().filter(|owner| **owner != self.owner_name()).for_each(|owner| wake(&self.path, owner));
    }

    /// Waits until nobody works on a run.
    pub(super) async fn until_released(self: &Arc<Self>, run: &RunId) -> Result<(), JournalError> {
        let mine = self.owner()?.name.clone();
        let bell = self.freed.of(run);
        let mut watched = None;
        loop {
            let rung = bell.notified();
            let owner = {
                let (number, _, owner) = self.read(|connection| Ok(self.number(connection, run)))??;
                if let Some(owner) = owner.as_ref().filter(|owner| **owner != mine && watched.as_ref() != Some(*owner))
                {
                    self.connection()
                        .execute("INSERT OR IGNORE INTO waits (run, owner) VALUES (?1, ?2)", (number, &mine))
                        .map_err(self.error("written"))?;
                    let (told, run) = (Arc::downgrade(self), run.clone());
                    when_gone(&self.path, owner, move || {
                        if let Some(shared) = told.upgrade() {
                            shared.freed.ring(&run);
                        }
                    });
                    watched = Some(owner.clone());
                    // It may have released the run before it could see that somebody waits.
                    continue;
                }
                owner
            };
            if owner.is_none() {
                return Ok(());
            }
            rung.await;
            // Whoever has it now is told anew.
            watched = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::SqliteStore;
    use crate::entry::{Entry, Fact, RunHeader};
    use crate::ids::RunId;
    use crate::store::{RunQuery, RunStore as _};

    fn header() -> RunHeader {
        // Each has the same name.
        let given = [("id".into(), "same".into())].into_iter().collect();
        RunHeader { graph: "test".into(), source: "test".into(), digest: String::new(), kept: false, given }
    }

    async fn begun(store: &SqliteStore, entries: usize) -> RunId {
        let writer = store.create(&header(), None).await.expect("begun");
        let fired = |_| Entry::of_run(Fact::TimerFired { node: "n".to_owned() });
        writer.append((0..entries).map(fired).collect()).await.expect("added");
        writer.run().clone()
    }

    /// Nobody can commit meanwhile.
    #[tokio::test]
    async fn of_a_run_that_is_taken_nothing_is_read_that_is_known() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = SqliteStore::open(&folder.path().join("runs.db")).expect("opened");
        let run = begun(&store, 2000).await;
        // Statements are compiled for the first one.
        for entries in [2002, 2003] {
            let known = store.shared.known(&run, &Fact::Resumed, u64::MAX).expect("read");
            let mut taken = None;
            let steps = store.shared.steps(|| taken = store.shared.take(&run, Fact::Resumed, known).ok());
            assert_eq!(taken.map(|taken| taken.history.entries.len()), Some(entries));
            assert!((1..500).contains(&steps), "{steps}");
        }
    }

    #[tokio::test]
    async fn what_comes_after_what_is_known_is_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = SqliteStore::open(&folder.path().join("runs.db")).expect("opened");
        let run = begun(&store, 3).await;
        let known = store.shared.known(&run, &Fact::Resumed, u64::MAX).expect("read");
        drop(store.take(&run, Fact::Resumed).await.expect("taken"));
        let taken = store.shared.take(&run, Fact::Resumed, known).expect("taken");
        assert_eq!(taken.history.entries.len(), 6);
        drop(taken);
        let whole = store.history(&run).await.and_then(|history| history.whole()).expect("nothing is damaged");
        assert_eq!(whole.len(), 6);

        // Another run has its name and its number by now.
        let known = store.shared.known(&run, &Fact::Resumed, u64::MAX).expect("read");
        store.send(&run, Entry::of_run(Fact::Cancelled)).await.expect("ended");
        assert_eq!(store.prune(&RunQuery::default()).await.expect("removed").runs, 1);
        assert_eq!(begun(&store, 7).await, run);
        let taken = store.shared.take(&run, Fact::Resumed, known).expect("taken");
        assert_eq!(taken.history.entries.len(), 9);
        drop(taken);
        let whole = store.history(&run).await.and_then(|history| history.whole()).expect("nothing is damaged");
        assert_eq!(whole.len(), 9);
    }
}
