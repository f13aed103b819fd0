//! What every store promises.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hotcell_graph::Value;
use hotcell_journal::{Entry, EntryPath, Fact, JournalError, Question, RunId, RunQuery, RunStatus, Taken};

use crate::support::{Desk, answered, asked, asking, done, ended, facts, given, header, turn};

#[tokio::test]
async fn a_run_is_its_entries_and_how_it_stands_follows_from_them() {
    for store in Desk::new().stores() {
        let writer = store.create(&header("a"), None).await.expect("created");
        let run = writer.run().clone();
        let status = async || store.find(run.as_str()).await.expect("found").status;
        assert_eq!(status().await, RunStatus::Running);
        writer.append(vec![turn(1), turn(2)]).await.expect("added");
        drop(writer);
        assert_eq!(status().await, RunStatus::Interrupted);

        let Taken { writer, history } = store.take(&run, Fact::Resumed).await.expect("taken");
        assert_eq!((history.entries.len(), status().await), (4, RunStatus::Running));
        writer.append(vec![asked(3, 0), Entry::of_run(Fact::Waiting)]).await.expect("added");
        assert_eq!(status().await, RunStatus::Waiting);

        let Taken { writer, .. } = store.take(&run, Fact::Resumed).await.expect("resting gave it free");
        writer.append(vec![done("result")]).await.expect("added");
        let record = store.find(&run.as_str()[..7]).await.expect("found");
        assert_eq!((record.status, record.outcome.as_deref()), (RunStatus::Completed, Some("result")));
        assert_eq!(record.header, header("a"));
        let taken = store.take(&run, Fact::Resumed).await;
        assert!(matches!(taken.err(), Some(JournalError::Ended { status: RunStatus::Completed, .. })));
        assert_eq!(facts(&*store, &run).await.len(), 8);
    }
}

#[tokio::test]
async fn a_failed_run_is_taken_to_be_retried_and_for_nothing_else() {
    for store in Desk::new().stores() {
        let writer = store.create(&header("a"), None).await.expect("created");
        let failed = Fact::Ended { result: Err("no".into()), node: Some("b".into()) };
        writer.append(vec![Entry::of_run(failed)]).await.expect("added");
        let run = writer.run().clone();
        assert!(store.take(&run, Fact::Resumed).await.is_err());
        assert!(store.take(&run, Fact::Retried).await.is_ok());
        assert!(store.take(&run, Fact::Resumed).await.is_ok(), "it is not failed any more");
    }
}

#[tokio::test]
async fn one_writer_at_a_time() {
    for store in Desk::new().stores() {
        let writer = store.create(&header("a"), None).await.expect("created");
        let taken = store.take(writer.run(), Fact::Resumed).await;
        assert!(matches!(taken.err(), Some(JournalError::Busy(_))));
        let run = writer.run().clone();
        drop(writer);
        store.take(&run, Fact::Resumed).await.expect("free");
    }
}

#[tokio::test]
async fn an_answer_reaches_a_run_that_is_worked_on_and_one_that_rests() {
    for store in Desk::new().stores() {
        let writer = asking(&*store).await;
        let run = writer.run().clone();
        let receiving = tokio::spawn(async move {
            let received = writer.receive().await;
            (writer, received)
        });
        tokio::task::yield_now().await;
        store.send(&run, answered(1, 0, "yes")).await.expect("sent");
        let (writer, received) = receiving.await.expect("no panic");
        assert_eq!(received.expect("received"), [answered(1, 0, "yes")]);
        assert!(store.unread(&run).await.expect("read").is_empty());
        // It is an entry now, and is not received twice.
        writer.append(vec![asked(2, 0), Entry::of_run(Fact::Waiting)]).await.expect("added");

        store.send(&run, answered(2, 0, "no")).await.expect("sent");
        assert_eq!(store.with_messages().await.expect("read"), std::slice::from_ref(&run));
        assert!(facts(&*store, &run).await.contains(&answered(2, 0, "no").fact), "what was sent is seen at once");
        assert_eq!(store.unread(&run).await.expect("read"), [answered(2, 0, "no")]);
        let Taken { writer, history } = store.take(&run, Fact::Resumed).await.expect("taken");
        let last: Vec<Fact> = history.entries.into_iter().rev().take(2).map(|entry| entry.fact).collect();
        assert_eq!(last, [Fact::Resumed, answered(2, 0, "no").fact]);
        assert!(store.with_messages().await.expect("read").is_empty());
        drop(writer);
    }
}

