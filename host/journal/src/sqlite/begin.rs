//! Beginning a run: a new one, or one whose entries begin with those of another.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rusqlite::{Transaction, params};

use super::commit::{Job, add};
use super::rows::{Tail, index_text, insert, microseconds, searched};
use super::writer::Writer;
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
}

impl Shared {
    pub(super) fn create(
        self: &Arc<Self>,
        header: &RunHeader,
        follows: Option<&RunId>,
    ) -> Result<Box<dyn RunWriter>, JournalError> {
        let owner = self.owner()?.name.clone();
        let mut connection = self.connection();
        let transaction = self.begin(&mut connection)?;
        if let Some(busy) = self.busy(&transaction, header).map_err(self.error("written"))? {
            return Err(JournalError::ThreadBusy(busy));
        }
        if let Some(thread) = header.thread() {
            let last = query::last_of_thread(&transaction, &header.source, thread).map_err(self.error("written"))?;
            if last.map(|(_, id)| id).as_ref() != follows {
                return Err(JournalError::ThreadMoved);
            }
        }
        let Begun { id, number, tail } = self.start(&transaction, header, &owner)?;
        transaction.commit().map_err(self.error("written"))?;
        drop(connection);
        Ok(Box::new(Writer::new(self.clone(), id, number, header, tail, Duration::ZERO)))
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
        let Begun { id, number, mut tail } = self.start(&transaction, header, &owner)?;
        let goes_on = !then.is_empty();
        let now = SystemTime::now();
        let copied = copied.into_iter().filter(|copied| !matches!(copied.entry.fact, Fact::Started(_)));
        let copied = copied.map(|copied| (copied.at, copied.entry));
        let all: Vec<(SystemTime, Entry)> = copied.chain(then.into_iter().map(|entry| (now, entry))).collect();
        let outcome = all.last().and_then(|(_, last)| last.fact.outcome()).map(str::to_owned);
        let rows = all.into_iter().map(|(at, entry)| tail.next(entry, Duration::ZERO, at)).collect();
        let text = outcome.map(|outcome| searched(header, Some(&outcome)));
        let job = Job { run: number, id: id.clone(), rows, calls: Vec::new(), text };
        add(&transaction, &job).map_err(|trouble| self.explain(trouble))?;
        // What rested in the other run gave that one free.
        transaction
            .prepare_cached("UPDATE runs SET owner = ?2, updated = ?3 WHERE number = ?1")
            .and_then(|mut statement| statement.execute(params![number, goes_on.then_some(&owner), microseconds(now)]))
            .map_err(self.error("written"))?;
        transaction.commit().map_err(self.error("written"))?;
        drop(connection);
        let writer = Writer::new(self.clone(), id, number, header, tail, Duration::ZERO);
        Ok(Box::new(if goes_on { writer } else { writer.released() }))
    }

    /// Writes the first entry of a run.
    fn start(&self, transaction: &Transaction<'_>, header: &RunHeader, owner: &str) -> Result<Begun, JournalError> {
        let written = self.error("written");
        let revision = match header.kept {
            true => artefacts::revision(transaction, &header.digest).map_err(&written)?,
            false => None,
        };
        if header.kept && revision.is_none() {
            return Err(JournalError::NotKept(header.digest.clone()));
        }
        let now = SystemTime::now();
        let wanted = header.wanted_name();
        let start = || -> rusqlite::Result<Option<Begun>> {
            let (id, number) = loop {
                let id = wanted.clone().unwrap_or_else(RunId::random);
                let inserted = transaction
                    .prepare_cached(
                        "INSERT OR IGNORE INTO runs (id, graph, source, thread, follows, status, created, updated, owner,
                             revision)
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
                    break (id, transaction.last_insert_rowid());
                }
                if wanted.is_some() {
                    return Ok(None);
                }
            };
            let mut tail = Tail::new(&id);
            let started = tail.next(Entry::of_run(Fact::Started(header.clone())), Duration::ZERO, now);
            insert(transaction, number, &started)?;
            index_text(transaction, number, &searched(header, None))?;
            Ok(Some(Begun { id, number, tail }))
        };
        match (start().map_err(written)?, wanted.clone()) {
            (Some(begun), _) => Ok(begun),
            (None, wanted) => Err(JournalError::Exists(wanted.unwrap_or_else(RunId::random))),
        }
    }
}
