//! What the program that embeds hotcell hands to the agents that it loads: functions of its own as tools, and JSON schemas of types that
//! their files name.
//!
//! Such a function is part of that program. No cell is around it, and it may do what the program may. So an agent has it only where the
//! program hands it in and the agent's file names it; agents in folders of their own, which an agent calls by their names, do not
//! have it, and neither have plugins.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use async_trait::async_trait;
use futures::FutureExt as _;
use hotcell_budget::{Account, Budget, Bytes, Usage};
use hotcell_dialects::ToolState;
use hotcell_engine::{CallError, CallReport, ToolCall};
use hotcell_graph::json_schema::JsonSchema;
use hotcell_journal::RunId;
use hotcell_models::ToolSpec;
use serde_json::Value;
use thiserror::Error;

use crate::revision::sources::Sources;

/// What the names of these functions begin with in the accounts of runs: nothing of what they do is seen or limited.
const ACCOUNT: &str = "unsealed:";
/// Letters that the name of a function may have: as many as the name of a tool that providers take.
const MAX_NAME: usize = 64;

/// A function of the program that embeds hotcell, offered to agents as a tool. It is not sealed.
#[async_trait]
pub trait OfferedFunction: Send + Sync {
    /// Its name and description for models, and the JSON schema of its arguments.
    fn spec(&self) -> ToolSpec;

    /// Calls it, on any thread and possibly several times at once. The result is JSON; anything else is taken as a text. The error is
    /// shown to the caller, usually a model. If the run is stopped, the future is dropped.
    async fn call(&self, call: FunctionCall) -> Result<String, String>;
}

/// A call of a function of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionCall {
    /// A JSON object
    pub arguments: String,
    /// The run that calls it, unless it is called outside of runs
    pub run: Option<RunId>,
}

/// Why something cannot be offered to agents.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum OfferError {
    /// A name that providers of models do not accept
    #[error("`{0}` is not a valid function name: use 1 to {MAX_NAME} letters, digits, `_` and `-`")]
    Name(String),
    /// A name that is already in use
    #[error("the function `{0}` is offered twice")]
    Twice(String),
    /// A JSON schema that cannot be used
    #[error("{what} has no JSON schema that can be used: {cause}")]
    Schema {
        /// Of what
        what: String,
        /// What is wrong with it
        cause: String,
    },
}

/// What a program offers to the agents that it loads ([`Host::offering`](crate::Host::offering)).
#[derive(Clone, Default)]
pub struct Offered {
    functions: BTreeMap<String, Arc<dyn OfferedFunction>>,
    /// JSON schemas of types, as text
    types: BTreeMap<String, Arc<str>>,
}

impl Offered {
    /// Adds a function. It takes precedence over a plugin's tool of the same name.
    ///
    /// # Errors
    /// When its name is invalid or already in use, or its parameters are not a JSON schema.
    pub fn function(mut self, function: Arc<dyn OfferedFunction>) -> Result<Self, OfferError> {
        let ToolSpec { name, parameters, .. } = function.spec();
        let is_usable = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
        if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(is_usable) {
            return Err(OfferError::Name(name));
        }
        check_schema(&parameters, || format!("the function `{name}`"))?;
        if self.functions.contains_key(&name) {
            return Err(OfferError::Twice(name));
        }
        self.functions.insert(name, function);
        Ok(self)
    }

    /// Adds the JSON schema of a type that files refer to by its import path (`package.module.Name`), or by its name alone (`Name`) in
    /// any module.
    ///
    /// # Errors
    /// When it is not a JSON schema.
    pub fn type_schema(mut self, path: impl Into<String>, schema: &Value) -> Result<Self, OfferError> {
        let path = path.into();
        check_schema(schema, || format!("the type `{path}`"))?;
        self.types.insert(path, schema.to_string().into());
        Ok(self)
    }

