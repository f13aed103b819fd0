//! Servers that are programs and misbehave.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::common::{
    Record, SECONDS, alive, call, call_within, connect_stranger as connect, program, stranger, told_of_cancelled, until,
};
use hotcell_mcp::{LogLevel, McpError, Server, Transport, Unattended};
use serde_json::json;

async fn refused(mode: &str) -> McpError {
    Server::connect(stranger(mode), Arc::new(Unattended)).await.expect_err("refused")
}

#[tokio::test]
async fn a_list_that_breaks_a_rule_is_refused() {
    for (mode, expected) in [
        ("thousands", "there are more than 1000"),
        ("endless", "do not end after 100 pages"),
        ("control", "is not a valid name"),
        ("twice", "`same` is there twice"),
    ] {
        let error = refused(mode).await;
        assert!(matches!(error, McpError::ToolsRefused { .. }) && error.to_string().contains(expected), "{error}");
    }
}

#[tokio::test]
async fn a_start_that_fails_says_why() {
    let missing = Server::connect(program("no-such-program-here", &[]), Arc::new(Unattended)).await;
    let error = missing.expect_err("no program").to_string();
    assert!(error.contains("`no-such-program-here`") && error.contains("is installed"), "{error}");
    let error = refused("exit").await.to_string();
    assert!(error.contains("exited with code 4") && error.contains("missing configuration"), "{error}");
    let error = refused("error").await.to_string();
    assert!(error.contains("wrong licence (code -32000)"), "{error}");
    let error = refused("version").await.to_string();
    assert!(error.contains("speaks revision 2099-01-01"), "{error}");
    let mut settings = stranger("normal");
    let Transport::Stdio { cwd, .. } = &mut settings.transport else { panic!("a program") };
    *cwd = Some("/no/such/folder".into());
    let error = Server::connect(settings, Arc::new(Unattended)).await.expect_err("no folder").to_string();
    assert!(error.contains("`cwd` is `/no/such/folder`"), "{error}");
    let error = refused("garbage").await.to_string();
    assert!(error.contains("101 lines in a row that are not messages"), "{error}");
}

#[tokio::test]
async fn a_start_that_hangs_times_out() {
    let mut settings = stranger("hang");
    // As long as Python may take on a slow machine until it has said its last words.
    settings.limits.connect = Duration::from_secs(15);
    let connecting = tokio::time::timeout(SECONDS, Server::connect(settings, Arc::new(Unattended)));
    let error = connecting.await.expect("in time").expect_err("no answer");
    assert!(matches!(error, McpError::ConnectTimedOut { .. }), "{error}");
    let text = error.to_string();
    let id = text.trim().rsplit_once("forever, as ").expect("its last words").1.parse::<u64>().expect("an id");
    until("its end", || !alive(id)).await;
}

#[tokio::test]
async fn a_call_that_hangs_times_out_and_the_server_goes_on() {
    let server = connect("normal").await;
    let error = call_within(&server, "sleep", json!({}), Duration::from_millis(300)).await.expect_err("too slow");
    assert!(matches!(error, McpError::CallTimedOut { .. }), "{error}");
    assert_eq!(call(&server, "echo", json!({ "text": "still here" })).await.expect("a reply").text, "still here");
    told_of_cancelled(&server, 1).await;
}

#[tokio::test]
async fn a_server_that_answers_with_wrong_ids_answers_nothing() {
    let server = connect("normal").await;
    let error = call_within(&server, "wrong_id", json!({}), Duration::from_millis(500)).await.expect_err("no answer");
    assert!(matches!(error, McpError::CallTimedOut { .. }), "{error}");
    assert_eq!(call(&server, "echo", json!({ "text": "next" })).await.expect("a reply").text, "next");
}

