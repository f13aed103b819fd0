//! Conversations that go on from run to run, also when several want to at once.

use std::sync::Arc;

use hotcell_loopback::{Loopback, Script};
use hotcell_runtime::{Host, HostOptions, JournalChoice, Nobody, RunInput, RunReport};
use serde_json::{Value, json};

use crate::declarative::talker;
use crate::desk::{Desk, output, state};

const ROUNDS: usize = 40;

fn said(text: &str) -> RunInput {
    RunInput { input: Some(text.to_owned()), thread: Some("t".to_owned()), ..RunInput::default() }
}

fn texts(report: &RunReport) -> Vec<String> {
    let messages = state(report)["messages"].as_array().cloned().unwrap_or_default();
    messages.iter().map(|message| message["content"].as_str().unwrap_or_default().to_owned()).collect()
}

/// A desk whose runs are kept in a file, and a host of one process after the other.
fn desk(replies: usize) -> (Desk, Loopback, Host) {
    let desk = Desk::of("agent.yaml", &talker(""));
    let replies: Vec<Value> = (0..replies).map(|number| json!({ "content": format!("reply {number}") })).collect();
    let model = Loopback::start(Script::from_json(&Value::from(replies)).unwrap()).unwrap();
    let engine = desk.host(&model);
    (desk, model, engine)
}

fn process(desk: &Desk, model: &Loopback, engine: &Host) -> Host {
    let journal = JournalChoice::File(desk.path("runs.db"));
    engine.beside(HostOptions { journal, ..desk.options(model) }).unwrap()
}

#[tokio::test]
async fn a_long_thread_keeps_everything_and_its_headers_stay_small() {
    let (desk, model, engine) = desk(ROUNDS);
    let mut expected = Vec::new();
    let mut kept = 0;
    for number in 0..ROUNDS {
        let host = process(&desk, &model, &engine);
        let report = desk.start(&host, said(&format!("message {number}")), Arc::new(Nobody)).await.unwrap();
        expected.extend([format!("message {number}"), format!("reply {number}")]);
        assert_eq!(texts(&report), expected);
        let header = host.journal().find(report.run.as_str()).await.unwrap().header;
        kept += usize::from(header.given.get("earlier").is_some());
        assert_eq!(header.given.get("after").is_some(), number > 0 && header.given.get("earlier").is_none());
    }
    assert_eq!(kept, 1, "the state is kept every so often, so that a thread is not read from its beginning");
}

#[tokio::test]
async fn a_thread_goes_on_when_its_agent_is_changed() {
    let (desk, model, engine) = desk(3);
    for number in 0..2 {
        let host = process(&desk, &model, &engine);
        desk.start(&host, said(&format!("message {number}")), Arc::new(Nobody)).await.unwrap();
    }
    desk.write("agent.yaml", &talker("").replace("work", "labour"));
    let host = process(&desk, &model, &engine);
    let report = desk.start(&host, said("message 2"), Arc::new(Nobody)).await.unwrap();
    assert_eq!(texts(&report), ["message 0", "reply 0", "message 1", "reply 1", "message 2", "reply 2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_of_one_thread_that_start_at_once_follow_each_other() {
    let (desk, model, engine) = desk(6);
    let desk = Arc::new(desk);
    let runs = (0..6).map(|number| {
        // Each as if in a process of its own.
        let (desk, host) = (desk.clone(), process(&desk, &model, &engine));
        tokio::spawn(
            async move { desk.start(&host, said(&format!("message {number}")), Arc::new(Nobody)).await.unwrap() },
        )
    });
    let mut longest = Vec::new();
    for run in runs.collect::<Vec<_>>() {
        let report = run.await.unwrap();
        assert!(output(&report).starts_with("reply"));
        let texts = texts(&report);
        if texts.len() > longest.len() {
            longest = texts;
        }
    }
    assert_eq!(longest.len(), 12, "nothing is lost and nothing is mixed: {longest:?}");
    for pair in longest.chunks(2) {
        assert!(pair[0].starts_with("message") && pair[1].starts_with("reply"), "{longest:?}");
    }
}

#[tokio::test]
async fn a_thread_that_is_kept_in_memory_goes_on_too() {
    let (desk, model, _) = desk(2);
    let host = desk.host(&model);
    desk.start(&host, said("one"), Arc::new(Nobody)).await.unwrap();
    let report = desk.start(&host, said("two"), Arc::new(Nobody)).await.unwrap();
    assert_eq!(texts(&report), ["one", "reply 0", "two", "reply 1"]);
}
