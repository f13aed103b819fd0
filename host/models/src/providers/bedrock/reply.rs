//! Replies of Converse, whole or as a stream of events.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::super::bounded;
use super::frames::Frame;
use super::{Access, REASONING};
use crate::{Finish, ModelError, ProviderState, Reply, TokenUsage, ToolCallRequest, untrusted::shown};

/// A reply that came as a whole.
pub(super) fn whole(body: &[u8], model: &str) -> Result<Reply, ModelError> {
    let body = bounded::read(body).map_err(|error| malformed(&error.to_string()))?;
    let content = body.pointer("/output/message/content").and_then(Value::as_array);
    let blocks = content.ok_or_else(|| malformed("it has no message"))?;
    let stop = body.get("stopReason").and_then(Value::as_str).unwrap_or_default();
    Ok(reply(blocks, stop, usage(body.get("usage")), model))
}

/// A reply that comes in events.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    blocks: BTreeMap<u64, Value>,
    stop: Option<String>,
    usage: TokenUsage,
}

impl Gathered {
    /// Takes an event; what it says of the text of the reply is given back.
    ///
    /// # Errors
    ///
    /// When it reports a failure, or is none.
    pub(super) fn take(&mut self, frame: &Frame, access: &Access) -> Result<Option<String>, ModelError> {
        let payload = || bounded::read(&frame.payload).map_err(|error| malformed(&error.to_string()));
        match frame.header(":message-type") {
            "event" => {}
            "exception" => return Err(exception(frame.header(":exception-type"), &frame.payload, access)),
            "error" => {
                let said = [frame.header(":error-code"), frame.header(":error-message")].join(" ");
                return Err(ModelError::Reported { message: access.shown(&said) });
            }
            _ => return Ok(None),
        }
        match frame.header(":event-type") {
            "contentBlockStart" => {
                let event = payload()?;
                if let Some(Value::Object(call)) = event.pointer("/start/toolUse") {
                    let mut call = call.clone();
                    call.insert("input".to_owned(), json!(""));
                    self.blocks.insert(index(&event), json!({ "toolUse": call }));
                }
                Ok(None)
            }
            "contentBlockDelta" => {
                let event = payload()?;
                let block = self.blocks.entry(index(&event)).or_insert_with(|| json!({}));
                Ok(event.get("delta").and_then(|delta| grow(block, delta)))
            }
            "messageStop" => {
                let event = payload()?;
                self.stop = Some(event.get("stopReason").and_then(Value::as_str).unwrap_or_default().to_owned());
                Ok(None)
            }
            "metadata" => {
                self.usage = usage(payload()?.get("usage"));
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    /// The reply, after the last event.
    ///
    /// # Errors
    ///
    /// When it was not the last one.
    pub(super) fn finish(self, model: &str) -> Result<Reply, ModelError> {
        let stop = self.stop.ok_or_else(|| malformed("it stops before its end"))?;
        let blocks: Vec<Value> = self.blocks.into_values().collect();
        Ok(reply(&blocks, &stop, self.usage, model))
    }
}

fn index(event: &Value) -> u64 {
    event.get("contentBlockIndex").and_then(Value::as_u64).unwrap_or(0)
}

/// Adds what an event says to its block, and gives back what of it is text of the reply.
fn grow(block: &mut Value, delta: &Value) -> Option<String> {
    let block = block.as_object_mut()?;
    if let Some(text) = delta.get("text").and_then(Value::as_str) {
        append(block, "text", text);
        return Some(text.to_owned());
    }
    if let Some(piece) = delta.pointer("/toolUse/input").and_then(Value::as_str) {
        append(block.get_mut("toolUse")?.as_object_mut()?, "input", piece);
    }
    let thought = delta.get("reasoningContent")?;
    let kept = block.entry("reasoningContent").or_insert_with(|| json!({})).as_object_mut()?;
    for name in ["text", "signature"] {
        if let Some(piece) = thought.get(name).and_then(Value::as_str) {
            append(kept.entry("reasoningText").or_insert_with(|| json!({})).as_object_mut()?, name, piece);
        }
    }
    if let Some(hidden) = thought.get("redactedContent") {
        kept.insert("redactedContent".to_owned(), hidden.clone());
    }
    None
}

fn append(object: &mut Map<String, Value>, name: &str, piece: &str) {
    match object.get_mut(name) {
        Some(Value::String(text)) => text.push_str(piece),
        _ => {
            object.insert(name.to_owned(), json!(piece));
        }
    }
}

/// The reply in our terms.
fn reply(blocks: &[Value], stop: &str, usage: TokenUsage, model: &str) -> Reply {
    let content = blocks.iter().filter_map(|block| block.get("text")?.as_str()).collect();
    let tool_calls = blocks.iter().filter_map(|block| call(block.get("toolUse")?)).collect();
    let thoughts: Vec<&Value> = blocks.iter().filter(|block| block.get("reasoningContent").is_some()).collect();
    let state = json!({ REASONING: { "model": model, "blocks": thoughts } });
    let finish = match stop {
        "end_turn" | "stop_sequence" => Finish::Stop,
        "tool_use" => Finish::ToolCalls,
        "max_tokens" | "model_context_window_exceeded" => Finish::Length,
        "guardrail_intervened" | "content_filtered" => Finish::Filtered,
        other => Finish::Other(shown(other)),
    };
    let provider_state = (!thoughts.is_empty()).then_some(ProviderState(state));
    Reply { content, tool_calls, usage, finish, provider_state }
}

fn call(block: &Value) -> Option<ToolCallRequest> {
    let text = |name| block.get(name).and_then(Value::as_str).map(str::to_owned);
    let arguments = match block.get("input") {
        // A stream has the arguments as a text, and none where the tool takes none.
        Some(Value::String(text)) if text.is_empty() => "{}".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(arguments) => arguments.to_string(),
        None => "{}".to_owned(),
    };
    Some(ToolCallRequest { id: text("toolUseId")?, name: text("name")?, arguments })
}

/// Tokens, those that were kept from earlier requests with them.
fn usage(usage: Option<&Value>) -> TokenUsage {
    let count = |name: &str| usage.and_then(|usage| usage.get(name)).and_then(Value::as_u64).unwrap_or(0);
    let kept = count("cacheReadInputTokens").saturating_add(count("cacheWriteInputTokens"));
    TokenUsage { input: count("inputTokens").saturating_add(kept), output: count("outputTokens") }
}

/// A failure inside a stream, as the status that it would have had before the stream.
fn exception(kind: &str, payload: &[u8], access: &Access) -> ModelError {
    let body = bounded::read(payload).unwrap_or_default();
    let said = body.get("message").or_else(|| body.get("Message")).and_then(Value::as_str).unwrap_or_default();
    let status = match kind {
        "throttlingException" => 429,
        "serviceUnavailableException" => 503,
        "internalServerException" => 500,
        "modelStreamErrorException" => 424,
        "modelTimeoutException" => 408,
        "validationException" => 400,
        _ => return ModelError::Reported { message: access.shown(&format!("{kind} {said}")) },
    };
    ModelError::Status { status, message: access.shown(said) }
}

pub(super) fn malformed(reason: &str) -> ModelError {
    ModelError::Malformed { reason: shown(reason) }
}
