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

/// A thousand threads of three megabytes each were one reply of three gigabytes.
#[tokio::test(flavor = "multi_thread")]
async fn lists_of_threads_and_of_states_have_a_size() {
    let desk = Desk::with(&[ECHO]).await;
    let long = "x".repeat(70_000);
    let refused = problem(desk.post("/threads", json!({ "metadata": { "a": long } }))).await;
    assert_eq!((refused["status"].clone(), refused["limit"].clone()), (json!(422), json!(65536)), "{refused}");
    let run = json!({ "input": "x", "metadata": { "a": long } });
    assert_eq!(problem(desk.post("/runs", run)).await["limit"], 65536);
    ok(desk.post("/threads", json!({ "thread_id": "t0", "metadata": { "a": long[..40_000] } }))).await;
    let more = json!({ "metadata": { "b": long[..40_000] } });
    assert_eq!(problem(desk.client.patch(format!("{}/threads/t0", desk.url)).json(&more)).await["limit"], 65536);

    let input = "x".repeat(3 << 20);
    for at in 0..12 {
        let run = json!({ "thread_id": format!("t{at}"), "if_not_exists": "create", "input": input });
        ok(desk.post("/runs/wait", run)).await;
    }
    let refused = problem(desk.post("/threads/search", json!({ "limit": 1000 }))).await;
    assert_eq!(refused["status"], 422, "{refused}");
    let room = refused["limit"].as_u64().unwrap();
    assert!((1..12).contains(&room), "{refused}");
    let found = ok(desk.post("/threads/search", json!({ "limit": room }))).await;
    assert_eq!(found.as_array().unwrap().len() as u64, room);
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

/// The ids of threads that a search finds.
async fn found(desk: &Desk, search: Value) -> Vec<String> {
    let found = ok(desk.post("/threads/search", search)).await;
    found.as_array().unwrap().iter().map(|thread| thread["thread_id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn threads_are_found_by_how_they_stand_and_what_they_came_to() {
    let desk = Desk::with(&[ASK, COUNT]).await;
    for id in ["b", "a", "c"] {
        ok(desk.post("/threads", json!({ "thread_id": id, "metadata": { "of": "me" } }))).await;
    }
    for (agent, thread) in [("count", "a"), ("count", "b"), ("count", "b"), ("ask", "c")] {
        ok(desk.post("/runs/wait", json!({ "agent_id": agent, "thread_id": thread, "input": {} }))).await;
    }
    assert_eq!(found(&desk, json!({ "status": "interrupted" })).await, ["c"]);
    assert_eq!(found(&desk, json!({ "status": "idle" })).await, ["a", "b"]);
    assert!(found(&desk, json!({ "status": "busy" })).await.is_empty());
    assert_eq!(found(&desk, json!({ "status": "idle", "offset": 1 })).await, ["b"]);
    assert_eq!(found(&desk, json!({ "values": { "n": 2 } })).await, ["b"]);
    assert!(found(&desk, json!({ "values": { "n": 2 }, "status": "interrupted" })).await.is_empty());
    assert_eq!(found(&desk, json!({ "ids": ["c", "a", "nobody"] })).await, ["c", "a"]);
    assert!(found(&desk, json!({ "ids": ["a"], "status": "interrupted" })).await.is_empty());
    assert_eq!(found(&desk, json!({ "sort_by": "thread_id", "sort_order": "asc" })).await, ["a", "b", "c"]);
    assert_eq!(found(&desk, json!({ "sort_by": "updated_at" })).await, ["c", "b", "a"]);
    for (which, number) in [
        (json!({}), 3),
        (json!({ "metadata": { "of": "me" } }), 3),
        (json!({ "metadata": { "of": "you" } }), 0),
        (json!({ "status": "idle" }), 2),
        (json!({ "status": "interrupted", "values": { "x": 1 } }), 0),
    ] {
        assert_eq!(ok(desk.post("/threads/count", which.clone())).await, json!(number), "{which}");
    }
    for wrong in [json!({ "status": "x" }), json!({ "sort_by": "status" }), json!({ "select": ["thread_id"] })] {
        assert_eq!(problem(desk.post("/threads/search", wrong.clone())).await["status"], 422, "{wrong}");
    }
    // What is found says what its last run came to, and what it asks.
    let waits = &ok(desk.post("/threads/search", json!({ "ids": ["c"] }))).await[0];
    let (_, asked) = waits["interrupts"].as_object().unwrap().iter().next().expect("a question");
    assert_eq!(asked[0]["value"]["text"], "Who asks?", "{waits}");
    assert_eq!(ok(desk.get("/threads/b")).await["values"]["n"], 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn several_threads_are_removed_at_once_or_none() {
    let desk = Desk::with(&[ASK, ECHO]).await;
    for (agent, thread) in [("echo", "a"), ("echo", "b"), ("ask", "c")] {
        let run = json!({ "agent_id": agent, "thread_id": thread, "if_not_exists": "create", "input": "x" });
        ok(desk.post("/runs/wait", run)).await;
    }
    let prune = |body: Value| desk.post("/threads/prune", body);
    assert_eq!(problem(prune(json!({ "thread_ids": ["a", "c"] }))).await["type"], "urn:hotcell:problem:run-not-ended");
    assert_eq!(problem(prune(json!({ "thread_ids": ["a"], "strategy": "keep_latest" }))).await["status"], 422);
    assert_eq!(found(&desk, json!({})).await.len(), 3, "nothing was removed");
    let pruned = ok(prune(json!({ "thread_ids": ["a", "b", "a", "nobody"] }))).await;
    assert_eq!((pruned["pruned_count"].clone(), found(&desk, json!({})).await), (json!(2), vec!["c".to_owned()]));
    assert_eq!(ok(desk.get("/runs")).await["runs"].as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thread_has_a_state_at_each_of_its_checkpoints() {
    let desk = Desk::with(&[ASK, COUNT]).await;
    for _ in 0..2 {
        let run = json!({ "agent_id": "count", "thread_id": "t", "if_not_exists": "create", "input": "more" });
        ok(desk.post("/runs/wait", run)).await;
    }
    let history = ok(desk.get("/threads/t/history?limit=1000")).await;
    assert_eq!(history, ok(desk.post("/threads/t/history", json!({ "limit": 1000 }))).await);
    let states = history.as_array().unwrap();
    assert_eq!(states.iter().map(|state| state["values"]["n"].clone()).collect::<Vec<_>>(), [2, 2, 1, 1]);
    for (state, parent) in states.iter().zip(states.iter().skip(1)) {
        assert_eq!(state["parent_checkpoint"], parent["checkpoint"]);
    }
    assert_eq!(states[3]["parent_checkpoint"], Value::Null);
    let first = ok(desk.get("/threads/t/history?limit=1")).await;
    assert_eq!(first, json!([states[0]]), "where it came from is known although that is on the next page");
    for state in states {
        let checkpoint = &state["checkpoint"];
        let id = checkpoint["checkpoint_id"].as_str().unwrap();
        let same = ok(desk.get(&format!("/threads/t/state/{id}"))).await;
        assert_eq!(
            (&same["values"], &same["next"], &same["checkpoint"]),
            (&state["values"], &state["next"], checkpoint)
        );
        assert_eq!(same, ok(desk.post("/threads/t/state/checkpoint", json!({ "checkpoint": checkpoint }))).await);
    }
    let oldest = states[3]["checkpoint"]["checkpoint_id"].as_str().unwrap();
    assert_eq!(ok(desk.get(&format!("/threads/t/history?before={oldest}"))).await, json!([]));
    // Where the thread is now, and before anything was done.
    let now = ok(desk.get("/threads/t/state")).await;
    let at = now["checkpoint"]["checkpoint_id"].as_str().unwrap();
    assert_eq!(ok(desk.get(&format!("/threads/t/state/{at}?subgraphs=false"))).await, now);
    let (run, _) = at.split_once(':').unwrap();
    assert_eq!(ok(desk.get(&format!("/threads/t/state/{run}:1"))).await["values"]["n"], 1);
    // A waiting run is at its last entry, with what it asks.
    let asks = json!({ "agent_id": "ask", "thread_id": "u", "if_not_exists": "create" });
    ok(desk.post("/runs/wait", asks)).await;
    let waits = ok(desk.get("/threads/u/state")).await;
    let at = waits["checkpoint"]["checkpoint_id"].as_str().unwrap();
    let same = ok(desk.get(&format!("/threads/u/state/{at}"))).await;
    assert_eq!((&same["next"], &same), (&json!(["name"]), &waits));
    for other in
        [format!("{run}:99"), format!("{run}:0"), format!("{run}:x"), "x:1".to_owned(), at.to_owned(), "x".to_owned()]
    {
        assert_eq!(problem(desk.get(&format!("/threads/t/state/{other}"))).await["status"], 404, "{other}");
    }
    assert_eq!(problem(desk.get(&format!("/threads/none/state/{at}"))).await["status"], 404);
    assert_eq!(problem(desk.get("/threads/t/state?subgraphs=true")).await["status"], 422);
    assert_eq!(problem(desk.get("/threads/t/state?select=values")).await["status"], 400);
}

/// An agent that goes through so many nodes, and counts them. A run of it has three entries more: its beginning, the turn in which it ends,
/// and its end.
fn chain(nodes: usize) -> String {
    let node =
        |at: usize| format!("        - {{name: n{at}, type: set_state, args: {{values: {{n: state.n + 1}}}}}}\n");
    let edge = |at: usize| format!("        - {{source: n{at}, target: n{}}}\n", at + 1);
    let all = (1..=nodes).map(node).collect::<String>();
    let edges = (1..nodes).map(edge).collect::<String>();
    let fields = "[{name: messages, type: list}, {name: n, type: int, default: 0}]";
    format!(
        "manifest_version: 1\nagents:\n  chain:\n    langgraph_config: {{recursion_limit: 100}}\n    state: {{fields: {fields}}}\n    \
         graph:\n      entry_point: n1\n      nodes:\n{all}      edges:\n{edges}"
    )
}

/// Entries are read twenty at a time.
#[tokio::test(flavor = "multi_thread")]
async fn a_thread_has_each_of_its_states_however_many_entries_its_run_has() {
    for entries in [19, 20, 21, 40] {
        let nodes = entries - 3;
        let desk = Desk::with(&[("chain/agent.yaml", &chain(nodes))]).await;
        let run = json!({ "thread_id": "t", "if_not_exists": "create", "input": "x" });
        let run = ok(desk.post("/runs/wait", run)).await["run"]["run_id"].as_str().unwrap().to_owned();
        let now = ok(desk.get("/threads/t/state")).await;
        let id = |number: usize| json!(format!("{run}:{number}"));
        assert_eq!(now["checkpoint"]["checkpoint_id"], id(entries));
        assert_eq!(now["parent_checkpoint"]["checkpoint_id"], id(entries - 1));
        assert_eq!(now["values"]["n"], json!(nodes));
        let history = ok(desk.get("/threads/t/history?limit=1000")).await;
        let states = history.as_array().unwrap();
        assert_eq!(states.len(), nodes + 1, "{entries} entries");
        for (state, number) in states.iter().rev().zip(2..) {
            assert_eq!(state["checkpoint"]["checkpoint_id"], id(number));
            let same = ok(desk.get(&format!("/threads/t/state/{run}:{number}"))).await;
            assert_eq!(same["values"], state["values"], "{number} of {entries}");
            assert_eq!(same["parent_checkpoint"], state["parent_checkpoint"], "{number} of {entries}");
        }
        let none = problem(desk.get(&format!("/threads/t/state/{run}:{}", entries + 1))).await;
        assert_eq!(none["status"], 404);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_begins_while_its_thread_is_removed_has_its_thread_or_did_not_begin() {
    let desk = Desk::with(&[ASK]).await;
    for round in 0..20 {
        let thread = format!("t{round}");
        ok(desk.post("/threads", json!({ "thread_id": thread }))).await;
        let begin = desk.post("/runs", json!({ "thread_id": thread, "input": {} })).send();
        let (begun, removed) = tokio::join!(begin, desk.delete(&format!("/threads/{thread}")).send());
        let (begun, removed) = (begun.unwrap().status().as_u16(), removed.unwrap().status().as_u16());
        let there = desk.get(&format!("/threads/{thread}")).send().await.unwrap().status().as_u16();
        match begun {
            // It began: the thread was kept, or is there again.
            200 => assert!(matches!((removed, there), (204 | 409, 200)), "{begun} {removed} {there}"),
            _ => assert_eq!((begun, removed, there), (404, 204, 404)),
        }
    }
}
