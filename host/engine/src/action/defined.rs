//! Tools that a graph defines itself: their inputs made ready, the work done by whoever does it.

use hotcell_budget::Account;
use hotcell_graph::ir::{Arguments, NoValue, Retry, Slot, Tool, ToolAction, ToolKind, UrlPart, WebAnswer, WebRequest};
use hotcell_graph::types::{pointer_step, schema_at, to_text};
use hotcell_graph::value::{JsonError, parse_json};
use hotcell_graph::{Object, State, Value};
use hotcell_models::ToolSpec;
use serde_json::json;
use thiserror::Error;

use super::Performed;
use super::arguments;
use super::call::{Heard, consult_graph};
use super::given::given;
use super::model::pause;
use super::tool::{self, Called, ToolFailure};
use crate::context::Interruption;
use crate::event::Event;
use crate::memory::Deed;
use crate::ports::{PortError, WebCall, WebFailure, WebReply};
use crate::turn::NodeTurn;
use crate::what_if::Outward;
use hotcell_journal::{ClientCall, Question};

/// A node that calls a tool. A failure of the tool is one of the node.
pub(super) async fn perform(
    turn: &mut NodeTurn,
    action: &ToolAction,
    state: &State,
) -> Result<Performed, Interruption> {
    let inputs = given(&action.inputs, state).map_err(|problem| {
        // The state of the turn stays as it is.
        turn.give_up();
        Interruption::Failed(problem)
    })?;
    let mut inputs = inputs.as_object().cloned().unwrap_or_default();
    // What asks somebody, a server or a graph has room of its own, as in `perform` of every action.
    if action.tool.confirm && !Box::pin(may_call(turn, &action.tool.name, &Value::Object(inputs.clone()))).await? {
        return Err(Interruption::Failed(format!("tool `{}`: {NOT_ALLOWED}", action.tool.name)));
    }
    if action.arguments != Arguments::AsTheyAre
        && let ToolKind::Host(name) = &action.tool.kind
    {
        let tools = turn.context.ports.tools.clone();
        let parameters = tools.parameters(name);
        let parameters = parameters.ok_or_else(|| Interruption::Failed(format!("there is no tool `{name}`")))?;
        inputs = arguments::fit(&parameters, inputs, action.arguments).map_err(|problem| {
            // The same arguments will not fit another time.
            turn.give_up();
            Interruption::Failed(format!("the arguments of the tool `{}` do not fit: {problem}", action.tool.name))
        })?;
    }
    let value = call(turn, &action.tool, inputs, state).await?;
    let value = value.map_err(|failure| failure.stop(|reason| format!("tool `{}`: {reason}", action.tool.name)))?;
    Ok(Performed { answer: Some((action.bind, value)), ..Performed::default() })
}

/// What is said of a call that a person did not allow.
pub(super) const NOT_ALLOWED: &str = "the user did not allow this call";
/// The answers to the question whether a tool may be called.
const ANSWERS: [&str; 2] = ["approved", "rejected"];

/// Asks a person whether a tool may be called.
pub(super) async fn may_call(turn: &mut NodeTurn, tool: &str, arguments: &Value) -> Result<bool, Interruption> {
    let question = Question {
        node: turn.node.to_string(),
        text: format!("May `{tool}` be called with {arguments}?"),
        options: ANSWERS.map(str::to_owned).to_vec(),
        ..Question::default()
    };
    let answer = turn.ask(question).await?;
    Ok(answer.trim().eq_ignore_ascii_case(ANSWERS[0]))
}

/// What a model is told about a tool.
pub(super) fn describe(tool: &Tool) -> ToolSpec {
    ToolSpec { name: tool.spoken.clone(), description: tool.description.clone(), parameters: parameters(&tool.inputs) }
}

/// The JSON schema of an object with these entries.
pub(super) fn parameters(slots: &[Slot]) -> serde_json::Value {
    let schema = |slot: &Slot| {
        let place = format!("/properties/{}", pointer_step(&slot.name));
        serde_json::Value::from(&schema_at(&slot.schema, &place))
    };
    let properties: serde_json::Map<String, serde_json::Value> =
        slots.iter().map(|slot| (slot.name.to_string(), schema(slot))).collect();
    let required: Vec<&str> = slots.iter().filter(|slot| slot.default.is_none()).map(|slot| &*slot.name).collect();
    json!({ "type": "object", "properties": properties, "required": required })
}

/// The values of slots by their types: those that are given, defaults for the others. The errors name their slots.
pub(super) fn fill(slots: &[Slot], given: &Object, what: &str) -> Result<Object, Vec<String>> {
    let mut filled = Object::default();
    let mut problems = Vec::new();
    for slot in slots {
        let Some(value) = given.get(&slot.name).or(slot.default.as_ref()) else {
            problems.push(format!("the {what} `{}` is missing", slot.name));
            continue;
        };
        match slot.ty.convert(value) {
            Ok(value) => filled.insert(slot.name.clone(), value),
            Err(mismatch) => problems.push(format!("{what} `{}`: {mismatch}", slot.name)),
        }
    }
    if problems.is_empty() { Ok(filled) } else { Err(problems) }
}

