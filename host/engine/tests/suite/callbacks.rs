//! Runs that wait for another system: from every entry they come to the same end, or are cancelled for good.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use hotcell_budget::Account;
use hotcell_engine::{
    CallReport, Engine, Outcome, PluginNodeAnswer, PluginNodeCall, PluginNodeReport, PluginNodes, Ports, ScriptCall,
    Scripts, ToolCall, Tools,
};
use hotcell_graph::ir::{Action, Expression, Graph, JobAction, PluginNodeAction, PluginNodeKind};
use hotcell_graph::{Object, Template, Value};
use hotcell_journal::{
    CALLBACK, CallbackState, Entry, Fact, MemoryStore, RunId, RunQuery, RunStatus, RunStore, callback_state,
};
use hotcell_models::ToolSpec;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::common::journal::{answer, before_the_end, entries, journal_with, request};
use crate::common::{World, end, graph, node, pass, script};

/// A connector that takes what it is handed, and makes an answer of what comes by the callback.
#[derive(Default)]
struct Later {
    calls: AtomicUsize,
}

#[async_trait]
impl PluginNodes for Later {
    async fn take(&self, call: PluginNodeCall<'_>) -> PluginNodeReport {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let answer = match call.callback.and_then(|callback| callback.body) {
            None => PluginNodeAnswer::Accepted,
            Some(body) => PluginNodeAnswer::RunInput { outputs: body.to_owned(), branch: None },
        };
        PluginNodeReport { result: Ok(answer), account: Account::default() }
    }
}

impl Later {
    fn engine(self: &Arc<Self>, journal: Arc<MemoryStore>) -> Engine {
        let ports = Ports { plugin_nodes: self.clone(), ..Arc::new(World::default()).ports() };
        Engine::new(ports, journal)
    }
}

/// Hands an order over, and waits for what comes of it.
fn ordering() -> Arc<Graph> {
    let text = |text: &str| Expression::Strict(Template::parse(text));
    Arc::new(graph(&["before", "order", "done"], |ids| {
        let action = Action::PluginNode(Box::new(PluginNodeAction {
            plugin_node: "acme/order".to_owned(),
            kind: PluginNodeKind::Callback,
            with: text("x"),
            inputs: text("x"),
            branches: Vec::new(),
            keys: None,
            bind: "came",
        }));
        vec![
            pass(ids, "before", &[], &["order"]),
            node(ids, "order", action, &[("came", "{{came}}")], &["done"]),
            end(ids, "done", "it came: {{came}}"),
        ]
    }))
}

/// Posts the answer to the callback of a run that waits for it.
async fn post(journal: &MemoryStore, run: &RunId) {
    let known = entries(journal, run).await;
    let session = known.iter().find_map(|entry| match &entry.fact {
        Fact::Effect { kind, answer, .. } if kind == CALLBACK => answer.as_text().map(str::to_owned),
        _ => None,
    });
    let CallbackState::Open(open) = callback_state(&known, &session.expect("a session")) else {
        panic!("the run does not wait for its callback")
    };
    answer(journal, run, &open, &Value::text("seven").to_json()).await;
}

/// A run from its beginning to its end, as one process would have written it.
async fn whole(graph: &Arc<Graph>) -> Vec<Entry> {
    let journal = Arc::new(MemoryStore::default());
    let engine = Arc::new(Later::default()).engine(journal.clone());
    let run = engine.start(request(graph), CancellationToken::new()).await.unwrap().run;
    post(&journal, &run).await;
    let report = engine.resume(&run, graph.clone(), CancellationToken::new()).await.unwrap();
    assert_eq!(report.outcome, completed());
    let mut entries = before_the_end(&*journal, &run).await;
    entries.retain(|entry| !matches!(entry.fact, Fact::Waiting | Fact::Resumed));
    entries
}

fn completed() -> Outcome {
    Outcome::Completed { output: "it came: seven".into() }
}

#[tokio::test]
async fn every_prefix_of_a_run_with_a_callback_leads_to_the_same_end() {
    let graph = ordering();
    let entries = whole(&graph).await;
    for length in 1..=entries.len() {
        let (journal, run) = journal_with(&entries[..length]).await;
        let connector = Arc::new(Later::default());
        let engine = connector.engine(journal.clone());
        let mut report = engine.resume(&run, graph.clone(), CancellationToken::new()).await.unwrap();
        if matches!(report.outcome, Outcome::Waiting { .. }) {
            post(&journal, &run).await;
            report = engine.resume(&run, graph.clone(), CancellationToken::new()).await.unwrap();
        }
        assert_eq!(report.outcome, completed(), "after {length} entries");
        // What was handed over or received before is neither once more.
        let is_call = |entry: &&Entry| matches!(&entry.fact, Fact::Effect { kind, .. } if kind == "plugin");
        let before = entries[..length].iter().filter(is_call).count();
        assert_eq!(connector.calls.load(Ordering::SeqCst), 2 - before, "after {length} entries");
    }
}

