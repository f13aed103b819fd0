//! Journals that were changed or cut off behind our back: what is whole is shown, the rest is named, nothing goes on from it.

use hotcell_graph::Value;
use hotcell_journal::{
    Entry, EntryPath, Fact, JournalError, Question, RunHeader, RunId, RunStatus, RunStore, SqliteStore,
};
use rusqlite::Connection;

use crate::support::{Desk, header, turn};

async fn damaged(change: &str) -> (Desk, RunId) {
    let desk = Desk::new();
    let store = desk.store();
    let writer = store.create(&header("a"), None).await.expect("created");
    writer.append((1..=5).map(turn).collect()).await.expect("added");
    let run = writer.run().clone();
    drop(writer);
    drop(store);
    let connection = Connection::open(desk.file()).expect("opened");
    connection.execute(change, []).expect("changed");
    (desk, run)
}

#[tokio::test]
async fn entries_that_are_not_what_was_written_are_named() {
    for (change, sequence) in [
        ("UPDATE entries SET body = replace(body, 'value', 'valve') WHERE number = 4", 4),
        ("UPDATE entries SET place = '2' WHERE number = 4", 4),
        ("UPDATE entries SET worked = worked + 1 WHERE number = 4", 4),
        ("UPDATE entries SET body = x'ff00' WHERE number = 4", 4),
        ("DELETE FROM entries WHERE number = 4", 4),
        ("UPDATE entries SET number = number + 10 WHERE number = 6", 6),
    ] {
        let (desk, run) = damaged(change).await;
        let store = desk.store();
        let history = store.history(&run).await.expect("what is whole can be read");
        assert_eq!(history.entries.len() as u64, sequence - 1, "{change}");
        let Some(JournalError::Damaged { sequence: named, .. }) = &history.damage else {
            panic!("{change}: {history:?}")
        };
        assert_eq!(*named, sequence, "{change}");
        let taken = store.take(&run, Fact::Resumed).await.err();
        assert!(matches!(taken, Some(JournalError::Damaged { .. })), "{change}: {taken:?}");
        assert_eq!(store.find(run.as_str()).await.expect("found").status, RunStatus::Interrupted);
    }
}

/// A list in a list in a list, so many of them.
fn nested(levels: usize) -> Value {
    (0..levels).fold(Value::Null, |inner, _| Value::List([inner].into_iter().collect()))
}

#[tokio::test]
async fn the_deepest_value_that_a_graph_may_write_is_no_damage() {
    let deepest = (1..).map(nested).take_while(|value| value.check_size().is_ok()).last().expect("some may be written");
    let mut completed = turn(1);
    if let Fact::Completed(completed) = &mut completed.fact {
        completed.writes[0].value = deepest.clone();
    }
    let question = Question { context: Some(deepest.clone()), ..Question::default() };
    let asked = Entry { place: EntryPath::of_turn(2), fact: Fact::Asked { number: 0, question } };
    let state = Value::Object([("x".into(), deepest)].into_iter().collect());
    let given = RunHeader { given: [("state".into(), state)].into_iter().collect(), ..header("a") };
    let desk = Desk::new();
    let store = desk.store();
    let writer = store.create(&given, None).await.expect("created");
    writer.append(vec![completed.clone(), asked.clone()]).await.expect("added");
    let entries = store.history(writer.run()).await.expect("read").whole().expect("nothing is damaged");
    assert_eq!(entries[0].fact, Fact::Started(given));
    assert_eq!(entries[1..], [completed, asked]);
}

#[tokio::test]
async fn a_run_without_its_beginning_says_so() {
    let (desk, run) = damaged("DELETE FROM entries WHERE number = 1").await;
    let found = desk.store().find(run.as_str()).await.expect_err("it does not say how it began").to_string();
    assert!(found.contains("is damaged at entry 1"), "{found}");
}

/// The size of a page of the file, in bytes.
const PAGE: usize = 4096;

/// The bytes of a journal with a short run and one that takes many pages, and the entries of both.
async fn written() -> (Vec<u8>, Vec<(RunId, Vec<Entry>)>) {
    let desk = Desk::new();
    let store = desk.store();
    let mut runs = Vec::new();
    for turns in [3, 300] {
        let writer = store.create(&header("a"), None).await.expect("created");
        writer.append((1..=turns).map(turn).collect()).await.expect("added");
        let entries = store.history(writer.run()).await.and_then(|history| history.whole()).expect("whole");
        runs.push((writer.run().clone(), entries));
    }
    drop(store);
    let connection = Connection::open(desk.file()).expect("opened");
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).expect("all is in the file");
    (std::fs::read(desk.file()).expect("read"), runs)
}

/// How many entries of each run are read from this file, if it can be opened and the run be found. What is read is what was
/// written, and what is missing is named.
async fn readable(store: &SqliteStore, runs: &[(RunId, Vec<Entry>)]) -> Vec<Option<usize>> {
    let mut found = Vec::new();
    for (run, entries) in runs {
        let Ok(history) = store.history(run).await else {
            found.push(None);
            continue;
        };
        let read = history.entries.len();
        assert_eq!(history.entries, entries[..read]);
        match &history.damage {
            Some(JournalError::Damaged { sequence, .. }) => assert_eq!(*sequence, read as u64 + 1),
            damage => assert!(damage.is_none() && read == entries.len(), "{read}: {damage:?}"),
        }
        found.push(Some(read));
    }
    found
}

#[tokio::test]
async fn a_page_that_is_lost_costs_what_was_in_it() {
    let (bytes, runs) = written().await;
    let mut partly = 0;
    for page in 0..bytes.len() / PAGE {
        let desk = Desk::new();
        let mut changed = bytes.clone();
        changed[page * PAGE..(page + 1) * PAGE].fill(0);
        std::fs::write(desk.file(), changed).expect("written");
        let Ok(store) = SqliteStore::open(&desk.file()) else { continue };
        if let [Some(short), Some(long)] = readable(&store, &runs).await[..]
            && short == 4
            && (1..301).contains(&long)
        {
            partly += 1;
            let refused = store.take(&runs[1].0, Fact::Resumed).await.err();
            assert!(matches!(refused, Some(JournalError::Damaged { .. })), "{refused:?}");
        }
    }
    assert!(partly > 3, "{partly}");
}

#[tokio::test]
async fn a_file_that_was_cut_off_is_read_as_far_as_it_goes_and_not_written() {
    let (bytes, runs) = written().await;
    let mut partly = 0;
    for pages in 1..bytes.len() / PAGE {
        let desk = Desk::new();
        std::fs::write(desk.file(), &bytes[..pages * PAGE]).expect("written");
        let Ok(store) = SqliteStore::open(&desk.file()) else { continue };
        assert!(store.damage().is_some_and(|damage| damage.contains("cut off")), "{pages} pages");
        if let [Some(4), Some(long)] = readable(&store, &runs).await[..]
            && long > 0
        {
            partly += 1;
        }
        let refused = store.create(&header("b"), None).await.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(refused.contains("nothing is written to it; restore a copy"), "{pages} pages: {refused}");
        drop(store);
        assert_eq!(std::fs::read(desk.file()).expect("read"), bytes[..pages * PAGE], "{pages} pages");
    }
    assert!(partly > 3, "{partly}");
}
