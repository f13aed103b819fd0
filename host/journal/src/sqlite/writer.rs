//! Writing to a run of the file.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime};

use async_trait::async_trait;
use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::{oneshot, watch};

use super::commit::{Trouble, Work};
use super::entries::{Addition, Waiting};
use super::release::LeftRun;
use super::rows::{Tail, answers, receive, time, unread};
use super::texts::with_outcome;
use super::{Shared, calls, locked};
use crate::calls::RecordedCall;
use crate::entry::{Entry, Fact};
use crate::ids::RunId;
use crate::store::{JournalError, RunWriter};

/// How many entries of a run may be on their way before it waits for them.
const ON_THEIR_WAY: u64 = 64;
/// Bytes of entries above which it waits for them at once: what is on its way is held in memory.
const SMALL: usize = 64 * 1024;
/// How many runs are written at a time before they wait for each other.
const MANY: usize = 8;

pub(super) struct Writer {
    shared: Arc<Shared>,
    id: RunId,
    number: i64,
    /// What can be searched of the run before anything came of it
    searched: String,
    /// How long it was worked on before
    worked: Duration,
    begun: Instant,
    /// None for a run that was taken
    fresh: Option<Fresh>,
    /// Held by whoever numbers entries, until they are in the order in which they are committed
    order: Mutex<()>,
    state: Arc<Mutex<State>>,
    /// The number of the last entry that is committed; also told again when entries were refused
    committed: watch::Sender<u64>,
}

/// What is known of a run that its writer has begun.
pub(super) struct Fresh {
    /// How often the bells of the mail were rung before it began: as long as they were not rung since, nothing was sent to it
    pub(super) rung: u64,
    /// When it was begun
    pub(super) created: i64,
}

struct State {
    tail: Tail,
    /// Recordings that are committed with the next entries
    calls: Vec<RecordedCall>,
    /// Why nothing can be added any more
    broken: Option<JournalError>,
    /// Whether the entry after which the run rests is on its way
    is_resting: bool,
    /// Whether entries were put off that nobody was told to commit
    is_behind: bool,
    is_released: bool,
    /// When it came to rest
    rested: Option<i64>,
}

/// How many runs are being written in this process.
#[derive(Default)]
pub(super) struct Writers(AtomicUsize);

impl Writers {
    pub(super) fn are_some(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }

    fn are_several(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 1
    }

    /// Whether there are so many that each may wait a moment, so that they share commits.
    pub(super) fn are_many(&self) -> bool {
        self.0.load(Ordering::Relaxed) > MANY
    }
}

/// What became of entries.
enum Added {
    /// They are committed in their order, and safe when the writer is settled
    OnItsWay,
    ToBeAwaited(oneshot::Receiver<Result<(), JournalError>>),
}

/// Entries that are on their way.
struct Add {
    shared: Arc<Shared>,
    state: Arc<Mutex<State>>,
    /// The end of the run before them
    before: Tail,
    addition: Addition,
    waiting: Waiting,
    committed: watch::Sender<u64>,
    /// Who waits for them; most entries are on their way without anybody
    done: Option<oneshot::Sender<Result<(), JournalError>>>,
}

impl Work for Add {
    fn write(&mut self, connection: &Connection) -> Result<(), Trouble> {
        self.waiting = self.addition.write(connection)?;
        Ok(())
    }

    fn tell(self: Box<Self>, outcome: Result<(), JournalError>) {
        let Add { shared, state, before, addition, waiting, committed, done } = *self;
        let rests = addition.rests();
        let added = addition.rows.len() as u64;
        let id = addition.id;
        {
            let mut state = locked(&state);
            state.is_resting &= !rests;
            match &outcome {
                Ok(()) if rests => {
                    state.is_released = true;
                    state.rested = addition.rows.iter().rfind(|row| row.change.is_some()).map(|row| row.at);
                }
                Ok(()) => {}
                Err(
                    JournalError::Unread(_)
                    | JournalError::NotAsked { .. }
                    | JournalError::Expired { .. }
                    | JournalError::NotKept(_),
                ) => {
                    state.tail = before;
                    let later = std::mem::replace(&mut state.calls, addition.calls);
                    state.calls.extend(later);
                }
                Err(error) => {
                    state.broken.get_or_insert_with(|| error.clone());
                }
            }
        }
        // Works of one run may be told in another order than they were committed in, by two threads.
        committed.send_modify(|committed| {
            if outcome.is_ok() {
                *committed = (*committed).max(before.number + added);
            }
        });
        shared.grown.ring(&id);
        match (&outcome, rests) {
            (Ok(()), true) => shared.released(&id, waiting),
            // Messages were left where they are while the run seemed to come to rest.
            (Err(_), true) => shared.mail.ring(&id),
            _ => {}
        }
        if let Some(done) = done {
            let _ = done.send(outcome);
        }
    }

