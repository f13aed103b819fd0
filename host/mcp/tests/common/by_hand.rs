//! An HTTP server by hand, for answers that no library would give.

#![allow(dead_code, reason = "every test file uses a part of it")]

use std::sync::Arc;

use hotcell_mcp::{Server, ServerSettings, Unattended};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// One request.
pub(crate) struct Taken {
    pub(crate) head: String,
    pub(crate) body: Value,
    pub(crate) stream: BufReader<TcpStream>,
}

impl Taken {
    pub(crate) async fn respond(&mut self, status: &str, kind: &str, body: &str) {
        let length = body.len();
        let text = format!(
            "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nmcp-session-id: s\r\n\r\n{body}"
        );
        // A client that has heard enough may be gone.
        let _ = self.stream.get_mut().write_all(text.as_bytes()).await;
    }

    pub(crate) async fn stream_events(&mut self) {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nmcp-session-id: s\r\n\r\n";
        self.stream.get_mut().write_all(head.as_bytes()).await.expect("written");
    }

    pub(crate) async fn send(&mut self, text: &str) -> bool {
        self.stream.get_mut().write_all(text.as_bytes()).await.is_ok()
    }
}

pub(crate) async fn take(stream: &mut BufReader<TcpStream>) -> Option<(String, Value)> {
    let mut head = String::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        if line == "\r\n" {
            break;
        }
        head.push_str(&line.to_lowercase());
    }
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.trim().parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).await.ok()?;
    Some((head, serde_json::from_slice(&body).unwrap_or(Value::Null)))
}

/// A server; every connection's requests go to the channel, one at a time.
pub(crate) async fn listen() -> (String, mpsc::Receiver<Taken>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let (sender, receiver) = mpsc::channel(16);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let sender = sender.clone();
            tokio::spawn(async move {
                let mut stream = BufReader::new(stream);
                if let Some((head, body)) = take(&mut stream).await {
                    let _ = sender.send(Taken { head, body, stream }).await;
                }
            });
        }
    });
    (url, receiver)
}

pub(crate) fn initialized(request: &Value) -> String {
    let result = json!({ "protocolVersion": "2024-11-05", "capabilities": { "tools": {} },
        "serverInfo": { "name": "by hand", "version": "1" } });
    json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }).to_string()
}

pub(crate) fn listed(request: &Value) -> String {
    let result = json!({ "tools": [{ "name": "echo", "inputSchema": { "type": "object" } }] });
    json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }).to_string()
}

pub(crate) fn echoed(request: &Value) -> String {
    let text = request["params"]["arguments"]["text"].as_str().unwrap_or_default();
    let result = json!({ "content": [{ "type": "text", "text": text }] });
    json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }).to_string()
}

pub(crate) async fn error_of(settings: ServerSettings) -> String {
    Server::connect(settings, Arc::new(Unattended)).await.expect_err("refused").to_string()
}
