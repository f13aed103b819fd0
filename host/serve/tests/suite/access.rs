//! Who may do what.

use std::time::{Duration, SystemTime};

use hotcell_serve::{Keys, Role};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::desk::{ASK, Desk, ECHO, SLOW, at_once, ok, problem, until};

fn keys(desk: &Desk) -> Keys {
    Keys::open(&desk.folder().join("runs.serve.db")).expect("the server's file")
}

/// A new key with these roles, as it is shown.
pub(crate) fn key(desk: &Desk, roles: &[Role]) -> String {
    keys(desk).add("test", None, roles, None).expect("made").reveal()
}

#[tokio::test(flavor = "multi_thread")]
async fn as_soon_as_there_is_a_key_every_request_needs_one() {
    let desk = Desk::with(&[ECHO]).await;
    let run = || desk.post("/runs/wait", json!({ "input": "x" }));
    ok(run()).await;
    // Clients of OpenAI always send a key, and before there is one, any will do.
    for any in ["not-needed", "sk-x.y.z", &format!("hck_{}_{:064x}", "0".repeat(12), 1)] {
        ok(run().bearer_auth(any)).await;
        ok(run().header("x-api-key", any)).await;
    }
    let token = key(&desk, &[Role::Run]);
    assert_eq!(problem(run().bearer_auth("not-needed")).await["status"], 401);
    let reply = run().send().await.unwrap();
    assert_eq!((reply.status().as_u16(), reply.headers()["www-authenticate"].to_str().unwrap()), (401, "Bearer"));
    assert_eq!(problem(run()).await["status"], 401);
    ok(run().bearer_auth(&token)).await;
    ok(run().header("x-api-key", &token)).await;
    for public in ["/health", "/ready", "/openapi.json"] {
        ok(desk.get(public)).await;
    }
    // Taking the last one back opens nothing.
    let id = keys(&desk).list().unwrap()[0].id.clone();
    assert!(keys(&desk).revoke(&id).unwrap() && !keys(&desk).revoke(&id).unwrap());
    for request in [run().bearer_auth(&token), run()] {
        assert_eq!(problem(request).await["status"], 401);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_key_that_counts_is_refused() {
    let desk = Desk::with(&[ECHO]).await;
    let token = key(&desk, &[Role::Run]);
    let past = SystemTime::now() - Duration::from_secs(1);
    let expired = keys(&desk).add("old", None, &[Role::Run], Some(past)).unwrap().reveal();
    let future = SystemTime::now() + Duration::from_secs(60 * 60);
    let later = keys(&desk).add("new", None, &[Role::Run], Some(future)).unwrap().reveal();
    let get = || desk.get("/runs");
    ok(get().bearer_auth(&later)).await;
    let (id, secret) = (token.split('_').nth(1).unwrap(), token.split('_').nth(2).unwrap());
    let other = later.split('_').nth(2).unwrap();
    for wrong in [
        expired,
        String::new(),
        "x".to_owned(),
        id.to_owned(),
        secret.to_owned(),
        format!("hck_{id}_{other}"),
        format!("hck_{}_{secret}", "0".repeat(12)),
        token.to_uppercase(),
        format!("{token}x"),
        format!("hck_{id}_"),
        format!("hck_' OR 1=1 --_{secret}"),
        "x".repeat(10_000),
    ] {
        assert_eq!(problem(get().bearer_auth(&wrong)).await["status"], 401, "{wrong}");
        assert_eq!(problem(get().header("x-api-key", &wrong)).await["status"], 401, "{wrong}");
    }
    for header in [format!("Basic {token}"), token.clone(), format!("Bearer{token}"), "Bearer".to_owned()] {
        assert_eq!(problem(get().header("authorization", header)).await["status"], 401);
    }
    let both = get().bearer_auth(&token).header("x-api-key", &later);
    assert_eq!(problem(both).await["status"], 401, "which of them is meant is not guessed");
    assert_eq!(problem(desk.get(&format!("/runs?key={token}"))).await["status"], 401, "an address ends up in logs");
}

/// A request to each route of the document, with what it needs.
async fn routes(desk: &Desk) -> Vec<(String, RequestBuilder, Vec<String>)> {
    let document = ok(desk.get("/openapi.json")).await;
    let mut all = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let address = path.replace(['{', '}'], "");
            let method: Method = method.to_uppercase().parse().unwrap();
            let request = desk.client.request(method.clone(), format!("{}{address}", desk.url)).json(&json!({}));
            let roles = |one: &Value| one["key"].as_array().cloned().unwrap_or_default();
            let needs = operation["security"].as_array().unwrap().iter().flat_map(roles);
            let needs = needs.map(|role| role.as_str().unwrap().to_owned()).collect();
            all.push((format!("{method} {path}"), request, needs));
        }
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn no_route_is_open_to_a_key_without_its_role() {
    let desk = Desk::with(&[ECHO]).await;
    let tokens: Vec<(Role, String)> = Role::ALL.into_iter().map(|role| (role, key(&desk, &[role]))).collect();
    let mut closed = 0;
    for (route, request, needs) in routes(&desk).await {
        if needs.is_empty() {
            continue;
        }
        let status = async |request: RequestBuilder| request.send().await.unwrap().status().as_u16();
        assert_eq!(status(request.try_clone().unwrap()).await, 401, "{route}");
        for (role, token) in &tokens {
            let status = status(request.try_clone().unwrap().bearer_auth(token)).await;
            let may = needs.iter().any(|needed| needed == role.as_str());
            assert_eq!(status == 403, !may, "{route} with {role:?}: {status}");
            assert_ne!(status, 401, "{route} with {role:?}");
            closed += u32::from(!may);
        }
    }
    assert!(closed > 20, "{closed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_too_often_waits_and_guessing_has_its_limit() {
    // A machine on which so many at once take a minute is slower than any that is used.
    let desk = Desk::set_up(&[ECHO], |settings| settings.requests_per_second = 1).await;
    let (one, other) = (key(&desk, &[Role::Run]), key(&desk, &[Role::Run]));
    let replies = at_once((0..60).map(|_| desk.get("/runs").bearer_auth(&one))).await;
    for reply in replies.iter().filter(|reply| reply.status() == 429) {
        assert!(reply.headers()["retry-after"].to_str().unwrap().parse::<u64>().unwrap() >= 1);
    }
    let statuses: Vec<u16> = replies.iter().map(|reply| reply.status().as_u16()).collect();
    assert!(statuses.contains(&200) && statuses.contains(&429), "{statuses:?}");
    ok(desk.get("/runs").bearer_auth(&other)).await;
    let guess = |number: u64| desk.get("/runs").bearer_auth(format!("hck_{}_{number:064x}", "0".repeat(12)));
    let replies = at_once((0..60).map(guess)).await;
    let statuses: Vec<u16> = replies.iter().map(|reply| reply.status().as_u16()).collect();
    assert!(statuses.contains(&401) && statuses.contains(&429), "{statuses:?}");
    ok(desk.get("/runs").bearer_auth(&other)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_done_is_written_down_and_no_secret_with_it() {
    let desk = Desk::with(&[ASK]).await;
    let token = key(&desk, &[Role::Run, Role::Answer]);
    let id = token.split('_').nth(1).unwrap();
    let begun = ok(desk.post("/runs/wait", json!({ "input": {} })).bearer_auth(&token)).await;
    let run = begun["run"]["run_id"].as_str().unwrap();
    let answer = json!({ "answer": "my secret wish" });
    ok(desk.post(&format!("/runs/{run}/answers"), answer).bearer_auth(&token)).await;
    ok(desk.get("/runs").bearer_auth(&token)).await;
    problem(desk.delete(&format!("/runs/{run}")).bearer_auth(&token)).await;
    problem(desk.get("/runs").bearer_auth("hck_wrong_key")).await;
    let text = std::fs::read_to_string(desk.folder().join("runs.serve.audit.jsonl")).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told: Vec<(String, String, u64)> = lines
        .iter()
        .map(|line| {
            let what = format!("{} {}", line["method"].as_str().unwrap(), line["path"].as_str().unwrap());
            (line["key"].as_str().unwrap_or("nobody").to_owned(), what, line["status"].as_u64().unwrap())
        })
        .collect();
    let who = |who: &str, what: String, status| (who.to_owned(), what, status);
    assert_eq!(
        told,
        [
            who(id, "POST /runs/wait".to_owned(), 200),
            who(id, format!("POST /runs/{run}/answers"), 200),
            who(id, format!("DELETE /runs/{run}"), 403),
            who("nobody", "GET /runs".to_owned(), 401),
        ]
    );
    assert!(lines.iter().all(|line| line["at"].as_str().is_some_and(|at| at.ends_with('Z'))));
    assert!(!text.contains("secret") && !text.contains(token.split('_').nth(2).unwrap()));
    // Of a key only a digest is kept.
    for file in ["runs.serve.db", "runs.serve.db-wal", "runs.db", "runs.db-wal"] {
        let bytes = std::fs::read(desk.folder().join(file)).unwrap_or_default();
        let secret = token.split('_').nth(2).unwrap().as_bytes();
        assert!(!bytes.windows(secret.len()).any(|window| window == secret), "{file}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_done_is_written_down_also_if_whoever_asked_for_it_is_gone() {
    let desk = Desk::with(&[SLOW]).await;
    let asking = tokio::spawn(desk.post("/runs/wait", json!({ "agent_id": "slow", "input": "x" })).send());
    desk.model.was_asked(1).await;
    asking.abort();
    let file = desk.folder().join("runs.serve.audit.jsonl");
    let told = || std::fs::read_to_string(&file).unwrap_or_default();
    until("it is written down", || told().ends_with('\n')).await;
    let line: Value = serde_json::from_str(told().lines().next().unwrap()).unwrap();
    assert_eq!((&line["path"], &line["status"]), (&json!("/runs/wait"), &json!(499)), "{line}");
}