    fn is_single(&self) -> bool {
        self.addition.is_single()
    }
}

impl Writer {
    pub(super) fn new(
        shared: Arc<Shared>,
        id: RunId,
        number: i64,
        searched: String,
        tail: Tail,
        worked: Duration,
    ) -> Self {
        shared.writers.0.fetch_add(1, Ordering::Relaxed);
        let (calls, broken, rested) = (Vec::new(), None, None);
        let state = State { tail, calls, broken, is_resting: false, is_behind: false, is_released: false, rested };
        let (begun, order, state) = (Instant::now(), Mutex::default(), Arc::new(Mutex::new(state)));
        let committed = watch::Sender::new(tail.number);
        Writer { shared, id, number, searched, worked, begun, fresh: None, order, state, committed }
    }

    /// The same, of a run that has just begun.
    pub(super) fn of_fresh(mut self, fresh: Fresh) -> Self {
        self.fresh = Some(fresh);
        self
    }

    /// The same, of a run that nobody has: it only names the run.
    pub(super) fn released(self) -> Self {
        self.state().is_released = true;
        self
    }

    /// Numbers the entries and commits them or hands them over, in one step, so that they are committed in the order of their
    /// numbers. What may be refused while others add to the run is committed at once, since a refusal takes numbers back. What
    /// `may_be_put_off` waits for whoever commits next.
    fn add(&self, entries: Vec<Entry>, may_be_put_off: bool) -> Result<Added, JournalError> {
        let _order = locked(&self.order);
        let ended = entries.iter().rev().find(|entry| entry.fact.is_rest());
        let rests = ended.is_some();
        // A new run without an outcome is found by what it was begun with.
        let said = ended.map(|entry| entry.fact.outcome()).filter(|outcome| outcome.is_some() || self.fresh.is_none());
        let text = said.map(|outcome| with_outcome(self.searched.clone(), outcome));
        let may_be_refused =
            entries.iter().any(|entry| answers(entry).is_some() || matches!(entry.fact, Fact::Revised { .. }));
        let (worked, now) = (self.worked + self.begun.elapsed(), SystemTime::now());
        let mut add = {
            let mut state = self.state();
            if let Some(error) = &state.broken {
                return Err(error.clone());
            }
            if state.is_resting {
                return Err(JournalError::Fenced(self.id.clone()));
            }
            state.is_resting = rests;
            let before = state.tail;
            let rows = entries.into_iter().map(|entry| state.tail.next(entry, worked, now)).collect();
            let calls = std::mem::take(&mut state.calls);
            let addition = Addition { run: self.number, id: self.id.clone(), rows, calls, text };
            let (shared, state, committed) = (self.shared.clone(), self.state.clone(), self.committed.clone());
            Box::new(Add { shared, state, before, addition, waiting: Vec::new(), committed, done: None })
        };
        let numbered = add.before.number + add.addition.rows.len() as u64;
        let is_small = add.addition.bytes() <= SMALL;
        let need_not_be_awaited =
            !may_be_refused && !rests && is_small && numbered.saturating_sub(*self.committed.borrow()) <= ON_THEIR_WAY;
        // Nobody commits for a run that is over.
        if may_be_put_off && need_not_be_awaited && !self.state().is_released {
            self.shared.put_off(add);
            self.state().is_behind = true;
            return Ok(Added::OnItsWay);
        }
        let is_handed_over = !may_be_refused && self.shared.writers.are_several();
        if is_handed_over && need_not_be_awaited {
            self.shared.commit(add, true);
            return Ok(Added::OnItsWay);
        }
        let (done, outcome) = oneshot::channel();
        add.done = Some(done);
        self.shared.commit(add, is_handed_over);
        Ok(Added::ToBeAwaited(outcome))
    }