    /// The names of its functions, in the order in which they were added.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.functions.keys().map(String::as_str)
    }

    /// The schema of the type with this import path, as text.
    pub(crate) fn schema_of(&self, path: &str) -> Option<Arc<str>> {
        let name = path.rsplit('.').next().unwrap_or(path);
        self.types.get(path).or_else(|| self.types.get(name)).cloned()
    }
}

fn check_schema(schema: &Value, what: impl FnOnce() -> String) -> Result<(), OfferError> {
    let compiled = JsonSchema::compile(schema).map(drop);
    compiled.map_err(|problem| OfferError::Schema { what: what(), cause: problem.to_string() })
}

/// The functions of the program within reach of one agent.
#[derive(Clone)]
pub(crate) struct AgentFunctions {
    offered: Arc<Offered>,
    sources: Arc<Sources>,
    /// Those that the agent's files have named so far
    named: Arc<Mutex<BTreeMap<String, ToolSpec>>>,
}

impl AgentFunctions {
    pub(crate) fn new(offered: Arc<Offered>, sources: Arc<Sources>) -> Self {
        AgentFunctions { offered, sources, named: Arc::default() }
    }

    /// What a name means that a file of the agent has; none where it is no such function. A revision knows which there were when it
    /// was made, and what was said about them.
    pub(crate) fn find(&self, name: &str) -> Option<ToolState> {
        let function = self.offered.functions.get(name);
        let subject = format!("function {name}");
        let ask = || function.and_then(|function| serde_json::to_string(&function.spec()).ok()).ok_or(());
        let spec: ToolSpec = serde_json::from_str(&self.sources.answer(&subject, || (), ask).ok()?).ok()?;
        if function.is_none() {
            return Some(ToolState::Unusable(
                "it is a function of the program that began the run, which has to go on with it".to_owned(),
            ));
        }
        self.named().insert(name.to_owned(), spec);
        Some(ToolState::Usable)
    }

    /// Whether a name is that of a function which a file of the agent has named.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.named().contains_key(name)
    }

    /// What the program says about a type, by its import path. A revision knows what it said then.
    pub(crate) fn schema_of(&self, path: &str) -> Option<Arc<str>> {
        let ask = || self.offered.schema_of(path).map(|schema| schema.to_string()).ok_or(());
        self.sources.answer(&format!("type {path}"), || (), ask).ok().map(Arc::from)
    }

    /// The names of all that are offered.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.offered.names()
    }

    /// What a model is told about a function.
    pub(crate) fn describe(&self, name: &str) -> Option<ToolSpec> {
        self.named().get(name).cloned()
    }

    pub(crate) async fn call(&self, call: &ToolCall<'_>) -> CallReport {
        let Some(function) = self.offered.functions.get(call.name) else {
            return CallReport::failed(format!("there is no tool `{}`", call.name));
        };
        let budget = match call.budget_scope.clamp(&Budget::default()) {
            Ok(budget) => budget,
            Err(overdrawn) => return CallReport::failed(overdrawn.to_string()),
        };
        let begun = Instant::now();
        let given = FunctionCall { arguments: call.arguments.to_owned(), run: call.site.run().cloned() };
        // What panics in it is that call's own affair.
        let called = AssertUnwindSafe(function.call(given)).catch_unwind().await;
        let result = called.unwrap_or_else(|panic| Err(format!("it panicked: {}", message_of(&*panic))));
        let output = Bytes::from(result.as_ref().map_or(0, String::len));
        let usage = Usage { calls: 1, wall_clock: begun.elapsed(), output, ..Usage::default() };
        call.budget_scope.spend(&usage);
        let result = match result {
            Ok(_) if output > budget.output => {
                Err(format!("`output-too-large`: it gave {output}, and a tool may give {}", budget.output))
            }
            other => other,
        };
        CallReport {
            result: result.map_err(CallError::Failed),
            account: Account::of(format!("{ACCOUNT}{}", call.name), usage),
            notices: Vec::new(),
        }
    }

    fn named(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, ToolSpec>> {
        self.named.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a panic says.
fn message_of(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a text")
}
