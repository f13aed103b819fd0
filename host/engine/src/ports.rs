//! What the engine needs from outside, as traits: cells, tools, people, observers. Models come as
//! [`hotcell_models::Model`].

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use hotcell_budget::{Account, BudgetScope};
use hotcell_graph::ir::{Graph, PluginNodeKind};
use hotcell_graph::{Key, Object, Path, State, Value};
use hotcell_models::{Model, ModelName, Prices, ToolSpec};
use thiserror::Error;
use tokio::sync::Semaphore;

use crate::call_site::CallSite;
use crate::clock::Clock;
use crate::event::{Event, Observer};
use crate::hook::{HookPoint, HookVerdict, Hooks};
use crate::meter::Meter;
use hotcell_journal::Question;

/// Everything outside that a run may use.
#[derive(Clone)]
pub struct Ports {
    /// Runs programs in cells
    pub scripts: Arc<dyn Scripts>,
    /// The tools that models may call
    pub tools: Arc<dyn Tools>,
    /// Answers model requests
    pub model: Arc<dyn Model>,
    /// The model that is asked where neither node nor graph names one
    pub default_model: Option<ModelName>,
    /// What models cost
    pub prices: Arc<Prices>,
    /// Answers questions
    pub people: Arc<dyn People>,
    /// Is told what happens
    pub observer: Arc<dyn Observer>,
    /// May change or refuse what happens
    pub hooks: Arc<dyn Hooks>,
    /// What plugins offer as nodes
    pub plugin_nodes: Arc<dyn PluginNodes>,
    /// What its nodes may look up
    pub knowledge: Arc<dyn Knowledge>,
    /// The agents that its nodes may call
    pub agents: Arc<dyn Agents>,
    /// Sends the requests of tools that the graph defines
    pub web: Arc<dyn Web>,
    /// What time it is, and how waits are waited
    pub clock: Arc<dyn Clock>,
    /// Counts what is used of allowances
    pub meter: Arc<dyn Meter>,
}

/// An agent that a node of another graph may call.
#[derive(Clone)]
pub struct Callee {
    /// Its graph
    pub graph: Arc<Graph>,
    /// Its own programs
    pub scripts: Arc<dyn Scripts>,
    /// Its own tools
    pub tools: Arc<dyn Tools>,
    /// What plugins offer it
    pub plugin_nodes: Arc<dyn PluginNodes>,
    /// What it may look up
    pub knowledge: Arc<dyn Knowledge>,
    /// Whoever may change or refuse what it does: those of whoever calls it, and its own
    pub hooks: Arc<dyn Hooks>,
    /// The agents that it may call; none means those of whoever calls it
    pub agents: Option<Arc<dyn Agents>>,
    /// Sends the requests of its tools
    pub web: Arc<dyn Web>,
    /// How many calls of it are worked on at a time, whichever runs they belong to; none means any number. Others wait, the first
    /// to come first
    pub at_once: Option<Arc<Semaphore>>,
}

impl Callee {
    /// The ports of its part of a run. Everything that is not its own is that of whoever calls it.
    pub(crate) fn ports(&self, caller: &Ports, observer: Arc<dyn Observer>) -> Ports {
        Ports {
            scripts: self.scripts.clone(),
            tools: self.tools.clone(),
            plugin_nodes: self.plugin_nodes.clone(),
            knowledge: self.knowledge.clone(),
            hooks: self.hooks.clone(),
            web: self.web.clone(),
            agents: self.agents.clone().unwrap_or_else(|| caller.agents.clone()),
            observer,
            ..caller.clone()
        }
    }
}

/// Why something outside of the engine is not to be had, as whoever offers it says.
#[derive(Debug, Error)]
#[error(transparent)]
pub struct PortError(Box<dyn std::error::Error + Send + Sync>);

impl PortError {
    /// An error with its cause, or a text that says why.
    pub fn new(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        PortError(cause.into())
    }
}

/// The agents that a run may call, by name.
pub trait Agents: Send + Sync {
    /// The agent of that name; the error is why it cannot be called.
    fn find(&self, name: &str) -> Result<Callee, PortError>;
}

/// A request over HTTP.
#[derive(Clone, Debug, PartialEq)]
pub struct WebCall {
    /// The method
    pub method: String,
    /// The address
    pub url: String,
    /// What is added to the query, in order
    pub query: Vec<(String, String)>,
    /// The headers
    pub headers: Vec<(String, String)>,
    /// What is sent: as JSON, or as a form if the headers say so
    pub body: Option<Value>,
    /// How long it may take; none means as long as any
    pub time: Option<Duration>,
}

/// The answer of a server.
#[derive(Clone, Debug, PartialEq)]
pub struct WebReply {
    /// The status
    pub status: u16,
    /// The body as text
    pub body: String,
}

/// Why a request has no answer.
#[derive(Debug)]
pub struct WebFailure {
    /// The reason
    pub error: PortError,
    /// Whether it may be gone a moment later: nobody answered, or too late. What is not granted stays so
    pub may_pass: bool,
}

