//! Chat Completions with the conversation exactly as the caller gave it.
//!
//! The provider library shapes every history for its target: it joins neighbouring messages, drops blank ones,
//! answers calls that nobody answered and writes calls as text where a request offers no tools. For Chat
//! Completions none of that is needed, and a graph's author is owed what the graph says. So this wire lets the
//! library build the request (address, credentials, tools, limits, the quirks of each server) and read the
//! reply, and puts the messages in itself; arguments of calls go back as the model wrote them, broken or not.

use rig_core::{
    completion::CompletionRequest,
    error::EncodeError,
    operation::Completion,
    providers::openai::wire::Chat,
    wire::{Body, Descriptor, Encoded, Mode, Wire, WireFrame},
};
use serde_json::{Map, Value, json};

use super::convert::{Origin, recalled_turn};
use crate::{Message, Request, Role, ToolCallRequest};

/// The name under which the library records turns of this wire.
pub(super) const API: &str = "openai.chat";

/// The fields of an assistant message that carry reasoning back to its provider.
const REASONING_FIELDS: [&str; 4] = ["reasoning_content", "reasoning", "reasoning_text", "reasoning_details"];

/// The library's wire with these fields of the body replaced.
#[derive(Debug, Clone)]
pub(super) struct ExactChat {
    chat: Chat,
    fields: Map<String, Value>,
}

impl ExactChat {
    /// `chat` for the conversation and the settings of a request; settings that are `None` are not sent.
    pub(super) fn new(chat: Chat, request: &Request) -> Self {
        let origin = Origin { api: API, provider: chat.provider.dialect.name, model: &chat.model };
        let reasoning_field = chat.provider.dialect.quirks.reasoning_field;
        let messages = request.messages.iter().map(|message| message_json(message, &origin, reasoning_field)).collect();
        let mut fields = request.more.clone();
        fields.insert("messages".to_owned(), messages);
        for (name, setting) in [("temperature", request.temperature), ("top_p", request.top_p)] {
            if let Some(value) = setting {
                fields.insert(name.to_owned(), json!(value));
            }
        }
        Self { chat, fields }
    }
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

impl Wire for ExactChat {
    type Op = Completion;
    type Payload = Encoded;
    type Frame = WireFrame;
    type Decoder<'id> = <Chat as Wire>::Decoder<'id>;
    type Reassembler = <Chat as Wire>::Reassembler;

    fn describe(&self) -> Descriptor<'_> {
        self.chat.describe()
    }

    fn encode(&self, request: CompletionRequest, mode: Mode) -> Result<Encoded, EncodeError> {
        let mut encoded = self.chat.encode(request, mode)?;
        let Body::Bytes(bytes) = encoded.request.body() else {
            return Err(EncodeError::request("the body of a chat request is not JSON"));
        };
        let mut body: Map<String, Value> = serde_json::from_slice(bytes)?;
        body.extend(self.fields.clone());
        *encoded.request.body_mut() = Body::Bytes(serde_json::to_vec(&body)?);
        Ok(encoded)
    }

    fn decoder<'id>(&self) -> Self::Decoder<'id> {
        self.chat.decoder()
    }

    fn reassembler(&self) -> Self::Reassembler {
        self.chat.reassembler()
    }
}