#[tokio::test]
async fn a_question_has_one_answer() {
    for store in Desk::new().stores() {
        let writer = asking(&*store).await;
        let run = writer.run().clone();
        let refused = |result: Result<(), JournalError>| matches!(result, Err(JournalError::NotAsked { .. }));
        assert!(refused(store.send(&run, answered(1, 1, "what")).await), "never asked");
        store.send(&run, answered(1, 0, "yes")).await.expect("sent");
        assert!(refused(store.send(&run, answered(1, 0, "no")).await), "answered, though not received");
        assert!(refused(writer.append(vec![answered(1, 0, "no")]).await), "whoever asked is late, too");
        // That was no harm to the run.
        writer.receive().await.expect("received");
        writer.append(vec![asked(2, 0), answered(2, 0, "here")]).await.expect("added");
        assert!(refused(store.send(&run, answered(2, 0, "there")).await));
        assert!(refused(store.send(&run, answered(1, 0, "no")).await), "answered, and received");
    }
}

#[tokio::test]
async fn runs_and_open_questions_are_counted() {
    for store in Desk::new().stores() {
        let count = |census: &hotcell_journal::Census, wanted| {
            census.runs.iter().find(|(status, _)| *status == wanted).map(|(_, count)| *count)
        };
        let waits = store.create(&header("waits"), None).await.expect("created");
        waits.append(vec![asked(1, 0), asked(1, 1), answered(1, 1, "here")]).await.expect("added");
        let run = waits.run().clone();
        let works = store.create(&header("works"), None).await.expect("created");
        works.append(vec![asked(1, 0)]).await.expect("added");
        drop(store.create(&header("is left"), None).await.expect("created"));
        let before = store.census().await.expect("read");
        assert_eq!(before.open_questions, 0, "who is asked in a run that goes on is asked there");
        waits.append(vec![Entry::of_run(Fact::Waiting)]).await.expect("added");
        drop(waits);
        let census = store.census().await.expect("read");
        for (status, runs) in [(RunStatus::Waiting, 1), (RunStatus::Running, 1), (RunStatus::Interrupted, 1)] {
            assert_eq!(count(&census, status), Some(runs), "{status}");
        }
        assert_eq!(count(&census, RunStatus::Completed), Some(0), "every status is there");
        assert_eq!(census.open_questions, 1);
        store.send(&run, answered(1, 0, "there")).await.expect("sent");
        assert_eq!(store.census().await.expect("read").open_questions, 0, "it need not have been received");
    }
}

#[tokio::test]
async fn a_question_expires_or_is_answered() {
    let expired = |number| Entry { place: EntryPath::of_turn(1), fact: Fact::Expired { number } };
    let late = |result: Result<(), JournalError>| matches!(result, Err(JournalError::Expired { .. }));
    for store in Desk::new().stores() {
        let at = UNIX_EPOCH + Duration::from_secs(1000);
        let question = Question { expires: Some(at), ..Question::default() };
        let asks =
            |number| Entry { place: EntryPath::of_turn(1), fact: Fact::Asked { number, question: question.clone() } };
        let writer = store.create(&header("asks"), None).await.expect("created");
        let run = writer.run().clone();
        let before = at - Duration::from_secs(1);
        assert_eq!(store.next_due(before).await.expect("read"), None);
        writer.append(vec![asks(0), asks(1), asks(2)]).await.expect("added");
        assert_eq!(store.next_due(before).await.expect("read"), Some(at), "also of a run that is worked on");
        assert_eq!(store.next_due(at).await.expect("read"), None, "nothing is due after that");
        assert!(store.due(at).await.expect("read").is_empty(), "whoever works on it sees to it");

        // The first one counts, whichever it is.
        writer.append(vec![expired(0)]).await.expect("added");
        assert!(late(store.send(&run, answered(1, 0, "no")).await));
        assert!(late(writer.append(vec![answered(1, 0, "no")]).await));
        assert!(late(writer.append(vec![expired(0)]).await));
        store.send(&run, answered(1, 1, "yes")).await.expect("sent");
        let refused = writer.append(vec![expired(1)]).await;
        assert!(matches!(refused, Err(JournalError::NotAsked { .. })), "{refused:?}");
        writer.receive().await.expect("received");
        let refused = writer.append(vec![expired(1)]).await;
        assert!(matches!(refused, Err(JournalError::NotAsked { .. })), "{refused:?}");

        // One is left, for which a run that rests is found.
        writer.append(vec![Entry::of_run(Fact::Waiting)]).await.expect("added");
        drop(writer);
        assert!(store.due(at - Duration::from_secs(1)).await.expect("read").is_empty());
        assert_eq!(store.due(at).await.expect("read"), std::slice::from_ref(&run));
        let Taken { writer, history } = store.take(&run, Fact::Resumed).await.expect("taken");
        let known = history.entries.iter().filter(|entry| entry.fact == asks(0).fact).count();
        assert_eq!(known, 1, "what a question says is kept");
        writer.append(vec![expired(2), done("over")]).await.expect("added");
        assert_eq!(store.next_due(before).await.expect("read"), None);
        assert!(store.due(at).await.expect("read").is_empty());
    }
}

