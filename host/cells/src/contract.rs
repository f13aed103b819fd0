//! The Rust side of `hotcell:plugin`: its types and names. It must agree with `wit/` to the letter, which the
//! engine checks for every component that is loaded.

use serde::{Deserialize, Serialize};
use wasmtime::component::{ComponentType, Lift, Lower};

/// The newest version of the contract that this host offers.
pub const CONTRACT_VERSION: &str = "0.2.0";
/// All versions whose plugins run here, oldest first. Each interface has the same functions in every version.
pub(crate) const VERSIONS: [&str; 2] = ["0.1.0", CONTRACT_VERSION];

/// An interface of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interface {
    /// Its name without package and version.
    pub(crate) name: &'static str,
    /// The first of [`VERSIONS`] that has it, by index.
    since: usize,
}

impl Interface {
    const fn new(name: &'static str, since: usize) -> Self {
        Self { name, since }
    }

    /// Its full name in every version that has it, oldest first.
    pub(crate) fn names(self) -> impl Iterator<Item = String> {
        VERSIONS[self.since..].iter().map(move |version| format!("hotcell:plugin/{}@{version}", self.name))
    }
}

pub(crate) const TYPES: Interface = Interface::new("types", 0);
pub(crate) const STATE: Interface = Interface::new("state", 0);
pub(crate) const LOG: Interface = Interface::new("log", 0);
pub(crate) const CONFIG: Interface = Interface::new("config", 0);
pub(crate) const ASK: Interface = Interface::new("ask", 0);
pub(crate) const PROGRESS: Interface = Interface::new("progress", 1);
pub(crate) const KV: Interface = Interface::new("kv", 1);
pub(crate) const SECRETS: Interface = Interface::new("secrets", 1);
pub(crate) const LLM: Interface = Interface::new("llm", 1);
pub(crate) const OTHER_TOOLS: Interface = Interface::new("other-tools", 1);
/// What a guest may import.
pub(crate) const IMPORTS: [Interface; 10] = [TYPES, STATE, LOG, CONFIG, ASK, PROGRESS, KV, SECRETS, LLM, OTHER_TOOLS];

pub(crate) const RUN_SCRIPT: Interface = Interface::new("run-script", 0);
pub(crate) const CALL_TOOL: Interface = Interface::new("call-tool", 0);
pub(crate) const RUN_NODE: Interface = Interface::new("run-node", 1);
pub(crate) const HOOK: Interface = Interface::new("hook", 1);
pub(crate) const CONNECT: Interface = Interface::new("connect", 1);

/// `types.failure`.
#[derive(Clone, Debug, Serialize, Deserialize, ComponentType, Lift, Lower)]
#[component(record)]
pub(crate) struct Failure {
    pub(crate) message: String,
    pub(crate) metadata: Vec<(String, String)>,
}

/// `types.error`.
#[derive(Clone, Debug, Serialize, Deserialize, ComponentType, Lift, Lower)]
#[component(variant)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PluginError {
    #[component(name = "invalid-input")]
    InvalidInput(Failure),
    #[component(name = "denied")]
    Denied(Failure),
    #[component(name = "unavailable")]
    Unavailable(Failure),
    #[component(name = "other")]
    Other(Failure),
}

/// `log.level`: how much a note of a guest matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ComponentType, Lift, Lower)]
#[component(enum)]
#[repr(u8)]
pub enum LogLevel {
    /// Every step; for the plugin's author.
    #[component(name = "trace")]
    Trace,
    /// What helps to find a mistake.
    #[component(name = "debug")]
    Debug,
    /// What happened, in the order of things.
    #[component(name = "info")]
    Info,
    /// Something is not as it should be, and the call goes on.
    #[component(name = "warn")]
    Warn,
    /// Something failed.
    #[component(name = "error")]
    Error,
}

/// What `run-script.run` and `call-tool.call` return.
pub(crate) type PluginResult = Result<String, PluginError>;

/// `run-node.outcome`.
#[derive(Clone, Debug, ComponentType, Lift)]
#[component(record)]
pub(crate) struct Outcome {
    pub(crate) outputs: String,
    pub(crate) branch: Option<String>,
    pub(crate) metadata: Vec<(String, String)>,
}

/// `hook.verdict`.
#[derive(Clone, Debug, ComponentType, Lift)]
#[component(variant)]
pub(crate) enum GuestVerdict {
    #[component(name = "proceed")]
    Proceed,
    #[component(name = "change")]
    Change(String),
    #[component(name = "refuse")]
    Refuse(Failure),
}

/// `connect.callback`.
#[derive(Clone, Debug, ComponentType, Lower)]
#[component(record)]
pub(crate) struct GuestCallback {
    pub(crate) url: String,
    pub(crate) session: String,
}

/// `connect.request`.
#[derive(Clone, Debug, ComponentType, Lower)]
#[component(record)]
pub(crate) struct GuestRequest {
    pub(crate) input: String,
    pub(crate) config: String,
    pub(crate) callback: Option<GuestCallback>,
    pub(crate) metadata: Vec<(String, String)>,
}

/// `connect.reply`.
#[derive(Clone, Debug, ComponentType, Lift)]
#[component(variant)]
pub(crate) enum GuestReply {
    #[component(name = "done")]
    Done(String),
    #[component(name = "accepted")]
    Accepted,
}
