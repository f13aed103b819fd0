//! Forks of runs, and what distinguishes them.

use hotcell_serve::Role;
use serde_json::{Value, json};

use crate::access::key;
use crate::desk::{ASK, Desk, ECHO, SLOW, ok, problem};

/// Sorts what it is told, and goes a way for each kind.
const WAYS: (&str, &str) = (
    "ways/agent.yaml",
    r#"manifest_version: 1
agents:
  ways:
    state: {fields: [{name: messages, type: list}, {name: kind, type: str, default: none}, {name: went, type: str, default: nowhere}]}
    graph:
      entry_point: sort
      nodes:
        - {name: sort, type: set_state, args: {values: {kind: '"question"'}}}
        - {name: refund, type: set_state, args: {values: {went: '"refund " + state.kind'}}}
        - {name: reply, type: set_state, args: {values: {went: '"reply " + state.kind'}}}
      edges:
        - {source: sort, branches: [{condition: 'state.kind == "refund"', target: refund}], default: reply}
"#,
);

/// Calls an agent that asks a model twice, and then a person.
const PARENT: (&str, &str) = (
    "family/parent/graph.yaml",
    "name: parent\nstart: a\nnodes:\n  a: { type: agent, agent: child, prompt: hello, state_updates: { said: \"{{output}}\" }, next: done }\n  done: { type: end, output: \"{{said}}\" }\n",
);
const CHILD: (&str, &str) = (
    "family/child/graph.yaml",
    "name: child\nstart: first\nnodes:\n  first:\n    type: llm\n    prompt: \"first\"\n    state_updates: { first: \"{{output}}\" }\n    next: second\n  second:\n    type: llm\n    prompt: \"second\"\n    state_updates: { second: \"{{output}}\" }\n    next: done\n  done: { type: end, output: \"{{first}} {{second}}\" }\n",
);

async fn fork(desk: &Desk, run: &str, body: Value) -> Value {
    let fork = ok(desk.post(&format!("/runs/{run}/fork"), body)).await;
    ok(desk.get(&format!("/runs/{}/wait", fork["run_id"].as_str().expect("a name")))).await
}

async fn refused(desk: &Desk, run: &str, body: Value) -> String {
    let problem = problem(desk.post(&format!("/runs/{run}/fork"), body)).await;
    assert_eq!(problem["status"], 422, "{problem}");
    problem["detail"].as_str().expect("text").to_owned()
}

/// The number of the last entry of this kind, as `kind@place`.
async fn entry(desk: &Desk, run: &str, kind: &str) -> usize {
    let kinds = desk.kinds(run).await;
    kinds.iter().rposition(|found| found == kind).unwrap_or_else(|| panic!("{kind} is not in {kinds:?}")) + 1
}

