//! A journal in memory: for tests, benchmarks and runs nobody wants to keep.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use super::{Entry, Journal, JournalError, RunHeader, RunId, RunLock, RunRecord, RunStatus, choose};

/// A journal that lives as long as the process.
#[derive(Default)]
pub struct MemoryJournal {
    runs: Arc<Mutex<Runs>>,
}

#[derive(Default)]
struct Runs {
    records: HashMap<RunId, (RunRecord, Vec<Entry>)>,
    locked: HashSet<RunId>,
}

impl MemoryJournal {
    fn runs(&self) -> MutexGuard<'_, Runs> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct MemoryLock {
    run: RunId,
    runs: Arc<Mutex<Runs>>,
}

impl RunLock for MemoryLock {}

impl Drop for MemoryLock {
    fn drop(&mut self) {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner).locked.remove(&self.run);
    }
}

impl Journal for MemoryJournal {
    fn create(&self, header: &RunHeader) -> Result<(RunId, Box<dyn RunLock>), JournalError> {
        let now = SystemTime::now();
        let id = {
            let mut runs = self.runs();
            let mut id = RunId::random();
            while runs.records.contains_key(&id) {
                id = RunId::random();
            }
            let record = RunRecord {
                id: id.clone(),
                header: header.clone(),
                status: RunStatus::Running,
                created: now,
                updated: now,
                outcome: None,
            };
            runs.records.insert(id.clone(), (record, Vec::new()));
            id
        };
        let lock = self.lock(&id)?;
        Ok((id, lock))
    }

    fn lock(&self, run: &RunId) -> Result<Box<dyn RunLock>, JournalError> {
        if !self.runs().locked.insert(run.clone()) {
            return Err(JournalError::Busy(run.clone()));
        }
        Ok(Box::new(MemoryLock { run: run.clone(), runs: self.runs.clone() }))
    }

    fn append(&self, run: &RunId, entry: &Entry) -> Result<(), JournalError> {
        match self.runs().records.get_mut(run) {
            Some((record, _)) if record.status == RunStatus::Cancelled => Err(JournalError::Cancelled(run.clone())),
            Some((_, entries)) => {
                entries.push(entry.clone());
                Ok(())
            }
            None => Err(JournalError::NoSuchRun(run.to_string())),
        }
    }

    fn set_status(&self, run: &RunId, status: RunStatus, outcome: Option<&str>) -> Result<(), JournalError> {
        match self.runs().records.get_mut(run) {
            Some((record, _)) if record.status == RunStatus::Cancelled && status != RunStatus::Cancelled => {
                Err(JournalError::Cancelled(run.clone()))
            }
            Some((record, _)) if status == RunStatus::Cancelled && record.status.is_final() => match record.status {
                RunStatus::Cancelled => Ok(()),
                status => Err(JournalError::Ended { run: run.clone(), status }),
            },
            Some((record, _)) => {
                record.status = status;
                record.updated = SystemTime::now();
                record.outcome = outcome.map(str::to_owned);
                Ok(())
            }
            None => Err(JournalError::NoSuchRun(run.to_string())),
        }
    }

    fn status(&self, run: &RunId) -> Result<RunStatus, JournalError> {
        let status = self.runs().records.get(run).map(|(record, _)| record.status);
        status.ok_or_else(|| JournalError::NoSuchRun(run.to_string()))
    }

    fn entries(&self, run: &RunId) -> Result<Vec<Entry>, JournalError> {
        match self.runs().records.get(run) {
            Some((_, entries)) => Ok(entries.clone()),
            None => Err(JournalError::NoSuchRun(run.to_string())),
        }
    }

    fn find(&self, name: &str) -> Result<RunRecord, JournalError> {
        choose(self.list()?, name)
    }

    fn list(&self) -> Result<Vec<RunRecord>, JournalError> {
        let mut records: Vec<RunRecord> = self.runs().records.values().map(|(record, _)| record.clone()).collect();
        records.sort_by_key(|record| std::cmp::Reverse(record.created));
        Ok(records)
    }
}
