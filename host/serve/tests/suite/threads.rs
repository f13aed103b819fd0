//! Threads.

use serde_json::{Value, json};

use crate::desk::{ASK, COUNT, Desk, ECHO, SLOW, ok, problem};

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_goes_on_in_its_thread() {
    let desk = Desk::with(&[COUNT]).await;
    let thread = ok(desk.post("/threads", json!({ "metadata": { "who": "me" } }))).await;
    assert_eq!((thread["status"].clone(), thread["agent_id"].clone()), (json!("idle"), Value::Null));
    let id = thread["thread_id"].as_str().unwrap();
    for count in ["1", "2", "3"] {
        let result = ok(desk.post("/runs/wait", json!({ "thread_id": id, "input": "more" }))).await;
        assert_eq!((result["run"]["thread_id"].clone(), result["output"].clone()), (json!(id), json!(count)));
    }
    let thread = ok(desk.get(&format!("/threads/{id}"))).await;
    assert_eq!((thread["agent_id"].clone(), thread["metadata"].clone()), (json!("count"), json!({ "who": "me" })));
    let state = ok(desk.get(&format!("/threads/{id}/state"))).await;
    assert_eq!(state["values"]["n"], 3, "{state}");
    assert_eq!(ok(desk.get(&format!("/threads/{id}/runs"))).await.as_array().unwrap().len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thread_is_made_found_changed_and_removed() {
    let desk = Desk::with(&[ECHO]).await;
    let made = ok(desk.post("/threads", json!({ "thread_id": "a-1", "metadata": { "x": 1 } }))).await;
    assert_eq!(made["thread_id"], "a-1");
    assert_eq!(problem(desk.post("/threads", json!({ "thread_id": "a-1" }))).await["status"], 409);
    let same = ok(desk.post("/threads", json!({ "thread_id": "a-1", "if_exists": "do_nothing" }))).await;
    assert_eq!(same["metadata"], json!({ "x": 1 }));
    let patch = |body: Value| desk.client.patch(format!("{}/threads/a-1", desk.url)).json(&body);
    assert_eq!(ok(patch(json!({ "metadata": { "y": 2 } }))).await["metadata"], json!({ "x": 1, "y": 2 }));
    ok(desk.post("/threads", json!({}))).await;
    let found = ok(desk.post("/threads/search", json!({ "metadata": { "y": 2 } }))).await;
    assert_eq!((found.as_array().unwrap().len(), found[0]["thread_id"].clone()), (1, json!("a-1")));
    assert_eq!(ok(desk.post("/threads/search", json!({}))).await.as_array().unwrap().len(), 2);

    ok(desk.post("/runs/wait", json!({ "thread_id": "a-1", "input": "x" }))).await;
    ok(desk.delete("/threads/a-1")).await;
    assert_eq!(problem(desk.get("/threads/a-1")).await["status"], 404);
    assert_eq!(ok(desk.get("/runs")).await["runs"], json!([]), "its runs went with it");
    assert_eq!(problem(desk.delete("/threads/a-1")).await["status"], 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thread_has_one_run_at_a_time() {
    let desk = Desk::with(&[SLOW]).await;
    let begin = || desk.post("/runs", json!({ "thread_id": "t", "if_not_exists": "create", "input": "x" }));
    let run = ok(begin()).await["run_id"].as_str().unwrap().to_owned();
    desk.model.was_asked(1).await;
    let busy = problem(begin()).await;
    assert_eq!(
        (busy["status"].clone(), busy["type"].clone(), busy["run_id"].clone()),
        (json!(409), json!("urn:hotcell:problem:thread-busy"), json!(run))
    );
    assert_eq!(ok(desk.get("/threads/t")).await["status"], "busy");
    assert_eq!(problem(desk.delete("/threads/t")).await["status"], 409);
    desk.model.answers(2);
    desk.stands(&run, "completed").await;
    ok(begin()).await;
    // Of many that come at once, one is begun.
    ok(desk.post("/threads", json!({ "thread_id": "u" }))).await;
    let all: Vec<_> = (0..8)
        .map(|_| {
            let request = desk.post("/runs", json!({ "thread_id": "u", "input": "x" }));
            tokio::spawn(async move { request.send().await.unwrap().status().as_u16() })
        })
        .collect();
    let mut statuses = Vec::new();
    for one in all {
        statuses.push(one.await.unwrap());
    }
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_in_a_thread_that_waits_is_no_answer_by_accident() {
    let desk = Desk::with(&[ASK]).await;
    let begin = || desk.post("/runs", json!({ "thread_id": "t", "if_not_exists": "create" }));
    let run = ok(begin()).await["run_id"].as_str().unwrap().to_owned();
    desk.stands(&run, "waiting").await;
    let waits = problem(begin()).await;
    assert_eq!(
        (waits["status"].clone(), waits["type"].clone(), waits["questions"][0]["text"].clone()),
        (json!(409), json!("urn:hotcell:problem:thread-interrupted"), json!("Who asks?"))
    );
    assert_eq!(ok(desk.get("/threads/t")).await["status"], "interrupted");
    desk.stands(&run, "waiting").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thread_belongs_to_one_agent_and_has_to_be_there() {
    let desk = Desk::with(&[ECHO, ASK]).await;
    let run = |agent: &str, thread: &str| {
        desk.post("/runs/wait", json!({ "agent_id": agent, "thread_id": thread, "input": "x" }))
    };
    assert_eq!(problem(run("echo", "t")).await["type"], "urn:hotcell:problem:unknown-thread");
    ok(desk.post("/threads", json!({ "thread_id": "t" }))).await;
    ok(run("echo", "t")).await;
    let other = problem(desk.post("/runs", json!({ "agent_id": "ask", "thread_id": "t" }))).await;
    assert_eq!(
        (other["status"].clone(), other["type"].clone()),
        (json!(409), json!("urn:hotcell:problem:thread-of-other-agent"))
    );
    for id in ["", "a b", "../x", "a/b", "ä", &"x".repeat(200)] {
        let refused = problem(desk.post("/threads", json!({ "thread_id": id }))).await;
        assert_eq!(refused["status"], 422, "{id}");
        let made = json!({ "agent_id": "echo", "thread_id": id, "if_not_exists": "create", "input": "x" });
        assert_eq!(problem(desk.post("/runs", made)).await["status"], 422, "{id}");
    }
}