#[tokio::test]
async fn a_server_that_dies_is_started_again_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("starts");
    let mut settings = stranger("normal");
    let Transport::Stdio { env, .. } = &mut settings.transport else { panic!("a program") };
    env.insert("STARTS".to_owned(), file.to_string_lossy().into_owned());
    let starts = || std::fs::read_to_string(&file).expect("a file").lines().count();
    let server = Server::connect(settings, Arc::new(Unattended)).await.expect("connected");
    for _ in 0..3 {
        let error = call(&server, "die", json!({})).await.expect_err("dead").to_string();
        assert!(error.contains("exited with code 3") && error.contains("about to die"), "{error}");
        // The next call starts it again, and its answer earns it another start.
        assert_eq!(call(&server, "echo", json!({ "text": "back" })).await.expect("a reply").text, "back");
    }
    assert!(call(&server, "die", json!({})).await.is_err());
    assert!(call(&server, "die", json!({})).await.is_err());
    // It has ended twice without an answer: from now on calls fail, and nothing is started for them.
    assert_eq!(starts(), 5);
    for _ in 0..3 {
        let error = call(&server, "echo", json!({})).await.expect_err("gone").to_string();
        assert!(error.contains("exited with code 3"), "{error}");
    }
    assert_eq!(starts(), 5);
    server.reconnect().await.expect("connected");
    assert_eq!(call(&server, "echo", json!({ "text": "again" })).await.expect("a reply").text, "again");
}

/// The most memory that this process ever had, in bytes.
fn most_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("VmHWM");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn floods_end_the_server_and_not_the_host() {
    let before = most_memory();
    let server = connect("normal").await;
    let error = call(&server, "flood_line", json!({})).await.expect_err("flooded").to_string();
    assert!(error.contains("a line of more than 8388608 bytes"), "{error}");
    let error = call(&server, "garbage_forever", json!({})).await.expect_err("garbage").to_string();
    assert!(error.contains("lines in a row that are not messages"), "{error}");
    server.reconnect().await.expect("connected");
    let error = call_within(&server, "flood_forever", json!({}), Duration::from_secs(3)).await.expect_err("flooded");
    assert!(matches!(error, McpError::CallTimedOut { .. }), "{error}");
    drop(server);
    let more = most_memory() - before;
    // Other tests take some at the same time; what is written would be gigabytes.
    assert!(more < 256 << 20, "{more} bytes");
}

#[tokio::test]
async fn many_logs_are_slowed_down_and_lose_nothing() {
    let record = Arc::new(Record::default());
    let server = Server::connect(stranger("normal"), record.clone()).await.expect("connected");
    let start = Instant::now();
    let reply = call(&server, "flood_logs", json!({ "count": 2_500 })).await.expect("a reply");
    assert_eq!(reply.text, "flooded");
    assert!(start.elapsed() > Duration::from_millis(950), "{:?}", start.elapsed());
    until("all logs", || record.logs.lock().expect("unpoisoned").len() == 2_500).await;
    assert!(record.logs.lock().expect("unpoisoned").contains(&(LogLevel::Info, "line 0".to_owned())));
}

#[tokio::test]
async fn some_garbage_is_ignored() {
    let server = connect("normal").await;
    assert_eq!(call(&server, "garbage", json!({})).await.expect("a reply").text, "after garbage");
}

#[tokio::test]
async fn large_replies_pass_up_to_the_limit() {
    let server = connect("normal").await;
    let reply = call(&server, "large", json!({ "bytes": 7 << 20 })).await.expect("a reply");
    assert_eq!(reply.text.len(), 7 << 20);
    let error = call(&server, "large", json!({ "bytes": 9 << 20 })).await.expect_err("too large").to_string();
    assert!(error.contains("more than 8388608 bytes"), "{error}");
}

#[tokio::test]
async fn a_full_error_output_stops_nobody() {
    let server = connect("normal").await;
    assert_eq!(call(&server, "stderr", json!({})).await.expect("a reply").text, "written");
}

#[tokio::test]
async fn a_server_that_does_not_read_costs_the_call_and_no_more() {
    let server = connect("normal").await;
    for _ in 0..3 {
        let error = call_within(&server, "deaf", json!({ "big": "x".repeat(1 << 20) }), Duration::from_millis(300));
        assert!(matches!(error.await, Err(McpError::CallTimedOut { .. })));
    }
    drop(server);
}
