//! What clients should not send, and what they should not get.

use serde_json::json;

use crate::desk::{Desk, ECHO, ok, problem};

#[tokio::test(flavor = "multi_thread")]
async fn everything_that_is_not_answered_is_a_problem() {
    let desk = Desk::with(&[ECHO]).await;
    assert_eq!(problem(desk.get("/nothing")).await["status"], 404);
    assert_eq!(problem(desk.get("/")).await["status"], 404);
    let method = desk.delete("/health").send().await.unwrap();
    assert!(method.headers().contains_key("allow"));
    assert_eq!(problem(desk.delete("/health")).await["status"], 405);
    let run = format!("{}/runs", desk.url);
    let text = || desk.client.post(&run).body(r#"{"input":"x"}"#);
    assert_eq!(problem(text()).await["status"], 415);
    assert_eq!(problem(text().header("content-type", "text/plain")).await["status"], 415);
    assert_eq!(problem(text().header("content-type", "application/x-www-form-urlencoded")).await["status"], 415);
    for header in ["application/json; charset=utf-8", "application/vnd.x+json", "Application/JSON"] {
        ok(text().header("content-type", header)).await;
    }
    for body in ["", "{", "{\"input\":}", "\u{0}", "[1,2", "nul", &"[".repeat(100_000), "{\"input\":\"\\ud800\"}"] {
        let refused =
            problem(desk.client.post(&run).header("content-type", "application/json").body(body.to_owned())).await;
        assert_eq!(refused["status"], 400, "{refused}");
    }
    for (body, said) in [
        (r#"{"input":"x","input":"y"}"#, "is there twice"),
        (r#"{"input":{"a":[{"b":1,"b":1}]}}"#, "is there twice"),
        (r#"{"input":{"$serde_json::private::RawValue":"[1]"}}"#, "cannot be the name of a member"),
    ] {
        let refused = problem(desk.client.post(&run).header("content-type", "application/json").body(body)).await;
        assert!(refused["status"] == 400 && refused.to_string().contains(said), "{refused}");
        let mcp = format!("{}/mcp", desk.url);
        let refused = problem(desk.client.post(mcp).header("content-type", "application/json").body(body)).await;
        assert!(refused["status"] == 400 && refused.to_string().contains(said), "{refused}");
    }
    let bytes = desk.client.post(&run).header("content-type", "application/json").body(vec![0xff, 0xfe, b'{', b'}']);
    assert_eq!(problem(bytes).await["status"], 400);
    for body in [
        json!([]),
        json!("x"),
        json!({ "agent_id": 7 }),
        json!({ "unknown": 1 }),
        json!({ "metadata": "x" }),
        json!({ "on_disconnect": "explode" }),
        json!({ "messages": "x" }),
        json!({ "thread_id": ["t"] }),
    ] {
        let refused = problem(desk.post("/runs", body.clone())).await;
        assert_eq!(refused["status"], 422, "{body}: {refused}");
    }
    assert_eq!(problem(desk.post("/runs", json!({ "agent_id": "nobody" }))).await["status"], 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_is_read_to_the_letter() {
    let desk = Desk::with(&[ECHO]).await;
    for query in [
        "limit=0",
        "limit=1001",
        "limit=-1",
        "limit=x",
        "limit=1&limit=2",
        "limit=99999999999999999999",
        "unknown=1",
        "status=finished",
    ] {
        let refused = problem(desk.get(&format!("/runs?{query}"))).await;
        assert_eq!(refused["status"], 400, "{query}: {refused}");
    }
    assert_eq!(problem(desk.get("/runs?agent_id=nobody")).await["status"], 404);
    // Nor is one overlooked where there is nothing to ask.
    for path in ["/agents/echo?limit=1", "/agents/echo/schemas?x", "/threads/none?subgraphs=true"] {
        let refused = problem(desk.get(path)).await;
        assert_eq!(refused["status"], 400, "{path}: {refused}");
    }
    let refused = problem(desk.post("/runs/wait?stream=true", json!({ "input": "x" }))).await;
    assert_eq!(refused["detail"], "unknown query parameter `stream`");
    assert_eq!(ok(desk.get("/runs")).await["runs"], json!([]), "nothing was begun");
    ok(desk.get("/health?from=probe")).await;
    for after in ["", "x", "%00", "1-2-3", "'%3B%20drop"] {
        for path in ["/runs", "/inbox"] {
            assert_eq!(problem(desk.get(&format!("{path}?after={after}"))).await["status"], 404, "{path} {after}");
        }
    }
    for path in ["/runs/search", "/threads/search", "/agents/search", "/threads"] {
        assert_eq!(
            problem(desk.post(path, json!([null, null]))).await["status"],
            422,
            "a list is not an object: {path}"
        );
    }
    for (path, status) in [("/runs/search", 422), ("/threads/search", 422), ("/agents/search", 422)] {
        for body in [
            json!({ "limit": 0 }),
            json!({ "limit": 1001 }),
            json!({ "limit": -1 }),
            json!({ "offset": -1 }),
            json!({ "offset": 10001 }),
            json!({ "limit": 1.5 }),
            json!({ "limit": 1e300 }),
            json!({ "x": 1 }),
        ] {
            assert_eq!(problem(desk.post(path, body.clone())).await["status"], status, "{path} {body}");
        }
    }
    assert_eq!(ok(desk.get("/runs?thread_id=none")).await["runs"], json!([]));
    assert_eq!(ok(desk.get("/runs?text=%22%27*%29OR")).await["runs"], json!([]), "words are words");
}

#[tokio::test(flavor = "multi_thread")]
async fn other_names_and_other_pages_are_not_answered() {
    let desk = Desk::set_up(&[ECHO], |settings| settings.hosts = vec!["hotcell.example.org".to_owned()]).await;
    for host in ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80"] {
        let refused = problem(desk.get("/agents/echo").header("host", host)).await;
        assert_eq!(refused["status"], 421, "{host}");
        assert_eq!(problem(desk.get("/health").header("host", host)).await["status"], 421, "{host}");
    }
    for host in ["localhost", "localhost:1", "127.0.0.1", "hotcell.example.org"] {
        ok(desk.get("/agents/echo").header("host", host)).await;
    }
    // Another server of this machine may have a page of anybody's.
    for origin in [
        "http://evil.example",
        "null",
        "https://evil.example:18820",
        "file://",
        "",
        "http://localhost:1",
        "http://127.0.0.1",
    ] {
        let refused = problem(desk.post("/runs", json!({ "input": "x" })).header("origin", origin)).await;
        assert_eq!(refused["status"], 403, "{origin}");
    }
    ok(desk.post("/runs", json!({ "input": "x" })).header("origin", &desk.url)).await;
    // A page elsewhere is told nothing of what it may do.
    let asked = desk.client.request(reqwest::Method::OPTIONS, format!("{}/runs", desk.url));
    let reply = asked.header("access-control-request-method", "POST").send().await.unwrap();
    assert_eq!(reply.status(), 405);
    assert!(!reply.headers().keys().any(|name| name.as_str().starts_with("access-control")));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_reply_has_the_headers_that_keep_browsers_from_guessing() {
    let desk = Desk::with(&[ECHO]).await;
    for path in ["/health", "/nothing", "/runs", "/openapi.json"] {
        let reply = desk.get(path).send().await.unwrap();
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("x-frame-options", "DENY"),
            ("cache-control", "no-store"),
            ("referrer-policy", "no-referrer"),
            ("content-security-policy", "default-src 'none'; frame-ancestors 'none'"),
            ("cross-origin-resource-policy", "same-origin"),
        ] {
            assert_eq!(reply.headers()[name], value, "{path}");
        }
    }
}