/// What a question says of itself is what it said, wherever it was written.
#[tokio::test]
async fn questions_are_kept_as_they_are() {
    for store in Desk::new().stores() {
        let question = Question {
            node: "ask".to_owned(),
            text: "Go?".to_owned(),
            seat: Some("boss".to_owned()),
            expires: Some(UNIX_EPOCH + Duration::from_micros(1_700_000_000_000_001)),
            operator_ids: vec!["ann".to_owned(), "bob".to_owned()],
            context: Some(Value::Object([("interface".into(), "inbox".into())].into_iter().collect())),
            denial: Some(Value::Object([("capability".into(), "llm".into())].into_iter().collect())),
            ..Question::default()
        };
        let writer = store.create(&header("asks"), None).await.expect("created");
        let fact = Fact::Asked { number: 0, question };
        writer.append(vec![Entry { place: EntryPath::of_turn(1), fact: fact.clone() }]).await.expect("added");
        assert_eq!(facts(&*store, writer.run()).await.last(), Some(&fact));
    }
}

#[tokio::test]
async fn a_cancellation_is_final_and_reaches_whoever_works_on_the_run() {
    for store in Desk::new().stores() {
        let writer = asking(&*store).await;
        let run = writer.run().clone();
        store.send(&run, Entry::of_run(Fact::Cancelled)).await.expect("sent");
        assert_eq!(store.find(run.as_str()).await.expect("found").status, RunStatus::Cancelled);
        // The end of the run was not committed before: it comes too late.
        let late = writer.append(vec![done("late")]).await;
        assert!(matches!(late, Err(JournalError::Unread(_))), "{late:?}");
        assert_eq!(writer.receive().await.expect("received"), [Entry::of_run(Fact::Cancelled)]);
        let late = writer.append(vec![turn(1)]).await;
        assert!(matches!(late, Err(JournalError::Cancelled(_))), "{late:?}");
        assert!(matches!(store.send(&run, answered(1, 0, "x")).await, Err(JournalError::Cancelled(_))));
        assert_eq!(facts(&*store, &run).await.last(), Some(&Fact::Cancelled));
        drop(writer);
        assert_eq!(store.find(run.as_str()).await.expect("found").status, RunStatus::Cancelled);

        let ended = ended(&*store, &header("a"), "x").await;
        let refused = store.send(&ended, Entry::of_run(Fact::Cancelled)).await;
        assert!(matches!(refused, Err(JournalError::Ended { .. })), "{refused:?}");
    }
}

