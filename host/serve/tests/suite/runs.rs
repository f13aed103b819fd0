//! Runs: beginning them, waiting for them, listing and ending them.

use serde_json::{Value, json};

use crate::desk::{ASK, Desk, ECHO, SLOW, ok, problem, until};

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_begun_and_waited_for_in_one_request_or_in_two() {
    let desk = Desk::with(&[ECHO]).await;
    let result = ok(desk.post("/runs/wait", json!({ "agent_id": "echo", "input": "hi" }))).await;
    assert_eq!((result["output"].clone(), result["run"]["status"].clone()), (json!("you said hi"), json!("success")));
    assert_eq!(result["run"]["agent_id"], "echo");
    assert_eq!((result["error"].clone(), result["questions"].clone()), (Value::Null, json!([])));
    let found = ok(desk.get(&format!("/runs/{}", result["run"]["run_id"].as_str().unwrap()))).await;
    assert_eq!(result["run"], found, "whoever began it is told what the journal has");

    let metadata = json!({ "who": "me", "n": [1, { "x": null }] });
    let begun =
        ok(desk.post("/runs", json!({ "agent_id": "echo", "input": { "prompt": "ho" }, "metadata": metadata }))).await;
    let run = begun["run_id"].as_str().unwrap();
    let result = ok(desk.get(&format!("/runs/{run}/wait"))).await;
    assert_eq!(
        (result["output"].clone(), result["values"]["initial_prompt"].clone()),
        (json!("you said ho"), json!("ho"))
    );
    let found = ok(desk.get(&format!("/runs/{run}"))).await;
    assert_eq!(result["run"], found);
    assert_eq!((found["metadata"].clone(), found["standing"].clone()), (metadata, json!("completed")));
    // Of a run that no process has in hand any more, the same is read from the journal.
    assert_eq!(ok(desk.get(&format!("/runs/{run}/wait"))).await["output"], "you said ho");
}

