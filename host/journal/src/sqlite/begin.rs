//! Beginning a run: a new one, or one whose entries begin with those of another.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rusqlite::{Connection, params};
use tokio::sync::oneshot;

use super::commit::{Trouble, Work};
use super::entries::Addition;
use super::rows::{Tail, insert, microseconds};
use super::texts::{index_new_text, searched, with_outcome};
use super::writer::{Fresh, Writer};
use super::{Shared, artefacts, query};
use crate::entry::{Entry, Fact, RunHeader};
use crate::ids::RunId;
use crate::projection::RunStatus;
use crate::store::{JournalError, NumberedEntry, RunWriter};

/// A run whose first entry is written.
struct Begun {
    id: RunId,
    number: i64,
    tail: Tail,
    /// What can be searched of it
    searched: String,
    /// When it was begun
    created: i64,
}

/// Begins a run, together with what else is committed.
struct Start {
    shared: Arc<Shared>,
    header: RunHeader,
    follows: Option<RunId>,
    owner: String,
    begun: Option<Begun>,
    /// How often it was told that something was sent to a run, before anything could be sent to this one
    rung: u64,
    done: oneshot::Sender<Result<Writer, JournalError>>,
}

impl Work for Start {
    fn write(&mut self, connection: &Connection) -> Result<(), Trouble> {
        let (header, shared) = (&self.header, &self.shared);
        let rung = shared.mail.rung();
        if let Some(busy) = shared.busy(connection, header)? {
            return Err(Trouble::Refused(JournalError::ThreadBusy(busy)));
        }
        if let Some(thread) = header.thread() {
            let last = query::last_of_thread(connection, &header.source, thread)?;
            if last.map(|(_, id)| id) != self.follows {
                return Err(Trouble::Refused(JournalError::ThreadMoved));
            }
        }
        self.begun = Some(start(connection, header, &self.owner)?);
        self.rung = rung;
        Ok(())
    }

    fn tell(self: Box<Self>, outcome: Result<(), JournalError>) {
        let Start { shared, begun, rung, done, .. } = *self;
        let writer = outcome.map(|()| begun.map(|begun| begun.writer(shared, rung)));
        if let Some(writer) = writer.transpose() {
            // If nobody waits for it any more, the writer is dropped, and the run is free.
            let _ = done.send(writer);
        }
    }
}

impl Begun {
    fn writer(self, shared: Arc<Shared>, rung: u64) -> Writer {
        let fresh = Fresh { rung, created: self.created };
        Writer::new(shared, self.id, self.number, self.searched, self.tail, Duration::ZERO).of_fresh(fresh)
    }
}

impl Shared {
    pub(super) async fn create(
        self: &Arc<Self>,
        header: &RunHeader,
        follows: Option<&RunId>,
    ) -> Result<Box<dyn RunWriter>, JournalError> {
        let owner = self.owner()?.name.clone();
        let (done, writer) = oneshot::channel();
        let (header, follows) = (header.clone(), follows.cloned());
        let start = Box::new(Start { shared: self.clone(), header, follows, owner, begun: None, rung: 0, done });
        self.commit(start, self.writers.are_some());
        Ok(Box::new(writer.await.map_err(|_| self.gone())??))
    }

