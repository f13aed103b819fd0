//! What the engine needs from outside, as traits: cells, tools, people, observers. Models come as
//! [`hotcell_models::Model`].

mod calls;
mod knowledge;
mod nobody;
mod web;

use std::sync::Arc;

use async_trait::async_trait;
use hotcell_graph::ir::Graph;
use hotcell_journal::Question;
use hotcell_models::{Model, ModelName, Prices};
use thiserror::Error;
use tokio::sync::Semaphore;

pub use self::calls::{
    CallError, CallReport, Callback, Notice, PluginNodeAnswer, PluginNodeCall, PluginNodeReport, PluginNodes,
    ScriptCall, Scripts, SharedState, ToolCall, Tools,
};
pub use self::knowledge::{Found, Knowledge, Lookup};
pub use self::nobody::Nobody;
pub use self::web::{Web, WebCall, WebFailure, WebReply, WebReport};
use crate::clock::Clock;
use crate::event::Observer;
use crate::hook::Hooks;
use crate::meter::Meter;

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
