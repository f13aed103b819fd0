//! Commits: one at a time, with what several runs want to add put into one.
//!
//! Whoever finds nobody committing does it, for itself and for all who come meanwhile: many writers share a transaction, and a
//! wait for the disk. The only writer of a process commits by itself and pays for no other thread. A transaction that fails is made again for each of its jobs alone, so
//! that each gets its own answer.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, ErrorCode, TransactionBehavior};
use tokio::sync::oneshot;

use super::artefacts::revise;
use super::rows::{EntryRow, index_text, insert};
use super::{Shared, calls};
use crate::calls::RecordedCall;
use crate::ids::RunId;
use crate::store::JournalError;

/// How many transactions one caller makes for others before somebody else has to.
const IN_A_ROW: usize = 16;

/// Entries of one run that are added together, or not at all.
pub(super) struct Job {
    pub(super) run: i64,
    pub(super) id: RunId,
    pub(super) rows: Vec<EntryRow>,
    /// Recordings that are committed with them
    pub(super) calls: Vec<RecordedCall>,
    /// What the run can be found by from now on
    pub(super) text: Option<String>,
}

/// Processes that wait for the run to be released, by the names of their pipes.
pub(super) type Waiting = Vec<String>;

type Done = Result<Waiting, JournalError>;

/// What is to be committed.
#[derive(Default)]
pub(super) struct Queue(Mutex<Jobs>);

#[derive(Default)]
struct Jobs {
    open: Vec<(Job, oneshot::Sender<Done>)>,
    /// Whether somebody commits
    is_led: bool,
}

/// A job that was handed over, in its order. It is committed whether or not somebody waits for it.
pub(super) struct Handed {
    done: oneshot::Receiver<Done>,
    /// Set where nobody else commits
    lead: Option<Lead>,
}

impl Queue {
    fn jobs(&self) -> MutexGuard<'_, Jobs> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Handed {
    /// Waits until the job is committed.
    pub(super) async fn done(mut self) -> Done {
        drop(self.lead.take());
        let lost = || "whoever commits is gone".to_owned();
        let gone = |_| JournalError::Store { path: String::new(), doing: "written", cause: lost() };
        self.done.await.map_err(gone)?
    }
}

/// Whoever commits. When it is dropped, whatever way, it commits what is there.
struct Lead(Arc<Shared>);

impl Drop for Lead {
    fn drop(&mut self) {
        for _ in 0..IN_A_ROW {
            let mut connection = self.0.connection();
            if !self.0.flush(&mut connection) {
                return;
            }
        }
        let next = Lead(self.0.clone());
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { drop(next) });
        }
    }
}

pub(super) enum Trouble {
    Refused(JournalError),
    Store(rusqlite::Error),
}

impl From<rusqlite::Error> for Trouble {
    fn from(error: rusqlite::Error) -> Self {
        Trouble::Store(error)
    }
}

impl Shared {
    /// Hands a job over, to be committed together with those of other runs.
    pub(super) fn hand_over(self: &Arc<Self>, job: Job) -> Handed {
        let (sender, done) = oneshot::channel();
        let mut jobs = self.queue.jobs();
        jobs.open.push((job, sender));
        let lead = (!jobs.is_led).then(|| Lead(self.clone()));
        jobs.is_led = true;
        Handed { done, lead }
    }

    /// Commits a job at once, after all that were handed over.
    pub(super) fn commit_now(&self, job: &Job) -> Done {
        let mut connection = self.connection();
        self.flush(&mut connection);
        let done = self.alone(&mut connection, job);
        self.grown.ring(&job.id);
        done
    }

    /// Commits what was handed over; `false` if there was nothing. Jobs are only taken by whoever has the connection, so
    /// nothing overtakes them.
    pub(super) fn flush(&self, connection: &mut Connection) -> bool {
        let open = {
            let mut jobs = self.queue.jobs();
            if jobs.open.is_empty() {
                jobs.is_led = false;
                return false;
            }
            std::mem::take(&mut jobs.open)
        };
        let (jobs, senders): (Vec<Job>, Vec<oneshot::Sender<Done>>) = open.into_iter().unzip();
        for (done, sender) in self.commit(connection, &jobs).into_iter().zip(senders) {
            let _ = sender.send(done);
        }
        true
    }

