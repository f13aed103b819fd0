//! Servers that others wrote: the reference server for everything (npm), over all three transports, and one for
//! times (PyPI). `tests/real-servers/install.sh` installs them.

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use crate::common::{Record, call, call_within, events, installed, program, streamable, until};
use hotcell_mcp::{Elicited, McpError, Server, ServerSettings, Unattended};
use serde_json::{Value, json};
use tokio::process::{Child, Command};

const EVERYTHING: &str = "npm/node_modules/@modelcontextprotocol/server-everything/dist/index.js";

/// The reference server as a process that listens; killed when dropped.
async fn listening(kind: &str) -> (Child, u16) {
    let script = installed(EVERYTHING);
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = free.local_addr().expect("an address").port();
    drop(free);
    let mut command = Command::new("node");
    command.arg(script).arg(kind).env("PORT", port.to_string());
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true).spawn().expect("node");
    until("the start", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()).await;
    (child, port)
}

/// Does with the reference server what can be done with it.
async fn try_everything(settings: ServerSettings) {
    let record = Record::answering(Elicited::Accept(json!({ "name": "Ada", "check": true })));
    let server = Server::connect(settings, record.clone()).await.expect("connected");
    let names: Vec<String> = server.tools().iter().map(|tool| tool.name.clone()).collect();
    assert!(names.iter().any(|name| name == "echo"), "{names:?}");
    let reply = call(&server, "echo", json!({ "message": "grüße" })).await.expect("a reply");
    assert_eq!(reply.text, "Echo: grüße");
    let reply = call(&server, "get-sum", json!({ "a": 2, "b": 40 })).await.expect("a reply");
    assert!(reply.text.contains("42"), "{}", reply.text);
    let reply = call(&server, "get-tiny-image", json!({})).await.expect("a reply");
    assert!(reply.text.contains("[image image/png, "), "{}", reply.text);
    let reply = call(&server, "get-structured-content", json!({ "location": "Chicago" })).await.expect("a reply");
    assert!(reply.structured.as_ref().is_some_and(Value::is_object), "{reply:?}");
    let reply = call(&server, "get-sum", json!({ "a": "x" })).await;
    assert!(matches!(&reply, Ok(reply) if reply.is_error) || matches!(&reply, Err(McpError::CallRefused { .. })));
    let arguments = json!({ "duration": 1, "steps": 4 });
    let reply = call(&server, "trigger-long-running-operation", arguments).await.expect("a reply");
    assert!(reply.text.contains("completed"), "{}", reply.text);
    until("progress", || record.progress.lock().expect("unpoisoned").len() >= 4).await;
    let arguments = json!({ "duration": 20, "steps": 4 });
    let slow = call_within(&server, "trigger-long-running-operation", arguments, Duration::from_millis(300)).await;
    assert!(matches!(slow, Err(McpError::CallTimedOut { .. })));
    if names.iter().any(|name| name == "trigger-elicitation-request") {
        let reply = call(&server, "trigger-elicitation-request", json!({})).await.expect("a reply");
        assert!(reply.text.contains("Ada"), "{}", reply.text);
        assert_eq!(record.questions.lock().expect("unpoisoned").len(), 1);
    } else {
        panic!("no tool that asks: {names:?}");
    }
    assert_eq!(call(&server, "echo", json!({ "message": "end" })).await.expect("a reply").text, "Echo: end");
    server.close().await;
}

#[tokio::test]
async fn everything_over_stdio() {
    let script = installed(EVERYTHING);
    try_everything(program("node", &[&script.to_string_lossy(), "stdio"])).await;
}

#[tokio::test]
async fn everything_over_streamable_http() {
    let (_child, port) = listening("streamableHttp").await;
    try_everything(streamable(&format!("http://127.0.0.1:{port}/mcp"))).await;
}

#[tokio::test]
async fn everything_over_server_sent_events() {
    let (_child, port) = listening("sse").await;
    try_everything(events(&format!("http://127.0.0.1:{port}/sse"))).await;
}

#[tokio::test]
async fn the_server_for_times() {
    let program_file = installed("python/bin/mcp-server-time");
    let settings = program(&program_file.to_string_lossy(), &["--local-timezone", "Europe/Berlin"]);
    let server = Server::connect(settings, Arc::new(Unattended)).await.expect("connected");
    let arguments = json!({ "source_timezone": "Europe/Berlin", "time": "12:30", "target_timezone": "Asia/Tokyo" });
    let reply = call(&server, "convert_time", arguments).await.expect("a reply");
    let answer: Value = serde_json::from_str(&reply.text).expect("JSON");
    assert_eq!(answer["target"]["timezone"], "Asia/Tokyo");
    let reply = call(&server, "get_current_time", json!({ "timezone": "Nowhere/Land" })).await.expect("a reply");
    assert!(reply.is_error && reply.text.contains("Nowhere/Land"), "{reply:?}");
    server.close().await;
}
