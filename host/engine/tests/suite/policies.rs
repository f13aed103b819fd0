//! How nodes are scheduled is a matter of the graph: retries, branches that end, edges that are open, caps, deadlines.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use hotcell_engine::{Engine, ManualClock, Outcome, Ports, RunReport};
use hotcell_graph::conversation::Speaker;
use hotcell_graph::ir::{
    Action, Arguments, Arrived, CapOrigin, Edge, Ends, Expression, Graph, Join, JoinWhen, Next, OnFailure, PromptPart,
    Retry, RetryOn, Scheduling, Sharing, Tool, ToolAction, ToolKind, Update, VisitCap,
};
use hotcell_graph::{Place, Reducer, Template, Value};
use hotcell_journal::{Entry, Fact, MemoryStore, RunId, RunStatus, RunStore};
use tokio_util::sync::CancellationToken;

use crate::clock::{Slow, to_the_end};
use crate::common::journal::{before_the_end, entries, journal_with, request};
use crate::common::{ScriptBehaviour, World, each, end, graph, model_loop, node, pass, script, shown};

async fn run(graph: &Arc<Graph>, world: &Arc<World>) -> (RunReport, Arc<MemoryStore>) {
    let journal = Arc::new(MemoryStore::default());
    let engine = Engine::new(world.ports(), journal.clone());
    (engine.start(request(graph), CancellationToken::new()).await.unwrap(), journal)
}

fn quiet(sharing: Sharing, output: &str) -> Scheduling {
    let output = Box::new(Expression::Lenient(Template::parse(output)));
    Scheduling { ends: Ends::WhenQuiet { output }, sharing, ..Scheduling::default() }
}

fn again(attempts: u32) -> Option<Retry> {
    let pause = Duration::from_millis(1);
    Some(Retry { attempts, on: RetryOn::Any, pause, growth: 1.0, longest_pause: pause, ..Retry::default() })
}

