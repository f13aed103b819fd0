//! What is handed to a call, and what comes back.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use hotcell_budget::{Budget, Limit, Usage};
use serde::{Deserialize, Serialize};

use crate::grants::Grants;
use crate::own_tls::OwnTls;
use crate::policy::Denial;
use crate::record::RecordTerms;
use crate::requests::Requests;
use crate::secrets::Secrets;
use crate::services::{HttpTape, KeyValueStore, LogLine, LogListener, Services};

/// The state a script may read. The host's own values implement it, so that a script that reads one key costs one
/// key.
pub trait StateView: Send + Sync {
    /// The value at a dotted path (a number selects from a list) as JSON text, or none where the path leads
    /// nowhere.
    fn get(&self, path: &str) -> Option<String>;

    /// The whole state as one JSON object. It is asked for at most once a call, and only by guests that need it.
    fn all(&self) -> Arc<str>;
}

/// Says for offsets in the bytes of a component where in the source the code there comes from, such as `src/plugin.c:12:5`: one
/// answer for each offset, and none where that is not known. It is asked when a call has trapped.
pub type PlaceFinder = Arc<dyn Fn(&[u64]) -> Vec<Option<String>> + Send + Sync>;

/// What every call carries, whatever it calls.
#[derive(Clone)]
pub struct Terms {
    /// The name that grants are given to and messages use, such as `scripts/fetch.py`.
    pub plugin: String,
    /// What the operator granted.
    pub grants: Arc<Grants>,
    /// What would be granted if the operator trusted the settings as they are: it allows nothing, denials name it.
    pub held_back: Arc<Grants>,
    /// What the plugin asks for: nothing else can be granted to it, and denials say so. None where grants have no such bound.
    pub requests: Option<Arc<Requests>>,
    /// Environment variables for the guest: those granted, and those of the graph's own contract.
    pub env: Vec<(String, String)>,
    /// The operator's settings for this plugin.
    pub config: Arc<BTreeMap<String, String>>,
    /// What the call may consume; cut to the ceiling of [`CellsOptions`](crate::CellsOptions).
    pub budget: Budget,
    /// How many calls of plugins this one is nested in; 0 for a node of a graph.
    pub depth: u32,
    /// Values of secrets; only those that are granted are used.
    pub secrets: Secrets,
    /// The store of this plugin, for where `kv` is granted.
    pub kv: Option<Arc<dyn KeyValueStore>>,
    /// The model and tools of the run, for where `llm` or `tool` are granted.
    pub services: Option<Arc<dyn Services>>,
    /// Is told each line that is logged, when it is logged.
    pub listener: Option<LogListener>,
    /// Answers HTTP requests in the place of the network.
    pub tape: Option<Arc<dyn HttpTape>>,
    /// Whether and how the call is recorded, so that it can be executed again.
    pub record: Option<RecordTerms>,
    /// The file that the script or plugin was loaded from, for whoever looks for it later.
    pub origin: Option<Arc<str>>,
    /// How servers over TLS and the host prove to each other who they are; none means as with any server.
    pub tls: Option<OwnTls>,
    /// Says where in its author's source a component trapped, for those who work on it.
    pub places: Option<PlaceFinder>,
}

impl fmt::Debug for Terms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Terms")
            .field("plugin", &self.plugin)
            .field("grants", &self.grants)
            .field("budget", &self.budget)
            .field("depth", &self.depth)
            .finish_non_exhaustive()
    }
}

impl Terms {
    /// Terms with no grants, no variables, no settings and the default budget.
    pub fn new(plugin: impl Into<String>) -> Self {
        Self {
            plugin: plugin.into(),
            grants: Arc::default(),
            held_back: Arc::default(),
            requests: None,
            env: Vec::new(),
            config: Arc::default(),
            budget: Budget::default(),
            depth: 0,
            secrets: Secrets::default(),
            kv: None,
            services: None,
            listener: None,
            tape: None,
            record: None,
            origin: None,
            tls: None,
            places: None,
        }
    }
}

/// A call of a script node.
#[derive(Clone)]
pub struct ScriptCall {
    /// What the script is called in its own error messages, relative to the agent's folder.
    pub file_name: String,
    /// The text of the script, for interpreters; other cells are the script.
    pub source: Option<Arc<str>>,
    /// The graph's state.
    pub state: Arc<dyn StateView>,
    /// Everything else.
    pub terms: Terms,
}

