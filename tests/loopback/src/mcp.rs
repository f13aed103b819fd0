//! MCP servers over HTTP, written by hand, for answers that no library would give. They run on the runtime of the test.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// Where [`serve_events`] takes messages.
pub const MESSAGES: &str = "/messages?session=1";
/// A header that [`serve_events`] wants to see.
pub const KEY: (&str, &str) = ("X-Key", "s3cret");

/// One request.
#[derive(Debug)]
pub struct Taken {
    /// Its first line and its headers, in small letters
    pub head: String,
    /// Its body; `null` if that is no JSON
    pub body: Value,
    /// Where it came from
    pub stream: BufReader<TcpStream>,
}

impl Taken {
    /// Answers it, and takes no other request on its connection. A client that has heard enough may be gone.
    pub async fn respond(&mut self, status: &str, kind: &str, body: &str) {
        let length = body.len();
        let text = format!(
            "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nmcp-session-id: s\r\n\r\n{body}"
        );
        let _ = self.stream.get_mut().write_all(text.as_bytes()).await;
    }

    /// Begins an answer that is a stream of events; false if nobody listens.
    pub async fn stream_events(&mut self) -> bool {
        self.send("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nmcp-session-id: s\r\n\r\n").await
    }

    /// Goes on with an answer; false if nobody listens any more.
    pub async fn send(&mut self, text: &str) -> bool {
        self.stream.get_mut().write_all(text.as_bytes()).await.is_ok()
    }
}

/// The next request of a connection; none when there is none any more.
pub async fn take(stream: &mut BufReader<TcpStream>) -> Option<(String, Value)> {
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

/// A server: its address and the first request of every connection.
pub async fn listen() -> io::Result<(SocketAddr, mpsc::Receiver<Taken>)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
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
    Ok((address, receiver))
}

/// What answers `initialize`.
pub fn initialized(request: &Value) -> String {
    let result = json!({ "protocolVersion": "2024-11-05", "capabilities": { "tools": {} },
        "serverInfo": { "name": "by hand", "version": "1" } });
    json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }).to_string()
}

/// What answers `tools/list`: one tool, `echo`.
pub fn listed(request: &Value) -> String {
    let result = json!({ "tools": [{ "name": "echo", "inputSchema": { "type": "object" } }] });
    json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }).to_string()
}

/// What answers `tools/call`: the argument `text`.
pub fn echoed(request: &Value) -> String {
    let text = request["params"]["arguments"]["text"].as_str().unwrap_or_default();
    let result = json!({ "content": [{ "type": "text", "text": text }] });
    json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }).to_string()
}

/// A server of the old kind, with a stream of server-sent events at `/sse`. Its tool `echo` does what the argument `then`
/// says: `end`, `refuse` or `flood`. `endpoint` is where it wants messages posted to, and `before` comes before it says so.
/// A message that goes elsewhere than to [`MESSAGES`], or has not the header [`KEY`], is answered with an error.
pub async fn serve_events(endpoint: &'static str, before: &'static str) -> io::Result<SocketAddr> {
    let (address, mut requests) = listen().await?;
    tokio::spawn(async move {
        let mut stream: Option<Taken> = None;
        while let Some(mut taken) = requests.recv().await {
            if taken.head.starts_with("get /sse") {
                taken.stream_events().await;
                taken.send(&format!(": hello\n\n{before}event: endpoint\ndata: {endpoint}\n\n")).await;
                stream = Some(taken);
                continue;
            }
            let (name, value) = KEY;
            let has_key = taken.head.contains(&format!("{}: {value}", name.to_lowercase()));
            if !taken.head.starts_with(&format!("post {MESSAGES}")) || !has_key {
                taken.respond("400 Bad Request", "text/plain", "not to be posted here, or without the key").await;
                continue;
            }
            let Some(events) = stream.as_mut() else {
                taken.respond("409 Conflict", "text/plain", "there is no stream of events").await;
                continue;
            };
            let answer = match taken.body["method"].as_str() {
                Some("initialize") => initialized(&taken.body),
                Some("tools/list") => listed(&taken.body),
                Some("tools/call") => match taken.body["params"]["arguments"]["then"].as_str() {
                    Some("end") => {
                        taken.respond("202 Accepted", "text/plain", "").await;
                        stream = None;
                        continue;
                    }
                    Some("refuse") => {
                        taken.respond("500 Internal Server Error", "text/plain", "no").await;
                        continue;
                    }
                    Some("flood") => {
                        taken.respond("202 Accepted", "text/plain", "").await;
                        events.send("data: ").await;
                        let piece = "x".repeat(1 << 16);
                        while events.send(&piece).await {}
                        continue;
                    }
                    _ => echoed(&taken.body),
                },
                _ => {
                    taken.respond("202 Accepted", "text/plain", "").await;
                    continue;
                }
            };
            taken.respond("202 Accepted", "text/plain", "Accepted").await;
            let (first, second) = answer.split_at(answer.len() / 2);
            events.send(&format!("event: message\r\ndata: {first}")).await;
            tokio::time::sleep(Duration::from_millis(5)).await;
            events.send(&format!("{second}\r\n\r\ndata: noise\n\n")).await;
        }
    });
    Ok(address)
}
