//! AG-UI, and its client where `clients/install.sh` has installed it.

use hotcell_serve::Role;
use serde_json::{Value, json};

use crate::access::key;
use crate::clients::drive_node;
use crate::desk::{ASK, COUNT, Desk, ECHO, Events, SLOW, ok, problem};
use crate::people::TWO;

fn input(thread: &str, text: &str) -> Value {
    json!({ "threadId": thread, "runId": "r", "messages": [{ "id": "m", "role": "user", "content": text }] })
}

async fn told(desk: &Desk, agent: &str, input: Value) -> Vec<Value> {
    let events = Events::of(desk.post(&format!("/ag-ui/{agent}"), input)).await.all().await;
    events.into_iter().map(|event| event.data).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_client_of_ag_ui_drives_runs_threads_and_interrupts() {
    let desk = Desk::with(&[ASK, COUNT, ECHO, SLOW]).await;
    desk.model.answers(2);
    drive_node("agui_client.mjs", "node_modules", &[&desk.url]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn several_interrupts_are_resumed_together_or_one_by_one() {
    let desk = Desk::with(&[TWO]).await;
    let resolved = |id: &Value| json!({ "interruptId": id, "status": "resolved", "payload": "yes" });
    let last = told(&desk, "two", input("a", "x")).await.pop().expect("an event");
    let ids: Vec<&Value> =
        last["outcome"]["interrupts"].as_array().expect("interrupts").iter().map(|one| &one["id"]).collect();
    assert_eq!((ids.len(), &last["outcome"]["type"]), (3, &json!("interrupt")));
    let resume = |answers: Value| json!({ "threadId": "a", "runId": "r", "messages": [], "resume": answers });
    let mixed = json!([resolved(ids[0]), { "interruptId": ids[1], "status": "cancelled" }]);
    assert_eq!(problem(desk.post("/ag-ui/two", resume(mixed))).await["status"], 422);
    let twice = json!([resolved(ids[0]), resolved(ids[0])]);
    assert_eq!(problem(desk.post("/ag-ui/two", resume(twice))).await["status"], 422);
    let next = told(&desk, "two", resume(json!([resolved(ids[0])]))).await.pop().expect("an event");
    assert_eq!(next["outcome"]["interrupts"].as_array().expect("interrupts").len(), 2, "{next}");
    assert_eq!(problem(desk.post("/ag-ui/two", resume(json!([resolved(ids[0])])))).await["status"], 409);
    let done = told(&desk, "two", resume(json!([resolved(ids[1]), resolved(ids[2])]))).await.pop().expect("an event");
    assert_eq!((&done["type"], &done["outcome"]["type"]), (&json!("RUN_FINISHED"), &json!("success")), "{done}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_agent_has_of_its_own_is_refused_by_name() {
    let desk = Desk::with(&[ECHO, ASK]).await;
    let known =
        json!([{ "id": "m", "role": "assistant", "content": "a" }, { "id": "n", "role": "user", "content": "b" }]);
    for (name, value, status) in [
        ("state", json!({ "x": 1 }), 422),
        ("tools", json!([{ "name": "x", "description": "x" }]), 422),
        ("context", json!([{ "description": "x", "value": "y" }]), 422),
        ("parentRunId", json!("x"), 422),
        ("forwardedProps", json!([1]), 422),
        ("anything", json!(1), 422),
        ("threadId", json!("../x"), 422),
        ("messages", json!([{ "id": "m", "role": "system", "content": "x" }]), 422),
        ("messages", json!([{ "id": "m", "role": "user", "content": [{ "type": "image" }] }]), 422),
        ("messages", known, 409),
        ("resume", json!([{ "interruptId": "x:1:0", "status": "resolved", "payload": "x" }]), 409),
    ] {
        let mut body = input("t", "x");
        body[name] = value;
        let refused = problem(desk.post("/ag-ui/echo", body)).await;
        assert_eq!(refused["status"], status, "{name}: {refused}");
    }
    assert_eq!(ok(desk.get("/runs")).await["runs"], json!([]), "nothing was begun");
    let mut empty = input("t", "x");
    (empty["state"], empty["tools"], empty["context"]) = (json!({}), json!([]), json!([]));
    assert_eq!(told(&desk, "echo", empty).await.pop().expect("an event")["result"], "you said x");
    // What is said in a thread that waits is no answer by accident.
    told(&desk, "ask", input("w", "hi")).await;
    assert_eq!(problem(desk.post("/ag-ui/ask", input("w", "Eve"))).await["status"], 409);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_only_begin_runs_does_not_resume_them() {
    let desk = Desk::with(&[ASK]).await;
    let token = key(&desk, &[Role::Run]);
    let post = |body: Value| desk.post("/ag-ui/ask", body).bearer_auth(&token);
    let asked = Events::of(post(input("t", "hi"))).await.all().await;
    let id = &asked.last().expect("an event").data["outcome"]["interrupts"][0]["id"];
    let answer = json!([{ "interruptId": id, "status": "resolved", "payload": "Ada" }]);
    let mut body = json!({ "threadId": "t", "runId": "r", "messages": [], "resume": answer });
    assert_eq!(problem(post(body.clone())).await["status"], 403);
    // What is given besides the answer would have no effect.
    body["forwardedProps"] = json!({ "tone": "kind" });
    assert_eq!(problem(post(body)).await["status"], 422);
}
