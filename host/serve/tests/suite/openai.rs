//! The addresses of OpenAI's API, and its client itself where `clients/install.sh` has installed it.

use hotcell_serve::Role;
use serde_json::{Value, json};

use crate::access::key;
use crate::clients::drive;
use crate::desk::{ASK, COUNT, Desk, ECHO, Events, SLOW, ok};
use crate::people::TWO;

/// Fails.
const FAIL: (&str, &str) = (
    "fail/agent.yaml",
    "manifest_version: 1\nagents:\n  fail:\n    state: {fields: [{name: messages, type: list}, {name: n, type: int, default: 0}]}\n    graph:\n      entry_point: fail\n      nodes:\n        - {name: fail, type: set_state, args: {values: {n: 1 / state.n}}}\n      edges: []\n",
);

fn user(text: &str) -> Value {
    json!({ "role": "user", "content": text })
}

fn assistant(text: &str) -> Value {
    json!({ "role": "assistant", "content": text })
}

fn chat(desk: &Desk, model: &str, messages: &[Value]) -> reqwest::RequestBuilder {
    desk.post("/v1/chat/completions", json!({ "model": model, "messages": messages }))
}

async fn said(desk: &Desk, model: &str, messages: &[Value]) -> String {
    let reply = ok(chat(desk, model, messages)).await;
    reply["choices"][0]["message"]["content"].as_str().expect("a text").to_owned()
}

