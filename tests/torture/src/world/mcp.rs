//! The world as a server of the Model Context Protocol: tools that reply like everything else here.

use serde_json::{Value, json};

use super::http::{Answer, Request};
use super::reply::{Effect, token};
use crate::scenario::Scenario;

pub(super) fn answer<'a>(scenario: &'a Scenario, request: &Request) -> Result<Effect<'a>, Answer> {
    if request.method != "POST" {
        // No stream of events is offered, and there is no session to end.
        return Err(Answer::now(405, "text/plain", ""));
    }
    let message: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let result = |result: Value| json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }).to_string();
    match message["method"].as_str() {
        Some("initialize") => Err(json_now(result(json!({
            "protocolVersion": message["params"]["protocolVersion"], "capabilities": { "tools": {} },
            "serverInfo": { "name": "world", "version": "1" },
        })))),
        Some("tools/list") => {
            let tools = scenario.tools.iter().map(
                |tool| json!({ "name": tool.name, "description": tool.description, "inputSchema": tool.parameters }),
            );
            Err(json_now(result(json!({ "tools": tools.collect::<Value>() }))))
        }
        Some("tools/call") => {
            let (name, arguments) = (&message["params"]["name"], &message["params"]["arguments"]);
            let content = format!("tool {name} {arguments}");
            let Some(tool) = scenario.tools.iter().find(|tool| *name == tool.name) else {
                return Err(Answer::now(404, "text/plain", content));
            };
            let token = token(&content);
            let text = tool.reply.replace("{token}", &token);
            let body = result(json!({ "content": [{ "type": "text", "text": text }] }));
            let faults = &scenario.faults.tools;
            Ok(Effect { token, shown: content.clone(), content, kind: "application/json", body, faults })
        }
        Some("ping") => Err(json_now(result(json!({})))),
        _ => Err(Answer::now(202, "text/plain", "")),
    }
}

/// Whether a request is for what tools there are.
pub(super) fn is_loading(request: &Request) -> bool {
    let message: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    matches!(message["method"].as_str(), Some("initialize" | "tools/list"))
}

fn json_now(body: String) -> Answer {
    Answer::now(200, "application/json", body)
}
