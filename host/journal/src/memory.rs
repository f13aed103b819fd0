//! A store in memory: for tests, benchmarks and runs nobody wants to keep.

mod run;
mod shared;
mod writer;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use async_trait::async_trait;

use self::run::{Run, locked};
use self::shared::{Runs, Shared};
use self::writer::Writer;
use crate::artefact::Revision;
use crate::calls::{RecordedCall, StoredCall};
use crate::entry::{Entry, Fact, RunHeader};
use crate::ids::RunId;
use crate::projection::RunStatus;
use crate::rules::{answerable, choose, may_send, may_take};
use crate::store::{
    Census, EntryPage, History, JournalError, NumberedEntry, PruneReport, RunPage, RunQuery, RunRecord, RunStore,
    RunWriter, Taken,
};

/// A store that lives as long as the process.
#[derive(Default)]
pub struct MemoryStore {
    shared: Arc<Shared>,
}

impl MemoryStore {
    fn runs(&self) -> MutexGuard<'_, Runs> {
        self.shared.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, run: &RunId) -> Result<Arc<Mutex<Run>>, JournalError> {
        self.runs().by_id.get(run).cloned().ok_or_else(|| JournalError::NoSuchRun(run.to_string()))
    }

    fn writer(&self, id: RunId, run: Arc<Mutex<Run>>, term: u64, worked: Duration) -> Box<dyn RunWriter> {
        Box::new(Writer { id, run, term, worked, begun: Instant::now(), shared: self.shared.clone() })
    }
}

#[async_trait]
impl RunStore for MemoryStore {
    async fn keep(&self, revision: &Revision) -> Result<(), JournalError> {
        self.runs().revisions.entry(revision.digest.clone()).or_insert_with(|| revision.artefacts.clone());
        Ok(())
    }

    async fn artefact(&self, digest: &str) -> Result<Vec<u8>, JournalError> {
        let runs = self.runs();
        let found = runs.revisions.values().flatten().find(|artefact| artefact.digest() == digest);
        found.map(|artefact| artefact.bytes().to_vec()).ok_or_else(|| JournalError::NotKept(digest.to_owned()))
    }

    async fn create(&self, header: &RunHeader, follows: Option<&RunId>) -> Result<Box<dyn RunWriter>, JournalError> {
        let mut runs = self.runs();
        if header.kept {
            runs.has(&header.digest)?;
        }
        let id = runs.name_for(header)?;
        if let Some(thread) = header.thread() {
            if let Some(busy) = runs.busy(header) {
                return Err(JournalError::ThreadBusy(busy));
            }
            let of_thread = runs.threads.get(&(header.source.clone(), thread.to_owned()));
            if of_thread.and_then(|runs| runs.last()) != follows {
                return Err(JournalError::ThreadMoved);
            }
        }
        let run = Arc::new(Mutex::new(Run::begun(&id, header, true, &self.shared.timers)));
        runs.add(id.clone(), header, run.clone());
        drop(runs);
        Ok(self.writer(id, run, 0, Duration::ZERO))
    }

    async fn fork(
        &self,
        header: &RunHeader,
        copied: Vec<NumberedEntry>,
        then: Vec<Entry>,
    ) -> Result<Box<dyn RunWriter>, JournalError> {
        let goes_on = !then.is_empty();
        let mut runs = self.runs();
        let revised = copied.iter().map(|copied| &copied.entry).chain(&then).filter_map(|entry| match &entry.fact {
            Fact::Revised { digest } => Some(digest),
            _ => None,
        });
        for digest in revised.chain(header.kept.then_some(&header.digest)) {
            runs.has(digest)?;
        }
        let id = runs.name_for(header)?;
        let mut run = Run::begun(&id, header, goes_on, &self.shared.timers);
        for NumberedEntry { at, entry, .. } in copied {
            if !matches!(entry.fact, Fact::Started(_)) {
                run.append_at(entry, at);
            }
        }
        then.into_iter().for_each(|entry| run.append(entry));
        let run = Arc::new(Mutex::new(run));
        runs.add(id.clone(), header, run.clone());
        drop(runs);
        Ok(self.writer(id, run, 0, Duration::ZERO))
    }

    async fn take(&self, id: &RunId, fact: Fact) -> Result<Taken, JournalError> {
        let run = self.run(id)?;
        let runs = self.runs();
        let header = locked(&run).header.clone();
        let busy = runs.busy(&header);
        let mut taken = locked(&run);
        match busy {
            _ if taken.owned => return Err(JournalError::Busy(id.clone())),
            Some(busy) => return Err(JournalError::ThreadBusy(busy)),
            None => {}
        }
        may_take(id, taken.status(), &fact)?;
        let mail = std::mem::take(&mut taken.mail);
        mail.into_iter().for_each(|entry| taken.append(entry));
        taken.append(Entry::of_run(fact));
        taken.owned = true;
        taken.term += 1;
        // From here on nobody else takes it. Others may begin runs while a long one is copied.
        drop(runs);
        let (term, worked) = (taken.term, taken.worked);
        let history = History { entries: taken.entries.clone(), damage: None, worked };
        drop(taken);
        self.shared.grown.ring(id);
        Ok(Taken { writer: self.writer(id.clone(), run, term, worked), history })
    }

