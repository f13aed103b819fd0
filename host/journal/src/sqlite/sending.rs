//! What others send to a run: it is committed at once, and whoever works on the run is woken.

use std::time::SystemTime;

use rusqlite::Connection;

use super::Shared;
use super::owner::wake;
use super::rows::{self, microseconds, of_questions, unread};
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
                let known = of_questions(&transaction, number, &entry.place).map_err(&written)?;
                let sent = unread(&transaction, number).map_err(&written)?;
                answerable(run, known.iter().chain(&sent), &entry, question, true)?;
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
                let (mut tail, worked) = rows::end(&transaction, number, run).map_err(&written)?;
                rows::receive(&transaction, number, &mut tail, worked, SystemTime::now()).map_err(&written)?;
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

#[cfg(test)]
mod tests {
    use super::super::SqliteStore;
    use crate::entry::{Entry, Fact, Question, RunHeader};
    use crate::ids::{EntryPath, RunId};
    use crate::store::{JournalError, RunStore as _};

    /// A run that rests with two open questions after so many other entries.
    async fn asking(store: &SqliteStore, entries: usize) -> RunId {
        let header = RunHeader {
            graph: "test".into(),
            source: "test".into(),
            digest: String::new(),
            kept: false,
            given: Default::default(),
        };
        let writer = store.create(&header, None).await.expect("begun");
        let fired = |_| Entry::of_run(Fact::TimerFired { node: "n".to_owned() });
        writer.append((0..entries).map(fired).collect()).await.expect("added");
        let asked = |number| Entry {
            place: EntryPath::of_turn(1),
            fact: Fact::Asked { number, question: Question::default() },
        };
        writer.append(vec![asked(0), asked(1), Entry::of_run(Fact::Waiting)]).await.expect("added");
        writer.run().clone()
    }

    /// Nobody can commit meanwhile.
    #[tokio::test]
    async fn what_is_sent_to_a_long_run_costs_no_more_than_to_a_short_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = SqliteStore::open(&folder.path().join("runs.db")).expect("opened");
        let answered =
            |number| Entry { place: EntryPath::of_turn(1), fact: Fact::Answered { number, text: "yes".to_owned() } };
        let sent = [answered(0), answered(1), Entry::of_run(Fact::PauseAsked), Entry::of_run(Fact::Cancelled)];
        let mut of_all = Vec::new();
        // Statements are compiled for the first one.
        for entries in [1, 1, 2000] {
            let run = asking(&store, entries).await;
            let of_each =
                sent.clone().map(|entry| store.shared.steps(|| store.shared.send(&run, entry).expect("sent")));
            let again = store.send(&run, answered(0)).await.err();
            assert!(matches!(again, Some(JournalError::Cancelled(_))), "{again:?}");
            // All that was sent is in the run, and nothing is damaged.
            let history = store.history(&run).await.and_then(|history| history.whole()).expect("whole");
            assert_eq!(history.len(), entries + 8);
            of_all.push(of_each);
        }
        let (short, long) = (of_all[1], of_all[2]);
        assert!(short.iter().zip(&long).all(|(short, long)| *short > 0 && *long < short + 100), "{short:?} {long:?}");
    }

    #[tokio::test]
    async fn questions_are_answered_once_each() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = SqliteStore::open(&folder.path().join("runs.db")).expect("opened");
        let run = asking(&store, 1).await;
        let answered = |turn, number| Entry {
            place: EntryPath::of_turn(turn),
            fact: Fact::Answered { number, text: "yes".to_owned() },
        };
        let why = async |turn, number| match store.send(&run, answered(turn, number)).await {
            Err(JournalError::NotAsked { why, .. }) => Some(why),
            sent => sent.map(|()| None).expect("sent"),
        };
        assert_eq!(why(1, 2).await, Some("was never asked"));
        assert_eq!(why(2, 0).await, Some("was never asked"));
        assert_eq!(why(1, 1).await, None);
        assert_eq!(why(1, 1).await, Some("has an answer already"));
        drop(store.take(&run, Fact::Resumed).await.expect("taken"));
        assert_eq!(why(1, 1).await, Some("has an answer already"));
        assert_eq!(why(1, 0).await, None);
    }
}
