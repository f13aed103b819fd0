//! A run that dies after any commit goes on in another process to the same result, and repeats nothing committed.

use std::sync::Arc;

use crate::common::journal::{answer, before_the_end, journal_with, open, request};
use crate::common::{World, each, end, graph, node, pass, script};
use hotcell_engine::{Engine, Outcome, RunInput, RunRequest};
use hotcell_graph::ir::{Action, AskAction, Expression, Graph};
use hotcell_graph::value::parse_json;
use hotcell_graph::{Object, Reducer, Template};
use hotcell_journal::{Fact, MemoryStore, RunStatus, RunStore, SqliteStore};
use tokio_util::sync::CancellationToken;

/// Fan-out, nested fan-out, a map, a question and a loop.
fn everything() -> Graph {
    let ids = ["first", "left", "right", "deep", "deeper", "join", "each", "one", "ask", "turn", "done"];
    let mut built = graph(&ids, |ids| {
        let map = each(ids, "one", "output", "collected", None);
        let question = Expression::Strict(Template::parse("go on after {{collected}}?"));
        let options = vec!["yes".into()];
        let ask = Action::Ask(AskAction { options, trim: true, ..AskAction::new(question, "choice") });
        vec![
            script(ids, "first", "first", &[("trail", "first")], &["left", "right"]),
            script(ids, "left", "left-is-slow", &[("trail", "left")], &["join"]),
            pass(ids, "right", &[("trail", "right")], &["deep", "deeper"]),
            script(ids, "deep", "deep", &[("trail", "deep")], &["join"]),
            script(ids, "deeper", "deeper", &[("trail", "deeper")], &["join"]),
            pass(ids, "join", &[("trail", "join")], &["each"]),
            node(ids, "each", map, &[], &["ask"]),
            script(ids, "one", "one", &[], &[]),
            node(ids, "ask", ask, &[("said", "{{choice}}")], &["turn"]),
            script(ids, "turn", "turn", &[("trail", "turn {{n}}")], &["done"]),
            end(ids, "done", "{{trail}} {{collected}} {{said}}"),
        ]
    });
    built.initial_state = vec![("xs".into(), parse_json("[1,2,3,4]").unwrap()), ("n".into(), 0.into())];
    built.reducers.insert("trail".into(), Reducer::Append);
    built
}

