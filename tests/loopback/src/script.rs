//! The replies a test wants the model to give, in the form of the `model` list of a case file.

use std::time::Duration;

use serde_json::{Map, Value, json};
use thiserror::Error;

use crate::request::{ModelRequest, OfferedTool};

/// The replies of a scripted model.
#[derive(Debug, Clone, Default)]
pub struct Script {
    pub(crate) replies: Vec<ScriptedReply>,
    configured_tools: Vec<String>,
}

/// A reply that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("reply {position} of the model script: {reason}")]
pub struct ScriptError {
    /// Which reply, counted from 1.
    pub position: usize,
    /// What is wrong with it.
    pub reason: String,
}

/// One reply and the conditions under which it is given.
#[derive(Debug, Clone)]
pub(crate) struct ScriptedReply {
    pub(crate) when: Option<String>,
    pub(crate) delay: Duration,
    pub(crate) prompt_tokens: u64,
    pub(crate) completion_tokens: u64,
    pub(crate) answer: ScriptedAnswer,
    /// The reply as the case wrote it.
    pub(crate) source: Value,
}

#[derive(Debug, Clone)]
pub(crate) enum ScriptedAnswer {
    Message { content: Option<String>, tool_calls: Vec<(String, ScriptedArguments)> },
    Failure { status: u16, message: Option<String> },
    Submit(Map<String, Value>),
}

#[derive(Debug, Clone)]
pub(crate) enum ScriptedArguments {
    Json(Value),
    Text(String),
    /// Goes under the only required property of the tool as the request offered it.
    OnlyRequired(String),
}

/// What is sent for a successful reply once the request is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) content: Option<String>,
    /// Name and arguments.
    pub(crate) tool_calls: Vec<(String, String)>,
}

impl Script {
    /// Reads the `model` list of a case file.
    ///
    /// # Errors
    ///
    /// When the list is not a list, or a reply has no known form or an unknown key.
    pub fn from_json(replies: &Value) -> Result<Self, ScriptError> {
        let Value::Array(replies) = replies else {
            return Err(ScriptError { position: 0, reason: "the script is not a list".to_owned() });
        };
        let replies = replies
            .iter()
            .enumerate()
            .map(|(index, reply)| {
                ScriptedReply::read(reply).map_err(|reason| ScriptError { position: index + 1, reason })
            })
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Self { replies, configured_tools: Vec::new() })
    }

    /// Names the tools of the configuration under test, so that a `submit` reply can tell the tool that hands in
    /// outputs from the others.
    #[must_use]
    pub fn with_configured_tools(mut self, names: impl IntoIterator<Item = String>) -> Self {
        self.configured_tools.extend(names);
        self
    }

    /// The message of a successful reply to `request`; `None` for a scripted failure.
    pub(crate) fn message(&self, answer: &ScriptedAnswer, request: &ModelRequest) -> Result<Option<Message>, String> {
        match answer {
            ScriptedAnswer::Failure { .. } => Ok(None),
            ScriptedAnswer::Message { content, tool_calls } => {
                let tool_calls = tool_calls
                    .iter()
                    .map(|(name, arguments)| Ok((name.clone(), arguments.for_tool(name, request)?)))
                    .collect::<Result<Vec<_>, String>>()?;
                Ok(Some(Message { content: content.clone(), tool_calls }))
            }
            ScriptedAnswer::Submit(outputs) => Ok(Some(self.submit(outputs, request))),
        }
    }

    fn submit(&self, outputs: &Map<String, Value>, request: &ModelRequest) -> Message {
        let text = Value::Object(outputs.clone()).to_string();
        let takes_outputs =
            |parameters: &Value| outputs.keys().all(|name| parameters["properties"].get(name).is_some());
        let is_meant =
            |tool: &&OfferedTool| !self.configured_tools.contains(&tool.name) && takes_outputs(&tool.parameters);
        let mut meant = request.tools.iter().filter(is_meant);
        match (meant.next(), meant.next()) {
            (Some(tool), None) => Message { content: None, tool_calls: vec![(tool.name.clone(), text)] },
            _ => Message { content: Some(text), tool_calls: Vec::new() },
        }
    }
}

impl ScriptedReply {
    fn read(reply: &Value) -> Result<Self, String> {
        const KEYS: [&str; 8] = ["content", "tool_calls", "status", "error", "submit", "usage", "delay_ms", "when"];
        let fields = reply.as_object().ok_or("a reply is an object")?;
        if let Some(unknown) = fields.keys().find(|key| !KEYS.contains(&key.as_str())) {
            return Err(format!("unknown key `{unknown}`"));
        }
        let usage = |key: &str| reply["usage"].get(key).and_then(Value::as_u64).unwrap_or(0);
        Ok(Self {
            when: optional_text(fields, "when")?,
            delay: Duration::from_millis(fields.get("delay_ms").and_then(Value::as_u64).unwrap_or(0)),
            prompt_tokens: usage("prompt_tokens"),
            completion_tokens: usage("completion_tokens"),
            answer: read_answer(fields)?,
            source: reply.clone(),
        })
    }

