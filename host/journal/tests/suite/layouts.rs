//! Files of other versions and of other programs.

use hotcell_journal::{Fact, RunQuery, RunStatus, RunStore, SqliteStore};
use rusqlite::Connection;

use crate::support::{Desk, ended, facts, header, without_indices};

fn refused(desk: &Desk) -> String {
    SqliteStore::open(&desk.file()).err().expect("refused").to_string()
}

#[test]
fn a_file_of_a_newer_version_is_left_alone() {
    let desk = Desk::new();
    drop(desk.store());
    let connection = Connection::open(desk.file()).expect("opened");
    connection.pragma_update(None, "user_version", 9).expect("changed");
    assert!(refused(&desk).contains("newer version of hotcell (layout 9"), "{}", refused(&desk));
}

#[test]
fn a_file_of_another_program_is_left_alone() {
    let desk = Desk::new();
    let connection = Connection::open(desk.file()).expect("opened");
    connection.execute_batch("CREATE TABLE runs (distance REAL)").expect("made");
    for version in [0, 2, 3, 4, 5, 6] {
        connection.pragma_update(None, "user_version", version).expect("changed");
        assert!(refused(&desk).contains("another program"), "{version}: {}", refused(&desk));
    }
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get(0)).expect("read");
    assert_eq!(tables, 1);
    std::fs::write(desk.file(), "no database at all, but long enough to look like one".repeat(100)).expect("written");
    assert!(refused(&desk).contains("not a database"), "{}", refused(&desk));
}

/// The tables of layout 2, as versions before this one made them.
const LAYOUT_2: &str = r#"
    CREATE TABLE runs (
        number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, graph TEXT NOT NULL, source TEXT NOT NULL,
        digest TEXT NOT NULL, given TEXT NOT NULL, status TEXT NOT NULL, created INTEGER NOT NULL,
        updated INTEGER NOT NULL, outcome TEXT
    );
    CREATE TABLE entries (
        run INTEGER NOT NULL, number INTEGER NOT NULL, place TEXT NOT NULL, kind TEXT NOT NULL, body TEXT NOT NULL,
        PRIMARY KEY (run, number)
    ) WITHOUT ROWID;
    CREATE INDEX runs_of_threads ON runs (source, json_extract(given, '$.thread'), number);
    INSERT INTO runs VALUES
        (1, 'aaaaaaaa', 'tea', '/tea', 'd', '{"input":"green","variables":{}}', 'completed', 1000, 2000, 'a cup'),
        (2, 'bbbbbbbb', 'tea', '/tea', 'd', '{"variables":{},"thread":"t"}', 'waiting', 3000, 4000, NULL),
        (3, 'cccccccc', 'tea', '/tea', 'd', '{"variables":{}}', 'running', 5000, 5000, NULL),
        (4, 'dddddddd', 'tea', '/tea', 'd', '{"variables":{}}', 'failed', 5000, 5000, 'too hot'),
        (5, 'eeeeeeee', 'tea', '/tea', 'd', '{"variables":{}}', 'cancelled', 5000, 5000, NULL);
    INSERT INTO entries VALUES
        (1, 1, '1', 'completed', '{"node":"boil","next":["pour"],"us":7}'),
        (1, 2, '2', 'completed', '{"node":"pour","output":"a cup","us":7}'),
        (2, 1, '1', 'effect', '{"number":0,"kind":"model","answer":{"text":"hi"}}'),
        (2, 2, '1', 'asked', '{"number":1,"node":"ask","text":"sugar?","options":[]}'),
        (3, 1, '1', 'completed', '{"node":"boil","next":["pour"],"us":7}');
    PRAGMA user_version = 2;
"#;

#[tokio::test]
async fn a_file_of_layout_2_is_brought_to_this_one() {
    let desk = Desk::new();
    Connection::open(desk.file()).expect("opened").execute_batch(LAYOUT_2).expect("made");
    let store = desk.store();
    let status = async |run: &str| store.find(run).await.expect("found").status;
    assert_eq!(status("a").await, RunStatus::Completed);
    assert_eq!(status("b").await, RunStatus::Waiting);
    assert_eq!(status("c").await, RunStatus::Interrupted);
    assert_eq!(status("d").await, RunStatus::Failed);
    assert_eq!(status("e").await, RunStatus::Cancelled);
    let record = store.find("a").await.expect("found");
    assert_eq!((record.header.input(), record.outcome.as_deref()), (Some("green"), Some("a cup")));
    let run = store.find("b").await.expect("found").id;
    assert_eq!(facts(&store, &run).await.len(), 4);
    assert!(store.last_of_thread("/tea", "t").await.expect("read").is_some());
    store.take(&run, Fact::Resumed).await.expect("it goes on");
    let failed = store.find("d").await.expect("found").id;
    store.take(&failed, Fact::Retried).await.expect("it goes on");
    drop(store);
    desk.store();
}

