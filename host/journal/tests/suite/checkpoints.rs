//! The log of the file is written back while runs are written, and while processes are killed.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use hotcell_journal::{RunQuery, RunStatus, RunStore, SqliteStore};

use crate::support::{Desk, done, facts, header, soon, turn};

/// From how many pages on the log is written back here: so few that it is always being written back.
const FROM: u32 = 8;

/// What the child below has committed, a byte for each entry.
const TOLD: &str = "told";

/// Adds to a run until it is killed; only started by the test below.
#[tokio::test]
async fn child_that_commits_until_it_is_killed() {
    let Some(file) = std::env::var_os("HOTCELL_TEST_JOURNAL") else { return };
    let file = Path::new(&file);
    let store = SqliteStore::open(file).expect("opened");
    store.checkpoint_from(FROM);
    let writer = store.create(&header("a"), None).await.expect("created");
    let mut told = OpenOptions::new().append(true).create(true).open(file.with_file_name(TOLD)).expect("opened");
    for number in 1..1_000_000 {
        writer.append(vec![turn(number)]).await.expect("added");
        told.write_all(b".").expect("told");
    }
}

#[tokio::test]
async fn what_was_committed_is_there_when_a_process_is_killed_while_it_writes_the_log_back() {
    let desk = Desk::new();
    let told = desk.file().with_file_name(TOLD);
    let length = || std::fs::metadata(&told).map_or(0, |told| told.len());
    for (lives, entries) in [3, 20, 50, 90, 140, 200, 270, 350].into_iter().enumerate() {
        let mut child = Command::new(std::env::current_exe().expect("a program"))
            .args(["--exact", "checkpoints::child_that_commits_until_it_is_killed"])
            .env("HOTCELL_TEST_JOURNAL", desk.file())
            .stdout(Stdio::null())
            .spawn()
            .expect("started");
        soon(async {
            while length() < entries {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
        .await;
        child.kill().expect("killed");
        child.wait().expect("gone");
        let store = desk.store();
        let runs = store.list(&RunQuery { limit: 100, ..RunQuery::default() }).await.expect("listed").runs;
        assert_eq!(runs.len(), lives + 1);
        for run in &runs {
            assert_eq!(run.status, RunStatus::Interrupted);
            // All of them are what was written, the one it began with included.
            let found = facts(&store, &run.id).await.len() as u64;
            assert!(run.id != runs[0].id || found > length(), "{found} of {}", length());
        }
        std::fs::remove_file(&told).expect("removed");
        let connection = rusqlite::Connection::open(desk.file()).expect("opened");
        let whole: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("checked");
        assert_eq!(whole, "ok");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_write_the_log_back_side_by_side() {
    let desk = Desk::new();
    let mut both = tokio::task::JoinSet::new();
    for name in ["a", "b"] {
        let store = desk.store();
        store.checkpoint_from(FROM);
        both.spawn(async move {
            let writer = store.create(&header(name), None).await.expect("created");
            for number in 1..=300 {
                writer.append(vec![turn(number)]).await.expect("added");
            }
            writer.append(vec![done(name)]).await.expect("added");
            writer.run().clone()
        });
    }
    let store = desk.store();
    while let Some(run) = soon(both.join_next()).await {
        assert_eq!(facts(&store, &run.expect("no panic")).await.len(), 302);
    }
}
