//! Groups of people who may answer.

use hotcell_serve::{Groups, Role, ServeSettings};
use serde_json::{Value, json};

use crate::access::key;
use crate::desk::{Desk, ok, problem, until_async};
use crate::site::{ACME, Premises, Setup, UMBRA};

const MESH: &str = "press/mesh.yaml";

/// A mesh that asks these.
fn asks(operators: &str) -> String {
    format!(
        "name: press
manager: {{enabled: false}}
agents:
  draft: {{agent_type: llm, communication_type: chain, model: gpt-4o-mini, prompt: Draft it., can_call: [{{agent: chief}}]}}
  chief: {{agent_type: human, human_interface: default, operator_ids: {operators}}}
entry_points:
  - {{name: story, target: draft}}
"
    )
}

/// Defines a group.
fn finance(settings: &mut ServeSettings) {
    let members = ["ada", "bob"].map(str::to_owned).to_vec();
    settings.groups = Groups::of([("finance".to_owned(), members)]).expect("groups");
}

/// Has the mesh ask, and gives the run that waits.
async fn asked(desk: &Desk, session: &str) -> String {
    desk.model.answers(1);
    let call = json!({ "entry_point": "story", "data": {}, "session_id": session });
    let asked = ok(desk.post("/api/mesh/request", call)).await;
    assert_eq!(asked["status"], "waiting_human", "{asked}");
    let run = asked["run_id"].as_str().expect("a run").to_owned();
    // Whoever called is answered when the question is there, and that the run waits for it is another entry.
    desk.stands(&run, "waiting").await;
    run
}

