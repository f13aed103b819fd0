//! A journal that takes its time.

use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use async_trait::async_trait;
use hotcell_journal::{
    Census, Entry, EntryPage, Fact, History, JournalError, MemoryStore, NumberedEntry, PruneReport, RecordedCall,
    Revision, RunHeader, RunId, RunPage, RunQuery, RunRecord, RunStore, RunWriter, StoredCall, Taken,
};
use tokio::sync::Notify;

/// A store in memory whose new runs commit that a timer has fired only when they are let.
#[derive(Default)]
pub(crate) struct Held {
    store: MemoryStore,
    pub(crate) gate: Arc<Gate>,
    /// Whether entries are committed only when somebody waits for that, or the run rests
    commits_late: bool,
}

impl Held {
    /// One that commits entries only when somebody waits for that, or the run rests.
    pub(crate) fn committing_late() -> Self {
        Held { commits_late: true, ..Held::default() }
    }
}

/// Before a commit.
#[derive(Default)]
pub(crate) struct Gate {
    /// Somebody is there
    pub(crate) reached: Notify,
    /// Lets one go on
    pub(crate) opened: Notify,
}

struct HeldWriter {
    writer: Box<dyn RunWriter>,
    gate: Arc<Gate>,
    commits_late: bool,
    /// What is to be committed
    on_its_way: Mutex<Vec<Entry>>,
}

impl HeldWriter {
    fn on_its_way(&self) -> Vec<Entry> {
        std::mem::take(&mut *self.on_its_way.lock().expect("nobody panics with it"))
    }
}

#[async_trait]
impl RunWriter for HeldWriter {
    fn run(&self) -> &RunId {
        self.writer.run()
    }

    async fn append(&self, entries: Vec<Entry>) -> Result<(), JournalError> {
        if entries.iter().any(|entry| matches!(entry.fact, Fact::TimerFired { .. })) {
            self.gate.reached.notify_one();
            self.gate.opened.notified().await;
        }
        if self.commits_late && !entries.iter().any(|entry| entry.fact.is_rest()) {
            self.on_its_way.lock().expect("nobody panics with it").extend(entries);
            return Ok(());
        }
        let all = [self.on_its_way(), entries].concat();
        self.writer.append(all).await
    }

    fn record(&self, call: RecordedCall) {
        self.writer.record(call);
    }

    async fn settled(&self) -> Result<(), JournalError> {
        let all = self.on_its_way();
        if !all.is_empty() {
            self.writer.append(all).await?;
        }
        self.writer.settled().await
    }

    async fn receive(&self) -> Result<Vec<Entry>, JournalError> {
        self.writer.receive().await
    }
}

#[async_trait]
impl RunStore for Held {
    async fn keep(&self, revision: &Revision) -> Result<(), JournalError> {
        self.store.keep(revision).await
    }

    async fn artefact(&self, digest: &str) -> Result<Vec<u8>, JournalError> {
        self.store.artefact(digest).await
    }

    async fn create(&self, header: &RunHeader, follows: Option<&RunId>) -> Result<Box<dyn RunWriter>, JournalError> {
        let writer = self.store.create(header, follows).await?;
        let (gate, commits_late) = (self.gate.clone(), self.commits_late);
        Ok(Box::new(HeldWriter { writer, gate, commits_late, on_its_way: Mutex::default() }))
    }

    async fn fork(
        &self,
        header: &RunHeader,
        copied: Vec<NumberedEntry>,
        then: Vec<Entry>,
    ) -> Result<Box<dyn RunWriter>, JournalError> {
        self.store.fork(header, copied, then).await
    }

    async fn take(&self, run: &RunId, fact: Fact) -> Result<Taken, JournalError> {
        self.store.take(run, fact).await
    }

    async fn send(&self, run: &RunId, entry: Entry) -> Result<(), JournalError> {
        self.store.send(run, entry).await
    }

    async fn history(&self, run: &RunId) -> Result<History, JournalError> {
        self.store.history(run).await
    }

    async fn unread(&self, run: &RunId) -> Result<Vec<Entry>, JournalError> {
        self.store.unread(run).await
    }

    async fn entries(&self, run: &RunId, after: u64, limit: usize) -> Result<EntryPage, JournalError> {
        self.store.entries(run, after, limit).await
    }

    async fn last_entry(&self, run: &RunId) -> Result<u64, JournalError> {
        self.store.last_entry(run).await
    }

    async fn grown(&self, run: &RunId, after: u64) -> Result<(), JournalError> {
        self.store.grown(run, after).await
    }

    async fn moved_on(&self, run: &RunId, after: u64) -> Result<(), JournalError> {
        self.store.moved_on(run, after).await
    }

    async fn calls(&self, run: &RunId, after: u64, limit: usize) -> Result<Vec<StoredCall>, JournalError> {
        self.store.calls(run, after, limit).await
    }

    async fn find(&self, name: &str) -> Result<RunRecord, JournalError> {
        self.store.find(name).await
    }

    async fn list(&self, query: &RunQuery) -> Result<RunPage, JournalError> {
        self.store.list(query).await
    }

    async fn last_of_thread(&self, source: &str, thread: &str) -> Result<Option<RunRecord>, JournalError> {
        self.store.last_of_thread(source, thread).await
    }

    async fn with_messages(&self) -> Result<Vec<RunId>, JournalError> {
        self.store.with_messages().await
    }

    async fn due(&self, now: SystemTime) -> Result<Vec<RunId>, JournalError> {
        self.store.due(now).await
    }

    async fn next_due(&self, after: SystemTime) -> Result<Option<SystemTime>, JournalError> {
        self.store.next_due(after).await
    }

    async fn census(&self) -> Result<Census, JournalError> {
        self.store.census().await
    }

    async fn released(&self, run: &RunId) -> Result<(), JournalError> {
        self.store.released(run).await
    }

    async fn prune(&self, query: &RunQuery) -> Result<PruneReport, JournalError> {
        self.store.prune(query).await
    }
}
