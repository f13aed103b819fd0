use std::cell::RefCell;
use std::rc::Rc;

use hotcell_plugin::http::{Request, Response};
use hotcell_plugin::testing::Surroundings;
use hotcell_plugin::{Error, Json, json};

use super::tools::PLUGIN;

/// Calls a tool; the server says what it answers to a path and a body. Gives what came of it and the methods that were called.
fn call(tool: &str, given: Json, server: impl Fn(&str, &Json) -> (u16, Json) + 'static) -> (Json, Vec<String>) {
    let mut arguments = json!({ "job": "j", "settings": { "url": "https://a.example/" } });
    for (name, value) in given.as_object().into_iter().flatten() {
        arguments[name] = value.clone();
    }
    let called: Rc<RefCell<Vec<String>>> = Rc::default();
    let noted = called.clone();
    let server = move |request: Request| -> Result<Response, Error> {
        let body: Json = String::from_utf8_lossy(&request.body).parse().unwrap_or_default();
        let version =
            request.headers.iter().find(|(name, _)| name == "a2a-version").map(|(_, version)| version.as_str());
        let what = body["method"].as_str().unwrap_or(&request.url);
        noted.borrow_mut().push(format!("{what} {}", version.unwrap_or("-")));
        let (status, mut answer) = server(&request.url, &body);
        if body["id"].is_string() {
            answer["id"] = body["id"].clone();
        }
        Ok(Response { status, headers: Vec::new(), body: answer.to_string().into_bytes() })
    };
    let ran = Surroundings::new().store().http(server).run(|| PLUGIN.call_tool(tool, arguments));
    let called = called.borrow().clone();
    (ran.result.unwrap_or_else(|error| json!({ "error": error.to_string() })), called)
}

fn begin(card: Json, server: impl Fn(&Json) -> Json + 'static) -> (Json, Vec<String>) {
    let server = move |url: &str, body: &Json| match url.contains("/.well-known/") {
        true if url.ends_with("agent-card.json") => (404, json!({})),
        true => (200, card.clone()),
        false => (200, server(body)),
    };
    call("begin", json!({ "arguments": { "job": "paint" } }), server)
}

#[test]
fn an_agent_of_version_1_is_asked_until_it_is_done() {
    let interface = json!({ "url": "https://a.example/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0" });
    let (begun, called) = begin(json!({ "supportedInterfaces": [interface] }), |body| {
        assert_eq!(body["params"]["message"]["parts"], json!([{ "text": "paint" }]));
        json!({ "result": { "task": { "id": "k", "status": { "state": "TASK_STATE_SUBMITTED" } } } })
    });
    assert_eq!(called[2], "SendMessage 1.0");
    let state = begun["again"]["state"].clone();
    assert_eq!(state["own"], json!({ "url": "https://a.example/rpc", "version": "1.0", "task": "k" }));
    let (done, called) = call("poll", json!({ "state": state }), |_, _| {
        let parts = json!([{ "text": "painted " }, { "text": "blue" }]);
        (
            200,
            json!({ "result": { "id": "k", "status": { "state": "TASK_STATE_COMPLETED" }, "artifacts": [{ "parts": parts }] } }),
        )
    });
    assert_eq!((done, called), (json!({ "done": { "text": "painted blue" } }), vec!["GetTask 1.0".to_owned()]));
}

#[test]
fn the_other_version_is_tried_once() {
    let card = json!({ "protocolVersion": "0.3.0", "url": "https://a.example/rpc", "defaultInputModes": ["application/json"] });
    let (done, called) = begin(card.clone(), |body| match body["method"].as_str() {
        Some("SendMessage") => json!({ "result": { "message": { "parts": [{ "data": { "x": 1 } }] } } }),
        _ => {
            assert_eq!(body["params"]["message"]["parts"], json!([{ "kind": "data", "data": { "job": "paint" } }]));
            json!({ "error": { "code": -32601, "message": "Method not found" } })
        }
    });
    assert_eq!((done, called.len()), (json!({ "done": { "x": 1 } }), 4));
    let (failed, called) = begin(card, |_| json!({ "error": { "code": -32601, "message": "Method not found" } }));
    assert!(failed["failed"]["message"].as_str().unwrap_or_default().contains("Method not found"), "{failed}");
    assert_eq!(called.len(), 4);
}

#[test]
fn what_tasks_come_to() {
    let card = || json!({ "protocolVersion": "0.3", "url": "https://a.example/rpc" });
    let task =
        |state: &str| json!({ "id": "k", "status": { "state": state, "message": { "parts": [{ "text": "why" }] } } });
    for (answer, kind, part) in [
        (task("failed"), "ConnectorError", "`failed`: why"),
        (task("rejected"), "ConnectorError", "`rejected`: why"),
        (task("input-required"), "InputRequired", "why"),
        (task("TASK_STATE_AUTH_REQUIRED"), "InputRequired", "why"),
        (json!({ "status": { "state": "working" } }), "ConnectorError", "no `id`"),
        (json!({}), "ConnectorError", "neither a message nor a task"),
        (json!([1]), "ConnectorError", "neither a message nor a task"),
    ] {
        let (failed, _) = begin(card(), move |_| json!({ "result": answer.clone() }));
        assert_eq!(failed["failed"]["error_type"], kind, "{part}: {failed}");
        assert!(failed["failed"]["message"].as_str().unwrap_or_default().contains(part), "{part}: {failed}");
    }
    let (done, _) = begin(card(), move |_| json!({ "result": task("completed") }));
    assert_eq!(done, json!({ "done": { "text": "why" } }));
    let (failed, _) = begin(json!("a card"), |_| json!({}));
    assert!(failed["failed"]["message"].as_str().unwrap_or_default().contains("not an object"), "{failed}");
}

#[test]
fn a_task_is_called_off() {
    let own = json!({ "url": "https://a.example/rpc", "version": "0.3", "task": "k" });
    let (_, called) = call("cancel", json!({ "reason": "timeout", "state": { "own": own } }), |_, _| (500, json!({})));
    assert_eq!(called, ["tasks/cancel -"]);
}
