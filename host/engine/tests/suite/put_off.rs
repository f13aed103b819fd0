//! Entries that are put off: they are there before anything outside depends on them, and whenever a run waits.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use hotcell_budget::{Account, BudgetScope};
use hotcell_engine::{
    CallReport, CallSite, Engine, HookPoint, HookVerdict, Hooks, Outcome, Ports, ScriptCall, Scripts, ToolCall, Tools,
};
use hotcell_graph::conversation::Speaker;
use hotcell_graph::ir::{Action, Arguments, Expression, Graph, PromptPart, Tool, ToolAction, ToolKind};
use hotcell_graph::{Object, Template};
use hotcell_journal::{Fact, RunId, SqliteStore};
use hotcell_models::{Model, ModelError, OnText, Reply, Request, ToolCallRequest, ToolSpec};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::common::held::Held;
use crate::common::journal::{entries, request};
use crate::common::{World, end, graph, model_loop, node, pass, script};

/// A tool that looks at the journal of its run when it is called, and again when it has waited.
struct Looking {
    store: Arc<SqliteStore>,
    is_closed: bool,
    /// How many nodes were done by then
    seen: Mutex<Vec<usize>>,
}

impl Looking {
    async fn look(&self, call: &ToolCall<'_>) {
        let committed = entries(&*self.store, call.site.run().expect("it is called in a run")).await;
        let done = committed.iter().filter(|entry| matches!(entry.fact, Fact::Completed(_))).count();
        self.seen.lock().expect("nobody panics with it").push(done);
    }
}

#[async_trait]
impl Tools for Looking {
    fn describe(&self, _name: &str) -> Option<ToolSpec> {
        None
    }

    fn is_closed(&self, _name: &str) -> bool {
        self.is_closed
    }

    async fn call(&self, call: ToolCall<'_>) -> CallReport {
        self.look(&call).await;
        tokio::task::yield_now().await;
        self.look(&call).await;
        CallReport { result: Ok("1".to_owned()), account: Account::default(), notices: Vec::new() }
    }
}

/// Two nodes that touch nothing, and a tool twice.
fn calling() -> Graph {
    let tool = Tool {
        name: "look".into(),
        spoken: "look".into(),
        description: String::new(),
        inputs: Vec::new(),
        kind: ToolKind::Host("look".to_owned()),
        confirm: false,
    };
    let action = ToolAction {
        tool: Arc::new(tool),
        inputs: Expression::Value(Object::default().into()),
        arguments: Arguments::AsTheyAre,
        bind: "answer",
    };
    graph(&["a", "b", "first", "second", "done"], |ids| {
        let call = || Action::Tool(Box::new(action.clone()));
        vec![
            pass(ids, "a", &[], &["b"]),
            pass(ids, "b", &[], &["first"]),
            node(ids, "first", call(), &[], &["second"]),
            node(ids, "second", call(), &[], &["done"]),
            end(ids, "done", "done"),
        ]
    })
}

#[tokio::test]
async fn what_is_put_off_is_there_before_it_is_needed() {
    for is_closed in [false, true] {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Arc::new(SqliteStore::open(&folder.path().join("runs.db")).expect("opened"));
        let tools = Arc::new(Looking { store: store.clone(), is_closed, seen: Mutex::default() });
        let ports = Ports { tools: tools.clone(), ..Arc::new(World::default()).ports() };
        let graph = Arc::new(calling());
        let report = Engine::new(ports, store.clone())
            .start(request(&graph), CancellationToken::new())
            .await
            .expect("it starts");
        assert_eq!(report.outcome, Outcome::Completed { output: "done".into() });
        let seen = tools.seen.lock().expect("nobody panics with it").clone();
        let [before_first, in_first, before_second, in_second] = seen[..] else { panic!("{seen:?}") };
        if !is_closed {
            assert_eq!((before_first, before_second), (2, 3), "what leaves follows from all that was done before");
        }
        assert_eq!((in_first, in_second), (2, 3), "a run that waits has told everything");
        let all = entries(&*store, &report.run).await;
        let done = all.iter().filter(|entry| matches!(entry.fact, Fact::Completed(_))).count();
        let effects = all.iter().filter(|entry| matches!(entry.fact, Fact::Effect { .. })).count();
        assert_eq!((done, effects), (5, 2));
    }
}

/// A model that has `work` called twice at once, and the tool: one call takes a moment, and the other goes on until the first is committed.
struct Pair {
    store: Arc<SqliteStore>,
    is_done: Notify,
    /// Whether the slow one saw that
    is_seen: Mutex<bool>,
}

#[async_trait]
impl Model for Pair {
    async fn complete(&self, request: Request, _on_text: Option<OnText<'_>>) -> Result<Reply, ModelError> {
        if request.messages.len() > 1 {
            return Ok(Reply::text("done"));
        }
        let call = |id: &str| ToolCallRequest {
            id: id.into(),
            name: "work".into(),
            arguments: format!(r#"{{"how":"{id}"}}"#),
        };
        Ok(Reply { tool_calls: vec![call("quick"), call("slow")], ..Reply::text("") })
    }
}

#[async_trait]
impl Tools for Pair {
    fn describe(&self, name: &str) -> Option<ToolSpec> {
        let parameters = serde_json::json!({ "type": "object" });
        Some(ToolSpec { name: name.into(), description: String::new(), parameters })
    }

