//! What a hook refuses ends the run, unless the graph names the node where it goes on.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use hotcell_budget::{Account, BudgetScope};
use hotcell_engine::{CallSite, Engine, HookPoint, HookVerdict, Hooks, Outcome, Ports};
use hotcell_graph::ir::{
    Action, CallAction, CallTarget, Expression, Graph, NodeIds, OnFailure, PluginNodeAction, PluginNodeKind, Retry,
    RetryOn,
};
use hotcell_graph::value::parse_json;
use hotcell_graph::{Object, Value};
use hotcell_journal::MemoryStore;
use tokio_util::sync::CancellationToken;

use crate::common::journal::request;
use crate::common::{World, ask, each, end, graph, node, script};

/// Refuses everything at one point, but for the nodes that come after a failure.
struct Guard(HookPoint);

#[async_trait]
impl Hooks for Guard {
    fn listens(&self, point: HookPoint) -> bool {
        point == self.0
    }

    async fn tell(&self, _: HookPoint, event: Object, _: &Arc<BudgetScope>, _: &CallSite) -> (HookVerdict, Account) {
        let verdict = match event.get("node").and_then(Value::as_text) {
            Some("after" | "rescue") => HookVerdict::Proceed,
            _ => HookVerdict::Refuse("`guard`: not here".to_owned()),
        };
        (verdict, Account::default())
    }
}

/// A graph whose first node does `action`; `after` and `rescue` are the nodes behind it and behind its failure.
fn guarded(action: &Action, on_failure: impl Fn(&NodeIds) -> OnFailure) -> Graph {
    graph(&["work", "after", "rescue", "done"], |ids| {
        let mut work = node(ids, "work", action.clone(), &[], &["after"]);
        work.on_failure = on_failure(ids);
        let pause = Duration::from_millis(1);
        work.retry =
            Some(Retry { attempts: 3, on: RetryOn::Any, pause, growth: 1.0, longest_pause: pause, ..Retry::default() });
        vec![
            work,
            script(ids, "after", "after", &[("said", "after")], &["done"]),
            script(ids, "rescue", "rescue", &[("said", "rescued")], &["done"]),
            end(ids, "done", "{{said}}"),
        ]
    })
}

fn tool() -> Action {
    Action::PluginNode(Box::new(PluginNodeAction {
        plugin_node: "send/mail".into(),
        kind: PluginNodeKind::Tool,
        with: Expression::Value(Value::Object(Object::default())),
        inputs: Expression::Value(Value::Object(Object::default())),
        branches: Vec::new(),
        keys: None,
        bind: "output",
    }))
}

/// A graph within the graph, in which a person is asked.
fn call() -> Action {
    let inner =
        graph(&["ask", "done"], |ids| vec![node(ids, "ask", ask("May I?"), &[], &["done"]), end(ids, "done", "x")]);
    let target = CallTarget::Graph {
        graph: Arc::new(inner),
        inputs: Vec::new(),
        conversation: None,
        inherits: false,
        gives: hotcell_graph::ir::Gives::Outputs,
    };
    Action::Call(Box::new(CallAction {
        target,
        contract: None,
        failure_prefix: Some("it failed: ".to_owned()),
        bind: "output",
    }))
}

async fn run(graph: Graph, point: HookPoint) -> (Outcome, Vec<String>) {
    let world = Arc::new(World { answers: vec!["yes".to_owned(); 4].into(), ..World::default() });
    let ports = Ports { hooks: Arc::new(Guard(point)), ..world.ports() };
    let engine = Engine::new(ports, Arc::new(MemoryStore::default()));
    let report = engine.start(request(&Arc::new(graph)), CancellationToken::new()).await.unwrap();
    let ran = world.ran.lock().unwrap().clone();
    (report.outcome, ran)
}

/// Wherever it is refused, nothing of what follows is done, and nothing is tried again.
#[tokio::test]
async fn a_refusal_ends_the_run_where_a_failure_would_not() {
    let cases = [
        (Action::Pass, HookPoint::BeforeNode, "before-node"),
        (Action::Pass, HookPoint::AfterNode, "after-node"),
        (ask("May I?"), HookPoint::BeforeQuestion, "before-question"),
        (ask("May I?"), HookPoint::AfterQuestion, "after-question"),
        (tool(), HookPoint::BeforeToolCall, "before-tool-call"),
        (call(), HookPoint::BeforeQuestion, "before-question"),
    ];
    for (action, point, name) in &cases {
        for on_failure in [OnFailure::Fail, OnFailure::Continue, OnFailure::EndBranch] {
            let (outcome, ran) = run(guarded(action, |_| on_failure.clone()), *point).await;
            let Outcome::Failed { node, error } = &outcome else { panic!("{name} {on_failure:?}: {outcome:?}") };
            assert_eq!(node.as_deref(), Some("work"), "{name} {on_failure:?}");
            assert!(error.contains(&format!("refused at `{name}`: `guard`: not here")), "{error}");
            assert!(ran.is_empty(), "{name} {on_failure:?}: {ran:?}");
        }
    }
}

#[tokio::test]
async fn a_node_that_the_graph_names_goes_on_after_a_refusal() {
    let rescue = |ids: &NodeIds| OnFailure::To(ids.get("rescue").unwrap());
    for (action, point) in [
        (Action::Pass, HookPoint::AfterNode),
        (ask("May I?"), HookPoint::BeforeQuestion),
        (tool(), HookPoint::BeforeToolCall),
        (call(), HookPoint::AfterQuestion),
    ] {
        let (outcome, ran) = run(guarded(&action, rescue), point).await;
        let expected = Outcome::Completed { output: "rescued".into() };
        assert_eq!((outcome, ran), (expected, vec!["rescue".to_owned()]), "{point:?}");
    }
}

#[tokio::test]
async fn what_is_refused_for_an_item_is_refused_for_the_map() {
    let mut built = graph(&["each", "one", "after"], |ids| {
        let mut map = node(ids, "each", each(ids, "one", "answer", "all", Some(1)), &[], &["after"]);
        map.on_failure = OnFailure::Continue;
        vec![map, node(ids, "one", ask("May I?"), &[], &[]), end(ids, "after", "done")]
    });
    built.initial_state = vec![("xs".into(), parse_json("[1, 2]").unwrap())];
    let (outcome, _) = run(built, HookPoint::BeforeQuestion).await;
    let Outcome::Failed { error, .. } = &outcome else { panic!("{outcome:?}") };
    assert!(error.contains("item 0 of the map") && error.contains("refused at `before-question`"), "{error}");
}
