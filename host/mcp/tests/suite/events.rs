//! Servers of the old kind, with a stream of server-sent events, written by hand.

use std::sync::Arc;

use crate::common::{Record, call, error_of, events, listen};
use hotcell_loopback::mcp::{KEY, MESSAGES, serve_events};
use hotcell_mcp::{Server, ServerSettings, Transport};
use serde_json::json;

async fn old_server(endpoint: &'static str, before: &'static str) -> String {
    format!("http://{}/sse", serve_events(endpoint, before).await.expect("a server"))
}

fn with_key(mut settings: ServerSettings) -> ServerSettings {
    let Transport::Sse { headers, .. } = &mut settings.transport else { panic!("events") };
    headers.insert(KEY.0.to_owned(), KEY.1.to_owned());
    settings
}

#[tokio::test]
async fn the_old_transport_works() {
    let url = old_server(MESSAGES, "event: other\ndata: x\n\n").await;
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