#[tokio::test]
async fn runs_of_a_thread_come_one_after_the_other() {
    for store in Desk::new().stores() {
        let header = given("a", &[("thread", "talk")]);
        let first = store.create(&header, None).await.expect("created");
        let run = first.run().clone();
        let busy = store.create(&header, Some(&run)).await.err();
        assert!(matches!(busy, Some(JournalError::ThreadBusy(ref busy)) if *busy == run), "{busy:?}");
        let waiting = tokio::spawn({
            let (store, run) = (store.clone(), run.clone());
            async move { store.released(&run).await }
        });
        tokio::task::yield_now().await;
        first.append(vec![done("x")]).await.expect("added");
        tokio::time::timeout(Duration::from_secs(60), waiting).await.expect("told").expect("no panic").expect("read");
        let moved = store.create(&header, None).await.err();
        assert!(matches!(moved, Some(JournalError::ThreadMoved)), "{moved:?}");
        let second = store.create(&header, Some(&run)).await.expect("created");
        let last = store.last_of_thread("test", "talk").await.expect("read").expect("there");
        assert_eq!(&last.id, second.run());
        assert!(store.last_of_thread("other", "talk").await.expect("read").is_none());
    }
}

#[tokio::test]
async fn whoever_waits_for_a_run_is_told_when_it_was_cancelled_and_let_go() {
    for store in Desk::new().stores() {
        let writer = store.create(&given("a", &[]), None).await.expect("created");
        let run = writer.run().clone();
        let waiting = tokio::spawn({
            let (store, run) = (store.clone(), run.clone());
            async move { store.released(&run).await }
        });
        tokio::task::yield_now().await;
        store.send(&run, Entry::of_run(Fact::Cancelled)).await.expect("sent");
        assert_eq!(writer.receive().await.expect("received"), [Entry::of_run(Fact::Cancelled)]);
        drop(writer);
        tokio::time::timeout(Duration::from_secs(60), waiting).await.expect("told").expect("no panic").expect("read");
    }
}

#[tokio::test]
async fn whoever_has_begun_a_run_knows_when_it_began_and_came_to_rest() {
    for store in Desk::new().stores() {
        let writer = store.create(&given("a", &[]), None).await.expect("created");
        assert_eq!(writer.times(), None, "it does not rest");
        writer.append(vec![done("x")]).await.expect("added");
        let found = store.find(writer.run().as_str()).await.expect("found");
        assert_eq!(writer.times(), Some((found.created, found.updated)));

        let waiting = asking(&*store).await;
        waiting.append(vec![Entry::of_run(Fact::Waiting)]).await.expect("added");
        let taken = store.take(waiting.run(), Fact::Resumed).await.expect("taken").writer;
        taken.append(vec![done("x")]).await.expect("added");
        assert_eq!(taken.times(), None, "somebody else began it");
    }
}

#[tokio::test]
async fn runs_are_filtered_and_come_in_pages() {
    for store in Desk::new().stores() {
        let mut runs = Vec::new();
        for number in 0..25 {
            let graph = if number % 5 == 0 { "rare" } else { "often" };
            let header = given(graph, &[("input", &format!("order number{number} of tea"))]);
            runs.push(ended(&*store, &header, &format!("shipped{number}")).await);
        }
        let waiting = asking(&*store).await;
        waiting.append(vec![Entry::of_run(Fact::Waiting)]).await.expect("added");
        let mut query = RunQuery { limit: 10, ..RunQuery::default() };
        let mut seen = Vec::new();
        loop {
            let page = store.list(&query).await.expect("listed");
            assert!(page.runs.len() <= 10);
            seen.extend(page.runs.into_iter().map(|run| run.id));
            query.after = page.next;
            if query.after.is_none() {
                break;
            }
        }
        let newest: Vec<_> = std::iter::once(waiting.run().clone()).chain(runs.iter().rev().cloned()).collect();
        assert_eq!(seen, newest);

        let count =
            async |query: RunQuery| store.list(&RunQuery { limit: 100, ..query }).await.expect("listed").runs.len();
        let any = RunQuery::default;
        assert_eq!(count(RunQuery { graph: Some("rare".into()), ..any() }).await, 5);
        assert_eq!(count(RunQuery { statuses: vec![RunStatus::Waiting, RunStatus::Failed], ..any() }).await, 1);
        assert_eq!(count(RunQuery { statuses: vec![RunStatus::Running], ..any() }).await, 0);
        assert_eq!(count(RunQuery { text: Some("NUMBER2 ord".into()), ..any() }).await, 6, "2 and 20 to 24");
        assert_eq!(count(RunQuery { text: Some("shipped7".into()), ..any() }).await, 1);
        let mut query = RunQuery { text: Some("tea".into()), limit: 4, ..any() };
        let mut found = Vec::new();
        loop {
            let page = store.list(&query).await.expect("listed");
            found.extend(page.runs.into_iter().map(|run| run.id));
            query.after = page.next;
            if query.after.is_none() {
                break;
            }
        }
        assert_eq!(found, runs.iter().rev().cloned().collect::<Vec<_>>());
        assert_eq!(count(RunQuery { text: Some("\" NOT *".into()), ..any() }).await, 0);
        let many = RunQuery { text: Some("a ".repeat(65)), ..any() };
        assert!(matches!(store.list(&many).await, Err(JournalError::TooManyWords(65))));
        assert_eq!(count(RunQuery { since: Some(std::time::SystemTime::now()), ..any() }).await, 0);
        let graph = Some("rare".into());
        assert_eq!(count(RunQuery { graph, before: Some(std::time::SystemTime::now()), ..any() }).await, 5);
    }
}