/// A call of a tool.
#[derive(Clone, Debug)]
pub struct ToolCall {
    /// The tool's name, one of those the description lists.
    pub tool: String,
    /// A JSON object.
    pub arguments: String,
    /// Answers to the questions that this call has put so far, in their order.
    pub answers: Vec<String>,
    /// Everything else.
    pub terms: Terms,
}

/// A call of a node of a plugin's own type.
#[derive(Clone)]
pub struct NodeCall {
    /// The type, one of those the description lists.
    pub node_type: String,
    /// A JSON object: what the graph's author wrote on the node.
    pub fields: String,
    /// A JSON object: the values that flow in.
    pub inputs: String,
    /// The graph's state.
    pub state: Arc<dyn StateView>,
    /// Answers to the questions that this call has put so far, in their order.
    pub answers: Vec<String>,
    /// Everything else.
    pub terms: Terms,
}

/// What a node of a plugin's own type gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeOutcome {
    /// A JSON object.
    pub outputs: String,
    /// The branch it leaves by, one of those the description declares; none where it declares none.
    pub branch: Option<String>,
    /// Further facts, safe to show.
    pub metadata: Vec<(String, String)>,
}

/// An event that a hook is told.
#[derive(Clone, Debug)]
pub struct HookCall {
    /// Where in a run it happened, one of the points the description lists.
    pub point: String,
    /// A JSON object.
    pub event: String,
    /// Everything else.
    pub terms: Terms,
}

/// What a hook decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The event goes on as it is.
    Proceed,
    /// It goes on with this JSON object in its place.
    Change(String),
    /// It does not go on, for this reason, which is safe to show.
    Refuse(String),
}

/// A call of a connector.
#[derive(Clone, Debug)]
pub struct ConnectorCall {
    /// A JSON object: what the graph hands over.
    pub input: String,
    /// A JSON object: how the author of the graph set the connector up.
    pub config: String,
    /// Address and session text of the answer, in callback mode.
    pub callback: Option<(String, String)>,
    /// What came by the callback; none for handing over.
    pub body: Option<String>,
    /// Everything else.
    pub terms: Terms,
}

/// What a connector gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectorReply {
    /// The answer, as JSON.
    Done(String),
    /// The answer comes by the callback.
    Accepted,
}

/// What a call gave and what it used, successful or not.
#[derive(Debug)]
pub struct Report<T> {
    /// The result.
    pub result: Result<T, CellError>,
    /// What it used itself.
    pub usage: Usage,
    /// What models and other plugins used on its behalf, by name.
    pub nested: Vec<(String, Usage)>,
    /// What the guest logged through the contract.
    pub logs: Vec<LogLine>,
    /// Lines that were logged beyond the limit, and only counted.
    pub dropped_log_lines: u64,
    /// The end of what the guest wrote to standard error (a plugin also to standard output), safe to show.
    pub stderr: String,
    /// Requests that were denied, each once, in the order of the first time.
    pub denials: Vec<Denial>,
    /// What the call was given and took from the host, as text; none where nothing was to be recorded. See
    /// [`Recording::read`](crate::Recording::read).
    pub recording: Option<String>,
}

/// Which case of the contract's error a plugin returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GuestErrorKind {
    /// The arguments cannot be used.
    InvalidInput,
    /// A capability was missing.
    Denied,
    /// A later call may work.
    Unavailable,
    /// Anything else.
    Other,
}

/// A function of a guest that was running when the guest trapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Its name, or its number where the component has no names.
    pub function: String,
    /// The place in the author's source, where [`Terms::places`] knew it.
    pub place: Option<String>,
}

impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some(place) => write!(f, "{} ({place})", self.function),
            None => f.write_str(&self.function),
        }
    }
}

