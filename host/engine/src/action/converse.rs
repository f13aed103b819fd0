//! Asking a model within a conversation that is kept in the state.

mod window;

use std::time::Duration;

use hotcell_graph::conversation::{self, Speaker};
use hotcell_graph::ir::{ConverseAction, Graph, KeptArguments, ModelSettings, PromptPart, Retry, RetryOn, Said};
use hotcell_graph::value::{Number, parse_json};
use hotcell_graph::{List, Object, State, Value};
use hotcell_journal::Write;
use hotcell_models::{Message, ModelError, ProviderState, Reply, Role, ToolCallRequest};

use super::Performed;
use super::answer_calls::within_reach;
use super::model::{Asked, Unanswered, ask};
use crate::context::Interruption;
use crate::event::Event;
use crate::turn::NodeTurn;

/// What is said of a reply in which there is nothing.
const NO_OUTPUT: &str = "the model produced no output";

pub(super) async fn perform(
    turn: &mut NodeTurn,
    graph: &Graph,
    action: &ConverseAction,
    state: &State,
) -> Result<Performed, Interruption> {
    let messages = prompt(action, state)?;
    let reach = within_reach(turn, graph, &action.tools, state)?;
    let names: Vec<String> = reach.iter().map(|callable| callable.name().to_owned()).collect();
    let tools: Vec<_> = reach.into_iter().map(|callable| callable.spec).collect();
    let defaults = turn.context.defaults(graph).clone();
    let schema = action.output_schema.as_ref().map(serde_json::Value::from);
    if let Some(Value::Number(attempts)) = action.attempts.as_ref().and_then(|key| state.get(key)) {
        turn.attempts = attempts.to_f64() as u32;
    }
    let mut fallbacks: Vec<ModelSettings> = action.fallbacks.iter().rev().map(|model| model.or(&defaults)).collect();
    let mut settings = action.settings.or(&defaults);
    let mut first_attempt = 1;
    let reply = loop {
        let asked = Asked {
            settings: &settings,
            messages: messages.clone(),
            tools: &tools,
            names: &names,
            output_schema: schema.clone(),
            forbidden: &action.forbidden,
        };
        let (error, worth_it) = match ask(turn, asked).await {
            Ok(reply) if action.needs_text && is_empty(&reply) => (NO_OUTPUT.to_owned(), true),
            Ok(reply) => break reply,
            Err(Unanswered::Stopped(stop)) => return Err(stop),
            Err(Unanswered::Refused(error)) => (error.to_string(), is_worth_it(&action.retry, &error)),
        };
        let made = turn.attempts + 1 - first_attempt;
        if worth_it && made < action.retry.attempts {
            tokio::time::sleep(pause(&action.retry, made)).await;
        } else if let Some(fallback) = fallbacks.pop() {
            settings = fallback;
            first_attempt = turn.attempts + 1;
        } else {
            let before = action.refused_as.as_deref().unwrap_or_default();
            return Err(Interruption::Failed(format!("{before}{error}")));
        }
        turn.attempts += 1;
        turn.emit(&Event::ModelRetried { node: &turn.node, error: &error, attempt: turn.attempts });
    };
    let attempts = |key: &hotcell_graph::Key| {
        let made = turn.attempts.max(1);
        Write { key: key.clone(), value: Value::Number(Number::Int(i64::from(made))) }
    };
    let writes = action.attempts.iter().map(attempts).collect();
    let answer = Some((action.bind, Value::Object(of_reply(&reply, action.arguments))));
    Ok(Performed { answer, writes, ..Performed::default() })
}

fn is_empty(reply: &Reply) -> bool {
    reply.tool_calls.is_empty() && reply.content.trim().is_empty()
}

/// Whether another attempt may help after this refusal.
fn is_worth_it(retry: &Retry, error: &ModelError) -> bool {
    match retry.on {
        RetryOn::Transient => error.is_transient(),
        RetryOn::Retryable => error.is_retryable(),
        RetryOn::Any => true,
    }
}

/// The pause after this many attempts.
pub(super) fn pause(retry: &Retry, attempts: u32) -> Duration {
    let factor = if retry.grows { 2_u32.saturating_pow(attempts.saturating_sub(1)) } else { 1 };
    retry.pause.saturating_mul(factor).min(retry.longest_pause)
}

/// What the model is told.
fn prompt(action: &ConverseAction, state: &State) -> Result<Vec<Message>, Interruption> {
    let mut messages = Vec::with_capacity(action.prompt.len());
    // The messages that come from lists, which a window may leave out.
    let mut listed = Vec::new();
    for PromptPart { name, said } in &action.prompt {
        let failed = |problem: String| Interruption::Failed(format!("{name}: {problem}"));
        match said {
            Said::Text(speaker, text) => {
                let text = text.evaluate_text(state).map_err(|error| failed(error.to_string()))?;
                messages.push(match speaker {
                    Speaker::System => Message::system(text),
                    Speaker::Ai => Message::assistant(text),
                    Speaker::Human | Speaker::Tool => Message::user(text),
                });
            }
            Said::Messages(list) => match list.evaluate(state).map_err(|error| failed(error.to_string()))? {
                Value::List(list) => {
                    let from = messages.len();
                    for value in list.iter() {
                        let message = conversation::to_message(value).map_err(&failed)?;
                        messages.push(of_state(&message));
                    }
                    listed.push(from..messages.len());
                }
                other => return Err(failed(format!("it takes a list of messages, not {}", other.a_kind()))),
            },
        }
    }
    if let Some(window) = &action.window {
        window::trim(window, &mut messages, &listed);
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
fn of_reply(reply: &Reply, kept: KeptArguments) -> Object {
    let mut message = conversation::message(Speaker::Ai, reply.content.as_str());
    message.insert("role", Speaker::Ai.word().into());
    let calls: List = reply.tool_calls.iter().map(|call| Value::Object(of_call(call, kept))).collect();
    message.insert("tool_calls", Value::List(calls));
    if let Some(state) = reply.provider_state.as_ref().and_then(|state| serde_json::to_value(state).ok()) {
        message.insert("provider_state", Value::from(&state));
    }
    message
}

fn of_call(call: &ToolCallRequest, kept: KeptArguments) -> Object {
    let mut object = Object::default();
    object.insert("id", call.id.as_str().into());
    object.insert("name", call.name.as_str().into());
    let arguments = if call.arguments.trim().is_empty() { "{}" } else { &call.arguments };
    match parse_json(arguments) {
        Ok(values @ Value::Object(_)) => {
            object.insert("args", values);
            if kept == KeptArguments::Text {
                object.insert("arguments", call.arguments.as_str().into());
            }
        }
        _ => {
            object.insert("args", Object::default().into());
            object.insert("arguments", arguments.into());
        }
    }
    object
}
