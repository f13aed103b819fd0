//! Journals that were changed or cut off behind our back: what is whole is shown, the rest is named, nothing goes on from it.

use hotcell_journal::{Fact, JournalError, RunId, RunStatus, RunStore};
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

#[tokio::test]
async fn a_run_without_its_beginning_says_so() {
    let (desk, run) = damaged("DELETE FROM entries WHERE number = 1").await;
    let found = desk.store().find(run.as_str()).await.expect_err("it does not say how it began").to_string();
    assert!(found.contains("is damaged at entry 1"), "{found}");
}
