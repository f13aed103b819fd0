//! What every store promises where several do something to a run at the same time, or somebody dies in between.

use std::time::{Duration, UNIX_EPOCH};

use hotcell_journal::{Entry, EntryPath, Fact, JournalError};

use crate::support::{Desk, answered, asked, asking, facts, header, turn};

#[tokio::test]
async fn whoever_finds_an_answer_too_late_is_told_so_also_where_other_runs_are_written() {
    for store in Desk::new().stores() {
        // Where there is another one, what is appended is committed together with what others append, and mostly not waited for.
        let _company = store.create(&header("company"), None).await.expect("created");
        let writer = asking(&*store).await;
        store.send(writer.run(), answered(1, 0, "yes")).await.expect("sent");
        let expired = Entry { place: EntryPath::of_turn(1), fact: Fact::Expired { number: 0 } };
        let refused = writer.append(vec![expired]).await;
        assert!(matches!(refused, Err(JournalError::NotAsked { .. })), "{refused:?}");
        // That was no harm to the run.
        assert_eq!(writer.receive().await.expect("received"), [answered(1, 0, "yes")]);
        writer.append(vec![turn(1)]).await.expect("added");
        writer.settled().await.expect("committed");
        let known = facts(&*store, writer.run()).await;
        assert_eq!(known[1..], [asked(1, 0).fact, answered(1, 0, "yes").fact, turn(1).fact]);
    }
}

#[tokio::test]
async fn a_run_that_was_cancelled_waits_for_no_time_although_nobody_received_that() {
    for store in Desk::new().stores() {
        let at = UNIX_EPOCH + Duration::from_secs(1000);
        let timer = |node: &str| Entry::of_run(Fact::TimerSet { node: node.to_owned(), at });
        let writer = store.create(&header("waits"), None).await.expect("created");
        writer.append(vec![timer("a")]).await.expect("added");
        store.send(writer.run(), Entry::of_run(Fact::Cancelled)).await.expect("sent");
        // Whoever works on it has not heard of that, and dies.
        writer.append(vec![timer("b")]).await.expect("added");
        drop(writer);
        assert!(store.due(at).await.expect("read").is_empty(), "nobody can go on with it");
    }
}