/// The error of a reply, in OpenAI's form.
async fn refused(request: reqwest::RequestBuilder) -> (u16, Value) {
    let reply = request.send().await.expect("a reply");
    let (status, kind) = (reply.status().as_u16(), reply.headers()["content-type"].to_str().expect("text").to_owned());
    assert_eq!(kind, "application/json");
    let again = reply.headers()["x-should-retry"] == "true";
    let body: Value = reply.json().await.expect("JSON");
    assert!(
        status >= 400 && body["error"]["message"].as_str().is_some_and(|text| !text.is_empty()),
        "{status}: {body}"
    );
    assert_eq!(again, matches!(status, 429 | 503), "{status}: {body}");
    (status, body["error"].clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_openai_client_drives_models_completions_and_responses() {
    let desk = Desk::with(&[ASK, COUNT, ECHO, SLOW]).await;
    desk.model.answers(4);
    // This client always shows a key.
    let token = key(&desk, &[Role::Run, Role::Answer, Role::Operate]);
    drive("openai_client.py", &[&desk.url, &token]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn conversations_that_are_the_same_word_by_word_each_have_a_run() {
    let desk = Desk::with(&[ASK]).await;
    let begun = [user("hi")];
    for _ in 0..3 {
        assert_eq!(said(&desk, "ask", &begun).await, "Who asks?");
    }
    for name in ["Ada", "Bo", "Eve"] {
        let messages = [user("hi"), assistant("Who asks?"), user(name)];
        assert_eq!(said(&desk, "ask", &messages).await, format!("hello {name}"));
    }
    // All of them are answered.
    let messages = [user("hi"), assistant("Who asks?"), user("Dan")];
    let (status, error) = refused(chat(&desk, "ask", &messages)).await;
    assert_eq!((status, error["code"].clone()), (409, json!("question_closed")));
    assert_eq!(ok(desk.get("/runs")).await["runs"].as_array().expect("runs").len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_goes_on_for_whoever_had_it_and_for_nobody_else() {
    let desk = Desk::with(&[ASK, COUNT, ECHO]).await;
    let (one, other) = (key(&desk, &[Role::Run, Role::Answer]), key(&desk, &[Role::Run, Role::Answer]));
    ok(chat(&desk, "ask", &[user("hi")]).bearer_auth(&one)).await;
    let messages = [user("hi"), assistant("Who asks?"), user("Ada")];
    for (model, token) in [("ask", &other), ("count", &one), ("echo", &one)] {
        let (status, error) = refused(chat(&desk, model, &messages).bearer_auth(token)).await;
        assert_eq!((status, error["code"].clone()), (409, json!("unknown_conversation")), "{model}");
    }
    let reply = ok(chat(&desk, "ask", &messages).bearer_auth(&one)).await;
    assert_eq!(reply["choices"][0]["message"]["content"], "hello Ada");
    // What nobody said here is not gone on with.
    let made_up = [user("hi"), assistant("The password is 7"), user("Which?")];
    assert_eq!(refused(chat(&desk, "echo", &made_up).bearer_auth(&one)).await.0, 409);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_only_begin_runs_does_not_answer_what_they_ask() {
    let desk = Desk::with(&[ASK]).await;
    let token = key(&desk, &[Role::Run]);
    ok(chat(&desk, "ask", &[user("hi")]).bearer_auth(&token)).await;
    let messages = [user("hi"), assistant("Who asks?"), user("Ada")];
    let (status, error) = refused(chat(&desk, "ask", &messages).bearer_auth(&token)).await;
    assert_eq!((status, error["type"].clone()), (403, json!("permission_error")));
    let begun = ok(desk.post("/v1/responses", json!({ "model": "ask", "input": "hi" })).bearer_auth(&token)).await;
    let answer = json!({ "input": "Ada", "previous_response_id": begun["id"] });
    assert_eq!(refused(desk.post("/v1/responses", answer).bearer_auth(&token)).await.0, 403);
    assert_eq!(refused(desk.get("/v1/models")).await.0, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn several_questions_are_asked_one_after_the_other() {
    let desk = Desk::with(&[TWO]).await;
    let mut messages = vec![user("x")];
    let mut asked = Vec::new();
    for _ in 0..3 {
        let question = said(&desk, "two", &messages).await;
        messages.extend([assistant(&question), user("yes")]);
        asked.push(question);
    }
    assert!(asked.iter().collect::<std::collections::BTreeSet<_>>().len() == 3, "{asked:?}");
    said(&desk, "two", &messages).await;
    let runs = ok(desk.get("/runs")).await;
    assert_eq!((runs["runs"].as_array().expect("runs").len(), &runs["runs"][0]["standing"]), (1, &json!("completed")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_outlives_the_server() {
    let desk = Desk::with(&[ASK, COUNT]).await;
    said(&desk, "ask", &[user("hi")]).await;
    let begun = ok(desk.post("/v1/responses", json!({ "model": "count", "input": "more" }))).await;
    let desk = desk.again().await;
    assert_eq!(said(&desk, "ask", &[user("hi"), assistant("Who asks?"), user("Ada")]).await, "hello Ada");
    let next = json!({ "input": "more", "previous_response_id": begun["id"] });
    assert_eq!(ok(desk.post("/v1/responses", next)).await["output"][0]["content"][0]["text"], "2");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_run_is_an_error_and_is_not_begun_again_by_clients() {
    let desk = Desk::with(&[FAIL]).await;
    let (status, error) = refused(chat(&desk, "fail", &[user("x")])).await;
    assert_eq!((status, error["code"].clone()), (422, json!("run_failed")));
    let failed = ok(desk.post("/v1/responses", json!({ "model": "fail", "input": "x" }))).await;
    assert_eq!((&failed["status"], &failed["error"]["code"]), (&json!("failed"), &json!("server_error")));
    let body = json!({ "model": "fail", "messages": [user("x")], "stream": true });
    let text = desk.post("/v1/chat/completions", body).send().await.expect("a reply").text().await.expect("text");
    assert!(text.contains("\"code\":\"run_failed\"") && !text.contains("[DONE]"), "{text}");
    let events = Events::of(desk.post("/v1/responses", json!({ "model": "fail", "input": "x", "stream": true })));
    let events = events.await.all().await;
    assert_eq!(events.last().expect("an event").event, "response.failed");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_conversation_is_refused_and_begins_nothing() {
    let desk = Desk::with(&[ECHO]).await;
    let image = json!({ "role": "user", "content": [{ "type": "image_url", "image_url": { "url": "x" } }] });
    let call = json!({ "role": "assistant", "content": null, "tool_calls": [{ "id": "x" }] });
    for messages in [
        json!([]),
        json!("hi"),
        json!([7]),
        json!([assistant("a")]),
        json!([{ "role": "user" }]),
        json!([{ "role": "tool", "content": "x" }]),
        json!([{ "role": "system", "content": "x" }, user("x")]),
        json!([user("x"), call, user("x")]),
        json!([image]),
        json!([{ "role": "user", "content": "x", "name": "bo" }]),
    ] {
        let body = json!({ "model": "echo", "messages": messages });
        let (status, error) = refused(desk.post("/v1/chat/completions", body)).await;
        assert_eq!((status, error["type"].clone()), (400, json!("invalid_request_error")), "{messages}");
    }
    for (name, value) in [
        ("anything", json!(1)),
        ("instructions", json!("be kind")),
        ("tools", json!([{ "type": "web_search" }])),
        ("store", json!(false)),
        ("conversation", json!("conv_1")),
        ("text", json!({ "format": { "type": "json_object" } })),
    ] {
        let mut body = json!({ "model": "echo", "input": "x" });
        body[name] = value;
        let (status, error) = refused(desk.post("/v1/responses", body)).await;
        assert_eq!((status, error["param"].clone()), (400, json!(name)));
    }
    for id in ["resp_nobody_0", "resp_", "x", "resp_nobody_18446744073709551615"] {
        assert_eq!(refused(desk.get(&format!("/v1/responses/{id}"))).await.0, 404);
        let body = json!({ "model": "echo", "input": "x", "previous_response_id": id });
        assert_eq!(refused(desk.post("/v1/responses", body)).await.0, 404);
    }
    assert_eq!(refused(desk.get("/v1/nothing")).await.0, 404);
    assert_eq!(refused(desk.get("/v1/chat/completions")).await.0, 405);
    let broken = desk.client.post(format!("{}/v1/responses", desk.url)).header("content-type", "application/json");
    assert_eq!(refused(broken.body("{")).await.0, 400);
    assert_eq!(ok(desk.get("/runs")).await["runs"], json!([]), "nothing was begun");
    // What clients send for nothing is taken.
    let mut message = user("x");
    message["name"] = Value::Null;
    let parts = json!({ "role": "assistant", "content": "", "tool_calls": [] });
    assert_eq!(said(&desk, "echo", &[message, parts, user("y")]).await, "you said x\n\ny");
}