    fn commit(&self, connection: &mut Connection, jobs: &[Job]) -> Vec<Done> {
        let done = self.commit_all(connection, jobs);
        jobs.iter().for_each(|job| self.grown.ring(&job.id));
        done
    }

    fn commit_all(&self, connection: &mut Connection, jobs: &[Job]) -> Vec<Done> {
        if let [job] = jobs {
            return vec![self.alone(connection, job)];
        }
        let mut together = || -> Result<Vec<Waiting>, Trouble> {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let done = jobs.iter().map(|job| add(&transaction, job)).collect::<Result<Vec<Waiting>, Trouble>>()?;
            transaction.commit()?;
            Ok(done)
        };
        match together() {
            Ok(done) => done.into_iter().map(Ok).collect(),
            Err(_) => jobs.iter().map(|job| self.alone(connection, job)).collect(),
        }
    }

    fn alone(&self, connection: &mut Connection, job: &Job) -> Done {
        let done = match &job.rows[..] {
            // One statement is a transaction of its own.
            [row] if row.stands_alone() && job.text.is_none() && job.calls.is_empty() => add(connection, job),
            _ => connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(Trouble::from).and_then(
                |transaction| {
                    let waiting = add(&transaction, job)?;
                    transaction.commit()?;
                    Ok(waiting)
                },
            ),
        };
        done.map_err(|trouble| self.explain(trouble))
    }

    pub(super) fn explain(&self, trouble: Trouble) -> JournalError {
        match trouble {
            Trouble::Refused(error) => error,
            Trouble::Store(error) => self.error("written")(error),
        }
    }
}

/// Adds the entries of a job.
pub(super) fn add(connection: &Connection, job: &Job) -> Result<Waiting, Trouble> {
    let rests = job.rows.iter().any(|row| row.change.as_ref().is_some_and(|change| change.rests));
    if rests {
        let unread: bool = connection
            .prepare_cached("SELECT EXISTS (SELECT 1 FROM mail WHERE run = ?1 AND body IS NOT NULL)")?
            .query_row([job.run], |row| row.get(0))?;
        if unread {
            return Err(Trouble::Refused(JournalError::Unread(job.id.clone())));
        }
    }
    for row in &job.rows {
        if let Some(subject) = &row.answers {
            let taken = connection
                .prepare_cached(
                    "INSERT OR IGNORE INTO mail (run, subject, place, kind, body) VALUES (?1, ?2, ?3, ?4, NULL)",
                )?
                .execute((job.run, subject, row.place.as_str(), row.kind))?;
            if taken == 0 {
                let (run, question) = (job.id.clone(), subject.clone());
                let first: String = connection
                    .prepare_cached("SELECT kind FROM mail WHERE run = ?1 AND subject = ?2")?
                    .query_row((job.run, subject), |row| row.get(0))?;
                return Err(Trouble::Refused(match first.as_str() {
                    "expired" => JournalError::Expired { run, question },
                    _ => JournalError::NotAsked { run, question, why: "has an answer already" },
                }));
            }
        }
        if let Some(digest) = &row.revises
            && !revise(connection, job.run, digest)?
        {
            return Err(Trouble::Refused(JournalError::NotKept(digest.clone())));
        }
        insert(connection, job.run, row).map_err(|error| match error.sqlite_error_code() {
            // Somebody else added an entry of this number.
            Some(ErrorCode::ConstraintViolation) => Trouble::Refused(JournalError::Fenced(job.id.clone())),
            _ => Trouble::Store(error),
        })?;
    }
    calls::insert(connection, job.run, &job.calls)?;
    if let Some(text) = &job.text {
        index_text(connection, job.run, text)?;
    }
    if rests { Ok(take_waiting(connection, job.run)?) } else { Ok(Vec::new()) }
}

/// The processes that wait for a run, which need not be remembered any more.
pub(super) fn take_waiting(connection: &Connection, run: i64) -> rusqlite::Result<Waiting> {
    let mut statement = connection.prepare_cached("DELETE FROM waits WHERE run = ?1 RETURNING owner")?;
    statement.query_map([run], |row| row.get(0))?.collect()
}
