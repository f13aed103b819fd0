//! Servers over HTTP that misbehave, written by hand.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::common::{SECONDS, call, call_within, error_of, events, listen, streamable, until};
use hotcell_loopback::mcp::{Taken, echoed, initialized, listed};
use hotcell_mcp::{McpError, Server, Unattended};
use serde_json::json;
use tokio::sync::mpsc;

/// Answers every request of a kind with the same response.
fn always(mut requests: mpsc::Receiver<Taken>, status: &'static str, kind: &'static str, body: &'static str) {
    tokio::spawn(async move {
        while let Some(mut taken) = requests.recv().await {
            taken.respond(status, kind, body).await;
        }
    });
}

#[tokio::test]
async fn what_is_no_server_is_named() {
    for (status, kind, body, expected) in [
        ("401 Unauthorized", "text/plain", "who?", "wants authorization; set its `Authorization` header"),
        ("404 Not Found", "text/html", "<h1>nothing</h1>", "404"),
        ("503 Service Unavailable", "text/plain", "later", "503"),
        ("302 Found\r\nlocation: http://localhost:1/", "text/plain", "", "302"),
        ("200 OK", "text/html", "<h1>welcome</h1>", "content type"),
        ("200 OK", "application/json", "{}", "cannot be reached"),
    ] {
        for old in [false, true] {
            let (url, requests) = listen().await;
            always(requests, status, kind, body);
            let error = error_of(if old { events(&url) } else { streamable(&url) }).await;
            let expected = if old && status == "200 OK" { "not with a stream of events" } else { expected };
            let found = error.to_lowercase().contains(&expected.to_lowercase());
            assert!(found && error.contains("`remote`"), "{status} {kind} old={old}: {error}");
        }
    }
}

#[tokio::test]
async fn a_server_that_says_nothing_times_out() {
    for old in [false, true] {
        let (url, _requests) = listen().await;
        let mut settings = if old { events(&url) } else { streamable(&url) };
        settings.limits.connect = Duration::from_millis(500);
        let connecting = tokio::time::timeout(SECONDS, Server::connect(settings, Arc::new(Unattended)));
        let error = connecting.await.expect("in time").expect_err("silence");
        assert!(matches!(error, McpError::ConnectTimedOut { .. }), "{error}");
    }
}

