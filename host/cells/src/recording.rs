//! Recordings of calls: what a call was given, what it took from the host, and what it gave and used.
//!
//! With a recording a call can be executed again: the same component, given the same, does the same to the byte and to
//! the unit of fuel. What a guest cannot choose itself is all that it depends on, so this is what is recorded: its
//! arguments, environment, settings, grants and budget; every reply of the host's functions; every reading of a clock;
//! where its random numbers come from.
//!
//! A recording holds no value of a secret. What cannot be executed again says why ([`Gap`]).

mod gave;
mod http;
mod player;
mod readings;
mod recorder;
mod text;

use std::collections::BTreeMap;
use std::fmt;

use hotcell_budget::{Budget, Bytes, Fuel};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

pub use self::gave::{Difference, Gave};
pub(crate) use self::http::{play as play_http, record as record_http};
pub(crate) use self::player::{NotRecorded, Player};
pub(crate) use self::readings::Readings;
pub(crate) use self::recorder::{Begun, Ended, Recorder};
pub(crate) use self::text::{Blob, short_digest};
use crate::grants::{Grants, is_default};
use crate::services::HttpReply;

/// The layout of recordings that this version writes.
pub const RECORDING_LAYOUT: u32 = 1;

/// One recorded call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recording {
    /// [`RECORDING_LAYOUT`] of whoever wrote it
    pub layout: u32,
    /// The WebAssembly engine that ran it
    pub engine: String,
    /// The SHA-256 digest of the component
    pub component: String,
    /// The SHA-256 digest of the script's text, where an interpreter ran one
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The name that grants are given to
    pub plugin: String,
    /// The file that it was loaded from
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// What was called, with what
    pub call: Called,
    /// What came of it
    pub gave: Gave,
    /// The fuel it used
    pub fuel: Fuel,
    /// Why it cannot be executed again
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<Gap>,
    /// What was granted
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) grants: Grants,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) env: Vec<(String, String)>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) config: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) budget: Budget,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) depth: u32,
    /// What the placeholders of secrets were made of, and which secrets there were
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) secrets: Option<(u64, Vec<String>)>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) random: Random,
    /// What it took from the host, in the order in which it asked
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taken: Vec<Taken>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) readings: Readings,
    /// What it asked for and was denied
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) denied: Vec<String>,
    /// It wanted more of the network than its budget gave
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) exhausted: Option<String>,
}

/// What was called, with what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Called {
    /// A script
    Script {
        /// Its file, relative to the folder of its agent
        file: String,
        /// The whole state, for scripts that are told all of it
        #[serde(default, skip_serializing_if = "Option::is_none")]
        state: Option<String>,
    },
    /// A tool
    Tool {
        /// Its name
        tool: String,
        /// A JSON object
        arguments: String,
        /// What a person answered so far
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        answers: Vec<String>,
    },
    /// A node of a plugin's own type
    Node {
        /// The type
        node_type: String,
        /// A JSON object
        fields: String,
        /// A JSON object
        inputs: String,
        /// What a person answered so far
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        answers: Vec<String>,
    },
    /// A hook
    Hook {
        /// The point of the run
        point: String,
        /// A JSON object
        event: String,
    },
    /// A connector
    Connector {
        /// A JSON object
        input: String,
        /// A JSON object
        config: String,
        /// Address and session of the answer
        #[serde(default, skip_serializing_if = "Option::is_none")]
        callback: Option<(String, String)>,
        /// What came by the callback
        #[serde(default, skip_serializing_if = "Option::is_none")]
        body: Option<String>,
    },
}

impl Called {
    /// The texts that came from outside.
    fn texts(&mut self) -> Vec<&mut String> {
        match self {
            Self::Script { state, .. } => state.iter_mut().collect(),
            Self::Tool { arguments, answers, .. } => std::iter::once(arguments).chain(answers).collect(),
            Self::Node { fields, inputs, answers, .. } => [fields, inputs].into_iter().chain(answers).collect(),
            Self::Hook { event, .. } => vec![event],
            Self::Connector { input, config, callback, body } => {
                let session = callback.iter_mut().map(|(_, session)| session);
                [input, config].into_iter().chain(body).chain(session).collect()
            }
        }
    }
}

impl fmt::Display for Called {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Script { file, .. } => write!(f, "script `{file}`"),
            Self::Tool { tool, .. } => write!(f, "tool `{tool}`"),
            Self::Node { node_type, .. } => write!(f, "node `{node_type}`"),
            Self::Hook { point, .. } => write!(f, "hook `{point}`"),
            Self::Connector { body: None, .. } => f.write_str("connector `send`"),
            Self::Connector { .. } => f.write_str("connector `receive`"),
        }
    }
}

