//! Which process works on a run: it takes the run, and others wait until it is released or the process is gone.

use std::sync::Arc;
use std::time::SystemTime;

use rusqlite::Connection;

use super::Shared;
use super::owner::{Owner, is_alive, wake, when_gone};
use super::rows::{self, history, insert};
use super::writer::Writer;
use crate::entry::{Entry, Fact, RunHeader};
use crate::ids::RunId;
use crate::rules::may_take;
use crate::store::{JournalError, Taken};

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

    /// Takes a run that nobody works on, with everything that was committed of it.
    pub(super) fn take(self: &Arc<Self>, run: &RunId, fact: Fact) -> Result<Taken, JournalError> {
        let owner = self.owner()?.name.clone();
        let written = self.error("written");
        let mut connection = self.connection();
        let transaction = self.begin(&mut connection)?;
        let (number, status, owned) = self.number(&transaction, run)?;
        if owned.is_some() {
            return Err(JournalError::Busy(run.clone()));
        }
        may_take(run, status, &fact)?;
        let (mut history, mut tail) = history(&transaction, number, run).map_err(&written)?;
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
        let writer = Writer::new(self.clone(), run.clone(), number, &header, tail, history.worked);
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