#[tokio::test(flavor = "multi_thread")]
async fn what_lies_before_is_not_asked_again_and_what_comes_after_is_withheld_unless_it_is_allowed() {
    let desk = Desk::with(&[SLOW]).await;
    desk.model.answers(3);
    let source = ok(desk.post("/runs/wait", json!({ "input": "x" }))).await;
    let run = source["run"]["run_id"].as_str().unwrap();
    assert_eq!(source["output"], "reply1 reply2");
    let at = entry(&desk, run, "completed@1").await;
    let before = desk.kinds(run).await;

    let withheld = fork(&desk, run, json!({ "at": at, "metadata": { "why": "test" } })).await;
    assert_eq!(withheld["run"]["standing"], "stopped", "{withheld}");
    let effect = json!([{ "place": "2.loop.1", "effect": "a request to the model `test:small`" }]);
    assert_eq!(withheld["withheld"], effect);
    assert_eq!(withheld["values"]["first"], "reply1");
    assert_eq!(withheld["run"]["metadata"], json!({ "why": "test" }));
    assert_eq!(
        (withheld["run"]["fork"]["run_id"].clone(), withheld["run"]["fork"]["at"].clone()),
        (json!(run), json!(at))
    );
    assert_eq!(desk.model.requests().len(), 2, "no model was asked");

    let allowed = fork(&desk, run, json!({ "at": at, "allow_effects": ["models"] })).await;
    assert_eq!((allowed["output"].clone(), allowed["withheld"].clone()), (json!("reply1 reply3"), Value::Null));
    assert_eq!(desk.model.requests().len(), 3);
    assert_eq!(desk.kinds(run).await, before, "nothing of the run itself is changed");

    // A fork can be forked, and has everything from before.
    let of_fork = withheld["run"]["run_id"].as_str().unwrap();
    let last = entry(&desk, of_fork, "withheld@2.loop.1").await;
    desk.model.answers(1);
    let further = fork(&desk, of_fork, json!({ "at": last, "model": "test:large" })).await;
    assert_eq!(further["output"], "reply1 reply4");
    assert_eq!(desk.model.requests()[3]["model"], "test:large");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_answer_makes_another_run() {
    let desk = Desk::with(&[ASK]).await;
    let run = desk.begin(json!({})).await;
    desk.stands(&run, "waiting").await;
    ok(desk.post(&format!("/runs/{run}/answers"), json!({ "answer": "me" }))).await;
    desk.stands(&run, "completed").await;
    let (asked, answered) = (entry(&desk, &run, "asked@1").await, entry(&desk, &run, "answered@1").await);
    for at in [asked, answered] {
        let forked = fork(&desk, &run, json!({ "at": at, "answer": "you", "operator_id": "ann" })).await;
        assert_eq!(forked["output"], "hello you");
        let of_fork = format!("/inbox/decisions?run_id={}", forked["run"]["run_id"].as_str().unwrap());
        let decided = &ok(desk.get(&of_fork)).await["items"][0];
        assert_eq!(
            (&decided["answer"], &decided["decided_by"], &decided["operator_id"]),
            (&json!("you"), &json!("local"), &json!("ann"))
        );
    }
    // Without an answer, that of the run counts only where it was given already.
    assert_eq!(fork(&desk, &run, json!({ "at": answered })).await["output"], "hello me");
    let open = fork(&desk, &run, json!({ "at": asked })).await;
    assert_eq!(open["run"]["standing"], "waiting");
    let id = open["run"]["run_id"].as_str().unwrap();
    let question = open["questions"][0]["id"].clone();
    ok(desk.post(&format!("/runs/{id}/answers"), json!({ "question_id": question, "answer": "another" }))).await;
    assert_eq!(desk.stands(id, "completed").await["outcome"], "hello another");
    assert_eq!(ok(desk.get(&format!("/runs/{run}"))).await["outcome"], "hello me");
    let early = refused(&desk, &run, json!({ "at": 1, "answer": "you" })).await;
    assert!(early.contains("no question is open"), "{early}");
    let wrong = refused(&desk, &run, json!({ "at": asked, "answer": "you", "question_id": "9:9" })).await;
    assert!(wrong.contains("`1:0`"), "{wrong}");
    let over = entry(&desk, &run, "ended").await;
    assert!(refused(&desk, &run, json!({ "at": over })).await.contains("nothing comes after it"));
}

#[tokio::test(flavor = "multi_thread")]
async fn another_state_goes_where_the_edges_lead_then() {
    let desk = Desk::with(&[WAYS]).await;
    let source = ok(desk.post("/runs/wait", json!({}))).await;
    let run = source["run"]["run_id"].as_str().unwrap();
    assert_eq!(source["values"]["went"], "reply question");
    let at = entry(&desk, run, "completed@1").await;
    let other = fork(&desk, run, json!({ "at": at, "set": { "kind": "refund" } })).await;
    assert_eq!(other["values"]["went"], "refund refund", "{other}");
    let given = fork(&desk, run, json!({ "at": 1, "set": { "kind": "refund" } })).await;
    assert_eq!(given["values"]["went"], "reply question", "the node writes it again");

    let unknown = refused(&desk, run, json!({ "at": at, "set": { "kinds": "refund" } })).await;
    assert!(unknown.contains("`kinds`") && unknown.contains("`kind`"), "{unknown}");
    let later = entry(&desk, run, "ended").await;
    assert!(refused(&desk, run, json!({ "at": later, "set": { "kind": "x" } })).await.contains("nothing comes after"));

    let fork = other["run"]["run_id"].as_str().unwrap();
    let diff = ok(desk.get(&format!("/runs/diff?a={run}&b={fork}"))).await;
    assert_eq!((diff["first"]["place"].clone(), diff["first"]["node"].clone()), (json!("1"), json!("sort")));
    assert_eq!(diff["first"]["a"]["next"], json!(["reply"]));
    assert_eq!(diff["first"]["b"]["next"], json!(["refund"]));
    let went: Vec<&Value> = diff["state"].as_array().unwrap().iter().filter(|value| value["key"] == "went").collect();
    assert_eq!((&went[0]["a"], &went[0]["b"]), (&json!("reply question"), &json!("refund refund")));
    let same = ok(desk.get(&format!("/runs/diff?a={run}&b={run}"))).await;
    assert_eq!(
        (same["first"].clone(), same["places"].clone(), same["state"].clone()),
        (Value::Null, json!([]), json!([]))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn within_an_agent_that_was_called_a_fork_goes_on_in_its_middle() {
    let desk = Desk::with(&[PARENT, CHILD]).await;
    desk.model.answers(3);
    let source = ok(desk.post("/runs/wait", json!({ "agent_id": "family.parent", "input": "x" }))).await;
    let run = source["run"]["run_id"].as_str().unwrap();
    assert_eq!(source["output"], "reply1 reply2");
    let at = entry(&desk, run, "completed@1.agent0.1").await;
    let stopped = fork(&desk, run, json!({ "at": at })).await;
    assert_eq!(stopped["withheld"][0]["place"], "1.agent0.2.loop.1", "{stopped}");
    let prompted = json!({ "at": at, "prompts": { "second": "Be brief" } });
    let prompted = fork(&desk, run, prompted).await;
    assert_eq!(prompted["output"], "reply1 reply3", "{prompted}");
    {
        let requests = desk.model.requests();
        assert_eq!(requests.len(), 3, "the first node of the agent is not asked again");
        assert_eq!(requests[2]["messages"][0], json!({ "role": "system", "content": "Be brief" }));
    }
    let nobody = refused(&desk, run, json!({ "at": at, "prompts": { "third": "x" } })).await;
    assert!(nobody.contains("`third`"), "{nobody}");
    let inside = refused(&desk, run, json!({ "at": at, "set": { "first": "x" } })).await;
    assert!(inside.contains("the run's own graph"), "{inside}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_goes_on_with_the_revision_of_its_entry_or_with_the_one_that_is_asked_for() {
    let desk = Desk::with(&[ASK]).await;
    let run = desk.begin(json!({})).await;
    desk.stands(&run, "waiting").await;
    let at = entry(&desk, &run, "asked@1").await;
    let changed = ASK.1.replace("hello {{name}}", "good day {{name}}");
    std::fs::write(desk.folder().join("agents").join(ASK.0), &changed).unwrap();
    let body = |revision: &str| json!({ "at": at, "answer": "you", "revision": revision });
    assert_eq!(fork(&desk, &run, body("own")).await["output"], "hello you");
    assert_eq!(fork(&desk, &run, body("current")).await["output"], "good day you");
    let renamed = ASK.1.replace("start: name", "start: other").replace("\n  name:", "\n  other:");
    std::fs::write(desk.folder().join("agents").join(ASK.0), renamed).unwrap();
    let misfit = refused(&desk, &run, body("current")).await;
    assert!(misfit.contains("does not fit"), "{misfit}");
    std::fs::write(desk.folder().join("agents").join(ASK.0), "start: [").unwrap();
    let broken = problem(desk.post(&format!("/runs/{run}/fork"), body("current"))).await;
    assert_eq!(
        (broken["status"].clone(), broken["type"].clone()),
        (json!(409), json!("urn:hotcell:problem:not-loaded"))
    );
    assert!(!broken.to_string().contains("agents/ask"), "{broken}");
    for wrong in ["latest", "abc", "0123456789abcdef"] {
        refused(&desk, &run, body(wrong)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_fork_begins_nothing() {
    let desk = Desk::with(&[ECHO]).await;
    let source = ok(desk.post("/runs/wait", json!({ "input": "x" }))).await;
    let run = source["run"]["run_id"].as_str().unwrap();
    let fork = format!("/runs/{run}/fork");
    for body in [
        json!({}),
        json!({ "at": 0 }),
        json!({ "at": 99 }),
        json!({ "at": 1.5 }),
        json!({ "at": "1" }),
        json!({ "at": 1, "more": 1 }),
        json!({ "at": 1, "allow_effects": ["everything"] }),
        json!({ "at": 1, "allow_effects": true }),
        json!({ "at": 1, "set": [] }),
        json!({ "at": 1, "set": { "nothing_of_that_name": 1 } }),
        json!({ "at": 1, "model": "" }),
        json!({ "at": 1, "question_id": "1:0" }),
        json!({ "at": 2, "input": "y" }),
    ] {
        let problem = problem(desk.post(&fork, body.clone())).await;
        assert_eq!(problem["status"], 422, "{body}: {problem}");
    }
    assert_eq!(problem(desk.post("/runs/nobody/fork", json!({ "at": 1 }))).await["status"], 404);
    for query in ["", "?a=x", &format!("?a={run}"), &format!("?a={run}&b={run}&c=1")] {
        assert_eq!(problem(desk.get(&format!("/runs/diff{query}"))).await["status"], 400);
    }
    assert_eq!(problem(desk.get(&format!("/runs/diff?a={run}&b=nobody"))).await["status"], 404);
    assert_eq!(ok(desk.get("/runs")).await["runs"].as_array().unwrap().len(), 1);
    let other = self::fork(&desk, run, json!({ "at": 1, "input": "y" })).await;
    assert_eq!(other["output"], "you said y");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_of_a_fork_is_given_by_whoever_may_answer() {
    let desk = Desk::with(&[ASK]).await;
    let run = desk.begin(json!({})).await;
    desk.stands(&run, "waiting").await;
    let at = entry(&desk, &run, "asked@1").await;
    let fork =
        |roles: &[Role], body: Value| desk.post(&format!("/runs/{run}/fork"), body).bearer_auth(key(&desk, roles));
    let answered = || json!({ "at": at, "answer": "you", "allow_effects": ["http"] });
    for roles in [&[Role::Operate][..], &[Role::Answer], &[Role::Run, Role::Answer]] {
        assert_eq!(problem(fork(roles, answered())).await["status"], 403, "{roles:?}");
    }
    ok(fork(&[Role::Operate], json!({ "at": at }))).await;
    ok(fork(&[Role::Operate, Role::Answer], answered())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_somebody_was_asked_is_set_by_whoever_may_answer_it() {
    let desk = Desk::with(&[ASK]).await;
    let run = desk.begin(json!({})).await;
    desk.stands(&run, "waiting").await;
    ok(desk.post(&format!("/runs/{run}/answers"), json!({ "answer": "me" }))).await;
    desk.stands(&run, "completed").await;
    let at = entry(&desk, &run, "completed@1").await;
    let fork =
        |roles: &[Role], body: Value| desk.post(&format!("/runs/{run}/fork"), body).bearer_auth(key(&desk, roles));
    let set = || json!({ "at": at, "set": { "name": "you" }, "allow_effects": ["http"] });
    for body in [set(), json!({ "at": at, "set": { "name": "you" } })] {
        assert_eq!(problem(fork(&[Role::Operate], body)).await["status"], 403);
    }
    let forked = ok(fork(&[Role::Operate, Role::Answer], set())).await;
    let forked = forked["run_id"].as_str().expect("a name");
    let wait = desk.get(&format!("/runs/{forked}/wait")).bearer_auth(key(&desk, &[Role::Operate]));
    assert_eq!(ok(wait).await["output"], "hello you");
    // As it was answered, it goes on for whoever may fork.
    ok(fork(&[Role::Operate], json!({ "at": at, "set": {} }))).await;
}
