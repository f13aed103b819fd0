//! Every wait of a graph is on the clock of its ports, and the clock knows when nothing goes on without it.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use hotcell_budget::Account;
use hotcell_engine::{
    CallError, CallReport, Clock, Engine, ManualClock, Outcome, Ports, RunReport, ScriptCall, Scripts,
};
use hotcell_graph::ir::{
    Action, AgentLoop, Arrived, CallAction, CallTarget, Graph, Join, JoinWhen, ModelSettings, Retry, RetryOn, Unmet,
};
use hotcell_graph::{Reducer, Value};
use hotcell_journal::{Entry, Fact, MemoryStore, RunStore};
use hotcell_models::{Finish, Model, ModelError, OnText, Reply, Request, TokenUsage};
use tokio_util::sync::CancellationToken;

use crate::common::held::Held;
use crate::common::journal::{before_the_end, header, journal_with, request};
use crate::common::{World, ask, each, end, graph, node, pass, script};

const HOUR: Duration = Duration::from_secs(3600);
const SOON: Duration = Duration::from_secs(60);

/// A script takes as many hours as its name says, and fails if the name ends so.
pub(crate) struct Slow(pub(crate) ManualClock);

#[async_trait]
impl Scripts for Slow {
    async fn run(&self, call: ScriptCall) -> CallReport {
        let hours = call.file.trim_end_matches(" fails").parse().expect("a number");
        self.0.pause(HOUR * hours).await;
        let result = if call.file.ends_with(" fails") { Err(CallError::Failed("no".into())) } else { Ok("{}".into()) };
        CallReport { result, account: Account::default(), notices: Vec::new() }
    }
}

/// Moves the clock to the next time that somebody waits for, whenever nothing goes on without it, until nobody waits. Gives those times
/// in hours since `begun`.
pub(crate) async fn to_the_end(clock: &ManualClock, begun: SystemTime) -> Vec<f64> {
    let mut due = Vec::new();
    loop {
        assert!(clock.settled(SOON).await, "{clock:?}");
        let Some(next) = clock.next_due() else { break due };
        due.push(next.duration_since(begun).expect("later").as_secs_f64() / 3600.0);
        clock.advance_to(next);
    }
}

/// A model that answers after five hours.
struct SlowModel(ManualClock);

#[async_trait]
impl Model for SlowModel {
    async fn complete(&self, _: Request, _: Option<OnText<'_>>) -> Result<Reply, ModelError> {
        self.0.pause(5 * HOUR).await;
        Ok(Reply {
            content: "late".into(),
            tool_calls: Vec::new(),
            finish: Finish::Stop,
            usage: TokenUsage::default(),
            provider_state: None,
        })
    }
}

/// Runs a graph to its end. Gives the times that it waited for, too.
async fn run(graph: Graph, store: Arc<dyn RunStore>) -> (RunReport, Vec<f64>) {
    let begun = SystemTime::UNIX_EPOCH + 1000 * HOUR;
    let clock = ManualClock::at(begun);
    let scripts = Arc::new(Slow(clock.clone()));
    let model = Arc::new(SlowModel(clock.clone()));
    let ports = Ports { scripts, model, clock: Arc::new(clock.clone()), ..Arc::new(World::default()).ports() };
    let graph = Arc::new(graph);
    let run =
        tokio::spawn(async move { Engine::new(ports, store).start(request(&graph), CancellationToken::new()).await });
    let due = to_the_end(&clock, begun).await;
    assert_eq!(clock.at_work(), 0);
    (run.await.expect("whole").expect("it ran"), due)
}

async fn check(graph: Graph, expected: Outcome, times: &[f64]) {
    let (report, due) = run(graph, Arc::new(MemoryStore::default())).await;
    assert_eq!((report.outcome, &*due), (expected, times));
}

fn completed(output: &str) -> Outcome {
    Outcome::Completed { output: output.into() }
}

/// `late` takes that long, and the join waits for it for two hours at most.
fn join(late: &str) -> Graph {
    let mut built = graph(&["split", "quick", "late", "join", "done"], |ids| {
        let mut meet = pass(ids, "join", &[], &["done"]);
        let from = |id: &str| Arrived::From(ids.get(id).expect("a node"));
        let condition = Arrived::All(vec![from("quick"), Arrived::Optional(Box::new(from("late")))]);
        meet.join = Join::When(JoinWhen { condition, deadline: Some(2 * HOUR), unmet: Unmet::Fail });
        vec![
            pass(ids, "split", &[], &["quick", "late"]),
            pass(ids, "quick", &[("log", "quick")], &["join"]),
            script(ids, "late", late, &[("log", "late")], &["join"]),
            meet,
            end(ids, "done", "{{log}}"),
        ]
    });
    built.reducers.insert("log".into(), Reducer::Append);
    built
}