impl From<PortError> for WebFailure {
    /// A failure that lasts.
    fn from(error: PortError) -> Self {
        WebFailure { error, may_pass: false }
    }
}

/// What came of a request, and who used what for it.
#[derive(Debug)]
pub struct WebReport {
    /// The answer, or why there is none
    pub result: Result<WebReply, WebFailure>,
    /// Who used what for it
    pub account: Account,
}

/// Sends requests over HTTP, as far as that is granted.
#[async_trait]
pub trait Web: Send + Sync {
    /// Sends a request once; a redirect is an answer.
    async fn send(&self, call: WebCall, budget_scope: Arc<BudgetScope>) -> WebReport;
}

/// Something to look up in a knowledge base.
#[derive(Clone, Debug, PartialEq)]
pub struct Lookup<'a> {
    /// The knowledge base
    pub base: &'a str,
    /// What is looked for
    pub query: &'a str,
    /// How many passages are wanted; none means as many as the base itself says
    pub top_k: Option<usize>,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// The passages with their sources, ready for a prompt
    pub context: String,
    /// The sources, each once, the best first
    pub sources: Vec<String>,
    /// Who used what for it
    pub account: Account,
}

/// Knowledge bases.
#[async_trait]
pub trait Knowledge: Send + Sync {
    /// Whether something outside of this machine is asked to look up anything in a knowledge base.
    fn asks_outside(&self, _base: &str) -> bool {
        true
    }

    /// Looks something up; the error is why that cannot be done.
    async fn look_up(&self, lookup: Lookup<'_>) -> Result<Found, PortError>;
}

/// A call into a cell and what it used, which is reported whether it succeeded or not.
#[derive(Debug)]
pub struct CallReport {
    /// The answer, or why there is none
    pub result: Result<String, CallError>,
    /// Who used what for it
    pub account: Account,
    /// What people should see of it although it came to its end
    pub notices: Vec<Notice>,
}

/// Something that people should see of a call that came to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// What happened, or what was written to standard error
    pub text: String,
    /// What to do about it, if it is to be a warning
    pub help: Option<String>,
}

impl CallReport {
    /// The report of a call that did not come to anybody.
    pub fn failed(reason: impl Into<String>) -> Self {
        let result = Err(CallError::Failed(reason.into()));
        CallReport { result, account: Account::default(), notices: Vec::new() }
    }
}

/// Why a call into a cell gave no answer.
#[derive(Clone, Debug, PartialEq)]
pub enum CallError {
    /// It failed; the text says which limit, trap, exit code or error
    Failed(String),
    /// It asks a person, and is to be repeated with one answer more
    Asks(String),
}

/// A run of a program.
pub struct ScriptCall {
    /// Its file, relative to the graph's folder
    pub file: String,
    /// The state it may read
    pub state: SharedState,
    /// The graph's variables
    pub variables: Arc<[(Key, String)]>,
    /// Wall clock, from when the program is ready to start
    pub timeout: Option<Duration>,
    /// What the run may still use: whoever runs the program is given from it and spends into it
    pub budget_scope: Arc<BudgetScope>,
    /// Where it is made
    pub site: CallSite,
}

/// Runs programs in cells.
#[async_trait]
pub trait Scripts: Send + Sync {
    /// Runs a program to its end; the answer is the JSON text it gave.
    async fn run(&self, call: ScriptCall) -> CallReport;
}

/// A call of a tool.
pub struct ToolCall<'a> {
    /// Its name
    pub name: &'a str,
    /// A JSON object
    pub arguments: &'a str,
    /// What a person answered to the tool's questions so far, in order
    pub answers: &'a [String],
    /// The state it may read
    pub state: SharedState,
    /// The graph's variables
    pub variables: Arc<[(Key, String)]>,
    /// What the run may still use
    pub budget_scope: Arc<BudgetScope>,
    /// Who is told of what the tool calls itself
    pub hooks: Arc<dyn Hooks>,
    /// Where it is made
    pub site: CallSite,
}

/// The tools that models may call.
#[async_trait]
pub trait Tools: Send + Sync {
    /// What a model is told about a tool; `None` if there is no such tool.
    fn describe(&self, name: &str) -> Option<ToolSpec>;

    /// The JSON schema of a tool's arguments; `None` if there is no such tool.
    fn parameters(&self, name: &str) -> Option<Cow<'_, serde_json::Value>> {
        self.describe(name).map(|spec| Cow::Owned(spec.parameters))
    }

    /// Whether nothing around a tool limits what it may do: a function of the program that has the engine.
    fn is_unsealed(&self, _name: &str) -> bool {
        false
    }

    /// Whether a call of a tool touches nothing outside of itself and is given nothing by it, so that nobody notices if it is
    /// made twice.
    fn is_closed(&self, _name: &str) -> bool {
        false
    }

    /// Calls a tool; the answer is JSON text.
    async fn call(&self, call: ToolCall<'_>) -> CallReport;

    /// Whether whoever runs this is asked for what calls of scripts, tools and plugin nodes are denied.
    fn asks_denials(&self) -> bool {
        false
    }

    /// Writes down what was granted for this and all runs, as it was told with [`CallSite::deny`]; the error is why it is not.
    async fn keep_grant(&self, _denial: &Value) -> Result<(), PortError> {
        Err(PortError::new("nothing keeps it here"))
    }
}

