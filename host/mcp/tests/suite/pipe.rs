//! The server side as a client sees it on the wire, line by line.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::common::workshop::{Workshop, identity};
use crate::common::{SECONDS, until};
use hotcell_mcp::{ServeError, serve_pipe};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// A client by hand.
struct Client {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    writer: WriteHalf<DuplexStream>,
    shutdown: CancellationToken,
    serving: JoinHandle<Result<(), ServeError>>,
}

impl Client {
    fn start(workshop: &Arc<Workshop>) -> Self {
        let (near, far) = tokio::io::duplex(1 << 20);
        let (input, output) = tokio::io::split(far);
        let shutdown = CancellationToken::new();
        let serving = tokio::spawn(serve_pipe(workshop.clone(), identity(), input, output, shutdown.clone()));
        let (reader, writer) = tokio::io::split(near);
        Client { lines: BufReader::new(reader).lines(), writer, shutdown, serving }
    }

    async fn initialized(workshop: &Arc<Workshop>, version: &str, capabilities: Value) -> (Self, Value) {
        let mut client = Client::start(workshop);
        let params = json!({ "protocolVersion": version, "capabilities": capabilities,
            "clientInfo": { "name": "by hand", "version": "1" } });
        client.send(json!({ "id": 0, "method": "initialize", "params": params })).await;
        let result = client.next().await["result"].take();
        client.send(json!({ "method": "notifications/initialized" })).await;
        (client, result)
    }

    async fn send(&mut self, mut message: Value) {
        message["jsonrpc"] = json!("2.0");
        self.writer.write_all(format!("{message}\n").as_bytes()).await.expect("written");
    }

    async fn next(&mut self) -> Value {
        let line = tokio::time::timeout(SECONDS, self.lines.next_line()).await;
        serde_json::from_str(&line.expect("in time").expect("readable").expect("a line")).expect("JSON")
    }

    async fn call(&mut self, id: u64, tool: &str, arguments: Value) {
        let params = json!({ "name": tool, "arguments": arguments, "_meta": { "progressToken": "p" } });
        self.send(json!({ "id": id, "method": "tools/call", "params": params })).await;
    }
}

#[tokio::test]
async fn versions_are_negotiated() {
    for (asked, expected) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
    ] {
        let (_client, result) = Client::initialized(&Workshop::open(), asked, json!({})).await;
        assert_eq!(result["protocolVersion"], expected, "{asked}");
        assert_eq!(result["serverInfo"], json!({ "name": "workshop", "version": "1.2.3" }));
        assert_eq!(result["capabilities"], json!({ "tools": { "listChanged": true }, "logging": {} }));
    }
}

#[tokio::test]
async fn tools_are_listed_and_unknown_ones_refused() {
    let (mut client, _) = Client::initialized(&Workshop::open(), "2025-11-25", json!({})).await;
    client.send(json!({ "id": 1, "method": "tools/list" })).await;
    let list = client.next().await["result"]["tools"].take();
    let first = json!({ "name": "echo", "title": "ECHO", "description": "does echo",
        "inputSchema": { "type": "object", "properties": { "text": { "type": "string" } } },
        "annotations": { "readOnlyHint": true, "destructiveHint": false, "openWorldHint": false } });
    assert_eq!(list[0], first);
    assert_eq!(list[1]["annotations"], json!({ "readOnlyHint": false, "openWorldHint": false }));
    client.call(2, "nothing", json!({})).await;
    let error = client.next().await["error"].take();
    assert_eq!(error, json!({ "code": -32602, "message": "unknown tool: nothing" }));
    for (id, method) in [(3, "resources/read"), (4, "prompts/get"), (5, "no/such")] {
        client.send(json!({ "id": id, "method": method, "params": { "uri": "a://b", "name": "x" } })).await;
        let code = client.next().await["error"]["code"].take();
        assert_eq!(code, -32601, "{method}");
    }
    // What is not declared is no method, and not an empty list.
    let completes = json!({ "ref": { "type": "ref/prompt", "name": "x" }, "argument": { "name": "a", "value": "b" } });
    for (id, method, params) in [
        (6, "prompts/list", json!({})),
        (7, "resources/list", json!({})),
        (8, "resources/templates/list", json!({})),
        (9, "completion/complete", completes),
    ] {
        client.send(json!({ "id": id, "method": method, "params": params })).await;
        let answer = client.next().await;
        assert_eq!(answer["error"]["code"], -32601, "{answer}");
    }
}

