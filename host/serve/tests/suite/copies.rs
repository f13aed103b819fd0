//! Threads that are copied, and whose state is changed.

use serde_json::json;

use crate::desk::{ASK, COUNT, Desk, ok, problem};

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_of_a_thread_goes_on_by_itself() {
    let desk = Desk::with(&[COUNT]).await;
    ok(desk.post("/threads", json!({ "thread_id": "a", "metadata": { "who": "ada" } }))).await;
    let run = |thread: &str| desk.post("/runs/wait", json!({ "thread_id": thread, "input": "go" }));
    assert_eq!(ok(run("a")).await["values"]["n"], 1);
    let copy = ok(desk.post("/threads/a/copy", json!(null))).await;
    let id = copy["thread_id"].as_str().unwrap();
    assert_eq!((copy["metadata"].clone(), copy["status"].clone()), (json!({ "who": "ada" }), json!("idle")));
    assert_eq!(ok(desk.get(&format!("/threads/{id}/state"))).await["values"]["n"], 1);
    assert_eq!(ok(run(id)).await["values"]["n"], 2);
    assert_eq!(ok(run(id)).await["values"]["n"], 3);
    assert_eq!(ok(run("a")).await["values"]["n"], 2, "nothing of the thread itself is changed");
    assert_eq!(problem(desk.post("/threads/nobody/copy", json!(null))).await["status"], 404);
    ok(desk.post("/threads", json!({ "thread_id": "empty" }))).await;
    let empty = ok(desk.post("/threads/empty/copy", json!(null)).header("Idempotency-Key", "k")).await;
    let again = ok(desk.post("/threads/empty/copy", json!(null)).header("Idempotency-Key", "k")).await;
    assert_eq!(empty["thread_id"], again["thread_id"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_of_a_thread_that_waits_waits_too() {
    let desk = Desk::with(&[ASK]).await;
    ok(desk.post("/threads", json!({ "thread_id": "a" }))).await;
    let waiting = ok(desk.post("/runs/wait", json!({ "thread_id": "a" }))).await;
    let copy = ok(desk.post("/threads/a/copy", json!(null))).await;
    assert_eq!(copy["status"], "interrupted");
    let of_copy = ok(desk.get(&format!("/threads/{}/runs", copy["thread_id"].as_str().unwrap()))).await;
    let run = of_copy[0]["run_id"].as_str().unwrap();
    assert_ne!(of_copy[0]["run_id"], waiting["run"]["run_id"]);
    ok(desk.post(&format!("/runs/{run}/answers"), json!({ "answer": "copy" }))).await;
    assert_eq!(desk.stands(run, "completed").await["outcome"], "hello copy");
    desk.stands(waiting["run"]["run_id"].as_str().unwrap(), "waiting").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_run_goes_on_with_a_state_that_was_changed() {
    let desk = Desk::with(&[COUNT]).await;
    ok(desk.post("/threads", json!({ "thread_id": "a" }))).await;
    let change = |body| desk.post("/threads/a/state", body);
    assert_eq!(problem(change(json!({ "values": { "n": 40 } }))).await["status"], 409, "there is no state yet");
    let run = || desk.post("/runs/wait", json!({ "thread_id": "a", "input": "go" }));
    assert_eq!(ok(run()).await["values"]["n"], 1);
    let changed = ok(change(json!({ "values": { "n": 40 } }))).await;
    assert!(changed["checkpoint"]["checkpoint_id"].as_str().is_some_and(|id| id.contains(':')), "{changed}");
    assert_eq!(ok(desk.get("/threads/a/state")).await["values"]["n"], 40);
    assert_eq!(ok(run()).await["values"]["n"], 41);
    for body in [
        json!({}),
        json!({ "values": {} }),
        json!({ "values": [{ "n": 1 }] }),
        json!({ "values": { "m": 1 } }),
        json!({ "values": { "n": 1 }, "as_node": "count" }),
        json!({ "values": { "n": 1 }, "checkpoint_id": "x:1" }),
        json!({ "values": { "n": 1 }, "more": 1 }),
    ] {
        assert_eq!(problem(change(body.clone())).await["status"], 422, "{body}");
    }
    assert_eq!(ok(desk.get("/threads/a/state")).await["values"]["n"], 41);
}
