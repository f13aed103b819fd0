//! Questions and their answers.

use serde_json::{Value, json};

use crate::desk::{ASK, Desk, ok, problem};

/// Asks two questions side by side.
pub(crate) const TWO: (&str, &str) =
    ("two/agent.yaml", include_str!("../../../../tests/cases/data/passing/sherma-questions-side-by-side/agent.yaml"));

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_in_the_inbox_until_somebody_answers_it() {
    let desk = Desk::with(&[ASK]).await;
    let run = desk.begin(json!({})).await;
    desk.stands(&run, "waiting").await;
    let inbox = ok(desk.get("/inbox")).await;
    let item = &inbox["items"][0];
    assert_eq!(
        (item["run_id"].clone(), item["message"].clone(), item["default"].clone(), item["reason"].clone()),
        (json!(run), json!("Who asks?"), json!("somebody"), json!("question"))
    );
    let question = item["id"].as_str().unwrap();
    for path in [format!("/inbox?run_id={run}"), "/inbox?agent_id=ask&limit=1".to_owned()] {
        assert_eq!(ok(desk.get(&path)).await["items"][0]["id"], question);
    }
    let answers = format!("/runs/{run}/answers");
    let wrong = problem(desk.post(&answers, json!({ "question_id": "99:0", "answer": "x" }))).await;
    assert_eq!((wrong["status"].clone(), wrong["open"].clone()), (json!(409), json!([question])));
    ok(desk.post(&answers, json!({ "question_id": question, "answer": "me" }))).await;
    let result = ok(desk.get(&format!("/runs/{run}/wait"))).await;
    assert_eq!(result["output"], "hello me");
    assert_eq!(ok(desk.get("/inbox")).await["items"], json!([]));
    let late = problem(desk.post(&answers, json!({ "question_id": question, "answer": "late" }))).await;
    assert_eq!(late["status"], 409);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_answers_one_counts() {
    let desk = Desk::with(&[ASK]).await;
    for _ in 0..10 {
        let run = desk.begin(json!({})).await;
        desk.stands(&run, "waiting").await;
        let send = |text: String| {
            let request = desk.post(&format!("/runs/{run}/answers"), json!({ "question_id": "1:0", "answer": text }));
            tokio::spawn(async move { request.send().await.unwrap().status().as_u16() })
        };
        let sent: Vec<_> = (0..8).map(|number| send(number.to_string())).collect();
        let mut statuses = Vec::new();
        for one in sent {
            statuses.push(one.await.unwrap());
        }
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 409, 409, 409, 409, 409, 409, 409]);
        let kinds = desk.kinds(&run).await;
        ok(desk.get(&format!("/runs/{run}/wait"))).await;
        assert!(kinds.iter().filter(|kind| kind.starts_with("answered")).count() <= 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn several_questions_are_told_apart() {
    let desk = Desk::with(&[TWO]).await;
    let result = ok(desk.post("/runs/wait", json!({ "input": "x" }))).await;
    let run = result["run"]["run_id"].as_str().unwrap();
    let open: Vec<&Value> = result["questions"].as_array().unwrap().iter().map(|question| &question["id"]).collect();
    assert_eq!(open.len(), 3, "{result}");
    assert_eq!(ok(desk.get("/inbox")).await["items"].as_array().unwrap().len(), 3);
    let answers = format!("/runs/{run}/answers");
    let which = problem(desk.post(&answers, json!({ "answer": "yes" }))).await;
    assert_eq!((which["status"].clone(), which["open"].as_array().unwrap().len()), (json!(422), 3));
    for question in open {
        ok(desk.post(&answers, json!({ "question_id": question, "answer": "yes" }))).await;
    }
    let result = ok(desk.get(&format!("/runs/{run}/wait"))).await;
    assert_eq!((result["run"]["standing"].clone(), result["questions"].clone()), (json!("completed"), json!([])));
}

/// Asks certain people.
const CERTAIN: (&str, &str) = (
    "press/mesh.yaml",
    "name: press
manager: {enabled: false}
agents:
  draft: {agent_type: llm, communication_type: chain, model: gpt-4o-mini, prompt: Draft it., can_call: [{agent: chief}]}
  chief:
    agent_type: human
    human_interface: default
    operator_ids: [ann, bob]
entry_points:
  - {name: story, target: draft}
",
);

#[tokio::test(flavor = "multi_thread")]
async fn a_question_for_certain_people_takes_answers_of_them_alone_whichever_way_they_come() {
    let desk = Desk::with(&[CERTAIN]).await;
    desk.model.answers(10);
    let call = json!({ "entry_point": "story", "data": {}, "session_id": "s" });
    assert_eq!(ok(desk.post("/api/mesh/request", call)).await["status"], "waiting_human");
    let run = ok(desk.get("/inbox")).await["items"][0]["run_id"].as_str().unwrap().to_owned();
    let asked = ok(desk.get("/api/sessions/hitl")).await["sessions"][0]["requests"][0]["request_id"].clone();
    let entries = ok(desk.get(&format!("/runs/{run}/entries"))).await["entries"].clone();
    let last = entries.as_array().unwrap().last().unwrap()["seq"].clone();
    let answers = format!("/runs/{run}/answers");
    let hitl = format!("/api/sessions/hitl/{}/reply", asked.as_str().unwrap());
    let fork = format!("/runs/{run}/fork");
    for (path, body) in [
        (&answers, json!({ "answer": "yes" })),
        (&answers, json!({ "answer": "yes", "operator_id": "eve" })),
        (&answers, json!({ "answer": { "decision": "yes", "operator_id": "eve" } })),
        (&hitl, json!({ "decision": "yes" })),
        (&hitl, json!({ "decision": "yes", "operator_id": "eve" })),
        (&fork, json!({ "at": last, "answer": "yes" })),
        (&fork, json!({ "at": last, "answer": "yes", "operator_id": "eve" })),
    ] {
        let refused = problem(desk.post(path, body.clone())).await;
        let told = (refused["status"].clone(), refused["type"].clone());
        assert_eq!(told, (json!(403), json!("urn:hotcell:problem:not-asked")), "{path} {body}");
    }
    let both = json!({ "answer": { "operator_id": "eve" }, "operator_id": "ann" });
    assert_eq!(problem(desk.post(&answers, both)).await["status"], 422);
    // Where nobody can say who answers, nobody does.
    let message = json!({ "messageId": "m", "role": "ROLE_USER", "taskId": run, "parts": [{ "text": "yes" }] });
    let send = json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": { "message": message } });
    let refused = ok(desk.post("/a2a/press", send).header("A2A-Version", "1.0")).await;
    assert!(refused["error"]["message"].as_str().unwrap().contains("certain people"), "{refused}");
    desk.stands(&run, "waiting").await;
    assert_eq!(ok(desk.get(&format!("/runs/{run}/entries"))).await["entries"], entries);
    ok(desk.post(&answers, json!({ "answer": { "decision": "yes" }, "operator_id": "ann" }))).await;
    desk.stands(&run, "completed").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_answer_changes_nothing() {
    let desk = Desk::with(&[ASK]).await;
    let run = desk.begin(json!({})).await;
    desk.stands(&run, "waiting").await;
    let answers = format!("/runs/{run}/answers");
    for body in [json!({}), json!({ "answer": null }), json!({ "answer": "x", "more": 1 }), json!([]), json!("x")] {
        problem(desk.post(&answers, body)).await;
    }
    assert_eq!(problem(desk.post("/runs/nobody/answers", json!({ "answer": "x" }))).await["status"], 404);
    desk.stands(&run, "waiting").await;
    assert!(!desk.kinds(&run).await.iter().any(|kind| kind.starts_with("answered")));
}
