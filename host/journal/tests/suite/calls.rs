//! Recordings of calls, kept beside the entries.

use hotcell_journal::{EntryPath, RecordedCall, RunQuery, RunStore, SqliteStore, StoredCall};
use rusqlite::Connection;

use crate::support::{Desk, done, facts, header, turn, without_indices};

fn recorded(place: u64, body: &str) -> RecordedCall {
    RecordedCall { place: EntryPath::of_turn(place), name: "calc".to_owned(), body: body.as_bytes().to_vec() }
}

fn bodies(calls: &[StoredCall]) -> Vec<(u64, String, String)> {
    let body = |call: &StoredCall| String::from_utf8_lossy(call.body.as_deref().unwrap_or(b"damaged")).into_owned();
    calls.iter().map(|call| (call.number, call.place.to_string(), body(call))).collect()
}

#[tokio::test]
async fn recordings_come_back_in_their_order_and_in_pages() {
    let desk = Desk::new();
    for store in desk.stores() {
        let writer = store.create(&header("a"), None).await.expect("created");
        let other = store.create(&header("b"), None).await.expect("created");
        writer.record(recorded(1, "one"));
        writer.append(vec![turn(1)]).await.expect("added");
        other.record(recorded(1, "of another run"));
        writer.record(recorded(2, "two"));
        writer.record(recorded(2, "three"));
        writer.append(vec![turn(2)]).await.expect("added");
        writer.settled().await.expect("safe");
        let run = writer.run().clone();
        let all = store.calls(&run, 0, 100).await.expect("read");
        let expected = [(1, "1", "one"), (2, "2", "two"), (3, "2", "three")];
        let expected: Vec<_> = expected.map(|(number, place, body)| (number, place.into(), body.into())).into();
        assert_eq!(bodies(&all), expected);
        assert_eq!(all[0].name, "calc");
        assert_eq!(bodies(&store.calls(&run, 1, 1).await.expect("read")), expected[1..2]);
        assert_eq!(store.calls(&run, 3, 100).await.expect("read"), []);
    }
}

#[tokio::test]
async fn what_no_entry_came_after_is_kept_when_the_writer_goes() {
    let desk = Desk::new();
    let store = desk.store();
    let writer = store.create(&header("a"), None).await.expect("created");
    writer.append(vec![turn(1), done("")]).await.expect("added");
    writer.record(recorded(1, "a hook that was told of the end"));
    let run = writer.run().clone();
    drop(writer);
    drop(store);
    assert_eq!(desk.store().calls(&run, 0, 9).await.expect("read").len(), 1);
}

#[tokio::test]
async fn a_damaged_recording_is_named_and_the_run_and_the_others_are_whole() {
    for change in ["body = x'00'", "name = 'other'", "place = '9'", "sum = sum + 1", "body = 'text'"] {
        let desk = Desk::new();
        let store = desk.store();
        let writer = store.create(&header("a"), None).await.expect("created");
        writer.record(recorded(1, "one"));
        writer.record(recorded(1, "two"));
        writer.append(vec![turn(1)]).await.expect("added");
        let run = writer.run().clone();
        drop(writer);
        drop(store);
        let connection = Connection::open(desk.file()).expect("opened");
        connection.execute(&format!("UPDATE calls SET {change} WHERE number = 1"), []).expect("changed");
        let store = desk.store();
        let calls = store.calls(&run, 0, 9).await.expect("read");
        assert!(calls[0].body.is_err() && calls[1].body.is_ok(), "{change}: {calls:?}");
        assert_eq!(facts(&store, &run).await.len(), 2);
    }
}

#[tokio::test]
async fn recordings_go_with_their_run() {
    let desk = Desk::new();
    let store = desk.store();
    let writer = store.create(&header("a"), None).await.expect("created");
    writer.record(recorded(1, "one"));
    writer.append(vec![done("")]).await.expect("added");
    drop(writer);
    store.prune(&RunQuery::default()).await.expect("removed");
    drop(store);
    let connection = Connection::open(desk.file()).expect("opened");
    let left: i64 = connection.query_row("SELECT count(*) FROM calls", [], |row| row.get(0)).expect("read");
    assert_eq!(left, 0);
}

#[tokio::test]
async fn a_file_of_layout_4_goes_on_and_takes_recordings() {
    let desk = Desk::new();
    let store = desk.store();
    let writer = store.create(&header("a"), None).await.expect("created");
    writer.append(vec![turn(1)]).await.expect("added");
    let run = writer.run().clone();
    drop(writer);
    drop(store);
    // As a version left it that kept none.
    without_indices(&desk);
    let connection = Connection::open(desk.file()).expect("opened");
    connection.execute_batch("DROP TABLE calls; PRAGMA user_version = 4;").expect("made");
    drop(connection);
    let store = SqliteStore::open(&desk.file()).expect("it is brought to this layout");
    assert_eq!(store.calls(&run, 0, 9).await.expect("read"), []);
    let taken = store.take(&run, hotcell_journal::Fact::Resumed).await.expect("it goes on");
    taken.writer.record(recorded(2, "two"));
    taken.writer.append(vec![turn(2)]).await.expect("added");
    assert_eq!(store.calls(&run, 0, 9).await.expect("read").len(), 1);
    assert_eq!(facts(&store, &run).await.len(), 4);
}
