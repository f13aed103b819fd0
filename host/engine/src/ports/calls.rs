//! Calls of what runs in cells: programs, tools, nodes of plugins.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use hotcell_budget::{Account, BudgetScope};
use hotcell_graph::ir::PluginNodeKind;
use hotcell_graph::{Key, Path, State, Value};
use hotcell_models::ToolSpec;

use super::PortError;
use crate::call_site::CallSite;
use crate::hook::Hooks;

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
    /// Whether a program reaches nothing outside of its cell, so that nobody notices when it is run.
    fn is_closed(&self, _file: &str) -> bool {
        false
    }

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
