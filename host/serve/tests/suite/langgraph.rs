//! The addresses of LangGraph's clients, and those clients themselves where `clients/install.sh` has installed them.

use hotcell_serve::Role;
use serde_json::{Value, json};

use crate::access::key;
use crate::clients::{drive, drive_node};
use crate::desk::{ASK, COUNT, Desk, ECHO, Events, SLOW, ok, problem, until_async};

#[tokio::test(flavor = "multi_thread")]
async fn langgraph_sdk_drives_threads_runs_streams_and_interrupts() {
    let desk = Desk::with(&[ASK, COUNT, ECHO, SLOW]).await;
    desk.model.answers(2);
    drive("langgraph.py", &[&desk.url]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn langgraph_sdk_in_javascript_drives_threads_runs_streams_and_interrupts() {
    let desk = Desk::with(&[ASK, COUNT, ECHO, SLOW]).await;
    drive_node("langgraph.mjs", "langgraph/node_modules", &[&desk.url]).await;
}

/// A thread that is there.
async fn thread(desk: &Desk) -> String {
    let thread = ok(desk.post("/threads", json!({}))).await;
    thread["thread_id"].as_str().expect("an id").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_goes_on_after_the_last_event_that_was_seen() {
    let desk = Desk::with(&[SLOW]).await;
    desk.model.answers(2);
    let thread = thread(&desk).await;
    let body = json!({ "assistant_id": "slow", "input": "x", "stream_mode": ["values", "updates"] });
    let all = Events::of(desk.post(&format!("/threads/{thread}/runs/stream"), body)).await.all().await;
    let run = all[0].data["run_id"].as_str().expect("a run").to_owned();
    let committed: Vec<_> = all.iter().filter(|event| event.id.is_some()).collect();
    assert!(committed.len() >= 4, "{all:?}");
    let path = format!("/threads/{thread}/runs/{run}/stream?stream_mode=values,updates");
    // Clients of LangGraph say this of the beginning.
    let again = Events::of(desk.get(&path).header("Last-Event-ID", "-1")).await.all().await;
    assert_eq!(again.iter().filter(|event| event.id.is_some()).collect::<Vec<_>>(), committed);
    // Those in Python give each mode, those in JavaScript a list.
    for modes in ["stream_mode=values&stream_mode=updates", "stream_mode=[%22values%22,%22updates%22]"] {
        let request = desk.get(&format!("/threads/{thread}/runs/{run}/stream?{modes}"));
        let again = Events::of(request).await.all().await;
        assert_eq!(again.iter().filter(|event| event.id.is_some()).collect::<Vec<_>>(), committed, "{modes}");
    }
    for modes in ["stream_mode=values&stream_mode=x", "stream_mode=[]", "stream_mode=[1]"] {
        let refused = problem(desk.get(&format!("/threads/{thread}/runs/{run}/stream?{modes}"))).await;
        assert_eq!(refused["status"], 422, "{modes}");
    }
    for seen in &committed {
        let request = desk.get(&path).header("Last-Event-ID", seen.id.clone().expect("an id"));
        let rest = Events::of(request).await.all().await;
        let missed = all.iter().skip_while(|event| event.id != seen.id).skip(1);
        // The state is told once more where nothing was told of it in this stream.
        let told = |events: &[crate::desk::Told]| {
            let updates = events.iter().filter(|event| event.event == "updates");
            updates.map(|event| event.data.clone()).collect::<Vec<_>>()
        };
        assert_eq!(told(&rest), told(&missed.cloned().collect::<Vec<_>>()), "after {:?}", seen.id);
        assert_eq!(rest.last().expect("an end").data["status"], "success");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_langgraph_knows_and_hotcell_does_not_is_refused_by_name() {
    let desk = Desk::with(&[ECHO]).await;
    for (name, value) in [
        ("config", json!({ "recursion_limit": 3 })),
        ("context", json!({ "user": "x" })),
        ("checkpoint_id", json!("x")),
        ("interrupt_before", json!("*")),
        ("interrupt_after", json!(["done"])),
        ("after_seconds", json!(5)),
        ("on_completion", json!("delete")),
        ("stream_subgraphs", json!(true)),
        ("stream_mode", json!("graph")),
        ("stream_mode", json!([])),
        ("anything", json!(1)),
    ] {
        let mut body = json!({ "assistant_id": "echo", "input": "x" });
        body[name] = value;
        let refused = problem(desk.post("/runs/wait", body)).await;
        assert_eq!(refused["status"], 422);
        assert!(refused["detail"].as_str().expect("text").contains(name), "{refused}");
    }
    // What clients send for nothing, and what is always so, is taken.
    let body = json!({
        "assistant_id": "echo", "input": { "prompt": "x" }, "config": { "configurable": {} }, "context": {}, "checkpoint": null,
        "interrupt_before": [], "durability": "sync", "stream_resumable": true, "on_completion": "keep", "after_seconds": 0,
    });
    assert_eq!(ok(desk.post("/runs/wait", body)).await["__output__"], "you said x");
    assert_eq!(ok(desk.get("/runs")).await["runs"].as_array().expect("runs").len(), 1, "nothing else was begun");
    let resume = json!({ "assistant_id": "echo", "command": { "resume": "x" } });
    assert_eq!(problem(desk.post("/runs/wait", resume)).await["status"], 422);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_of_another_thread_is_not_there() {
    let desk = Desk::with(&[ECHO]).await;
    let (one, other) = (thread(&desk).await, thread(&desk).await);
    let body = json!({ "assistant_id": "echo", "input": "x" });
    let run = ok(desk.post(&format!("/threads/{one}/runs"), body)).await["run_id"].as_str().expect("a run").to_owned();
    desk.stands(&run, "completed").await;
    for path in ["", "/join", "/stream"] {
        assert_eq!(problem(desk.get(&format!("/threads/{other}/runs/{run}{path}"))).await["status"], 404);
    }
    let cancel = |action: &str| desk.post(&format!("/threads/{other}/runs/{run}/cancel?action={action}"), Value::Null);
    assert_eq!(problem(cancel("interrupt")).await["status"], 404);
    assert_eq!(problem(cancel("stop")).await["status"], 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_busy_thread_takes_a_new_run_as_it_says() {
    let desk = Desk::with(&[SLOW]).await;
    let thread = thread(&desk).await;
    let begin = |strategy: &str| {
        desk.post("/runs", json!({ "thread_id": thread, "input": "x", "multitask_strategy": strategy }))
    };
    let run = async |begun: Value| begun["run_id"].as_str().expect("a run").to_owned();
    let first = run(ok(begin("reject")).await).await;
    desk.model.was_asked(1).await;
    assert_eq!(problem(begin("reject")).await["status"], 409);

    // Two wait for their turn, and begin one after the other.
    let (second, third) = (tokio::spawn(begin("enqueue").send()), tokio::spawn(begin("enqueue").send()));
    desk.model.answers(4);
    let mut queued = Vec::new();
    for begun in [second, third] {
        let reply = begun.await.expect("no panic").expect("a reply");
        assert_eq!(reply.status(), 200);
        queued.push(run(reply.json().await.expect("JSON")).await);
    }
    desk.stands(&first, "completed").await;
    desk.model.was_asked(5).await;
    let mut standing = Vec::new();
    for run in &queued {
        standing.push(ok(desk.get(&format!("/runs/{run}"))).await["standing"].as_str().expect("text").to_owned());
    }
    let place = standing.iter().position(|standing| standing == "running").expect("the later one is worked on");
    assert_eq!(standing[1 - place], "completed");

    let next = run(ok(begin("interrupt")).await).await;
    assert_eq!(ok(desk.get(&format!("/runs/{}", queued[place]))).await["standing"], "cancelled");
    desk.model.was_asked(6).await;
    let last = run(ok(begin("rollback")).await).await;
    assert_eq!(problem(desk.get(&format!("/runs/{next}"))).await["status"], 404, "it is removed");
    desk.model.answers(4);
    desk.stands(&last, "completed").await;
    assert_eq!(problem(begin("queue")).await["status"], 422);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_only_begin_runs_cancels_those_of_others_and_removes_none() {
    let desk = Desk::with(&[SLOW]).await;
    let (one, other) = (key(&desk, &[Role::Run]), key(&desk, &[Role::Run]));
    let operates = key(&desk, &[Role::Run, Role::Operate]);
    let body = |strategy: &str| {
        json!({
            "agent_id": "slow", "thread_id": "case", "if_not_exists": "create", "input": "x", "multitask_strategy": strategy,
        })
    };
    let begin = |token: &str, strategy: &str| desk.post("/runs", body(strategy)).bearer_auth(token);
    let standing = async |run: &str| ok(desk.get(&format!("/runs/{run}")).bearer_auth(&one)).await["standing"].clone();
    let run = |begun: Value| begun["run_id"].as_str().expect("a run").to_owned();
    let first = run(ok(begin(&other, "reject")).await);
    desk.model.was_asked(1).await;
    for path in ["/runs", "/runs/wait", "/runs/stream"] {
        let refused = problem(desk.post(path, body("rollback")).bearer_auth(&one)).await;
        assert_eq!(refused["status"], 403, "{path}");
    }
    for path in ["", "/wait", "/stream"] {
        let body = json!({ "assistant_id": "slow", "input": "x", "multitask_strategy": "rollback" });
        let refused = problem(desk.post(&format!("/threads/case/runs{path}"), body).bearer_auth(&one)).await;
        assert_eq!(refused["status"], 403, "{path}");
    }
    let cancel = format!("/threads/case/runs/{first}/cancel?action=rollback");
    assert_eq!(problem(desk.post(&cancel, json!({})).bearer_auth(&one)).await["status"], 403);
    assert_eq!(standing(&first).await, "running", "nothing was done");
    let second = run(ok(begin(&one, "interrupt")).await);
    assert_eq!(standing(&first).await, "cancelled", "and it is there");
    ok(begin(&operates, "rollback")).await;
    assert_eq!(problem(desk.get(&format!("/runs/{second}")).bearer_auth(&one)).await["status"], 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_only_begin_runs_does_not_resume_them() {
    let desk = Desk::with(&[ASK]).await;
    let (token, other) = (key(&desk, &[Role::Run]), key(&desk, &[Role::Run, Role::Answer]));
    let made = ok(desk.post("/threads", json!({})).bearer_auth(&token)).await;
    let runs = format!("/threads/{}/runs", made["thread_id"].as_str().expect("an id"));
    let begin = desk.post(&format!("{runs}/wait"), json!({ "assistant_id": "ask", "input": {} }));
    ok(begin.bearer_auth(&token)).await;
    let resume = |path: &str, token: &str| {
        let body = json!({ "assistant_id": "ask", "command": { "resume": "Ada" } });
        desk.post(&format!("{runs}{path}"), body).bearer_auth(token)
    };
    for path in ["", "/wait", "/stream"] {
        assert_eq!(problem(resume(path, &token)).await["status"], 403, "{path}");
    }
    assert_eq!(ok(resume("/wait", &other)).await["__output__"], "hello Ada");
    assert_eq!(problem(resume("/wait", &other)).await["status"], 409, "it waits no more");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_asks_nothing_takes_no_answer() {
    let desk = Desk::with(&[SLOW]).await;
    let thread = thread(&desk).await;
    let post = |body: Value| desk.post(&format!("/threads/{thread}/runs"), body);
    ok(post(json!({ "assistant_id": "slow", "input": "x" }))).await;
    desk.model.was_asked(1).await;
    let refused = problem(post(json!({ "assistant_id": "slow", "command": { "resume": "Ada" } }))).await;
    assert_eq!((&refused["status"], &refused["type"]), (&json!(409), &json!("urn:hotcell:problem:question-closed")));
    // What would be kept with a run that begins is not kept with one that goes on.
    let kept = json!({ "assistant_id": "slow", "command": { "resume": "Ada" }, "metadata": { "ticket": 7 } });
    assert_eq!(problem(post(kept)).await["status"], 422);
}

#[tokio::test(flavor = "multi_thread")]
async fn several_runs_are_begun_or_none_and_a_repeated_request_begins_no_more() {
    let desk = Desk::with(&[ECHO, COUNT]).await;
    let one = |text: &str| json!({ "assistant_id": "echo", "input": { "prompt": text } });
    let batch = |body: Value| desk.post("/runs/batch", body);
    for (wrong, status) in [
        (json!({}), 422),
        (json!([]), 422),
        (json!([one("x"), 1]), 422),
        (json!([one("x"), []]), 422),
        (json!([one("x"), { "assistant_id": "nobody" }]), 404),
        (json!([one("x"), { "assistant_id": "echo", "input": 7 }]), 422),
        (json!([one("x"), { "assistant_id": "count", "input": { "nothing": 1 } }]), 422),
        (json!([one("x"), { "assistant_id": "echo", "thread_id": "t" }]), 422),
        (json!([one("x"), { "assistant_id": "echo", "command": { "resume": "x" } }]), 422),
        (json!([one("x"), { "assistant_id": "echo", "webhook": "https://example.com" }]), 422),
        (Value::Array(vec![one("x"); 101]), 422),
    ] {
        assert_eq!(problem(batch(wrong.clone())).await["status"], status, "{wrong}");
    }
    assert_eq!(problem(desk.post("/runs/batch", json!(1)).body("[1")).await["status"], 400);
    assert_eq!(ok(desk.get("/runs")).await["runs"], json!([]), "none was begun");
    let request = || batch(json!([one("a"), one("b"), one("c")])).header("Idempotency-Key", "k");
    let begun = ok(request()).await;
    let runs: Vec<&str> = begun.as_array().unwrap().iter().map(|run| run["run_id"].as_str().unwrap()).collect();
    for (run, text) in runs.iter().zip(["a", "b", "c"]) {
        assert_eq!(ok(desk.get(&format!("/runs/{run}/wait"))).await["output"], format!("you said {text}"));
    }
    assert_eq!(
        (ok(request()).await, ok(desk.get("/runs")).await["runs"].as_array().unwrap().len()),
        (begun.clone(), 3)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn several_runs_are_cancelled_at_once() {
    let desk = Desk::with(&[ASK, ECHO, SLOW]).await;
    let waits = desk.begin(json!({ "agent_id": "ask" })).await;
    let ended = desk.begin(json!({ "agent_id": "echo", "input": "x" })).await;
    let works = desk.begin(json!({ "agent_id": "slow", "input": "x" })).await;
    desk.stands(&waits, "waiting").await;
    desk.stands(&ended, "completed").await;
    desk.model.was_asked(1).await;
    let cancel = |query: &str, body: Value| desk.post(&format!("/runs/cancel{query}"), body);
    for (query, wrong, status) in [
        ("", json!({}), 422),
        ("", json!({ "run_ids": [] }), 422),
        ("", json!({ "run_ids": [waits], "status": "all" }), 422),
        ("", json!({ "run_ids": [waits, "nobody"] }), 404),
        ("", json!({ "run_ids": [waits], "thread_id": "t" }), 404),
        ("", json!({ "status": "success" }), 422),
        ("?action=x", json!({ "run_ids": [waits] }), 400),
    ] {
        assert_eq!(problem(cancel(query, wrong.clone())).await["status"], status, "{wrong}");
    }
    desk.stands(&waits, "waiting").await;
    let runs = key(&desk, &[Role::Run]);
    let removes = cancel("?action=rollback", json!({ "run_ids": [waits] })).bearer_auth(&runs);
    assert_eq!(problem(removes).await["status"], 403);
    let operates = key(&desk, &[Role::Operate]);
    let get = async |run: &str| desk.get(&format!("/runs/{run}")).bearer_auth(&operates).send().await.unwrap();
    ok(cancel("", json!({ "status": "all" })).bearer_auth(&runs)).await;
    ok(cancel("?action=rollback", json!({ "run_ids": [waits, ended] })).bearer_auth(&operates)).await;
    assert_eq!(get(&waits).await.status(), 404);
    let standing = async |run: &str| get(run).await.json::<Value>().await.unwrap()["standing"].clone();
    assert_eq!(standing(&ended).await, "completed");
    until_async("the run is cancelled", async || standing(&works).await == "cancelled").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn assistants_are_ordered_and_counted_and_have_one_version() {
    let desk = Desk::with(&[ASK, COUNT, ECHO]).await;
    let search = async |body: Value| {
        let found = ok(desk.post("/assistants/search", body)).await;
        found.as_array().unwrap().iter().map(|one| one["assistant_id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(search(json!({})).await, ["ask", "count", "echo"]);
    assert_eq!(search(json!({ "sort_order": "desc", "limit": 2 })).await, ["echo", "count"]);
    assert_eq!(search(json!({ "sort_by": "name", "offset": 1 })).await, ["count", "echo"]);
    assert_eq!(problem(desk.post("/assistants/search", json!({ "sort_by": "x" }))).await["status"], 422);
    assert_eq!(ok(desk.post("/assistants/count", json!({}))).await, 3);
    assert_eq!(ok(desk.post("/assistants/count", json!({ "name": "C", "metadata": { "language": "loki" } }))).await, 1);
    let versions = ok(desk.post("/assistants/echo/versions", json!({}))).await;
    assert_eq!((versions[0]["version"].clone(), versions.as_array().unwrap().len()), (json!(1), 1));
    assert_eq!(ok(desk.post("/assistants/echo/versions", json!({ "offset": 1 }))).await, json!([]));
    assert_eq!(problem(desk.post("/assistants/nobody/versions", json!({}))).await["status"], 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_tells_of_tasks_checkpoints_and_events() {
    let desk = Desk::with(&[SLOW]).await;
    desk.model.answers(2);
    let modes = json!(["tasks", "checkpoints", "debug", "events", "custom"]);
    let body = json!({ "assistant_id": "slow", "input": "x", "stream_mode": modes, "if_not_exists": "create" });
    let told = Events::of(desk.post("/threads/t/runs/stream", body)).await.all().await;
    let of =
        |name: &str| told.iter().filter(|told| told.event == name).map(|told| told.data.clone()).collect::<Vec<_>>();

    // Each node begins and ends, in this order.
    let tasks = of("tasks");
    let told_of: Vec<_> = tasks.iter().map(|task| (task["name"].clone(), task.get("result").is_some())).collect();
    assert_eq!(told_of, ["first", "second", "done"].map(|name| [(json!(name), false), (json!(name), true)]).concat());
    for pair in tasks.chunks(2) {
        assert_eq!(pair[0]["id"], pair[1]["id"]);
    }
    assert_eq!((&tasks[1]["result"]["first"], &tasks[2]["input"]["first"]), (&json!("reply1"), &json!("reply1")));

    // Each state follows from the one before it, and is found in the history of the thread.
    let checkpoints = of("checkpoints");
    let steps: Vec<_> = checkpoints.iter().map(|one| (one["metadata"]["step"].clone(), one["next"].clone())).collect();
    let steps_of = |step: i64, next: Value| (json!(step), next);
    assert_eq!(
        steps,
        [steps_of(-1, json!([])), steps_of(0, json!(["second"])), steps_of(1, json!(["done"])), steps_of(2, json!([])),]
    );
    assert_eq!(checkpoints[0]["parent_config"], Value::Null);
    for pair in checkpoints.windows(2) {
        assert_eq!(pair[1]["parent_config"], pair[0]["config"]);
    }
    for checkpoint in &checkpoints {
        let id = checkpoint["config"]["configurable"]["checkpoint_id"].as_str().expect("an id");
        let state = ok(desk.get(&format!("/threads/t/state/{id}"))).await;
        assert_eq!(state["values"], checkpoint["values"], "{id}");
    }
    let debug: Vec<_> = of("debug").into_iter().map(|one| one["type"].clone()).collect();
    let turn = [json!("task"), json!("task_result"), json!("checkpoint")];
    assert_eq!(debug, [vec![json!("checkpoint")], turn.to_vec(), turn.to_vec(), turn.to_vec()].concat());

    let events: Vec<_> = of("events").into_iter().map(|one| (one["event"].clone(), one["name"].clone())).collect();
    let named = |event: &str, name: &str| (json!(event), json!(name));
    assert_eq!(
        (events.first(), events.last()),
        (Some(&named("on_chain_start", "slow")), Some(&named("on_chain_end", "slow")))
    );
    for node in ["first", "second"] {
        let of_node: Vec<_> = events.iter().filter(|(_, name)| name == node).map(|(event, _)| event.clone()).collect();
        let (begin, end) = (of_node.first(), of_node.last());
        assert_eq!((begin, end), (Some(&json!("on_chain_start")), Some(&json!("on_chain_end"))), "{of_node:?}");
        assert!(of_node.contains(&json!("on_chat_model_stream")), "{of_node:?}");
    }
    assert!(of("custom").is_empty() && of("values").is_empty());
}
