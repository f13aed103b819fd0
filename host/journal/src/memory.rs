//! A store in memory: for tests, benchmarks and runs nobody wants to keep.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use async_trait::async_trait;

use crate::artefact::{Artefact, Revision};
use crate::calls::{RecordedCall, StoredCall};
use crate::entry::{Entry, Fact, RunHeader};
use crate::ids::{EntryPath, RunId};
use crate::mail::Bells;
use crate::projection::RunStatus;
use crate::store::{
    Census, EntryPage, History, JournalError, NumberedEntry, PruneReport, RunPage, RunQuery, RunRecord, RunStore,
    RunSummary, RunWriter, Taken, answerable, choose, may_send, may_take,
};
use crate::timers::Timers;

/// A store that lives as long as the process.
#[derive(Default)]
pub struct MemoryStore {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    runs: Mutex<Runs>,
    bells: Bells,
    /// Rung when a run has more entries
    grown: Bells,
    timers: Arc<Timers>,
}

#[derive(Default)]
struct Runs {
    by_id: HashMap<RunId, Arc<Mutex<Run>>>,
    /// In the order in which they began
    order: Vec<RunId>,
    /// The last run of each thread, by source and name
    threads: HashMap<(String, String), RunId>,
    /// The artefacts of each revision
    revisions: HashMap<String, Vec<Artefact>>,
}

struct Run {
    id: RunId,
    header: RunHeader,
    /// The revisions that it was moved to, the last one last
    revised: Vec<String>,
    entries: Vec<Entry>,
    /// When each of them was written
    times: Vec<SystemTime>,
    calls: Vec<RecordedCall>,
    /// What was sent and not received
    mail: Vec<Entry>,
    status: RunStatus,
    created: SystemTime,
    updated: SystemTime,
    /// How often it was taken: a writer of an earlier time is refused
    term: u64,
    owned: bool,
    worked: Duration,
    /// Timers that were set and have not fired, and questions that are open and expire
    timers: HashMap<(EntryPath, String), SystemTime>,
    /// Where these are with those of all other runs, as long as this one has not ended
    in_order: Arc<Timers>,
}