    /// Whether this reply is kept for requests like `request`.
    pub(crate) fn is_reserved_for(&self, request: &ModelRequest) -> bool {
        self.when.as_ref().is_some_and(|text| request.mentions(text))
    }
}

impl ScriptedArguments {
    fn for_tool(&self, name: &str, request: &ModelRequest) -> Result<String, String> {
        match self {
            Self::Json(arguments) => Ok(arguments.to_string()),
            Self::Text(text) => Ok(text.clone()),
            Self::OnlyRequired(text) => {
                let tool = request
                    .tools
                    .iter()
                    .find(|tool| tool.name == name)
                    .ok_or_else(|| format!("the script calls `{name}`, which the request does not offer"))?;
                let property = only_required(&tool.parameters)
                    .ok_or_else(|| format!("`{name}` has no single required property to put a text under"))?;
                Ok(json!({ property: text }).to_string())
            }
        }
    }
}

fn only_required(parameters: &Value) -> Option<&str> {
    match parameters.get("required").and_then(Value::as_array)?.as_slice() {
        [only] => only.as_str(),
        _ => None,
    }
}

fn optional_text(fields: &Map<String, Value>, key: &str) -> Result<Option<String>, String> {
    match fields.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(other) => Err(format!("`{key}` is not a text: {other}")),
    }
}

fn read_answer(fields: &Map<String, Value>) -> Result<ScriptedAnswer, String> {
    if let Some(status) = fields.get("status") {
        let status = status
            .as_u64()
            .and_then(|status| u16::try_from(status).ok())
            .filter(|status| (200..=599).contains(status))
            .ok_or_else(|| format!("`status` is not an HTTP status: {status}"))?;
        return Ok(ScriptedAnswer::Failure { status, message: optional_text(fields, "error")? });
    }
    if let Some(message) = optional_text(fields, "error")? {
        return Ok(ScriptedAnswer::Failure { status: 502, message: Some(message) });
    }
    if let Some(outputs) = fields.get("submit") {
        let outputs = outputs.as_object().ok_or("`submit` is not an object")?;
        return Ok(ScriptedAnswer::Submit(outputs.clone()));
    }
    let content = optional_text(fields, "content")?;
    let tool_calls = match fields.get("tool_calls") {
        None => Vec::new(),
        Some(Value::Array(calls)) => calls.iter().map(read_call).collect::<Result<Vec<_>, _>>()?,
        Some(other) => return Err(format!("`tool_calls` is not a list: {other}")),
    };
    if content.is_none() && tool_calls.is_empty() && !fields.contains_key("content") {
        return Err("none of `content`, `tool_calls`, `status`, `error`, `submit` is there".to_owned());
    }
    Ok(ScriptedAnswer::Message { content, tool_calls })
}

fn read_call(call: &Value) -> Result<(String, ScriptedArguments), String> {
    let name = call.get("name").and_then(Value::as_str).ok_or("a tool call has no `name`")?;
    let arguments = match call.get("arguments") {
        None => ScriptedArguments::Json(json!({})),
        Some(Value::String(text)) => ScriptedArguments::Text(text.clone()),
        Some(Value::Object(fields)) if fields.len() == 1 && fields.contains_key("$text") => {
            let text = fields["$text"].as_str().ok_or("`$text` is not a text")?;
            ScriptedArguments::OnlyRequired(text.to_owned())
        }
        Some(other) => ScriptedArguments::Json(other.clone()),
    };
    Ok((name.to_owned(), arguments))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_in_a_script_are_named() {
        let cases = [
            (json!({}), "the script is not a list"),
            (json!([{"content": "a"}, {"contents": "b"}]), "reply 2 of the model script: unknown key `contents`"),
            (json!([{"usage": {}}]), "none of `content`"),
            (json!([{"status": 9}]), "`status` is not an HTTP status"),
            (json!([{"content": 3}]), "`content` is not a text"),
            (json!([{"tool_calls": [{}]}]), "a tool call has no `name`"),
            (json!([{"submit": "x"}]), "`submit` is not an object"),
        ];
        for (script, expected) in cases {
            let error = Script::from_json(&script).expect_err("refused").to_string();
            assert!(error.contains(expected), "{error} does not contain {expected}");
        }
    }
}