    pub(super) fn fork(
        self: &Arc<Self>,
        header: &RunHeader,
        copied: Vec<NumberedEntry>,
        then: Vec<Entry>,
    ) -> Result<Box<dyn RunWriter>, JournalError> {
        let owner = self.owner()?.name.clone();
        let mut connection = self.connection();
        let transaction = self.begin(&mut connection)?;
        let Begun { id, number, mut tail, searched, .. } =
            start(&transaction, header, &owner).map_err(|trouble| self.explain(trouble))?;
        let goes_on = !then.is_empty();
        let now = SystemTime::now();
        let copied = copied.into_iter().filter(|copied| !matches!(copied.entry.fact, Fact::Started(_)));
        let copied = copied.map(|copied| (copied.at, copied.entry));
        let all: Vec<(SystemTime, Entry)> = copied.chain(then.into_iter().map(|entry| (now, entry))).collect();
        let outcome = all.last().and_then(|(_, last)| last.fact.outcome()).map(str::to_owned);
        let rows = all.into_iter().map(|(at, entry)| tail.next(entry, Duration::ZERO, at)).collect();
        let text = outcome.map(|outcome| with_outcome(searched.clone(), Some(&outcome)));
        let addition = Addition { run: number, id: id.clone(), rows, calls: Vec::new(), text };
        addition.write(&transaction).map_err(|trouble| self.explain(trouble))?;
        // What rested in the other run gave that one free.
        transaction
            .prepare_cached("UPDATE runs SET owner = ?2, updated = ?3 WHERE number = ?1")
            .and_then(|mut statement| statement.execute(params![number, goes_on.then_some(&owner), microseconds(now)]))
            .map_err(self.error("written"))?;
        transaction.commit().map_err(self.error("written"))?;
        drop(connection);
        let writer = Writer::new(self.clone(), id, number, searched, tail, Duration::ZERO);
        Ok(Box::new(if goes_on { writer } else { writer.released() }))
    }
}

/// Writes the first entry of a run.
fn start(connection: &Connection, header: &RunHeader, owner: &str) -> Result<Begun, Trouble> {
    let revision = if header.kept { artefacts::revision(connection, &header.digest)? } else { None };
    if header.kept && revision.is_none() {
        return Err(Trouble::Refused(JournalError::NotKept(header.digest.clone())));
    }
    let now = SystemTime::now();
    let wanted = header.wanted_name();
    let (id, number) = loop {
        let id = wanted.clone().unwrap_or_else(RunId::random);
        let inserted = connection
            .prepare_cached(
                "INSERT OR IGNORE INTO runs (id, graph, source, thread, follows, status, created, updated, owner, revision)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7, ?8, ?9)",
            )?
            .execute(params![
                id.as_str(),
                header.graph,
                header.source,
                header.thread(),
                header.needs(),
                RunStatus::Running.as_str(),
                microseconds(now),
                owner,
                revision,
            ])?;
        if inserted == 1 {
            break (id, connection.last_insert_rowid());
        }
        if wanted.is_some() {
            return Err(Trouble::Refused(JournalError::Exists(id)));
        }
    };
    let mut tail = Tail::new(&id);
    let mut started = tail.next(Entry::of_run(Fact::Started(header.clone())), Duration::ZERO, now);
    // The index says so already, and to say it once more would write three of its own indices anew.
    started.change = None;
    insert(connection, number, &started)?;
    let searched = searched(header);
    index_new_text(connection, number, &searched)?;
    Ok(Begun { id, number, tail, searched, created: microseconds(now) })
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use rusqlite::hooks::Action;

    use super::super::{SqliteStore, locked};
    use crate::entry::{Entry, Fact, RunHeader};
    use crate::store::RunStore as _;

    #[tokio::test]
    async fn a_run_is_written_to_the_index_when_it_begins_and_when_it_ends() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = SqliteStore::open(&folder.path().join("runs.db")).expect("opened");
        let written = Arc::<Mutex<Vec<Action>>>::default();
        let told = written.clone();
        let tell = move |action: Action, _: &str, table: &str, _: i64| {
            if table == "runs" {
                locked(&told).push(action);
            }
        };
        store.shared.connection().update_hook(Some(tell)).expect("told");
        let header = RunHeader {
            graph: "test".into(),
            source: "test".into(),
            digest: String::new(),
            kept: false,
            given: Default::default(),
        };
        let writer = store.create(&header, None).await.expect("begun");
        writer.append(vec![Entry::of_run(Fact::TimerFired { node: "n".to_owned() })]).await.expect("added");
        let end = Entry::of_run(Fact::Ended { result: Ok("done".into()), node: None });
        writer.append(vec![end]).await.expect("ended");
        assert_eq!(*locked(&written), [Action::SQLITE_INSERT, Action::SQLITE_UPDATE]);
    }
}
