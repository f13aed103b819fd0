//! What others send to a run: it is committed at once, and whoever works on the run is woken.

use std::time::SystemTime;

use rusqlite::Connection;

use super::Shared;
use super::owner::wake;
use super::rows::{self, history, microseconds, unread};
use crate::entry::{Entry, Fact};
use crate::ids::RunId;
use crate::projection::RunStatus;
use crate::rules::{answerable, may_send};
use crate::store::JournalError;

impl Shared {
    /// Commits what is sent to a run. A run that nobody works on is cancelled or paused by that.
    pub(super) fn send(&self, run: &RunId, entry: Entry) -> Result<(), JournalError> {
        let written = self.error("written");
        // What answers a question finds that it was asked.
        self.commit_waiting();
        let owner = {
            let mut connection = self.connection();
            let transaction = self.begin(&mut connection)?;
            let (number, status, owner) = self.number(&transaction, run)?;
            if !may_send(run, status, &entry)? {
                return Ok(());
            }
            if let Fact::Answered { number: question, .. } = entry.fact {
                let (mut known, _) = history(&transaction, number, run).map_err(&written)?;
                known.entries.extend(unread(&transaction, number).map_err(&written)?);
                answerable(run, &known.entries, &entry, question, true)?;
            }
            let entry = match entry.fact {
                // No node runs that would have to be waited for.
                Fact::PauseAsked if owner.is_none() => Entry::of_run(Fact::Paused),
                _ => entry,
            };
            rows::send(&transaction, number, &entry).map_err(&written)?;
            if entry.fact == Fact::Cancelled {
                let cancelled = RunStatus::Cancelled.as_str();
                transaction
                    .prepare_cached("UPDATE runs SET status = ?2, updated = ?3 WHERE number = ?1")
                    .and_then(|mut statement| statement.execute((number, cancelled, microseconds(SystemTime::now()))))
                    .map_err(&written)?;
                // Whoever works on it may die before they hear of it, and it waits for no time any more.
                transaction
                    .prepare_cached("DELETE FROM timers WHERE run = ?1")
                    .and_then(|mut statement| statement.execute([number]))
                    .map_err(&written)?;
            }
            if let (Fact::Cancelled | Fact::Paused, None) = (&entry.fact, &owner) {
                // Nobody will receive it.
                let (known, mut tail) = history(&transaction, number, run).map_err(&written)?;
                rows::receive(&transaction, number, &mut tail, known.worked, SystemTime::now()).map_err(&written)?;
            }
            transaction.commit().map_err(&written)?;
            owner
        };
        match owner {
            Some(owner) if owner == self.owner_name() => self.mail.ring(run),
            Some(owner) => wake(&self.path, &owner),
            None => self.grown.ring(run),
        }
        Ok(())
    }

    /// Another process sent something to a run, or released one.
    pub(super) fn woken(&self) {
        self.freed.ring_all();
        let mine = |connection: &Connection| -> rusqlite::Result<Vec<String>> {
            connection
                .prepare_cached(
                    "SELECT DISTINCT runs.id FROM mail JOIN runs ON runs.number = mail.run
                     WHERE mail.body IS NOT NULL AND runs.owner = ?1",
                )?
                .query_map([self.owner_name()], |row| row.get(0))?
                .collect()
        };
        match mine(&self.connection()) {
            Ok(runs) => runs.into_iter().for_each(|run| self.mail.ring(&RunId::from(run))),
            // Everybody looks.
            Err(_) => self.mail.ring_all(),
        }
    }

    /// Runs that nobody works on and to which something was sent with which they go on.
    pub(super) fn with_messages(&self) -> Result<Vec<RunId>, JournalError> {
        let rows: Vec<(String, String, Option<String>)> = self.read(|connection| {
            connection
                .prepare_cached(
                    "SELECT DISTINCT runs.id, runs.status, runs.owner FROM mail JOIN runs ON runs.number = mail.run
                     WHERE mail.body IS NOT NULL ORDER BY runs.number",
                )?
                .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
                .collect()
        })?;
        let rests = |(_, status, owner): &(String, String, Option<String>)| {
            RunStatus::from_word(status).is_some_and(RunStatus::goes_on_by_itself)
                && !owner.as_ref().is_some_and(|owner| self.is_alive(owner))
        };
        Ok(rows.into_iter().filter(rests).map(|(id, ..)| RunId::from(id)).collect())
    }
}