fn world(answers: &[&str]) -> Arc<World> {
    let one: crate::common::ScriptBehaviour = |call| Ok(format!(r#"{{"output":{}0}}"#, call.state.get("x").unwrap()));
    let turn: crate::common::ScriptBehaviour = |call| {
        let n: i64 = call.state.get("n").unwrap().parse().unwrap();
        Ok(if n < 2 { format!(r#"{{"n":{},"_next":"turn"}}"#, n + 1) } else { r#"{"n":3}"#.into() })
    };
    Arc::new(World {
        scripts: [("one", one), ("turn", turn)].into(),
        answers: std::sync::Mutex::new(answers.iter().map(|answer| (*answer).to_owned()).collect()),
        ..World::default()
    })
}

const RESULT: &str = r#"["first","left","right","deep","deeper","join","turn 1","turn 2","turn 3"] [10,20,30,40] yes"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_prefix_of_the_journal_leads_to_the_same_result() {
    let graph = Arc::new(everything());
    let journal = Arc::new(MemoryStore::default());
    let first = world(&["yes"]);
    let report =
        Engine::new(first.ports(), journal.clone()).start(request(&graph), CancellationToken::new()).await.unwrap();
    assert_eq!(report.outcome, Outcome::Completed { output: RESULT.into() });
    let entries = before_the_end(&*journal, &report.run).await;
    assert!(entries.len() > 15, "{}", entries.len());
    let calls = first.ran.lock().unwrap().len();

    for length in 1..=entries.len() {
        let (journal, run) = journal_with(&entries[..length]).await;
        let again = world(&["yes"]);
        let report = Engine::new(again.ports(), journal.clone())
            .resume(&run, graph.clone(), CancellationToken::new())
            .await
            .unwrap();
        assert_eq!(report.outcome, Outcome::Completed { output: RESULT.into() }, "after {length} entries");
        // A committed script and a committed map item never run again: each entry of either kind saves its call.
        let committed = entries[..length]
            .iter()
            .filter(|entry| match &entry.fact {
                Fact::Completed(completed) => completed.account.total().calls == 1,
                Fact::Effect { .. } => true,
                _ => false,
            })
            .count();
        assert_eq!(again.ran.lock().unwrap().len(), calls - committed, "after {length} entries");
        assert_eq!(journal.find(run.as_str()).await.unwrap().status, RunStatus::Completed);
        let error = Engine::new(again.ports(), journal).resume(&run, graph.clone(), CancellationToken::new()).await;
        assert!(error.unwrap_err().to_string().contains("has already ended: it is `completed`"));
    }
}

#[tokio::test]
async fn a_question_waits_in_the_file_and_its_answer_comes_from_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/runs.db");
    let graph = Arc::new(everything());
    let journal = Arc::new(SqliteStore::open(&path).unwrap());
    let asking = world(&[]);
    let engine = Engine::new(asking.ports(), journal);
    let report = engine.start(request(&graph), CancellationToken::new()).await.unwrap();
    let Outcome::Waiting { questions } = &report.outcome else { panic!("{:?}", report.outcome) };
    assert_eq!(questions[0].text, "go on after [10,20,30,40]?");
    drop(engine);

    // Another process: opens the file, answers, resumes.
    let journal = Arc::new(SqliteStore::open(&path).unwrap());
    assert_eq!(journal.find(&report.run.as_str()[..4]).await.unwrap().status, RunStatus::Waiting);
    let asked = open(&*journal, &report.run).await;
    answer(&*journal, &report.run, &asked[0], " yes ").await;
    let answered = world(&[]);
    let engine = Engine::new(answered.ports(), journal.clone());

    let held = SqliteStore::open(&path).unwrap().take(&report.run, Fact::Resumed).await.unwrap();
    let busy = journal.take(&report.run, Fact::Resumed).await.map(|_| ()).unwrap_err();
    assert!(busy.to_string().contains("is being run by another process"), "{busy}");
    assert!(engine.resume(&report.run, graph.clone(), CancellationToken::new()).await.is_err());
    drop(held);

    let report = engine.resume(&report.run, graph, CancellationToken::new()).await.unwrap();
    assert_eq!(report.outcome, Outcome::Completed { output: RESULT.into() });
    assert_eq!(*answered.ran.lock().unwrap(), ["turn", "turn", "turn"]);
}

#[tokio::test]
async fn cancelling_leaves_a_run_that_can_go_on() {
    let journal = Arc::new(MemoryStore::default());
    let graph = Arc::new(everything());
    let world = world(&["yes"]);
    let engine = Engine::new(world.ports(), journal.clone());
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(std::time::Duration::from_millis(12)).await;
        stop.cancel();
    });
    let report = engine.start(request(&graph), cancel).await.unwrap();
    assert_eq!(report.outcome, Outcome::Interrupted);
    let report = engine.resume(&report.run, graph, CancellationToken::new()).await.unwrap();
    assert_eq!(report.outcome, Outcome::Completed { output: RESULT.into() });
}

/// A journal may have been sent, and whoever made it has runs go on with each other's state in a circle.
#[tokio::test]
async fn runs_that_refer_to_each_other_in_a_circle_are_refused() {
    let graph = Arc::new(graph(&["done"], |ids| vec![end(ids, "done", "fin")]));
    let engine = Engine::new(world(&[]).ports(), Arc::new(MemoryStore::default()));
    let given = RunInput {
        id: Some("circle".to_owned()),
        after: Some("circle".to_owned()),
        depth: 1,
        earlier: Some(Object::default()),
        ..RunInput::default()
    };
    let report = engine.start(RunRequest { given, ..request(&graph) }, CancellationToken::new()).await.unwrap();
    let refused = engine.whole_state_of(&report.run, graph).await.map(drop).unwrap_err().to_string();
    assert!(refused.contains("does not come after it"), "{refused}");
}