#[tokio::test]
async fn any_node_is_tried_as_often_as_it_says_and_every_prefix_leads_to_the_same_end() {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    let flaky: ScriptBehaviour = |_| match CALLS.fetch_add(1, Ordering::SeqCst) % 3 {
        2 => Ok(r#"{"value":"third"}"#.into()),
        _ => Err("not yet".into()),
    };
    let built = graph(&["flaky", "done"], |ids| {
        let mut flaky = script(ids, "flaky", "f", &[], &["done"]);
        flaky.retry = again(3);
        vec![flaky, end(ids, "done", "{{value}}")]
    });
    let graph = Arc::new(built);
    let world = || Arc::new(World { scripts: [("f", flaky)].into(), ..World::default() });
    let (report, journal) = run(&graph, &world()).await;
    assert_eq!(report.outcome, Outcome::Completed { output: "third".into() });
    assert_eq!(report.account.total().calls, 3, "what failed was used, too");
    let committed = before_the_end(&*journal, &report.run).await;
    let attempts = |entries: &[hotcell_journal::Entry]| {
        entries.iter().filter(|entry| matches!(entry.fact, Fact::Attempt { .. })).count() as u32
    };
    assert_eq!(attempts(&committed), 2);
    for length in 1..=committed.len() {
        let (journal, run) = journal_with(&committed[..length]).await;
        let tried = attempts(&committed[..length]);
        CALLS.store(tried, Ordering::SeqCst);
        let engine = Engine::new(world().ports(), journal.clone());
        let report = engine.resume(&run, graph.clone(), CancellationToken::new()).await.unwrap();
        assert_eq!(report.outcome, Outcome::Completed { output: "third".into() }, "after {length} entries");
        assert_eq!(attempts(&entries(&*journal, &run).await), 2, "after {length} entries");
    }
}

#[tokio::test]
async fn a_node_that_a_map_runs_is_tried_again_too() {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    let flaky: ScriptBehaviour = |call| match CALLS.fetch_add(1, Ordering::SeqCst) % 2 {
        0 => Err("not yet".into()),
        _ => Ok(format!(r#"{{"out":{}}}"#, call.state.get("x").unwrap())),
    };
    let mut built = graph(&["each", "one", "done"], |ids| {
        let map = each(ids, "one", "out", "all", Some(1));
        let mut one = script(ids, "one", "f", &[], &[]);
        one.retry = again(2);
        vec![node(ids, "each", map, &[], &["done"]), one, end(ids, "done", "{{all}}")]
    });
    built.initial_state = vec![("xs".into(), hotcell_graph::value::parse_json("[1,2,3]").unwrap())];
    let world = Arc::new(World { scripts: [("f", flaky)].into(), ..World::default() });
    let (report, _) = run(&Arc::new(built), &world).await;
    assert_eq!(report.outcome, Outcome::Completed { output: "[1,2,3]".into() });
    assert_eq!(report.account.total().calls, 6, "what failed was used, too");
}

#[tokio::test]
async fn a_node_that_fails_every_time_fails_with_its_last_error() {
    let broken: ScriptBehaviour = |_| Err("broken".into());
    let graph = Arc::new(graph(&["broken", "done"], |ids| {
        let mut broken = script(ids, "broken", "b", &[], &["done"]);
        broken.retry = again(2);
        vec![broken, end(ids, "done", "x")]
    }));
    let world = Arc::new(World { scripts: [("b", broken)].into(), ..World::default() });
    let (report, _) = run(&graph, &world).await;
    assert_eq!(
        report.outcome,
        Outcome::Failed {
            node: Some("broken".into()),
            error: "node `broken` failed: script `b` failed: broken".into()
        }
    );
    assert_eq!(world.ran.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn a_node_whose_inputs_have_no_value_is_not_tried_again() {
    let tool = Tool {
        name: "look".into(),
        spoken: "look".to_owned(),
        description: String::new(),
        inputs: Vec::new(),
        kind: ToolKind::Host("look".to_owned()),
        confirm: false,
    };
    let inputs = Expression::Object(vec![("x".into(), Expression::Key("gone".into()))]);
    let call = ToolAction { tool: Arc::new(tool), inputs, arguments: Arguments::AsTheyAre, bind: "output" };
    let prompt = PromptPart::text("`input`", Speaker::Human, Expression::Key("gone".into()));
    let ask = model_loop(vec![prompt], "look", (3, 1));
    for action in [Action::Tool(Box::new(call)), Action::Call(Box::new(ask))] {
        let graph = Arc::new(graph(&["work", "done"], |ids| {
            let mut work = node(ids, "work", action.clone(), &[], &["done"]);
            work.retry = again(3);
            vec![work, end(ids, "done", "x")]
        }));
        let (report, journal) = run(&graph, &Arc::default()).await;
        let Outcome::Failed { error, .. } = &report.outcome else { panic!("{:?}", report.outcome) };
        assert!(error.contains("gone"), "{error}");
        let entries = entries(&*journal, &report.run).await;
        assert!(entries.iter().all(|entry| !matches!(entry.fact, Fact::Attempt { .. })), "{entries:?}");
    }
}

#[tokio::test]
async fn a_branch_ends_by_its_failure_and_the_others_go_on() {
    let broken: ScriptBehaviour = |_| Err("broken".into());
    let mut built = graph(&["split", "bad", "good", "after"], |ids| {
        let mut bad = script(ids, "bad", "b", &[], &["after"]);
        bad.on_failure = OnFailure::EndBranch;
        vec![
            pass(ids, "split", &[], &["bad", "good"]),
            bad,
            pass(ids, "good", &[("log", "good")], &["after"]),
            node(ids, "after", Action::Pass, &[("log", "after")], &[]),
        ]
    });
    let last = built.find("after").unwrap();
    let mut nodes: Vec<_> = built.nodes().map(|(_, node)| node.clone()).collect();
    nodes[last.as_usize()].next = Next::Open(Vec::new());
    built = Graph::new("test", nodes, "split").unwrap();
    built.reducers.insert("log".into(), Reducer::Append);
    for sharing in [Sharing::Branches, Sharing::Shared] {
        built.scheduling = quiet(sharing, "{{log}}");
        let world = Arc::new(World { scripts: [("b", broken)].into(), ..World::default() });
        let (report, _) = run(&Arc::new(built.clone()), &world).await;
        assert_eq!(report.outcome, Outcome::Completed { output: r#"["good","after"]"#.into() }, "{sharing:?}");
    }
}

/// Two branches that share a state: `quick` writes a text under `order`, and `late` at `at`, once that is there.
fn sharing(at: &str, on_failure: &OnFailure) -> Arc<Graph> {
    let built = graph(&["split", "quick", "late"], |ids| {
        let slow = "ssssssssssssssssssssssssssssssssssssssssssssssssssssssssssss";
        let mut late = script(ids, "late", slow, &[], &[]);
        let place = Place::parse(at).unwrap();
        let value = Expression::Placed(place.clone(), Box::new(Expression::Value(7.into())));
        late.updates = vec![Update { key: place.root().clone(), value }];
        late.on_failure = on_failure.clone();
        vec![pass(ids, "split", &[], &["quick", "late"]), pass(ids, "quick", &[("order", "a lamp")], &[]), late]
    });
    let mut nodes: Vec<_> = built.nodes().map(|(_, node)| node.clone()).collect();
    nodes[1..].iter_mut().for_each(|node| node.next = Next::Open(Vec::new()));
    let mut built = Graph::new("test", nodes, "split").unwrap();
    for key in ["order", "other"] {
        built.reducers.insert(key.into(), Reducer::Place);
    }
    built.scheduling = quiet(Sharing::Shared, "{{order}}");
    Arc::new(built)
}

#[tokio::test]
async fn a_node_whose_writes_go_with_nothing_that_was_written_meanwhile_fails_as_it_says() {
    let completed = Outcome::Completed { output: "a lamp".into() };
    let (report, _) = run(&sharing("order.total", &OnFailure::EndBranch), &Arc::default()).await;
    assert_eq!(report.outcome, completed);
    assert_eq!(report.failures.iter().map(|failure| failure.node.as_str()).collect::<Vec<_>>(), ["late"]);

    let (report, journal) = run(&sharing("order.total", &OnFailure::Fail), &Arc::default()).await;
    let Outcome::Failed { error, .. } = &report.outcome else { panic!("{:?}", report.outcome) };
    assert!(error.starts_with("node `late` failed: ") && error.contains("cannot write to `order.total`"), "{error}");
    let done = entries(&*journal, &report.run).await;
    let is_late = |entry: &&Entry| matches!(&entry.fact, Fact::Completed(completed) if completed.node == "late");
    assert_eq!(done.iter().filter(is_late).count(), 0);
    // It is done again by a graph that was mended.
    let engine = Engine::new(Arc::new(World::default()).ports(), journal);
    let mended = sharing("other.total", &OnFailure::Fail);
    let report = engine.retry(&report.run, mended, CancellationToken::new()).await.unwrap();
    assert_eq!((report.outcome, shown(&report.state, "other")), (completed, r#"{"total":7}"#.into()));
}

#[tokio::test]
async fn every_open_edge_is_taken_and_what_cannot_be_evaluated_is_closed() {
    let condition = |json: &str| Some(Expression::Value(hotcell_graph::value::parse_json(json).unwrap()));
    let mut built = graph(&["start", "yes", "no", "missing", "always"], |ids| {
        let edge = |condition, id: &str| Edge { condition, target: ids.get(id).unwrap() };
        let missing = Some(Expression::Strict(Template::parse("{{nothing}}")));
        let mut start = pass(ids, "start", &[], &[]);
        start.next = Next::Open(vec![
            edge(condition("true"), "yes"),
            edge(condition("false"), "no"),
            edge(missing, "missing"),
            edge(None, "always"),
            edge(condition("true"), "always"),
        ]);
        let leaf = |id: &'static str| {
            let mut leaf = pass(ids, id, &[("log", id)], &[]);
            leaf.next = Next::Open(Vec::new());
            leaf
        };
        vec![start, leaf("yes"), leaf("no"), leaf("missing"), leaf("always")]
    });
    built.reducers.insert("log".into(), Reducer::Append);
    built.scheduling = quiet(Sharing::Shared, "{{log}}");
    let (report, _) = run(&Arc::new(built), &Arc::default()).await;
    assert_eq!(report.outcome, Outcome::Completed { output: r#"["yes","always"]"#.into() });
}

#[tokio::test]
async fn a_run_that_comes_to_its_cap_of_turns_stops_and_has_not_failed() {
    let mut built = graph(&["spin", "done"], |ids| vec![pass(ids, "spin", &[], &["spin"]), end(ids, "done", "x")]);
    built.limits.turns = Some(VisitCap { visits: 5, origin: CapOrigin::Setting("max_events") });
    let (report, journal) = run(&Arc::new(built), &Arc::default()).await;
    let reason = "the run has had 5 turns (max_events=5) and would go on with node `spin`".to_owned();
    assert_eq!(report.outcome, Outcome::Stopped { reason });
    let record = journal.find(report.run.as_str()).await.unwrap();
    assert_eq!(record.status, RunStatus::Stopped);
    assert!(journal.take(&report.run, Fact::Retried).await.is_err(), "it is final");
}

/// An hour on a clock that stands still until it is moved.
const HOUR: Duration = Duration::from_secs(3600);

/// Starts a run, or goes on with one that is there, on such a clock.
async fn by_the_hour(graph: Arc<Graph>, journal: Arc<MemoryStore>, run: Option<RunId>) -> RunReport {
    let begun = SystemTime::UNIX_EPOCH + 1000 * HOUR;
    let clock = ManualClock::at(begun);
    let scripts = Arc::new(Slow(clock.clone()));
    let ports = Ports { scripts, clock: Arc::new(clock.clone()), ..Arc::new(World::default()).ports() };
    let engine = Engine::new(ports, journal);
    let working = tokio::spawn(async move {
        match run {
            Some(run) => engine.resume(&run, graph, CancellationToken::new()).await,
            None => engine.start(request(&graph), CancellationToken::new()).await,
        }
    });
    to_the_end(&clock, begun).await;
    working.await.unwrap().unwrap()
}

/// Two that lead to a join, one of which takes three hours, and the join waits for one.
fn late(required: bool) -> Arc<Graph> {
    let build = |join: Join| {
        graph(&["split", "quick", "slow", "join", "done"], |ids| {
            let mut meet = pass(ids, "join", &[], &["done"]);
            meet.join = join.clone();
            vec![
                pass(ids, "split", &[], &["quick", "slow"]),
                pass(ids, "quick", &[("log", "quick")], &["join"]),
                script(ids, "slow", "3", &[("log", "slow")], &["join"]),
                meet,
                end(ids, "done", "{{log}}"),
            ]
        })
    };
    let known = build(Join::All);
    let from = |id: &str| Arrived::From(known.find(id).unwrap());
    let slow = if required { from("slow") } else { Arrived::Optional(Box::new(from("slow"))) };
    let condition = Arrived::All(vec![from("quick"), slow]);
    let deadline = Some(HOUR);
    let mut built = build(Join::When(JoinWhen { condition, deadline, unmet: hotcell_graph::ir::Unmet::Fail }));
    built.reducers.insert("log".into(), Reducer::Append);
    Arc::new(built)
}

#[tokio::test]
async fn a_join_waits_no_longer_than_it_may_and_that_is_an_entry() {
    let journal = Arc::new(MemoryStore::default());
    let report = by_the_hour(late(false), journal.clone(), None).await;
    assert_eq!(report.outcome, Outcome::Completed { output: r#"["quick"]"#.into() });
    let failed = by_the_hour(late(true), Arc::default(), None).await;
    let Outcome::Failed { error, .. } = &failed.outcome else { panic!("{:?}", failed.outcome) };
    assert_eq!(error, "node `join` failed: it waited for `slow`, and nothing came");

    let committed = before_the_end(&*journal, &report.run).await;
    assert!(committed.iter().any(|entry| matches!(entry.fact, Fact::TimerFired { .. })));
    for length in 1..=committed.len() {
        let (journal, run) = journal_with(&committed[..length]).await;
        let report = by_the_hour(late(false), journal.clone(), Some(run.clone())).await;
        assert_eq!(report.outcome, Outcome::Completed { output: r#"["quick"]"#.into() }, "after {length} entries");
        assert_eq!(shown(&report.state, "log"), r#"["quick"]"#);
        let set = entries(&*journal, &run).await;
        assert_eq!(set.iter().filter(|entry| matches!(entry.fact, Fact::TimerSet { .. })).count(), 1);
    }
}

/// `a` takes longer than `b`, so that `b` comes first to where both meet.
fn meeting() -> Graph {
    let mut built = graph(&["split", "a", "b", "join"], |ids| {
        let brings = |id: &str, file: &str, what: &str| {
            let mut node = script(ids, id, file, &[("(brought)", what)], &["join"]);
            node.join = Join::Each;
            node
        };
        let both = ["a", "b"].map(|id| Arrived::From(ids.get(id).unwrap())).into();
        let mut join = pass(ids, "join", &[("seen", "{{came}}")], &[]);
        join.updates[0].value = Expression::Key("(brought)".into());
        join.next = Next::Open(Vec::new());
        join.join = Join::When(JoinWhen { condition: Arrived::All(both), deadline: None, unmet: Default::default() });
        let split = pass(ids, "split", &[("(brought)", "from the start")], &["a", "b"]);
        vec![split, brings("a", "a-longer-name", "of a"), brings("b", "b", "of b"), join]
    });
    built.scheduling = Scheduling { brought: Some("(brought)".into()), ..quiet(Sharing::Shared, "{{seen}}") };
    built
}

#[tokio::test]
async fn a_node_finds_what_branches_bring_in_the_order_in_which_they_came_also_when_the_run_goes_on() {
    let graph = Arc::new(meeting());
    let (report, journal) = run(&graph, &Arc::new(World::default())).await;
    assert_eq!(report.outcome, Outcome::Completed { output: r#"["of b","of a"]"#.into() });
    assert!(report.state.get("(brought)").is_none_or(|left| left.as_list().is_some()), "nothing of it is shared");
    let committed = before_the_end(&*journal, &report.run).await;
    let done = |entries: &[hotcell_journal::Entry], id: &str| {
        entries.iter().any(|entry| matches!(&entry.fact, Fact::Completed(done) if done.node == id))
    };
    for length in 1..=committed.len() {
        let (journal, run) = journal_with(&committed[..length]).await;
        let engine = Engine::new(Arc::new(World::default()).ports(), journal.clone());
        let report = engine.resume(&run, graph.clone(), CancellationToken::new()).await.unwrap();
        let Outcome::Completed { output } = report.outcome else { panic!("after {length} entries") };
        // What was not committed may come in another order.
        if done(&committed[..length], "b") {
            assert_eq!(output, r#"["of b","of a"]"#, "after {length} entries");
        }
    }
}

/// Two nodes that lead to each other, `most` times. The second one notes each lap.
fn circle(most: u32) -> Graph {
    let mut built = graph(&["begin", "a", "b"], |ids| {
        let mut begin = pass(ids, "begin", &[], &["a"]);
        begin.implied_by = Some("the graph".into());
        let mut nodes = vec![begin, pass(ids, "a", &[], &["b"]), pass(ids, "b", &[("n", "{{n}}x")], &["a"])];
        nodes.iter_mut().for_each(|node| node.join = Join::Each);
        nodes
    });
    built.initial_state = vec![("n".into(), "".into())];
    built.scheduling = quiet(Sharing::Shared, "{{n}}");
    built.limits.hops = Some(VisitCap { visits: most, origin: CapOrigin::Setting("most_hops") });
    built
}

#[tokio::test]
async fn nodes_lead_to_others_as_often_as_they_may() {
    for (most, laps) in [(1, "x"), (2, "x"), (3, "xx"), (4, "xx")] {
        let (report, journal) = run(&Arc::new(circle(most)), &Arc::new(World::default())).await;
        let Outcome::Stopped { reason } = &report.outcome else { panic!("{:?}", report.outcome) };
        assert!(reason.contains(&format!("most_hops={most}")), "{reason}");
        assert_eq!(shown(&report.state, "n"), format!("\"{laps}\""), "{most}");
        assert_eq!(journal.find(report.run.as_str()).await.unwrap().status, RunStatus::Stopped);
    }
}

#[tokio::test]
async fn what_nodes_led_to_before_the_run_counts_also_when_the_run_goes_on() {
    let mut built = circle(4);
    built.open_state = vec!["before".into()];
    built.limits.hops_before = Some("before".into());
    let graph = Arc::new(built);
    for (before, laps) in [(-1, "xx"), (0, "xx"), (1, "xx"), (2, "x"), (3, "x"), (4, ""), (i64::MAX, "")] {
        let mut asked = request(&graph);
        asked.given.state.insert("before", Value::from(before));
        let journal = Arc::new(MemoryStore::default());
        let engine = Engine::new(Arc::new(World::default()).ports(), journal.clone());
        let report = engine.start(asked, CancellationToken::new()).await.unwrap();
        assert!(matches!(report.outcome, Outcome::Stopped { .. }), "{:?}", report.outcome);
        assert_eq!(shown(&report.state, "n"), format!("\"{laps}\""), "{before}");
        let mut committed = before_the_end(&*journal, &report.run).await;
        committed.retain(|entry| !matches!(entry.fact, Fact::Stopped { .. }));
        for length in 1..=committed.len() {
            let (journal, run) = journal_with(&committed[..length]).await;
            let engine = Engine::new(Arc::new(World::default()).ports(), journal.clone());
            let report = engine.resume(&run, graph.clone(), CancellationToken::new()).await.unwrap();
            assert!(matches!(report.outcome, Outcome::Stopped { .. }), "{:?}", report.outcome);
            assert_eq!(shown(&report.state, "n"), format!("\"{laps}\""), "{before} after {length} entries");
        }
    }
}
