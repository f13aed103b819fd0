//! This crate's client and server with each other over Streamable HTTP.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::common::workshop::{Workshop, identity};
use crate::common::{Record, SECONDS, call, call_within, fields, streamable, until};
use hotcell_mcp::{Elicited, HttpServer, HttpSettings, LogLevel, McpError, ServeError, Server, serve_http};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

async fn serve(catalog: &Arc<Workshop>, address: Option<SocketAddr>) -> HttpServer {
    let settings = HttpSettings::default();
    let settings = HttpSettings { address: address.unwrap_or(settings.address), ..settings };
    serve_http(catalog.clone(), identity(), settings, &CancellationToken::new()).await.expect("served")
}

async fn connect(http: &HttpServer, record: &Arc<Record>) -> Server {
    let url = format!("http://{}/mcp", http.address());
    Server::connect(streamable(&url), record.clone()).await.expect("connected")
}

#[tokio::test]
async fn tools_are_listed_and_called() {
    let (workshop, record) = (Workshop::open(), Arc::new(Record::default()));
    let http = serve(&workshop, None).await;
    let server = connect(&http, &record).await;
    let tools = server.tools();
    assert_eq!((tools[0].name.as_str(), tools[0].title.as_deref()), ("echo", Some("ECHO")));
    let reply = call(&server, "echo", json!({ "text": "grüße" })).await.expect("a reply");
    assert_eq!((reply.text.as_str(), reply.structured), ("grüße", Some(json!({ "text": "grüße" }))));
    let reply = call(&server, "all", json!({})).await.expect("a reply");
    assert_eq!(reply.text, "text\n[image image/png, 3 bytes]\n[audio audio/wav, 3 bytes]\ninside");
    let reply = call(&server, "fail", json!({})).await.expect("a reply");
    assert_eq!((reply.text.as_str(), reply.is_error), ("it did not work", true));
    let error = call(&server, "refuse", json!({})).await.expect_err("refused").to_string();
    assert!(error.contains("`text` is missing (code -32602)"), "{error}");
    server.close().await;
}

#[tokio::test]
async fn progress_and_logs_come_before_the_answer() {
    let (workshop, record) = (Workshop::open(), Arc::new(Record::default()));
    let http = serve(&workshop, None).await;
    let server = connect(&http, &record).await;
    call(&server, "tell", json!({})).await.expect("a reply");
    until("all reports", || record.progress.lock().expect("unpoisoned").len() == 3).await;
    let mut done: Vec<f64> = record.progress.lock().expect("unpoisoned").iter().map(|(_, told)| told.done).collect();
    done.sort_by(f64::total_cmp);
    assert_eq!(done, [1.0, 2.0, 3.0]);
    // Details are not sent unless the client wants them.
    let logs = record.logs.lock().expect("unpoisoned").clone();
    assert_eq!(logs, [(LogLevel::Warning, "a warning".to_owned())]);
}

#[tokio::test]
async fn cancelling_and_timing_out_reach_the_tool() {
    let (workshop, record) = (Workshop::open(), Arc::new(Record::default()));
    let http = serve(&workshop, None).await;
    let server = connect(&http, &record).await;
    // As long as a slow machine may take until the call has reached the tool.
    let error = call_within(&server, "wait", json!({}), Duration::from_secs(5)).await.expect_err("too slow");
    assert!(matches!(error, McpError::CallTimedOut { .. }), "{error}");
    until("the time-out", || workshop.cancelled.load(Ordering::SeqCst) == 1).await;
    let cancel = CancellationToken::new();
    let calling = server.call("wait", fields(json!({})), SECONDS, &cancel);
    let stopping = async {
        until("the second call", || workshop.begun.load(Ordering::SeqCst) == 2).await;
        cancel.cancel();
    };
    let (called, ()) = tokio::join!(calling, stopping);
    assert!(matches!(called, Err(McpError::Cancelled { .. })));
    until("the cancellation", || workshop.cancelled.load(Ordering::SeqCst) == 2).await;
    assert_eq!(call(&server, "echo", json!({ "text": "next" })).await.expect("a reply").text, "next");
}

