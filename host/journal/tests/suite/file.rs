//! What is about the file: other processes, writing together, space.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use hotcell_journal::{Entry, Fact, JournalError, RunQuery, RunStatus, RunStore, RunWriter, SqliteStore};

use crate::support::{Desk, answered, asking, done, ended, facts, header, soon, turn};

#[tokio::test]
async fn messages_wake_the_process_that_works_on_the_run() {
    let desk = Desk::new();
    let (one, other) = (desk.store(), desk.store());
    let writer = asking(&one).await;
    let run = writer.run().clone();
    let receiving = tokio::spawn(async move {
        let received = writer.receive().await;
        (writer, received)
    });
    tokio::task::yield_now().await;
    other.send(&run, answered(1, 0, "yes")).await.expect("sent");
    let (writer, received) = soon(receiving).await.expect("no panic");
    assert_eq!(received.expect("received"), [answered(1, 0, "yes")]);

    let waiting = tokio::spawn(async move { other.released(&run).await });
    tokio::time::sleep(Duration::from_millis(20)).await;
    writer.append(vec![done("x")]).await.expect("added");
    soon(waiting).await.expect("no panic").expect("released");
}

/// Whoever follows the run waits already when the other process writes: it is woken by nothing else.
#[test]
fn whoever_follows_a_run_is_told_what_another_process_does_with_it() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("made");
    let desk = Desk::new();
    let (one, other) = (desk.store(), desk.store());
    let writer = runtime.block_on(one.create(&header("a"), None)).expect("created");
    let run = writer.run().clone();
    let told = |after: u64, what: &dyn Fn()| {
        let mut waiting = pin!(other.moved_on(&run, after));
        // Where no runtime is entered, all that comes before the waiting is done at once.
        let is_waiting = waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending();
        assert!(is_waiting, "nothing was done after entry {after}");
        what();
        runtime.block_on(async { soon(waiting).await }).expect("told");
    };
    runtime.block_on(soon(other.moved_on(&run, 0))).expect("there is an entry already");
    for number in 1..4 {
        told(number, &|| runtime.block_on(writer.append(vec![turn(number)])).expect("added"));
    }
    // The log is begun anew, and those who read go on reading.
    let checkpoint = || {
        let file = rusqlite::Connection::open(desk.file()).expect("opened");
        file.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).expect("written back");
    };
    checkpoint();
    told(4, &|| runtime.block_on(writer.append(vec![turn(4)])).expect("added"));
    told(5, &|| runtime.block_on(one.send(&run, Entry::of_run(Fact::Cancelled))).expect("sent"));
    assert_eq!(runtime.block_on(other.find(run.as_str())).expect("found").status, RunStatus::Cancelled);
    let nobody = "nobody".to_owned().into();
    let unknown = runtime.block_on(other.moved_on(&nobody, 0));
    assert!(matches!(unknown, Err(JournalError::NoSuchRun(_))), "{unknown:?}");

    let writer = runtime.block_on(one.create(&header("b"), None)).expect("created");
    let run = writer.run().clone();
    let mut waiting = pin!(other.moved_on(&run, 1));
    assert!(waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending(), "somebody works on it");
    drop(writer);
    runtime.block_on(async { soon(waiting).await }).expect("told");
    assert_eq!(runtime.block_on(other.find(run.as_str())).expect("found").status, RunStatus::Interrupted);
}

#[tokio::test]
async fn what_was_sent_to_a_new_run_before_anybody_waits_for_it_is_received() {
    let desk = Desk::new();
    let (one, other) = (desk.store(), desk.store());
    for sender in [&one, &other] {
        let writer = asking(&one).await;
        sender.send(writer.run(), answered(1, 0, "yes")).await.expect("sent");
        assert_eq!(soon(writer.receive()).await.expect("received"), [answered(1, 0, "yes")]);
    }
}

/// A trigger that never ends was begun by the first entry that was written.
#[tokio::test]
async fn a_journal_with_triggers_or_views_is_refused() {
    for foreign in [
        "CREATE TRIGGER t AFTER UPDATE ON runs BEGIN SELECT * FROM runs, runs, runs; END",
        "CREATE VIEW v AS SELECT * FROM runs",
    ] {
        let desk = Desk::new();
        ended(&desk.store(), &header("a"), "done").await;
        rusqlite::Connection::open(desk.file()).expect("opened").execute_batch(foreign).expect("made");
        let refused = SqliteStore::open(&desk.file()).map(|_| ()).expect_err("it is not ours").to_string();
        assert!(refused.contains("it has triggers or views"), "{refused}");
    }
}

