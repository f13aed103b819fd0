//! The documented addresses of a mesh: entry points, sessions, webhooks and people.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::desk::{Desk, Events, SECRET, ok, opened, problem, until};

/// A model drafts, a person decides, a model sends; and a model that answers at once while another one works on.
pub(crate) const MESH: (&str, &str) = (
    "press/mesh.yaml",
    "name: press
manager: {enabled: false}
agents:
  draft: {agent_type: llm, communication_type: chain, model: gpt-4o-mini, prompt: Draft it., can_call: [{agent: chief}]}
  chief:
    agent_type: human
    human_interface: default
    can_call: [{agent: send, condition: \"human_decision == 'yes'\"}]
  send: {agent_type: llm, communication_type: chain, model: gpt-4o-mini, prompt: Send it.}
  desk: {agent_type: llm, communication_type: dual, model: gpt-4o-mini, prompt: Take it., can_call: [{agent: send}]}
entry_points:
  - {name: story, target: draft}
  - {name: letter, target: chief}
  - {name: open, target: desk, condition: \"open == true\"}
",
);

pub(crate) async fn reply(request: reqwest::RequestBuilder) -> (u16, Value) {
    let response = request.send().await.expect("a reply");
    (response.status().as_u16(), response.json().await.expect("JSON"))
}

pub(crate) async fn settled(desk: &Desk, session: &str, status: &str) -> Value {
    settled_in(desk, "", session, status).await
}

/// The same in the mesh whose addresses begin like this.
pub(crate) async fn settled_in(desk: &Desk, mesh: &str, session: &str, status: &str) -> Value {
    let begun = Instant::now();
    loop {
        let history = ok(desk.get(&format!("{mesh}/api/sessions/{session}/history"))).await;
        if history["status"] == status {
            return history;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "session `{session}` is not {status}: {history}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_waits_for_a_person_and_goes_on_with_the_answer() {
    let desk = Desk::with(&[MESH]).await;
    desk.model.answers(10);
    let asked =
        ok(desk.post("/api/mesh/request", json!({ "entry_point": "story", "data": { "about": "rain" } }))).await;
    assert_eq!(asked["status"], "waiting_human", "{asked}");
    assert_eq!(asked["outputs"]["draft"]["response"], "reply1", "{asked}");
    let session = asked["session_id"].as_str().unwrap().to_owned();
    settled(&desk, &session, "paused").await;
    let open = ok(desk.get("/api/sessions/hitl")).await;
    let request = open["sessions"][0]["requests"][0].clone();
    assert_eq!(
        (open["sessions"][0]["request_count"].clone(), request["agent_name"].clone()),
        (json!(1), json!("chief"))
    );
    // No other work meanwhile.
    let call = json!({ "entry_point": "story", "data": {}, "session_id": session });
    let (status, busy) = reply(desk.post("/api/mesh/request", call)).await;
    assert_eq!((status, busy["status"].clone()), (409, json!("busy")));
    // The answer arrives at whichever entry point.
    let resumed =
        ok(desk.post("/webhook/open", json!({ "session_id": session, "decision": "yes", "message": "go" }))).await;
    assert_eq!(
        (resumed["status"].clone(), resumed["request_id"].clone()),
        (json!("resumed"), request["request_id"].clone())
    );
    let history = settled(&desk, &session, "completed").await;
    let turns = history["turns"].as_array().unwrap();
    assert_eq!(turns.len(), 2);
    assert_eq!((turns[0]["data"].clone(), turns[1]["kind"].clone()), (json!({ "about": "rain" }), json!("answer")));
    let id = request["request_id"].as_str().unwrap();
    let again = problem(desk.post(&format!("/api/sessions/hitl/{id}/reply"), json!({ "decision": "no" }))).await;
    assert_eq!(again["status"], 409, "{again}");
    assert_eq!(problem(desk.post("/api/sessions/hitl/nobody/reply", json!({}))).await["status"], 404);
    assert_eq!(desk.model.requests().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_came_by_another_protocol_is_acted_on() {
    let desk = Desk::with(&[MESH]).await;
    desk.model.answers(10);
    let call = json!({ "entry_point": "story", "data": {}, "session_id": "s" });
    assert_eq!(ok(desk.post("/api/mesh/request", call)).await["status"], "waiting_human");
    settled(&desk, "s", "paused").await;
    let run = ok(desk.get("/inbox")).await["items"][0]["run_id"].as_str().unwrap().to_owned();
    ok(desk.post(&format!("/runs/{run}/answers"), json!({ "answer": { "decision": "no" } }))).await;
    let file = opened(&desk.folder().join("runs.serve.db"));
    let ended = || -> Option<String> {
        file.query_row("SELECT ended FROM mesh_runs WHERE run = ?1", [&run], |row| row.get(0)).unwrap()
    };
    until("its end is noted", || ended().as_deref() == Some("completed")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_outlive_the_server() {
    let desk = Desk::with(&[MESH]).await;
    desk.model.answers(10);
    let call = json!({ "entry_point": "story", "data": {}, "session_id": "s-1" });
    assert_eq!(ok(desk.post("/api/mesh/request", call)).await["status"], "waiting_human");
    settled(&desk, "s-1", "paused").await;
    let desk = desk.again().await;
    settled(&desk, "s-1", "paused").await;
    ok(desk.post("/webhook/story", json!({ "session_id": "s-1", "decision": "no" }))).await;
    settled(&desk, "s-1", "completed").await;
    assert_eq!(desk.model.requests().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_begun_leaves_no_session() {
    let desk = Desk::with(&[MESH]).await;
    let call = |body: Value| desk.post("/api/mesh/request", body);
    let cases = [
        (json!({ "entry_point": "stori", "data": {} }), 404),
        (json!({ "entry_point": "open", "data": { "open": false } }), 409),
        (json!({ "entry_point": "open", "data": {} }), 409),
        (json!({ "data": {} }), 422),
        (json!({ "entry_point": "story", "data": 3 }), 422),
        (json!({ "entry_point": "story", "data": {}, "session_id": "../x" }), 422),
        (json!({ "entry_point": "story", "data": {}, "session_id": "" }), 422),
        (json!({ "entry_point": "story", "data": {}, "(call)": { "agent": "send" } }), 422),
        (json!([]), 422),
    ];
    for (body, status) in cases {
        assert_eq!(problem(call(body.clone())).await["status"], status, "{body}");
    }
    assert_eq!(problem(desk.post("/webhook/stori", json!({}))).await["status"], 404);
    let twice = desk.client.post(format!("{}/webhook/story", desk.url)).body(r#"{"session_id":"a","session_id":"b"}"#);
    assert!(problem(twice).await.to_string().contains("`session_id` is there twice"));
    assert_eq!(problem(desk.get("/api/sessions/nobody/history")).await["status"], 404);
    assert_eq!(ok(desk.get("/api/sessions/")).await, json!({ "sessions": [] }));
    assert!(desk.model.requests().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dual_agent_answers_first_and_a_stream_tells_what_happens() {
    let desk = Desk::with(&[MESH]).await;
    desk.model.answers(1);
    let call = json!({ "entry_point": "open", "data": { "open": true }, "session_id": "d" });
    let early = ok(desk.post("/api/mesh/request", call)).await;
    assert_eq!((early["status"].clone(), early["output"]["response"].clone()), (json!("accepted"), json!("reply1")));
    settled(&desk, "d", "busy").await;
    desk.model.answers(10);
    settled(&desk, "d", "completed").await;
    let events =
        Events::of(desk.post("/api/mesh/stream", json!({ "entry_point": "open", "data": { "open": true } }))).await;
    let events = events.all().await;
    let names: Vec<&str> = events.iter().map(|event| &*event.event).collect();
    assert_eq!((names.first(), names.last()), (Some(&"start"), Some(&"result")), "{names:?}");
    let text: String = events
        .iter()
        .filter(|event| event.event == "token")
        .map(|event| event.data["delta"].as_str().unwrap())
        .collect();
    assert_eq!(text, "reply3reply4");
    let last = &events.last().unwrap().data;
    assert_eq!(
        (last["status"].clone(), last["outputs"]["send"]["response"].clone()),
        (json!("completed"), json!("reply4"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_mesh_takes_nothing_until_it_is_resumed() {
    let desk = Desk::with(&[MESH]).await;
    desk.model.answers(10);
    let call = || json!({ "entry_point": "story", "data": {}, "session_id": "s" });
    ok(desk.post("/api/mesh/request", call())).await;
    ok(desk.post("/api/system/stop", json!({}))).await;
    let desk = desk.again().await;
    assert_eq!(ok(desk.get("/api/system/status")).await, json!({ "state": "stopped" }));
    for request in [desk.post("/api/mesh/request", call()), desk.post("/webhook/story", json!({}))] {
        let (status, body) = reply(request).await;
        assert_eq!((status, body["state"].clone()), (503, json!("stopped")));
    }
    ok(desk.post("/api/system/resume", json!({}))).await;
    // What was under way is not taken up again.
    settled(&desk, "s", "active").await;
    assert_eq!(ok(desk.post("/api/mesh/request", call())).await["status"], "waiting_human");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_runs_again_with_what_it_was_given() {
    let desk = Desk::with(&[MESH]).await;
    desk.model.answers(10);
    let call = json!({ "entry_point": "story", "data": { "about": "rain" }, "session_id": "s" });
    ok(desk.post("/api/mesh/request", call)).await;
    let rerun = |agent: &str, body: Value| desk.post(&format!("/api/sessions/s/agents/{agent}/rerun"), body);
    let again = ok(rerun("draft", json!({ "feedback": "shorter", "reason": "long" }))).await;
    assert_eq!(
        (again["status"].clone(), again["input_source"].clone()),
        (json!("dispatched"), json!("stored_original"))
    );
    desk.model.was_asked(2).await;
    let text = desk.model.requests()[1]["messages"].to_string();
    assert!(text.contains("rain") && text.contains("shorter"), "{text}");
    assert_eq!(problem(rerun("send", json!({}))).await["status"], 409);
    assert_eq!(problem(rerun("nobody", json!({}))).await["status"], 404);
    let elsewhere = desk.post("/api/sessions/t/agents/draft/rerun", json!({}));
    assert_eq!(problem(elsewhere).await["status"], 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_there_for_its_tenant_alone() {
    let desk = Desk::with(&[MESH]).await;
    desk.model.answers(10);
    let call = json!({ "entry_point": "story", "data": {}, "session_id": "s" });
    let asked = ok(desk.post("/api/mesh/request", call).header("x-tenant-id", "acme")).await;
    let of = |tenant: &'static str, path: &str| desk.get(path).header("x-tenant-id", tenant);
    assert_eq!(ok(of("zeta", "/api/sessions/")).await, json!({ "sessions": [] }));
    assert_eq!(problem(of("zeta", "/api/sessions/s/history")).await["status"], 404);
    assert_eq!(ok(of("zeta", "/api/sessions/hitl")).await, json!({ "sessions": [] }));
    let open = ok(of("acme", "/api/sessions/hitl")).await;
    let id = open["sessions"][0]["requests"][0]["request_id"].as_str().unwrap().to_owned();
    let answer = |tenant: &'static str| {
        desk.post(&format!("/api/sessions/hitl/{id}/reply"), json!({ "decision": "yes" })).header("x-tenant-id", tenant)
    };
    assert_eq!(problem(answer("zeta")).await["status"], 404);
    assert_eq!(problem(of("a b", "/api/sessions/")).await["status"], 422);
    ok(answer("acme")).await;
    assert!(asked["session_id"] == "s");
}

/// The origin whose pages are told that they may use the server.
fn allowed(reply: &reqwest::Response) -> Option<&str> {
    Some(reply.headers().get("access-control-allow-origin")?.to_str().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_that_the_mesh_names_may_use_the_server_and_no_others() {
    let listed = MESH.1.replace("manager:", "api: {cors_origins: [\"https://panel.example.org\"]}\nmanager:");
    let desk = Desk::with(&[("press/mesh.yaml", &listed)]).await;
    let url = format!("{}/api/mesh/request", desk.url);
    let asks = |origin: &'static str| {
        let request = desk.client.request(reqwest::Method::OPTIONS, &url).header("origin", origin);
        request.header("access-control-request-method", "POST")
    };
    for origin in ["https://panel.example.org", "http://localhost:5173"] {
        let reply = asks(origin).send().await.unwrap();
        assert_eq!((reply.status().as_u16(), allowed(&reply)), (204, Some(origin)));
        let reply = desk.get("/api/sessions/").header("origin", origin).send().await.unwrap();
        assert_eq!((reply.status().as_u16(), allowed(&reply)), (200, Some(origin)));
    }
    for origin in ["https://panel.example.org.evil.test", "http://panel.example.org", "null", "http://localhost:1"] {
        let reply = asks(origin).send().await.unwrap();
        assert_eq!(allowed(&reply), None, "{origin}");
        assert_eq!(problem(desk.get("/api/sessions/").header("origin", origin)).await["status"], 403, "{origin}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn in_production_posts_are_signed_and_nothing_is_taken_from_pages_for_development() {
    let production = MESH.1.replace("manager:", "environment: production\nmanager:");
    let desk = Desk::with(&[("press/mesh.yaml", &production)]).await;
    for request in [
        desk.post("/webhook/story", json!({ "session_id": "s" })),
        desk.post("/webhook/story", json!({})).header("x-leafmesh-signature", "sha256=00"),
        desk.post("/webhook/story", json!({})).header("authorization", "Bearer x"),
    ] {
        assert_eq!(problem(request).await["status"], 401);
    }
    let large = desk.client.post(format!("{}/webhook/story", desk.url)).body(vec![b' '; (1 << 20) + 1]);
    assert_eq!(problem(large).await["status"], 413);
    let broken = desk.client.post(format!("{}/webhook/story", desk.url)).body("{");
    assert_eq!(problem(broken).await["status"], 401, "what is not signed is not read");
    assert_eq!(problem(desk.get("/api/sessions/").header("origin", "http://localhost:3000")).await["status"], 403);
    assert_eq!(ok(desk.get("/api/sessions/")).await, json!({ "sessions": [] }));
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_are_checked_and_show_no_variables() {
    let desk = Desk::with(&[MESH]).await;
    let check = |body: Value| desk.post("/api/yaml/validate", body);
    let fine = json!({ "name": "x", "agents": { "a": { "agent_type": "human" } }, "entry_points": [{ "name": "e", "target": "a" }] });
    let said = ok(check(fine)).await;
    assert_eq!((said["valid"].clone(), said["errors"].clone()), (json!(true), json!([])), "{said}");
    let said =
        ok(check(json!({ "name": "x", "agents": { "robot9": { "agent_type": "android" } }, "entry_points": [] })))
            .await;
    assert!(
        said["valid"] == false && ["robot9", "android"].iter().all(|word| said["errors"].to_string().contains(word)),
        "{said}"
    );
    let curious = json!({ "name": "x", "agents": { "a": { "agent_type": "${DESK_SECRET}" } }, "entry_points": [] });
    let said = ok(check(curious)).await;
    assert!(said["valid"] == false && !said.to_string().contains(SECRET), "{said}");
    assert_eq!(problem(check(json!([]))).await["status"], 422);
    let yaml = desk.client.post(format!("{}/api/yaml/validate", desk.url)).body("agents:\n\ta: 1\nentry_points: []\n");
    assert_eq!(ok(yaml.header("content-type", "application/yaml")).await["valid"], false);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_changed_for_what_begins_from_then_on_and_a_bad_change_changes_nothing() {
    let desk = Desk::with(&[MESH]).await;
    desk.model.answers(10);
    let patch = |desk: &Desk, name: &str, body: Value| {
        desk.client.patch(format!("{}/api/yaml/agents/{name}", desk.url)).json(&body)
    };
    let changed = ok(patch(&desk, "draft", json!({ "prompt": "Sketch it.", "max_tokens": 7 }))).await;
    assert_eq!(
        (changed["config"]["prompt"].clone(), changed["config"]["model"].clone()),
        (json!("Sketch it."), json!("gpt-4o-mini"))
    );
    let changed = ok(patch(&desk, "draft", json!({ "max_tokens": null }))).await;
    assert!(changed["config"].get("max_tokens").is_none() && changed["config"]["prompt"] == "Sketch it.", "{changed}");
    let refused = problem(patch(&desk, "draft", json!({ "agent_type": "pigeon" }))).await;
    assert!(refused["status"] == 422 && refused["detail"].as_str().unwrap().contains("pigeon"), "{refused}");
    assert_eq!(problem(patch(&desk, "nobody", json!({}))).await["status"], 404);
    let person = ok(patch(&desk, "send", json!({ "agent_type": "human", "human_interface": "default" }))).await;
    assert!(person["config"].get("model").is_none(), "{person}");
    // Also after the server has ended.
    let desk = desk.again().await;
    let call = json!({ "entry_point": "story", "data": {}, "session_id": "s" });
    ok(desk.post("/api/mesh/request", call)).await;
    let asked = desk.model.requests()[0]["messages"].to_string();
    assert!(asked.contains("Sketch it.") && !asked.contains("Draft it."), "{asked}");
    settled(&desk, "s", "paused").await;
    ok(desk.post("/webhook/story", json!({ "session_id": "s", "decision": "yes" }))).await;
    // The second agent is a person by now.
    settled(&desk, "s", "paused").await;
    // Another file is another mesh.
    let file = desk.folder().join("agents/press/mesh.yaml");
    std::fs::write(&file, MESH.1.replace("Draft it.", "Write it.")).unwrap();
    let desk = desk.again().await;
    ok(desk.post("/api/mesh/request", json!({ "entry_point": "story", "data": {}, "session_id": "t" }))).await;
    assert!(desk.model.requests()[1]["messages"].to_string().contains("Write it."));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_brings_no_variable_that_the_file_does_not_have() {
    let own = MESH.1.replace("prompt: Draft it.", "prompt: \"Draft it for ${DESK_SECRET}.\"");
    let desk = Desk::with(&[("press/mesh.yaml", &own)]).await;
    desk.model.answers(10);
    let patch = |name: &str, body: Value| desk.client.patch(format!("{}/api/yaml/agents/{name}", desk.url)).json(&body);
    for (agent, prompt) in [("send", "${DESK_SECRET}"), ("draft", "now ${DESK_SECRET}."), ("draft", "${HOME:/root}")] {
        let refused = problem(patch(agent, json!({ "prompt": prompt }))).await;
        assert!(refused["status"] == 422 && !refused.to_string().contains(SECRET), "{refused}");
    }
    // What the file has stays, and is not shown.
    let changed = ok(patch("draft", json!({ "max_tokens": 9 }))).await;
    assert_eq!(changed["config"]["prompt"], "Draft it for ${DESK_SECRET}.", "{changed}");
    ok(desk.post("/api/mesh/request", json!({ "entry_point": "story", "data": {} }))).await;
    assert!(desk.model.requests()[0]["messages"].to_string().contains(SECRET));
}
