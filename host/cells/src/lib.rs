//! Sealed cells: foreign code in WebAssembly, under an enforced budget and with granted capabilities only.
//!
//! A [`Cell`] is loaded once from a component (or a WASI preview 1 command, or an interpreter that hotcell carries)
//! and called any number of times. Every call runs in a fresh instance with its own [`Terms`]: what it may use, what
//! it was granted, what it finds in its environment. Every call ends with a [`Report`]: a result or a typed error,
//! what was used, what was logged, what was denied.
//!
//! This crate knows no graph, node or run. It does not read `hotcell.toml` (it gives [`Grants`] the shape they have
//! there), does not check results for being JSON, and never lets a guest reach the host's own streams, environment,
//! files or network except through [`policy::decide`].
//!
//! ```no_run
//! use std::sync::Arc;
//! use hotcell_cells::{Cells, CellsOptions, ScriptCall, StateView, Terms};
//!
//! struct Empty;
//! impl StateView for Empty {
//!     fn get(&self, _: &str) -> Option<String> { None }
//!     fn all(&self) -> Arc<str> { "{}".into() }
//! }
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let cells = Cells::new(CellsOptions::default())?;
//! let cell = cells.load("scripts/greet.wasm", &std::fs::read("scripts/greet.wasm")?)?;
//! let call = ScriptCall {
//!     file_name: "scripts/greet.wasm".to_owned(),
//!     source: None,
//!     state: Arc::new(Empty),
//!     terms: Terms::new("scripts/greet.wasm"),
//! };
//! let report = cells.run_script(&cell, call).await;
//! println!("{:?} with {}", report.result, report.usage.fuel);
//! # Ok(())
//! # }
//! ```

mod cache;
mod call;
mod cells;
mod clock;
mod compile;
mod contract;
mod cost;
mod denials;
mod description;
mod directories;
mod disk;
mod egress;
mod engine;
mod entries;
mod exchange_calls;
mod exchanges;
mod fetch;
mod files;
mod grants;
mod guest;
mod imports;
mod inspect;
mod limiter;
mod linker;
mod listings;
mod load_error;
mod machine;
mod meet;
mod messages;
mod open_files;
mod output;
mod own_tls;
pub mod policy;
mod pool;
mod record;
mod recording;
mod reexecute;
mod reflected;
mod requests;
mod room;
mod run;
mod secrets;
mod services;
mod sockets;
mod store_share;
mod survey;
mod tape;
mod text;
mod watch;
mod writes;

pub use cache::{CacheError, Cleaned, clean_cells, digest};
pub use call::{
    CellError, ConnectorCall, ConnectorReply, Frame, GuestErrorKind, HookCall, NodeCall, NodeOutcome, PlaceFinder,
    Report, ScriptCall, StateView, Terms, ToolCall, Verdict,
};
pub use cells::{Cell, Cells, CellsError, CellsOptions, CompileEvent, CompileListener, ScriptKind};
pub use clock::Repeatable;
pub use compile::{CompileLimits, compile_if_asked, compile_in_processes, compile_in_processes_of};
pub use contract::{CONTRACT_VERSION, LogLevel};
pub use description::{
    ConnectorDescription, ConnectorMode, DESCRIPTION_SECTION, Description, DescriptionError, HOOK_POINTS,
    HookDescription, NodeDescription, ToolDescription,
};
pub use engine::{ENGINE, PrecompileError, precompile};
pub use fetch::{FetchError, Fetched, OwnReply, OwnRequest, RequestError, SendError, fetch, send};
pub use grants::{
    Access, ClockGrant, DirectoryGrant, Grants, HostGrant, HttpGrant, HttpGrantError, RandomGrant, Scheme, SecretGrant,
};
pub use hotcell_tls::TlsError;
pub use inspect::InspectError;
pub use load_error::LoadError;
pub use open_files::raise_open_files;
pub use own_tls::OwnTls;
pub use policy::{Capability, Denial};
pub use record::{RECORDING_BYTES, RecordTerms};
pub use recording::{Called, Difference, Gap, Gave, HostFunction, RECORDING_LAYOUT, Recording, RecordingError, Taken};
pub use reexecute::Reexecuted;
pub use reflected::Forms as SecretForms;
pub use requests::{AnyServer, DirectoryRequest, HttpRequested, Requests, SecretRequest};
pub use secrets::Secrets;
pub use services::{
    HttpExchange, HttpReply, HttpTape, KeyValueStore, LogLine, LogListener, ServiceError, ServiceReply, Services,
};
pub use store_share::StoreShare;
pub use survey::{Survey, SurveyError, survey};