#[tokio::test]
async fn a_tool_asks_a_person() {
    let workshop = Workshop::open();
    let http = serve(&workshop, None).await;
    let record = Record::answering(Elicited::Accept(json!({ "name": "Ada" })));
    let server = connect(&http, &record).await;
    for tool in ["ask", "ask_elsewhere"] {
        let reply = call(&server, tool, json!({})).await.expect("a reply");
        assert_eq!(reply.text, r#"accepted {"name":"Ada","size":3}"#, "{tool}");
    }
    *record.answer.lock().expect("unpoisoned") = Some(Elicited::Decline);
    assert_eq!(call(&server, "ask", json!({})).await.expect("a reply").text, "declined");
    let reply = call(&server, "ask_badly", json!({})).await.expect("a reply");
    assert!(reply.text.contains("cannot be put as a form"), "{}", reply.text);
    // Nobody answers: the call times out, and the next one is not held up by the question.
    *record.answer.lock().expect("unpoisoned") = None;
    assert!(call_within(&server, "ask", json!({}), Duration::from_millis(300)).await.is_err());
    *record.answer.lock().expect("unpoisoned") = Some(Elicited::Cancel);
    assert_eq!(call(&server, "ask", json!({})).await.expect("a reply").text, "cancelled");
}

#[tokio::test]
async fn changed_tools_are_told() {
    let (workshop, record) = (Workshop::open(), Arc::new(Record::default()));
    let http = serve(&workshop, None).await;
    let server = connect(&http, &record).await;
    // The stream for what nobody asked for is opened after the handshake.
    tokio::time::sleep(Duration::from_millis(300)).await;
    workshop.tools.send_modify(|changes| *changes += 1);
    until("the change", || server.tools().iter().any(|tool| tool.name == "new-0")).await;
    assert_eq!(call(&server, "new-0", json!({})).await.expect("a reply").text, "new-0 was called");
    assert_eq!(record.changes.lock().expect("unpoisoned").len(), 1);
}

#[tokio::test]
async fn a_reply_above_the_limit_is_not_taken() {
    let (workshop, record) = (Workshop::open(), Arc::new(Record::default()));
    let http = serve(&workshop, None).await;
    let server = connect(&http, &record).await;
    let error = call(&server, "large", json!({})).await.expect_err("too large").to_string();
    assert!(error.contains("it sent a message of more than 8388608 bytes"), "{error}");
    assert_eq!(call(&server, "echo", json!({ "text": "next" })).await.expect("a reply").text, "next");
}

#[tokio::test]
async fn a_server_that_is_gone_and_comes_back() {
    let (workshop, record) = (Workshop::open(), Arc::new(Record::default()));
    let http = serve(&workshop, None).await;
    let address = http.address();
    let server = connect(&http, &record).await;
    drop(http);
    until("the end", || std::net::TcpListener::bind(address).is_ok()).await;
    let error = call(&server, "echo", json!({})).await.expect_err("nobody is there").to_string();
    assert!(error.contains("`remote` cannot be reached: Connection refused"), "{error}");
    // Another process at the same address knows nothing of the session, which is then begun anew.
    let _http = serve(&workshop, Some(address)).await;
    assert_eq!(call(&server, "echo", json!({ "text": "back" })).await.expect("a reply").text, "back");
}

#[tokio::test]
async fn shutting_down_ends_streams_and_frees_the_address() {
    let (workshop, record) = (Workshop::open(), Arc::new(Record::default()));
    let shutdown = CancellationToken::new();
    let http = serve_http(workshop.clone(), identity(), HttpSettings::default(), &shutdown).await.expect("served");
    let address = http.address();
    let server = connect(&http, &record).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    shutdown.cancel();
    tokio::time::timeout(SECONDS, http.ended()).await.expect("in time").expect("no panic");
    TcpListener::bind(address).await.expect("the address is free");
    drop(server);
}

fn initialize() -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } } })
}

#[tokio::test]
async fn only_the_right_hosts_origins_and_paths_are_served() {
    let workshop = Workshop::open();
    let settings = HttpSettings {
        hosts: vec!["tools.example".to_owned()],
        origins: vec!["https://app.example:443".to_owned()],
        ..HttpSettings::default()
    };
    let http = serve_http(workshop, identity(), settings, &CancellationToken::new()).await.expect("served");
    let client = hotcell_mcp::http_client(&streamable("http://localhost/")).expect("a client");
    let url = format!("http://{}", http.address());
    for (path, host, origin, expected) in [
        ("/mcp", None, None, 200),
        ("/mcp", Some("localhost"), Some("http://localhost:5173"), 200),
        ("/mcp", Some("tools.example"), Some("https://app.example"), 200),
        ("/mcp", Some("evil.example"), None, 403),
        ("/mcp", None, Some("http://evil.example"), 403),
        ("/mcp", None, Some("null"), 403),
        ("/", None, None, 404),
        ("/mcp/x", None, None, 404),
    ] {
        let mut request = client
            .post(format!("{url}{path}"))
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .body(initialize().to_string());
        for (name, value) in [("host", host), ("origin", origin)] {
            if let Some(value) = value {
                request = request.header(name, value);
            }
        }
        let status = request.send().await.expect("a response").status().as_u16();
        assert_eq!(status, expected, "{path} {host:?} {origin:?}");
    }
}

#[tokio::test]
async fn serving_beyond_this_machine_needs_names() {
    let settings = HttpSettings { address: "0.0.0.0:0".parse().expect("an address"), ..HttpSettings::default() };
    let served = serve_http(Workshop::open(), identity(), settings, &CancellationToken::new()).await;
    assert!(matches!(served, Err(ServeError::HostsMissing { .. })));
    let taken = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let settings = HttpSettings { address: taken.local_addr().expect("an address"), ..HttpSettings::default() };
    let served = serve_http(Workshop::open(), identity(), settings, &CancellationToken::new()).await;
    assert!(matches!(served, Err(ServeError::Listen { .. })));
}

#[tokio::test]
async fn the_number_of_sessions_is_limited() {
    let http = serve(&Workshop::open(), None).await;
    let client = hotcell_mcp::http_client(&streamable("http://localhost/")).expect("a client");
    let mut statuses = Vec::new();
    for _ in 0..257 {
        let request = client
            .post(format!("http://{}/mcp", http.address()))
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .body(initialize().to_string());
        let response = request.send().await.expect("a response");
        statuses.push(response.status().as_u16());
        response.bytes().await.expect("a body");
    }
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 256);
    assert_eq!(statuses.last(), Some(&503));
}
