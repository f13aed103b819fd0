//! Graphs built in code and ports that answer from tables, for the engine's tests.
pub(crate) mod held;
pub(crate) mod journal;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use hotcell_budget::{Account, Usage};
use hotcell_engine::{
    CallError, CallReport, Callee, Event, Nobody, Observer, People, Ports, ScriptCall, Scripts, SystemClock, ToolCall,
    Tools,
};
use hotcell_graph::diagnostic::Span;
use hotcell_graph::ir::{
    Action, AgentLoop, AskAction, AtCap, CallAction, CallTarget, Callable, Expression, Graph, Join, KeptArguments,
    ModelSettings, Next, Node, NodeIds, NodeItems, PromptPart, RequestCap, Retry, RetryOn, ScriptAction, Update,
};
use hotcell_graph::{Template, Value};
use hotcell_journal::Question;
use hotcell_models::{Model, ModelError, OnText, Reply, Request, ToolSpec};

/// A node that does nothing but write `updates` and go to `next`.
pub(crate) fn pass(ids: &NodeIds, id: &str, updates: &[(&str, &str)], next: &[&str]) -> Node {
    node(ids, id, Action::Pass, updates, next)
}

/// A node that runs the program `file`, which [`World`] knows.
pub(crate) fn script(ids: &NodeIds, id: &str, file: &str, updates: &[(&str, &str)], next: &[&str]) -> Node {
    let action = Action::Script(ScriptAction { file: file.into(), route_key: Some("_next") });
    node(ids, id, action, updates, next)
}

/// A question to a person, whose answer updates see as `answer`.
pub(crate) fn ask(question: &str) -> Action {
    Action::Ask(AskAction { trim: true, ..AskAction::new(Expression::Strict(Template::parse(question)), "answer") })
}

/// A map over the list `xs` that runs a node for each item, `x`, and collects `output` of each in `collected`.
pub(crate) fn each(ids: &NodeIds, branch: &str, output: &str, collected: &str, at_a_time: Option<usize>) -> Action {
    let items = NodeItems {
        over: Template::parse("{{xs}}"),
        item_key: "x".into(),
        branch: ids.get(branch).expect("a node of the test graph"),
        output_key: output.into(),
        collect_into: collected.into(),
    };
    Action::Map(items.at_a_time(at_a_time))
}

/// A node that ends the run.
pub(crate) fn end(ids: &NodeIds, id: &str, output: &str) -> Node {
    node(ids, id, Action::End { output: Expression::Strict(Template::parse(output)) }, &[], &[])
}

pub(crate) fn node(ids: &NodeIds, id: &str, action: Action, updates: &[(&str, &str)], next: &[&str]) -> Node {
    let next = Next::To(next.iter().map(|id| ids.get(id).expect("a node of the test graph")).collect());
    Node {
        updates: updates
            .iter()
            .map(|(key, template)| Update { key: (*key).into(), value: Expression::Lenient(Template::parse(template)) })
            .collect(),
        join: Join::All,
        ..Node::new(id, "test", action, next, &Span::none())
    }
}

/// A node that is a loop: what a model is told, the tools it may call, and how often it is asked at most, and how often again.
pub(crate) fn model_loop(prompt: Vec<PromptPart>, tool: &str, (requests, attempts): (u32, u32)) -> CallAction {
    let agent = AgentLoop {
        settings: ModelSettings { model: Some("openai:scripted".into()), ..ModelSettings::default() },
        prompt,
        tools: vec![Callable::Tool(tool.into())],
        arguments: KeptArguments::Text,
        cap: Some(RequestCap { requests, then: AtCap::Fail("it asked too often".into()) }),
        retry: Retry { attempts, on: RetryOn::Transient, pause: Duration::ZERO, ..Retry::default() },
        ..AgentLoop::default()
    };
    let target = CallTarget::Loop(Arc::new(agent.into_graph()));
    CallAction { target, contract: None, failure_prefix: None, bind: "output" }
}

/// A graph whose first node is the start; `build` gets the ids.
pub(crate) fn graph(ids: &[&str], build: impl Fn(&NodeIds) -> Vec<Node>) -> Graph {
    let known = NodeIds::new(ids.iter().copied());
    let nodes = build(&known);
    assert_eq!(nodes.iter().map(|node| &*node.id).collect::<Vec<_>>(), ids);
    Graph::new("test", nodes, ids[0]).expect("unique ids")
}