impl Run {
    /// One that has just begun.
    fn begun(id: &RunId, header: &RunHeader, owned: bool, in_order: &Arc<Timers>) -> Self {
        let now = SystemTime::now();
        Run {
            id: id.clone(),
            header: header.clone(),
            revised: Vec::new(),
            entries: vec![Entry::of_run(Fact::Started(header.clone()))],
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

    fn append(&mut self, entry: Entry) {
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
        self.times.push(SystemTime::now());
        self.entries.push(entry);
    }

    /// The same, of an entry that was written before.
    fn append_at(&mut self, entry: Entry, at: SystemTime) {
        self.append(entry);
        if let Some(last) = self.times.last_mut() {
            *last = at;
        }
    }

    /// How it stands from now on. What has ended waits for no time, unless it goes on.
    fn change(&mut self, status: RunStatus) {
        match (self.status.is_final(), status.is_final()) {
            (false, true) => self.timers.iter().for_each(|(key, at)| self.in_order.remove(*at, &self.id, key)),
            (true, false) => self.timers.iter().for_each(|(key, at)| self.in_order.add(*at, &self.id, key)),
            _ => {}
        }
        self.status = status;
        self.updated = SystemTime::now();
    }

    fn everything(&self) -> Vec<Entry> {
        self.entries.iter().chain(&self.mail).cloned().collect()
    }

    fn status(&self) -> RunStatus {
        match self.status {
            _ if self.mail.iter().any(|entry| entry.fact == Fact::Cancelled) => RunStatus::Cancelled,
            RunStatus::Running if !self.owned => RunStatus::Interrupted,
            status => status,
        }
    }

    fn open_questions(&self) -> u64 {
        let (mut asked, mut closed) = (0_u64, 0_u64);
        for entry in self.entries.iter().chain(&self.mail) {
            match entry.fact {
                Fact::Asked { .. } => asked += 1,
                Fact::Answered { .. } | Fact::Expired { .. } => closed += 1,
                _ => {}
            }
        }
        asked.saturating_sub(closed)
    }

    /// The revisions that it was begun and went on with, the last one last.
    fn revisions(&self) -> impl DoubleEndedIterator<Item = &String> {
        self.header.kept.then_some(&self.header.digest).into_iter().chain(&self.revised)
    }

    fn outcome(&self) -> Option<&str> {
        self.entries.last().and_then(|entry| entry.fact.outcome())
    }

    fn summary(&self, id: &RunId) -> RunSummary {
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

    fn record(&self, id: &RunId) -> RunRecord {
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

    fn matches(&self, query: &RunQuery) -> bool {
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

impl Runs {
    /// Whether a revision is kept.
    fn has(&self, revision: &str) -> Result<(), JournalError> {
        match self.revisions.contains_key(revision) {
            true => Ok(()),
            false => Err(JournalError::NotKept(revision.to_owned())),
        }
    }

    /// The name of a run that is to begin.
    fn name_for(&self, header: &RunHeader) -> Result<RunId, JournalError> {
        match header.wanted_name() {
            Some(wanted) if self.by_id.contains_key(&wanted) => Err(JournalError::Exists(wanted)),
            Some(wanted) => Ok(wanted),
            None => Ok(std::iter::repeat_with(RunId::random)
                .find(|id| !self.by_id.contains_key(id))
                .unwrap_or_else(RunId::random)),
        }
    }

    /// The run of the thread that somebody works on.
    fn busy(&self, header: &RunHeader) -> Option<RunId> {
        let thread = header.thread()?;
        let same = |run: &&RunId| {
            self.by_id.get(*run).is_some_and(|run| {
                let run = locked(run);
                run.owned && run.header.source == header.source && run.header.thread() == Some(thread)
            })
        };
        self.order.iter().find(same).cloned()
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
}

fn locked(run: &Mutex<Run>) -> MutexGuard<'_, Run> {
    run.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Writer {
    id: RunId,
    run: Arc<Mutex<Run>>,
    term: u64,
    /// How long it was worked on before this writer took it
    worked: Duration,
    begun: Instant,
    shared: Arc<Shared>,
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
                answerable(&self.id, &run.everything(), entry, number, false)?;
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
        let run = Arc::new(Mutex::new(Run::begun(&id, header, true, &self.shared.timers)));
        if let Some(thread) = header.thread() {
            if let Some(busy) = runs.busy(header) {
                return Err(JournalError::ThreadBusy(busy));
            }
            let thread = (header.source.clone(), thread.to_owned());
            if runs.threads.get(&thread) != follows {
                return Err(JournalError::ThreadMoved);
            }
            runs.threads.insert(thread, id.clone());
        }
        runs.by_id.insert(id.clone(), run.clone());
        runs.order.push(id.clone());
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
        if let Some(thread) = header.thread() {
            runs.threads.insert((header.source.clone(), thread.to_owned()), id.clone());
        }
        let run = Arc::new(Mutex::new(run));
        runs.by_id.insert(id.clone(), run.clone());
        runs.order.push(id.clone());
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
                answerable(id, &run.everything(), &entry, number, true)?;
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

    async fn entries(&self, run: &RunId, after: u64, limit: usize) -> Result<EntryPage, JournalError> {
        let run = self.run(run)?;
        let run = locked(&run);
        let numbered = (1..).zip(run.entries.iter().zip(&run.times));
        let skipped = usize::try_from(after).unwrap_or(usize::MAX);
        let entries = numbered.skip(skipped).take(limit);
        let entries = entries.map(|(number, (entry, at))| NumberedEntry { number, at: *at, entry: entry.clone() });
        Ok(EntryPage { entries: entries.collect(), status: run.status() })
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
        let last = runs.threads.get(&(source.to_owned(), thread.to_owned()));
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
        threads.retain(|_, id| by_id.contains_key(id));
        let needed: HashSet<String> =
            by_id.values().flat_map(|run| locked(run).revisions().cloned().collect::<Vec<_>>()).collect();
        revisions.retain(|digest, _| needed.contains(digest));
        Ok(PruneReport { runs: (before - runs.by_id.len()) as u64, bytes: 0 })
    }
}
