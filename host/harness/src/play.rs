//! Playing one case: the call, sealed as in a graph, with a fixed clock and seed.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use hotcell_budget::{Budget, Bytes, Usage};
use hotcell_cells::{
    Cell, CellError, Cells, CellsError, CellsOptions, CompileListener, ConnectorCall, HookCall, LogLine, NodeCall,
    PlaceFinder, RecordTerms, Recording, Repeatable, Report, ScriptCall, Secrets, StateView, Terms, ToolCall,
};
use serde_json::{Map, Value};
use thiserror::Error;

use crate::case::{Call, Case, HostReply};
use crate::expect::{Gave, difference};
use crate::replies::{Replies, Store, recorded};

/// The time at which every case is played: the beginning of 2026.
const BEGINNING: Duration = Duration::from_secs(1_767_225_600);

/// Bytes that the recording of a case has: more than it may hear from servers, with what it reads of the clock.
const RECORDED: Bytes = Bytes::mib(64);

/// Plays cases. Set it up once: it holds the WebAssembly engine.
pub struct Harness {
    cells: Cells,
    places: Option<PlaceFinder>,
}

/// Why a case cannot be played at all.
#[derive(Debug, Error)]
pub enum HarnessError {
    /// WebAssembly cannot be used here
    #[error(transparent)]
    Cells(#[from] CellsError),
    /// The component cannot be loaded
    #[error(transparent)]
    Load(#[from] hotcell_cells::LoadError),
    /// The case is not of its form
    #[error("{0}")]
    Case(String),
    /// The case names directories outside its own folder, and nobody agreed
    #[error("it names directories outside its own folder: `{}`", .0.join("`, `"))]
    Outside(Vec<String>),
    /// A program that plays cases without a cell does not work
    #[error("`{program}`: {message}")]
    Native {
        /// The program
        program: String,
        /// What is wrong
        message: String,
    },
}

/// What came of a case.
#[derive(Debug)]
pub struct Played {
    /// What is different from what had to be; nothing where the case passes
    pub problems: Vec<String>,
    /// What the call used
    pub usage: Usage,
    /// What the plugin logged
    pub logs: Vec<LogLine>,
    /// The end of what the guest wrote to standard error
    pub stderr: String,
    /// The functions a trap happened in, innermost first, with their places in the source where these are known
    pub backtrace: Vec<String>,
    /// What the real world answered, where the case was recorded
    pub recorded: Vec<HostReply>,
}

/// What a case is told whose call did without a capability.
pub(crate) fn not_granted(capability: &impl fmt::Display) -> String {
    format!("{capability} was not granted; `grants` of the case gives what the plugin asks for")
}

impl Harness {
    /// A harness that keeps compiled components in `cache`, if it is given one.
    ///
    /// # Errors
    /// When WebAssembly cannot be used here.
    pub fn new(cache: Option<PathBuf>) -> Result<Self, HarnessError> {
        Self::telling(cache, None)
    }

    /// The same, and whoever waits is told when a component is compiled, which takes seconds.
    ///
    /// # Errors
    /// When WebAssembly cannot be used here.
    pub fn telling(cache: Option<PathBuf>, on_compile: Option<CompileListener>) -> Result<Self, HarnessError> {
        let repeatable = Repeatable { clock: SystemTime::UNIX_EPOCH + BEGINNING, seed: 0 };
        let options =
            CellsOptions { cache_dir: cache, repeatable: Some(repeatable), on_compile, ..CellsOptions::default() };
        Ok(Self { cells: Cells::new(options)?, places: None })
    }

    /// The same, and the places of traps in the source of the component are found by `places`.
    #[must_use]
    pub fn with_places(mut self, places: PlaceFinder) -> Self {
        self.places = Some(places);
        self
    }

    /// Plays a case against a component, with the replies the case carries.
    ///
    /// # Errors
    /// When the component cannot be loaded.
    pub async fn play(&self, component: &[u8], case: &Case) -> Result<Played, HarnessError> {
        self.play_with(component, case, false).await
    }

    /// Plays a case and lets its HTTP requests out, to keep what comes back.
    ///
    /// # Errors
    /// When the component cannot be loaded.
    pub async fn record(&self, component: &[u8], case: &Case) -> Result<Played, HarnessError> {
        self.play_with(component, case, true).await
    }

    async fn play_with(&self, component: &[u8], case: &Case, recording: bool) -> Result<Played, HarnessError> {
        let cell = self.cells.load("plugin", component)?;
        let replies = Arc::new(Replies::new(&case.replies));
        let (report, call) = self.call(&cell, case, &replies, recording).await?;
        let mut problems: Vec<String> = difference(&case.expect, &report.result).into_iter().collect();
        // With a grant that nobody can give, a case shows nothing of what a plugin does.
        let asked = cell.description().map(|description| &description.capabilities);
        let beyond = asked.map(|asked| asked.exceeded_by(case.grants())).unwrap_or_default();
        problems.extend(beyond.iter().map(|what| format!("the case grants {what}, which the plugin does not ask for")));
        problems.extend(replies.missing());
        if !recording {
            let unused = replies.unused();
            problems.extend(unused.iter().map(|reply| format!("nobody asked for this reply: {}", one_line(reply))));
        }
        if !problems.is_empty() {
            problems.extend(report.denials.iter().map(|denial| not_granted(&denial.capability)));
        }
        let backtrace = match &report.result {
            Err(CellError::Trap { backtrace, .. }) => backtrace.iter().map(ToString::to_string).collect(),
            _ => Vec::new(),
        };
        drop(call);
        Ok(Played {
            problems,
            usage: report.usage,
            logs: report.logs,
            stderr: report.stderr,
            backtrace,
            recorded: recording_of(report.recording.as_deref())?.as_ref().map(recorded).unwrap_or_default(),
        })
    }

    /// The bare call of a case, as often as it is wanted.
    pub(crate) async fn call(
        &self,
        cell: &Cell,
        case: &Case,
        replies: &Arc<Replies>,
        recording: bool,
    ) -> Result<(Report<Gave>, Call), HarnessError> {
        if !case.outside().is_empty() {
            let named = case.outside().iter().map(|grant| grant.host.display().to_string());
            return Err(HarnessError::Outside(named.collect()));
        }
        let mut terms = Terms { places: self.places.clone(), ..terms(case, replies, cell) };
        if recording {
            // Requests go out, and what comes back is kept.
            terms.tape = None;
            terms.record = Some(RecordTerms { max_bytes: RECORDED, is_private: false });
        }
        let call = case.call().map_err(HarnessError::Case)?;
        let report = match call.clone() {
            Call::Tool(tool, arguments) => {
                let call = ToolCall { tool, arguments, answers: case.answers.clone(), terms };
                self.cells.call_tool(cell, call).await.map(Gave::Text)
            }
            Call::Script(state) => {
                let state = Arc::new(State(state));
                let call = ScriptCall { file_name: "plugin.wasm".to_owned(), source: None, state, terms };
                self.cells.run_script(cell, call).await.map(Gave::Text)
            }
            Call::Node(node_type, fields, inputs) => {
                let state = Arc::new(State(Map::new()));
                let call = NodeCall { node_type, fields, inputs, state, answers: case.answers.clone(), terms };
                self.cells.run_node(cell, call).await.map(Gave::Outcome)
            }
            Call::Hook(point, event) => {
                self.cells.call_hook(cell, HookCall { point, event, terms }).await.map(Gave::Verdict)
            }
            Call::Connector { input, config, callback, body } => {
                let call = ConnectorCall { input, config, callback, body, terms };
                self.cells.call_connector(cell, call).await.map(Gave::Reply)
            }
        };
        Ok((report, call))
    }

    pub(crate) fn cells(&self) -> &Cells {
        &self.cells
    }
}

/// What was recorded of a call.
fn recording_of(text: Option<&str>) -> Result<Option<Recording>, HarnessError> {
    let recording = text.map(Recording::read).transpose();
    recording.map_err(|error| HarnessError::Case(format!("what came back cannot be kept: {error}")))
}

pub(crate) fn terms(case: &Case, replies: &Arc<Replies>, cell: &Cell) -> Terms {
    let base = Budget::default();
    let budget = Budget {
        fuel: case.budget.fuel.unwrap_or(base.fuel),
        memory: case.budget.memory.unwrap_or(base.memory),
        wall_clock: case.budget.wall_clock_ms.map_or(Duration::from_secs(60), Duration::from_millis),
        ..base
    };
    let name = cell.description().map_or("plugin", |description| description.name.as_str());
    Terms {
        grants: Arc::new(case.grants().clone()),
        config: Arc::new(case.config.clone()),
        budget,
        secrets: Secrets::new(case.secrets.clone()),
        kv: Some(Arc::new(Store::new(&case.kv))),
        services: Some(replies.clone()),
        tape: Some(replies.clone()),
        ..Terms::new(name)
    }
}

fn one_line(reply: &HostReply) -> String {
    serde_json::to_string(reply).unwrap_or_default()
}

/// The state of a graph.
pub(crate) struct State(pub(crate) Map<String, Value>);

impl StateView for State {
    fn get(&self, path: &str) -> Option<String> {
        let mut parts = path.split('.');
        let mut value = self.0.get(parts.next()?)?;
        for part in parts {
            value = match value {
                Value::Array(items) => items.get(part.parse::<usize>().ok()?)?,
                other => other.get(part)?,
            };
        }
        Some(value.to_string())
    }

    fn all(&self) -> Arc<str> {
        Value::Object(self.0.clone()).to_string().into()
    }
}