/// Why a call cannot be executed again from its recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "kebab-case")]
pub enum Gap {
    /// The operator marked what it works with as private
    Private,
    /// It is larger than recordings may be
    TooLarge {
        /// Bytes that were allowed
        limit: u64,
    },
    /// It was told the value of a secret, which is not recorded
    Secret,
    /// Its deadline ended it, which depends on the machine and not on the call
    Deadline,
    /// It may use directories of this machine, whose content is not recorded
    Directories,
    /// hotcell itself failed
    Host,
    /// A request of it failed, and when a guest learns of that depends on the machine. Never recorded: it is what is said of a call
    /// that did something else when it was executed again.
    FailedRequest,
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Private => {
                f.write_str("`[record]` marks it as private, and only digests are kept of what is private")
            }
            Self::FailedRequest => {
                f.write_str("a request of it failed, and when a guest learns of that depends on the machine")
            }
            Self::TooLarge { limit } => {
                write!(f, "its recording is larger than {}; `max_bytes` under `[record]` allows more", Bytes(*limit))
            }
            Self::Secret => f.write_str("it was told the value of a secret, and values of secrets are never recorded"),
            Self::Deadline => f.write_str("its deadline ended it, which depends on the machine and not on the call"),
            Self::Directories => f.write_str("it may use directories of this machine, whose content is not recorded"),
            Self::Host => f.write_str("hotcell itself failed in it"),
        }
    }
}

/// One thing that a call took from the host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Taken {
    /// The function of the host
    pub from: HostFunction,
    /// What it was asked, or a digest of that where it may be long
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub asked: String,
    /// What it gave
    pub gave: Value,
}

/// A function of the host whose reply depends on more than the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostFunction {
    /// `state.get` and `state.all`
    State,
    /// A function of `kv`
    Kv,
    /// `llm.complete`
    Model,
    /// `other-tools.call`
    Tool,
    /// A request over `wasi:http`
    Http,
    /// A request of an interpreter's script is started
    HttpStart,
    /// A request of an interpreter's script is waited for
    HttpWait,
}

impl HostFunction {
    /// What asking for something more is called.
    pub(crate) fn describe(self, asked: &str) -> String {
        match self {
            Self::State => format!("to read `{asked}` of the state"),
            Self::Kv => format!("the store for `{asked}`"),
            Self::Model => format!("the model something else ({asked})"),
            Self::Tool => format!("the tool {asked}"),
            Self::Http | Self::HttpStart => format!("a server for `{asked}`"),
            Self::HttpWait => "for one more reply of a server".to_owned(),
        }
    }
}

/// Where the random numbers of a call came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Random {
    /// A fixed seed
    Seed(u64),
    /// A fresh key, in hexadecimal
    Key(String),
}

/// A fresh key.
pub(crate) fn random_key() -> Random {
    Random::Key(text::to_hex(&rand::random::<[u8; 32]>()))
}

/// The key of its text; a text that is none gives a key of zeros.
pub(crate) fn key_of(text: &str) -> [u8; 32] {
    text::from_hex(text).and_then(|key| key.try_into().ok()).unwrap_or_default()
}

impl Default for Random {
    fn default() -> Self {
        Self::Seed(0)
    }
}

/// Why a recording cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RecordingError {
    /// A newer version wrote it
    #[error("a newer version of hotcell recorded it (layout {found}, this version reads up to {RECORDING_LAYOUT})")]
    Newer {
        /// Its layout
        found: u32,
    },
    /// It is no recording
    #[error("it is damaged: {cause}")]
    Damaged {
        /// What is wrong
        cause: String,
    },
}

impl Recording {
    /// Reads a recording in the form in which [`Report::recording`](crate::Report::recording) has it.
    ///
    /// # Errors
    /// When it is of a newer layout, or no recording.
    pub fn read(text: &str) -> Result<Self, RecordingError> {
        #[derive(Deserialize)]
        struct Head {
            layout: u32,
        }
        let damaged = |error: serde_json::Error| RecordingError::Damaged { cause: error.to_string() };
        match serde_json::from_str::<Recording>(text) {
            Ok(recording) if recording.layout <= RECORDING_LAYOUT => Ok(recording),
            Ok(recording) => Err(RecordingError::Newer { found: recording.layout }),
            Err(error) => match serde_json::from_str::<Head>(text) {
                Ok(Head { layout }) if layout > RECORDING_LAYOUT => Err(RecordingError::Newer { found: layout }),
                _ => Err(damaged(error)),
            },
        }
    }

    /// Whether a request of it failed. A guest learns of that while it still writes, or afterwards, as it happens: executed again, the
    /// call may do something else.
    pub fn has_failed_request(&self) -> bool {
        self.taken.iter().any(|taken| matches!(taken.from, HostFunction::Http) && http::has_failed(&taken.gave))
    }

    /// What servers answered to requests of a component, in the order in which they were sent: method, address and reply. Requests
    /// that got no answer are left out.
    pub fn http_replies(&self) -> Vec<(String, String, HttpReply)> {
        let http = self.taken.iter().filter(|taken| taken.from == HostFunction::Http);
        http.filter_map(|taken| {
            let mut words = taken.asked.split(' ');
            let (method, url) = (words.next()?.to_owned(), words.next()?.to_owned());
            Some((method, url, http::reply_of(&taken.gave)?))
        })
        .collect()
    }

    /// Leaves digests of everything that came from outside or went there.
    fn strip(&mut self, gap: Gap) {
        self.call.texts().into_iter().for_each(|text| *text = text::digest_of(text));
        self.gave = self.gave.stripped();
        self.env.iter_mut().for_each(|(_, value)| *value = text::digest_of(value));
        self.config.values_mut().for_each(|value| *value = text::digest_of(value));
        self.taken.clear();
        self.readings = Readings::default();
        self.denied.clear();
        self.random = Random::default();
        self.gap = Some(gap);
    }
}
