//! What runs were loaded from: kept once, shared, kept for as long as a run needs it, and refused by name if it is damaged.

use std::sync::Arc;
use std::time::SystemTime;

use hotcell_journal::{Artefact, Entry, Fact, JournalError, Revision, RunHeader, RunQuery, RunStore, Taken};
use rusqlite::Connection;

use crate::support::{Desk, done, header};

/// A revision that consists of these texts and of one that names it.
fn revision(name: &str, texts: &[&str]) -> Revision {
    let manifest = Artefact::new(name.as_bytes().to_vec());
    let digest = manifest.digest().to_owned();
    let parts = texts.iter().map(|text| Artefact::new(text.as_bytes().to_vec()));
    Revision { digest, artefacts: parts.chain([manifest]).collect() }
}

fn of(revision: &Revision) -> RunHeader {
    RunHeader { digest: revision.digest.clone(), kept: true, ..header("tea") }
}

async fn is_kept(store: &dyn RunStore, text: &str) -> bool {
    match store.artefact(Artefact::new(text.as_bytes().to_vec()).digest()).await {
        Ok(bytes) => bytes == text.as_bytes(),
        Err(JournalError::NotKept(_)) => false,
        Err(other) => panic!("{other}"),
    }
}

async fn prune(store: &dyn RunStore) {
    let before = Some(SystemTime::now());
    store.prune(&RunQuery { before, ..RunQuery::default() }).await.expect("pruned");
}

async fn end(store: &dyn RunStore, revision: &Revision) {
    let writer = store.create(&of(revision), None).await.expect("created");
    writer.append(vec![done("fin")]).await.expect("added");
}

#[tokio::test]
async fn a_run_begins_only_with_what_is_kept() {
    let desk = Desk::new();
    for store in desk.stores() {
        let first = revision("first", &["graph", "script"]);
        let refused = store.create(&of(&first), None).await.err();
        assert!(matches!(&refused, Some(JournalError::NotKept(digest)) if *digest == first.digest), "{refused:?}");
        assert!(store.list(&RunQuery { limit: 9, ..RunQuery::default() }).await.expect("listed").runs.is_empty());
        store.keep(&first).await.expect("kept");
        store.keep(&first).await.expect("kept twice is kept once");
        let run = store.create(&of(&first), None).await.expect("created").run().clone();
        let record = store.find(run.as_str()).await.expect("found");
        assert_eq!((record.header.kept, record.revision), (true, Some(first.digest.clone())));
        assert!(is_kept(&*store, "script").await && is_kept(&*store, "first").await && !is_kept(&*store, "x").await);
        let run = store.create(&header("tea"), None).await.expect("without one").run().clone();
        assert_eq!(store.find(run.as_str()).await.expect("found").revision, None);
    }
}

#[tokio::test]
async fn what_no_run_needs_any_more_goes_with_the_last_one() {
    let desk = Desk::new();
    for store in desk.stores() {
        let (first, second) = (revision("first", &["old", "shared"]), revision("second", &["new", "shared"]));
        store.keep(&first).await.expect("kept");
        store.keep(&second).await.expect("kept");
        end(&*store, &first).await;
        let open = store.create(&of(&second), None).await.expect("created");
        assert!(is_kept(&*store, "old").await);
        prune(&*store).await;
        assert!(!is_kept(&*store, "old").await && !is_kept(&*store, "first").await);
        assert!(is_kept(&*store, "new").await && is_kept(&*store, "shared").await);
        open.append(vec![done("fin")]).await.expect("added");
        drop(open);
        prune(&*store).await;
        assert!(!is_kept(&*store, "new").await && !is_kept(&*store, "shared").await);
        // It can be kept anew.
        store.keep(&first).await.expect("kept");
        end(&*store, &first).await;
        assert!(is_kept(&*store, "shared").await);
    }
}

#[tokio::test]
async fn a_run_that_was_moved_needs_both() {
    let desk = Desk::new();
    for store in desk.stores() {
        let (first, second, third) = (revision("first", &["a"]), revision("second", &["b"]), revision("third", &[]));
        store.keep(&first).await.expect("kept");
        store.keep(&second).await.expect("kept");
        let run = store.create(&of(&first), None).await.expect("created").run().clone();
        let Taken { writer, .. } = store.take(&run, Fact::Resumed).await.expect("taken");
        let moved = |to: &Revision| vec![Entry::of_run(Fact::Revised { digest: to.digest.clone() })];
        let refused = writer.append(moved(&third)).await.err();
        assert!(matches!(refused, Some(JournalError::NotKept(_))), "{refused:?}");
        writer.append(moved(&second)).await.expect("moved");
        drop(writer);
        prune(&*store).await;
        let record = store.find(run.as_str()).await.expect("found");
        assert_eq!((record.header.digest, record.revision), (first.digest.clone(), Some(second.digest.clone())));
        assert!(is_kept(&*store, "a").await && is_kept(&*store, "b").await);
        let Taken { writer, history } = store.take(&run, Fact::Resumed).await.expect("taken");
        assert!(history.entries.contains(&moved(&second)[0]));
        writer.append(moved(&first)).await.expect("moved back");
        writer.append(vec![done("fin")]).await.expect("added");
        drop(writer);
        prune(&*store).await;
        assert!(!is_kept(&*store, "a").await && !is_kept(&*store, "b").await);
    }
}

#[tokio::test]
async fn what_is_not_as_it_was_kept_is_refused_by_name() {
    let text = "a script of some length, so that it is packed ".repeat(100);
    for change in [
        "UPDATE artefacts SET bytes = x'00' || substr(bytes, 2) WHERE length(bytes) > 20",
        "UPDATE artefacts SET bytes = substr(bytes, 1, length(bytes) - 1) WHERE length(bytes) > 20",
        "UPDATE artefacts SET size = 5 WHERE length(bytes) > 20",
        "UPDATE artefacts SET size = 1 << 60 WHERE length(bytes) > 20",
        "UPDATE artefacts SET bytes = CAST('text' AS BLOB)",
        "UPDATE artefacts SET bytes = NULL",
    ] {
        let desk = Desk::new();
        let kept = revision("first", &[&text]);
        desk.store().keep(&kept).await.expect("kept");
        assert_eq!(desk.store().artefact(kept.artefacts[0].digest()).await.expect("read"), text.as_bytes());
        Connection::open(desk.file()).expect("opened").execute(change, []).expect("changed");
        let read = desk.store().artefact(kept.artefacts[0].digest()).await.err();
        let named =
            matches!(&read, Some(JournalError::DamagedArtefact(digest)) if digest == kept.artefacts[0].digest());
        assert!(named, "{change}: {read:?}");
        // Whoever has it whole puts it back.
        desk.store().keep(&kept).await.expect("kept");
    }
}

#[tokio::test]
async fn two_processes_keep_the_same_at_once() {
    let desk = Desk::new();
    let stores: Vec<Arc<dyn RunStore>> = (0..4).map(|_| Arc::new(desk.store()) as Arc<dyn RunStore>).collect();
    let kept = revision("first", &["a", "b", "c"]);
    let all = stores.iter().map(|store| {
        let (store, kept) = (store.clone(), kept.clone());
        tokio::spawn(async move { store.keep(&kept).await })
    });
    for done in all.collect::<Vec<_>>() {
        done.await.expect("ended").expect("kept");
    }
    end(&*stores[3], &kept).await;
}