/// Why a call gave no result. The texts are safe to show and cut to the budget's `error_bytes`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CellError {
    /// A limit of the budget was reached.
    Limit {
        /// Which.
        limit: Limit,
        /// How much was allowed, and what is known besides.
        detail: String,
    },
    /// The program ended with an exit code other than 0.
    Exit {
        /// The exit code.
        code: i32,
        /// The end of standard error.
        stderr: String,
    },
    /// The guest trapped.
    Trap {
        /// What happened.
        message: String,
        /// The guest's functions, innermost first.
        backtrace: Vec<Frame>,
        /// The end of standard error.
        stderr: String,
    },
    /// The plugin returned an error of its own.
    Guest {
        /// Which case of the contract's error.
        kind: GuestErrorKind,
        /// Its message.
        message: String,
        /// Its metadata.
        metadata: Vec<(String, String)>,
    },
    /// The output is not UTF-8.
    NotText {
        /// Where the first wrong byte is.
        at: usize,
    },
    /// The call put a question that has no answer yet. Call again with one answer more.
    Suspended {
        /// The question.
        question: String,
    },
    /// The call was executed again and wants something that its recording does not hold.
    NotRecorded {
        /// What it asks, as words after "asks".
        wanted: String,
    },
    /// A granted directory cannot be opened.
    Directory {
        /// Which and why.
        message: String,
    },
    /// The cell does not offer what was called, such as a tool of a script.
    WrongKind {
        /// What was expected.
        message: String,
    },
    /// The host itself failed; this is a defect of hotcell, and only this call is concerned.
    Host {
        /// What happened.
        message: String,
    },
}

impl CellError {
    /// The limit that was reached, if that is what happened.
    pub fn limit(&self) -> Option<Limit> {
        match self {
            Self::Limit { limit, .. } => Some(*limit),
            _ => None,
        }
    }

    /// The error for a guest that called the one that failed: without paths of this machine, and what else only concerns the operator.
    pub fn for_guests(&self) -> String {
        match self {
            Self::Directory { .. } => "a directory that was granted to it cannot be opened".to_owned(),
            Self::Host { .. } => "hotcell itself failed in it".to_owned(),
            other => other.without_places().to_string(),
        }
    }

    /// The same without places in the source, which are known only where somebody works on it.
    pub(crate) fn without_places(&self) -> Self {
        match self {
            Self::Trap { message, backtrace, stderr } => {
                let bare = |frame: &Frame| Frame { function: frame.function.clone(), place: None };
                let backtrace = backtrace.iter().map(bare).collect();
                Self::Trap { message: message.clone(), backtrace, stderr: stderr.clone() }
            }
            other => other.clone(),
        }
    }
}

impl std::error::Error for CellError {}

impl fmt::Display for CellError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let with_stderr = |f: &mut fmt::Formatter<'_>, stderr: &str| match stderr.trim_end() {
            "" => Ok(()),
            stderr => write!(f, ": {stderr}"),
        };
        match self {
            Self::Limit { limit, detail } => write!(f, "{limit}: {detail}"),
            Self::Exit { code, stderr } => {
                write!(f, "exited with code {code}")?;
                with_stderr(f, stderr)
            }
            Self::Trap { message, backtrace, stderr } => {
                write!(f, "trapped: {message}")?;
                if let Some(innermost) = backtrace.first() {
                    write!(f, " in `{}`", innermost.function)?;
                }
                // A function of a library has no place; what called it has.
                let found =
                    backtrace.iter().enumerate().find_map(|(depth, frame)| Some((depth, frame.place.as_ref()?)));
                match found {
                    Some((0, place)) => write!(f, " ({place})")?,
                    Some((_, place)) => write!(f, ", called at {place}")?,
                    None => {}
                }
                with_stderr(f, stderr)
            }
            Self::Guest { message, .. } => f.write_str(message),
            Self::NotText { at } => write!(f, "the output is not UTF-8 text: byte {at} is wrong"),
            Self::Suspended { question } => write!(f, "waits for an answer to: {question}"),
            Self::NotRecorded { wanted } => write!(f, "asks {wanted}, which the recording does not hold"),
            Self::Directory { message } | Self::WrongKind { message } => f.write_str(message),
            Self::Host { message } => write!(f, "hotcell failed: {message}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::CellError;

    #[test]
    fn a_guest_is_told_nothing_of_this_machine() {
        let message = || "cannot open the directory `/home/ada/data`".to_owned();
        for error in [CellError::Directory { message: message() }, CellError::Host { message: message() }] {
            assert!(error.to_string().contains("/home/ada") && !error.for_guests().contains("/home"), "{error}");
        }
        assert_eq!(CellError::NotText { at: 3 }.for_guests(), CellError::NotText { at: 3 }.to_string());
    }
}
