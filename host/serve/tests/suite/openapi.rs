//! The document: it is complete, and every route says who may use it.

use serde_json::Value;

use crate::desk::{Desk, ECHO, ok, problem};

fn operations(document: &Value) -> Vec<(String, String, Value)> {
    let mut found = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            found.push((method.to_uppercase(), path.clone(), operation.clone()));
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_says_which_role_it_needs_and_few_need_none() {
    let desk = Desk::with(&[ECHO]).await;
    let document = ok(desk.get("/openapi.json")).await;
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    let mut open = Vec::new();
    for (method, path, operation) in operations(&document) {
        let security = operation["security"].as_array().unwrap_or_else(|| panic!("{method} {path} says nothing"));
        assert!(!security.is_empty(), "{method} {path}");
        for one in security {
            match one.as_object().unwrap().get("key") {
                None => open.push(path.clone()),
                Some(roles) => assert!(!roles.as_array().unwrap().is_empty(), "{method} {path}"),
            }
        }
    }
    open.sort();
    // Channels, callbacks and webhooks look at signatures or tokens in place of keys.
    assert_eq!(
        open,
        [
            "/.well-known/oauth-protected-resource",
            "/.well-known/oauth-protected-resource/mcp",
            "/.well-known/oauth-protected-resource/mcp/{agent_id}",
            "/callback/{agent}",
            "/callback/{agent}/{token}",
            "/channels/discord/{agent}/interactions",
            "/channels/slack/{agent}/events",
            "/channels/teams/{agent}/messages",
            "/channels/telegram/{agent}/webhook",
            "/channels/whatsapp/{agent}/webhook",
            "/channels/whatsapp/{agent}/webhook",
            "/docs",
            "/health",
            "/openapi.json",
            "/ready",
            "/webhook/{entry_point}",
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_shows_people_what_is_answered_and_runs_nothing() {
    let desk = Desk::with(&[ECHO]).await;
    let document = ok(desk.get("/openapi.json")).await;
    let reply = desk.get("/docs").send().await.unwrap();
    assert_eq!(reply.headers()["content-type"], "text/html; charset=utf-8");
    let page = reply.text().await.unwrap();
    for (method, path, _) in operations(&document) {
        assert!(page.contains(&format!("<code>{method} {path}</code>")), "{method} {path}");
    }
    assert!(!page.contains("<script") && !page.contains("src="));
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_that_is_described_is_there_and_refers_to_what_is_described() {
    let desk = Desk::with(&[ECHO]).await;
    let document = ok(desk.get("/openapi.json")).await;
    for (method, path, operation) in operations(&document) {
        let address = path.replace(['{', '}'], "");
        let request = desk.client.request(method.parse().unwrap(), format!("{}{address}", desk.url));
        let status = request.send().await.unwrap().status();
        assert_ne!(status, 405, "{method} {path}");
        let form = if ["OpenAI", "A2A"].contains(&operation["tags"][0].as_str().unwrap()) {
            "application/json"
        } else {
            "application/problem+json"
        };
        assert!(operation["responses"]["default"]["content"][form].is_object(), "{method} {path}");
        assert!(operation["summary"].as_str().is_some_and(|text| !text.is_empty()), "{method} {path}");
        assert!(operation["tags"].is_array(), "{method} {path}");
    }
    let text = document.to_string();
    for part in text.split("\"#/components/schemas/").skip(1) {
        let name = part.split('"').next().unwrap();
        assert!(document["components"]["schemas"][name].is_object(), "{name} is not described");
    }
    assert_eq!(document["components"]["securitySchemes"]["key"]["scheme"], "bearer");
    assert_eq!(problem(desk.get("/assistants")).await["status"], 404, "what is not built is not offered");
}
