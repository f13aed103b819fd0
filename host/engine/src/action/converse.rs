//! Asking a model within a conversation that is kept in the state.

use std::time::Duration;

use hotcell_graph::conversation::{self, Speaker};
use hotcell_graph::ir::{ConverseAction, Graph, PromptPart, Retry};
use hotcell_graph::value::parse_json;
use hotcell_graph::{List, Object, State, Value};
use hotcell_models::{Message, ProviderState, Reply, Role, ToolCallRequest};

use super::Performed;
use super::answer_calls::within_reach;
use super::model::{Asked, Unanswered, ask};
use crate::context::Interruption;
use crate::event::Event;
use crate::turn::NodeTurn;

pub(super) async fn perform(
    turn: &mut NodeTurn,
    graph: &Graph,
    action: &ConverseAction,
    state: &State,
) -> Result<Performed, Interruption> {
    let messages = prompt(&action.prompt, state)?;
    let reach = within_reach(turn, graph, &action.tools, state)?;
    let names: Vec<String> = reach.iter().map(|callable| callable.spec.name.clone()).collect();
    let tools: Vec<_> = reach.into_iter().map(|callable| callable.spec).collect();
    let settings = action.settings.or(&graph.model);
    let schema = action.output_schema.as_ref().map(serde_json::Value::from);
    let reply = loop {
        let asked = Asked {
            settings: &settings,
            messages: messages.clone(),
            tools: &tools,
            names: &names,
            output_schema: schema.clone(),
        };
        let error = match ask(turn, asked).await {
            Ok(reply) => break reply,
            Err(Unanswered::Stopped(stop)) => return Err(stop),
            Err(Unanswered::Refused(error)) => error,
        };
        let worth_it = action.retry.always || error.is_retryable();
        if !worth_it || turn.attempts >= action.retry.attempts {
            return Err(Interruption::Failed(error.to_string()));
        }
        tokio::time::sleep(pause(&action.retry, turn.attempts)).await;
        turn.attempts += 1;
        turn.emit(&Event::ModelRetried { node: &turn.node, error: &error.to_string(), attempt: turn.attempts });
    };
    Ok(Performed { answer: Some((action.bind, Value::Object(of_reply(&reply)))), ..Performed::default() })
}

/// The pause after this many attempts.
pub(super) fn pause(retry: &Retry, attempts: u32) -> Duration {
    let factor = if retry.grows { 2_u32.saturating_pow(attempts.saturating_sub(1)) } else { 1 };
    retry.pause.saturating_mul(factor).min(retry.longest_pause)
}

/// What the model is told.
fn prompt(parts: &[PromptPart], state: &State) -> Result<Vec<Message>, Interruption> {
    let mut messages = Vec::with_capacity(parts.len());
    for (place, part) in parts.iter().enumerate() {
        let failed = |problem: String| Interruption::Failed(format!("item {} of `prompt`: {problem}", place + 1));
        match part {
            PromptPart::Text(speaker, text) => {
                let text = text.evaluate_text(state).map_err(|error| failed(error.to_string()))?;
                messages.push(match speaker {
                    Speaker::System => Message::system(text),
                    Speaker::Ai => Message::assistant(text),
                    Speaker::Human | Speaker::Tool => Message::user(text),
                });
            }
            PromptPart::Messages(list) => match list.evaluate(state).map_err(|error| failed(error.to_string()))? {
                Value::List(list) => {
                    for value in list.iter() {
                        let message = conversation::to_message(value).map_err(&failed)?;
                        messages.push(of_state(&message));
                    }
                }
                other => return Err(failed(format!("it takes a list of messages, not {}", other.a_kind()))),
            },
        }
    }
    Ok(messages)
}

/// A message of the state, for a model.
fn of_state(message: &Object) -> Message {
    let text = |key: &str| message.get(key).and_then(Value::as_text).unwrap_or_default().to_owned();
    let role = match message.get("type").and_then(Value::as_text).and_then(Speaker::of_word) {
        Some(Speaker::System) => Role::System,
        Some(Speaker::Ai) => Role::Assistant,
        Some(Speaker::Tool) => Role::Tool,
        Some(Speaker::Human) | None => Role::User,
    };
    let calls = conversation::tool_calls(&Value::Object(message.clone()));
    let provider_state = message.get("provider_state").map(serde_json::Value::from);
    Message {
        role,
        content: text("content"),
        tool_calls: calls.iter().filter_map(Value::as_object).map(call).collect(),
        tool_call_id: (role == Role::Tool).then(|| text("tool_call_id")),
        provider_state: provider_state.and_then(|state| serde_json::from_value::<ProviderState>(state).ok()),
    }
}

/// A call of a message, as the model wrote it.
pub(super) fn call(call: &Object) -> ToolCallRequest {
    let text = |key: &str| call.get(key).and_then(Value::as_text).map(str::to_owned);
    let written = || call.get("args").map_or_else(|| "{}".to_owned(), Value::to_json);
    ToolCallRequest {
        id: text("id").unwrap_or_default(),
        name: text("name").unwrap_or_default(),
        arguments: text("arguments").unwrap_or_else(written),
    }
}

/// A model's reply as a message of the state.
fn of_reply(reply: &Reply) -> Object {
    let mut message = conversation::message(Speaker::Ai, reply.content.as_str());
    message.insert("role", Speaker::Ai.word().into());
    let calls: List = reply.tool_calls.iter().map(|call| Value::Object(of_call(call))).collect();
    message.insert("tool_calls", Value::List(calls));
    if let Some(state) = reply.provider_state.as_ref().and_then(|state| serde_json::to_value(state).ok()) {
        message.insert("provider_state", Value::from(&state));
    }
    message
}

fn of_call(call: &ToolCallRequest) -> Object {
    let mut object = Object::default();
    object.insert("id", call.id.as_str().into());
    object.insert("name", call.name.as_str().into());
    let arguments = if call.arguments.trim().is_empty() { "{}" } else { &call.arguments };
    match parse_json(arguments) {
        Ok(arguments @ Value::Object(_)) => object.insert("args", arguments),
        _ => {
            object.insert("args", Object::default().into());
            object.insert("arguments", arguments.into());
        }
    }
    object
}