    async fn append_when(&self, entries: Vec<Entry>, may_be_put_off: bool) -> Result<(), JournalError> {
        match self.add(entries, may_be_put_off)? {
            Added::OnItsWay => Ok(()),
            Added::ToBeAwaited(outcome) => outcome.await.map_err(|_| self.shared.gone())?,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }

    /// Moves what was sent to the run to its entries.
    fn take_mail(&self) -> Result<Vec<Entry>, JournalError> {
        let has_mail = |connection: &Connection| unread(connection, self.number).map(|unread| !unread.is_empty());
        let was_sent_nothing = self.fresh.as_ref().is_some_and(|fresh| fresh.rung == self.shared.mail.rung());
        if (was_sent_nothing || !self.shared.read(has_mail)?) && self.state().broken.is_none() {
            return Ok(Vec::new());
        }
        let _order = locked(&self.order);
        let mut connection = self.shared.connection();
        let outcomes = self.shared.flush(&mut connection);
        let received = self.receive_with(&mut connection);
        drop(connection);
        drop(outcomes);
        received
    }

    fn receive_with(&self, connection: &mut Connection) -> Result<Vec<Entry>, JournalError> {
        let mut state = self.state();
        if let Some(error) = &state.broken {
            return Err(error.clone());
        }
        if state.is_resting {
            return Ok(Vec::new());
        }
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
        // What was committed with it is told later.
        self.committed.send_modify(|committed| *committed = (*committed).max(tail.number));
        self.shared.grown.ring(&self.id);
        if mail.iter().any(|entry| entry.fact == Fact::Cancelled) {
            // Nobody else begins it any more. Who waits for it is told when the work has stopped: when this is dropped.
            state.broken = Some(JournalError::Cancelled(self.id.clone()));
        }
        Ok(mail)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.shared.writers.0.fetch_sub(1, Ordering::Relaxed);
        let (is_released, calls) = {
            let mut state = self.state();
            (state.is_released, std::mem::take(&mut state.calls))
        };
        if !calls.is_empty()
            && let Err(error) = calls::insert(&self.shared.connection(), self.number, &calls)
        {
            tracing::warn!(run = %self.id, %error, "recordings of calls could not be written; the run itself is whole");
        }
        if is_released {
            return;
        }
        let left = LeftRun { id: self.id.clone(), number: self.number, last: self.state().tail.number };
        if let Err(error) = self.shared.release(&left) {
            tracing::warn!(run = %self.id, %error, "the run cannot be released; it is tried again, and the run is free when this process ends");
            self.shared.release_later(left);
        }
    }
}

#[async_trait]
impl RunWriter for Writer {
    fn run(&self) -> &RunId {
        &self.id
    }

    async fn append(&self, entries: Vec<Entry>) -> Result<(), JournalError> {
        self.append_when(entries, false).await
    }

    async fn append_later(&self, entries: Vec<Entry>) -> Result<(), JournalError> {
        self.append_when(entries, true).await
    }

    fn catch_up(&self) -> Result<(), JournalError> {
        // Whoever adds entries now has put them into the queue when this is had.
        let _order = locked(&self.order);
        if !std::mem::take(&mut self.state().is_behind) {
            return Ok(());
        }
        if self.shared.writers.are_several() {
            self.shared.hurry();
            return Ok(());
        }
        self.shared.commit_waiting();
        self.state().broken.clone().map_or(Ok(()), Err)
    }

    fn record(&self, call: RecordedCall) {
        self.state().calls.push(call);
    }

    async fn settled(&self) -> Result<(), JournalError> {
        let mut committed = self.committed.subscribe();
        // What others add from now on may be put off again.
        let appended = self.state().tail.number;
        self.catch_up()?;
        loop {
            {
                let state = self.state();
                if let Some(error) = &state.broken {
                    return Err(error.clone());
                }
                // Entries that were refused have given their numbers back.
                if *committed.borrow_and_update() >= appended.min(state.tail.number) {
                    return Ok(());
                }
            }
            committed.changed().await.map_err(|_| self.shared.gone())?;
        }
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

    fn times(&self) -> Option<(SystemTime, SystemTime)> {
        let (created, rested) = (self.fresh.as_ref()?.created, self.state().rested?);
        Some((time(created), time(rested)))
    }
}
