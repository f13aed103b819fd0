//! Bodies of replies in the OpenAI form: one document, or a stream of chunks.

use hyper::StatusCode;
use serde_json::{Value, json};

use crate::{
    request::ModelRequest,
    responses,
    script::{Message, ScriptedReply},
};

/// How many characters of a text or of arguments go into one chunk: few, so that clients have something to join.
const CHUNK_CHARACTERS: usize = 7;

/// A whole answer, ready to be sent.
pub(crate) struct HttpReply {
    pub(crate) status: StatusCode,
    pub(crate) content_type: &'static str,
    /// Further headers
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl HttpReply {
    pub(crate) fn json(status: StatusCode, body: &Value) -> Self {
        Self { status, content_type: "application/json", headers: Vec::new(), body: body.to_string() }
    }

    /// An error as OpenAI words it; without a message, the name of the status is one.
    pub(crate) fn error(status: StatusCode, message: Option<&str>) -> Self {
        let message = message.or(status.canonical_reason()).unwrap_or("the scripted model failed");
        Self::json(status, &json!({"error": {"message": message, "type": "scripted"}}))
    }

    /// The `message` as an answer to `request`; `number` makes ids unique.
    pub(crate) fn message(number: usize, request: &ModelRequest, reply: &ScriptedReply, message: &Message) -> Self {
        // What Responses calls its messages, Chat Completions has not.
        let of_responses = request.body.get("input").is_some();
        if request.stream {
            let body = match of_responses {
                true => responses::stream(number, request, reply, message),
                false => stream(number, request, reply, message),
            };
            return Self { status: StatusCode::OK, content_type: "text/event-stream", headers: Vec::new(), body };
        }
        if of_responses {
            return Self::json(StatusCode::OK, &responses::reply(number, request, reply, message));
        }
        let mut answer = json!({"role": "assistant", "content": message.content});
        if !message.tool_calls.is_empty() {
            answer["tool_calls"] = calls(number, message).collect();
        }
        Self::json(
            StatusCode::OK,
            &json!({
                "id": format!("chatcmpl-{number}"),
                "object": "chat.completion",
                "created": 0,
                "model": request.model,
                "choices": [{"index": 0, "message": answer, "finish_reason": finish_reason(message)}],
                "usage": usage(reply),
            }),
        )
    }
}

fn calls(number: usize, message: &Message) -> impl Iterator<Item = Value> {
    message.tool_calls.iter().enumerate().map(move |(index, (name, arguments))| {
        json!({
            "id": format!("call_{number}_{index}"),
            "type": "function",
            "function": {"name": name, "arguments": arguments},
        })
    })
}

fn finish_reason(message: &Message) -> &'static str {
    if message.tool_calls.is_empty() { "stop" } else { "tool_calls" }
}

fn usage(reply: &ScriptedReply) -> Value {
    json!({
        "prompt_tokens": reply.prompt_tokens,
        "completion_tokens": reply.completion_tokens,
        "total_tokens": reply.prompt_tokens + reply.completion_tokens,
    })
}

fn stream(number: usize, request: &ModelRequest, reply: &ScriptedReply, message: &Message) -> String {
    let mut deltas = vec![json!({"role": "assistant", "content": ""})];
    for piece in pieces(message.content.as_deref().unwrap_or_default()) {
        deltas.push(json!({"content": piece}));
    }
    for (index, (name, arguments)) in message.tool_calls.iter().enumerate() {
        let id = format!("call_{number}_{index}");
        let opening =
            json!({"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": ""}});
        deltas.push(json!({"tool_calls": [opening]}));
        for piece in pieces(arguments) {
            deltas.push(json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}));
        }
    }
    let chunk = |choices: Value, usage: Value| {
        let chunk = json!({
            "id": format!("chatcmpl-{number}"),
            "object": "chat.completion.chunk",
            "created": 0,
            "model": request.model,
            "choices": choices,
            "usage": usage,
        });
        format!("data: {chunk}\n\n")
    };
    let mut body: String = deltas
        .into_iter()
        .map(|delta| chunk(json!([{"index": 0, "delta": delta, "finish_reason": null}]), Value::Null))
        .collect();
    body += &chunk(json!([{"index": 0, "delta": {}, "finish_reason": finish_reason(message)}]), Value::Null);
    if request.body["stream_options"]["include_usage"] == true {
        body += &chunk(json!([]), usage(reply));
    }
    body + "data: [DONE]\n\n"
}

pub(crate) fn pieces(text: &str) -> impl Iterator<Item = String> {
    let characters: Vec<char> = text.chars().collect();
    let pieces: Vec<String> = characters.chunks(CHUNK_CHARACTERS).map(|piece| piece.iter().collect()).collect();
    pieces.into_iter()
}
