//! Recording exchanges and replaying them.

use std::{fs, sync::Arc};

use hotcell_models::{
    Message, Model, ModelError, Reasoning, Recorder, Replay, Reply, Request, Scripted, TokenUsage, ToolCallRequest,
};

fn ask(text: &str) -> Request {
    Request::new("p:m".parse().expect("a name"), vec![Message::user(text)])
}

fn calling_reply() -> Reply {
    let call = ToolCallRequest { id: "1".to_owned(), name: "add".to_owned(), arguments: "{\"a\":".to_owned() };
    Reply { content: "thinking".to_owned(), usage: TokenUsage { input: 3, output: 4 }, ..Reply::calls(vec![call]) }
}

#[tokio::test]
async fn a_recording_gives_the_same_outcomes_again_and_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("exchanges.jsonl");
    let busy = ModelError::Status { status: 429, message: "slow down".to_owned() };
    let outcomes = [Err(busy), Ok(calling_reply()), Ok(Reply::text("first")), Ok(Reply::text("second"))];
    let requests = [ask("a"), ask("a"), ask("b"), ask("b")];

    let recorder = Recorder::wrap(Arc::new(Scripted::new(outcomes.clone())), &path).expect("a file");
    for (request, outcome) in requests.iter().zip(&outcomes) {
        assert_eq!(&recorder.complete(request.clone(), None).await, outcome);
    }
    drop(recorder);

    for order in [[0, 1, 2, 3], [2, 0, 3, 1]] {
        let replay = Replay::open(&path).expect("a recording");
        for index in order {
            let mut text = String::new();
            let outcome = replay.complete(requests[index].clone(), Some(&mut |piece: &str| text.push_str(piece))).await;
            assert_eq!(outcome, outcomes[index]);
            assert_eq!(text, outcome.map(|reply| reply.content).unwrap_or_default());
        }
    }
}

#[tokio::test]
async fn recording_again_adds_to_the_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("exchanges.jsonl");
    for text in ["one", "two"] {
        let recorder = Recorder::wrap(Arc::new(Scripted::texts([text])), &path).expect("a file");
        recorder.complete(ask(text), None).await.expect("a reply");
    }
    let replay = Replay::open(&path).expect("a recording");
    assert_eq!(replay.complete(ask("two"), None).await.expect("recorded").content, "two");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(&path).expect("the file").permissions().mode();
        assert_eq!(mode & 0o077, 0, "{mode:o}");
    }
}

#[tokio::test]
async fn a_request_that_was_not_recorded_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("exchanges.jsonl");
    let recorder = Recorder::wrap(Arc::new(Scripted::texts(["one"])), &path).expect("a file");
    recorder.complete(ask("known"), None).await.expect("a reply");
    let replay = Replay::open(&path).expect("a recording");

    let changes: [fn(&mut Request); 6] = [
        |request| request.temperature = Some(0.0),
        |request| request.top_p = Some(1.0),
        |request| request.max_tokens = Some(1),
        |request| request.reasoning = Some(Reasoning { budget: Some(1024) }),
        |request| request.messages.push(Message::assistant("more")),
        |request| request.model = "p:other".parse().expect("a name"),
    ];
    for change in changes {
        let mut request = ask("known");
        change(&mut request);
        let error = replay.complete(request, None).await.expect_err("not recorded").to_string();
        assert!(error.contains("exchanges.jsonl") && error.contains("no reply to this request"), "{error}");
    }
    let mut hurried = ask("known");
    hurried.timeout = Some(std::time::Duration::from_secs(1));
    assert_eq!(replay.complete(hurried, None).await.expect("the time does not matter").content, "one");
    let error = replay.complete(ask("known"), None).await.expect_err("replayed already").to_string();
    assert!(error.contains("only one reply to this request") && error.contains("`known`"), "{error}");
}

#[test]
fn a_file_that_is_no_recording_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("notes.txt");
    assert!(Replay::open(&path).expect_err("missing").to_string().contains("cannot be read"));
    fs::write(&path, "\nhello\n").expect("written");
    let error = Replay::open(&path).expect_err("no recording").to_string();
    assert!(error.contains("notes.txt") && error.contains("line 2"), "{error}");
    assert!(Recorder::wrap(Arc::new(Scripted::default()), folder.path()).is_err());
}

#[tokio::test]
async fn a_scripted_model_ends() {
    let model = Scripted::texts(["only"]);
    model.complete(ask("a"), None).await.expect("a reply");
    assert_eq!(model.unserved(), 0);
    assert_eq!(model.complete(ask("b"), None).await, Err(ModelError::ScriptEnded { number: 2 }));
    assert_eq!(model.requests().len(), 2);
}
