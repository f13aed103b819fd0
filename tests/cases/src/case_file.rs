//! The form of `case.json`: every documented key, and nothing else.
//!
//! A key that is not here makes the case fail by that key's name, because an expectation that nobody looks at is
//! worse than none. This module only reads; what the keys mean is the business of whoever plays and checks a case.

use std::path::Path;

use hotcell_graph::Value;
use hotcell_graph::value::parse_json;
use indexmap::IndexMap;
use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use thiserror::Error;

/// JSON exactly as the case wrote it: integers of any size, keys in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Json(pub Value);

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        parse_json(raw.get()).map(Json).map_err(de::Error::custom)
    }
}

/// A whole case.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaseFile {
    /// What the case shows
    pub title: String,
    /// The configuration language of `entry`
    pub dialect: String,
    /// Feature tags
    pub covers: Vec<String>,
    /// The configuration file to load, relative to the case
    pub entry: String,
    /// The sentence that decides the case
    pub why: String,
    /// Which agent of the file to run
    pub agent: Option<String>,
    /// One user message, or initial values
    pub input: Option<Json>,
    /// Several inputs one after the other, instead of `input`
    pub turns: Option<Vec<Turn>>,
    /// What the human answers, one for each pause
    #[serde(default)]
    pub answers: Vec<Answer>,
    /// The replies of the model, in the form that the scripted server reads
    #[serde(default)]
    pub model: Vec<serde_json::Value>,
    /// All tools that exist
    #[serde(default)]
    pub tools: IndexMap<String, Tool>,
    /// JSON Schemas by name
    #[serde(default)]
    pub schemas: IndexMap<String, Json>,
    /// Prices by model
    #[serde(default)]
    pub prices: IndexMap<String, Price>,
    /// The environment of the host
    #[serde(default)]
    pub env: IndexMap<String, String>,
    /// Values of declared variables
    #[serde(default)]
    pub variables: IndexMap<String, Json>,
    /// The models that exist; absent means every name
    pub models: Option<Vec<String>>,
    /// Whether nothing may connect to a listener whose port is the variable `canary_port`
    #[serde(default)]
    pub canary: bool,
    /// Files of parts that are loaded together with `entry`
    #[serde(default)]
    pub components: Vec<Component>,
    /// What is in the conversation before the run
    #[serde(default)]
    pub conversation: Vec<Message>,
    /// The plugins that exist
    #[serde(default)]
    pub plugins: Vec<String>,
    /// Answers of a scripted HTTP server
    #[serde(default)]
    pub http: Vec<HttpExchange>,
    /// What has to come out
    pub expect: Expect,
}

/// One input of several.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Turn {
    /// As the input of a case
    pub input: Option<Json>,
    /// The conversation it belongs to
    #[serde(default = "first_thread")]
    pub thread: String,
    /// The user's message beside `input`
    pub message: Option<String>,
}

fn first_thread() -> String {
    "t1".to_owned()
}

/// An answer to a pause.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "an answer is a text, or an object with `tool` and `result` or `error`")]
pub enum Answer {
    /// To a question, or to an approval gate
    Text(String),
    /// What a client hands in for its tool
    Client(ClientAnswer),
}

/// What a client hands in for a client tool.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientAnswer {
    /// The tool
    pub tool: String,
    /// Its result
    pub result: Option<serde_json::Value>,
    /// Its failure
    pub error: Option<String>,
}

/// A tool of a case.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    /// What a model is told
    pub description: String,
    /// The JSON Schema of its arguments
    pub parameters: serde_json::Value,
    /// What it does
    pub behaviour: Behaviour,
    /// The result of a constant tool
    pub value: Option<Json>,
    /// The MCP server it belongs to
    pub server: Option<String>,
}

/// What a tool does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Behaviour {
    /// Adds two numbers
    Add,
    /// Gives its arguments back
    Echo,
    /// Turns a text into upper case
    Upper,
    /// Looks a key up in a fixed table
    Lookup,
    /// Always fails
    Fail,
    /// Waits
    Slow,
    /// Asks the human
    Ask,
    /// Joins two texts
    Concat,
    /// Always gives the same value
    Constant,
}

