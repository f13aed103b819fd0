//! Servers that are programs and do what they should.

use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::common::{
    Record, SECONDS, alive, call, call_within, connect_stranger as connect, example, fields, stranger,
    told_of_cancelled, until,
};
use hotcell_mcp::{ClientEvents, Elicited, McpError, Server, ServerSettings, Transport, Unattended};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn tools_are_listed_and_called() {
    let server = connect("normal").await;
    let tools = server.tools();
    assert_eq!((tools[0].name.as_str(), tools[0].description.as_str()), ("echo", "does echo"));
    assert_eq!(tools[0].input_schema, json!({ "type": "object" }));
    let reply = call(&server, "echo", json!({ "text": "grüße\n" })).await.expect("a reply");
    assert_eq!((reply.text.as_str(), reply.is_error), ("grüße\n", false));
    assert_eq!(reply.structured, Some(json!({ "text": "grüße\n" })));
    let reply = call(&server, "shape", json!({})).await.expect("a reply");
    assert_eq!((reply.text.as_str(), reply.is_error), ("see\n[image image/png, 5 bytes]", true));
    let error = call(&server, "nothing", json!({})).await.expect_err("no such tool");
    assert!(matches!(error, McpError::NoTool { .. }), "{error}");
    let error = call(&server, "refuse", json!({})).await.expect_err("refused").to_string();
    assert!(error.contains("`refuse`") && error.contains("not today[0m (code -32050)"), "{error}");
    let error = call(&server, "unreadable", json!({})).await.expect_err("unreadable");
    assert!(matches!(error, McpError::Unusable { .. } | McpError::CallRefused { .. }), "{error}");
    server.close().await;
}

#[tokio::test]
async fn calls_run_side_by_side() {
    let server = connect("normal").await;
    // None of them is answered before all have come.
    let calls = (0..20).map(|_| call(&server, "meet", json!({ "calls": 20 })));
    for reply in futures::future::join_all(calls).await {
        assert_eq!(reply.expect("a reply").text, "met");
    }
}

#[tokio::test]
async fn all_pages_are_read() {
    let server = connect("pages").await;
    let names: Vec<String> = server.tools().iter().map(|tool| tool.name.clone()).collect();
    assert_eq!(names, ["page-0", "page-1", "page-2", "page-3"]);
}

#[tokio::test]
async fn a_call_is_cancelled_by_its_token_and_by_being_dropped() {
    let server = connect("normal").await;
    let cancel = CancellationToken::new();
    let calling = server.call("sleep", fields(json!({})), SECONDS, &cancel);
    let stopping = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        cancel.cancel();
    };
    let (called, ()) = tokio::join!(calling, stopping);
    assert!(matches!(called, Err(McpError::Cancelled { .. })));
    let dropped = tokio::time::timeout(Duration::from_millis(200), call(&server, "sleep", json!({}))).await;
    assert!(dropped.is_err());
    told_of_cancelled(&server, 2).await;
}

#[tokio::test]
async fn changed_tools_are_listed_anew() {
    let record = Arc::new(Record::default());
    let server = Server::connect(stranger("normal"), record.clone()).await.expect("connected");
    assert!(matches!(call(&server, "extra", json!({})).await, Err(McpError::NoTool { .. })));
    call(&server, "change", json!({})).await.expect("a reply");
    until("the change", || !record.changes.lock().expect("unpoisoned").is_empty()).await;
    assert_eq!(server.tools().last().map(|tool| tool.name.clone()), Some("extra".to_owned()));
    assert_eq!(call(&server, "extra", json!({})).await.expect("a reply").text, "extra was called");
}

