//! What a run is given, out of what a request says.

use hotcell_graph::{Object as GraphObject, Value as GraphValue};
use hotcell_runtime::{Agent, PROMPT, RunInput, RunRecord, called_with};
use http::StatusCode;
use serde_json::{Value, json};

use crate::object::{Object, object};
use crate::problem::Problem;

/// The member of a run's origin that says that a server began it, and what was said about it then.
const SERVED: &str = "serve";
/// Where it is to be told what becomes of the run.
const WEBHOOK: &str = "webhook";
/// The member of an input that is a conversation; its last message is the text for an agent that takes none.
const MESSAGES: &str = "messages";

/// Bytes of JSON that the metadata of a run or a thread has. They are part of lists of a thousand.
const MOST_METADATA: usize = 64 << 10;

/// Refuses metadata that is too large.
pub(crate) fn check_metadata(metadata: &Object) -> Result<(), Problem> {
    let size = serde_json::to_vec(metadata).map_or(0, |json| json.len());
    if size > MOST_METADATA {
        let detail = format!("`metadata` has {size} bytes of JSON, and {MOST_METADATA} at most");
        return Err(Problem::unprocessable(detail).with("limit", MOST_METADATA));
    }
    Ok(())
}

/// What a run of an agent is given: a text, or an object with values by their names.
pub(crate) fn run_input(
    agent: &Agent,
    input: Option<Value>,
    messages: Option<Vec<Value>>,
    thread: Option<String>,
    metadata: Object,
) -> Result<RunInput, Problem> {
    check_metadata(&metadata)?;
    let mut arguments = match input {
        None | Some(Value::Null) => Object::new(),
        Some(Value::Object(object)) => object,
        Some(Value::String(text)) => Object::from_iter([(PROMPT.to_owned(), text.into())]),
        Some(other) => {
            let detail = format!("`input` has to be a text or an object, and is {}", kind(&other));
            return Err(Problem::unprocessable(detail));
        }
    };
    let graph = &agent.graph;
    let takes_messages = graph.is_open || graph.open_state.iter().any(|key| &**key == MESSAGES);
    let given = match (messages, arguments.get(MESSAGES)) {
        (Some(messages), _) => Some(messages),
        (None, Some(Value::Array(messages))) if !takes_messages || graph.conversation.is_some() => {
            let messages = messages.clone();
            arguments.remove(MESSAGES);
            Some(messages)
        }
        _ => None,
    };
    if let Some(messages) = given {
        if arguments.contains_key(PROMPT) {
            return Err(Problem::unprocessable("give a prompt or messages, not both"));
        }
        arguments.insert(PROMPT.to_owned(), text_of(&messages)?.into());
    }
    if arguments.contains_key(PROMPT) && !graph.takes_text() && !graph.is_open {
        let detail =
            "the agent takes no text; give its inputs as an object (`GET /agents/{agent_id}/schemas` shows them)";
        return Err(Problem::unprocessable(detail).kind("input", "The input does not fit the agent"));
    }
    let mut given = called_with(agent, &arguments);
    given.thread = thread;
    given.origin = origin_of(json!({ "metadata": metadata }));
    Ok(given)
}

/// What says in a run's origin that a server began it, with what is kept of that.
pub(crate) fn origin_of(kept: Value) -> GraphObject {
    [(SERVED.into(), GraphValue::from(&kept))].into_iter().collect()
}

/// The text of the only message. A conversation is kept by a thread, and not sent again with each request.
fn text_of(messages: &[Value]) -> Result<String, Problem> {
    let [message] = messages else {
        return Err(Problem::unprocessable(
            "`messages` has to hold exactly one message, of the role `user`: what was said before is kept by the thread",
        ));
    };
    let role = message.get("role").or_else(|| message.get("type")).and_then(Value::as_str);
    if !matches!(role, Some("user" | "human")) {
        return Err(Problem::unprocessable("the message has to be of the role `user`"));
    }
    match message.get("content") {
        Some(content @ (Value::String(_) | Value::Array(_))) => content_text(content).ok_or_else(|| {
            Problem::unprocessable(
                "a message with anything but text is not supported: its parts have to be of the type `text`",
            )
        }),
        _ => Err(Problem::unprocessable("the message has no `content`")),
    }
}

/// The text that the content of a message is, as a text or as parts of the type `text`; none if there is something else in it.
pub(crate) fn content_text(content: &Value) -> Option<String> {
    let text = |part: &Value| {
        let is_text = part.get("type").and_then(Value::as_str) == Some("text");
        part.get("text").and_then(Value::as_str).filter(|_| is_text).map(str::to_owned)
    };
    match content {
        Value::String(text) => Some(text.clone()),
        Value::Array(parts) => parts.iter().map(text).collect(),
        _ => None,
    }
}

/// What a question is answered with: a text as it is, any other value as JSON.
pub(crate) fn answer_text(answer: Value) -> Result<String, Problem> {
    match answer {
        Value::String(text) => Ok(text),
        Value::Null => Err(Problem::new(StatusCode::BAD_REQUEST, "the answer is missing: it is `null`")),
        other => Ok(other.to_string()),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn origin(run: &RunRecord) -> Option<&GraphObject> {
    run.header.given.get("origin").and_then(GraphValue::as_object)?.get(SERVED).and_then(GraphValue::as_object)
}

/// Where it is to be told what becomes of a run that is to begin.
pub(crate) fn webhook_of(given: &RunInput) -> Option<String> {
    webhook_in(given.origin.get(SERVED).and_then(GraphValue::as_object)?)
}

/// Where it was to be told what becomes of a run.
pub(crate) fn webhook_of_run(run: &RunRecord) -> Option<String> {
    webhook_in(origin(run)?)
}

fn webhook_in(served: &GraphObject) -> Option<String> {
    served.get(WEBHOOK).and_then(GraphValue::as_text).map(str::to_owned)
}

/// Has it told there what becomes of a run that is to begin.
pub(crate) fn with_webhook(mut given: RunInput, url: Option<String>) -> RunInput {
    if let Some(url) = url {
        let mut served = given.origin.get(SERVED).and_then(GraphValue::as_object).cloned().unwrap_or_default();
        served.insert(WEBHOOK, url.as_str().into());
        given.origin.insert(SERVED, GraphValue::Object(served));
    }
    given
}

/// Whether a server began a run, and so goes on with it.
pub(crate) fn is_ours(run: &RunRecord) -> bool {
    origin(run).is_some()
}

/// What a server that began a run keeps of that.
pub(crate) fn kept_of(run: &RunRecord) -> Object {
    origin(run).map(|origin| object((&GraphValue::Object(origin.clone())).into())).unwrap_or_default()
}

/// What was said about a run when it was begun.
pub(crate) fn metadata_of(run: &RunRecord) -> Object {
    metadata_in(origin(run))
}

/// What is said about a run that is to begin.
pub(crate) fn metadata_given(given: &RunInput) -> Object {
    metadata_in(given.origin.get(SERVED).and_then(GraphValue::as_object))
}

fn metadata_in(served: Option<&GraphObject>) -> Object {
    let metadata = served.and_then(|served| served.get("metadata"));
    metadata.map(|metadata| object(metadata.into())).unwrap_or_default()
}
