//! The file of a case.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use hotcell_budget::{Bytes, Fuel};
use hotcell_cells::Grants;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use thiserror::Error;

/// A case as it stands in its file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// What it shows, for people
    #[serde(default)]
    pub description: String,
    tool: Option<String>,
    #[serde(default)]
    arguments: Option<Value>,
    script: Option<ScriptInput>,
    node: Option<String>,
    #[serde(default)]
    fields: Map<String, Value>,
    #[serde(default)]
    inputs: Map<String, Value>,
    hook: Option<String>,
    #[serde(default)]
    event: Map<String, Value>,
    connector: Option<ConnectorInput>,
    /// Settings that the plugin can read
    #[serde(default)]
    pub config: BTreeMap<String, String>,
    /// Answers of the person, in the order of the questions
    #[serde(default)]
    pub answers: Vec<String>,
    /// Values of secrets
    #[serde(default)]
    pub secrets: BTreeMap<String, String>,
    /// What the plugin's store holds at the start
    #[serde(default)]
    pub kv: BTreeMap<String, String>,
    /// What is granted, as in `hotcell.toml`
    #[serde(default)]
    pub grants: Grants,
    /// What the host answers to the plugin's calls
    #[serde(default)]
    pub replies: Vec<HostReply>,
    /// What has to come of it
    pub expect: Expectation,
    /// What it may use
    #[serde(default)]
    pub budget: CaseBudget,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptInput {
    #[serde(default)]
    state: Map<String, Value>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ConnectorInput {
    #[serde(default)]
    input: Map<String, Value>,
    #[serde(default)]
    config: Map<String, Value>,
    callback: Option<CallbackInput>,
    body: Option<Value>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CallbackInput {
    url: String,
    session: String,
}

/// Ceilings of one case; what is not named has the limit of every call.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CaseBudget {
    /// Fuel
    pub fuel: Option<Fuel>,
    /// Memory in bytes
    pub memory: Option<Bytes>,
    /// Time in milliseconds
    pub wall_clock_ms: Option<u64>,
}

/// What is called.
#[derive(Clone, Debug)]
pub enum Call {
    /// A tool with its arguments
    Tool(String, String),
    /// The script with the graph's state
    Script(Map<String, Value>),
    /// A node of this type with fields and inputs
    Node(String, String, String),
    /// The hook at this point with an event
    Hook(String, String),
    /// The connector
    Connector {
        /// What is handed over
        input: String,
        /// How the connector is set up
        config: String,
        /// Address and session of the answer
        callback: Option<(String, String)>,
        /// What came by the callback
        body: Option<String>,
    },
}

/// What has to come of a case: exactly one of these.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Expectation {
    /// This JSON value; of a connector that takes the request and answers later, the text `accepted`
    Output(Value),
    /// An error of the plugin
    Error {
        /// Which case of the contract's error; any, if it is left out
        kind: Option<String>,
        /// A part of its message
        #[serde(default)]
        message: String,
    },
    /// The plugin puts a question with this text
    Question(String),
    /// The hook decides so
    Verdict(ExpectedVerdict),
    /// The node ends so
    Outcome {
        /// Its outputs
        outputs: Value,
        /// The branch
        branch: Option<String>,
    },
    /// The call ends at this limit
    Limit(String),
}

/// What a hook has to decide.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExpectedVerdict {
    /// The event goes on as it is
    Proceed,
    /// It goes on so
    Change(Value),
    /// It does not go on; a part of the reason
    Refuse(String),
}

/// Which call of the plugin a reply belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostCall {
    /// A request over HTTP
    Http,
    /// A question to the model
    Llm,
    /// A call of another tool
    Tool,
}

impl HostCall {
    /// The word for it in a case.
    pub fn as_str(self) -> &'static str {
        match self {
            HostCall::Http => "http",
            HostCall::Llm => "llm",
            HostCall::Tool => "tool",
        }
    }
}