#[tokio::test]
async fn a_refusal_that_layout_2_did_not_keep_becomes_an_entry() {
    let desk = Desk::new();
    let connection = Connection::open(desk.file()).expect("opened");
    connection.execute_batch(LAYOUT_2).expect("made");
    // Two requests were refused before the third was answered, and one after the tool.
    let effects =
        [("2", 2, "model"), ("2", 3, "tool"), ("2", 5, "model"), ("3", 1, "tool"), ("4", 4_000_000_000_u32, "model")];
    for (row, (place, number, kind)) in (2_i64..).zip(effects) {
        let body = format!(r#"{{"number":{number},"kind":"{kind}","answer":{{}}}}"#);
        let values = rusqlite::params![row, place, body];
        connection.execute("INSERT INTO entries VALUES (3, ?1, ?2, 'effect', ?3)", values).expect("made");
    }
    drop(connection);
    let store = desk.store();
    let run = store.find("c").await.expect("found").id;
    let numbers: Vec<(String, u32, bool)> = store
        .history(&run)
        .await
        .and_then(|history| history.whole())
        .expect("whole")
        .into_iter()
        .filter_map(|entry| match entry.fact {
            Fact::Effect { number, answer, .. } => Some((entry.place.to_string(), number, answer.to_json() != "{}")),
            _ => None,
        })
        .collect();
    let numbers: Vec<(&str, u32, bool)> =
        numbers.iter().map(|(place, number, refused)| (place.as_str(), *number, *refused)).collect();
    let of_model = [("2", 0, true), ("2", 1, true), ("2", 2, false), ("2", 3, false), ("2", 4, true), ("2", 5, false)];
    // What no model can have left out stays as it is.
    assert_eq!(numbers, [&of_model[..], &[("3", 1, false), ("4", 4_000_000_000, false)]].concat());
}

#[test]
fn a_run_that_an_older_version_works_on_keeps_its_file_as_it_is() {
    let desk = Desk::new();
    Connection::open(desk.file()).expect("opened").execute_batch(LAYOUT_2).expect("made");
    let lock = std::fs::File::create(desk.file().with_file_name("runs.db-lock-cccccccc")).expect("made");
    lock.lock().expect("locked");
    assert!(refused(&desk).contains("works on run `cccccccc`"), "{}", refused(&desk));
    drop(lock);
    desk.store();
}

#[tokio::test]
async fn a_file_of_layout_3_is_brought_to_this_one() {
    let desk = Desk::new();
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/runs-layout-3.db");
    std::fs::copy(golden, desk.file()).expect("copied");
    let stores = [desk.store(), desk.store()];
    let runs = stores[0].list(&RunQuery { limit: 9, ..RunQuery::default() }).await.expect("listed").runs;
    let statuses: Vec<RunStatus> = runs.iter().map(|run| run.status).collect();
    assert_eq!(statuses, [RunStatus::Waiting, RunStatus::Completed, RunStatus::Waiting]);
    for run in &runs {
        let record = stores[1].find(run.id.as_str()).await.expect("found");
        // What they were loaded from was not kept then.
        assert_eq!((record.header.kept, record.revision), (false, None));
    }
    let taken = stores[1].take(&runs[2].id, Fact::Resumed).await.expect("it goes on");
    assert_eq!(taken.history.entries.len(), 4);
    drop(taken);
    assert!(stores[0].find(runs[0].id.as_str()).await.expect("found").header.thread().is_some());
    drop(stores);
    desk.store();
}

/// The indices of a file, by their names.
fn indices(desk: &Desk) -> Vec<String> {
    let connection = Connection::open(desk.file()).expect("opened");
    let mut statement = connection
        .prepare("SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL ORDER BY name")
        .expect("compiled");
    let names = statement.query_map([], |row| row.get::<_, String>(0)).expect("read");
    names.collect::<Result<Vec<String>, _>>().expect("read")
}

#[tokio::test]
async fn a_file_of_layout_5_gets_the_indices_of_this_one() {
    let desk = Desk::new();
    let run = ended(&desk.store(), &header("a"), "done").await;
    let of_this = indices(&desk);
    without_indices(&desk);
    assert!(indices(&desk).len() < of_this.len());
    let stores = [desk.store(), desk.store()];
    assert_eq!(indices(&desk), of_this);
    assert_eq!(stores[1].find(run.as_str()).await.expect("found").status, RunStatus::Completed);
    // So do older ones.
    let older = Desk::new();
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/runs-layout-3.db");
    std::fs::copy(golden, older.file()).expect("copied");
    drop(older.store());
    assert_eq!(indices(&older), of_this);
}
