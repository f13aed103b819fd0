//! Servers that end and begin again: nothing is lost, and nothing is done twice.

use std::sync::Arc;
use std::time::Duration;

use hotcell_runtime::{CancellationToken, Entry, EntryPath, Fact, Nobody, Outcome, Question, RunStore, Session};
use serde_json::json;

use crate::desk::{ASK, Desk, ECHO, Events, SLOW, ok, opened, problem, until_async};
use crate::hours::PATIENCE;

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_done_in_time_goes_on_at_the_next_start() {
    let mut desk = Desk::with(&[SLOW]).await;
    let run = desk.begin(json!({ "input": "x" })).await;
    desk.model.answers(1);
    desk.model.was_asked(2).await;
    desk.stop().await;
    let host = desk.host();
    let record = host.journal().find(&run).await.unwrap();
    assert_eq!(record.status.as_str(), "interrupted");
    let desk = desk.again().await;
    desk.model.was_asked(3).await;
    desk.model.answers(2);
    let result = ok(desk.get(&format!("/runs/{run}/wait"))).await;
    assert_eq!(
        (result["run"]["standing"].clone(), result["values"]["first"].clone()),
        (json!("completed"), json!("reply1"))
    );
    let kinds = desk.kinds(&run).await;
    assert_eq!(kinds.iter().filter(|kind| *kind == "ended").count(), 1);
    assert_eq!(kinds.iter().filter(|kind| *kind == "completed@1").count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_told_to_stop_lets_runs_end_and_begins_no_more() {
    let mut desk = Desk::set_up(&[SLOW], |settings| {
        settings.drain = Duration::from_secs(60);
        settings.limits.shutdown_within = Duration::from_secs(60);
    })
    .await;
    let run = desk.begin(json!({ "input": "x" })).await;
    desk.model.was_asked(1).await;
    desk.tell_to_stop();
    until_async("it is ready no more", async || desk.get("/ready").send().await.unwrap().status() == 503).await;
    assert_eq!(problem(desk.post("/runs", json!({ "input": "x" }))).await["status"], 503);
    ok(desk.get("/health")).await;
    // A stream has begun when its head is there: from then on whoever follows a run hears its end.
    let events = Events::of(desk.get(&format!("/runs/{run}/stream"))).await;
    desk.model.answers(2);
    assert_eq!(events.all().await.last().expect("an end").data["standing"], "completed");
    desk.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_was_taken_before_the_end_counts_after_it() {
    let mut desk = Desk::with(&[ASK]).await;
    let run = desk.begin(json!({})).await;
    desk.stands(&run, "waiting").await;
    desk.stop().await;
    // As if the server had died between taking the answer and going on.
    let host = desk.host();
    host.answer(&run, None, "me").await.unwrap();
    drop(host);
    let desk = desk.again().await;
    let result = desk.stands(&run, "completed").await;
    assert_eq!(result["outcome"], "hello me");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_person_interrupted_elsewhere_is_left_alone() {
    let mut desk = Desk::with(&[ECHO]).await;
    let run = ok(desk.post("/runs/wait", json!({ "input": "x" }))).await["run"]["run_id"].as_str().unwrap().to_owned();
    desk.stop().await;
    let host = desk.host();
    let journal: &std::sync::Arc<dyn RunStore> = host.journal();
    let mut header = journal.find(&run).await.unwrap().header;
    header.given.remove("origin");
    let writer = journal.create(&header, None).await.unwrap();
    let by_hand = writer.run().to_string();
    drop(writer);
    drop(host);
    let desk = desk.again().await;
    ok(desk.post("/runs/wait", json!({ "input": "y" }))).await;
    let found = ok(desk.get(&format!("/runs/{by_hand}"))).await;
    assert_eq!((found["standing"].clone(), found["status"].clone()), (json!("interrupted"), json!("pending")));
    let entries: Vec<Entry> =
        desk.host().journal().history(&found["run_id"].as_str().unwrap().to_owned().into()).await.unwrap().entries;
    assert!(matches!(entries[..], [Entry { fact: Fact::Started(_), .. }]));
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_of_agents_that_are_not_served_are_out_of_reach() {
    let mut desk = Desk::with(&[ASK]).await;
    let own = desk.begin(json!({})).await;
    desk.stands(&own, "waiting").await;
    desk.stop().await;
    let host = desk.host();
    let journal = host.journal();
    let mut header = journal.find(&own).await.unwrap().header;
    header.source = "/elsewhere/graph.yaml".to_owned();
    let writer = journal.create(&header, None).await.unwrap();
    let other = writer.run().to_string();
    let place = EntryPath::default();
    let question = Question { node: "ask".to_owned(), text: "who?".to_owned(), ..Default::default() };
    let asked = Entry { place: place.clone(), fact: Fact::Asked { number: 0, question } };
    writer.append(vec![asked, Entry { place, fact: Fact::Waiting }]).await.unwrap();
    drop((writer, host));
    let desk = desk.again().await;
    for path in [format!("/runs/{other}"), format!("/runs/{other}/entries"), format!("/runs/{other}/stream")] {
        assert_eq!(problem(desk.get(&path)).await["status"], 404, "{path}");
    }
    for (path, body) in [("cancel", json!({})), ("answers", json!({ "answer": "me" }))] {
        assert_eq!(problem(desk.post(&format!("/runs/{other}/{path}"), body)).await["status"], 404, "{path}");
    }
    let ids = |list: &serde_json::Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|run| run["run_id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(&ok(desk.get("/runs")).await["runs"]), [&*own]);
    assert_eq!(ids(&ok(desk.post("/runs/search", json!({}))).await), [&*own]);
    assert_eq!(ids(&ok(desk.get("/inbox")).await["items"]), [&*own]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_paused_stays_paused() {
    let mut desk = Desk::with(&[SLOW]).await;
    let run = desk.begin(json!({ "input": "x" })).await;
    desk.model.was_asked(1).await;
    assert_eq!(desk.host().pause(&run).await.unwrap().status.as_str(), "running");
    // It comes from another process, as far as the run can tell, and may take a moment.
    until_async("it is to pause", async || desk.kinds(&run).await.iter().any(|kind| kind == "pause_asked")).await;
    desk.model.answers(1);
    desk.stands(&run, "paused").await;
    assert_eq!(ok(desk.get(&format!("/runs/{run}"))).await["status"], "interrupted");
    assert_eq!(desk.model.requests().len(), 1, "the next node was not begun");
    // A server that is started goes on with what was cut off, and not with what a person paused.
    desk.stop().await;
    let desk = desk.again().await;
    ok(desk.get("/health")).await;
    desk.stands(&run, "paused").await;
    let host = desk.host();
    desk.model.answers(1);
    let session = Session { people: Arc::new(Nobody), observer: Arc::new(Nobody), cancel: CancellationToken::new() };
    assert!(host.wake(&run, session.clone()).await.unwrap().is_none());
    let report = host.resume(&run, session).await.unwrap();
    assert_eq!(report.outcome, Outcome::Completed { output: "reply1 reply2".to_owned() });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_cannot_go_on_when_its_time_has_come_is_not_tried_again_at_once() {
    let gate = "name: gate\nsteps:\n- { id: g, type: approval_gate, timeout_seconds: 60, on_timeout: approve, output: decision }\n";
    let (mut desk, clock) = Desk::by_hand(&[("gate/workflow.yaml", gate)]).await;
    let run = desk.begin(json!({})).await;
    desk.stands(&run, "waiting").await;
    desk.stop().await;
    let damage = "UPDATE entries SET body = '{}' WHERE number > 1";
    opened(&desk.folder().join("runs.db")).execute(damage, []).expect("damaged");
    let _desk = desk.again().await;
    clock.advance(Duration::from_secs(60));
    // While it is tried, somebody works.
    assert!(clock.settled(PATIENCE).await, "{clock:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_was_to_pause_when_the_server_ended_is_paused_by_the_next_one() {
    let mut desk = Desk::with(&[SLOW]).await;
    let run = desk.begin(json!({ "input": "x" })).await;
    desk.model.was_asked(1).await;
    let found = desk.host().pause(&run).await.expect("it will pause");
    assert_eq!(found.status.as_str(), "running", "its node is not done");
    desk.stop().await;
    desk.model.is_left_alone().await;
    let desk = desk.again().await;
    desk.stands(&run, "paused").await;
    ok(desk.post(&format!("/runs/{run}/resume"), json!({}))).await;
    desk.model.was_asked(2).await;
    desk.model.answers(2);
    desk.stands(&run, "completed").await;
}