#[tokio::test]
async fn a_body_without_end_is_cut() {
    let (url, mut requests) = listen().await;
    tokio::spawn(async move {
        while let Some(mut taken) = requests.recv().await {
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{\"jsonrpc\":\"";
            taken.send(head).await;
            let piece = "x".repeat(1 << 16);
            while taken.send(&piece).await {}
        }
    });
    let error = error_of(streamable(&url)).await;
    assert!(error.contains("it sent a message of more than 8388608 bytes"), "{error}");
}

#[tokio::test]
async fn a_call_over_a_lost_connection_fails() {
    let (url, mut requests) = listen().await;
    tokio::spawn(async move {
        while let Some(mut taken) = requests.recv().await {
            match taken.body["method"].as_str() {
                Some("initialize") => {
                    taken.respond("200 OK", "application/json", &initialized(&taken.body.clone())).await
                }
                Some("tools/list") => taken.respond("200 OK", "application/json", &listed(&taken.body.clone())).await,
                Some("tools/call") => match taken.body["params"]["arguments"]["then"].as_str() {
                    Some("reset") => {}
                    Some("hang") => {
                        tokio::spawn(async move {
                            tokio::time::sleep(2 * SECONDS).await;
                            drop(taken);
                        });
                    }
                    Some("cut") => {
                        taken.stream_events().await;
                        taken.send("data: {\"jsonrpc\"").await;
                    }
                    _ => taken.respond("200 OK", "application/json", &echoed(&taken.body.clone())).await,
                },
                _ if taken.head.starts_with("get") => taken.respond("405 Method Not Allowed", "text/plain", "").await,
                _ => taken.respond("202 Accepted", "text/plain", "").await,
            }
        }
    });
    let server = Server::connect(streamable(&url), Arc::new(Unattended)).await.expect("connected");
    for then in ["reset", "cut"] {
        let error = call(&server, "echo", json!({ "then": then })).await.expect_err("lost");
        assert!(matches!(error, McpError::Unreachable { .. }), "{then}: {error}");
        assert_eq!(call(&server, "echo", json!({ "text": "next" })).await.expect("a reply").text, "next");
    }
    let hanging = (0..40).map(|_| call_within(&server, "echo", json!({ "then": "hang" }), Duration::from_millis(500)));
    for error in futures::future::join_all(hanging).await {
        assert!(matches!(error, Err(McpError::CallTimedOut { .. })));
    }
    assert_eq!(call(&server, "echo", json!({ "text": "next" })).await.expect("a reply").text, "next");
}

#[tokio::test]
async fn streams_that_end_at_once_are_not_opened_in_a_hurry() {
    for hurry in ["retry: 0\nid: 1\ndata:\n\n", "id: 1\ndata:\n\n", "reset"] {
        let (url, mut requests) = listen().await;
        let opened = Arc::new(AtomicUsize::new(0));
        let counted = opened.clone();
        tokio::spawn(async move {
            while let Some(mut taken) = requests.recv().await {
                let body = taken.body.clone();
                match body["method"].as_str() {
                    Some("initialize") => taken.respond("200 OK", "application/json", &initialized(&body)).await,
                    Some("tools/list") => taken.respond("200 OK", "application/json", &listed(&body)).await,
                    _ if taken.head.starts_with("get") => {
                        counted.fetch_add(1, Ordering::SeqCst);
                        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: ";
                        match hurry {
                            "reset" => taken.send(&format!("{head}1000\r\n\r\nid: 1\n")).await,
                            events => taken.send(&format!("{head}{}\r\n\r\n{events}", events.len())).await,
                        };
                    }
                    _ => taken.respond("202 Accepted", "text/plain", "").await,
                }
            }
        });
        let start = Instant::now();
        let server = Server::connect(streamable(&url), Arc::new(Unattended)).await.expect("connected");
        until("a stream", || opened.load(Ordering::SeqCst) > 0).await;
        tokio::time::sleep(Duration::from_millis(2_500)).await;
        // Ten in every second that has begun, and one of which it is not known yet that it was asked for.
        let (opened, seconds) = (opened.load(Ordering::SeqCst), start.elapsed().as_secs() as usize);
        assert!(opened <= 10 * (seconds + 2) + 1, "{hurry:?}: {opened} streams in {seconds} s");
        drop(server);
    }
}

#[tokio::test]
async fn events_that_mean_nothing_are_slowed_down() {
    let (url, mut requests) = listen().await;
    let sent = Arc::new(AtomicUsize::new(0));
    let counted = sent.clone();
    tokio::spawn(async move {
        while let Some(mut taken) = requests.recv().await {
            let body = taken.body.clone();
            match body["method"].as_str() {
                Some("initialize") => taken.respond("200 OK", "application/json", &initialized(&body)).await,
                Some("tools/list") => taken.respond("200 OK", "application/json", &listed(&body)).await,
                _ if taken.head.starts_with("get") => {
                    taken.stream_events().await;
                    let counted = counted.clone();
                    let noise = format!("data: {}\n\n", "x".repeat(10_000));
                    tokio::spawn(async move {
                        while taken.send(&noise).await {
                            counted.fetch_add(1, Ordering::SeqCst);
                        }
                    });
                }
                _ => taken.respond("202 Accepted", "text/plain", "").await,
            }
        }
    });
    let start = Instant::now();
    let server = Server::connect(streamable(&url), Arc::new(Unattended)).await.expect("connected");
    until("as many events as are taken in a second", || sent.load(Ordering::SeqCst) >= 1_000).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    // What was sent is what was taken, a thousand in every second that has begun, and what the network holds.
    let (sent, seconds) = (sent.load(Ordering::SeqCst), start.elapsed().as_secs() as usize);
    assert!(sent < 1_000 * (seconds + 2) + 2_000, "{sent} events in {seconds} s");
    drop(server);
}
