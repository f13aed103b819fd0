//! How long a call takes that does nothing. Run with `cargo test -p hotcell-mcp --test suite latency -- --ignored --nocapture`.

#![allow(clippy::print_stderr, reason = "the numbers are what this is for")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::common::workshop::{Workshop, identity};
use crate::common::{call, example, stranger, streamable};
use hotcell_mcp::{HttpSettings, Server, Unattended, serve_http};
use serde_json::json;
use tokio_util::sync::CancellationToken;

async fn measure(what: &str, server: &Server, tool: &str) {
    let mut times = Vec::new();
    for _ in 0..1_000 {
        let start = Instant::now();
        call(server, tool, json!({ "text": "x" })).await.expect("a reply");
        times.push(start.elapsed());
    }
    times.sort();
    let at = |share: usize| times[times.len() * share / 100];
    let start = Instant::now();
    let calls = (0..1_000).map(|_| call(server, tool, json!({ "text": "x" })));
    futures::future::join_all(calls).await;
    let together: Duration = start.elapsed();
    eprintln!("{what}: p50 {:?}, p95 {:?}, p99 {:?}; 1,000 at once {together:?}", at(50), at(95), at(99));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "measures, checks nothing"]
async fn the_latency_of_a_call() {
    let server = Server::connect(stranger("normal"), Arc::new(Unattended)).await.expect("connected");
    measure("stdio, server in Python", &server, "echo").await;
    let server = Server::connect(example(), Arc::new(Unattended)).await.expect("connected");
    measure("stdio, server of this crate", &server, "test_simple_text").await;
    let http = serve_http(Workshop::open(), identity(), HttpSettings::default(), &CancellationToken::new()).await;
    let http = http.expect("served");
    let url = format!("http://{}/mcp", http.address());
    let server = Server::connect(streamable(&url), Arc::new(Unattended)).await.expect("connected");
    measure("Streamable HTTP, server of this crate", &server, "echo").await;
}
