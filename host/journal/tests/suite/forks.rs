//! Runs that begin with the entries of another one.

use std::time::{Duration, SystemTime};

use hotcell_journal::{
    Entry, EntryPath, Fact, JournalError, NumberedEntry, Question, RunId, RunQuery, RunStatus, RunStore,
};

use crate::support::{Desk, answered, asked, asking, done, facts, given, header, turn};

/// A run that asked, was answered, and rested in between.
async fn source(store: &dyn RunStore) -> RunId {
    let writer = store.create(&header("a"), None).await.expect("created");
    writer.append(vec![turn(1), asked(2, 0), Entry::of_run(Fact::Waiting)]).await.expect("added");
    let run = writer.run().clone();
    drop(writer);
    store.send(&run, answered(2, 0, "yes")).await.expect("sent");
    let taken = store.take(&run, Fact::Resumed).await.expect("taken");
    taken.writer.append(vec![turn(2), done("result")]).await.expect("added");
    run
}

async fn first(store: &dyn RunStore, run: &RunId, count: usize) -> Vec<NumberedEntry> {
    store.entries(run, 0, count).await.expect("read").entries
}

#[tokio::test]
async fn a_fork_has_the_entries_of_its_run_when_they_were_written_and_goes_on() {
    for store in Desk::new().stores() {
        let run = source(&*store).await;
        let before = facts(&*store, &run).await;
        let copied = first(&*store, &run, 5).await;
        let fork = store.fork(&header("b"), copied.clone(), vec![Entry::of_run(Fact::Forked)]).await.expect("forked");
        let id = fork.run().clone();
        assert_eq!(store.find(id.as_str()).await.expect("found").status, RunStatus::Running);
        assert!(matches!(store.take(&id, Fact::Resumed).await.err(), Some(JournalError::Busy(_))));
        let of_fork = first(&*store, &id, 10).await;
        let kinds: Vec<Fact> = of_fork.iter().map(|entry| entry.entry.fact.clone()).collect();
        assert_eq!(kinds[0], Fact::Started(header("b")));
        assert_eq!(kinds[1..5], before[1..5]);
        assert_eq!(kinds[5..], [Fact::Forked]);
        let micros = |at: SystemTime| at.duration_since(SystemTime::UNIX_EPOCH).expect("a time").as_micros();
        for (own, of_source) in of_fork.iter().zip(&copied).skip(1) {
            assert_eq!(micros(own.at), micros(of_source.at));
        }
        // The question has its answer here, too.
        let again = fork.append(vec![answered(2, 0, "no")]).await;
        assert!(matches!(again, Err(JournalError::NotAsked { .. })), "{again:?}");
        fork.append(vec![turn(2), done("other")]).await.expect("added");
        let record = store.find(id.as_str()).await.expect("found");
        assert_eq!((record.status, record.outcome.as_deref()), (RunStatus::Completed, Some("other")));
        assert_eq!(facts(&*store, &run).await, before, "nothing of the run itself is changed");
        // Each of them can go without the other.
        store.prune(&RunQuery { run: Some(run), ..RunQuery::default() }).await.expect("removed");
        assert_eq!(facts(&*store, &id).await.len(), 8);
    }
}

#[tokio::test]
async fn a_fork_that_nobody_goes_on_with_is_free_when_its_writer_is_gone() {
    let desk = Desk::new();
    for store in desk.stores() {
        let run = source(&*store).await;
        let fork = store.fork(&header("a"), first(&*store, &run, 4).await, vec![Entry::of_run(Fact::Forked)]).await;
        let id = fork.expect("forked").run().clone();
        assert_eq!(store.find(id.as_str()).await.expect("found").status, RunStatus::Interrupted);
        let taken = store.take(&id, Fact::Resumed).await.expect("free");
        // An answer that came after those entries is none of the fork's.
        taken.writer.append(vec![answered(2, 0, "no")]).await.expect("the first one");
    }
}