/// A node of a type that a plugin offers, or a connector.
pub struct PluginNodeCall<'a> {
    /// Its full name: `plugin/name`
    pub plugin_node: &'a str,
    /// What it is
    pub kind: PluginNodeKind,
    /// A JSON object: fields or configuration
    pub with: &'a str,
    /// A JSON object: what flows in
    pub inputs: &'a str,
    /// What a person answered to its questions so far, in order
    pub answers: &'a [String],
    /// How the answer of a connector finds its run, if it may come later
    pub callback: Option<Callback<'a>>,
    /// The state it may read
    pub state: SharedState,
    /// What the run may still use
    pub budget_scope: Arc<BudgetScope>,
    /// Who is told of what it calls itself
    pub hooks: Arc<dyn Hooks>,
    /// Where it is made
    pub site: CallSite,
}

/// Where the answer of a connector belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Callback<'a> {
    /// The text that has to come with it
    pub session: &'a str,
    /// What came, as JSON text; none for handing over
    pub body: Option<&'a str>,
}

/// What a plugin node gave, and who used what for it.
#[derive(Debug)]
pub struct PluginNodeReport {
    /// What it gave, or why it gave nothing
    pub result: Result<PluginNodeAnswer, CallError>,
    /// Who used what for it
    pub account: Account,
}

/// What a plugin node gave.
#[derive(Clone, Debug, PartialEq)]
pub enum PluginNodeAnswer {
    /// A result
    RunInput {
        /// JSON text
        outputs: String,
        /// The branch it leaves by, if it declares branches
        branch: Option<String>,
    },
    /// A promise: a connector's answer comes by the callback
    Accepted,
}

/// What plugins offer as nodes of a graph.
#[async_trait]
pub trait PluginNodes: Send + Sync {
    /// Hands over to a node type or a connector. Tools are called as [`Tools`].
    async fn take(&self, call: PluginNodeCall<'_>) -> PluginNodeReport;
}

/// Answers questions.
#[async_trait]
pub trait People: Send + Sync {
    /// The answer, or `None` if nobody is there: the run then waits in the journal.
    async fn ask(&self, question: &Question) -> Option<String>;

    /// Whether whoever answers here runs this, and so may grant what calls were denied. Otherwise such questions wait in the journal.
    fn may_grant(&self) -> bool {
        false
    }
}

/// Nobody is there.
pub struct Nobody;

#[async_trait]
impl People for Nobody {
    async fn ask(&self, _question: &Question) -> Option<String> {
        None
    }
}

#[async_trait]
impl Hooks for Nobody {
    fn listens(&self, _: HookPoint) -> bool {
        false
    }

    async fn tell(&self, _: HookPoint, _: Object, _: &Arc<BudgetScope>, _: &CallSite) -> (HookVerdict, Account) {
        (HookVerdict::Proceed, Account::default())
    }
}

#[async_trait]
impl PluginNodes for Nobody {
    async fn take(&self, call: PluginNodeCall<'_>) -> PluginNodeReport {
        let error = CallError::Failed(format!("there is no `{}`", call.plugin_node));
        PluginNodeReport { result: Err(error), account: Account::default() }
    }
}

impl Agents for Nobody {
    fn find(&self, _name: &str) -> Result<Callee, PortError> {
        Err(PortError::new("it is not there"))
    }
}

#[async_trait]
impl Knowledge for Nobody {
    async fn look_up(&self, lookup: Lookup<'_>) -> Result<Found, PortError> {
        Err(PortError::new(format!("there is no knowledge base `{}`", lookup.base)))
    }
}

#[async_trait]
impl Web for Nobody {
    async fn send(&self, call: WebCall, _purse: Arc<BudgetScope>) -> WebReport {
        let error = PortError::new(format!("`{}` cannot be reached from here", call.url));
        WebReport { result: Err(error.into()), account: Account::default() }
    }
}

impl Observer for Nobody {
    fn event(&self, _event: &Event<'_>) {}
}

/// The state as a cell sees it. The JSON text of the whole is made once, and only if somebody asks for it.
#[derive(Clone)]
pub struct SharedState(Arc<(State, OnceLock<Arc<str>>)>);

impl SharedState {
    /// Shares a state.
    pub fn new(state: State) -> Self {
        SharedState(Arc::new((state, OnceLock::new())))
    }

    /// The JSON text of the value that a path (`a.b.0` or `a.b[0]`) names.
    pub fn get(&self, path: &str) -> Option<String> {
        let path = Path::parse(path);
        let root = self.0.0.get(path.root()?)?;
        path.follow_dotted(root).map(Value::to_json)
    }

    /// The JSON text of the whole state, one object.
    pub fn all(&self) -> Arc<str> {
        self.0.1.get_or_init(|| Value::Object(self.0.0.to_object()).to_json().into()).clone()
    }
}
