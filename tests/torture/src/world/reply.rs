//! What the world replies, as a function of what it is asked.

use std::time::Duration;

use serde_json::{Value, json};

use super::http::{Answer, Request};
use super::mcp;
use crate::scenario::{Fault, ModelRule, Scenario};

/// A request that makes something happen, and the reply to it.
pub(crate) struct Effect<'a> {
    /// Stands for the content of the request, and stands in the reply
    pub(crate) token: String,
    pub(crate) shown: String,
    pub(crate) content: String,
    pub(crate) kind: &'static str,
    pub(crate) body: String,
    /// What may go wrong
    pub(crate) faults: &'a [Fault],
}

/// The effect that a request asks for; or the answer to a request that asks for none.
pub(crate) fn to<'a>(scenario: &'a Scenario, request: &Request) -> Result<Effect<'a>, Answer> {
    let path = request.target.split('?').next().unwrap_or_default();
    if path == "/mcp" {
        return mcp::answer(scenario, request);
    }
    if path.ends_with("/embeddings") {
        return Err(embeddings(request));
    }
    if path.ends_with("/chat/completions") {
        return model(scenario, request);
    }
    web(scenario, path, request)
}

/// The token of a content.
pub(super) fn token(content: &str) -> String {
    format!("t{}", &blake3::hash(content.as_bytes()).to_hex()[..10])
}

fn nothing(text: String) -> Answer {
    Answer::now(404, "text/plain", text)
}

/// Numbers for texts. They are no effect of a run: a knowledge base is made before it.
fn embeddings(request: &Request) -> Answer {
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let texts = body["input"].as_array().map_or_else(|| vec![&body["input"]], |texts| texts.iter().collect());
    let data = texts.iter().enumerate().map(|(index, text)| {
        let numbers = hotcell_loopback::bag_of_words(text.as_str().unwrap_or_default());
        json!({ "object": "embedding", "index": index, "embedding": numbers })
    });
    let usage = json!({ "prompt_tokens": 1, "total_tokens": 1 });
    let body = json!({ "object": "list", "model": body["model"], "data": data.collect::<Value>(), "usage": usage });
    Answer { after: Duration::from_millis(8), ..Answer::now(200, "application/json", body.to_string()) }
}

fn web<'a>(scenario: &'a Scenario, path: &str, request: &Request) -> Result<Effect<'a>, Answer> {
    let body = String::from_utf8_lossy(&request.body);
    let rule = scenario.web.iter().find(|rule| rule.method == request.method && path.starts_with(&rule.path));
    let Some(rule) = rule else { return Err(nothing(format!("nothing is at {} {path}", request.method))) };
    let content = format!("{} {} {body}", request.method, request.target);
    let token = token(&content);
    let (kind, text) = match &rule.reply {
        Value::String(text) => ("text/plain", text.clone()),
        other => ("application/json", other.to_string()),
    };
    let shown = content.trim_end().to_owned();
    Ok(Effect { shown, content, kind, body: text.replace("{token}", &token), token, faults: &scenario.faults.web })
}

fn model<'a>(scenario: &'a Scenario, request: &Request) -> Result<Effect<'a>, Answer> {
    let body: Value = serde_json::from_slice(&request.body).map_err(|error| nothing(error.to_string()))?;
    let messages: Vec<&Value> = body["messages"].as_array().into_iter().flatten().collect();
    let Some(rule) = scenario.model.iter().find(|rule| matches(rule, &messages)) else {
        return Err(nothing(format!("no rule of the model is for {}", body["messages"])));
    };
    // How a reply is sent is no part of what is asked.
    let streams = body["stream"] == true;
    let mut asked = body.clone();
    if let Some(fields) = asked.as_object_mut() {
        fields.remove("stream");
        fields.remove("stream_options");
    }
    let content = asked.to_string();
    let token = token(&content);
    let last = messages.last().map_or_else(String::new, |message| said(message));
    let shown = format!("model, {} messages, the last one: {last}", messages.len());
    let message = message(rule, &token);
    let (kind, body) = if streams {
        ("text/event-stream", streamed(&message, &token))
    } else {
        ("application/json", whole(&message, &token))
    };
    let faults = rule.faults.as_ref().unwrap_or(&scenario.faults.model);
    Ok(Effect { token, shown, content, kind, body, faults })
}

/// The text of a message; parts of it are joined.
fn said(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    }
}

fn matches(rule: &ModelRule, messages: &[&Value]) -> bool {
    let results = messages.iter().filter(|message| message["role"] == "tool").count();
    let last = messages.last().map_or_else(String::new, |message| said(message));
    rule.says.as_ref().is_none_or(|text| messages.iter().any(|message| said(message).contains(text)))
        && rule.last.as_ref().is_none_or(|text| last.contains(text))
        && rule.results.is_none_or(|wanted| wanted == results)
}

fn message(rule: &ModelRule, token: &str) -> Value {
    let text = rule.reply.as_ref().map(|text| match text.contains("{token}") {
        true => text.replace("{token}", token),
        false => format!("{text} [{token}]"),
    });
    let mut message = json!({ "role": "assistant", "content": text });
    if !rule.calls.is_empty() {
        let calls = rule.calls.iter().enumerate().map(|(index, call)| {
            let arguments = call.arguments.to_string().replace("{token}", token);
            let function = json!({ "name": call.name, "arguments": arguments });
            json!({ "id": format!("call_{token}_{index}"), "type": "function", "function": function })
        });
        message["tool_calls"] = calls.collect();
    }
    message
}

fn whole(message: &Value, token: &str) -> String {
    let finish = if message["tool_calls"].is_null() { "stop" } else { "tool_calls" };
    json!({
        "id": format!("chatcmpl-{token}"), "object": "chat.completion", "created": 0, "model": "torture",
        "choices": [{ "index": 0, "message": message, "finish_reason": finish }],
        "usage": { "prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10 },
    })
    .to_string()
}

fn streamed(message: &Value, token: &str) -> String {
    let chunk = |delta: &Value, finish: Value| {
        let chunk = json!({
            "id": format!("chatcmpl-{token}"), "object": "chat.completion.chunk", "created": 0, "model": "torture",
            "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }],
        });
        format!("data: {chunk}\n\n")
    };
    let mut delta = message.clone();
    for (index, call) in delta["tool_calls"].as_array_mut().into_iter().flatten().enumerate() {
        call["index"] = index.into();
    }
    let finish = if message["tool_calls"].is_null() { "stop" } else { "tool_calls" };
    format!("{}{}data: [DONE]\n\n", chunk(&delta, Value::Null), chunk(&json!({}), finish.into()))
}
