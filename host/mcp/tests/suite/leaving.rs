//! Clients that leave in the middle of a call, over HTTP without this crate's client.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::common::workshop::{Workshop, identity};
use crate::common::{SECONDS, streamable, until};
use hotcell_mcp::{CLIENT_BACK_WITHIN, HttpServer, HttpSettings, serve_http};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

struct Client {
    http: reqwest::Client,
    url: String,
    session: String,
    _server: HttpServer,
}

/// The stream of an answer, and the id of the last event that was read of it.
struct Stream {
    response: reqwest::Response,
    text: String,
    last: String,
}

impl Client {
    async fn of(workshop: &Arc<Workshop>) -> Self {
        let shutdown = CancellationToken::new();
        let server =
            serve_http(workshop.clone(), identity(), HttpSettings::default(), &shutdown).await.expect("served");
        let http = hotcell_mcp::http_client(&streamable("http://localhost/")).expect("a client");
        let url = format!("http://{}/mcp", server.address());
        let mut client = Client { http, url, session: String::new(), _server: server };
        let hello = client
            .post(json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
                "protocolVersion": "2025-06-18", "capabilities": { "elicitation": {} },
                "clientInfo": { "name": "t", "version": "1" } } }))
            .await;
        client.session = hello.headers()["mcp-session-id"].to_str().expect("a text").to_owned();
        hello.bytes().await.expect("a body");
        client.post(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        client
    }

    fn with_headers(&self, request: reqwest::RequestBuilder) -> reqwest::RequestBuilder {
        let request = request.header("accept", "application/json, text/event-stream");
        match self.session.as_str() {
            "" => request,
            session => request.header("mcp-session-id", session),
        }
    }

    async fn post(&self, message: Value) -> reqwest::Response {
        let request = self.http.post(&self.url).header("content-type", "application/json").body(message.to_string());
        let response = self.with_headers(request).send().await.expect("a response");
        assert!(response.status().is_success(), "{}", response.status());
        response
    }

    async fn call(&self, id: u32, tool: &str) -> Stream {
        let params = json!({ "name": tool, "arguments": {} });
        let response = self.post(json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })).await;
        Stream { response, text: String::new(), last: String::new() }
    }

    /// Takes a stream up again where it broke.
    async fn back(&self, last: &str) -> Stream {
        let request = self.with_headers(self.http.get(&self.url)).header("last-event-id", last);
        let response = request.send().await.expect("a response");
        Stream { response, text: String::new(), last: last.to_owned() }
    }
}

impl Stream {
    /// Reads until a message fits, and gives it.
    async fn until(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        let reading = async {
            loop {
                while let Some(end) = self.text.find("\n\n") {
                    let event: String = self.text.drain(..end + 2).collect();
                    for line in event.lines() {
                        if let Some(id) = line.strip_prefix("id:") {
                            self.last = id.trim().to_owned();
                        }
                        let data = line.strip_prefix("data:").and_then(|data| serde_json::from_str(data).ok());
                        if let Some(message) = data.filter(|message| fits(message)) {
                            return message;
                        }
                    }
                }
                let chunk = self.response.chunk().await.expect("a chunk").expect("more");
                self.text.push_str(&String::from_utf8_lossy(&chunk));
            }
        };
        tokio::time::timeout(SECONDS, reading).await.expect("in time")
    }

    async fn question(&mut self) -> Value {
        self.until(|message| message["method"] == "elicitation/create").await
    }
}

fn cancelled(workshop: &Workshop) -> usize {
    workshop.cancelled.load(Ordering::SeqCst)
}

#[tokio::test]
async fn a_client_that_leaves_takes_its_calls_along() {
    let workshop = Workshop::open();
    let client = Client::of(&workshop).await;
    let mut asked = client.call(2, "ask").await;
    asked.question().await;
    let waiting = client.call(3, "wait").await;
    let start = Instant::now();
    drop((asked, waiting));
    until("the end of both calls", || cancelled(&workshop) == 2).await;
    assert!(start.elapsed() >= CLIENT_BACK_WITHIN, "{:?}", start.elapsed());
    // The session is still good.
    let mut next = client.call(4, "echo").await;
    assert!(next.until(|message| message["id"] == 4).await["result"].is_object());
}

#[tokio::test]
async fn a_session_that_is_ended_ends_its_calls_at_once() {
    let workshop = Workshop::open();
    let client = Client::of(&workshop).await;
    let mut asked = client.call(2, "ask").await;
    asked.question().await;
    client.with_headers(client.http.delete(&client.url)).send().await.expect("a response");
    until("the end of the call", || cancelled(&workshop) == 1).await;
}

#[tokio::test]
async fn a_call_that_is_cancelled_ends_at_once_even_if_its_client_is_gone() {
    let workshop = Workshop::open();
    let client = Client::of(&workshop).await;
    // When it takes as long as a client has to come back, that may be why the call ended: then it is tried again.
    for id in 2..7 {
        let mut asked = client.call(id, "ask").await;
        asked.question().await;
        let start = Instant::now();
        drop(asked);
        let params = json!({ "requestId": id, "reason": "not wanted" });
        client.post(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params })).await;
        until("the end of the call", || cancelled(&workshop) == id as usize - 1).await;
        if start.elapsed() < CLIENT_BACK_WITHIN {
            return;
        }
    }
    panic!("it always ended only when the client had not come back");
}

#[tokio::test]
async fn a_client_that_comes_back_for_its_stream_keeps_its_call() {
    let workshop = Workshop::open();
    let client = Client::of(&workshop).await;
    // On a slow machine it may be back too late: then its call has ended, and it is tried again with another one.
    let mut given_up = 0_usize;
    let (id, question, mut asked) = loop {
        let id = given_up as u32 + 2;
        let mut asked = client.call(id, "ask").await;
        let question = asked.question().await;
        let last = asked.last.clone();
        let start = Instant::now();
        drop(asked);
        tokio::time::sleep(Duration::from_secs(1)).await;
        let asked = client.back(&last).await;
        if start.elapsed() < CLIENT_BACK_WITHIN {
            break (id, question, asked);
        }
        given_up += 1;
        assert!(given_up < 5, "it is never back in time");
        drop(asked);
        until("the end of the call", || cancelled(&workshop) == given_up).await;
    };
    tokio::time::sleep(CLIENT_BACK_WITHIN + Duration::from_secs(1)).await;
    assert_eq!(cancelled(&workshop), given_up);
    let result = json!({ "action": "accept", "content": { "name": "Ada" } });
    client.post(json!({ "jsonrpc": "2.0", "id": question["id"], "result": result })).await;
    let answer = asked.until(|message| message["id"] == id).await;
    assert_eq!(answer["result"]["content"][0]["text"], r#"accepted {"name":"Ada"}"#);
    // Whoever comes back and leaves again is gone.
    let mut asked = client.call(id + 1, "ask").await;
    asked.question().await;
    let last = asked.last.clone();
    drop(asked);
    drop(client.back(&last).await);
    until("the end of the call", || cancelled(&workshop) == given_up + 1).await;
}
