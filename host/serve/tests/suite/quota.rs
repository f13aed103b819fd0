//! What a tenant may use: runs, requests, what is kept, and what a month costs.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use hotcell_runtime::ManualClock;
use hotcell_serve::Role;
use reqwest::Method;
use serde_json::{Value, json};

use crate::desk::{SLOW, at_once, ok, opened, problem, until};
use crate::site::{ACME, Premises, Setup, UMBRA};

const SAYS: &str =
    "name: says\nstart: done\nnodes:\n  done: { type: end, output: \"I was told {{initial_prompt}}\" }\n";
const FILES: [(&str, &str); 3] =
    [("acme/says/graph.yaml", SAYS), ("acme/slow/graph.yaml", SLOW.1), ("umbra/slow/graph.yaml", SLOW.1)];

/// What a run of `slow` uses: two requests of two tokens.
const TOKENS: u64 = 4;

async fn by_hand(acme: &str) -> (Premises, ManualClock) {
    let clock = ManualClock::at(SystemTime::now());
    let setup = Setup { files: &FILES, acme, clock: Some(Arc::new(clock.clone())), ..Setup::default() };
    (Premises::set_up(setup).await, clock)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_month_costs_so_much_and_no_more_whatever_becomes_of_the_server() {
    let (premises, clock) = by_hand("[tenants.acme.month]\ntokens = 10").await;
    premises.model.answers(1_000);
    let (acme, umbra) = (premises.key(ACME), premises.key(UMBRA));
    let slow = json!({ "agent_id": "slow", "input": "x" });
    let mut runs = Vec::new();
    let refused = loop {
        let reply = premises.post("/runs/wait", &acme, slow.clone()).send().await.expect("a reply");
        if reply.status() != 200 {
            break reply;
        }
        let run: Value = reply.json().await.expect("JSON");
        runs.push(run["run"]["run_id"].as_str().expect("a name").to_owned());
        assert!(runs.len() < 1_000, "nothing is counted");
    };
    assert!(runs.len() >= 3, "10 tokens are enough for two runs and a part of a third");
    assert_eq!(refused.status(), 429);
    let wait: u64 = refused.headers()["retry-after"].to_str().expect("text").parse().expect("a number");
    let refused: Value = refused.json().await.expect("JSON");
    assert_eq!(
        (&refused["type"], &refused["budget"]),
        (&json!("urn:hotcell:problem:budget-used-up"), &json!("tokens"))
    );
    assert!(refused["resets_at"].as_str().is_some_and(|at| at.ends_with("-01T00:00:00Z")), "{refused}");
    assert!((1..=31 * 24 * 3600).contains(&wait), "{wait}");
    // Others are not concerned.
    ok(premises.post("/runs/wait", &umbra, slow.clone())).await;
    assert_eq!(ok(premises.get("/tenant", &umbra)).await["month"], Value::Null);
    let all = TOKENS * runs.len() as u64;
    comes_to(&premises, &acme, all).await;
    // Removing what was run gives nothing back.
    ok(premises.ask(Method::DELETE, &format!("/runs/{}", runs[0]), Some(&acme))).await;
    let premises = premises.again().await;
    comes_to(&premises, &acme, all).await;
    assert_eq!(problem(premises.post("/runs", &acme, slow.clone())).await["status"], 429);
    // A process that ends before it has counted: what the journal says is counted at the next start, once.
    let file = premises.folder().join("state/tenants/acme/serve.db");
    let forget = |what: &str| opened(&file).execute_batch(what).expect("forgotten");
    forget(&format!(
        "DELETE FROM spent_by_run WHERE run = '{}'; UPDATE spent_by_month SET tokens = tokens - {TOKENS};",
        runs[1]
    ));
    let mut premises = premises.again().await;
    for _ in 0..2 {
        comes_to(&premises, &acme, all).await;
        premises = premises.again().await;
    }
    // In another month it begins anew.
    clock.advance(Duration::from_secs(wait));
    ok(premises.post("/runs/wait", &acme, slow)).await;
    comes_to(&premises, &acme, TOKENS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_runs_of_a_removed_thread_have_used_is_used() {
    let (premises, _clock) = by_hand("[tenants.acme.month]\ntokens = 10").await;
    premises.model.answers(2);
    let acme = premises.key(ACME);
    let run = json!({ "agent_id": "slow", "input": "x", "thread_id": "case", "if_not_exists": "create" });
    ok(premises.post("/runs/wait", &acme, run)).await;
    comes_to(&premises, &acme, TOKENS).await;
    // As if it was removed before what its run has used was counted.
    let file = premises.folder().join("state/tenants/acme/serve.db");
    let forgotten = format!("DELETE FROM spent_by_run; UPDATE spent_by_month SET tokens = tokens - {TOKENS};");
    opened(&file).execute_batch(&forgotten).expect("forgotten");
    ok(premises.ask(Method::DELETE, "/threads/case", Some(&acme))).await;
    comes_to(&premises, &acme, TOKENS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn how_much_of_a_run_was_counted_is_kept_no_longer_than_the_run() {
    let (premises, _clock) = by_hand("[tenants.acme.month]\ntokens = 10").await;
    premises.model.answers(4);
    let acme = premises.key(ACME);
    let slow = json!({ "agent_id": "slow", "input": "x" });
    let mut runs = Vec::new();
    for _ in 0..2 {
        let begun = ok(premises.post("/runs/wait", &acme, slow.clone())).await;
        runs.push(begun["run"]["run_id"].as_str().expect("a name").to_owned());
    }
    comes_to(&premises, &acme, 2 * TOKENS).await;
    ok(premises.ask(Method::DELETE, &format!("/runs/{}", runs[0]), Some(&acme))).await;
    let premises = premises.again().await;
    let file = opened(&premises.folder().join("state/tenants/acme/serve.db"));
    let counted = || -> Vec<String> {
        let mut statement = file.prepare("SELECT run FROM spent_by_run").expect("read");
        let rows = statement.query_map([], |row| row.get(0)).expect("read");
        rows.collect::<Result<_, _>>().expect("read")
    };
    until("it is forgotten", || counted() == runs[1..]).await;
    comes_to(&premises, &acme, 2 * TOKENS).await;
}

/// Waits until it is counted that so much was used, and nothing more for a while.
async fn comes_to(premises: &Premises, key: &str, tokens: u64) {
    let mut seen = 0;
    let begun = std::time::Instant::now();
    while seen < 10 {
        let tenant = ok(premises.get("/tenant", key)).await;
        assert_eq!(tenant["month"]["limits"], json!({ "usd": null, "tokens": 10, "fuel": null }));
        let used = tenant["month"]["used"]["tokens"].as_u64().expect("a number");
        assert!(used <= tokens, "{used} and not {tokens}");
        seen = if used == tokens { seen + 1 } else { 0 };
        assert!(begun.elapsed() < Duration::from_secs(60), "{used} and not {tokens}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_minute_has_so_many_runs_and_no_more() {
    let (premises, clock) = by_hand("runs_per_minute = 2").await;
    let acme = premises.key(ACME);
    let begin = || premises.post("/runs/wait", &acme, json!({ "agent_id": "says", "input": "x" }));
    ok(begin()).await;
    clock.advance(Duration::from_secs(20));
    ok(begin()).await;
    let refused = problem(begin()).await;
    assert_eq!(
        (&refused["status"], &refused["type"]),
        (&json!(429), &json!("urn:hotcell:problem:too-many-runs-a-minute"))
    );
    assert_eq!(refused["retry_after"], 41);
    assert_eq!(
        ok(premises.get("/runs", &acme)).await["runs"].as_array().map(Vec::len),
        Some(2),
        "nothing of it was begun"
    );
    clock.advance(Duration::from_secs(40));
    ok(begin()).await;
    assert_eq!(problem(begin()).await["status"], 429);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_cancelled_for_a_run_that_cannot_begin() {
    let (premises, _clock) = by_hand("runs_per_minute = 1").await;
    let acme = premises.key(ACME);
    let body = |strategy: &str| {
        json!({
            "agent_id": "slow", "input": "x", "thread_id": "case", "if_not_exists": "create", "multitask_strategy": strategy,
        })
    };
    let run = premises.begin(&acme, body("reject")).await;
    premises.model.was_asked(1).await;
    for strategy in ["interrupt", "rollback"] {
        let mut wrong = body(strategy);
        wrong["input"] = json!({ "nothing": 1 });
        assert_eq!(problem(premises.post("/runs", &acme, wrong)).await["status"], 422, "{strategy}");
        assert_eq!(problem(premises.post("/runs", &acme, body(strategy))).await["status"], 429, "{strategy}");
        let standing = ok(premises.get(&format!("/runs/{run}"), &acme)).await["standing"].clone();
        assert_eq!(standing, "running", "{strategy}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn all_keys_of_a_tenant_share_its_requests() {
    let premises = Premises::set_up(Setup { files: &FILES, acme: "requests_per_second = 1", ..Setup::default() }).await;
    let umbra = premises.key(UMBRA);
    // A machine on which so many at once take that many seconds is slower than any that is used.
    let keys: Vec<String> = (0..40).map(|_| premises.key(ACME)).collect();
    let replies = at_once(keys.iter().map(|key| premises.get("/runs", key))).await;
    let refused: Vec<_> = replies.iter().filter(|reply| reply.status() == 429).collect();
    assert!(!refused.is_empty() && refused.iter().all(|reply| reply.headers().contains_key("retry-after")));
    ok(premises.get("/runs", &umbra)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn so_much_is_kept_and_no_more() {
    let premises = Premises::set_up(Setup { files: &FILES, acme: "stored_bytes = 4000000", ..Setup::default() }).await;
    let (acme, umbra) = (premises.key(ACME), premises.key(UMBRA));
    // What is refused is not read to its end, so its connection takes nothing more.
    let large = |key: &str| {
        let body = json!({ "metadata": { "text": "x".repeat(60_000) } });
        premises.post("/threads", key, body).header("connection", "close")
    };
    let mut threads = Vec::new();
    let refused = loop {
        let reply = large(&acme).send().await.expect("a reply");
        let status = reply.status();
        let said: Value = reply.json().await.expect("JSON");
        if status != 200 {
            break said;
        }
        threads.push(said["thread_id"].as_str().expect("an id").to_owned());
        assert!(threads.len() < 100, "nothing is counted");
    };
    assert_eq!((&refused["status"], &refused["type"]), (&json!(507), &json!("urn:hotcell:problem:storage-used-up")));
    let begin = || premises.post("/runs/wait", &acme, json!({ "agent_id": "says", "input": "x" }));
    assert_eq!(problem(begin()).await["status"], 507);
    // Nor does a name help that is also that of something that keeps nothing.
    ok(premises.post("/threads", &umbra, json!({ "thread_id": "cancel" }))).await;
    let patch = |key: &str| {
        let more = json!({ "metadata": { "more": "x" } });
        premises.ask(Method::PATCH, "/threads/cancel", Some(key)).json(&more)
    };
    ok(patch(&umbra)).await;
    assert_eq!(problem(patch(&acme)).await["status"], 507);
    // Looking and removing go on, and others are not concerned.
    let tenant = ok(premises.get("/tenant", &acme)).await;
    assert!(tenant["stored_bytes"].as_u64() >= tenant["max_stored_bytes"].as_u64(), "{tenant}");
    ok(premises.post("/threads/search", &acme, json!({}))).await;
    let tasks = json!({ "jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {} });
    let listed = ok(premises.post("/a2a/says", &acme, tasks).header("A2A-Version", "1.0")).await;
    assert_eq!(listed["result"]["tasks"], json!([]), "{listed}");
    let answer = premises.post("/api/sessions/hitl/nobody/reply", &acme, json!({}));
    assert_eq!(problem(answer).await["status"], 404, "answers are taken");
    let chat = json!({ "model": "says", "messages": [{ "role": "user", "content": "x" }] });
    let refused = premises.post("/v1/chat/completions", &acme, chat).send().await.expect("a reply");
    assert_eq!(refused.status(), 507);
    ok(large(&umbra)).await;
    for thread in threads {
        ok(premises.ask(Method::DELETE, &format!("/threads/{thread}"), Some(&acme))).await;
    }
    ok(begin()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_administers_a_tenant_sees_its_keys_and_takes_them_back() {
    let premises = Premises::set_up(Setup { files: &FILES, ..Setup::default() }).await;
    let (acme, umbra) = (premises.key(ACME), premises.key(UMBRA));
    let tenant = ACME.parse().expect("a name");
    let app = premises.keys().add("app", Some(&tenant), &[Role::Run, Role::Operate], None).expect("made").reveal();
    let listed = ok(premises.get("/keys", &acme)).await;
    let names: Vec<&str> = listed.as_array().expect("keys").iter().filter_map(|key| key["name"].as_str()).collect();
    assert_eq!(names, ["test", "app"]);
    let secrets = [&acme, &umbra, &app].map(|key| key.rsplit('_').next().expect("a secret").to_owned());
    assert!(secrets.iter().all(|secret| !listed.to_string().contains(secret)));
    assert_eq!(problem(premises.get("/keys", &app)).await["status"], 403);
    let id = |key: &str| key.split('_').nth(1).expect("an id").to_owned();
    let revoke = |id: &str, key: &str| premises.ask(Method::DELETE, &format!("/keys/{id}"), Some(key));
    for (key, by) in [(&app, &umbra), (&umbra, &acme)] {
        assert_eq!(problem(revoke(&id(key), by)).await["status"], 404, "it is of another tenant");
    }
    ok(premises.get("/runs", &app)).await;
    ok(revoke(&id(&app), &acme)).await;
    assert_eq!(problem(premises.get("/runs", &app)).await["status"], 401);
    assert_eq!(problem(revoke(&id(&app), &acme)).await["status"], 404);
    ok(premises.get("/runs", &umbra)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_listed_origins_may_use_the_server_and_no_others() {
    let written = "cors_origins = ['https://app.example.com']";
    let premises = Premises::set_up(Setup { files: &FILES, server: written, ..Setup::default() }).await;
    let acme = premises.key(ACME);
    let from = |origin: &str| premises.get("/runs", &acme).header("origin", origin);
    let reply = from("https://app.example.com").send().await.expect("a reply");
    assert_eq!(
        (reply.status().as_u16(), reply.headers()["access-control-allow-origin"].to_str().expect("text")),
        (200, "https://app.example.com")
    );
    assert!(reply.headers()["vary"].to_str().expect("text").contains("origin"));
    let asks = premises
        .ask(Method::OPTIONS, "/runs", None)
        .header("origin", "https://app.example.com")
        .header("access-control-request-method", "POST");
    let reply = asks.send().await.expect("a reply");
    assert_eq!(reply.status(), 204, "a browser asks without a key");
    assert!(reply.headers()["access-control-allow-headers"].to_str().expect("text").contains("authorization"));
    // A client of a protocol asks for the headers that it sends, and reads those that name what was begun.
    let names = "a2a-version,authorization,content-type,mcp-protocol-version,mcp-session-id,x-stainless-lang";
    let asks = premises
        .ask(Method::OPTIONS, "/mcp", None)
        .header("origin", "https://app.example.com")
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", names);
    let reply = asks.send().await.expect("a reply");
    assert_eq!(reply.headers()["access-control-allow-headers"], names);
    assert!(reply.headers()["access-control-expose-headers"].to_str().expect("text").contains("mcp-session-id"));
    for other in [
        "https://app.example.com.evil.example",
        "http://app.example.com",
        "https://app.example.com:444",
        "https://APP.example.com",
        "https://example.com",
        "null",
        "*",
    ] {
        let reply = from(other).send().await.expect("a reply");
        assert_eq!(reply.status(), 403, "{other}");
        assert!(!reply.headers().keys().any(|name| name.as_str().starts_with("access-control")), "{other}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn forks_and_calls_that_are_executed_again_count_as_runs_that_begin() {
    let (premises, clock) = by_hand("runs_per_minute = 2").await;
    let acme = premises.key(ACME);
    let run = premises.begin(&acme, json!({ "agent_id": "says", "input": "x" })).await;
    ok(premises.get(&format!("/runs/{run}/wait"), &acme)).await;
    let fork = || premises.post(&format!("/runs/{run}/fork"), &acme, json!({ "at": 1 }));
    ok(fork()).await;
    let again = || premises.post(&format!("/runs/{run}/reexecute"), &acme, json!({}));
    for request in [fork(), again()] {
        assert_eq!(problem(request).await["type"], "urn:hotcell:problem:too-many-runs-a-minute");
    }
    assert_eq!(ok(premises.get("/runs", &acme)).await["runs"].as_array().map(Vec::len), Some(2));
    clock.advance(Duration::from_secs(61));
    ok(fork()).await;
    assert_eq!(problem(again()).await["type"], "urn:hotcell:problem:nothing-recorded");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_fork_and_of_a_copy_only_what_they_used_themselves_counts() {
    let (premises, _clock) = by_hand("[tenants.acme.month]\ntokens = 10").await;
    premises.model.answers(1_000);
    let acme = premises.key(ACME);
    ok(premises.post("/threads", &acme, json!({ "thread_id": "t" }))).await;
    let slow = json!({ "agent_id": "slow", "input": "x", "thread_id": "t" });
    let run = ok(premises.post("/runs/wait", &acme, slow)).await["run"]["run_id"].as_str().expect("a name").to_owned();
    comes_to(&premises, &acme, TOKENS).await;

    let entries = ok(premises.get(&format!("/runs/{run}/entries"), &acme)).await;
    let is_first = |entry: &&Value| entry["kind"] == "completed" && entry["place"] == "1";
    let at =
        entries["entries"].as_array().expect("entries").iter().find(is_first).expect("its first turn")["seq"].clone();
    let fork = json!({ "at": at, "allow_effects": ["models"] });
    let forked = ok(premises.post(&format!("/runs/{run}/fork"), &acme, fork.clone())).await;
    let forked = forked["run_id"].as_str().expect("a name");
    assert_eq!(ok(premises.get(&format!("/runs/{forked}/wait"), &acme)).await["run"]["standing"], "completed");
    // Of its two requests to the model one was made for the run.
    comes_to(&premises, &acme, TOKENS + TOKENS / 2).await;

    let copy = ok(premises.post("/threads/t/copy", &acme, json!(null))).await["thread_id"].clone();
    let copy = format!("/threads/{}/runs", copy.as_str().expect("an id"));
    let copied = ok(premises.get(&copy, &acme)).await[0]["run_id"].as_str().expect("a name").to_owned();
    ok(premises.ask(Method::DELETE, &format!("/runs/{copied}"), Some(&acme))).await;
    comes_to(&premises, &acme, TOKENS + TOKENS / 2).await;

    // When the month is used up, nothing of that kind begins.
    let another = ok(premises.post(&format!("/runs/{run}/fork"), &acme, fork.clone())).await;
    ok(premises.get(&format!("/runs/{}/wait", another["run_id"].as_str().expect("a name")), &acme)).await;
    let last = ok(premises.post(&format!("/runs/{run}/fork"), &acme, fork.clone())).await;
    ok(premises.get(&format!("/runs/{}/wait", last["run_id"].as_str().expect("a name")), &acme)).await;
    comes_to(&premises, &acme, 10).await;
    for (path, body) in [("fork", fork), ("reexecute", json!({}))] {
        let refused = problem(premises.post(&format!("/runs/{run}/{path}"), &acme, body)).await;
        assert_eq!(refused["type"], "urn:hotcell:problem:budget-used-up", "{path}");
    }
}
