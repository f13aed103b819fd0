//! The Rust side of `hotcell:plugin`: its types and names. It must agree with `wit/` to the letter, which the
//! engine checks for every component that is loaded.

use wasmtime::component::{ComponentType, Lift, Lower};

/// The version of the contract that this host offers. Components built against an older 0.1 run as well.
pub const CONTRACT_VERSION: &str = "0.1.0";

pub(crate) const STATE: &str = "hotcell:plugin/state@0.1.0";
pub(crate) const LOG: &str = "hotcell:plugin/log@0.1.0";
pub(crate) const CONFIG: &str = "hotcell:plugin/config@0.1.0";
pub(crate) const ASK: &str = "hotcell:plugin/ask@0.1.0";
pub(crate) const TYPES: &str = "hotcell:plugin/types@0.1.0";
pub(crate) const RUN_SCRIPT: &str = "hotcell:plugin/run-script@0.1.0";
pub(crate) const CALL_TOOL: &str = "hotcell:plugin/call-tool@0.1.0";

/// `types.failure`.
#[derive(Clone, Debug, ComponentType, Lift, Lower)]
#[component(record)]
pub(crate) struct Failure {
    pub(crate) message: String,
    pub(crate) metadata: Vec<(String, String)>,
}

/// `types.error`.
#[derive(Clone, Debug, ComponentType, Lift, Lower)]
#[component(variant)]
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
