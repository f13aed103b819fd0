//! The engine: runs a graph IR, event driven and journaled.
//!
//! It knows no source language, no WebAssembly and no provider; cells, tools, people and observers are traits it is
//! given ([`Ports`]). A node's turn runs on a snapshot of the state and is committed as one journal entry with its
//! writes and its route; the schedule is driven by those entries alone, so a run goes on in any process that reads them.

mod action;
mod arrivals;
mod branch;
mod call_site;
mod clock;
mod context;
mod copied;
mod drive;
mod event;
mod fork;
mod fork_error;
mod gates;
mod hook;
mod lease;
mod memory;
mod meter;
mod no_writer;
mod outcome;
mod permit;
mod ports;
mod redaction;
mod route;
mod run;
mod run_input;
mod schedule;
mod shape;
mod state_fold;
mod telling;
mod timing;
mod token;
mod turn;
mod veiled;
mod what_if;

pub use action::arguments::{ArgumentsError, read_arguments};
pub use action::job::BEGUN;
pub use branch::WriteError;
pub use call_site::CallSite;
pub use clock::{Clock, Counted, ManualClock, SystemClock};
pub use copied::{copied_in, mark_copied};
pub use event::{Event, Observer};
pub use fork::{ForkRequest, check_nobody_elsewhere, first_entries};
pub use fork_error::ForkError;
pub use gates::Gates;
pub use hook::{HookPoint, HookVerdict, Hooks};
pub use memory::used;
pub use meter::{Meter, Tally, Uncounted, Used};
pub use outcome::{Outcome, RunError};
pub use permit::{Denied, Permit, PermitScope};
pub use ports::{
    Agents, CallError, CallReport, Callback, Callee, Found, Knowledge, Lookup, Nobody, Notice, People,
    PluginNodeAnswer, PluginNodeCall, PluginNodeReport, PluginNodes, PortError, Ports, ScriptCall, Scripts,
    SharedState, ToolCall, Tools, Web, WebCall, WebFailure, WebReply, WebReport,
};
pub use redaction::{RedactionKey, RedactionKeys, kept_answer, without_seals};
pub use run::{Engine, RunReport, RunRequest};
pub use run_input::RunInput;
pub use state_fold::StateFold;
pub use timing::{NodeTiming, Timings};
pub use token::Turn;
pub use what_if::{ForkOrigin, Outward, withheld};