#[tokio::test]
async fn what_is_pruned_has_ended_and_nothing_needs_it() {
    for store in Desk::new().stores() {
        let old = ended(&*store, &given("a", &[("thread", "talk")]), "x").await;
        let next = given("b", &[("thread", "talk"), ("after", old.as_str())]);
        let follower = store.create(&next, Some(&old)).await.expect("created");
        let other = ended(&*store, &header("a"), "x").await;
        let report = store.prune(&RunQuery::default()).await.expect("pruned");
        assert_eq!(report.runs, 1, "one works, and one is needed by it");
        assert!(matches!(store.find(other.as_str()).await, Err(JournalError::NoSuchRun(_))));
        assert!(store.find(old.as_str()).await.is_ok());
        follower.append(vec![done("y")]).await.expect("added");
        assert_eq!(store.prune(&RunQuery::default()).await.expect("pruned").runs, 2);
        assert!(store.list(&RunQuery { limit: 9, ..RunQuery::default() }).await.expect("listed").runs.is_empty());
    }
}

#[tokio::test]
async fn runs_are_found_by_the_beginning_of_their_names() {
    for store in Desk::new().stores() {
        let mut runs = Vec::new();
        for _ in 0..60 {
            runs.push(ended(&*store, &header("a"), "x").await);
        }
        let unknown = store.find("!").await;
        assert!(matches!(unknown, Err(JournalError::NoSuchRun(_))), "{unknown:?}");
        let several = store.find("").await;
        assert!(matches!(several, Err(JournalError::Ambiguous(..))), "{several:?}");
        assert_eq!(store.find(runs[7].as_str()).await.expect("found").id, runs[7]);
    }
}

#[tokio::test]
async fn a_run_that_rests_is_due_when_its_timer_is() {
    for store in Desk::new().stores() {
        let now = SystemTime::now();
        let writer = store.create(&header("a"), None).await.expect("created");
        let run = writer.run().clone();
        let set = |node: &str, seconds| {
            Entry::of_run(Fact::TimerSet { node: node.into(), at: now + Duration::from_secs(seconds) })
        };
        writer.append(vec![set("soon", 1), set("late", 100)]).await.expect("added");
        let due = async |seconds| store.due(now + Duration::from_secs(seconds)).await.expect("read");
        assert!(due(9).await.is_empty(), "whoever works on it sees to it");
        drop(writer);
        assert!(due(0).await.is_empty());
        assert_eq!(due(9).await, std::slice::from_ref(&run));
        let Taken { writer, .. } = store.take(&run, Fact::Resumed).await.expect("taken");
        writer.append(vec![Entry::of_run(Fact::TimerFired { node: "soon".into() })]).await.expect("added");
        drop(writer);
        assert!(due(9).await.is_empty());
        assert_eq!(due(101).await, std::slice::from_ref(&run));
        store.send(&run, Entry::of_run(Fact::Cancelled)).await.expect("sent");
        assert!(due(101).await.is_empty());
    }
}

