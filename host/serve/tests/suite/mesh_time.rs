//! What a mesh does by the clock, over restarts and changes of the mesh: each thing once.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::desk::{Desk, ok, opened, problem, until_async};
use crate::hours::{HOUR, PATIENCE, until};
use crate::mesh::{MESH, settled};

/// A person begins each morning.
const MORNING: (&str, &str) = (
    "desk/mesh.yaml",
    "name: desk
manager: {enabled: false}
agents:
  chief: {agent_type: human, human_interface: default, wake_up: \"0 9 * * *\"}
entry_points:
  - {name: ask, target: chief}
",
);

/// A function that is not there fails; the second failure of a session is told to a person.
const ALARM: (&str, &str) = (
    "plant/mesh.yaml",
    "name: plant
manager:
  enabled: true
  model: gpt-4o-mini
  escalation:
    targets: [{type: human_agent, agent: oncall}]
    auto_escalate: {max_errors_per_session: 2}
agents:
  valve: {agent_type: programmatic, communication_type: chain}
  oncall: {agent_type: human, human_interface: default, human_timeout_seconds: 36000}
entry_points:
  - {name: open, target: valve}
",
);

/// The names of all sessions, in alphabetical order.
async fn sessions(desk: &Desk) -> Vec<String> {
    let listed = ok(desk.get("/api/sessions/")).await;
    let name = |session: &Value| session["session_id"].as_str().expect("a name").to_owned();
    let mut names: Vec<String> = listed["sessions"].as_array().expect("a list").iter().map(name).collect();
    names.sort();
    names
}

/// The same where there come to be so many, and no more.
async fn all_of(desk: &Desk, count: usize) -> Vec<String> {
    until_async(&format!("there are {count} sessions"), async || sessions(desk).await.len() >= count).await;
    let names = sessions(desk).await;
    assert_eq!(names.len(), count, "{names:?}");
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wake_up_happens_once_over_restarts_and_goes_by_the_mesh_as_it_was_changed() {
    let (desk, clock) = Desk::by_hand(&[MORNING]).await;
    until(&clock, 8).await;
    assert!(sessions(&desk).await.is_empty());
    until(&clock, 9).await;
    let first = all_of(&desk, 1).await;
    assert_eq!(first, ["wake:chief:0:19700101T09:00:00Z"]);
    let desk = desk.again().await;
    until(&clock, 10).await;
    assert_eq!(sessions(&desk).await, first, "it was made good already");

    // Its time passes while there is no server, and is made good by the next one.
    let mut desk = desk;
    desk.stop().await;
    clock.advance_to(SystemTime::UNIX_EPOCH + HOUR * 33 + Duration::from_secs(30));
    let desk = desk.again().await;
    until(&clock, 34).await;
    all_of(&desk, 2).await;

    let patch = desk.client.patch(format!("{}/api/yaml/agents/chief", desk.url));
    ok(patch.json(&json!({ "wake_up": "0 15 * * *" }))).await;
    until(&clock, 48 + 8).await;
    assert_eq!(all_of(&desk, 3).await.last().expect("one"), "wake:chief:0:19700102T15:00:00Z");
    until(&clock, 48 + 14).await;
    assert_eq!(sessions(&desk).await.len(), 3, "the earlier time is none any more");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wake_up_happens_once_although_the_server_died_before_it_noted_that() {
    let (mut desk, clock) = Desk::by_hand(&[MORNING]).await;
    until(&clock, 9).await;
    let first = all_of(&desk, 1).await;
    desk.stop().await;
    // The run is in the journal, where it waits for the person, and the server's file knows of nothing.
    let forgotten = "DELETE FROM mesh_turns; DELETE FROM mesh_runs; DELETE FROM mesh_events; DELETE FROM mesh_sessions;
        UPDATE mesh_facts SET value = '1970-01-01T08:00:00Z' WHERE name LIKE '%woken:%';";
    opened(&desk.folder().join("runs.serve.db")).execute_batch(forgotten).expect("forgotten");
    let desk = desk.again().await;
    until(&clock, 10).await;
    assert_eq!(all_of(&desk, 1).await, first);
    let runs = ok(desk.get("/runs")).await;
    assert_eq!(runs["runs"].as_array().map(Vec::len), Some(1), "{runs}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_time_of_a_person_ends_although_the_server_was_started_again() {
    let (desk, clock) = Desk::by_hand(&[MESH]).await;
    desk.model.answers(1);
    let call = json!({ "entry_point": "story", "data": {}, "session_id": "s" });
    ok(desk.post("/api/mesh/request", call)).await;
    settled(&desk, "s", "paused").await;
    let open = ok(desk.get("/api/sessions/hitl")).await;
    let mut desk = desk.again().await;
    desk.stop().await;
    clock.advance(HOUR * 2);
    let desk = desk.again().await;
    until_async("its time is over", async || {
        ok(desk.get("/api/sessions/s/history")).await["status"] != "paused"
            && ok(desk.get("/api/sessions/hitl")).await == json!({ "sessions": [] })
    })
    .await;
    let request = open["sessions"][0]["requests"][0]["request_id"].as_str().expect("a name");
    let late = problem(desk.post(&format!("/api/sessions/hitl/{request}/reply"), json!({ "decision": "yes" }))).await;
    assert_eq!(late["status"], 410, "{late}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_is_told_of_failures_once_over_restarts() {
    let (desk, clock) = Desk::by_hand(&[ALARM]).await;
    let fail = async |desk: &Desk| {
        let call = json!({ "entry_point": "open", "data": {}, "session_id": "s" });
        let request = desk.post("/api/mesh/request", call);
        let failed: Value = request.send().await.expect("a reply").json().await.expect("JSON");
        assert_eq!(failed["status"], "error", "{failed}");
        assert!(clock.settled(PATIENCE).await, "{clock:?}");
    };
    let asked = async |desk: &Desk| {
        let open = ok(desk.get("/api/sessions/hitl")).await;
        let requests = open["sessions"][0]["requests"].as_array().cloned().unwrap_or_default();
        requests.iter().map(|request| request["agent_name"].as_str().expect("a name").to_owned()).collect::<Vec<_>>()
    };
    fail(&desk).await;
    let desk = desk.again().await;
    assert!(asked(&desk).await.is_empty(), "one is not enough");
    fail(&desk).await;
    until_async("a person is asked", async || asked(&desk).await == ["oncall"]).await;
    let desk = desk.again().await;
    assert!(clock.settled(PATIENCE).await, "{clock:?}");
    assert_eq!(asked(&desk).await, ["oncall"]);
}
