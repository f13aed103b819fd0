//! Journals that end where a process died, and answers from elsewhere.

use std::sync::Arc;

use hotcell_engine::{RunInput, RunRequest};
use hotcell_graph::ir::Graph;
use hotcell_journal::{Entry, Fact, MemoryStore, OpenQuestion, RunHeader, RunId, RunStore, open_questions};

/// What a run of a test is started with.
pub(crate) fn header() -> RunHeader {
    RunHeader {
        graph: "test".into(),
        source: "test".into(),
        digest: String::new(),
        kept: false,
        given: Default::default(),
    }
}

/// A run of that graph that is given nothing.
pub(crate) fn request(graph: &Arc<Graph>) -> RunRequest {
    RunRequest {
        graph: graph.clone(),
        source: "test".into(),
        digest: String::new(),
        kept: false,
        given: RunInput::default(),
        follows: None,
    }
}

/// Everything that was committed of a run.
pub(crate) async fn entries(store: &dyn RunStore, run: &RunId) -> Vec<Entry> {
    store.history(run).await.expect("read").whole().expect("whole")
}

/// What was committed of a run before it ended: every place where its process may have died.
pub(crate) async fn before_the_end(store: &dyn RunStore, run: &RunId) -> Vec<Entry> {
    let mut entries = entries(store, run).await;
    entries.retain(|entry| !matches!(entry.fact, Fact::Ended { .. }));
    entries
}

/// A run whose process died after these entries.
pub(crate) async fn journal_with(entries: &[Entry]) -> (Arc<MemoryStore>, RunId) {
    let journal = Arc::new(MemoryStore::default());
    let Some(Entry { fact: Fact::Started(header), .. }) = entries.first() else { panic!("a run begins") };
    let writer = journal.create(header, None).await.expect("created");
    writer.append(entries[1..].to_vec()).await.expect("added");
    let run = writer.run().clone();
    (journal, run)
}

/// Answers a question, from outside.
pub(crate) async fn answer(store: &dyn RunStore, run: &RunId, open: &OpenQuestion, text: &str) {
    let fact = Fact::Answered { number: open.number, text: text.to_owned() };
    store.send(run, Entry { place: open.place.clone(), fact }).await.expect("sent");
}

/// The questions of a run without an answer.
pub(crate) async fn open(store: &dyn RunStore, run: &RunId) -> Vec<OpenQuestion> {
    open_questions(&entries(store, run).await)
}
