//! Requests that are made again with the same key.

use reqwest::{RequestBuilder, Response};
use serde_json::{Value, json};

use crate::desk::{ASK, Desk, ECHO, SLOW, ok, opened, problem, until, until_async};
use crate::mesh::MESH;

fn with_key(request: RequestBuilder, key: &str) -> RequestBuilder {
    request.header("Idempotency-Key", key)
}

async fn body(response: Response) -> (u16, bool, Value) {
    let (status, replayed) = (response.status().as_u16(), response.headers().contains_key("idempotency-replayed"));
    let text = response.text().await.expect("text");
    (status, replayed, serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}")))
}

/// As if the server had been killed before it could say what came of the requests.
fn lose_replies(desk: &Desk) {
    let file = opened(&desk.folder().join("runs.serve.db"));
    file.execute("UPDATE replies SET status = NULL, headers = NULL, body = NULL", []).unwrap();
}

async fn runs(desk: &Desk) -> usize {
    ok(desk.get("/runs?limit=1000")).await["runs"].as_array().expect("runs").len()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_with_a_key_is_carried_out_once_and_answered_as_it_was() {
    let mut desk = Desk::with(&[ECHO]).await;
    let begin = |desk: &Desk, key: &str, input: &str| with_key(desk.post("/runs", json!({ "input": input })), key);
    let first = begin(&desk, "a", "x").send().await.unwrap();
    let location = first.headers()["content-location"].clone();
    let first = body(first).await;
    assert_eq!((first.0, first.1), (200, false));
    let run = first.2["run_id"].as_str().unwrap();
    desk.stands(run, "completed").await;
    let again = begin(&desk, "a", "x").send().await.unwrap();
    assert_eq!(again.headers()["content-location"], location);
    assert_eq!(body(again).await, (200, true, first.2.clone()), "as it was, though the run has ended since");
    assert_eq!(runs(&desk).await, 1);
    let other = problem(begin(&desk, "a", "y")).await;
    assert_eq!(
        (other["status"].clone(), other["type"].clone()),
        (json!(422), json!("urn:hotcell:problem:idempotency-key"))
    );
    let elsewhere = problem(with_key(desk.post("/runs/wait", json!({ "input": "x" })), "a")).await;
    assert_eq!(elsewhere["status"], 422);
    ok(begin(&desk, "b", "x")).await;
    assert_eq!(runs(&desk).await, 2);
    desk.stop().await;
    let desk = desk.again().await;
    assert_eq!(body(begin(&desk, "a", "x").send().await.unwrap()).await, (200, true, first.2));
    assert_eq!(runs(&desk).await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn while_a_request_is_carried_out_its_key_is_taken() {
    let desk = Desk::with(&[SLOW]).await;
    let wait = |desk: &Desk| with_key(desk.post("/runs/wait", json!({ "input": "x" })), "k");
    let first = tokio::spawn(wait(&desk).send());
    desk.model.was_asked(1).await;
    let taken = problem(wait(&desk)).await;
    assert_eq!(
        (taken["status"].clone(), taken["type"].clone()),
        (json!(409), json!("urn:hotcell:problem:in-progress"))
    );
    desk.model.answers(2);
    let (status, _, result) = body(first.await.unwrap().unwrap()).await;
    assert_eq!((status, result["output"].clone()), (200, json!("reply1 reply2")));
    assert_eq!(ok(wait(&desk)).await, result);
    assert_eq!((runs(&desk).await, desk.model.requests().len()), (1, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_request_whose_reply_was_lost_the_run_is_found_again() {
    let mut desk = Desk::with(&[SLOW]).await;
    let wait = |desk: &Desk| with_key(desk.post("/runs/wait", json!({ "input": "x" })), "k");
    let lost = tokio::spawn(wait(&desk).send());
    desk.model.was_asked(1).await;
    // The client goes, and so does the server: nobody was answered.
    lost.abort();
    let log = desk.folder().join("runs.serve.audit.jsonl");
    let told = || std::fs::read_to_string(&log).unwrap_or_default();
    // What it answers a client of which it has not noticed that, is kept.
    until("it is noticed that the client is gone", || told().contains("\"status\":499")).await;
    desk.stop().await;
    let desk = desk.again().await;
    desk.model.was_asked(2).await;
    let again = tokio::spawn(wait(&desk).send());
    desk.model.answers(3);
    let (status, replayed, result) = body(again.await.unwrap().unwrap()).await;
    assert_eq!((status, replayed, result["run"]["standing"].clone()), (200, false, json!("completed")));
    assert_eq!(runs(&desk).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_found_by_what_was_begun_where_nobody_could_keep_the_reply() {
    let mut desk = Desk::with(&[ECHO, ASK]).await;
    let input = json!({ "agent_id": "echo", "input": "x" });
    let run = ok(with_key(desk.post("/runs", input.clone()), "run")).await;
    let thread = ok(with_key(desk.post("/threads", json!({})), "thread")).await;
    let cron = json!({ "agent_id": "echo", "cron": "0 0 1 1 *", "input": "x" });
    let schedule = with_key(desk.post("/schedules", cron.clone()), "cron").send().await.unwrap();
    assert_eq!(schedule.status(), 201);
    let waiting = desk.begin(json!({ "agent_id": "ask" })).await;
    desk.stands(&waiting, "waiting").await;
    let answers = format!("/runs/{waiting}/answers");
    let answer = json!({ "answer": "me" });
    let answered = ok(with_key(desk.post(&answers, answer.clone()), "answer")).await;
    desk.stands(&waiting, "completed").await;
    desk.stop().await;
    lose_replies(&desk);
    let desk = desk.again().await;
    let again = ok(with_key(desk.post("/runs", input), "run")).await;
    assert_eq!(again["run_id"], run["run_id"]);
    let again = ok(with_key(desk.post("/threads", json!({})), "thread")).await;
    assert_eq!(again["thread_id"], thread["thread_id"]);
    with_key(desk.post("/schedules", cron), "cron").send().await.unwrap();
    assert_eq!(ok(desk.get("/schedules")).await["items"].as_array().unwrap().len(), 1);
    assert_eq!(ok(with_key(desk.post(&answers, answer.clone()), "answer")).await, answered);
    assert_eq!(runs(&desk).await, 2);
    // Another key is another request.
    assert_eq!(problem(with_key(desk.post(&answers, answer), "other")).await["status"], 409);
}

/// Asks a person, and redacts what they say.
const GATE: (&str, &str) = (
    "gate/workflow.yaml",
    "name: gate\nconfig: { provider: mock, responses_file: replies.json }\nstate_schema:\n  decision: { redact: true }\nsteps:\n- { id: sure, type: approval_gate, output: decision }\n",
);

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_sealed_is_found_again_by_its_key() {
    let mut desk = Desk::with(&[GATE, ("gate/replies.json", "{}")]).await;
    let run = desk.begin(json!({ "agent_id": "gate", "input": {} })).await;
    desk.stands(&run, "waiting").await;
    let answers = format!("/runs/{run}/answers");
    let answer = |desk: &Desk| with_key(desk.post(&answers, json!({ "answer": "approved" })), "k");
    let answered = ok(answer(&desk)).await;
    desk.stands(&run, "completed").await;
    desk.stop().await;
    lose_replies(&desk);
    let desk = desk.again().await;
    let entries = ok(desk.get(&format!("/runs/{run}/entries"))).await.to_string();
    assert!(entries.contains(r#""answer":"<REDACTED:"#), "it is not sealed: {entries}");
    assert_eq!(ok(answer(&desk)).await, answered);
    let other = with_key(desk.post(&answers, json!({ "answer": "rejected" })), "other");
    assert_eq!(problem(other).await["status"], 409);
}

/// Asks one thing after the other.
const TWICE: (&str, &str) = (
    "twice/graph.yaml",
    "name: twice\nstart: one\nnodes:\n  one: { type: input, question: One?, state_updates: { one: \"{{input}}\" }, next: two }\n  two: { type: input, question: Two?, state_updates: { two: \"{{input}}\" }, next: done }\n  done: { type: end, output: \"{{one}} {{two}}\" }\n",
);

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_given_again_is_no_answer_to_what_is_asked_since() {
    let mut desk = Desk::with(&[TWICE]).await;
    let run = desk.begin(json!({ "thread_id": "t", "if_not_exists": "create" })).await;
    desk.stands(&run, "waiting").await;
    let answers = format!("/runs/{run}/answers");
    let answer = |desk: &Desk| with_key(desk.post(&answers, json!({ "answer": "yes" })), "k");
    let body = json!({ "assistant_id": "twice", "command": { "resume": "yes" } });
    let resume = |desk: &Desk| with_key(desk.post("/threads/t/runs/wait", body.clone()), "r");
    let first = ok(answer(&desk)).await;
    let asks = async |desk: &Desk| ok(desk.get("/inbox")).await["items"][0]["message"].clone();
    until_async("the second question is asked", async || asks(&desk).await == "Two?").await;
    desk.stop().await;
    lose_replies(&desk);
    let mut desk = desk.again().await;
    assert_eq!(ok(answer(&desk)).await, first);
    assert_eq!(asks(&desk).await, "Two?");
    // The same by a thread, which names no question.
    assert_eq!(ok(resume(&desk)).await["__output__"], "yes yes");
    desk.stop().await;
    lose_replies(&desk);
    let desk = desk.again().await;
    assert_eq!(ok(resume(&desk)).await["__output__"], "yes yes");
    assert_eq!(desk.kinds(&run).await.iter().filter(|kind| kind.starts_with("answered")).count(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_to_a_mesh_is_found_again_by_its_key() {
    let mut desk = Desk::with(&[MESH]).await;
    desk.model.answers(10);
    let call = json!({ "entry_point": "story", "data": {}, "session_id": "s" });
    assert_eq!(ok(desk.post("/api/mesh/request", call)).await["status"], "waiting_human");
    let asked = ok(desk.get("/api/sessions/hitl")).await["sessions"][0]["requests"][0]["request_id"].clone();
    let path = format!("/api/sessions/hitl/{}/reply", asked.as_str().expect("an id"));
    let reply = |desk: &Desk, key: &str| with_key(desk.post(&path, json!({ "decision": "no" })), key);
    let replied = ok(reply(&desk, "k")).await;
    desk.stop().await;
    lose_replies(&desk);
    let desk = desk.again().await;
    assert_eq!(ok(reply(&desk, "k")).await, replied);
    assert_eq!(problem(reply(&desk, "other")).await["status"], 409);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_did_nothing_may_be_tried_again_and_what_is_no_key_is_refused() {
    let desk = Desk::with(&[ECHO]).await;
    let wrong = || with_key(desk.post("/runs", json!({ "input": 1 })), "k");
    assert_eq!(problem(wrong()).await["status"], 422);
    assert_eq!(problem(wrong()).await["status"], 422);
    ok(with_key(desk.post("/runs", json!({ "input": "x" })), "k")).await;
    for key in ["", "with blank", &"x".repeat(256)] {
        let refused = problem(with_key(desk.post("/runs", json!({ "input": "x" })), key)).await;
        assert_eq!(refused["status"], 400, "`{key}`");
    }
    let twice = with_key(with_key(desk.post("/runs", json!({ "input": "x" })), "a"), "b");
    assert_eq!(problem(twice).await["status"], 400);
    // Where nothing is changed, a key means nothing.
    for limit in [1, 2] {
        ok(with_key(desk.post("/runs/search", json!({ "limit": limit })), "k")).await;
    }
    assert_eq!(runs(&desk).await, 1);
}