/// What the host answers to a call of the plugin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostReply {
    /// Which call
    pub call: HostCall,
    /// What the call has to say, as far as it is named here: an object of which every entry has to be there
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Value>,
    /// The answer
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<Value>,
    /// In the place of an answer: why there is none
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What is wrong with the file of a case.
#[derive(Debug, Error)]
#[error("`{file}`: {cause}", file = file.display())]
pub struct CaseError {
    file: PathBuf,
    cause: String,
}

impl Case {
    /// Reads a case.
    ///
    /// # Errors
    /// When the text is not of the form; the text says what and where.
    pub fn parse(text: &str) -> Result<Self, String> {
        let case: Case = serde_json::from_str(text).map_err(|error| error.to_string())?;
        case.call()?;
        Ok(case)
    }

    /// What is called.
    ///
    /// # Errors
    /// When the case names nothing to call, or more than one thing.
    pub fn call(&self) -> Result<Call, String> {
        let text = |map: &Map<String, Value>| Value::Object(map.clone()).to_string();
        let calls = [
            self.tool.as_ref().map(|tool| {
                let arguments = self.arguments.clone().unwrap_or_else(|| Value::Object(Map::new()));
                // A text is handed over as it is, so that a case can show what becomes of arguments that are no JSON.
                let arguments = arguments.as_str().map_or_else(|| arguments.to_string(), str::to_owned);
                Call::Tool(tool.clone(), arguments)
            }),
            self.script.as_ref().map(|script| Call::Script(script.state.clone())),
            self.node.as_ref().map(|node| Call::Node(node.clone(), text(&self.fields), text(&self.inputs))),
            self.hook.as_ref().map(|point| Call::Hook(point.clone(), text(&self.event))),
            self.connector.as_ref().map(|connector| Call::Connector {
                input: text(&connector.input),
                config: text(&connector.config),
                callback: connector.callback.as_ref().map(|callback| (callback.url.clone(), callback.session.clone())),
                body: connector.body.as_ref().map(Value::to_string),
            }),
        ];
        let mut named = calls.into_iter().flatten();
        match (named.next(), named.next()) {
            (Some(call), None) => Ok(call),
            (None, _) => Err("it calls nothing: give `tool`, `script`, `node`, `hook` or `connector`".to_owned()),
            (Some(_), Some(_)) => Err("it calls more than one of tool, script, node, hook and connector".to_owned()),
        }
    }
}

/// The cases of a folder by name, in the order of their names.
///
/// # Errors
/// When a file cannot be read or is not of the form.
pub fn read_cases(folder: &Path) -> Result<Vec<(String, Case)>, CaseError> {
    let failed = |file: &Path, cause: String| CaseError { file: file.to_owned(), cause };
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(folder, error.to_string())),
    };
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .filter(|path| path.file_name().is_some_and(|name| name != crate::BASELINE_FILE))
        .collect();
    files.sort();
    let read = |file: PathBuf| {
        let text = std::fs::read_to_string(&file).map_err(|error| failed(&file, error.to_string()))?;
        let case = Case::parse(&text).map_err(|cause| failed(&file, cause))?;
        let name = file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        Ok((name, case))
    };
    files.into_iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_case_is_said() {
        let cases = [
            ("{", "EOF"),
            (r#"{ "expect": { "output": 1 } }"#, "it calls nothing"),
            (r#"{ "tool": "a", "hook": "b", "expect": { "output": 1 } }"#, "more than one"),
            (r#"{ "tool": "a" }"#, "missing field `expect`"),
            (r#"{ "tool": "a", "expect": { "outptu": 1 } }"#, "unknown variant `outptu`"),
            (r#"{ "tool": "a", "expect": { "output": 1 }, "grant": {} }"#, "unknown field `grant`"),
            (r#"{ "tool": "a", "expect": { "output": 1 }, "grants": { "htpt": [] } }"#, "unknown field `htpt`"),
        ];
        for (text, expected) in cases {
            let message = Case::parse(text).map_or_else(|error| error, |_| "accepted".to_owned());
            assert!(message.contains(expected), "`{expected}` is not in `{message}`");
        }
    }
}