/// Calls a tool with inputs that are ready. `Err` inside is what the tool, or the way to it, says.
pub(super) async fn call(
    turn: &mut NodeTurn,
    tool: &Tool,
    inputs: Object,
    state: &State,
) -> Result<Result<Value, ToolFailure>, Interruption> {
    match &tool.kind {
        ToolKind::Host(name) => host(turn, tool, name, inputs, state).await,
        ToolKind::Client => Box::pin(client(turn, tool, inputs)).await,
        ToolKind::Web(request) => Box::pin(web(turn, tool, request, inputs)).await,
        ToolKind::Graph(nested) => {
            let consulted = Box::pin(consult_graph(turn, tool, &nested.0, inputs, Heard::default())).await?;
            Ok(consulted.result)
        }
        ToolKind::Note(answer) => Ok(Ok(Value::from(*answer))),
        ToolKind::Refused(reason) => Ok(Err(reason.clone().into())),
    }
}

async fn host(
    turn: &mut NodeTurn,
    tool: &Tool,
    name: &str,
    inputs: Object,
    state: &State,
) -> Result<Result<Value, ToolFailure>, Interruption> {
    let arguments = Value::Object(inputs).to_json();
    let shared = turn.context.seen_by_tools(state);
    tool::call_to_the_end(turn, name, &tool.spoken, &arguments, &shared, None).await
}

/// Whoever runs the graph does the work: the run waits for the result.
pub(super) async fn client(
    turn: &mut NodeTurn,
    tool: &Tool,
    inputs: Object,
) -> Result<Result<Value, ToolFailure>, Interruption> {
    let arguments = Value::Object(inputs);
    let question = Question {
        node: turn.node.to_string(),
        text: format!("the client has to call `{}` with {arguments} and hand in the result", tool.name),
        call: Some(ClientCall { tool: tool.name.to_string(), arguments }),
        ..Question::default()
    };
    Ok(ClientCall::result_of(&turn.ask(question).await?).map_err(ToolFailure::from))
}

async fn web(
    turn: &mut NodeTurn,
    tool: &Tool,
    request: &WebRequest,
    inputs: Object,
) -> Result<Result<Value, ToolFailure>, Interruption> {
    let call = match prepare(request, &inputs) {
        Ok(call) => call,
        Err(problem) => return Ok(Err(problem.to_string().into())),
    };
    let (node, place, arguments) = (turn.node.clone(), turn.place.clone(), Value::Object(inputs).to_json());
    let deed = Deed::new("web", &tool.name, &[&arguments]);
    let site = turn.site();
    let outcome = turn
        .effect(deed, |context| async move {
            let mut used = Account::default();
            if !site.may(Outward::Http) {
                let address = call.url.split(['?', '#']).next().unwrap_or_default();
                site.withhold(format_args!("`{} {address}`", call.method));
                return (used, Err(Interruption::Waiting));
            }
            let mut attempt = 1;
            let begun = context.ports.clock.elapsed();
            let result = loop {
                let report = context.ports.web.send(call.clone(), context.budget_scope.clone()).await;
                used += report.account;
                let helps = |retry: &&Retry| attempt < retry.attempts && is_worth_it(retry, &report.result);
                match request.retry.as_ref().filter(helps) {
                    Some(retry) => {
                        let status = report.result.as_ref().ok().map(|reply| reply.status);
                        context.ports.clock.pause(pause(retry, attempt, status)).await;
                    }
                    None => break report.result.map_err(|failure| failure.error),
                }
                attempt += 1;
            };
            let called = match result.map_err(WebError::from).and_then(|answer| read(request.answer, &answer)) {
                Ok(value) => Called { key: "value", value },
                Err(problem) => Called::error(problem.to_string()),
            };
            let error = called.failure();
            let (tool, usage) = (&tool.name, used.total());
            context.ports.observer.event(&Event::ToolCalled {
                node: &node,
                tool,
                place: place.as_str(),
                arguments: &arguments,
                error: error.as_deref(),
                usage: &usage,
                elapsed: context.ports.clock.elapsed().saturating_sub(begun),
            });
            (used, Ok(called.into_value()))
        })
        .await?;
    Ok(match ToolFailure::of(&outcome) {
        Some(failure) => Err(failure),
        None => Ok(outcome.as_object().and_then(|object| object.get("value")).cloned().unwrap_or_default()),
    })
}

/// Whether another attempt may help after this answer.
fn is_worth_it(retry: &Retry, result: &Result<WebReply, WebFailure>) -> bool {
    match result {
        Ok(reply) => reply.status >= 400 && retry.on.answer(reply.status, &reply.body),
        Err(failure) => failure.may_pass,
    }
}

