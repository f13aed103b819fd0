//! Recorded calls that are executed again.

use hotcell_serve::Role;
use serde_json::json;

use crate::access::key;
use crate::desk::{Desk, ECHO, ok, problem};

const LOOK: (&str, &str) = (
    "look/graph.yaml",
    "name: look\nstart: look\nnodes:\n  look: { type: script, script: look.sh, next: done }\n  done: { type: end, output: \"{{said}}\" }\n",
);
const SCRIPT: (&str, &str) = ("look/look.sh", "echo '{\"said\": \"hello\"}'");

#[tokio::test(flavor = "multi_thread")]
async fn the_calls_of_a_run_come_to_the_same_again() {
    let desk = Desk::with(&[LOOK, SCRIPT, ECHO]).await;
    let ran = ok(desk.post("/runs/wait", json!({ "agent_id": "look" }))).await;
    assert_eq!(ran["output"], "hello");
    let run = ran["run"]["run_id"].as_str().unwrap();
    let again = |body| desk.post(&format!("/runs/{run}/reexecute"), body);
    let all = ok(again(json!({}))).await;
    assert_eq!((all["summary"]["calls"].clone(), all["summary"]["same"].clone()), (json!(1), json!(1)), "{all}");
    let call = &all["calls"][0];
    assert_eq!(
        (call["run"].clone(), call["place"].clone(), call["result"].clone()),
        (json!(run), json!("1"), json!("same"))
    );
    assert!(call["fuel_now"].as_u64().is_some_and(|fuel| fuel > 0), "{call}");
    assert_eq!(ok(again(json!({ "place": "1" }))).await, all);
    assert_eq!(desk.kinds(run).await.iter().filter(|kind| kind.starts_with("started")).count(), 1);

    for wrong in [
        json!({ "place": "9" }),
        json!({ "place": "x".repeat(1025) }),
        json!({ "limit": 0 }),
        json!({ "limit": 1001 }),
        json!({ "all": true }),
    ] {
        assert_eq!(problem(again(wrong.clone())).await["status"], 422, "{wrong}");
    }
    let nothing = ok(desk.post("/runs/wait", json!({ "agent_id": "echo", "input": "x" }))).await;
    let nothing = nothing["run"]["run_id"].as_str().unwrap();
    let nothing = problem(desk.post(&format!("/runs/{nothing}/reexecute"), json!({}))).await;
    assert_eq!(
        (nothing["status"].clone(), nothing["type"].clone()),
        (json!(409), json!("urn:hotcell:problem:nothing-recorded"))
    );
    assert_eq!(problem(desk.post("/runs/nobody/reexecute", json!({}))).await["status"], 404);
    let token = key(&desk, &[Role::Run]);
    assert_eq!(problem(again(json!({})).bearer_auth(token)).await["status"], 403);
}
