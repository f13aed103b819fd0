//! What a server answers, as far as the command line reads it. What a newer server adds is left out.

use std::time::SystemTime;

use hotcell_runtime::{ClientCall, Question, RunStatus};
use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::Value;

/// Why a request was refused (RFC 9457).
#[derive(Debug, Deserialize)]
pub(crate) struct Problem {
    #[serde(rename = "type", default)]
    pub(crate) kind: String,
    pub(crate) status: u16,
    pub(crate) detail: String,
    /// The run that is in the way, if one is
    #[serde(default)]
    pub(crate) run_id: Option<String>,
}

impl Problem {
    /// A refusal of which no more is known than its status.
    pub(crate) fn unknown(status: u16, server: &str) -> Self {
        let detail =
            format!("{server} answered with the status {status}, but not like a hotcell server; check the address");
        Problem { kind: String::new(), status, detail, run_id: None }
    }

    /// Whether it is of this kind.
    pub(crate) fn is(&self, kind: &str) -> bool {
        self.kind.strip_prefix("urn:hotcell:problem:") == Some(kind)
    }
}

/// A run.
#[derive(Debug, Deserialize)]
pub(crate) struct Run {
    pub(crate) run_id: String,
    pub(crate) thread_id: Option<String>,
    pub(crate) agent_id: Option<String>,
    #[serde(deserialize_with = "time")]
    pub(crate) created_at: SystemTime,
    #[serde(deserialize_with = "time")]
    pub(crate) updated_at: SystemTime,
    #[serde(deserialize_with = "status")]
    pub(crate) standing: RunStatus,
    pub(crate) outcome: Option<String>,
}

/// A page of runs.
#[derive(Debug, Deserialize)]
pub(crate) struct RunPage {
    pub(crate) runs: Vec<Run>,
    pub(crate) next: Option<String>,
}

/// An entry of a run.
#[derive(Debug, Deserialize)]
pub(crate) struct RunEntry {
    pub(crate) seq: u64,
    pub(crate) run_id: String,
    pub(crate) place: String,
    pub(crate) kind: String,
    pub(crate) data: Value,
}

/// A page of entries.
#[derive(Debug, Deserialize)]
pub(crate) struct EntryPage {
    pub(crate) entries: Vec<RunEntry>,
    pub(crate) next: Option<u64>,
}

/// What was answered.
#[derive(Debug, Deserialize)]
pub(crate) struct Answered {
    pub(crate) question_id: String,
}

/// A question, as entries have it.
#[derive(Debug, Deserialize)]
struct Asked {
    #[serde(default)]
    id: String,
    node: String,
    text: String,
    #[serde(default)]
    options: Vec<String>,
    default: Option<String>,
    #[serde(default)]
    call: Option<Value>,
    #[serde(default)]
    seat: Option<String>,
    #[serde(default, deserialize_with = "maybe_time")]
    expires: Option<SystemTime>,
    #[serde(default)]
    operator_ids: Vec<String>,
    #[serde(default)]
    context: Option<Value>,
    #[serde(default)]
    denial: Option<Value>,
}

/// The question that an entry or a result has.
pub(crate) fn question(value: &Value) -> Option<Question> {
    let asked = Asked::deserialize(value).ok()?;
    Some(Question {
        id: asked.id,
        node: asked.node,
        text: asked.text,
        options: asked.options,
        default: asked.default,
        call: asked.call.as_ref().and_then(call),
        seat: asked.seat,
        expires: asked.expires,
        operator_ids: asked.operator_ids,
        context: asked.context.as_ref().map(hotcell_graph::Value::from),
        denial: asked.denial.as_ref().map(hotcell_graph::Value::from),
    })
}

fn call(value: &Value) -> Option<ClientCall> {
    let arguments = value.get("arguments").unwrap_or(&Value::Null);
    Some(ClientCall { tool: value.get("tool")?.as_str()?.to_owned(), arguments: arguments.into() })
}

fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SystemTime, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse::<jiff::Timestamp>().map(SystemTime::from).map_err(D::Error::custom)
}

fn maybe_time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SystemTime>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    let read = |text: String| text.parse::<jiff::Timestamp>().map(SystemTime::from).map_err(D::Error::custom);
    text.map(read).transpose()
}

fn status<'de, D: Deserializer<'de>>(deserializer: D) -> Result<RunStatus, D::Error> {
    let word = String::deserialize(deserializer)?;
    RunStatus::from_word(&word).ok_or_else(|| D::Error::custom(format!("there is no status `{word}`")))
}