#[tokio::test]
async fn joins_wait_on_the_clock() {
    check(join("1"), completed(r#"["quick","late"]"#), &[1.0]).await;
    // The join goes on without what comes later; the run ends when that has ended, too.
    check(join("3"), completed(r#"["quick"]"#), &[2.0, 3.0]).await;
}

/// If the clock could be moved meanwhile, what is due later would overtake what follows from it.
#[tokio::test]
async fn a_join_that_gives_up_is_at_work_until_that_is_in_the_journal() {
    let begun = SystemTime::UNIX_EPOCH + 1000 * HOUR;
    let clock = ManualClock::at(begun);
    let scripts = Arc::new(Slow(clock.clone()));
    let ports = Ports { scripts, clock: Arc::new(clock.clone()), ..Arc::new(World::default()).ports() };
    let store = Arc::new(Held::default());
    let (engine, graph) = (Engine::new(ports, store.clone()), Arc::new(join("3")));
    let run = tokio::spawn(async move { engine.start(request(&graph), CancellationToken::new()).await });
    assert!(clock.settled(SOON).await, "{clock:?}");
    clock.advance(2 * HOUR);
    store.gate.reached.notified().await;
    assert_eq!(clock.at_work(), 1);
    store.gate.opened.notify_one();
    assert_eq!(to_the_end(&clock, begun).await, [3.0]);
    assert_eq!(run.await.expect("whole").expect("it ran").outcome, completed(r#"["quick"]"#));
}

/// Until when a join waits is in the journal, as the clock of an earlier process had it.
#[tokio::test]
async fn a_clock_that_was_set_back_makes_no_join_wait_longer_than_the_graph_says() {
    let before = Arc::new(MemoryStore::default());
    let (report, _) = run(join("3"), before.clone()).await;
    let mut entries = before_the_end(&*before, &report.run).await;
    let set = entries.iter().position(|entry| matches!(entry.fact, Fact::TimerSet { .. })).expect("a timer");
    entries.truncate(set + 1);
    if let Fact::TimerSet { at, .. } = &mut entries[set].fact {
        *at += 9000 * HOUR;
    }
    let (store, id) = journal_with(&entries).await;
    let begun = SystemTime::UNIX_EPOCH + 1000 * HOUR;
    let clock = ManualClock::at(begun);
    let scripts = Arc::new(Slow(clock.clone()));
    let ports = Ports { scripts, clock: Arc::new(clock.clone()), ..Arc::new(World::default()).ports() };
    let graph = Arc::new(join("3"));
    let goes_on =
        tokio::spawn(async move { Engine::new(ports, store).resume(&id, graph, CancellationToken::new()).await });
    let due = to_the_end(&clock, begun).await;
    let report = goes_on.await.expect("whole").expect("it went on");
    assert_eq!((report.outcome, &*due), (completed(r#"["quick"]"#), &[2.0, 3.0][..]));
}

/// In a cycle, a join waits again. Until when it waited the first time is in the journal, too.
#[tokio::test]
async fn a_join_that_waits_again_after_the_process_ended_waits_as_long_as_the_graph_says() {
    let begun = SystemTime::UNIX_EPOCH + 1000 * HOUR;
    let waited = Fact::TimerSet { node: "join".to_owned(), at: begun + HOUR / 2 };
    let entries = [Entry::of_run(Fact::Started(header())), Entry::of_run(waited)];
    let (store, id) = journal_with(&entries).await;
    let clock = ManualClock::at(begun);
    let scripts = Arc::new(Slow(clock.clone()));
    let ports = Ports { scripts, clock: Arc::new(clock.clone()), ..Arc::new(World::default()).ports() };
    let graph = Arc::new(join("1"));
    let goes_on =
        tokio::spawn(async move { Engine::new(ports, store).resume(&id, graph, CancellationToken::new()).await });
    let due = to_the_end(&clock, begun).await;
    let report = goes_on.await.expect("whole").expect("it went on");
    assert_eq!((report.outcome, &*due), (completed(r#"["quick","late"]"#), &[1.0][..]));
}

#[tokio::test]
async fn pauses_and_times_of_nodes_are_on_the_clock() {
    let one = |file: &str, retry: Option<Retry>| {
        graph(&["work", "done"], |ids| {
            let mut work = script(ids, "work", file, &[], &["done"]);
            work.retry = retry.clone();
            vec![work, end(ids, "done", "made")]
        })
    };
    let retry =
        Retry { attempts: 3, on: RetryOn::Any, pause: HOUR, growth: 2.0, longest_pause: 9 * HOUR, ..Retry::default() };
    let (report, due) = run(one("0 fails", Some(retry)), Arc::new(MemoryStore::default())).await;
    assert_eq!(due, [1.0, 3.0]);
    assert!(matches!(report.outcome, Outcome::Failed { .. }), "{:?}", report.outcome);

    let mut limited = one("5", None);
    limited.limits.deadline = Some(4 * HOUR);
    let (report, due) = run(limited, Arc::new(MemoryStore::default())).await;
    assert_eq!(due, [4.0]);
    let Outcome::Failed { error, .. } = &report.outcome else { panic!("{:?}", report.outcome) };
    assert!(error.contains("timed out"), "{error}");
}

#[tokio::test]
async fn items_that_sleep_side_by_side_are_settled_and_wake_in_their_order() {
    let mut built = graph(&["items", "item", "done"], |ids| {
        let items = each(ids, "item", "made", "all", Some(2));
        vec![
            node(ids, "items", items, &[], &["done"]),
            script(ids, "item", "1", &[("made", "{{x}}")], &[]),
            end(ids, "done", "{{all}}"),
        ]
    });
    built.initial_state = vec![("xs".into(), Value::List(["a", "b", "c"].map(Value::from).into_iter().collect()))];
    check(built, completed(r#"["a","b","c"]"#), &[1.0, 2.0]).await;
}

#[tokio::test]
async fn a_run_that_waits_for_nobody_here_is_settled() {
    let built =
        graph(&["ask", "done"], |ids| vec![node(ids, "ask", ask("Go?"), &[], &["done"]), end(ids, "done", "x")]);
    let (report, due) = run(built, Arc::new(MemoryStore::default())).await;
    assert!(matches!(report.outcome, Outcome::Waiting { .. }) && due.is_empty(), "{:?}", report.outcome);
}

#[tokio::test]
async fn runs_wait_before_a_graph_that_is_full() {
    use hotcell_engine::Gates;
    use hotcell_graph::ir::{Action, CallAction, CallTarget, Gives};
    let calls = || {
        let mut inner =
            graph(&["work", "done"], |ids| vec![script(ids, "work", "1", &[], &["done"]), end(ids, "done", "made")]);
        inner.at_once = Some(1);
        let inner = Arc::new(inner);
        Arc::new(graph(&["call", "done"], |ids| {
            let target = CallTarget::Graph {
                graph: inner.clone(),
                inputs: Vec::new(),
                conversation: None,
                inherits: false,
                gives: Gives::State,
            };
            let call = CallAction { target, contract: None, failure_prefix: None, bind: "answer" };
            vec![node(ids, "call", Action::Call(Box::new(call)), &[], &["done"]), end(ids, "done", "made")]
        }))
    };
    let gates = Gates::default();
    for (agents, expected) in [(["a", "a", "a"], &[1.0, 2.0, 3.0][..]), (["a", "b", "c"], &[1.0])] {
        let begun = SystemTime::UNIX_EPOCH + 1000 * HOUR;
        let clock = ManualClock::at(begun);
        let scripts = Arc::new(Slow(clock.clone()));
        let ports = Ports { scripts, clock: Arc::new(clock.clone()), ..Arc::new(World::default()).ports() };
        let start = |agent: &str| {
            let engine = Engine::new(ports.clone(), Arc::new(MemoryStore::default())).behind(gates.of(agent));
            // Each run has loaded the graph by itself.
            let graph = calls();
            tokio::spawn(async move { engine.start(request(&graph), CancellationToken::new()).await })
        };
        let runs = agents.map(start);
        let due = to_the_end(&clock, begun).await;
        assert_eq!(due, expected, "{agents:?}");
        for run in runs {
            assert_eq!(run.await.expect("whole").expect("it ran").outcome, completed("made"));
        }
    }
}

#[tokio::test]
async fn requests_to_models_have_a_time_of_their_own() {
    let built = |time: Option<Duration>| {
        let retry = Retry { attempts: 2, pause: HOUR, longest_pause: HOUR, time, ..Retry::default() };
        let settings = ModelSettings { model: Some("openai:slow".into()), ..ModelSettings::default() };
        let agent = AgentLoop { settings, retry, ..AgentLoop::default() };
        let target = CallTarget::Loop(Arc::new(agent.into_graph()));
        let call = CallAction { target, contract: None, failure_prefix: None, bind: "output" };
        graph(&["ask", "done"], |ids| {
            let action = Action::Call(Box::new(call.clone()));
            vec![node(ids, "ask", action, &[("said", "{{output}}")], &["done"]), end(ids, "done", "{{said}}")]
        })
    };
    check(built(None), completed("late"), &[5.0]).await;
    check(built(Some(6 * HOUR)), completed("late"), &[5.0]).await;
    let (report, due) = run(built(Some(2 * HOUR)), Arc::new(MemoryStore::default())).await;
    assert_eq!(due, [2.0, 3.0, 5.0]);
    let Outcome::Failed { error, .. } = &report.outcome else { panic!("{:?}", report.outcome) };
    assert!(error.contains("timed out"), "{error}");
}