#[tokio::test]
async fn entries_are_read_in_pages_and_whoever_waits_for_more_is_told() {
    let pause = Duration::from_millis(20);
    for store in Desk::new().stores() {
        let writer = store.create(&header("a"), None).await.expect("created");
        let run = writer.run().clone();
        writer.append(vec![turn(1), turn(2), turn(3)]).await.expect("added");
        let numbers = async |after, limit| {
            let page = store.entries(&run, after, limit).await.expect("read");
            let numbers: Vec<u64> = page.entries.iter().map(|entry| entry.number).collect();
            (numbers, page.status)
        };
        assert_eq!(numbers(0, 2).await, (vec![1, 2], RunStatus::Running));
        assert_eq!(numbers(2, 2).await, (vec![3, 4], RunStatus::Running));
        assert_eq!(numbers(4, 2).await.0, [0_u64; 0]);
        assert_eq!(numbers(u64::MAX, 2).await.0, [0_u64; 0], "a place that no run can have");
        assert_eq!(store.entries(&run, 3, 9).await.expect("read").entries[0].entry, turn(3));

        store.grown(&run, 3).await.expect("there are more already");
        let waiting = {
            let (store, run) = (store.clone(), run.clone());
            tokio::spawn(async move { store.grown(&run, 4).await })
        };
        tokio::time::sleep(pause).await;
        assert!(!waiting.is_finished(), "nothing has happened");
        writer.append(vec![asked(4, 0), Entry::of_run(Fact::Waiting)]).await.expect("added");
        waiting.await.expect("no panic").expect("told");
        assert_eq!(numbers(4, 9).await, (vec![5, 6], RunStatus::Waiting));

        // What was sent is an entry when somebody takes it.
        store.send(&run, answered(4, 0, "yes")).await.expect("sent");
        assert_eq!(numbers(6, 9).await.0, [0_u64; 0]);
        let waiting = {
            let (store, run) = (store.clone(), run.clone());
            tokio::spawn(async move { store.grown(&run, 6).await })
        };
        tokio::time::sleep(pause).await;
        let taken = store.take(&run, Fact::Resumed).await.expect("taken");
        waiting.await.expect("no panic").expect("told");
        assert_eq!(numbers(6, 9).await.0, [7, 8]);
        drop(taken);
        let nobody = "nobody".to_owned().into();
        assert!(matches!(store.entries(&nobody, 0, 1).await, Err(JournalError::NoSuchRun(_))));
    }
}

#[tokio::test]
async fn whoever_follows_a_run_is_told_that_it_grows_rests_or_is_given_up() {
    for store in Desk::new().stores() {
        let begin = async || store.create(&header("a"), None).await.expect("created");
        let told = async |run: &RunId, after| {
            let told = tokio::time::timeout(Duration::from_secs(60), store.moved_on(run, after));
            told.await.expect("it does not hang").expect("told");
        };
        let writer = begin().await;
        let run = writer.run().clone();
        told(&run, 0).await;
        let waiting = {
            let (store, run) = (store.clone(), run.clone());
            tokio::spawn(async move { store.moved_on(&run, 1).await })
        };
        writer.append(vec![turn(1)]).await.expect("added");
        waiting.await.expect("no panic").expect("told");
        store.send(&run, Entry::of_run(Fact::Cancelled)).await.expect("sent");
        told(&run, 9).await;

        let writer = begin().await;
        let run = writer.run().clone();
        writer.append(vec![asked(1, 0), Entry::of_run(Fact::Waiting)]).await.expect("added");
        told(&run, 9).await;

        let writer = begin().await;
        let run = writer.run().clone();
        drop(writer);
        told(&run, 9).await;
    }
}

#[tokio::test]
async fn runs_are_found_by_what_they_were_loaded_from() {
    for store in Desk::new().stores() {
        let mut other = header("a");
        other.source = "elsewhere".into();
        store.create(&header("a"), None).await.expect("created");
        let run = store.create(&other, None).await.expect("created").run().clone();
        let query =
            RunQuery { sources: Some(vec!["elsewhere".into(), "nowhere".into()]), limit: 9, ..RunQuery::default() };
        let page = store.list(&query).await.expect("read");
        assert_eq!(page.runs.iter().map(|found| found.id.clone()).collect::<Vec<_>>(), [run]);
    }
}

