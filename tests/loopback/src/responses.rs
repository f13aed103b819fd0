//! Requests and replies in OpenAI's form of Responses.

use serde_json::{Value, json};

use crate::request::{ModelRequest, OfferedTool, RequestMessage, RequestToolCall, list, text};
use crate::respond::pieces;
use crate::script::{Message, ScriptedReply};

/// Reads a request body, or says what is wrong with it.
pub(crate) fn read(body: Value) -> Result<ModelRequest, String> {
    let model = text(&body, "model").ok_or("`model` is missing")?.to_owned();
    let mut messages = Vec::new();
    if let Some(instructions) = text(&body, "instructions") {
        messages.push(plain("system", instructions.to_owned()));
    }
    match body.get("input") {
        Some(Value::String(input)) => messages.push(plain("user", input.clone())),
        Some(Value::Array(items)) => {
            for item in items {
                read_item(item, &mut messages)?;
            }
        }
        _ => return Err("`input` is missing".to_owned()),
    }
    let tool = |tool: &Value| {
        Ok(OfferedTool {
            name: text(tool, "name").ok_or("a tool has no name")?.to_owned(),
            description: text(tool, "description").unwrap_or_default().to_owned(),
            parameters: tool.get("parameters").cloned().unwrap_or(Value::Null),
        })
    };
    Ok(ModelRequest {
        model,
        messages,
        tools: list(&body, "tools").map(tool).collect::<Result<_, String>>()?,
        temperature: body.get("temperature").and_then(Value::as_f64),
        top_p: body.get("top_p").and_then(Value::as_f64),
        max_tokens: body.get("max_output_tokens").and_then(Value::as_u64),
        response_format: body.pointer("/text/format").filter(|format| !format.is_null()).cloned(),
        stream: body.get("stream").and_then(Value::as_bool).unwrap_or(false),
        body,
    })
}

fn plain(role: &str, content: String) -> RequestMessage {
    RequestMessage { role: role.to_owned(), content, tool_calls: Vec::new(), tool_call_id: None }
}

fn content(value: Option<&Value>) -> String {
    match value {
        Some(Value::Array(parts)) => parts.iter().filter_map(|part| text(part, "text")).collect(),
        other => other.and_then(Value::as_str).unwrap_or_default().to_owned(),
    }
}

fn read_item(item: &Value, messages: &mut Vec<RequestMessage>) -> Result<(), String> {
    match text(item, "type").unwrap_or("message") {
        "message" => {
            let role = text(item, "role").ok_or("a message has no `role`")?;
            let role = if role == "developer" { "system" } else { role };
            messages.push(plain(role, content(item.get("content"))));
        }
        "function_call" => {
            let part = |name: &str| {
                text(item, name).map(str::to_owned).ok_or_else(|| format!("a call of a function has no `{name}`"))
            };
            let call = RequestToolCall { id: part("call_id")?, name: part("name")?, arguments: part("arguments")? };
            match messages.last_mut().filter(|message| message.role == "assistant") {
                Some(message) => message.tool_calls.push(call),
                None => messages.push(RequestMessage { tool_calls: vec![call], ..plain("assistant", String::new()) }),
            }
        }
        "function_call_output" => {
            let id = text(item, "call_id").ok_or("the output of a function has no `call_id`")?;
            messages.push(RequestMessage {
                tool_call_id: Some(id.to_owned()),
                ..plain("tool", content(item.get("output")))
            });
        }
        "reasoning" => {}
        other => return Err(format!("an item has the unknown type `{other}`")),
    }
    Ok(())
}

/// The items of a reply.
fn output(number: usize, message: &Message) -> Vec<Value> {
    let said = message.content.as_ref().map(|text| {
        json!({
            "type": "message", "id": format!("msg_{number}"), "status": "completed", "role": "assistant",
            "content": [{"type": "output_text", "text": text, "annotations": []}],
        })
    });
    let calls = message.tool_calls.iter().enumerate().map(|(index, (name, arguments))| {
        json!({
            "type": "function_call", "id": format!("fc_{number}_{index}"), "call_id": format!("call_{number}_{index}"),
            "name": name, "arguments": arguments, "status": "completed",
        })
    });
    said.into_iter().chain(calls).collect()
}

/// The whole reply.
pub(crate) fn reply(number: usize, request: &ModelRequest, reply: &ScriptedReply, message: &Message) -> Value {
    json!({
        "id": format!("resp_{number}"), "object": "response", "created_at": 0, "status": "completed",
        "model": request.model, "output": output(number, message), "error": null, "incomplete_details": null,
        "usage": {
            "input_tokens": reply.prompt_tokens, "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": reply.completion_tokens, "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": reply.prompt_tokens + reply.completion_tokens,
        },
    })
}

/// The reply as events.
pub(crate) fn stream(number: usize, request: &ModelRequest, scripted: &ScriptedReply, message: &Message) -> String {
    let whole = reply(number, request, scripted, message);
    let mut opened = whole.clone();
    opened["status"] = json!("in_progress");
    opened["output"] = json!([]);
    opened["usage"] = Value::Null;
    let mut events = vec![json!({"type": "response.created", "response": opened})];
    for (index, item) in output(number, message).into_iter().enumerate() {
        let id = item["id"].clone();
        let (mut begun, kind, parts) = (item.clone(), item["type"] == "message", item["arguments"].as_str());
        begun["status"] = json!("in_progress");
        begun[if kind { "content" } else { "arguments" }] = if kind { json!([]) } else { json!("") };
        events.push(json!({"type": "response.output_item.added", "output_index": index, "item": begun}));
        if kind {
            let text = item["content"][0]["text"].as_str().unwrap_or_default();
            let at = json!({"item_id": id, "output_index": index, "content_index": 0});
            let empty = json!({"type": "output_text", "text": "", "annotations": []});
            events.push(with(&at, "response.content_part.added", "part", empty));
            events.extend(pieces(text).map(|piece| with(&at, "response.output_text.delta", "delta", json!(piece))));
            events.push(with(&at, "response.output_text.done", "text", json!(text)));
            events.push(with(&at, "response.content_part.done", "part", item["content"][0].clone()));
        } else {
            let at = json!({"item_id": id, "output_index": index});
            let delta = "response.function_call_arguments.delta";
            events.extend(pieces(parts.unwrap_or_default()).map(|piece| with(&at, delta, "delta", json!(piece))));
            events.push(with(&at, "response.function_call_arguments.done", "arguments", item["arguments"].clone()));
        }
        events.push(json!({"type": "response.output_item.done", "output_index": index, "item": item}));
    }
    events.push(json!({"type": "response.completed", "response": whole}));
    let line = |(number, mut event): (usize, Value)| {
        event["sequence_number"] = json!(number);
        format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default())
    };
    events.into_iter().enumerate().map(line).collect()
}

fn with(at: &Value, kind: &str, field: &str, value: Value) -> Value {
    let mut event = at.clone();
    event["type"] = json!(kind);
    event[field] = value;
    event
}
