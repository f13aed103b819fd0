//! Stores to try, and entries to put into them.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hotcell_graph::Object;
use hotcell_journal::{
    Completed, Entry, EntryPath, Fact, MemoryStore, Question, RunHeader, RunId, RunStore, RunWriter, SqliteStore, Write,
};
use rusqlite::Connection;

/// A folder with a journal in it.
pub(crate) struct Desk {
    folder: tempfile::TempDir,
}

impl Desk {
    pub(crate) fn new() -> Self {
        Desk { folder: tempfile::tempdir().expect("a folder") }
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.folder.path().join("runs.db")
    }

    /// The store of another process, as far as the file can tell.
    pub(crate) fn store(&self) -> SqliteStore {
        SqliteStore::open(&self.file()).expect("opened")
    }

    /// Every kind of store.
    pub(crate) fn stores(&self) -> [Arc<dyn RunStore>; 2] {
        [Arc::new(MemoryStore::default()), Arc::new(self.store())]
    }

    /// What lies beside the journal, by the ends of its names.
    pub(crate) fn beside(&self) -> Vec<String> {
        let files = std::fs::read_dir(self.folder.path()).expect("a folder").flatten();
        files.map(|file| file.file_name().to_string_lossy().into_owned()).filter(|name| name != "runs.db").collect()
    }
}

/// Makes a journal of this layout one of layout 5, which had fewer indices.
pub(crate) fn without_indices(desk: &Desk) {
    let text = "DROP INDEX runs_by_revision; DROP INDEX former_by_revision; DROP INDEX parts_by_artefact;
                DROP INDEX runs_by_source; DROP INDEX entries_of_questions; PRAGMA user_version = 5;";
    Connection::open(desk.file()).expect("opened").execute_batch(text).expect("changed");
}

/// Nothing in these tests takes long; only a hang makes them fail.
pub(crate) async fn soon<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), work).await.expect("it does not hang")
}

pub(crate) fn header(graph: &str) -> RunHeader {
    RunHeader {
        graph: graph.into(),
        source: "test".into(),
        digest: String::new(),
        kept: false,
        given: Object::default(),
    }
}

/// A header with entries of what the run is given.
pub(crate) fn given(graph: &str, entries: &[(&str, &str)]) -> RunHeader {
    let given = entries.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
    RunHeader { given, ..header(graph) }
}

pub(crate) fn turn(number: u64) -> Entry {
    let completed = Completed {
        node: format!("node {number}"),
        writes: vec![Write { key: "key".into(), value: "value".into() }],
        next: Some(vec!["next".into()]),
        output: None,
        handled: false,
        failure: None,
        failure_kind: None,
        elapsed: Duration::from_micros(5),
        account: Default::default(),
    };
    Entry { place: EntryPath::of_turn(number), fact: Fact::Completed(completed) }
}

pub(crate) fn asked(turn: u64, number: u32) -> Entry {
    Entry { place: EntryPath::of_turn(turn), fact: Fact::Asked { number, question: Question::default() } }
}

pub(crate) fn answered(turn: u64, number: u32, text: &str) -> Entry {
    Entry { place: EntryPath::of_turn(turn), fact: Fact::Answered { number, text: text.into() } }
}

pub(crate) fn done(output: &str) -> Entry {
    Entry::of_run(Fact::Ended { result: Ok(output.into()), node: None })
}

pub(crate) async fn facts(store: &dyn RunStore, run: &RunId) -> Vec<Fact> {
    let entries = store.history(run).await.expect("read").whole().expect("whole");
    entries.into_iter().map(|entry| entry.fact).collect()
}

/// A run that has come to its end.
pub(crate) async fn ended(store: &dyn RunStore, header: &RunHeader, output: &str) -> RunId {
    let writer = store.create(header, None).await.expect("created");
    writer.append(vec![turn(1), done(output)]).await.expect("added");
    writer.run().clone()
}

/// The writer of a run that asks one question.
pub(crate) async fn asking(store: &dyn RunStore) -> Box<dyn RunWriter> {
    let writer = store.create(&header("asks"), None).await.expect("created");
    writer.append(vec![asked(1, 0)]).await.expect("added");
    writer
}