#[tokio::test]
async fn reports_come_in_order_and_before_the_answer() {
    let (mut client, _) = Client::initialized(&Workshop::open(), "2025-11-25", json!({})).await;
    client.send(json!({ "id": 1, "method": "logging/setLevel", "params": { "level": "debug" } })).await;
    assert_eq!(client.next().await["result"], json!({}));
    client.call(2, "tell", json!({})).await;
    let mut told = Vec::new();
    let answer = loop {
        let message = client.next().await;
        match message["method"].as_str() {
            Some("notifications/progress") => told.push(message["params"]["progress"].to_string()),
            Some("notifications/message") => told.push(message["params"]["data"].to_string()),
            _ => break message,
        }
    };
    // Steps that lead backwards are not sent.
    assert_eq!(told, ["1.0", "2.0", "3.0", "\"a detail\"", "\"a warning\""]);
    assert_eq!(answer["result"]["content"][0]["text"], "told");
}

#[tokio::test]
async fn a_cancelled_call_is_not_answered() {
    let workshop = Workshop::open();
    let (mut client, _) = Client::initialized(&workshop, "2025-11-25", json!({})).await;
    client.call(1, "wait", json!({})).await;
    until("the call", || workshop.begun.load(Ordering::SeqCst) == 1).await;
    client.send(json!({ "method": "notifications/cancelled", "params": { "requestId": 1 } })).await;
    until("the cancellation", || workshop.cancelled.load(Ordering::SeqCst) == 1).await;
    client.call(2, "echo", json!({ "text": "next" })).await;
    assert_eq!(client.next().await["id"], 2);
}

#[tokio::test]
async fn questions_go_to_clients_that_take_them() {
    let workshop = Workshop::open();
    let (mut client, _) = Client::initialized(&workshop, "2025-11-25", json!({})).await;
    client.call(1, "ask", json!({})).await;
    let text = client.next().await["result"]["content"][0]["text"].take();
    assert_eq!(text, "the MCP client cannot ask a person; use one that supports elicitation");
    for capabilities in [json!({ "elicitation": {} }), json!({ "elicitation": { "form": {} } })] {
        let (mut client, _) = Client::initialized(&workshop, "2025-11-25", capabilities).await;
        client.call(1, "ask", json!({})).await;
        let question = client.next().await;
        assert_eq!(question["method"], "elicitation/create");
        assert_eq!(question["params"]["requestedSchema"]["required"], json!(["name"]));
        let result = json!({ "action": "accept", "content": { "name": "Ada" } });
        client.send(json!({ "id": question["id"], "result": result })).await;
        assert_eq!(client.next().await["result"]["content"][0]["text"], r#"accepted {"name":"Ada"}"#);
        // A client that refuses the question, and a call that is cancelled while it waits.
        client.call(2, "ask", json!({})).await;
        let question = client.next().await;
        let error = json!({ "code": -32000, "message": "not now" });
        client.send(json!({ "id": question["id"], "error": error })).await;
        let text = client.next().await["result"]["content"][0]["text"].to_string();
        assert!(text.contains("not now"), "{text}");
    }
}

#[tokio::test]
async fn changes_are_told() {
    let workshop = Workshop::open();
    let (mut client, _) = Client::initialized(&workshop, "2025-11-25", json!({})).await;
    client.send(json!({ "id": 1, "method": "ping" })).await;
    client.next().await;
    workshop.tools.send_modify(|changes| *changes += 1);
    assert_eq!(client.next().await["method"], "notifications/tools/list_changed");
}

#[tokio::test]
async fn serving_ends_with_the_input_or_when_told() {
    let workshop = Workshop::open();
    let (client, _) = Client::initialized(&workshop, "2025-11-25", json!({})).await;
    let Client { lines, writer, serving, .. } = client;
    drop((lines, writer));
    tokio::time::timeout(SECONDS, serving).await.expect("in time").expect("no panic").expect("served");
    let (client, _) = Client::initialized(&workshop, "2025-11-25", json!({})).await;
    client.shutdown.cancel();
    tokio::time::timeout(SECONDS, client.serving).await.expect("in time").expect("no panic").expect("served");
    let mut client = Client::start(&workshop);
    client.send(json!({ "id": 1, "method": "tools/list" })).await;
    drop(client.writer);
    drop(client.lines);
    let ended = tokio::time::timeout(SECONDS, client.serving).await.expect("in time");
    assert!(ended.is_ok());
}