impl Behaviour {
    /// The word for it, as the tools component reads it.
    pub fn as_str(self) -> &'static str {
        match self {
            Behaviour::Add => "add",
            Behaviour::Echo => "echo",
            Behaviour::Upper => "upper",
            Behaviour::Lookup => "lookup",
            Behaviour::Fail => "fail",
            Behaviour::Slow => "slow",
            Behaviour::Ask => "ask",
            Behaviour::Concat => "concat",
            Behaviour::Constant => "constant",
        }
    }
}

/// The price of a model in USD.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// For a million tokens of requests
    pub input_per_million: f64,
    /// For a million tokens of replies
    pub output_per_million: f64,
}

/// A file of parts.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "a component is a path, or an object with `file` and `rename`")]
pub enum Component {
    /// Its path
    Path(String),
    /// Its path, and other ids for what is in it
    Renamed(RenamedComponent),
}

/// A file of parts that the entry knows by other ids.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RenamedComponent {
    /// Its path
    pub file: String,
    /// Key in the file to id in the entry
    #[serde(default)]
    pub rename: IndexMap<String, String>,
}

/// A message, as a case writes one and as it expects one. A key that is absent is not compared.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Message {
    /// `system`, `user`, `assistant` or `tool`
    pub role: Option<String>,
    /// Its text
    pub content: Option<Json>,
    /// The calls it asks for
    pub tool_calls: Option<Vec<ToolCall>>,
}

/// A call of a tool.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolCall {
    /// The tool
    pub name: String,
    /// Its arguments; absent means any
    pub arguments: Option<Json>,
}

/// An entry of the scripted HTTP server.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpExchange {
    /// Method of the request
    pub method: Option<String>,
    /// Path of the request
    pub path: Option<String>,
    /// All parameters of the request
    pub query: Option<IndexMap<String, String>>,
    /// Headers that the request has
    pub headers: Option<IndexMap<String, String>>,
    /// The body as JSON
    pub json: Option<Json>,
    /// The body as a form
    pub form: Option<IndexMap<String, String>>,
    /// The body as text
    pub text: Option<String>,
    /// What is answered; an expectation has none
    pub reply: Option<HttpReply>,
}

/// An answer of the scripted HTTP server.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpReply {
    /// 200 where it is absent
    pub status: Option<u16>,
    /// A JSON body
    pub json: Option<Json>,
    /// A text body
    pub text: Option<String>,
}

/// What has to come out of a case.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Expect {
    /// The outcomes that are right
    pub status: Statuses,
    /// The dialect's own word for the outcome
    pub detail: Option<String>,
    /// The final reply
    #[serde(deserialize_with = "present")]
    pub output: Option<Json>,
    /// Subset of the final state
    pub state: Option<Json>,
    /// How each node ended
    pub nodes: Option<IndexMap<String, String>>,
    /// The nodes that ran, in order
    pub visited: Option<Vec<String>>,
    /// Every pause
    pub interrupts: Option<Vec<Interrupt>>,
    /// Fragments of the error
    pub error_contains: Option<Vec<String>>,
    /// Fragments of the warnings
    pub warnings_contain: Option<Vec<String>>,
    /// What the model is asked
    pub model_requests: Option<Vec<RequestMatcher>>,
    /// Whether the order of the requests counts
    pub model_requests_order: Option<RequestOrder>,
    /// The exact number of requests
    pub model_calls: Option<usize>,
    /// The calls that reached a tool
    pub tool_calls: Option<Vec<ToolCall>>,
    /// The branch of the end node that was reached
    pub branch: Option<String>,
    /// Messages of the conversation at its end
    pub messages: Option<Vec<Message>>,
    /// Texts in none of its messages
    pub messages_exclude: Option<Vec<String>>,
    /// What the scripted HTTP server is asked
    pub http_requests: Option<Vec<HttpExchange>>,
    /// The file that a document written back has to equal
    pub equivalent_to: Option<String>,
}