/// Whether an address begins as one of these does: the same scheme and server, and a path that goes on from theirs.
fn is_allowed(url: &str, beginnings: &[String]) -> bool {
    let parts = |url: &str| {
        let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
        let (server, path) = rest.split_at(rest.find(['/', '\\', '?', '#']).unwrap_or(rest.len()));
        let path = path.split(['?', '#']).next().unwrap_or_default();
        let path = if path.is_empty() { "/" } else { path };
        (scheme.to_ascii_lowercase(), server.to_ascii_lowercase(), path.to_owned())
    };
    let (scheme, server, path) = parts(url);
    beginnings.iter().map(|beginning| parts(beginning)).any(|(of_scheme, of_server, of_path)| {
        (&scheme, &server) == (&of_scheme, &of_server) && path.starts_with(&*of_path)
    })
}

/// Why a request cannot be made, or its answer cannot be taken.
#[derive(Debug, Error)]
enum WebError {
    /// A part of the request has no value
    #[error("{part}: {cause}")]
    Part {
        part: &'static str,
        #[source]
        cause: NoValue,
    },
    #[error("an input makes a part of the path `.` or `..`, which would lead elsewhere: `{0}`")]
    Elsewhere(String),
    #[error("the address `{url}` does not begin as one that is allowed: {allowed}")]
    NotAllowed {
        url: String,
        /// All beginnings that are allowed
        allowed: String,
    },
    /// The status, and what the server says to it
    #[error("the server answered with the status {0}{1}")]
    Status(u16, String),
    #[error("the answer is not JSON: {0}")]
    NotJson(#[from] JsonError),
    #[error("the answer has to be a JSON object, and is {0}")]
    NoObject(&'static str),
    #[error(transparent)]
    Port(#[from] PortError),
}

/// The request for these inputs.
fn prepare(request: &WebRequest, inputs: &Object) -> Result<WebCall, WebError> {
    let scope = State::from_object(inputs);
    let mut url = String::new();
    for part in &request.url {
        let text = |value: &hotcell_graph::ir::Expression| {
            let value = value.evaluate(&scope).map_err(|cause| WebError::Part { part: "the address", cause })?;
            Ok::<_, WebError>(to_text(&value))
        };
        match part {
            UrlPart::Literal(text) => url.push_str(text),
            UrlPart::Raw(value) => url.push_str(&text(value)?),
            UrlPart::Encoded(value) => encode(&text(value)?, &mut url),
        }
    }
    if leaves_its_place(&url) {
        return Err(WebError::Elsewhere(url));
    }
    if let Some(allowed) = request.allowed.as_ref().filter(|allowed| !is_allowed(&url, allowed)) {
        let allowed = allowed.iter().map(|one| format!("`{one}`")).collect::<Vec<_>>().join(", ");
        return Err(WebError::NotAllowed { url, allowed });
    }
    let value = |part: &'static str, expression: &hotcell_graph::ir::Expression| {
        expression.evaluate(&scope).map_err(|cause| WebError::Part { part, cause })
    };
    let entries = |part: &'static str, expression: &hotcell_graph::ir::Expression| {
        let value = value(part, expression)?;
        let entries = value.as_object().cloned().unwrap_or_default();
        Ok::<_, WebError>(entries.iter().map(|(name, value)| (name.to_string(), to_text(value))).collect::<Vec<_>>())
    };
    let body = value("the body", &request.body)?;
    Ok(WebCall {
        time: request.retry.as_ref().and_then(|retry| retry.time),
        method: to_text(&value("the method", &request.method)?),
        url,
        query: entries("the query", &request.query)?,
        headers: entries("the headers", &request.headers)?,
        body: (body != Value::Null).then_some(body),
    })
}

/// Whether a segment of the path means the one around it or itself, however it is written.
fn leaves_its_place(url: &str) -> bool {
    let path = url.split_once("://").map_or(url, |(_, rest)| rest);
    let path = path.split(['?', '#']).next().unwrap_or_default();
    path.split('/').any(|segment| matches!(&*segment.to_ascii_lowercase().replace("%2e", "."), "." | ".."))
}

/// A text that stays within its segment of a path, and within its part of a query.
fn encode(text: &str, out: &mut String) {
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(byte as char),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
}

/// What a graph takes of an answer.
fn read(wanted: WebAnswer, reply: &WebReply) -> Result<Value, WebError> {
    let WebReply { status, body } = reply;
    if !(200..300).contains(status) {
        let shown: String = body.chars().take(200).collect();
        let says = if shown.trim().is_empty() { String::new() } else { format!(": {}", shown.escape_debug()) };
        return Err(WebError::Status(*status, says));
    }
    if wanted == WebAnswer::Text {
        return Ok(Value::text(body.as_str()));
    }
    let value = parse_json(body)?;
    match (wanted, &value) {
        (WebAnswer::Object, Value::Object(_)) | (WebAnswer::Json | WebAnswer::Text, _) => Ok(value),
        (WebAnswer::Object, other) => Err(WebError::NoObject(other.a_kind())),
    }
}
