//! Commits: one at a time, with what several runs want to write put into one.
//!
//! What is written while others write, too, is handed over to a thread of the store, which puts everything that waits into one
//! transaction: many runs share its cost, and the wait for the disk, and no task of theirs is held up by either. What is refused
//! before it wrote anything is no harm to the others. A transaction that fails otherwise is made again for each alone, so that
//! each gets its own answer. (A savepoint for each would do, too, but at every one of them the index of texts goes to the file.)
//! The only writer of a process commits by itself and pays for no other thread. What may be put off waits in the same queue and
//! wakes nobody: whoever commits next takes it along.
//!
//! Where many runs are written, the thread pauses after a commit. What comes meanwhile is committed together, and the thread is not woken
//! for each of it. What comes after a quiet moment is committed at once.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior};

use super::Shared;
use crate::store::JournalError;

/// How long nothing is committed after a commit, where many runs are written.
const PAUSE: Duration = Duration::from_millis(1);

/// Something to be written.
pub(super) trait Work: Send {
    /// Writes it, inside of a transaction. It is written again if that fails.
    fn write(&mut self, connection: &Connection) -> Result<(), Trouble>;

    /// Told once, when it is committed or is not going to be. Nothing of the store is locked.
    fn tell(self: Box<Self>, outcome: Result<(), JournalError>);

    /// Whether it is a single statement, which is a transaction of its own.
    fn is_single(&self) -> bool {
        false
    }
}

/// Why something is not written.
pub(super) enum Trouble {
    /// By what the file says
    Refused(JournalError),
    Store(rusqlite::Error),
}

impl From<rusqlite::Error> for Trouble {
    fn from(error: rusqlite::Error) -> Self {
        Trouble::Store(error)
    }
}

/// What became of works. They are told when it is dropped, which has to be after the connection was given back.
#[must_use]
#[derive(Default)]
pub(super) struct Outcomes(Vec<(Box<dyn Work>, Result<(), JournalError>)>);

impl Drop for Outcomes {
    fn drop(&mut self) {
        self.0.drain(..).for_each(|(work, outcome)| work.tell(outcome));
    }
}

/// What is to be committed, in its order.
#[derive(Default)]
pub(super) struct Queue {
    works: Mutex<Works>,
    changed: Condvar,
}

#[derive(Default)]
struct Works {
    open: Vec<Box<dyn Work>>,
    /// Whether a thread commits them
    is_served: bool,
    is_closed: bool,
}

impl Queue {
    fn works(&self) -> MutexGuard<'_, Works> {
        self.works.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the thread.
    pub(super) fn close(&self) {
        self.works().is_closed = true;
        self.changed.notify_all();
    }

    /// Waits until there is something; `false` if nothing comes any more.
    fn wait(&self) -> bool {
        let mut works = self.works();
        while works.open.is_empty() {
            if works.is_closed {
                return false;
            }
            works = self.changed.wait(works).unwrap_or_else(PoisonError::into_inner);
        }
        true
    }
}

/// Says that nobody commits any more, however that came: the next who hands something over starts another thread.
struct Serving<'q>(&'q Queue);

impl Drop for Serving<'_> {
    fn drop(&mut self) {
        self.0.works().is_served = false;
    }
}

fn serve(queue: &Queue, shared: &Weak<Shared>) {
    let _serving = Serving(queue);
    while queue.wait() {
        let Some(shared) = shared.upgrade() else { return };
        shared.commit_waiting();
        let pauses = shared.writers.are_many();
        drop(shared);
        if pauses {
            std::thread::sleep(PAUSE);
        }
    }
}

impl Shared {
    /// Commits something: together with what others write if there are others, otherwise at once.
    pub(super) fn commit(self: &Arc<Self>, work: Box<dyn Work>, has_company: bool) {
        match has_company {
            true => self.hand_over(work),
            false => self.commit_now(work),
        }
    }

    /// Commits something at once, together with all that was handed over or put off before.
    pub(super) fn commit_now(&self, work: Box<dyn Work>) {
        let mut connection = self.connection();
        self.put_off(work);
        let outcomes = self.flush(&mut connection);
        drop(connection);
        drop(outcomes);
    }

    /// Puts something behind all that waits to be committed, and wakes nobody for it.
    pub(super) fn put_off(&self, work: Box<dyn Work>) {
        self.queue.works().open.push(work);
    }

    /// Hands something over, to be committed together with what others hand over, after all that was handed over before.
    fn hand_over(self: &Arc<Self>, work: Box<dyn Work>) {
        self.put_off(work);
        self.hurry();
    }