/// Everything outside, answering from tables and counting what was asked.
#[derive(Default)]
pub(crate) struct World {
    pub(crate) scripts: HashMap<&'static str, ScriptBehaviour>,
    pub(crate) answers: Mutex<Vec<String>>,
    /// What people were shown of questions
    pub(crate) asked: Mutex<Vec<String>>,
    pub(crate) ran: Mutex<Vec<String>>,
    pub(crate) events: Mutex<Vec<String>>,
    /// Whether calls are paid from the budget scope
    pub(crate) charges: bool,
}

pub(crate) type ScriptBehaviour = fn(&ScriptCall) -> Result<String, String>;

impl World {
    /// An agent with this graph, whose scripts and tools are those of the world.
    pub(crate) fn callee(self: &Arc<Self>, graph: Arc<Graph>) -> Callee {
        Callee {
            graph,
            scripts: self.clone(),
            tools: self.clone(),
            plugin_nodes: Arc::new(Nobody),
            knowledge: Arc::new(Nobody),
            hooks: Arc::new(Nobody),
            web: Arc::new(Nobody),
            agents: None,
            at_once: None,
        }
    }

    /// An agent that takes a prompt, runs the script `work` and says what it made.
    pub(crate) fn helper(self: &Arc<Self>) -> Callee {
        let mut helper = graph(&["work", "done"], |ids| {
            vec![script(ids, "work", "work", &[("made", "helped")], &["done"]), end(ids, "done", "{{made}}")]
        });
        helper.input_key = Some("prompt".into());
        self.callee(Arc::new(helper))
    }

    pub(crate) fn ports(self: &Arc<Self>) -> Ports {
        Ports {
            hooks: Arc::new(Nobody),
            plugin_nodes: Arc::new(Nobody),
            knowledge: Arc::new(Nobody),
            web: Arc::new(Nobody),
            agents: Arc::new(Nobody),
            scripts: self.clone(),
            tools: self.clone(),
            model: self.clone(),
            default_model: None,
            prices: Arc::default(),
            people: self.clone(),
            observer: self.clone(),
            clock: Arc::new(SystemClock::default()),
            meter: Arc::new(hotcell_engine::Tally::default()),
        }
    }
}

#[async_trait]
impl Scripts for World {
    async fn run(&self, call: ScriptCall) -> CallReport {
        self.ran.lock().unwrap().push(call.file.clone());
        // Longer names take longer, so that branches finish in another order than they are declared. They wait for one millisecond
        // after the other to begin, so that a machine that holds all of them up for a while costs each of them the same.
        match call.file.len() {
            letters @ ..=100 => {
                for _ in 0..letters {
                    tokio::time::sleep(Duration::from_micros(1)).await;
                }
            }
            milliseconds => tokio::time::sleep(Duration::from_millis(milliseconds as u64)).await,
        }
        let usage = Usage { calls: 1, ..Usage::default() };
        if self.charges {
            if let Err(overdrawn) = call.budget_scope.clamp(&hotcell_budget::Budget::default()) {
                return CallReport::failed(overdrawn.to_string());
            }
            call.budget_scope.spend(&usage);
        }
        let result = match self.scripts.get(call.file.as_str()) {
            Some(behaviour) => behaviour(&call).map_err(CallError::Failed),
            None => Ok("{}".into()),
        };
        CallReport { result, account: Account::of("script", usage), notices: Vec::new() }
    }
}

#[async_trait]
impl Tools for World {
    fn describe(&self, _name: &str) -> Option<ToolSpec> {
        None
    }

    async fn call(&self, call: ToolCall<'_>) -> CallReport {
        CallReport::failed(format!("no tool `{}`", call.name))
    }
}

#[async_trait]
impl Model for World {
    async fn complete(&self, _request: Request, _on_text: Option<OnText<'_>>) -> Result<Reply, ModelError> {
        unreachable!("these tests have no model nodes")
    }
}

#[async_trait]
impl People for World {
    async fn ask(&self, question: &Question) -> Option<String> {
        self.asked.lock().unwrap().push(format!("{question:?}"));
        let mut answers = self.answers.lock().unwrap();
        (!answers.is_empty()).then(|| answers.remove(0))
    }
}

impl Observer for World {
    fn event(&self, event: &Event<'_>) {
        self.events.lock().unwrap().push(serde_json::to_string(event).expect("events are JSON"));
    }
}

/// The text of a value in a final state.
pub(crate) fn shown(state: &hotcell_graph::State, key: &str) -> String {
    state.get(key).map(Value::to_json).unwrap_or_else(|| "absent".into())
}
