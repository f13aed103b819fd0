//! Runs that wait for one answer and work on something else meanwhile: what waits takes nobody's place, and an answer is taken
//! when it comes.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use hotcell_engine::{CallReport, Engine, Outcome, Ports, RunReport, ScriptCall, Scripts};
use hotcell_graph::Reducer;
use hotcell_graph::ir::{Graph, NodeIds};
use hotcell_graph::value::parse_json;
use hotcell_journal::{Entry, Fact, MemoryStore, RunId, RunQuery, RunStore, SqliteStore};
use tokio_util::sync::CancellationToken;

use crate::common::journal::{answer, entries, journal_with, open, request};
use crate::common::{World, ask, each, end, graph, node, pass, script, shown};

fn asking(ids: &NodeIds, id: &'static str) -> hotcell_graph::ir::Node {
    node(ids, id, ask(id), &[("said", "{{answer}}")], &["join"])
}

/// Four questions and a chain of scripts side by side, two of which may be worked on at a time.
fn busy() -> Graph {
    let ids = ["split", "a", "b", "c", "d", "one", "two", "three", "join", "done"];
    let mut built = graph(&ids, |ids| {
        vec![
            pass(ids, "split", &[], &["a", "b", "c", "d", "one"]),
            asking(ids, "a"),
            asking(ids, "b"),
            asking(ids, "c"),
            asking(ids, "d"),
            script(ids, "one", "one", &[], &["two"]),
            script(ids, "two", "two", &[], &["three"]),
            script(ids, "three", "three", &[], &["join"]),
            pass(ids, "join", &[], &["done"]),
            end(ids, "done", "{{said}}"),
        ]
    });
    built.limits.concurrency = 2;
    built.reducers.insert("said".into(), Reducer::Append);
    built
}

