//! The two versions of the protocol, and what is the same in both.

use hotcell_connector::{Failure, words};
use hotcell_plugin::{Json, json};

/// A version of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// 1.0
    One,
    /// 0.3, which earlier versions understand
    Three,
}

impl Dialect {
    pub(crate) fn of(version: &str) -> Self {
        if version.starts_with("1.") || version == "1" { Dialect::One } else { Dialect::Three }
    }

    pub(crate) fn version(self) -> &'static str {
        match self {
            Dialect::One => "1.0",
            Dialect::Three => "0.3",
        }
    }

    pub(crate) fn other(self) -> Self {
        match self {
            Dialect::One => Dialect::Three,
            Dialect::Three => Dialect::One,
        }
    }

    pub(crate) fn version_header(self) -> Option<&'static str> {
        (self == Dialect::One).then_some("1.0")
    }

    pub(crate) fn send(self) -> &'static str {
        if self == Dialect::One { "SendMessage" } else { "message/send" }
    }

    pub(crate) fn get(self) -> &'static str {
        if self == Dialect::One { "GetTask" } else { "tasks/get" }
    }

    pub(crate) fn cancel(self) -> &'static str {
        if self == Dialect::One { "CancelTask" } else { "tasks/cancel" }
    }

    /// What is sent: as data to an agent that takes JSON, else as a text.
    pub(crate) fn message(self, card: &Json, input: &Json, id: &str, context: Option<&str>) -> Json {
        let modes = |name: &str| card[name].as_array().cloned().unwrap_or_default();
        let takes_data = modes("defaultInputModes").iter().any(|mode| mode == "application/json");
        let part = match (takes_data, self) {
            (true, Dialect::One) => json!({ "data": input }),
            (true, Dialect::Three) => json!({ "kind": "data", "data": input }),
            (false, Dialect::One) => json!({ "text": as_text(input) }),
            (false, Dialect::Three) => json!({ "kind": "text", "text": as_text(input) }),
        };
        let role = if self == Dialect::One { "ROLE_USER" } else { "user" };
        let mut message = json!({ "messageId": id, "role": role, "parts": [part] });
        if let Some(context) = context {
            message["contextId"] = context.into();
        }
        let accepted = json!(["text/plain", "application/json"]);
        let configuration = match self {
            Dialect::One => json!({ "acceptedOutputModes": accepted, "returnImmediately": true }),
            Dialect::Three => {
                message["kind"] = "message".into();
                json!({ "acceptedOutputModes": accepted, "blocking": false })
            }
        };
        json!({ "message": message, "configuration": configuration })
    }
}

/// An input as a text: its only entry if that is one, else its JSON.
fn as_text(input: &Json) -> String {
    let entries = input.as_object();
    let only = entries.filter(|entries| entries.len() == 1).and_then(|entries| entries.values().next()?.as_str());
    only.map_or_else(|| input.to_string(), str::to_owned)
}

/// Where an agent takes requests, and in which version.
pub(crate) fn endpoint(card: &Json, own: &str) -> Result<(String, Dialect), Failure> {
    if !card.is_object() {
        return Err(Failure::new("its card is not an object"));
    }
    let url_of = |interface: &Json| interface["url"].as_str().filter(|url| !url.is_empty()).map(str::to_owned);
    let interfaces = |name: &str| card[name].as_array().cloned().unwrap_or_default();
    let ours: Vec<Json> = interfaces("supportedInterfaces")
        .into_iter()
        .filter(|interface| words(&interface["protocolBinding"]) == "jsonrpc")
        .collect();
    let version_of = |interface: &Json| interface["protocolVersion"].as_str().unwrap_or("1.0").to_owned();
    let newest = ours.iter().find(|interface| Dialect::of(&version_of(interface)) == Dialect::One);
    if let Some(interface) = newest.or(ours.first()) {
        let url = url_of(interface).unwrap_or_else(|| own.to_owned());
        return Ok((url, Dialect::of(&version_of(interface))));
    }
    let dialect = Dialect::of(card["protocolVersion"].as_str().unwrap_or("0.3"));
    let preferred = card["preferredTransport"].as_str().unwrap_or("JSONRPC");
    let url = if preferred == "JSONRPC" {
        url_of(card)
    } else {
        let others = interfaces("additionalInterfaces");
        let found = others.iter().find(|interface| interface["transport"] == "JSONRPC").and_then(url_of);
        Some(
            found
                .ok_or_else(|| Failure::new(format!("it offers `{preferred}`, and JSON-RPC is what is spoken here")))?,
        )
    };
    Ok((url.unwrap_or_else(|| own.to_owned()), dialect))
}

/// The message or task in an answer.
pub(crate) fn inner(mut answer: Json) -> Json {
    for name in ["task", "message"] {
        if answer[name].is_object() {
            return answer[name].take();
        }
    }
    answer
}

/// What a task is at.
#[derive(Debug, PartialEq)]
pub(crate) enum State {
    Working,
    Completed,
    /// It wants to know something first
    Asks,
    Failed(String),
}

impl State {
    /// None for what is no task.
    pub(crate) fn of(answer: &Json) -> Option<Self> {
        let word = words(answer.get("status")?.get("state")?);
        let word = word.strip_prefix("task-state-").unwrap_or(&word);
        Some(match word {
            "completed" => State::Completed,
            "input-required" | "auth-required" => State::Asks,
            "canceled" | "cancelled" | "failed" | "rejected" | "unknown" => State::Failed(word.to_owned()),
            _ => State::Working,
        })
    }
}

/// What came of a task: what it made, else what it said at the end.
pub(crate) fn result(task: &Json) -> Json {
    let of = |list: &Json| list.as_array().cloned().unwrap_or_default();
    let made: Vec<Json> = of(&task["artifacts"]).iter().flat_map(|artifact| of(&artifact["parts"])).collect();
    if !made.is_empty() {
        return output(made.iter());
    }
    let said = of(&task["status"]["message"]["parts"]);
    if !said.is_empty() {
        return output(said.iter());
    }
    let is_agent = |message: &&Json| matches!(words(&message["role"]).as_str(), "agent" | "role-agent");
    let last = of(&task["history"]).iter().rev().find(is_agent).map(|message| of(&message["parts"]));
    output(last.unwrap_or_default().iter())
}

/// What parts give: the only one with data, else their texts.
pub(crate) fn output<'a>(parts: impl Iterator<Item = &'a Json>) -> Json {
    let parts: Vec<&Json> = parts.collect();
    let data: Vec<&Json> = parts.iter().filter_map(|part| part.get("data").filter(|data| !data.is_null())).collect();
    if let [data] = data[..] {
        return data.clone();
    }
    let texts: Vec<&str> = parts.iter().filter_map(|part| part["text"].as_str()).collect();
    json!({ "text": texts.concat() })
}

/// The text of a message.
pub(crate) fn said_by(message: &Json) -> String {
    let parts = message["parts"].as_array().into_iter().flatten();
    parts.filter_map(|part| part["text"].as_str()).collect()
}
