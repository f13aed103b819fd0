//! The addresses of LangGraph's clients, and those clients themselves where `clients/install.sh` has installed them.

use hotcell_serve::Role;
use serde_json::{Value, json};

use crate::access::key;
use crate::clients::drive;
use crate::desk::{ASK, COUNT, Desk, ECHO, Events, SLOW, ok, problem};

#[tokio::test(flavor = "multi_thread")]
async fn langgraph_sdk_drives_threads_runs_streams_and_interrupts() {
    let desk = Desk::with(&[ASK, COUNT, ECHO, SLOW]).await;
    desk.model.answers(2);
    drive("langgraph.py", &[&desk.url]).await;
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
    for seen in &committed {
        let path = format!("/threads/{thread}/runs/{run}/stream?stream_mode=values,updates");
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
        ("stream_mode", json!("debug")),
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
