//! A run in memory.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use crate::calls::RecordedCall;
use crate::entry::{Entry, Fact, RunHeader};
use crate::ids::{EntryPath, RunId};
use crate::projection::RunStatus;
use crate::store::{RunQuery, RunRecord, RunSummary, words};
use crate::timers::Timers;

/// A run, and how it stands.
pub(super) struct Run {
    pub(super) id: RunId,
    pub(super) header: RunHeader,
    /// The revisions that it was moved to, the last one last
    pub(super) revised: Vec<String>,
    pub(super) entries: Vec<Entry>,
    /// Which of them are about questions, by their places in the list
    questions: Vec<usize>,
    /// When each of them was written
    pub(super) times: Vec<SystemTime>,
    pub(super) calls: Vec<RecordedCall>,
    /// What was sent and not received
    pub(super) mail: Vec<Entry>,
    pub(super) status: RunStatus,
    pub(super) created: SystemTime,
    pub(super) updated: SystemTime,
    /// How often it was taken: a writer of an earlier time is refused
    pub(super) term: u64,
    pub(super) owned: bool,
    pub(super) worked: Duration,
    /// Timers that were set and have not fired, and questions that are open and expire
    pub(super) timers: HashMap<(EntryPath, String), SystemTime>,
    /// Where these are with those of all other runs, as long as this one has not ended
    pub(super) in_order: Arc<Timers>,
}

impl Run {
    /// One that has just begun.
    pub(super) fn begun(id: &RunId, header: &RunHeader, owned: bool, in_order: &Arc<Timers>) -> Self {
        let now = SystemTime::now();
        Run {
            id: id.clone(),
            header: header.clone(),
            revised: Vec::new(),
            entries: vec![Entry::of_run(Fact::Started(header.clone()))],
            questions: Vec::new(),
            times: vec![now],
            calls: Vec::new(),
            mail: Vec::new(),
            status: RunStatus::Running,
            created: now,
            updated: now,
            term: 0,
            owned,
            worked: Duration::ZERO,
            timers: HashMap::new(),
            in_order: in_order.clone(),
        }
    }

    pub(super) fn append(&mut self, entry: Entry) {
        if let Some(status) = entry.fact.status() {
            self.change(status);
        }
        if let Some((name, at)) = entry.fact.timer() {
            let key = (entry.place.clone(), name);
            let before = self.timers.remove(&key);
            before.into_iter().for_each(|before| self.in_order.remove(before, &self.id, &key));
            if let Some(at) = at {
                self.in_order.add(at, &self.id, &key);
                self.timers.insert(key, at);
            }
        }
        if let Fact::Revised { digest } = &entry.fact {
            self.revised.push(digest.clone());
        }
        if matches!(entry.fact, Fact::Asked { .. } | Fact::Answered { .. } | Fact::Expired { .. }) {
            self.questions.push(self.entries.len());
        }
        self.times.push(SystemTime::now());
        self.entries.push(entry);
    }

    /// The same, of an entry that was written before.
    pub(super) fn append_at(&mut self, entry: Entry, at: SystemTime) {
        self.append(entry);
        if let Some(last) = self.times.last_mut() {
            *last = at;
        }
    }

    /// How it stands from now on. What has ended waits for no time, unless it goes on.
    pub(super) fn change(&mut self, status: RunStatus) {
        match (self.status.is_final(), status.is_final()) {
            (false, true) => self.timers.iter().for_each(|(key, at)| self.in_order.remove(*at, &self.id, key)),
            (true, false) => self.timers.iter().for_each(|(key, at)| self.in_order.add(*at, &self.id, key)),
            _ => {}
        }
        self.status = status;
        self.updated = SystemTime::now();
    }

    pub(super) fn everything(&self) -> Vec<Entry> {
        self.entries.iter().chain(&self.mail).cloned().collect()
    }

    /// What is about questions, and what was sent.
    pub(super) fn of_questions(&self) -> impl Iterator<Item = &Entry> {
        self.questions.iter().filter_map(|place| self.entries.get(*place)).chain(&self.mail)
    }

    pub(super) fn status(&self) -> RunStatus {
        match self.status {
            _ if self.mail.iter().any(|entry| entry.fact == Fact::Cancelled) => RunStatus::Cancelled,
            RunStatus::Running if !self.owned => RunStatus::Interrupted,
            status => status,
        }
    }

    pub(super) fn open_questions(&self) -> u64 {
        let (mut asked, mut closed) = (0_u64, 0_u64);
        for entry in self.of_questions() {
            match entry.fact {
                Fact::Asked { .. } => asked += 1,
                Fact::Answered { .. } | Fact::Expired { .. } => closed += 1,
                _ => {}
            }
        }
        asked.saturating_sub(closed)
    }

    /// The revisions that it was begun and went on with, the last one last.
    pub(super) fn revisions(&self) -> impl DoubleEndedIterator<Item = &String> {
        self.header.kept.then_some(&self.header.digest).into_iter().chain(&self.revised)
    }

    pub(super) fn outcome(&self) -> Option<&str> {
        self.entries.last().and_then(|entry| entry.fact.outcome())
    }

    pub(super) fn summary(&self, id: &RunId) -> RunSummary {
        RunSummary {
            id: id.clone(),
            graph: self.header.graph.clone(),
            source: self.header.source.clone(),
            thread: self.header.thread().map(str::to_owned),
            status: self.status(),
            created: self.created,
            updated: self.updated,
            outcome: self.outcome().map(str::to_owned),
        }
    }

    pub(super) fn record(&self, id: &RunId) -> RunRecord {
        RunRecord {
            id: id.clone(),
            header: self.header.clone(),
            revision: self.revisions().last().cloned(),
            status: self.status(),
            created: self.created,
            updated: self.updated,
            outcome: self.outcome().map(str::to_owned),
        }
    }

    pub(super) fn matches(&self, query: &RunQuery) -> bool {
        let text = || {
            let words = [Some(self.header.graph.as_str()), self.header.input(), self.outcome()];
            words.into_iter().flatten().collect::<Vec<_>>().join("\n").to_lowercase()
        };
        (query.statuses.is_empty() || query.statuses.contains(&self.status()))
            && query.graph.as_ref().is_none_or(|graph| *graph == self.header.graph)
            && query.sources.as_ref().is_none_or(|sources| sources.contains(&self.header.source))
            && query.thread.as_deref().is_none_or(|thread| self.header.thread() == Some(thread))
            && query.since.is_none_or(|since| self.created >= since)
            && query.before.is_none_or(|before| self.created < before)
            && query.text.as_ref().is_none_or(|wanted| {
                let (text, wanted) = (text(), wanted.to_lowercase());
                let mut wanted = words(&wanted).peekable();
                wanted.peek().is_some() && wanted.all(|wanted| words(&text).any(|word| word.starts_with(wanted)))
            })
    }
}

pub(super) fn locked(run: &Mutex<Run>) -> MutexGuard<'_, Run> {
    run.lock().unwrap_or_else(PoisonError::into_inner)
}