    async fn send(&self, id: &RunId, entry: Entry) -> Result<(), JournalError> {
        let run = self.run(id)?;
        {
            let mut run = locked(&run);
            let status = run.status();
            if !may_send(id, status, &entry)? {
                return Ok(());
            }
            if let Fact::Answered { number, .. } = entry.fact {
                answerable(id, run.of_questions(), &entry, number, true)?;
            }
            match (&entry.fact, run.owned) {
                (Fact::Cancelled, false) => run.append(entry),
                (Fact::PauseAsked, false) => run.append(Entry::of_run(Fact::Paused)),
                _ => run.mail.push(entry),
            }
        }
        self.shared.bells.ring(id);
        self.shared.grown.ring(id);
        Ok(())
    }

    async fn history(&self, run: &RunId) -> Result<History, JournalError> {
        let run = self.run(run)?;
        let run = locked(&run);
        Ok(History { entries: run.everything(), damage: None, worked: run.worked })
    }

    async fn unread(&self, run: &RunId) -> Result<Vec<Entry>, JournalError> {
        let run = self.run(run)?;
        let unread = locked(&run).mail.clone();
        Ok(unread)
    }

    async fn entries(&self, run: &RunId, after: u64, limit: usize) -> Result<EntryPage, JournalError> {
        let run = self.run(run)?;
        let run = locked(&run);
        let numbered = (1..).zip(run.entries.iter().zip(&run.times));
        let skipped = usize::try_from(after).unwrap_or(usize::MAX);
        let entries = numbered.skip(skipped).take(limit);
        let entries = entries.map(|(number, (entry, at))| NumberedEntry { number, at: *at, entry: entry.clone() });
        let entries: Vec<NumberedEntry> = entries.collect();
        let is_last = entries.len() < limit;
        Ok(EntryPage { entries, status: run.status(), is_last })
    }

    async fn last_entry(&self, run: &RunId) -> Result<u64, JournalError> {
        let run = self.run(run)?;
        let entries = locked(&run).entries.len();
        Ok(entries as u64)
    }

    async fn grown(&self, id: &RunId, after: u64) -> Result<(), JournalError> {
        let run = self.run(id)?;
        let bell = self.shared.grown.of(id);
        loop {
            let rung = bell.notified();
            if locked(&run).entries.len() as u64 > after {
                return Ok(());
            }
            rung.await;
        }
    }

    async fn moved_on(&self, id: &RunId, after: u64) -> Result<(), JournalError> {
        let run = self.run(id)?;
        let (grown, freed) = (self.shared.grown.of(id), self.shared.bells.of(id));
        loop {
            let (grown, freed) = (grown.notified(), freed.notified());
            {
                let run = locked(&run);
                if run.entries.len() as u64 > after || run.status() != RunStatus::Running {
                    return Ok(());
                }
            }
            tokio::select! {
                () = grown => {}
                () = freed => {}
            }
        }
    }

    async fn calls(&self, run: &RunId, after: u64, limit: usize) -> Result<Vec<StoredCall>, JournalError> {
        let run = self.run(run)?;
        let run = locked(&run);
        let numbered = (1..).zip(&run.calls).filter(|(number, _)| *number > after).take(limit);
        let stored = |(number, call): (u64, &RecordedCall)| {
            let RecordedCall { place, name, body } = call.clone();
            StoredCall { number, place, name, body: Ok(body) }
        };
        Ok(numbered.map(stored).collect())
    }

    async fn find(&self, name: &str) -> Result<RunRecord, JournalError> {
        let runs = self.runs();
        if let Some(run) = runs.by_id.get(&RunId::from(name.to_owned())) {
            return Ok(locked(run).record(&RunId::from(name.to_owned())));
        }
        let matching: Vec<&RunId> = runs.order.iter().filter(|run| run.as_str().starts_with(name)).collect();
        let id = choose(matching, name)?;
        let run = runs.by_id.get(id).ok_or_else(|| JournalError::NoSuchRun(name.to_owned()))?;
        Ok(locked(run).record(id))
    }