#[tokio::test]
async fn a_copy_stands_as_its_run_does() {
    for store in Desk::new().stores() {
        let run = source(&*store).await;
        let all = first(&*store, &run, 100).await;
        let copy = store.fork(&header("a"), all, Vec::new()).await.expect("copied").run().clone();
        let record = store.find(copy.as_str()).await.expect("found");
        assert_eq!((record.status, record.outcome.as_deref()), (RunStatus::Completed, Some("result")));
        let writer = store.create(&header("a"), None).await.expect("created");
        writer.append(vec![asked(1, 0), Entry::of_run(Fact::Waiting)]).await.expect("added");
        let waiting = first(&*store, writer.run(), 100).await;
        let copy = store.fork(&header("a"), waiting, Vec::new()).await.expect("copied").run().clone();
        assert_eq!(store.find(copy.as_str()).await.expect("found").status, RunStatus::Waiting);
        store.send(&copy, answered(1, 0, "yes")).await.expect("it takes an answer");
        assert!(facts(&*store, writer.run()).await.iter().all(|fact| !matches!(fact, Fact::Answered { .. })));
    }
}

#[tokio::test]
async fn what_of_a_fork_is_due_is_found() {
    for store in Desk::new().stores() {
        let now = SystemTime::now();
        let question = Question { expires: Some(now + Duration::from_secs(60)), ..Question::default() };
        let asked = Entry { place: EntryPath::of_turn(1), fact: Fact::Asked { number: 0, question } };
        let copied = vec![NumberedEntry { number: 2, at: now, entry: asked }];
        let fork = store.fork(&header("a"), copied, vec![Entry::of_run(Fact::Forked)]).await.expect("forked");
        let id = fork.run().clone();
        drop(fork);
        assert_eq!(store.due(now + Duration::from_secs(61)).await.expect("read"), [id]);
    }
}

#[tokio::test]
async fn a_fork_of_which_something_is_not_kept_is_not_begun() {
    for store in Desk::new().stores() {
        let run = source(&*store).await;
        let copied = first(&*store, &run, 2).await;
        let revised = vec![Entry::of_run(Fact::Forked), Entry::of_run(Fact::Revised { digest: "gone".into() })];
        let refused = store.fork(&header("a"), copied, revised).await;
        assert!(matches!(refused.err(), Some(JournalError::NotKept(digest)) if digest == "gone"));
        assert_eq!(store.list(&RunQuery { limit: 9, ..RunQuery::default() }).await.expect("read").runs.len(), 1);
    }
}

#[tokio::test]
async fn what_a_fork_adds_is_read_back() {
    for store in Desk::new().stores() {
        let writer = store.create(&header("a"), None).await.expect("created");
        let place = EntryPath::from("3.call0.1".to_owned());
        let withheld = Fact::Withheld { effect: "`POST https://a.example`".into() };
        writer.append(vec![Entry::of_run(Fact::Forked), Entry { place, fact: withheld.clone() }]).await.expect("added");
        assert_eq!(facts(&*store, writer.run()).await[1..], [Fact::Forked, withheld]);
    }
}

#[tokio::test]
async fn the_last_entry_is_known_without_the_others() {
    let desk = Desk::new();
    for store in desk.stores() {
        let writer = asking(&*store).await;
        let run = writer.run().clone();
        assert_eq!(store.last_entry(&run).await.expect("known"), 2);
        store.send(&run, answered(1, 0, "yes")).await.expect("sent");
        assert_eq!(store.last_entry(&run).await.expect("known"), 2, "it was not received");
        writer.receive().await.expect("received");
        assert_eq!(store.last_entry(&run).await.expect("known"), 3);
        let unknown = store.last_entry(&"nobody".to_owned().into()).await;
        assert!(matches!(unknown, Err(JournalError::NoSuchRun(_))), "{unknown:?}");
    }
}

#[tokio::test]
async fn a_thread_goes_on_from_what_is_left_of_it() {
    let desk = Desk::new();
    for store in desk.stores() {
        let of_thread = given("a", &[("thread", "talk")]);
        let mut last: Option<RunId> = None;
        for _ in 0..3 {
            let writer = store.create(&of_thread, last.as_ref()).await.expect("created");
            writer.append(vec![done("x")]).await.expect("added");
            let run = writer.run().clone();
            drop(writer);
            if let Some(before) = last.replace(run.clone()) {
                assert_ne!(before, run);
                let newest = RunQuery { run: Some(run), ..RunQuery::default() };
                assert_eq!(store.prune(&newest).await.expect("removed").runs, 1);
                let left = store.last_of_thread("test", "talk").await.expect("read").expect("there");
                assert_eq!(left.id, before);
                last = Some(before);
            }
        }
    }
}