#[tokio::test]
async fn questions_are_put_and_answered() {
    let record = Record::answering(Elicited::Accept(json!({ "name": "Ada" })));
    let server = Server::connect(stranger("normal"), record.clone()).await.expect("connected");
    let reply = call(&server, "ask", json!({})).await.expect("a reply");
    // The field that was left out has its default.
    assert_eq!(reply.text, r#"{"action": "accept", "content": {"count": 7, "name": "Ada"}}"#);
    let questions = record.questions.lock().expect("unpoisoned").clone();
    assert_eq!(questions[0].0, "Who?[2J");
    assert_eq!(questions[0].1["properties"]["count"]["default"], json!(7));
    *record.answer.lock().expect("unpoisoned") = Some(Elicited::Decline);
    assert_eq!(call(&server, "ask", json!({})).await.expect("a reply").text, r#"{"action": "decline"}"#);
    *record.answer.lock().expect("unpoisoned") = Some(Elicited::Cancel);
    assert_eq!(call(&server, "ask", json!({})).await.expect("a reply").text, r#"{"action": "cancel"}"#);
    // An address is never offered to a person.
    assert_eq!(call(&server, "ask_url", json!({})).await.expect("a reply").text, r#"{"action": "decline"}"#);
    assert_eq!(record.questions.lock().expect("unpoisoned").len(), 3);
}

#[tokio::test]
async fn a_question_ends_with_its_call() {
    /// Notices when a question is dropped.
    struct Waiting(Arc<AtomicUsize>);
    impl Drop for Waiting {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    struct Slow {
        begun: Arc<AtomicUsize>,
        ended: Arc<AtomicUsize>,
    }
    #[async_trait::async_trait]
    impl ClientEvents for Slow {
        async fn elicit(&self, _server: &str, _message: &str, _schema: &Value) -> Elicited {
            let _waiting = Waiting(self.ended.clone());
            self.begun.fetch_add(1, Ordering::SeqCst);
            std::future::pending().await
        }
    }
    let (begun, ended) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let slow = Slow { begun: begun.clone(), ended: ended.clone() };
    let server = Server::connect(stranger("normal"), Arc::new(slow)).await.expect("connected");
    let cancel = CancellationToken::new();
    let calling = server.call("ask", fields(json!({})), SECONDS, &cancel);
    let stopping = async {
        until("the question", || begun.load(Ordering::SeqCst) == 1).await;
        cancel.cancel();
    };
    let (called, ()) = tokio::join!(calling, stopping);
    assert!(matches!(called, Err(McpError::Cancelled { .. })), "{called:?}");
    until("the end of the question", || ended.load(Ordering::SeqCst) == 1).await;
}

#[tokio::test]
async fn nobody_is_asked_when_no_tool_is_called() {
    let record = Record::answering(Elicited::Accept(json!({})));
    let server = Server::connect(stranger("normal"), record.clone()).await.expect("connected");
    // It asks when it is told to by a file, which is when no call is under way, and writes down what it is answered.
    let folder = tempfile::tempdir().expect("a folder");
    let (ask, answer) = (folder.path().join("ask"), folder.path().join("answer"));
    call(&server, "ask_later", json!({ "when": ask, "answer": answer })).await.expect("a reply");
    std::fs::write(&ask, "now").expect("written");
    until("the answer", || answer.exists()).await;
    let answer = std::fs::read_to_string(&answer).expect("an answer");
    assert!(answer.contains("only asked while a tool is being called"), "{answer}");
    assert!(record.questions.lock().expect("unpoisoned").is_empty());
}

/// With threads to spare, whatever is handled beside the answer may come after it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn progress_is_told_in_order_and_before_the_answer() {
    let record = Arc::new(Record::default());
    let server = Server::connect(stranger("normal"), record.clone()).await.expect("connected");
    for _ in 0..100 {
        call(&server, "progress", json!({ "pause": 0 })).await.expect("a reply");
        let told = std::mem::take(&mut *record.progress.lock().expect("unpoisoned"));
        let done: Vec<f64> = told.iter().map(|(_, progress)| progress.done).collect();
        assert_eq!(done, [1.0, 2.0, 3.0]);
    }
}

#[tokio::test]
async fn progress_is_told_and_extends_nothing() {
    let record = Arc::new(Record::default());
    let server = Server::connect(stranger("normal"), record.clone()).await.expect("connected");
    call(&server, "progress", json!({})).await.expect("a reply");
    until("all steps", || record.progress.lock().expect("unpoisoned").len() == 3).await;
    let progress = record.progress.lock().expect("unpoisoned").clone();
    let last = progress.iter().find(|(_, progress)| progress.done == 3.0).expect("the last step");
    assert_eq!((last.0.as_str(), last.1.total, last.1.message.as_deref()), ("progress", Some(3.0), Some("step 3")));
    let error = call_within(&server, "progress", json!({ "pause": 60 }), Duration::from_millis(100)).await;
    let error = error.expect_err("too slow");
    assert!(matches!(error, McpError::CallTimedOut { .. }), "{error}");
}

#[tokio::test]
async fn the_environment_is_clean() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut settings: ServerSettings = stranger("normal");
    let Transport::Stdio { env, cwd, .. } = &mut settings.transport else { panic!("a program") };
    env.insert("OWN".to_owned(), "value".to_owned());
    *cwd = Some(folder.path().to_owned());
    let server = Server::connect(settings, Arc::new(Unattended)).await.expect("connected");
    let reply = call(&server, "env", json!({})).await.expect("a reply");
    let seen: Value = serde_json::from_str(&reply.text).expect("an object");
    let env = seen["env"].as_object().expect("an object");
    // Python may be started by a script that sets variables of its own, but cargo's can only come from here.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    assert!(!env.keys().any(|name| name.starts_with("CARGO") || name.starts_with("RUST")), "{env:?}");
    assert_eq!(env.get("HOME").and_then(Value::as_str), std::env::var("HOME").ok().as_deref());
    assert_eq!(env["OWN"], "value");
    let folder = folder.path().canonicalize().expect("a folder");
    assert_eq!(seen["cwd"], folder.to_string_lossy().as_ref());
}

#[tokio::test]
async fn the_whole_group_goes_with_the_server() {
    for closed in [false, true] {
        let server = connect("normal").await;
        let reply = call(&server, "spawn", json!({})).await.expect("a reply");
        let ids: Vec<u64> = serde_json::from_str(&reply.text).expect("two ids");
        assert!(ids.iter().all(|id| alive(*id)), "{ids:?}");
        match closed {
            true => server.close().await,
            false => drop(server),
        }
        until("the end of the group", || !ids.iter().any(|id| alive(*id))).await;
    }
}

#[tokio::test]
async fn a_list_that_never_comes_does_not_keep_a_server() {
    let server = connect("slow_list").await;
    let reply = call(&server, "spawn", json!({})).await.expect("a reply");
    let ids: Vec<u64> = serde_json::from_str(&reply.text).expect("two ids");
    call(&server, "change", json!({})).await.expect("a reply");
    tokio::time::sleep(Duration::from_millis(500)).await;
    drop(server);
    until("the end of the group", || !ids.iter().any(|id| alive(*id))).await;
}

#[test]
fn the_group_goes_with_the_runtime() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let (server, ids) = runtime.block_on(async {
        let server = connect("normal").await;
        let reply = call(&server, "spawn", json!({})).await.expect("a reply");
        (server, serde_json::from_str::<Vec<u64>>(&reply.text).expect("two ids"))
    });
    runtime.shutdown_background();
    drop(server);
    for _ in 0..3_000 {
        if !ids.iter().any(|id| alive(*id)) {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("the group is still there");
}

#[tokio::test]
async fn what_this_crate_serves_over_stdio_can_be_used() {
    let record = Record::answering(Elicited::Accept(json!({ "username": "ada", "email": "ada@example.org" })));
    let server = Server::connect(example(), record.clone()).await.expect("connected");
    let reply = call(&server, "test_multiple_content_types", json!({})).await.expect("a reply");
    assert!(reply.text.starts_with("Multiple content types test:\n[image image/png, 70 bytes]\n{"), "{}", reply.text);
    let reply = call(&server, "test_elicitation", json!({ "message": "Who?" })).await.expect("a reply");
    assert!(reply.text.contains("ada@example.org"), "{}", reply.text);
    call(&server, "test_tool_with_progress", json!({})).await.expect("a reply");
    until("all steps", || record.progress.lock().expect("unpoisoned").len() == 3).await;
    server.close().await;
    // It ends when its input does, and not only because a client that closes kills what stays.
    let Transport::Stdio { command, args, .. } = example().transport else { panic!("a program") };
    let mut process = tokio::process::Command::new(command);
    process.args(args).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let mut process = process.spawn().expect("started");
    drop(process.stdin.take());
    tokio::time::timeout(SECONDS, process.wait()).await.expect("in time").expect("its end");
}
