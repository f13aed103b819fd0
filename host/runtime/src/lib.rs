//! hotcell as a library: loads an agent from a folder and runs it, with every script and tool sealed.
//!
//! This crate combines the others. It knows what an agent is loaded from (folders, `hotcell.toml`, revisions), what is behind the
//! tools that it names (plugins, functions of files, MCP servers, other agents, knowledge bases), and how recorded calls are executed
//! again. A process sets up one [`Host`]; [`Host::load`] returns an [`Agent`] or diagnostics, and [`Host::run`] runs it. How a cell is
//! sealed, how a graph is scheduled and what a file means is decided in other crates.

mod address;
mod agent;
mod agent_registry;
mod agent_tool;
mod as_json;
mod callbacks;
mod called;
mod cells;
mod compare;
mod components;
mod context;
mod convert;
mod denials;
mod discover;
mod environment;
mod evolve;
pub mod file_watch;
mod folder;
mod freshness;
mod granted_files;
mod hooks;
mod host;
mod host_runs;
mod inspect;
mod key_files;
mod knowledge;
mod live;
mod load;
mod load_failure;
mod notices;
mod offered;
mod outgoing;
mod permissions;
mod plugin_desk;
mod plugin_nodes;
mod plugin_registry;
mod plugin_tool;
mod plugin_tools;
mod python;
mod recordings;
mod redaction_key;
mod reexecute;
mod remote;
mod revision;
mod revision_registry;
mod scripts;
mod serve;
mod server_keys;
mod server_questions;
mod servers;
mod settle;
mod stamp;
mod ticket;
mod tools;
mod user_key;
mod web;
mod withholding;

pub use agent::{Agent, ComponentsFile, LoadFailure, Loading, NotConverted, OutsideCallError, Which};
pub use agent_tool::{
    AgentRunError, AgentRuns, AgentTool, Answers, Rested, Resting, answer_of, answer_schema, check_answers,
    is_for_client,
};
pub use as_json::{call_json, diagnostic_json, outcome_json, report_json, tally_json};
pub use callbacks::{CallbackError, OnResumed, serve_callbacks};
pub use called::{PROMPT, called_with, input_schema, output_schema};
pub use cells::CarriedError;
pub use compare::{ComparedRun, PlaceDiff, RunDiff, Spent, UsageDiff, ValueDiff};
pub use discover::{Discovered, discover};
pub use environment::Environment;
pub use evolve::{EvolveError, EvolveSettings, Evolved, Generation};
pub use freshness::{Freshness, Unsettled};
pub use host::{
    ConfigError, Host, HostError, HostOptions, JournalChoice, ModelSource, OnProgress, Progress, RevisionChoice,
    Session, StoresChoice, cells_cache, state_folder, toolchains_folder,
};
pub use host_runs::outcome_of;
pub use hotcell_budget::Cost;
pub use hotcell_cells::{
    Cleaned, Difference, clean_cells, compile_if_asked, compile_in_processes, compile_in_processes_of, raise_open_files,
};
pub use hotcell_dialects::Dialect;
pub use hotcell_dialects::agent_spec::Exported;
pub use hotcell_dialects::leafmesh;
pub use hotcell_engine::{
    CallError, CallReport, Clock, Counted, Event, ForkError, ForkOrigin, ForkRequest, HookPoint, ManualClock, Meter,
    Nobody, NodeTiming, Observer, Outcome, Outward, People, PortError, RunError, RunInput, RunReport, StateFold,
    SystemClock, Timings, Turn, Uncounted, Used, WebCall, WebReply, used, withheld, without_seals,
};
pub use hotcell_graph::{diagnostic, ir, value};
pub use hotcell_interpreters::{ShippedPlugin, plugins as shipped_plugins};
pub use hotcell_journal::{
    Asking, Census, ClientCall, Completed, Entry, EntryPage, EntryPath, Fact, History, JournalError, NodeFailure,
    NumberedEntry, OpenQuestion, PruneReport, Question, RunHeader, RunId, RunPage, RunQuery, RunRecord, RunStatus,
    RunStore, RunSummary, SqliteStore, Write, callback_of, failures, open_questions,
};
pub use hotcell_mcp as mcp;
pub use hotcell_models::{Price, Prices, ToolSpec};
pub use hotcell_plugins as plugins;
pub use inspect::{CostRange, InspectedLoop, InspectedTool, inspect};
pub use knowledge::{KnowledgeError, KnowledgeProblem};
pub use live::{LiveCatalog, Make};
pub use offered::{FunctionCall, OfferError, Offered, OfferedFunction};
pub use outgoing::OutgoingServers;
pub use permissions::Revoked;
pub use plugin_desk::{DecideError, PluginDesk, RemoveError};
pub use plugin_tools::PluginTools;
pub use recordings::UnreadRecording;
pub use reexecute::{Again, CallReexecuted, Finder, ReexecuteError, Tally, UnusableCall};
pub use revision::RevisionError;
pub use revision::kept::KeptError;
pub use revision_registry::RevisionRegistry;
pub use serve::{ToolCatalog, agents_in, tool_name};
pub use settle::for_models;
pub use tokio_util::sync::CancellationToken;
pub use user_key::UserKey;