    /// Has what waits committed by the thread.
    pub(super) fn hurry(self: &Arc<Self>) {
        let is_served = {
            let mut works = self.queue.works();
            if !works.is_served {
                let (queue, shared) = (self.queue.clone(), Arc::downgrade(self));
                let thread = std::thread::Builder::new().name("journal-commit".to_owned());
                works.is_served = thread.spawn(move || serve(&queue, &shared)).is_ok();
            }
            works.is_served
        };
        match is_served {
            true => self.queue.changed.notify_one(),
            // There can be no more threads at this moment.
            false => self.commit_waiting(),
        }
    }

    /// Commits what was handed over.
    pub(super) fn commit_waiting(&self) {
        let mut connection = self.connection();
        let outcomes = self.flush(&mut connection);
        drop(connection);
        drop(outcomes);
    }

    /// Commits what was handed over. Works are only taken by whoever has the connection, so nothing overtakes them.
    pub(super) fn flush(&self, connection: &mut Connection) -> Outcomes {
        let mut works = std::mem::take(&mut self.queue.works().open);
        let shared = if works.len() > 1 { together(connection, &mut works).ok().flatten() } else { None };
        let outcomes =
            shared.unwrap_or_else(|| works.iter_mut().map(|work| self.alone(connection, &mut **work)).collect());
        Outcomes(works.into_iter().zip(outcomes).collect())
    }

    /// Commits one thing by itself.
    fn alone(&self, connection: &mut Connection, work: &mut dyn Work) -> Result<(), JournalError> {
        let mut write = || -> Result<(), Trouble> {
            if work.is_single() {
                return work.write(connection);
            }
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            work.write(&transaction)?;
            Ok(transaction.commit()?)
        };
        write().map_err(|trouble| self.explain(trouble))
    }

    /// The error of whoever waits for something that is never committed.
    pub(super) fn gone(&self) -> JournalError {
        let cause = "what writes it broke off; go on with the run, nothing that was committed is lost".to_owned();
        JournalError::Store { path: self.path.display().to_string(), doing: "written", cause }
    }

    pub(super) fn explain(&self, trouble: Trouble) -> JournalError {
        match trouble {
            Trouble::Refused(error) => error,
            Trouble::Store(error) => self.error("written")(error),
        }
    }
}