#[tokio::test]
async fn open_questions_leave_the_others_their_places() {
    let world = Arc::new(World::default());
    let journal = Arc::new(MemoryStore::default());
    let graph = Arc::new(busy());
    let engine = Engine::new(world.ports(), journal.clone());
    let report = engine.start(request(&graph), CancellationToken::new()).await.unwrap();
    let Outcome::Waiting { questions } = &report.outcome else { panic!("{:?}", report.outcome) };
    assert_eq!(questions.iter().map(|question| question.text.as_str()).collect::<Vec<_>>(), ["a", "b", "c", "d"]);
    assert_eq!(*world.ran.lock().unwrap(), ["one", "two", "three"]);

    // In whatever order they are answered, and whatever process goes on, the turns are the same.
    let asked = open(&*journal, &report.run).await;
    for question in asked.iter().rev() {
        answer(&*journal, &report.run, question, &format!("yes {}", question.question.text)).await;
    }
    let report = engine.resume(&report.run, graph, CancellationToken::new()).await.unwrap();
    assert_eq!(report.outcome, Outcome::Completed { output: r#"["yes a","yes b","yes c","yes d"]"#.into() });
    assert_eq!(world.ran.lock().unwrap().len(), 3);
}

#[tokio::test]
async fn every_prefix_of_a_run_that_waited_leads_to_the_same_end() {
    let world = || {
        let answers = ["a", "b", "c", "d"].map(str::to_owned).to_vec();
        Arc::new(World { answers: std::sync::Mutex::new(answers), ..World::default() })
    };
    let graph = Arc::new(busy());
    let whole = Arc::new(MemoryStore::default());
    let report =
        Engine::new(world().ports(), whole.clone()).start(request(&graph), CancellationToken::new()).await.unwrap();
    let entries = entries(&*whole, &report.run).await;
    for length in 1..entries.len() {
        let (journal, run) = journal_with(&entries[..length]).await;
        let again = world();
        let answered = entries[..length].iter().filter(|entry| matches!(entry.fact, Fact::Answered { .. })).count();
        again.answers.lock().unwrap().drain(..answered);
        let engine = Engine::new(again.ports(), journal);
        let report = engine.resume(&run, graph.clone(), CancellationToken::new()).await.unwrap();
        assert!(matches!(report.outcome, Outcome::Completed { .. }), "after {length} entries: {:?}", report.outcome);
        assert!(again.answers.lock().unwrap().is_empty(), "a question was put twice after {length} entries");
    }
}

/// One question, and a script beside it that takes its time.
fn slow(file: &'static str) -> Graph {
    let mut built = graph(&["split", "a", "long", "join", "done"], |ids| {
        vec![
            pass(ids, "split", &[], &["a", "long"]),
            asking(ids, "a"),
            script(ids, "long", file, &[], &["join"]),
            pass(ids, "join", &[], &["done"]),
            end(ids, "done", "{{said}}"),
        ]
    });
    built.reducers.insert("said".into(), Reducer::Append);
    built
}

/// Scripts that do not end before they may.
struct Held {
    world: Arc<World>,
    may_end: CancellationToken,
}

#[async_trait]
impl Scripts for Held {
    async fn run(&self, call: ScriptCall) -> CallReport {
        self.may_end.cancelled().await;
        self.world.run(call).await
    }
}

/// A script that runs for as many milliseconds as its name has letters.
fn lasting(milliseconds: usize) -> &'static str {
    "x".repeat(milliseconds).leak()
}

async fn begun(store: &dyn RunStore) -> RunId {
    loop {
        let page = store.list(&RunQuery { limit: 1, ..RunQuery::default() }).await.unwrap();
        match page.runs.into_iter().next() {
            Some(run) if !open(store, &run.id).await.is_empty() => return run.id,
            _ => tokio::time::sleep(Duration::from_millis(1)).await,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_is_taken_while_other_branches_work() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("runs.db");
    let memory: Arc<dyn RunStore> = Arc::new(MemoryStore::default());
    let (here, elsewhere) = (Arc::new(SqliteStore::open(&file).unwrap()), SqliteStore::open(&file).unwrap());
    let stores: [(Arc<dyn RunStore>, Arc<dyn RunStore>); 2] = [(memory.clone(), memory), (here, Arc::new(elsewhere))];
    for (here, elsewhere) in stores {
        let graph = Arc::new(slow("long"));
        let (world, may_end) = (Arc::new(World::default()), CancellationToken::new());
        let scripts = Arc::new(Held { world: world.clone(), may_end: may_end.clone() });
        let engine = Engine::new(Ports { scripts, ..world.ports() }, here);
        let running = tokio::spawn(async move { engine.start(request(&graph), CancellationToken::new()).await });
        let run = begun(&*elsewhere).await;
        let asked = open(&*elsewhere, &run).await;
        answer(&*elsewhere, &run, &asked[0], "yes").await;
        // The branch goes on with its answer, and the script is still at work.
        let is_answered = |entry: &Entry| matches!(&entry.fact, Fact::Completed(completed) if completed.node == "a");
        while !entries(&*elsewhere, &run).await.iter().any(is_answered) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        may_end.cancel();
        let report = running.await.unwrap().unwrap();
        assert_eq!(report.outcome, Outcome::Completed { output: r#"["yes"]"#.into() });
        let facts: Vec<Fact> = entries(&*elsewhere, &run).await.into_iter().map(|entry| entry.fact).collect();
        let place = |wanted: &dyn Fn(&Fact) -> bool| facts.iter().position(wanted).unwrap();
        let answered = place(&|fact| matches!(fact, Fact::Completed(completed) if completed.node == "a"));
        let worked = place(&|fact| matches!(fact, Fact::Completed(completed) if completed.node == "long"));
        assert!(answered < worked, "the branch went on with its answer: {facts:?}");
        assert!(!facts.contains(&Fact::Waiting));
    }
}

#[tokio::test]
async fn an_item_that_waits_stops_no_other() {
    let mut built = graph(&["each", "one", "done"], |ids| {
        let map = each(ids, "one", "said", "collected", Some(2));
        vec![
            node(ids, "each", map, &[], &["done"]),
            node(ids, "one", ask("{{x}}?"), &[("said", "{{answer}}")], &[]),
            end(ids, "done", "{{collected}}"),
        ]
    });
    built.initial_state = vec![("xs".into(), parse_json("[1,2,3,4,5]").unwrap())];
    let (graph, journal) = (Arc::new(built), Arc::new(MemoryStore::default()));
    let engine = Engine::new(Arc::new(World::default()).ports(), journal.clone());
    let report: RunReport = engine.start(request(&graph), CancellationToken::new()).await.unwrap();
    let asked = open(&*journal, &report.run).await;
    let texts: Vec<&str> = asked.iter().map(|open| open.question.text.as_str()).collect();
    assert_eq!(texts, ["1?", "2?", "3?", "4?", "5?"]);
    assert_eq!(shown(&report.state, "collected"), "absent");
}

#[tokio::test]
async fn the_time_of_a_run_goes_on_across_processes() {
    let mut limited = graph(&["before", "a", "join", "after", "done"], |ids| {
        vec![
            script(ids, "before", lasting(3_000), &[], &["a"]),
            asking(ids, "a"),
            pass(ids, "join", &[], &["after"]),
            script(ids, "after", lasting(8_000), &[], &["done"]),
            end(ids, "done", "{{said}}"),
        ]
    });
    // More than either process works, even where it is slow, and less than both.
    limited.limits.wall_clock = Some(Duration::from_secs(10));
    let (graph, journal) = (Arc::new(limited), Arc::new(MemoryStore::default()));
    let engine = Engine::new(Arc::new(World::default()).ports(), journal.clone());
    let report = engine.start(request(&graph), CancellationToken::new()).await.unwrap();
    let asked = open(&*journal, &report.run).await;
    answer(&*journal, &report.run, &asked[0], "yes").await;
    let report = engine.resume(&report.run, graph, CancellationToken::new()).await.unwrap();
    let Outcome::Failed { error, .. } = &report.outcome else { panic!("{:?}", report.outcome) };
    assert_eq!(error, "the run timed out before `done`: it is limited to 10 s");
}