    async fn list(&self, query: &RunQuery) -> Result<RunPage, JournalError> {
        query.words()?;
        let runs = self.runs();
        let mut page = RunPage::default();
        let skipped = match &query.after {
            Some(after) => runs.order.iter().position(|run| run.as_str() == after),
            None => Some(runs.order.len()),
        };
        let skipped = skipped.ok_or_else(|| JournalError::NoSuchPage(query.after.clone().unwrap_or_default()))?;
        let older = &runs.order[..skipped];
        for id in older.iter().rev() {
            let Some(run) = runs.by_id.get(id) else { continue };
            let run = locked(run);
            if query.run.as_ref().is_some_and(|wanted| wanted != id) || !run.matches(query) {
                continue;
            }
            if page.runs.len() == query.limit {
                page.next = page.runs.last().map(|last| last.id.to_string());
                break;
            }
            page.runs.push(run.summary(id));
        }
        Ok(page)
    }

    async fn last_of_thread(&self, source: &str, thread: &str) -> Result<Option<RunRecord>, JournalError> {
        let runs = self.runs();
        let last = runs.threads.get(&(source.to_owned(), thread.to_owned())).and_then(|runs| runs.last());
        Ok(last.and_then(|id| runs.by_id.get(id).map(|run| locked(run).record(id))))
    }

    async fn with_messages(&self) -> Result<Vec<RunId>, JournalError> {
        let runs = self.runs();
        let waits = |run: &Run| !run.owned && run.status().goes_on_by_itself() && !run.mail.is_empty();
        let has = |id: &&RunId| runs.by_id.get(*id).is_some_and(|run| waits(&locked(run)));
        Ok(runs.order.iter().filter(has).cloned().collect())
    }

    async fn due(&self, now: SystemTime) -> Result<Vec<RunId>, JournalError> {
        let runs = self.runs();
        let is_due = |id: &RunId| {
            runs.by_id.get(id).is_some_and(|run| {
                let run = locked(run);
                !run.owned && run.status().goes_on_by_itself()
            })
        };
        Ok(self.shared.timers.until(now).into_iter().filter(is_due).collect())
    }

    async fn next_due(&self, after: SystemTime) -> Result<Option<SystemTime>, JournalError> {
        let mut after = after;
        while let Some((at, run)) = self.shared.timers.after(after) {
            // One that was cancelled may not have noticed yet.
            if self.run(&run).is_ok_and(|run| !locked(&run).status().is_final()) {
                return Ok(Some(at));
            }
            after = at;
        }
        Ok(None)
    }

    async fn census(&self) -> Result<Census, JournalError> {
        let runs = self.runs();
        let mut counted = RunStatus::ALL.map(|status| (status, 0));
        let mut open_questions = 0;
        for run in runs.by_id.values() {
            let run = locked(run);
            let status = run.status();
            counted.iter_mut().filter(|(known, _)| *known == status).for_each(|(_, count)| *count += 1);
            if status == RunStatus::Waiting {
                open_questions += run.open_questions();
            }
        }
        Ok(Census { runs: counted.to_vec(), open_questions, bytes: None })
    }

    async fn released(&self, id: &RunId) -> Result<(), JournalError> {
        let run = self.run(id)?;
        let bell = self.shared.bells.of(id);
        loop {
            let rung = bell.notified();
            if !locked(&run).owned {
                return Ok(());
            }
            rung.await;
        }
    }

    async fn prune(&self, query: &RunQuery) -> Result<PruneReport, JournalError> {
        let mut runs = self.runs();
        let ends = |run: &Arc<Mutex<Run>>| {
            let run = locked(run);
            run.status().is_final() && run.matches(query)
        };
        let named = |id: &RunId| query.run.as_ref().is_none_or(|wanted| wanted == id);
        let mut goes: HashSet<RunId> =
            runs.by_id.iter().filter(|(id, run)| named(id) && ends(run)).map(|(id, _)| id.clone()).collect();
        // What a run that stays goes on from has to stay, too, and what that one goes on from.
        let mut stays: Vec<RunId> = runs.by_id.keys().filter(|id| !goes.contains(*id)).cloned().collect();
        while let Some(id) = stays.pop() {
            let needed = runs.by_id.get(&id).and_then(|run| locked(run).header.needs()).map(RunId::from);
            stays.extend(needed.filter(|needed| goes.remove(needed)));
        }
        let before = runs.by_id.len();
        let Runs { by_id, order, threads, revisions } = &mut *runs;
        by_id.retain(|id, _| !goes.contains(id));
        order.retain(|id| by_id.contains_key(id));
        threads.retain(|_, runs| {
            runs.retain(|id| by_id.contains_key(id));
            !runs.is_empty()
        });
        let needed: HashSet<String> =
            by_id.values().flat_map(|run| locked(run).revisions().cloned().collect::<Vec<_>>()).collect();
        revisions.retain(|digest, _| needed.contains(digest));
        Ok(PruneReport { runs: (before - runs.by_id.len()) as u64, bytes: 0 })
    }
}