/// The order of model requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RequestOrder {
    /// Each expected request is some request, a different one each
    Any,
}

/// How a case ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// With a result
    Completed,
    /// With an error while running
    Failed,
    /// Waiting for a human
    Interrupted,
    /// Refused before anything ran
    Rejected,
    /// Written back and loaded again
    Roundtrip,
}

impl Status {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Completed => "completed",
            Status::Failed => "failed",
            Status::Interrupted => "interrupted",
            Status::Rejected => "rejected",
            Status::Roundtrip => "roundtrip",
        }
    }
}

/// The outcomes that are right; never empty in a case that was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statuses(pub Vec<Status>);

impl<'de> Deserialize<'de> for Statuses {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let statuses = match serde_json::Value::deserialize(deserializer)? {
            serde_json::Value::Array(statuses) => statuses,
            one => vec![one],
        };
        let statuses = statuses.into_iter().map(Status::deserialize).collect::<Result<_, _>>();
        statuses.map(Statuses).map_err(de::Error::custom)
    }
}

/// An expected pause. A key that is absent is not compared.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interrupt {
    /// The node that pauses
    pub node: Option<String>,
    /// What the human is shown
    pub value: Option<Json>,
    /// The answers that are offered
    pub options: Option<Vec<String>>,
    /// The client tool that is asked for
    pub tool: Option<String>,
    /// Its arguments
    pub arguments: Option<Json>,
}

/// An expected model request. A key that is absent is not compared.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RequestMatcher {
    /// All messages, in order
    pub messages: Option<Vec<Message>>,
    /// Messages that occur in this order
    pub messages_include: Option<Vec<Message>>,
    /// Texts that occur in no message
    pub excludes: Option<Vec<String>>,
    /// Names of the offered tools
    pub tools: Option<Vec<String>>,
    /// The model
    pub model: Option<String>,
    /// `Null` means that it is not sent
    #[serde(deserialize_with = "present")]
    pub temperature: Option<Json>,
    /// `Null` means that it is not sent
    #[serde(deserialize_with = "present")]
    pub max_tokens: Option<Json>,
    /// `Null` means that it is not sent
    #[serde(deserialize_with = "present")]
    pub top_p: Option<Json>,
}

/// Keeps a `null` that is there apart from a key that is absent.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Json>, D::Error> {
    Json::deserialize(deserializer).map(Some)
}

/// Why a case file cannot be used.
#[derive(Debug, Error)]
pub enum CaseFileError {
    /// It cannot be read
    #[error("`case.json` cannot be read: {0}")]
    Unreadable(#[from] std::io::Error),
    /// It is not a case
    #[error("`case.json` is not a case: {0}")]
    Invalid(#[from] serde_json::Error),
    /// It accepts no outcome
    #[error("`case.json` is not a case: `expect.status` does not name an outcome")]
    NoStatus,
}

impl CaseFile {
    /// Reads the case of a directory.
    ///
    /// # Errors
    /// When the file cannot be read, is not JSON, lacks a required key, or has a key or value that is not documented.
    pub fn read(directory: &Path) -> Result<Self, CaseFileError> {
        Self::parse(&std::fs::read_to_string(directory.join("case.json"))?)
    }

    /// Reads a case from its text.
    ///
    /// # Errors
    /// As [`CaseFile::read`].
    pub fn parse(text: &str) -> Result<Self, CaseFileError> {
        let case: CaseFile = serde_json::from_str(text)?;
        if case.expect.status.0.is_empty() {
            return Err(CaseFileError::NoStatus);
        }
        Ok(case)
    }

    /// Whether the case depends on how long something takes, so that it must not share the machine with others.
    pub fn is_timed(&self) -> bool {
        let late = |reply: &serde_json::Value| reply.get("delay_ms").is_some();
        self.model.iter().any(late) || self.tools.values().any(|tool| tool.behaviour == Behaviour::Slow)
    }
}