#[tokio::test(flavor = "multi_thread")]
async fn where_a_run_is_that_was_begun_is_said() {
    let desk = Desk::with(&[ECHO]).await;
    for path in ["/runs", "/runs/wait", "/runs/stream"] {
        let reply = desk.post(path, json!({ "input": "hi" })).send().await.unwrap();
        let place = reply.headers()["content-location"].to_str().unwrap().to_owned();
        assert!(place.starts_with("/runs/"), "{place}");
        assert_eq!(ok(desk.get(&place)).await["agent_id"], "echo", "the only agent need not be named");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_a_text() {
    let desk = Desk::with(&[ECHO]).await;
    let parts = json!([{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }]);
    for body in [
        json!({ "messages": [{ "role": "user", "content": "ab" }] }),
        json!({ "messages": [{ "role": "user", "content": parts }] }),
        json!({ "input": { "messages": [{ "type": "human", "content": "ab" }] } }),
    ] {
        assert_eq!(ok(desk.post("/runs/wait", body)).await["output"], "you said ab");
    }
    let user = |text: &str| json!({ "role": "user", "content": text });
    let image = json!([{ "type": "image_url", "image_url": { "url": "x" } }]);
    for body in [
        json!({ "messages": [] }),
        json!({ "messages": [user("a"), user("b")] }),
        json!({ "messages": [{ "role": "assistant", "content": "a" }] }),
        json!({ "messages": [{ "role": "user", "content": image }] }),
        json!({ "messages": [{ "role": "user" }] }),
        json!({ "messages": [7] }),
        json!({ "messages": [user("a")], "input": "b" }),
        json!({ "input": 7 }),
        json!({ "input": ["a"] }),
        json!({ "input": true }),
        json!({ "input": { "nothing_of_that_name": 1 } }),
    ] {
        let refused = problem(desk.post("/runs/wait", body.clone())).await;
        assert_eq!(refused["status"], 422, "{body}: {refused}");
    }
    assert_eq!(ok(desk.get("/runs")).await["runs"].as_array().unwrap().len(), 3, "nothing was begun that was refused");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_fails_says_why() {
    let failing = "name: bad\nstart: ask\nnodes:\n  ask: { type: llm, model: \"test:x\", prompt: hi, timeout: 1, max_attempts: 1, next: done }\n  done: { type: end, output: x }\n";
    let variable = "name: var\nvariables:\n  - { name: who, description: Who }\nstart: done\nnodes:\n  done: { type: end, output: \"{{who}}\" }\n";
    let desk = Desk::with(&[("bad/graph.yaml", failing), ("var/graph.yaml", variable)]).await;
    let missing = problem(desk.post("/runs", json!({ "agent_id": "var", "input": {} }))).await;
    assert!(missing["detail"].as_str().unwrap().contains("who"), "{missing}");
    let result = ok(desk.post("/runs/wait", json!({ "agent_id": "var", "input": { "who": "me" } }))).await;
    assert_eq!(result["output"], "me");
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_are_listed_in_pages_by_what_is_wanted() {
    let desk = Desk::with(&[ECHO, ASK]).await;
    for text in ["one", "two", "three"] {
        ok(desk.post("/runs/wait", json!({ "agent_id": "echo", "input": text }))).await;
    }
    let waiting = ok(desk.post("/runs/wait", json!({ "agent_id": "ask" }))).await;
    assert_eq!(
        (waiting["run"]["status"].clone(), waiting["run"]["standing"].clone()),
        (json!("interrupted"), json!("waiting"))
    );
    let outcomes = |page: &Value| -> Vec<Value> {
        page["runs"].as_array().unwrap().iter().map(|run| run["outcome"].clone()).collect()
    };
    let first = ok(desk.get("/runs?agent_id=echo&limit=2")).await;
    assert_eq!(outcomes(&first), ["you said three", "you said two"]);
    let next = first["next"].as_str().unwrap();
    let second = ok(desk.get(&format!("/runs?agent_id=echo&limit=2&after={next}"))).await;
    assert_eq!((outcomes(&second), second["next"].clone()), (vec![json!("you said one")], Value::Null));
    assert_eq!(ok(desk.get("/runs?status=interrupted")).await["runs"].as_array().unwrap().len(), 1);
    assert_eq!(ok(desk.get("/runs?status=pending")).await["runs"], json!([]));
    assert_eq!(outcomes(&ok(desk.get("/runs?text=two")).await), ["you said two"]);
    let found =
        ok(desk.post("/runs/search", json!({ "agent_id": "echo", "limit": 1, "offset": 2, "status": "success" })))
            .await;
    assert_eq!(found[0]["outcome"], "you said one");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_run_stops_at_once_and_stays_cancelled() {
    let desk = Desk::with(&[SLOW]).await;
    let run = desk.begin(json!({ "input": "x" })).await;
    desk.model.was_asked(1).await;
    let waiting = tokio::spawn({
        let request = desk.get(&format!("/runs/{run}/wait"));
        async move { ok(request).await }
    });
    let cancelled = ok(desk.post(&format!("/runs/{run}/cancel"), json!({}))).await;
    assert_eq!(cancelled["standing"], "cancelled");
    assert_eq!(waiting.await.unwrap()["run"]["standing"], "cancelled", "whoever waits is told");
    let again = problem(desk.post(&format!("/runs/{run}/cancel"), json!({}))).await;
    assert_eq!((again["status"].clone(), again["type"].clone()), (409.into(), "urn:hotcell:problem:run-ended".into()));
    desk.model.answers(9);
    assert_eq!(desk.stands(&run, "cancelled").await["status"], "interrupted");
    assert_eq!(desk.model.requests().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_cancelled_and_waited_for_or_removed_in_one_request() {
    let desk = Desk::with(&[SLOW]).await;
    for (query, status, left) in [
        ("wait=true", 200, 200),
        ("wait=1&action=interrupt", 200, 200),
        ("action=rollback", 200, 404),
        ("action=x", 400, 200),
    ] {
        let run = desk.begin(json!({ "input": "x" })).await;
        let reply = desk.post(&format!("/runs/{run}/cancel?{query}"), json!({})).send().await.unwrap();
        assert_eq!(reply.status().as_u16(), status, "{query}");
        let there = desk.get(&format!("/runs/{run}")).send().await.unwrap();
        assert_eq!(there.status().as_u16(), left, "{query}");
        if (status, left) == (200, 200) {
            assert_eq!(there.json::<Value>().await.unwrap()["standing"], "cancelled", "{query}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_removed_when_it_has_ended() {
    let desk = Desk::with(&[ECHO, SLOW]).await;
    let run = desk.begin(json!({ "agent_id": "slow", "input": "x" })).await;
    let refused = problem(desk.delete(&format!("/runs/{run}"))).await;
    assert_eq!(
        (refused["status"].clone(), refused["type"].clone()),
        (409.into(), "urn:hotcell:problem:run-not-ended".into())
    );
    ok(desk.post(&format!("/runs/{run}/cancel"), json!({}))).await;
    desk.stands(&run, "cancelled").await;
    ok(desk.delete(&format!("/runs/{run}"))).await;
    for request in [desk.get(&format!("/runs/{run}")), desk.delete(&format!("/runs/{run}"))] {
        assert_eq!(problem(request).await["status"], 404);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_goes_away_takes_a_run_along_only_if_they_said_so() {
    let desk = Desk::with(&[SLOW]).await;
    for path in ["/runs/wait", "/runs/stream"] {
        for (on_disconnect, standing) in [("continue", "completed"), ("cancel", "cancelled")] {
            let asked = desk.model.requests().len();
            let request = desk.post(path, json!({ "input": "x", "on_disconnect": on_disconnect }));
            let client = tokio::spawn(async move {
                let mut response = request.send().await.unwrap();
                while response.chunk().await.unwrap().is_some() {}
            });
            until("the model is asked", || desk.model.requests().len() > asked).await;
            client.abort();
            let run = ok(desk.get("/runs?limit=1")).await["runs"][0]["run_id"].as_str().unwrap().to_owned();
            if standing == "completed" {
                desk.model.answers(2);
            }
            desk.stands(&run, standing).await;
            // One that is cancelled is so before its request to the model is.
            desk.model.is_left_alone().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_sees_that_a_run_rests_can_go_on_with_it_at_once() {
    let desk = Desk::with(&[ASK]).await;
    for _ in 0..10 {
        let run = desk.begin(json!({ "agent_id": "ask" })).await;
        desk.stands(&run, "waiting").await;
        let went_on = ok(desk.post(&format!("/runs/{run}/resume"), json!({}))).await;
        assert_eq!(went_on["run_id"], run);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_say_everything_that_was_committed() {
    let desk = Desk::with(&[SLOW]).await;
    desk.model.answers(2);
    let result = ok(desk.post("/runs/wait", json!({ "input": "x" }))).await;
    assert_eq!(result["output"], "reply1 reply2");
    let run = result["run"]["run_id"].as_str().unwrap();
    let kinds = desk.kinds(run).await;
    assert_eq!((kinds.first().unwrap().as_str(), kinds.last().unwrap().as_str()), ("started", "ended"));
    let turns: Vec<&String> =
        kinds.iter().filter(|kind| kind.starts_with("completed@") && !kind.contains('.')).collect();
    assert_eq!(turns, ["completed@1", "completed@2", "completed@3"]);
    let mut seen = Vec::new();
    let mut after = 0;
    loop {
        let page = ok(desk.get(&format!("/runs/{run}/entries?limit=3&after={after}"))).await;
        seen.extend(page["entries"].as_array().unwrap().iter().map(|entry| entry["seq"].as_u64().unwrap()));
        match page["next"].as_u64() {
            Some(next) => after = next,
            None => break,
        }
    }
    assert_eq!(seen, (1..=kinds.len() as u64).collect::<Vec<_>>());
}
