//! Entries that are put off: they are there before anything outside depends on them, and whenever a run waits.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use hotcell_budget::Account;
use hotcell_engine::{CallReport, Engine, Outcome, Ports, ToolCall, Tools};
use hotcell_graph::Object;
use hotcell_graph::ir::{Action, Arguments, Expression, Graph, Tool, ToolAction, ToolKind};
use hotcell_journal::{Fact, SqliteStore};
use hotcell_models::ToolSpec;
use tokio_util::sync::CancellationToken;

use crate::common::journal::{entries, request};
use crate::common::{World, end, graph, node, pass};

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