    fn is_closed(&self, _name: &str) -> bool {
        true
    }

    async fn call(&self, call: ToolCall<'_>) -> CallReport {
        if call.arguments.contains("quick") {
            tokio::task::yield_now().await;
            self.is_done.notify_one();
        } else {
            self.is_done.notified().await;
            for _ in 0..1000 {
                let committed = entries(&*self.store, call.site.run().expect("it is called in a run")).await;
                let is_work = |fact: &Fact| matches!(fact, Fact::Effect { kind, .. } if kind == "tool");
                if committed.iter().any(|entry| is_work(&entry.fact)) {
                    *self.is_seen.lock().expect("nobody panics with it") = true;
                    break;
                }
                tokio::task::yield_now().await;
            }
        }
        CallReport { result: Ok("1".to_owned()), account: Account::default(), notices: Vec::new() }
    }
}

#[tokio::test]
async fn what_is_done_is_committed_while_its_node_works_on_something_else() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Arc::new(SqliteStore::open(&folder.path().join("runs.db")).expect("opened"));
    let pair = Arc::new(Pair { store: store.clone(), is_done: Notify::new(), is_seen: Mutex::default() });
    let prompt = PromptPart::text("`prompt`", Speaker::Human, Expression::Strict(Template::parse("go")));
    let work = Action::Call(Box::new(model_loop(vec![prompt], "work", (5, 1))));
    let graph = Arc::new(graph(&["work", "done"], |ids| {
        vec![node(ids, "work", work.clone(), &[("said", "{{output}}")], &["done"]), end(ids, "done", "{{said}}")]
    }));
    let ports = Ports { model: pair.clone(), tools: pair.clone(), ..Arc::new(World::default()).ports() };
    let engine = Engine::new(ports, store);
    let report = engine.start(request(&graph), CancellationToken::new()).await.expect("it starts");
    assert_eq!(report.outcome, Outcome::Completed { output: "done".into() });
    assert!(*pair.is_seen.lock().expect("nobody panics with it"));
}

/// A hook, and a script that may act outside: both look how many nodes are committed by then.
struct Outside {
    store: Arc<Held>,
    seen: Mutex<Vec<(&'static str, usize)>>,
}

impl Outside {
    async fn look(&self, who: &'static str, run: &RunId) {
        let committed = entries(&*self.store, run).await;
        let done = committed.iter().filter(|entry| matches!(entry.fact, Fact::Completed(_))).count();
        self.seen.lock().expect("nobody panics with it").push((who, done));
    }
}

#[async_trait]
impl Hooks for Outside {
    fn listens(&self, point: HookPoint) -> bool {
        point == HookPoint::AfterNode
    }

    async fn tell(&self, _: HookPoint, _: Object, _: &Arc<BudgetScope>, site: &CallSite) -> (HookVerdict, Account) {
        self.look("hook", site.run().expect("it is told in a run")).await;
        (HookVerdict::Proceed, Account::default())
    }
}

#[async_trait]
impl Scripts for Outside {
    async fn run(&self, call: ScriptCall) -> CallReport {
        self.look("script", call.site.run().expect("it is called in a run")).await;
        CallReport { result: Ok("{}".to_owned()), account: Account::default(), notices: Vec::new() }
    }
}

#[tokio::test]
async fn a_script_and_a_hook_follow_from_what_is_committed_where_commits_take_their_time() {
    let store = Arc::new(Held::committing_late());
    let outside = Arc::new(Outside { store: store.clone(), seen: Mutex::default() });
    let graph = Arc::new(graph(&["a", "b", "c", "done"], |ids| {
        vec![
            pass(ids, "a", &[], &["b"]),
            script(ids, "b", "b", &[], &["c"]),
            pass(ids, "c", &[], &["done"]),
            end(ids, "done", "done"),
        ]
    }));
    let scripts_alone = Ports { scripts: outside.clone(), ..Arc::new(World::default()).ports() };
    let with_hooks = Ports { hooks: outside.clone(), ..scripts_alone.clone() };
    let told = vec![("hook", 0), ("script", 1), ("hook", 1), ("hook", 2)];
    for (ports, expected) in [(scripts_alone, vec![("script", 1)]), (with_hooks, told)] {
        let engine = Engine::new(ports, store.clone());
        let report = engine.start(request(&graph), CancellationToken::new()).await.expect("it starts");
        assert_eq!(report.outcome, Outcome::Completed { output: "done".into() });
        let seen = std::mem::take(&mut *outside.seen.lock().expect("nobody panics with it"));
        assert_eq!(seen, expected);
        assert_eq!(entries(&*store, &report.run).await.len(), 6, "how it began, four nodes, and how it ended");
    }
}
