//! Questions and their answers.

use std::time::Duration;

use hotcell_serve::Role;
use serde_json::{Value, json};

use crate::access::key;
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
async fn what_is_asked_after_many_entries_is_in_the_inbox() {
    let node = |number: usize| {
        let next = if number == 9 { "done".to_owned() } else { format!("q{}", number + 1) };
        format!(
            "  q{number}: {{ type: input, question: Q{number}, state_updates: {{ a: \"{{{{input}}}}\" }}, next: {next} }}\n"
        )
    };
    let nodes: String = (0..=9).map(node).collect();
    let graph = format!("name: many\nstart: q0\nnodes:\n{nodes}  done: {{ type: end, output: \"{{{{a}}}}\" }}\n");
    let desk = Desk::with(&[("many/graph.yaml", graph.as_str())]).await;
    let run = desk.begin(json!({})).await;
    for number in 0..=9 {
        let result = ok(desk.get(&format!("/runs/{run}/wait"))).await;
        let inbox = ok(desk.get("/inbox")).await;
        let items = inbox["items"].as_array().expect("a list");
        assert_eq!((items.len(), &items[0]["message"]), (1, &json!(format!("Q{number}"))), "{inbox}");
        assert_eq!(items[0]["id"], result["questions"][0]["id"]);
        ok(desk.post(&format!("/runs/{run}/answers"), json!({ "answer": "x" }))).await;
    }
    assert_eq!(ok(desk.get(&format!("/runs/{run}/wait"))).await["output"], "x");
    // Of the last questions, what is read first says nothing.
    assert!(desk.kinds(&run).await.len() > 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_with_an_answer_is_not_in_the_inbox_before_its_run_goes_on() {
    let desk = Desk::with(&[ASK]).await;
    let run = desk.begin(json!({})).await;
    desk.stands(&run, "waiting").await;
    assert_eq!(ok(desk.get("/inbox")).await["items"][0]["run_id"], run);
    // Of another process, which does not go on with the run.
    desk.host().answer(&run, None, "me").await.expect("answered");
    assert_eq!(ok(desk.get("/inbox")).await["items"], json!([]));
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
    // Whoever called is answered when the question is there, and that the run waits for it is another entry.
    desk.stands(&run, "waiting").await;
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

#[tokio::test(flavor = "multi_thread")]
async fn what_was_decided_is_kept_with_who_decided_it_and_when() {
    let desk = Desk::with(&[ASK, TWO]).await;
    let run = desk.begin(json!({ "agent_id": "ask" })).await;
    desk.stands(&run, "waiting").await;
    assert_eq!(ok(desk.get("/inbox/decisions")).await, json!({ "items": [], "next": null }));
    // What is refused decides nothing.
    let answers = format!("/runs/{run}/answers");
    problem(desk.post(&answers, json!({ "question_id": "9:0", "answer": "x" }))).await;
    ok(desk.post(&answers, json!({ "answer": "Ada", "operator_id": "ada@example.com" }))).await;
    problem(desk.post(&answers, json!({ "answer": "Eve", "operator_id": "eve@example.com" }))).await;
    desk.stands(&run, "completed").await;

    // With keys, it is said which one; over restarts, too.
    let desk = desk.again().await;
    let (answers, operates, runs) =
        (key(&desk, &[Role::Answer, Role::Run]), key(&desk, &[Role::Operate]), key(&desk, &[Role::Run]));
    let two = ok(desk.post("/runs/wait", json!({ "agent_id": "two", "input": {} })).bearer_auth(&answers)).await;
    let two = two["run"]["run_id"].as_str().unwrap().to_owned();
    let open = ok(desk.get(&format!("/inbox?run_id={two}")).bearer_auth(&answers)).await;
    let open = open["items"].as_array().unwrap();
    for item in open {
        let answer = json!({ "question_id": item["id"], "answer": "yes" });
        ok(desk.post(&format!("/runs/{two}/answers"), answer).bearer_auth(&answers)).await;
    }
    ok(desk.get(&format!("/runs/{two}/wait")).bearer_auth(&operates)).await;
    let decided = async |query: &str| ok(desk.get(&format!("/inbox/decisions{query}")).bearer_auth(&operates)).await;
    let all = decided("").await;
    let of = |item: &Value| ["run_id", "answer", "decided_by", "operator_id"].map(|name| item[name].clone());
    let id = answers.split('_').nth(1).unwrap();
    let by_key = [json!(two), json!("yes"), json!(id), Value::Null];
    let by_ada = [json!(run), json!("Ada"), json!("local"), json!("ada@example.com")];
    let items: Vec<_> = all["items"].as_array().unwrap().iter().map(of).collect();
    assert_eq!(items, [vec![by_key; open.len()], vec![by_ada.clone()]].concat());
    let first = all["items"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&first["message"], &first["outcome"], &first["agent_id"]),
        (&json!("Who asks?"), &json!("answered"), &json!("ask"))
    );
    assert!(first["decided_at"].as_str().unwrap().ends_with('Z'), "{all}");
    // Page by page, by agent, and by run.
    let page = decided(&format!("?limit={}", open.len())).await;
    let rest = decided(&format!("?limit=2&after={}", page["next"].as_str().unwrap())).await;
    assert_eq!((of(&rest["items"][0]), rest["next"].clone()), (by_ada, Value::Null));
    assert_eq!(decided("?agent_id=ask").await["items"], json!([first]));
    assert_eq!(decided(&format!("?run_id={run}")).await["items"], json!([first]));
    assert_eq!(decided(&format!("?run_id={two}")).await["items"].as_array().unwrap().len(), open.len());
    assert_eq!(problem(desk.get("/inbox/decisions").bearer_auth(&runs)).await["status"], 403);
    // What is removed leaves nothing.
    ok(desk.delete(&format!("/runs/{run}")).bearer_auth(&operates)).await;
    assert_eq!(decided("").await["items"].as_array().unwrap().len(), open.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_decided_has_a_size() {
    let desk = Desk::with(&[ASK]).await;
    let long = "x".repeat(3 << 20);
    for _ in 0..12 {
        let run = desk.begin(json!({})).await;
        desk.stands(&run, "waiting").await;
        ok(desk.post(&format!("/runs/{run}/answers"), json!({ "answer": long }))).await;
        desk.stands(&run, "completed").await;
    }
    let refused = problem(desk.get("/inbox/decisions")).await;
    assert_eq!((refused["status"].clone(), refused["limit"].clone()), (json!(422), json!(32 << 20)), "{refused}");
    let some = ok(desk.get("/inbox/decisions?limit=5")).await;
    assert_eq!(some["items"].as_array().unwrap().len(), 5);
}

/// Asks what it is told.
const PARROT: (&str, &str) = (
    "parrot/graph.yaml",
    "name: parrot\nstart: ask\nnodes:\n  ask:\n    type: input\n    question: \"{{initial_prompt}}\"\n    next: done\n  done: { type: end, output: done }\n",
);

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_questions_has_a_size() {
    let desk = Desk::with(&[PARROT]).await;
    let long = "x".repeat(3 << 20);
    for _ in 0..11 {
        let run = desk.begin(json!({ "input": long })).await;
        desk.stands(&run, "waiting").await;
    }
    let refused = problem(desk.get("/inbox")).await;
    assert_eq!((refused["status"].clone(), refused["limit"].clone()), (json!(422), json!(10)), "{refused}");
    let page = ok(desk.get("/inbox?limit=10")).await;
    let rest = ok(desk.get(&format!("/inbox?after={}", page["next"].as_str().unwrap()))).await;
    let counts = [&page, &rest].map(|page| page["items"].as_array().unwrap().len());
    assert_eq!(counts, [10, 1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_answered_in_time_was_decided_by_nobody() {
    let gate = "name: gate\nsteps:\n- { id: g, type: approval_gate, timeout_seconds: 60, on_timeout: approve, output: decision }\n";
    let (desk, clock) = Desk::by_hand(&[("gate/workflow.yaml", gate)]).await;
    let run = desk.begin(json!({})).await;
    desk.stands(&run, "waiting").await;
    let expires = ok(desk.get("/inbox")).await["items"][0]["expires_at"].clone();
    assert_eq!(expires, "1970-01-01T00:01:00Z");
    assert!(clock.settled(Duration::from_secs(60)).await, "{clock:?}");
    clock.advance(Duration::from_secs(60));
    assert_eq!(desk.stands(&run, "completed").await["outcome"], json!({ "decision": "approved" }).to_string());
    let late = problem(desk.post(&format!("/runs/{run}/answers"), json!({ "answer": "rejected" }))).await;
    assert_eq!(late["status"], 409);
    let decided = &ok(desk.get(&format!("/inbox/decisions?run_id={run}"))).await["items"][0];
    assert_eq!(
        (&decided["outcome"], &decided["answer"], &decided["decided_by"]),
        (&json!("expired"), &Value::Null, &Value::Null)
    );
    assert_eq!(ok(desk.get("/inbox/decisions")).await["items"], json!([]));
}
