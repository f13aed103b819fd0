//! Servers of the old kind, with a stream of server-sent events, written by hand.

#[path = "common/by_hand.rs"]
mod by_hand;
mod common;

use std::sync::Arc;
use std::time::Duration;

use by_hand::{Taken, echoed, error_of, initialized, listed, listen};
use common::{Record, call, events};
use hotcell_mcp::{Server, ServerSettings, Transport};
use serde_json::json;

/// A server of the old kind, which does what the tool's name says.
async fn old_server(endpoint: &'static str, before: &'static str) -> String {
    let (url, mut requests) = listen().await;
    tokio::spawn(async move {
        let mut stream: Option<Taken> = None;
        while let Some(mut taken) = requests.recv().await {
            if taken.head.starts_with("get /sse") {
                taken.stream_events().await;
                taken.send(&format!(": hello\n\n{before}event: endpoint\ndata: {endpoint}\n\n")).await;
                stream = Some(taken);
                continue;
            }
            assert!(taken.head.starts_with("post /messages?session=1"), "{}", taken.head);
            assert!(taken.head.contains("x-key: s3cret"), "{}", taken.head);
            let events = stream.as_mut().expect("a stream");
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
    format!("{url}/sse")
}

fn with_key(mut settings: ServerSettings) -> ServerSettings {
    let Transport::Sse { headers, .. } = &mut settings.transport else { panic!("events") };
    headers.insert("X-Key".to_owned(), "s3cret".to_owned());
    settings
}

#[tokio::test]
async fn the_old_transport_works() {
    let url = old_server("/messages?session=1", "event: other\ndata: x\n\n").await;
    let server = Server::connect(with_key(events(&url)), Arc::new(Record::default())).await.expect("connected");
    assert_eq!(server.tools()[0].name, "echo");
    for number in 0..20 {
        let text = format!("grüße {number}");
        assert_eq!(call(&server, "echo", json!({ "text": text })).await.expect("a reply").text, text);
    }
    let error = call(&server, "echo", json!({ "then": "refuse" })).await.expect_err("refused").to_string();
    assert!(error.contains("HTTP 500"), "{error}");
    let error = call(&server, "echo", json!({ "then": "end" })).await.expect_err("ended").to_string();
    assert!(error.contains("closed the stream of events"), "{error}");
    // The next call opens another stream.
    assert_eq!(call(&server, "echo", json!({ "text": "back" })).await.expect("a reply").text, "back");
    let error = call(&server, "echo", json!({ "then": "flood" })).await.expect_err("flooded").to_string();
    assert!(error.contains("too large"), "{error}");
    server.close().await;
}

#[tokio::test]
async fn messages_go_to_the_origin_of_the_stream_only() {
    for endpoint in ["http://localhost:1/messages", "https://127.0.0.1/messages", "//evil.example/messages"] {
        let url = old_server(endpoint, "").await;
        let error = error_of(with_key(events(&url))).await;
        assert!(error.contains("wants messages to be posted to"), "{endpoint}: {error}");
    }
}

#[tokio::test]
async fn an_old_server_without_an_address_is_refused() {
    let (url, mut requests) = listen().await;
    tokio::spawn(async move {
        while let Some(mut taken) = requests.recv().await {
            taken.stream_events().await;
            taken.send("data: {}\n\n").await;
        }
    });
    let error = error_of(events(&url)).await;
    assert!(error.contains("ended before the address"), "{error}");
}
