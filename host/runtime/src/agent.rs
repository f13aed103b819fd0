//! Loaded agents, what may be said when one is loaded, and why one cannot be.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use hotcell_budget::{BudgetScope, Bytes, RunBudget, Usage};
use hotcell_cells::Grants;
use hotcell_cells::policy::{Decision, decide_url};
use hotcell_dialects::Dialect;
use hotcell_dialects::leafmesh::MeshSettings;
use hotcell_engine::{CallError, CallSite, Callee, Hooks, Nobody, PortError, SharedState, ToolCall, WebCall, WebReply};
use hotcell_graph::Key;
use hotcell_graph::diagnostic::Diagnostic;
use hotcell_graph::ir::Graph;
use hotcell_plugins::ScheduleSettings;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use url::Url;

use crate::agent_registry::AgentRegistry;
pub use crate::load_failure::LoadFailure;
use crate::permissions::{FILE_GRANTS, Permissions};
use crate::revision::AgentRevision;

/// A loaded agent, ready to run.
#[derive(Clone)]
pub struct Agent {
    /// Its graph
    pub graph: Arc<Graph>,
    /// Warnings: what is probably a mistake
    pub warnings: Vec<Diagnostic>,
    /// The language it is written in
    pub dialect: Dialect,
    /// The file it was loaded from
    pub file: PathBuf,
    /// The folder of the file
    pub folder: PathBuf,
    /// The names of the agents in the file, if it can contain several
    pub names: Vec<Key>,
    /// The style of the file, if its language has several
    pub style: Option<&'static str>,
    /// Whether a run of it fails for whoever started it if a node failed and nothing handles that (`[run] strict`)
    pub strict: bool,
    /// Bytes that a run of it may write to its journal (`[run] journal_bytes`)
    pub journal_bytes: Bytes,
    /// Schedules in the folder's settings, by which a server starts runs; some may be for other agents of the folder
    pub schedules: Vec<ScheduleSettings>,
    /// Prompts to suggest to a person
    pub conversation_starters: Vec<String>,
    /// Where it comes from, for whoever loads it again
    pub(crate) source: String,
    /// Identifies the texts of the agent and of all that it may call, as versions without revisions did
    pub(crate) texts: String,
    /// What it was loaded from; none if that cannot be written down
    pub(crate) revision: Option<AgentRevision>,
    /// What it says beside its graph, if it is a mesh
    pub(crate) mesh: Option<Arc<MeshSettings>>,
    /// Whether nobody named it, so that it is trusted only as its folder is
    pub(crate) is_unnamed: bool,
    pub(crate) own: Callee,
    /// What is granted to its file
    pub(crate) grants: Arc<Grants>,
    /// What is granted in its folder at this moment
    pub(crate) permissions: Arc<Permissions>,
    pub(crate) family: Arc<AgentRegistry>,
    /// Those of its hooks that did not come with its folder
    pub(crate) operators_hooks: Arc<dyn Hooks>,
}

impl Agent {
    /// Its source, by which its runs are found in a journal.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Sends a request as its own file does, with the grants of that file.
    ///
    /// # Errors
    /// Why there is no reply; a denial says which grant would allow it.
    pub async fn send(&self, call: WebCall) -> Result<WebReply, PortError> {
        let scope = Arc::new(BudgetScope::new(RunBudget::default(), Usage::default()));
        self.own.web.send(call, scope).await.result.map_err(|failure| failure.error)
    }

    /// Whether its own file may post to an address, judged by its name; where the name resolves to is checked when something is sent.
    pub fn may_post(&self, address: &Url) -> bool {
        let granted = self.permissions.grants(FILE_GRANTS, &self.grants);
        granted.is_ok_and(|grants| matches!(decide_url(&grants, address, "POST"), Some(Decision::Allow)))
    }

    /// Calls a tool of a component that its own file configures ([`DeclaredComponent::tool`]), outside of any run.
    ///
    /// # Errors
    /// Why there is no result.
    pub async fn call_component(&self, tool: &str, arguments: &str) -> Result<String, OutsideCallError> {
        let call = ToolCall {
            name: tool,
            arguments,
            answers: &[],
            state: SharedState::new(Default::default()),
            variables: Arc::default(),
            budget_scope: Arc::new(BudgetScope::new(RunBudget::default(), Usage::default())),
            hooks: Arc::new(Nobody),
            site: CallSite::outside(),
        };
        Ok(self.own.tools.call(call).await.result?)
    }

    /// Its settings for a server, if it is a mesh of agents.
    pub fn mesh(&self) -> Option<&MeshSettings> {
        self.mesh.as_deref()
    }

    /// Identifies all files that it was loaded from.
    pub fn digest(&self) -> &str {
        self.revision.as_ref().map_or(&self.texts, |revision| &revision.digest)
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent").field("file", &self.file).field("graph", &self.graph.name).finish_non_exhaustive()
    }
}

/// Why a call outside of any run has no result.
#[derive(Debug, Error)]
pub enum OutsideCallError {
    /// It failed; the text says which limit, trap or error, and which grant would allow what was denied
    #[error("{0}")]
    Failed(String),
    /// It asks a person
    #[error("it asks, and nobody can answer here: {0}")]
    Asks(String),
}

impl From<CallError> for OutsideCallError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Failed(reason) => OutsideCallError::Failed(reason),
            CallError::Asks(question) => OutsideCallError::Asks(question),
        }
    }
}

/// Options for loading an agent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Loading<'a> {
    /// Which of several agents of a file is meant
    pub agent: Which<'a>,
    /// Files with parts of the agent's file
    pub components: &'a [ComponentsFile],
}

/// Which of several agents of a file is meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Which<'a> {
    /// The only one
    #[default]
    Only,
    /// The first one, with the errors of all of them
    Any,
    /// The one with this name
    Named(&'a str),
}

/// A file with parts of an agent's file (the disaggregated components of the Open Agent Specification).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComponentsFile {
    /// The file
    pub file: PathBuf,
    /// The key of a part in the file, and the one under which the agent's file knows it
    pub rename: Vec<(String, String)>,
}

/// Why an agent cannot be converted to another language.
#[derive(Debug, Error)]
pub enum NotConverted {
    /// It cannot be loaded
    #[error(transparent)]
    Load(#[from] LoadFailure),
    /// What it does cannot be expressed in the other language; each reason is a sentence
    #[error("{}", .0.join("\n"))]
    Inexpressible(Vec<String>),
}
