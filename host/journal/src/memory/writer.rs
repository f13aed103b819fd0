//! Whoever works on a run in memory.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use async_trait::async_trait;

use super::run::{Run, locked};
use super::shared::Shared;
use crate::calls::RecordedCall;
use crate::entry::{Entry, Fact};
use crate::ids::RunId;
use crate::projection::RunStatus;
use crate::rules::answerable;
use crate::store::{JournalError, RunWriter};

/// Writes to a run, until somebody else takes it.
pub(super) struct Writer {
    pub(super) id: RunId,
    pub(super) run: Arc<Mutex<Run>>,
    pub(super) term: u64,
    /// How long it was worked on before this writer took it
    pub(super) worked: Duration,
    pub(super) begun: Instant,
    pub(super) shared: Arc<Shared>,
}

impl Writer {
    fn run(&self) -> Result<MutexGuard<'_, Run>, JournalError> {
        let run = locked(&self.run);
        if run.term != self.term {
            return Err(JournalError::Fenced(self.id.clone()));
        }
        match run.status {
            RunStatus::Cancelled => Err(JournalError::Cancelled(self.id.clone())),
            _ => Ok(run),
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let mut run = locked(&self.run);
        if run.term == self.term && run.owned {
            run.owned = false;
            drop(run);
            self.shared.bells.ring(&self.id);
        }
    }
}

#[async_trait]
impl RunWriter for Writer {
    fn run(&self) -> &RunId {
        &self.id
    }

    async fn append(&self, entries: Vec<Entry>) -> Result<(), JournalError> {
        for entry in &entries {
            if let Fact::Revised { digest } = &entry.fact {
                // Taken before the run, as everywhere.
                let runs = self.shared.runs.lock().unwrap_or_else(PoisonError::into_inner);
                runs.has(digest)?;
            }
        }
        let mut run = self.run()?;
        let rests = entries.iter().any(|entry| entry.fact.is_rest());
        if rests && !run.mail.is_empty() {
            return Err(JournalError::Unread(self.id.clone()));
        }
        for entry in &entries {
            if let Fact::Answered { number, .. } | Fact::Expired { number } = entry.fact {
                // Somebody else may have been first.
                answerable(&self.id, run.of_questions(), entry, number, false)?;
            }
        }
        entries.into_iter().for_each(|entry| run.append(entry));
        run.worked = self.worked + self.begun.elapsed();
        if rests {
            run.owned = false;
        }
        drop(run);
        if rests {
            self.shared.bells.ring(&self.id);
        }
        self.shared.grown.ring(&self.id);
        Ok(())
    }

    fn record(&self, call: RecordedCall) {
        locked(&self.run).calls.push(call);
    }

    async fn settled(&self) -> Result<(), JournalError> {
        Ok(())
    }

    async fn receive(&self) -> Result<Vec<Entry>, JournalError> {
        let bell = self.shared.bells.of(&self.id);
        loop {
            let rung = bell.notified();
            {
                let mut run = self.run()?;
                if !run.mail.is_empty() {
                    let mail = std::mem::take(&mut run.mail);
                    mail.iter().cloned().for_each(|entry| run.append(entry));
                    drop(run);
                    self.shared.grown.ring(&self.id);
                    return Ok(mail);
                }
            }
            rung.await;
        }
    }

    fn times(&self) -> Option<(SystemTime, SystemTime)> {
        let run = self.run().ok().filter(|run| run.term == 0 && !run.owned)?;
        Some((run.created, run.updated))
    }
}
