//! Writing to a run of the file.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use async_trait::async_trait;
use rusqlite::TransactionBehavior;

use super::commit::{Handed, Job, take_waiting};
use super::rows::{Tail, receive, searched, unread};
use super::{Shared, calls};
use crate::calls::RecordedCall;
use crate::entry::{Entry, Fact, RunHeader};
use crate::ids::RunId;
use crate::store::{JournalError, RunWriter};

pub(super) struct Writer {
    shared: Arc<Shared>,
    id: RunId,
    number: i64,
    /// What the run was started with, as far as it can be searched
    header: RunHeader,
    /// How long it was worked on before
    worked: Duration,
    begun: Instant,
    state: Mutex<State>,
}

struct State {
    tail: Tail,
    /// Recordings that are committed with the next entries
    calls: Vec<RecordedCall>,
    /// Why nothing can be added any more
    broken: Option<JournalError>,
    is_released: bool,
}

/// How many runs are being written in this process.
#[derive(Default)]
pub(super) struct Writers(AtomicUsize);

impl Writers {
    fn in_company(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 1
    }
}

impl Writer {
    pub(super) fn new(
        shared: Arc<Shared>,
        id: RunId,
        number: i64,
        header: &RunHeader,
        tail: Tail,
        worked: Duration,
    ) -> Self {
        shared.writers.0.fetch_add(1, Ordering::Relaxed);
        // What it was given beside its text is not looked at, and may be large.
        let given = header.given.get("input").map(|input| ("input".into(), input.clone())).into_iter().collect();
        let header = RunHeader { given, ..header.clone() };
        let state = Mutex::new(State { tail, calls: Vec::new(), broken: None, is_released: false });
        Writer { shared, id, number, header, worked, begun: Instant::now(), state }
    }

    /// The same, of a run that nobody has: it only names the run.
    pub(super) fn released(self) -> Self {
        self.state().is_released = true;
        self
    }

    /// Numbers the entries and commits them or hands them over, in one step, so that they are committed in the order of their
    /// numbers. What may be refused, and need not break anything then, is committed at once.
    fn add(&self, entries: Vec<Entry>) -> Result<Option<Handed>, JournalError> {
        let mut state = self.state();
        if let Some(error) = &state.broken {
            return Err(error.clone());
        }
        let before = state.tail;
        let ended = entries.iter().rev().find(|entry| entry.fact.is_rest());
        let rests = ended.is_some();
        let text = ended.map(|entry| searched(&self.header, entry.fact.outcome()));
        let may_be_refused =
            rests || entries.iter().any(|entry| matches!(entry.fact, Fact::Answered { .. } | Fact::Revised { .. }));
        let (worked, now) = (self.worked + self.begun.elapsed(), SystemTime::now());
        let rows = entries.into_iter().map(|entry| state.tail.next(entry, worked, now)).collect();
        let calls = std::mem::take(&mut state.calls);
        let job = Job { run: self.number, id: self.id.clone(), rows, calls, text };
        if !may_be_refused && self.shared.writers.in_company() {
            return Ok(Some(self.shared.hand_over(job)));
        }
        match self.shared.commit_now(&job) {
            Ok(waiting) => {
                state.is_released |= rests;
                drop(state);
                if rests {
                    self.shared.released(&self.id, waiting);
                }
                Ok(None)
            }
            Err(error) => {
                match error {
                    JournalError::Unread(_)
                    | JournalError::NotAsked { .. }
                    | JournalError::Expired { .. }
                    | JournalError::NotKept(_) => {
                        state.tail = before;
                        state.calls = job.calls;
                    }
                    _ => state.broken = Some(error.clone()),
                }
                Err(error)
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves what was sent to the run to its entries.
    fn take_mail(&self) -> Result<Vec<Entry>, JournalError> {
        let mut state = self.state();
        if let Some(error) = &state.broken {
            return Err(error.clone());
        }
        let mut connection = self.shared.connection();
        if unread(&connection, self.number).map_err(self.shared.error("read"))?.is_empty() {
            return Ok(Vec::new());
        }
        self.shared.flush(&mut connection);
        let (worked, now) = (self.worked + self.begun.elapsed(), SystemTime::now());
        let mut tail = state.tail;
        let mut receive = || -> rusqlite::Result<Vec<Entry>> {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let mail = receive(&transaction, self.number, &mut tail, worked, now)?;
            transaction.commit()?;
            Ok(mail)
        };
        let mail = receive().map_err(self.shared.error("written"))?;
        state.tail = tail;
        self.shared.grown.ring(&self.id);
        if mail.iter().any(|entry| entry.fact == Fact::Cancelled) {
            // Nobody else begins it any more. Who waits for it is told when the work has stopped: when this is dropped.
            state.broken = Some(JournalError::Cancelled(self.id.clone()));
        }
        Ok(mail)
    }

    fn release(&self) -> rusqlite::Result<()> {
        let connection = self.shared.connection();
        connection
            .prepare_cached("UPDATE runs SET owner = NULL WHERE number = ?1 AND owner = ?2")?
            .execute((self.number, self.shared.owner_name()))?;
        let waiting = take_waiting(&connection, self.number)?;
        drop(connection);
        self.shared.released(&self.id, waiting);
        Ok(())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.shared.writers.0.fetch_sub(1, Ordering::Relaxed);
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        let (is_released, calls) = (state.is_released, std::mem::take(&mut state.calls));
        if !calls.is_empty()
            && let Err(error) = calls::insert(&self.shared.connection(), self.number, &calls)
        {
            tracing::warn!(run = %self.id, %error, "recordings of calls could not be written; the run itself is whole");
        }
        if !is_released && let Err(error) = self.release() {
            tracing::warn!(run = %self.id, %error, "the run could not be released; it is free when this process ends");
        }
    }
}

#[async_trait]
impl RunWriter for Writer {
    fn run(&self) -> &RunId {
        &self.id
    }

    async fn append(&self, entries: Vec<Entry>) -> Result<(), JournalError> {
        let Some(handed) = self.add(entries)? else { return Ok(()) };
        handed.done().await.map(|_| ()).inspect_err(|error| {
            self.state().broken.get_or_insert_with(|| error.clone());
        })
    }

    fn record(&self, call: RecordedCall) {
        self.state().calls.push(call);
    }

    async fn settled(&self) -> Result<(), JournalError> {
        Ok(())
    }

    async fn receive(&self) -> Result<Vec<Entry>, JournalError> {
        let bell = self.shared.mail.of(&self.id);
        loop {
            let rung = bell.notified();
            let received = self.take_mail()?;
            if !received.is_empty() {
                return Ok(received);
            }
            rung.await;
        }
    }
}
