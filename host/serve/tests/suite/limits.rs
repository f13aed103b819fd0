//! What a client may cost: each limit is met.

use std::time::{Duration, Instant};

use hotcell_serve::Role;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::access::key;
use crate::desk::{Desk, ECHO, SLOW, ok, problem, until_async};

fn address(desk: &Desk) -> &str {
    desk.url.trim_start_matches("http://")
}

async fn connect(desk: &Desk) -> TcpStream {
    TcpStream::connect(address(desk)).await.unwrap()
}

/// What is sent until the connection ends.
async fn rest(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    // Whoever is cut off may see a reset.
    let _ = tokio::time::timeout(Duration::from_secs(60), stream.read_to_end(&mut text)).await.expect("no hang");
    String::from_utf8_lossy(&text).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_body_is_refused_whatever_it_says_of_its_size() {
    let desk = Desk::set_up(&[ECHO], |settings| settings.largest_body = 1000).await;
    let run = |bytes: usize| desk.post("/runs/wait", json!({ "input": "x".repeat(bytes) }));
    ok(run(900)).await;
    let refused = problem(run(1000)).await;
    assert_eq!((refused["status"].clone(), refused["limit"].clone()), (json!(413), json!(1000)));
    // Without a length, in pieces that never end.
    let mut stream = connect(&desk).await;
    stream
        .write_all(b"POST /runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
        .await
        .unwrap();
    for _ in 0..10 {
        if stream.write_all(format!("100\r\n{}\r\n", " ".repeat(256)).as_bytes()).await.is_err() {
            break;
        }
    }
    assert!(rest(&mut stream).await.starts_with("HTTP/1.1 413"));
    ok(run(10)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_sends_slowly_is_cut_off_and_others_are_served() {
    let desk = Desk::set_up(&[ECHO], |settings| settings.limits.head_within = Duration::from_millis(300)).await;
    // A head that never ends, and one that never begins.
    let mut head = connect(&desk).await;
    head.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-A:").await.unwrap();
    let mut nothing = connect(&desk).await;
    // A client that a busy machine keeps from sending for that long is cut off, too, and comes again.
    until_async("others are served", async || {
        let run = desk.post("/runs/wait", json!({ "input": "x" })).send().await;
        run.is_ok_and(|reply| reply.status() == 200)
    })
    .await;
    assert!(!rest(&mut head).await.contains("200 OK"));
    assert_eq!(rest(&mut nothing).await, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_never_comes_is_not_waited_for() {
    let desk = Desk::set_up(&[ECHO], |settings| settings.body_within = Duration::from_millis(300)).await;
    let mut body = connect(&desk).await;
    body.write_all(
        b"POST /runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
    )
    .await
    .unwrap();
    assert!(rest(&mut body).await.starts_with("HTTP/1.1 408"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_huge_head_is_refused() {
    let desk = Desk::set_up(&[ECHO], |settings| settings.limits.head_bytes = 8192).await;
    let reply = desk.get("/health").header("x-long", "x".repeat(20_000)).send().await;
    assert!(reply.is_err() || reply.is_ok_and(|reply| reply.status() == 431));
    let many = (0..500).fold(desk.get("/health"), |request, number| request.header(format!("x-{number}"), "x"));
    let reply = many.send().await;
    assert!(reply.is_err() || reply.is_ok_and(|reply| reply.status() == 431));
    ok(desk.get("/health")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_opens_many_connections_closes_their_own() {
    let desk = Desk::set_up(&[SLOW], |settings| settings.limits.connections = 8).await;
    // A client that is known keeps its connection.
    let waiting = tokio::spawn({
        let request = desk.post("/runs/wait", json!({ "input": "x" }));
        async move { ok(request).await }
    });
    desk.model.was_asked(1).await;
    let mut strangers = Vec::new();
    for _ in 0..30 {
        strangers.push(connect(&desk).await);
    }
    ok(desk.get("/health")).await;
    assert_eq!(rest(&mut strangers[0]).await, "", "the oldest stranger is gone");
    desk.model.answers(2);
    assert_eq!(waiting.await.unwrap()["output"], "reply1 reply2");
}

/// Whoever has a key and follows everything leaves half of the server's connections to others.
#[tokio::test(flavor = "multi_thread")]
async fn streams_of_one_key_leave_room_for_others() {
    let desk = Desk::set_up(&[SLOW, ECHO], |settings| settings.limits.connections = 8).await;
    let (one, other) = (key(&desk, &[Role::Run]), key(&desk, &[Role::Run]));
    let run = ok(desk.post("/runs", json!({ "agent_id": "slow", "input": "x" })).bearer_auth(&one)).await;
    let follow = || desk.get(&format!("/runs/{}/stream", run["run_id"].as_str().unwrap())).bearer_auth(&one);
    let mut streams = Vec::new();
    for _ in 0..4 {
        let stream = follow().send().await.unwrap();
        assert_eq!(stream.status(), 200);
        streams.push(stream);
    }
    let refused = problem(follow()).await;
    assert_eq!((refused["status"].clone(), refused["limit"].clone()), (json!(429), json!(4)), "{refused}");
    ok(desk.post("/runs/wait", json!({ "agent_id": "echo", "input": "x" })).bearer_auth(&other)).await;
    // Nobody's connection is kept for what was answered long ago.
    desk.model.answers(2);
    for stream in streams {
        stream.bytes().await.unwrap();
    }
    ok(desk.get("/runs").bearer_auth(&one)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_beyond_the_limit_are_refused_and_nothing_of_them_is_begun() {
    let desk = Desk::set_up(&[SLOW, ECHO], |settings| settings.max_runs = 1).await;
    let run = desk.begin(json!({ "agent_id": "slow", "input": "x" })).await;
    let request = || desk.post("/runs", json!({ "agent_id": "echo", "input": "x" }));
    let reply = request().send().await.unwrap();
    assert_eq!((reply.status().as_u16(), reply.headers()["retry-after"].to_str().unwrap()), (503, "1"));
    assert_eq!(problem(request()).await["type"], "urn:hotcell:problem:too-many-runs");
    assert_eq!(ok(desk.get("/runs")).await["runs"].as_array().unwrap().len(), 1);
    desk.model.answers(2);
    desk.stands(&run, "completed").await;
    ok(desk.get(&format!("/runs/{run}/wait"))).await;
    ok(desk.post("/runs/wait", json!({ "agent_id": "echo", "input": "x" }))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_read_is_cut_off() {
    let desk = Desk::with(&[ECHO]).await;
    let run = desk.begin(json!({ "input": "x".repeat(1_000_000) })).await;
    desk.stands(&run, "completed").await;
    // Only now: the replies up to here were as large, and a busy machine may keep the test itself from reading them.
    let desk = desk.again_set_up(|settings| settings.limits.taken_within = Duration::from_millis(300)).await;
    let mut stream = connect(&desk).await;
    // So many replies that no buffer of the system holds them.
    let request = format!("GET /runs/{run}/entries HTTP/1.1\r\nHost: localhost\r\n\r\n");
    for _ in 0..100 {
        if stream.write_all(request.as_bytes()).await.is_err() {
            break;
        }
    }
    // Nobody takes what is sent to a connection that was cut.
    let begun = Instant::now();
    while stream.write_all(b"\r\n").await.is_ok() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it is not cut off");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let read = rest(&mut stream).await;
    assert!(read.matches("HTTP/1.1 200").count() < 100, "all of it came");
    ok(desk.get("/health")).await;
}