#[tokio::test]
async fn one_run_alone_is_removed() {
    for store in Desk::new().stores() {
        let end = async |name| {
            let writer = store.create(&header(name), None).await.expect("created");
            writer.append(vec![done("x")]).await.expect("added");
            writer.run().clone()
        };
        let (kept, goes) = (end("a").await, end("b").await);
        let query = RunQuery { run: Some(goes.clone()), ..RunQuery::default() };
        assert_eq!(store.prune(&query).await.expect("pruned").runs, 1);
        assert!(store.find(kept.as_str()).await.is_ok() && store.find(goes.as_str()).await.is_err());
    }
}

#[tokio::test]
async fn a_run_is_paused_again_and_again_and_goes_on_when_somebody_resumes_it() {
    for store in Desk::new().stores() {
        let mut writer = asking(&*store).await;
        let run = writer.run().clone();
        let pause = async || store.send(&run, Entry::of_run(Fact::PauseAsked)).await.expect("sent");
        let status = async || store.find(run.as_str()).await.expect("found").status;
        for _ in 0..2 {
            pause().await;
            assert_eq!(status().await, RunStatus::Running, "the nodes that run are done first");
            let unread = writer.append(vec![Entry::of_run(Fact::Paused)]).await;
            assert!(matches!(unread, Err(JournalError::Unread(_))), "{unread:?}");
            assert_eq!(writer.receive().await.expect("received"), [Entry::of_run(Fact::PauseAsked)]);
            writer.append(vec![Entry::of_run(Fact::Paused)]).await.expect("rests");
            assert_eq!(status().await, RunStatus::Paused);
            pause().await;
            drop(writer);
            Taken { writer, .. } = store.take(&run, Fact::Resumed).await.expect("taken");
            assert_eq!(status().await, RunStatus::Running);
        }
        let set = Entry::of_run(Fact::TimerSet { node: "a".into(), at: SystemTime::UNIX_EPOCH });
        writer.append(vec![set]).await.expect("added");
        drop(writer);
        // Nobody works on it: it is paused at once, and nothing that comes goes on with it.
        assert_eq!(status().await, RunStatus::Interrupted);
        pause().await;
        assert_eq!(status().await, RunStatus::Paused);
        store.send(&run, answered(1, 0, "x")).await.expect("kept");
        assert!(store.with_messages().await.expect("read").is_empty());
        assert!(store.due(SystemTime::now()).await.expect("read").is_empty());
        let query = RunQuery { statuses: vec![RunStatus::Paused], limit: 9, ..RunQuery::default() };
        assert_eq!(store.list(&query).await.expect("read").runs.len(), 1);
        let Taken { writer, history } = store.take(&run, Fact::Resumed).await.expect("taken");
        assert!(history.entries.contains(&answered(1, 0, "x")));
        writer.append(vec![done("x")]).await.expect("ended");
        let late = store.send(&run, Entry::of_run(Fact::PauseAsked)).await;
        assert!(matches!(late, Err(JournalError::Ended { .. })), "{late:?}");
    }
}

#[tokio::test]
async fn what_was_put_off_is_there_in_its_order_and_is_not_lost() {
    let desk = Desk::new();
    for store in desk.stores() {
        for has_company in [false, true] {
            let company = store.create(&header("company"), None).await.expect("created");
            let company = has_company.then_some(company);
            let writer = store.create(&header("a"), None).await.expect("created");
            let run = writer.run().clone();
            for number in 1..=200 {
                writer.append_later(vec![turn(number)]).await.expect("added");
            }
            writer.settled().await.expect("safe");
            assert_eq!(facts(&*store, &run).await.len(), 201);

            writer.append_later(vec![turn(201)]).await.expect("added");
            writer.append(vec![asked(202, 0)]).await.expect("added");
            writer.settled().await.expect("safe");
            let last = facts(&*store, &run).await.pop();
            assert!(matches!(last, Some(Fact::Asked { .. })), "{last:?}");

            writer.append_later(vec![turn(202)]).await.expect("added");
            drop(writer);
            assert_eq!(facts(&*store, &run).await.len(), 204);
            drop(company);
        }
    }
}