/// Works on a run until it is killed; only started by the test below.
#[tokio::test]
async fn child_that_is_killed() {
    let Some(file) = std::env::var_os("HOTCELL_TEST_JOURNAL") else { return };
    let store = SqliteStore::open(file.as_ref()).expect("opened");
    let writer = store.create(&header("a"), None).await.expect("created");
    writer.append(vec![turn(1)]).await.expect("added");
    std::thread::sleep(Duration::from_secs(120));
}

#[tokio::test]
async fn a_process_that_is_killed_gives_its_runs_free() {
    let desk = Desk::new();
    let store = desk.store();
    let mut child = std::process::Command::new(std::env::current_exe().expect("a program"))
        .args(["--exact", "file::child_that_is_killed"])
        .env("HOTCELL_TEST_JOURNAL", desk.file())
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("started");
    let run = soon(async {
        loop {
            let page = store.list(&RunQuery { limit: 1, ..RunQuery::default() }).await.expect("listed");
            match page.runs.into_iter().next() {
                Some(run) if facts(&store, &run.id).await.len() == 2 => break run.id,
                _ => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    })
    .await;
    assert_eq!(store.find(run.as_str()).await.expect("found").status, RunStatus::Running);
    assert!(matches!(store.take(&run, Fact::Resumed).await.err(), Some(JournalError::Busy(_))));
    let store = Arc::new(store);
    let waiting = tokio::spawn({
        let (store, run) = (store.clone(), run.clone());
        async move { store.released(&run).await }
    });
    let following = tokio::spawn({
        let (store, run) = (Arc::new(desk.store()), run.clone());
        async move { store.moved_on(&run, 2).await }
    });
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(!following.is_finished(), "somebody works on it");
    child.kill().expect("killed");
    child.wait().expect("gone");
    soon(waiting).await.expect("no panic").expect("released");
    soon(following).await.expect("no panic").expect("told");
    assert_eq!(store.find(run.as_str()).await.expect("found").status, RunStatus::Interrupted);
    let taken = store.take(&run, Fact::Resumed).await.expect("free");
    assert_eq!(taken.history.entries.len(), 3);
}

/// Has the only process that works on runs of the journal be taken for dead.
fn seem_dead(desk: &Desk) {
    let pipe = desk.beside().into_iter().find(|name| name.contains("-owner-")).expect("a pipe");
    std::fs::remove_file(desk.file().with_file_name(pipe)).expect("removed");
}

#[tokio::test]
async fn a_writer_that_lost_its_run_is_refused_by_the_sequence() {
    let desk = Desk::new();
    let (one, other) = (desk.store(), desk.store());
    let zombie = one.create(&header("a"), None).await.expect("created");
    let run = zombie.run().clone();
    seem_dead(&desk);
    let taken = other.take(&run, Fact::Resumed).await.expect("its owner seems to be gone");
    for _ in 0..2 {
        let refused = zombie.append(vec![turn(1)]).await;
        assert!(matches!(refused, Err(JournalError::Fenced(_))), "{refused:?}");
    }
    taken.writer.append(vec![turn(1), done("x")]).await.expect("added");
    assert_eq!(facts(&other, &run).await.len(), 4);
    drop(zombie);
    assert_eq!(other.find(run.as_str()).await.expect("found").status, RunStatus::Completed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_runs_write_together_and_each_is_whole() {
    for safe in [false, true] {
        let desk = Desk::new();
        let store =
            if safe { SqliteStore::open_safe_from_power_loss(&desk.file()) } else { SqliteStore::open(&desk.file()) };
        write_together(Arc::new(store.expect("opened"))).await;
    }
}

async fn write_together(store: Arc<SqliteStore>) {
    let mut runs = tokio::task::JoinSet::new();
    for _ in 0..24 {
        let store = store.clone();
        runs.spawn(async move {
            let writer: Arc<dyn RunWriter> = store.create(&header("a"), None).await.expect("created").into();
            let mut parts = tokio::task::JoinSet::new();
            // Branches of one run write side by side, too.
            for branch in 0..4 {
                let writer = writer.clone();
                parts.spawn(async move {
                    for number in 0..25 {
                        writer.append(vec![turn(branch * 100 + number)]).await.expect("added");
                    }
                    writer.settled().await.expect("safe");
                });
            }
            while let Some(part) = parts.join_next().await {
                part.expect("no panic");
            }
            writer.append(vec![done("x")]).await.expect("added");
            writer.run().clone()
        });
    }
    while let Some(run) = runs.join_next().await {
        let run = run.expect("no panic");
        assert_eq!(facts(&*store, &run).await.len(), 102);
        assert_eq!(store.find(run.as_str()).await.expect("found").status, RunStatus::Completed);
    }
}

#[tokio::test]
async fn a_run_whose_beginner_went_away_is_free() {
    let desk = Desk::new();
    let store = desk.store();
    let _other = store.create(&header("a"), None).await.expect("created");
    let given = header("b");
    tokio::select! {
        biased;
        // Its beginning was handed over, or is there already.
        _ = store.create(&given, None) => {}
        () = std::future::ready(()) => {}
    }
    let begun = async {
        let query = RunQuery { graph: Some("b".to_owned()), limit: 1, ..RunQuery::default() };
        loop {
            let page = store.list(&query).await.expect("listed");
            if let Some(run) = page.runs.into_iter().next() {
                return run.id;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let run = soon(begun).await;
    soon(store.released(&run)).await.expect("read");
    store.take(&run, Fact::Resumed).await.expect("it is free");
}

#[tokio::test]
async fn one_that_is_refused_is_no_harm_to_those_who_write_with_it() {
    let desk = Desk::new();
    let one = Arc::new(SqliteStore::open_safe_from_power_loss(&desk.file()).expect("opened"));
    let other = desk.store();
    let zombie = one.create(&header("a"), None).await.expect("created");
    let fine = one.create(&header("b"), None).await.expect("created");
    seem_dead(&desk);
    other.take(zombie.run(), Fact::Resumed).await.expect("taken");
    let add = async |writer: &dyn RunWriter| {
        writer.append(vec![turn(1)]).await?;
        writer.settled().await
    };
    let (refused, added) = tokio::join!(add(&*zombie), add(&*fine));
    assert!(matches!(refused, Err(JournalError::Fenced(_))), "{refused:?}");
    added.expect("added");
}

#[tokio::test]
async fn nothing_is_left_beside_the_journal_by_processes_that_are_gone() {
    let desk = Desk::new();
    let store = desk.store();
    ended(&store, &header("a"), "x").await;
    let pipe = desk.beside().into_iter().find(|name| name.contains("-owner-")).expect("a pipe");
    drop(store);
    assert!(!desk.beside().contains(&pipe), "it is removed at the end");
    // One that was killed could not.
    let stale = desk.file().with_file_name("runs.db-owner-stale");
    rustix::fs::mknodat(rustix::fs::CWD, &stale, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).expect("made");
    // And one that another process is making at this moment: nobody reads it yet.
    let making = desk.file().with_file_name("runs.db-new-making");
    rustix::fs::mknodat(rustix::fs::CWD, &making, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).expect("made");
    ended(&desk.store(), &header("a"), "x").await;
    assert!(!stale.exists() && making.exists());
}

#[tokio::test]
async fn space_is_given_back() {
    let desk = Desk::new();
    let store = desk.store();
    for _ in 0..40 {
        ended(&store, &header("a"), &"x".repeat(50_000)).await;
    }
    let kept = ended(&store, &header("kept"), "x").await;
    let pruned = store.prune(&RunQuery { graph: Some("a".into()), ..RunQuery::default() }).await.expect("pruned");
    assert_eq!(pruned.runs, 40);
    let left = std::fs::metadata(desk.file()).expect("there").len();
    assert!(pruned.bytes > 1_500_000 && left < 300_000, "{pruned:?} {left}");
    assert_eq!(facts(&store, &kept).await.len(), 3);
}

#[tokio::test]
async fn a_full_disk_stops_the_run_with_what_was_committed_and_it_goes_on_afterwards() {
    let desk = Desk::new();
    let store = desk.store();
    let writer = store.create(&header("a"), None).await.expect("created");
    writer.append(vec![turn(1)]).await.expect("added");
    let run = writer.run().clone();
    // The limit of a connection is as good as a disk that is full: SQLite says the same.
    store.limit_size(1);
    let large = Entry::of_run(Fact::Ended { result: Ok("x".repeat(5_000_000)), node: None });
    let full = writer.append(vec![large]).await.expect_err("full");
    assert!(full.to_string().contains("database or disk is full"), "{full}");
    assert!(writer.append(vec![turn(2)]).await.is_err(), "nothing comes after what is missing");
    drop(writer);
    store.limit_size(u32::MAX);
    assert_eq!(facts(&store, &run).await.len(), 2);
    let taken = store.take(&run, Fact::Resumed).await.expect("taken");
    taken.writer.append(vec![turn(2), done("x")]).await.expect("added");
}

#[tokio::test]
async fn a_journal_belongs_to_its_user() {
    use std::os::unix::fs::PermissionsExt;
    let desk = Desk::new();
    let store = desk.store();
    let _writer = store.create(&header("a"), None).await.expect("created");
    for name in desk.beside().into_iter().chain(["runs.db".to_owned()]) {
        let mode = std::fs::metadata(desk.file().with_file_name(&name)).expect("there").permissions().mode();
        assert_eq!(mode & 0o077, 0, "{name} is {mode:o}");
    }
}

#[test]
fn processes_that_make_the_file_at_the_same_moment_all_get_it() {
    for _ in 0..40 {
        let desk = Desk::new();
        let barrier = std::sync::Barrier::new(6);
        std::thread::scope(|scope| {
            let open = || {
                barrier.wait();
                SqliteStore::open(&desk.file()).map(drop)
            };
            let threads: Vec<_> = (0..6).map(|_| scope.spawn(open)).collect();
            threads.into_iter().for_each(|thread| thread.join().expect("no panic").expect("opened"));
        });
    }
}

#[test]
fn processes_that_begin_at_the_same_moment_do_not_take_each_other_for_dead() {
    let desk = Desk::new();
    let watching = desk.store();
    for _ in 0..20 {
        // Each store is a process of its own, as far as the file can tell.
        let barrier = std::sync::Barrier::new(6);
        std::thread::scope(|scope| {
            let begin = || {
                let store = desk.store();
                barrier.wait();
                let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
                let writer = runtime.block_on(store.create(&header("a"), None)).expect("created");
                barrier.wait();
                let found = runtime.block_on(watching.find(writer.run().as_str())).expect("found");
                assert_eq!(found.status, RunStatus::Running);
            };
            let threads: Vec<_> = (0..6).map(|_| scope.spawn(begin)).collect();
            threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
        });
    }
}

#[tokio::test]
async fn an_owner_that_is_no_pipe_beside_the_journal_is_nobody() {
    let desk = Desk::new();
    let store = desk.store();
    let writer = asking(&store).await;
    let run = writer.run().clone();
    std::mem::forget(writer);
    let letter = desk.file().with_file_name("letter");
    std::fs::write(&letter, "dear").expect("written");
    // What the path of a pipe would lead to, if names were taken as they are; and a file in the place of a pipe.
    std::fs::create_dir(desk.file().with_file_name("runs.db-owner-x")).expect("made");
    std::fs::write(desk.file().with_file_name("runs.db-owner-plain"), "dear").expect("written");
    for owner in ["x/../letter", "plain", ""] {
        let connection = rusqlite::Connection::open(desk.file()).expect("opened");
        connection.execute("UPDATE runs SET owner = ?1", [owner]).expect("changed");
        let other = desk.store();
        assert_eq!(other.find(run.as_str()).await.expect("found").status, RunStatus::Interrupted, "{owner}");
        // Whoever is taken for alive is woken by writing to its pipe.
        let _ = other.send(&run, answered(1, 0, "yes")).await;
    }
    for name in ["letter", "runs.db-owner-plain"] {
        let text = std::fs::read_to_string(desk.file().with_file_name(name)).expect("read");
        assert_eq!(text, "dear");
    }
}
