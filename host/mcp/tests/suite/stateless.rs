//! This crate's server and clients of the revision without sessions, written by hand.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::common::workshop::{Workshop, identity};
use crate::common::{SECONDS, until};
use hotcell_mcp::{HttpServer, HttpSettings, serve_http};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

async fn serve(catalog: &Arc<Workshop>) -> HttpServer {
    serve_http(catalog.clone(), identity(), HttpSettings::default(), &CancellationToken::new()).await.expect("served")
}

/// A reply that is read as it comes.
struct Reply {
    stream: TcpStream,
    text: String,
}

impl Reply {
    /// Reads until a text has come.
    async fn until(&mut self, text: &str) -> &str {
        let mut buffer = [0; 4096];
        while !self.text.contains(text) {
            let read = tokio::time::timeout(SECONDS, self.stream.read(&mut buffer));
            let count = read.await.unwrap_or_else(|_| panic!("{}", self.text)).expect("read");
            assert_ne!(count, 0, "{}", self.text);
            self.text.push_str(&String::from_utf8_lossy(&buffer[..count]));
        }
        &self.text
    }
}

/// A request with what every request of the revision carries, and more of that.
async fn request(http: &HttpServer, method: &str, mut params: Value, meta: Value) -> Reply {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} },
    });
    params["_meta"].as_object_mut().expect("an object").extend(meta.as_object().expect("an object").clone());
    let name = params["name"].as_str().map_or(String::new(), |name| format!("Mcp-Name: {name}\r\n"));
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
    let mut stream = TcpStream::connect(http.address()).await.expect("connected");
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nAccept: application/json, text/event-stream\r\nContent-Type: application/json\r\n\
         MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n{name}Content-Length: {}\r\n\r\n",
        http.address(),
        body.len()
    );
    stream.write_all(head.as_bytes()).await.expect("sent");
    stream.write_all(body.as_bytes()).await.expect("sent");
    Reply { stream, text: String::new() }
}

#[tokio::test]
async fn tools_are_found_and_called_without_a_session() {
    let workshop = Workshop::open();
    let http = serve(&workshop).await;
    let mut found = request(&http, "server/discover", json!({}), json!({})).await;
    let found = found.until("supportedVersions").await;
    assert!(found.contains("2025-11-25") && found.contains("2026-07-28"), "{found}");
    assert!(!found.to_lowercase().contains("mcp-session-id"), "{found}");
    let params = json!({ "name": "echo", "arguments": { "text": "grüße" } });
    let mut called = request(&http, "tools/call", params, json!({})).await;
    called.until("\"structuredContent\":{\"text\":\"grüße\"}").await;
    // A tool that asks while it is called finds nobody.
    let mut asked = request(&http, "tools/call", json!({ "name": "ask", "arguments": {} }), json!({})).await;
    asked.until("cannot ask a person").await;
}

#[tokio::test]
async fn logs_and_progress_are_for_calls_that_want_them() {
    let workshop = Workshop::open();
    let http = serve(&workshop).await;
    let params = || json!({ "name": "tell", "arguments": {} });
    let mut silent = request(&http, "tools/call", params(), json!({})).await;
    let silent = silent.until("\"result\"").await;
    assert!(!silent.contains("a warning") && !silent.contains("notifications/"), "{silent}");
    let wants = json!({ "io.modelcontextprotocol/logLevel": "warning", "progressToken": "far" });
    let mut told = request(&http, "tools/call", params(), wants).await;
    let told = told.until("\"result\"").await;
    assert!(told.contains("a warning") && !told.contains("a detail"), "{told}");
    assert_eq!(told.matches("notifications/progress").count(), 3, "{told}");
}

#[tokio::test]
async fn changed_tools_are_told_to_whoever_listens() {
    let workshop = Workshop::open();
    let http = serve(&workshop).await;
    let wanted = json!({ "notifications": { "toolsListChanged": true, "promptsListChanged": true } });
    let mut listening = request(&http, "subscriptions/listen", wanted, json!({})).await;
    let first = listening.until("subscriptions/acknowledged").await.to_owned();
    assert!(!first.contains("promptsListChanged"), "{first}");
    workshop.tools.send_modify(|changes| *changes += 1);
    listening.until("notifications/tools/list_changed").await;
}

#[tokio::test]
async fn a_stream_that_is_closed_cancels_its_call() {
    let workshop = Workshop::open();
    let http = serve(&workshop).await;
    let wants = json!({ "progressToken": "far" });
    let waiting = request(&http, "tools/call", json!({ "name": "wait", "arguments": {} }), wants).await;
    until("the call", || workshop.begun.load(Ordering::SeqCst) == 1).await;
    drop(waiting);
    until("the cancellation", || workshop.cancelled.load(Ordering::SeqCst) == 1).await;
}