/// Commits all of them, apart from those that are refused; nothing if one was refused when it had written something.
fn together(
    connection: &mut Connection,
    works: &mut [Box<dyn Work>],
) -> rusqlite::Result<Option<Vec<Result<(), JournalError>>>> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut outcomes = Vec::with_capacity(works.len());
    for work in works {
        let written = transaction.total_changes();
        outcomes.push(match work.write(&transaction) {
            Ok(()) => Ok(()),
            Err(Trouble::Refused(error)) if transaction.total_changes() == written => Err(error),
            Err(Trouble::Refused(_)) => return Ok(None),
            Err(Trouble::Store(error)) => return Err(error),
        });
    }
    transaction.commit()?;
    Ok(Some(outcomes))
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};
    use std::time::Duration;

    use rusqlite::Connection;
    use tokio::sync::oneshot;

    use super::super::SqliteStore;
    use super::{Trouble, Work};
    use crate::entry::{Entry, Fact, RunHeader};
    use crate::ids::RunId;
    use crate::store::{JournalError, RunStore as _};

    /// Writes a row of this name, and then is refused or not.
    struct Row {
        name: Option<&'static str>,
        is_refused: bool,
        done: oneshot::Sender<Result<(), JournalError>>,
    }

    impl Work for Row {
        fn write(&mut self, connection: &Connection) -> Result<(), Trouble> {
            if let Some(name) = self.name {
                connection.execute("INSERT INTO waits (run, owner) VALUES (1, ?1)", [name])?;
            }
            match self.is_refused {
                true => Err(Trouble::Refused(JournalError::ThreadBusy(RunId::from("other".to_owned())))),
                false => Ok(()),
            }
        }

        fn tell(self: Box<Self>, outcome: Result<(), JournalError>) {
            let _ = self.done.send(outcome);
        }
    }

    /// What is in the file when such works were committed together, and what each was told.
    fn committed(works: &[(Option<&'static str>, bool)]) -> (Vec<String>, Vec<bool>) {
        let folder = tempfile::tempdir().expect("a folder");
        let store = SqliteStore::open(&folder.path().join("runs.db")).expect("opened");
        let mut told = Vec::new();
        for (name, is_refused) in works {
            let (done, outcome) = oneshot::channel();
            store.shared.queue.works().open.push(Box::new(Row { name: *name, is_refused: *is_refused, done }));
            told.push(outcome);
        }
        store.shared.commit_waiting();
        let told = told.iter_mut().map(|outcome| outcome.try_recv().expect("told").is_ok()).collect();
        let rows = store.shared.read(|connection| {
            let mut statement = connection.prepare("SELECT owner FROM waits ORDER BY owner")?;
            statement.query_map([], |row| row.get(0))?.collect()
        });
        (rows.expect("read"), told)
    }

    fn header() -> RunHeader {
        RunHeader {
            graph: "test".into(),
            source: "test".into(),
            digest: String::new(),
            kept: false,
            given: Default::default(),
        }
    }

    fn fired() -> Entry {
        Entry::of_run(Fact::TimerFired { node: "n".to_owned() })
    }

    #[tokio::test]
    async fn what_is_put_off_is_committed_with_what_comes_next() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = SqliteStore::open(&folder.path().join("runs.db")).expect("opened");
        let writer = store.create(&header(), None).await.expect("begun");
        let waiting = || store.shared.queue.works().open.len();
        for put_off in 1..=2 {
            writer.append_later(vec![fired()]).await.expect("put off");
            assert_eq!(waiting(), put_off);
        }
        writer.append(vec![fired()]).await.expect("committed");
        assert_eq!(waiting(), 0);
        writer.append_later(vec![fired()]).await.expect("put off");
        writer.catch_up().expect("committed");
        assert_eq!(waiting(), 0);
        let history = store.history(writer.run()).await.expect("read");
        assert_eq!(history.whole().expect("whole").len(), 5);
    }

    #[test]
    fn what_is_refused_harms_no_other_and_leaves_nothing() {
        let refused_at_once = [(Some("a"), false), (None, true), (Some("b"), false)];
        assert_eq!(committed(&refused_at_once), (vec!["a".into(), "b".into()], vec![true, false, true]));
        let refused_late = [(Some("a"), false), (Some("x"), true), (Some("b"), false)];
        assert_eq!(committed(&refused_late), (vec!["a".into(), "b".into()], vec![true, false, true]));
    }

    #[test]
    fn what_the_file_does_not_take_harms_no_other() {
        let twice = [(Some("a"), false), (Some("a"), false), (Some("b"), false)];
        assert_eq!(committed(&twice), (vec!["a".into(), "b".into()], vec![true, false, true]));
    }

    #[tokio::test]
    async fn a_run_is_settled_in_whichever_order_its_entries_are_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = SqliteStore::open(&folder.path().join("runs.db")).expect("opened");
        let writer = store.create(&header(), None).await.expect("begun");
        let _company = store.create(&header(), None).await.expect("begun");
        let works = {
            // Nobody commits meanwhile.
            let connection = store.shared.connection();
            for _ in 0..2 {
                let appended = pin!(writer.append(vec![fired()])).poll(&mut Context::from_waker(Waker::noop()));
                assert!(matches!(appended, Poll::Ready(Ok(()))), "it is on its way");
            }
            let mut works = std::mem::take(&mut store.shared.queue.works().open);
            assert_eq!(works.len(), 2);
            for work in &mut works {
                assert!(work.write(&connection).is_ok());
            }
            works
        };
        works.into_iter().rev().for_each(|work| work.tell(Ok(())));
        let settled = tokio::time::timeout(Duration::from_secs(60), writer.settled()).await;
        settled.expect("it waits for what was told").expect("committed");
    }

    #[tokio::test]
    async fn whoever_was_not_told_that_a_run_rests_takes_it_from_nobody() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = SqliteStore::open(&folder.path().join("runs.db")).expect("opened");
        let writer = store.create(&header(), None).await.expect("begun");
        let _company = store.create(&header(), None).await.expect("begun");
        let run = writer.run().clone();
        let works = {
            // Nobody commits meanwhile.
            let connection = store.shared.connection();
            let rests = vec![Entry::of_run(Fact::Waiting)];
            let appended = pin!(writer.append(rests)).poll(&mut Context::from_waker(Waker::noop()));
            assert!(appended.is_pending(), "it is told when it is committed");
            let mut works = std::mem::take(&mut store.shared.queue.works().open);
            assert_eq!(works.len(), 1);
            for work in &mut works {
                assert!(work.write(&connection).is_ok());
            }
            works
        };
        // It is committed, so somebody else of this process takes it; the one before gives up before it is told.
        let taken = store.take(&run, Fact::Resumed).await.expect("it rests");
        drop(writer);
        works.into_iter().for_each(|work| work.tell(Ok(())));
        let again = store.take(&run, Fact::Resumed).await;
        assert!(matches!(again, Err(JournalError::Busy(_))), "somebody works on it");
        drop(taken);
    }
}
