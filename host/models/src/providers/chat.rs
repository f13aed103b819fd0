//! Chat Completions with the conversation exactly as the caller gave it.
//!
//! The provider library shapes every history for its target: it joins neighbouring messages, drops blank ones,
//! answers calls that nobody answered and writes calls as text where a request offers no tools. For Chat
//! Completions none of that is needed, and a graph's author is owed what the graph says. So this wire lets the
//! library build the request (address, credentials, tools, limits, the quirks of each server) and read the
//! reply, and puts the messages in itself; arguments of calls go back as the model wrote them, broken or not.

use rig_core::providers::openai::wire::Chat;
use serde_json::{Map, Value, json};

use super::convert::{CHAT, Origin, recalled_turn};
use super::fields::{WithFields, settings};
use super::settings::Protocol;
use crate::{Message, Request, Role, ToolCallRequest};

/// The fields of an assistant message that carry reasoning back to its provider.
const REASONING_FIELDS: [&str; 4] = ["reasoning_content", "reasoning", "reasoning_text", "reasoning_details"];

/// `chat` for the conversation and the settings of a request; settings that are `None` are not sent.
pub(super) fn exact(chat: Chat, request: &Request, protocol: Protocol) -> WithFields<Chat> {
    let origin = Origin { api: CHAT, provider: chat.provider.dialect.name, model: &chat.model };
    let reasoning_field = chat.provider.dialect.quirks.reasoning_field;
    let messages = request.messages.iter().map(|message| message_json(message, &origin, reasoning_field)).collect();
    let mut fields = settings(request, protocol);
    fields.insert("messages".to_owned(), messages);
    WithFields::new(chat, fields)
}

fn message_json(message: &Message, origin: &Origin<'_>, reasoning_field: Option<&'static str>) -> Value {
    let mut json = Map::new();
    let role = match message.role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    };
    json.insert("role".to_owned(), json!(role));
    let only_calls = message.content.is_empty() && !message.tool_calls.is_empty();
    json.insert("content".to_owned(), if only_calls { Value::Null } else { json!(message.content) });
    if message.role == Role::Tool {
        json.insert("tool_call_id".to_owned(), json!(message.tool_call_id.as_deref().unwrap_or_default()));
    }
    if message.role == Role::Assistant {
        if !message.tool_calls.is_empty() {
            json.insert("tool_calls".to_owned(), message.tool_calls.iter().map(call_json).collect());
        }
        json.extend(reasoning(message, origin));
        if let Some(field) = reasoning_field {
            json.entry(field).or_insert_with(|| json!(""));
        }
    }
    Value::Object(json)
}

fn call_json(call: &ToolCallRequest) -> Value {
    json!({
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments},
    })
}

/// The reasoning that came with `message`, in the fields it came in, if the same model is asked again.
fn reasoning(message: &Message, origin: &Origin<'_>) -> Map<String, Value> {
    let Some(turn) = recalled_turn(message, origin) else {
        return Map::new();
    };
    let items = turn.content.iter().filter_map(|block| block.native_item()?.as_object());
    items
        .flatten()
        .filter(|(name, _)| REASONING_FIELDS.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}