#[tokio::test]
async fn a_run_that_is_cancelled_after_any_entry_does_nothing_more() {
    let graph = ordering();
    let committed = whole(&graph).await;
    for length in 1..=committed.len() {
        let (journal, run) = journal_with(&committed[..length]).await;
        journal.send(&run, Entry::of_run(Fact::Cancelled)).await.unwrap();
        let connector = Arc::new(Later::default());
        let engine = connector.engine(journal.clone());
        let gone_on = engine.resume(&run, graph.clone(), CancellationToken::new()).await;
        assert!(gone_on.is_err(), "after {length} entries: {:?}", gone_on.map(|report| report.outcome));
        assert!(engine.retry(&run, graph.clone(), CancellationToken::new()).await.is_err(), "after {length} entries");
        assert_eq!(connector.calls.load(Ordering::SeqCst), 0, "after {length} entries");
        assert_eq!(journal.find(run.as_str()).await.unwrap().status, RunStatus::Cancelled);
        let left = entries(&*journal, &run).await;
        assert_eq!((left.len(), &left[length].fact), (length + 1, &Fact::Cancelled));
    }
}

/// The tools of a job whose result comes by a callback, and a script that never ends.
#[derive(Default)]
struct Elsewhere {
    called: Mutex<Vec<String>>,
    is_called_off: Notify,
}

#[async_trait]
impl Tools for Elsewhere {
    fn describe(&self, _name: &str) -> Option<ToolSpec> {
        None
    }

    async fn call(&self, call: ToolCall<'_>) -> CallReport {
        self.called.lock().expect("nobody panics with it").push(call.name.to_owned());
        if call.name == "job/cancel" {
            self.is_called_off.notify_one();
        }
        let result = Ok(r#"{"accepted":{"state":"begun"}}"#.to_owned());
        CallReport { result, account: Account::default(), notices: Vec::new() }
    }
}

#[async_trait]
impl Scripts for Elsewhere {
    async fn run(&self, _call: ScriptCall) -> CallReport {
        std::future::pending().await
    }
}

#[tokio::test]
async fn a_job_that_waits_is_called_off_when_its_run_is_cancelled_while_another_node_runs() {
    let graph = Arc::new(graph(&["before", "job", "endless", "done"], |ids| {
        let nothing = || Expression::Value(Object::default().into());
        let job = JobAction {
            name: "job".into(),
            tools: "job/".to_owned(),
            settings: nothing(),
            arguments: nothing(),
            step: Duration::from_secs(60),
            deadline: Duration::from_secs(3600),
            callback: Some(Expression::Value("https://here.example".into())),
            late: "late",
            bind: "came",
        };
        vec![
            pass(ids, "before", &[], &["job", "endless"]),
            node(ids, "job", Action::Job(Box::new(job)), &[], &["done"]),
            script(ids, "endless", "endless", &[], &["done"]),
            end(ids, "done", ""),
        ]
    }));
    let (journal, elsewhere) = (Arc::new(MemoryStore::default()), Arc::new(Elsewhere::default()));
    let ports = Ports { tools: elsewhere.clone(), scripts: elsewhere.clone(), ..Arc::new(World::default()).ports() };
    let engine = Engine::new(ports, journal.clone());
    let running = tokio::spawn(async move { engine.start(request(&graph), CancellationToken::new()).await });
    let run = loop {
        let page = journal.list(&RunQuery { limit: 1, ..RunQuery::default() }).await.expect("listed");
        if let Some(run) = page.runs.into_iter().next() {
            break run.id;
        }
        tokio::task::yield_now().await;
    };
    loop {
        let known = entries(&*journal, &run).await;
        if known.iter().any(|entry| matches!(entry.fact, Fact::Asked { .. })) {
            break;
        }
        journal.grown(&run, known.len() as u64).await.expect("it goes on");
    }
    journal.send(&run, Entry::of_run(Fact::Cancelled)).await.expect("cancelled");
    let report = running.await.expect("no panic").expect("no error");
    assert_eq!(report.outcome, Outcome::Cancelled);
    let called_off = tokio::time::timeout(Duration::from_secs(60), elsewhere.is_called_off.notified()).await;
    called_off.expect("nobody waits for its result any more");
    assert_eq!(*elsewhere.called.lock().expect("nobody panics with it"), ["job/begin", "job/cancel"]);
}