/// The number of questions that a list has.
fn count(list: &Value, name: &str) -> usize {
    list[name].as_array().expect("a list").len()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_group_is_asked_its_members_answer_and_nobody_else() {
    let mesh = asks("[ann, 'group:finance', 'group:finance']");
    let desk = Desk::set_up(&[(MESH, mesh.as_str())], finance).await;
    let run = asked(&desk, "s").await;
    let item = ok(desk.get("/inbox")).await["items"][0].clone();
    assert_eq!(item["operator_ids"], json!(["ann", "group:finance", "group:finance"]));
    assert_eq!((&item["groups"], &item["undefined_groups"]), (&json!(["finance"]), &json!([])));
    let answers = format!("/runs/{run}/answers");
    let yes = |operator: Value| json!({ "answer": { "decision": "yes" }, "operator_id": operator });
    for other in [Value::Null, json!("eve"), json!("Ada"), json!("finance"), json!("group:finance"), json!("")] {
        let refused = problem(desk.post(&answers, yes(other.clone()))).await;
        let told = (refused["status"].clone(), refused["type"].clone());
        assert_eq!(told, (json!(403), json!("urn:hotcell:problem:not-asked")), "{other}");
    }
    assert_eq!(problem(desk.post(&answers, yes(json!("x".repeat(256))))).await["status"], 422);
    for (query, wanted) in [
        ("", 1),
        ("?mine=false", 1),
        ("?mine=true", 0),
        ("?operator_id=eve", 0),
        ("?operator_id=group%3Afinance", 0),
        ("?operator_id=ada", 1),
        ("?mine=true&operator_id=bob", 1),
        ("?mine=1&operator_id=ann", 1),
    ] {
        assert_eq!(count(&ok(desk.get(&format!("/inbox{query}"))).await, "items"), wanted, "{query}");
    }
    assert_eq!(problem(desk.get("/inbox?mine=perhaps")).await["status"], 400);
    for (operator, wanted) in [("bob", 1), ("ann", 1), ("eve", 0), ("group%3Afinance", 0)] {
        let open = ok(desk.get(&format!("/api/sessions/hitl?operator_id={operator}"))).await;
        assert_eq!(count(&open, "sessions"), wanted, "{operator}");
    }
    ok(desk.post(&answers, yes(json!("bob")))).await;
    desk.stands(&run, "completed").await;
    assert_eq!(problem(desk.post(&answers, yes(json!("ada")))).await["status"], 409);
    let by_name = asked(&desk, "t").await;
    ok(desk.post(&format!("/runs/{by_name}/answers"), yes(json!("ann")))).await;
    desk.stands(&by_name, "completed").await;
    let decided = ok(desk.get("/inbox/decisions")).await;
    let of = |item: &Value| ["run_id", "operator_id", "group"].map(|name| item[name].clone());
    let decided: Vec<_> = decided["items"].as_array().expect("decisions").iter().map(of).collect();
    let by_group = [json!(run), json!("bob"), json!("finance")];
    assert_eq!(decided, [[json!(by_name), json!("ann"), Value::Null], by_group]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_removed_group_is_asked_is_left_to_whoever_runs_the_server() {
    let mesh = asks("['group:finance']");
    let desk = Desk::set_up(&[(MESH, mesh.as_str())], finance).await;
    let (run, other) = (asked(&desk, "s").await, asked(&desk, "t").await);
    let answers = format!("/runs/{run}/answers");
    let yes = |operator: Value| json!({ "answer": { "decision": "yes" }, "operator_id": operator });
    assert_eq!(problem(desk.post(&answers, yes(Value::Null))).await["type"], "urn:hotcell:problem:not-asked");

    let desk = desk.again().await;
    let local = ok(desk.get("/inbox?mine=true")).await;
    assert_eq!(count(&local, "items"), 2, "where there are no keys, whoever is at this machine runs the server");
    ok(desk.post(&format!("/runs/{other}/answers"), yes(Value::Null))).await;
    desk.stands(&other, "completed").await;

    let uses = key(&desk, &[Role::Run, Role::Answer, Role::Operate]);
    let administers = key(&desk, &[Role::Administer]);
    let item = ok(desk.get("/inbox").bearer_auth(&uses)).await["items"][0].clone();
    assert_eq!((&item["groups"], &item["undefined_groups"]), (&json!(["finance"]), &json!(["finance"])));
    for (key, wanted) in [(&uses, 0), (&administers, 1)] {
        let mine = ok(desk.get("/inbox?mine=true").bearer_auth(key)).await;
        assert_eq!(count(&mine, "items"), wanted);
    }
    for operator in [Value::Null, json!("ada"), json!("group:finance")] {
        let refused = problem(desk.post(&answers, yes(operator)).bearer_auth(&uses)).await;
        let told = (refused["status"].clone(), refused["type"].clone());
        assert_eq!(told, (json!(403), json!("urn:hotcell:problem:undefined-group")), "{refused}");
        assert!(refused["detail"].as_str().is_some_and(|detail| detail.contains("`finance`")), "{refused}");
    }
    ok(desk.post(&answers, yes(Value::Null)).bearer_auth(&administers)).await;
    ok(desk.get(&format!("/runs/{run}/wait")).bearer_auth(&uses)).await;
    let decided = &ok(desk.get("/inbox/decisions").bearer_auth(&administers)).await["items"][0];
    let id = administers.split('_').nth(1).expect("an id");
    assert_eq!(
        (&decided["run_id"], &decided["decided_by"], &decided["operator_id"], &decided["group"]),
        (&json!(run), &json!(id), &Value::Null, &Value::Null)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn each_tenant_has_groups_of_its_own() {
    let mesh = asks("['group:finance']");
    let files = [("acme/press/mesh.yaml", mesh.as_str()), ("umbra/press/mesh.yaml", mesh.as_str())];
    let (acme, umbra) = ("groups = { finance = ['ada'] }\n", "groups = { finance = ['eve'] }\n");
    let premises = Premises::set_up(Setup { acme, umbra, files: &files, ..Setup::default() }).await;
    premises.model.answers(2);
    for (tenant, member, other) in [(ACME, "ada", "eve"), (UMBRA, "eve", "ada")] {
        let key = premises.key(tenant);
        let call = json!({ "entry_point": "story", "data": {}, "session_id": "s" });
        let asked = ok(premises.post("/api/mesh/request", &key, call)).await;
        let path = format!("/runs/{}", asked["run_id"].as_str().expect("a run"));
        until_async("it waits", async || ok(premises.get(&path, &key)).await["standing"] == "waiting").await;
        let answers = format!("{path}/answers");
        let yes = |operator: &str| json!({ "answer": { "decision": "yes" }, "operator_id": operator });
        assert_eq!(problem(premises.post(&answers, &key, yes(other))).await["status"], 403, "{tenant}");
        ok(premises.post(&answers, &key, yes(member))).await;
    }
}
