//! hotcell for Rust programs: runs agents of five languages natively, and all code that somebody else wrote for them in sealed cells.
//!
//! This crate contains no code of its own. It re-exports what a program needs to embed hotcell, and nothing else, so that everything
//! that such programs depend on is in one place. `.ci/public-api` shows every change of it.
//!
//! # Load and run
//!
//! A process sets up one [`Host`]. It loads agents ([`Host::load`]) and runs them ([`Host::run`]). A [`Session`] connects a run to this
//! process while the process works on it: who answers questions, who observes events, what stops it. [`HostOptions::isolated`] ignores the
//! user's configuration, plugins and journal, as tests need.
//!
//! ```
//! use hotcell_embed::{Host, HostOptions, Outcome, RunInput, Session};
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! let file = folder.path().join("graph.yaml");
//! std::fs::write(&file, r#"
//! name: greets
//! version: "1.0"
//! start: done
//! nodes:
//!   done: {type: end, output: "Hello, {{initial_prompt}}"}
//! "#)?;
//!
//! let host = Host::new(HostOptions::isolated())?;
//! let agent = host.load_async(&file).await?;
//! let given = RunInput { input: Some("Ada".to_owned()), ..RunInput::default() };
//! let report = host.run(&agent, given, Session::unattended()).await?;
//! assert_eq!(report.outcome, Outcome::Completed { output: "Hello, Ada".to_owned() });
//! # Ok(())
//! # }
//! ```
//!
//! If an agent cannot be loaded, the error is a [`LoadFailure`], whose [`Diagnostic`]s have places in its files.
//!
//! What [`HostOptions`] leave out is as on the command line: the table of [`Prices`] that ships with hotcell, the time of the machine, and what the user's
//! `config.toml` says of signatures and recordings.
//!
//! ```
//! use hotcell_embed::{Host, HostOptions, Price, Prices, RecordSettings, SignaturePolicy};
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let options = HostOptions {
//!     prices: Some(Prices::of([("own:small".to_owned(), Price { input: 0.1, output: 0.4 })])),
//!     record: Some(RecordSettings { on: Some(false), ..RecordSettings::default() }),
//!     signatures: Some(SignaturePolicy { required: true, ..SignaturePolicy::default() }),
//!     ..HostOptions::isolated()
//! };
//! Host::new(options)?;
//! # Ok(())
//! # }
//! ```
//!
//! # Answer and resume
//!
//! A run that asks a person waits in the journal, for as long as it takes. [`People`] of the session can answer at once.
//!
//! ```
//! # use hotcell_embed::{Host, HostOptions, Outcome, RunInput, Session};
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let file = folder.path().join("graph.yaml");
//! # std::fs::write(&file, r#"
//! # name: asks
//! # version: "1.0"
//! # start: ask
//! # nodes:
//! #   ask: {type: input, question: Who?, state_updates: {who: "{{input}}"}, next: done}
//! #   done: {type: end, output: "Hello, {{who}}"}
//! # "#)?;
//! # let host = Host::new(HostOptions::isolated())?;
//! # let agent = host.load_async(&file).await?;
//! let report = host.run(&agent, RunInput::default(), Session::unattended()).await?;
//! let Outcome::Waiting { questions } = &report.outcome else { panic!("it asks") };
//! assert_eq!(questions[0].text, "Who?");
//!
//! host.answer(report.run.as_str(), None, "Bo").await?;
//! let report = host.resume(report.run.as_str(), Session::unattended()).await?;
//! assert_eq!(report.outcome, Outcome::Completed { output: "Hello, Bo".to_owned() });
//! # Ok(())
//! # }
//! ```
//!
//! # Follow
//!
//! An [`Observer`] receives every [`Event`] as it happens. Cancelling the [`CancellationToken`] of the session stops the run; it can be resumed.
//!
//! ```
//! use std::sync::{Arc, Mutex};
//!
//! use hotcell_embed::{Event, Observer};
//!
//! #[derive(Default)]
//! struct Path(Mutex<Vec<String>>);
//!
//! impl Observer for Path {
//!     fn event(&self, event: &Event<'_>) {
//!         if let Event::NodeCompleted { node, .. } = event {
//!             self.0.lock().unwrap().push((*node).to_owned());
//!         }
//!     }
//! }
//! # use hotcell_embed::{Host, HostOptions, RunInput, Session};
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let file = folder.path().join("graph.yaml");
//! # std::fs::write(&file, "name: g\nversion: \"1.0\"\nstart: done\nnodes:\n  done: {type: end, output: x}\n")?;
//! # let host = Host::new(HostOptions::isolated())?;
//! # let agent = host.load_async(&file).await?;
//!
//! let path = Arc::new(Path::default());
//! let session = Session { observer: path.clone(), ..Session::unattended() };
//! host.run(&agent, RunInput::default(), session).await?;
//! assert_eq!(*path.0.lock().unwrap(), ["done"]);
//! # Ok(())
//! # }
//! ```
//!
//! # Functions of the program as tools
//!
//! [`Host::offering`] offers functions of this program to agents whose files name them. They are **not sealed**.
//!
//! ```
//! use std::sync::Arc;
//!
//! use hotcell_embed::{FunctionCall, Offered, OfferedFunction, ToolSpec};
//!
//! struct Shout;
//!
//! #[async_trait::async_trait]
//! impl OfferedFunction for Shout {
//!     fn spec(&self) -> ToolSpec {
//!         ToolSpec {
//!             name: "shout".to_owned(),
//!             description: "Makes a text loud".to_owned(),
//!             parameters: serde_json::json!({
//!                 "type": "object",
//!                 "properties": { "text": { "type": "string" } },
//!                 "required": ["text"],
//!             }),
//!         }
//!     }
//!
//!     async fn call(&self, call: FunctionCall) -> Result<String, String> {
//!         Ok(call.arguments.to_uppercase())
//!     }
//! }
//! # use hotcell_embed::{Host, HostOptions, Outcome, RunInput, Session};
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let file = folder.path().join("flow.yaml");
//! # std::fs::write(&file, "name: w\nstate: {}\nsteps:\n  - {id: a, type: tool, tool_name: shout, tool_args: {text: hi}, output: out}\n")?;
//! # let host = Host::new(HostOptions::isolated())?;
//!
//! let host = host.offering(Offered::default().function(Arc::new(Shout))?);
//! let agent = host.load_async(&file).await?;
//! let report = host.run(&agent, RunInput::default(), Session::unattended()).await?;
//! assert_eq!(report.state.get("out").unwrap().to_json(), r#"{"TEXT":"HI"}"#);
//! # Ok(())
//! # }
//! ```
//!
//! # Plugins
//!
//! Plugins are found in `plugins` beside an agent, in [`HostOptions::plugins`] and in the user's own folder. `hotcell.toml` grants what they may
//! do, if its folder is trusted ([`HostOptions::trust`], [`HostOptions::trust_named`]). A program that loads plugins from others calls
//! [`compile_in_processes`] at the start of `main`, so that compiling them is limited, too.
//!
//! ```no_run
//! use std::path::Path;
//!
//! use hotcell_embed::{Host, HostOptions, RunInput, Session, compile_in_processes};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // This program is started again for each component that is compiled, so nothing may come before this.
//! compile_in_processes();
//!
//! let host = Host::new(HostOptions { plugins: vec!["/srv/plugins".into()], trust_named: true, ..HostOptions::default() })?;
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! let agent = host.load_async(Path::new("/srv/agents/desk")).await?;
//! let report = host.run(&agent, RunInput::default(), Session::unattended()).await?;
//! println!("{:?}", report.outcome);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })
//! # }
//! ```

pub use hotcell_runtime::diagnostic::Diagnostic;
pub use hotcell_runtime::plugins::{RecordSettings, SignaturePolicy, Trust};
pub use hotcell_runtime::{
    Agent, CancellationToken, Clock, ComponentsFile, Counted, Dialect, Environment, Event, FunctionCall, Host,
    HostError, HostOptions, JournalChoice, JournalError, LoadFailure, Loading, ModelSource, Nobody, NodeFailure,
    Observer, OfferError, Offered, OfferedFunction, OnProgress, OpenQuestion, Outcome, People, Price, Prices, Progress,
    Question, RunError, RunId, RunInput, RunPage, RunQuery, RunRecord, RunReport, RunStatus, RunStore, RunSummary,
    Session, StoresChoice, SystemClock, ToolSpec, Turn, Which, called_with, compile_in_processes, diagnostic_json,
    input_schema, report_json,
};
