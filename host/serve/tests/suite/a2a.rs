//! Agent2Agent, and the referee and the client of others where `clients/install.sh` has installed them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::extract::State;
use axum::routing::post;
use axum::{Json, Router};
use hotcell_runtime::CancellationToken;
use hotcell_serve::Role;
use http::HeaderMap;
use reqwest::RequestBuilder;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::access::key;
use crate::clients::{Port, drive};
use crate::desk::{ASK, COUNT, Desk, ECHO, Events, SLOW, ok, opened, until, until_async};

/// A request in a version, as JSON-RPC.
fn rpc(desk: &Desk, agent: &str, version: &str, method: &str, params: Value) -> RequestBuilder {
    let body = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
    desk.post(&format!("/a2a/{agent}"), body).header("A2A-Version", version)
}

async fn result(request: RequestBuilder) -> Value {
    let reply = ok(request).await;
    assert!(reply["error"].is_null() && reply["id"] == 7 && reply["jsonrpc"] == "2.0", "{reply}");
    reply["result"].clone()
}

/// The code and the message of a request that is refused.
async fn refused(request: RequestBuilder) -> (i64, String) {
    let reply = ok(request).await;
    let error = &reply["error"];
    assert_eq!(error["data"][0]["domain"], "a2a-protocol.org", "{reply}");
    (error["code"].as_i64().expect("a code"), error["message"].as_str().expect("a text").to_owned())
}

fn message(text: &str) -> Value {
    json!({ "message": { "messageId": "m1", "role": "ROLE_USER", "parts": [{ "text": text }] } })
}

#[tokio::test(flavor = "multi_thread")]
async fn a2a_proof_and_a2a_sdk_drive_both_bindings_and_both_versions() {
    let port = Port::reserve();
    let grants = format!("[grants.agent]\nhttp = [\"http://127.0.0.1:{}\"]\n", port.number());
    let desk = Desk::with(&[ASK, ("ask/hotcell.toml", &grants), COUNT]).await;
    drive("a2a_client.py", &[&desk.url, &port.number().to_string()]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_card_says_where_the_agent_is_and_how_it_is_talked_to() {
    let desk = Desk::with(&[ECHO]).await;
    let card = ok(desk.get("/.well-known/agent-card.json")).await;
    assert_eq!(card, ok(desk.get("/a2a/echo/.well-known/agent-card.json")).await);
    let url = format!("{}/a2a/echo", desk.url);
    let found: Vec<(&Value, &Value)> = card["supportedInterfaces"]
        .as_array()
        .expect("interfaces")
        .iter()
        .map(|one| (&one["protocolBinding"], &one["protocolVersion"]))
        .collect();
    let text = |text: &str| Value::from(text);
    let (rpc, http, one, legacy) = (text("JSONRPC"), text("HTTP+JSON"), text("1.0"), text("0.3"));
    assert_eq!(found, [(&rpc, &one), (&http, &one), (&rpc, &legacy)]);
    assert_eq!((&card["url"], &card["description"]), (&json!(url), &json!("Repeats what it is told")));
    assert!(card["securitySchemes"].is_null(), "nobody needs a key");
    let token = key(&desk, &[Role::Run]);
    assert_eq!(desk.get("/.well-known/agent-card.json").send().await.expect("a reply").status(), 401);
    let card = ok(desk.get("/.well-known/agent-card.json").bearer_auth(&token)).await;
    assert_eq!(card["securitySchemes"]["key"]["httpAuthSecurityScheme"]["scheme"], "bearer");

    let desk = Desk::with(&[ECHO, ASK]).await;
    let several = desk.get("/.well-known/agent-card.json").send().await.expect("a reply");
    let kind = several.headers()["content-type"].to_str().expect("text");
    assert_eq!((several.status().as_u16(), kind), (404, "application/json"));
    let body: Value = several.json().await.expect("JSON");
    assert_eq!(body["error"]["status"], "NOT_FOUND", "{body}");
    assert_eq!(ok(desk.get("/a2a/ask/.well-known/agent-card.json")).await["name"], "ask");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_done_is_an_error_of_the_protocol() {
    let desk = Desk::with(&[ECHO, ASK]).await;
    let with = |change: &dyn Fn(&mut Value)| {
        let mut params = message("x");
        change(&mut params);
        params
    };
    for (params, code, word) in [
        (with(&|params| params["message"]["role"] = json!("ROLE_AGENT")), -32602, "role"),
        (with(&|params| params["message"]["parts"] = json!([])), -32602, "parts"),
        (with(&|params| params["message"]["messageId"] = json!("")), -32602, "messageId"),
        (with(&|params| params["message"]["anything"] = json!(1)), -32602, "anything"),
        (with(&|params| params["tenant"] = json!("t")), -32602, "tenant"),
        (with(&|params| params["message"]["contextId"] = json!("../x")), -32602, "thread"),
        (with(&|params| params["message"]["parts"] = json!([{ "url": "file:///etc/passwd" }])), -32005, "file"),
        (with(&|params| params["message"]["parts"] = json!([{ "raw": "AAAA" }])), -32005, "file"),
        (with(&|params| params["message"]["parts"] = json!([{ "text": "x", "data": 1 }])), -32602, "either"),
        (
            with(&|params| params["configuration"] = json!({ "acceptedOutputModes": ["image/png"] })),
            -32005,
            "text/plain",
        ),
        (with(&|params| params["message"]["taskId"] = json!("nobody")), -32001, "nobody"),
        (
            with(&|params| {
                params["configuration"] = json!({ "taskPushNotificationConfig": { "url": "http://10.0.0.1/" } })
            }),
            -32602,
            "[grants.agent]",
        ),
        (json!({}), -32602, "message"),
        (json!([]), -32602, ""),
    ] {
        let (found, detail) = refused(rpc(&desk, "echo", "1.0", "SendMessage", params.clone())).await;
        assert_eq!(found, code, "{params}: {detail}");
        assert!(detail.contains(word), "{params}: {detail}");
    }
    for (version, method, code) in [
        ("1.0", "Nothing", -32601),
        ("1.0", "message/send", -32009),
        ("0.3", "SendMessage", -32009),
        ("2.0", "SendMessage", -32009),
        ("1.0", "GetExtendedAgentCard", -32007),
        ("1.0", "GetTask", -32602),
    ] {
        assert_eq!(refused(rpc(&desk, "echo", version, method, json!({}))).await.0, code, "{version} {method}");
    }
    assert_eq!(refused(rpc(&desk, "nobody", "1.0", "SendMessage", message("x"))).await.0, -32600);
    for (body, code) in
        [("{", -32700), ("[]", -32600), ("{}", -32600), (r#"{"jsonrpc":"2.0","method":"GetTask"}"#, -32600)]
    {
        let request = desk.client.post(format!("{}/a2a/echo", desk.url)).header("content-type", "application/json");
        assert_eq!(refused(request.body(body)).await.0, code, "{body}");
    }
    let named = desk.post("/a2a/echo", json!({ "jsonrpc": "2.0", "id": { "a": [1] }, "method": "GetTask" }));
    let reply = ok(named).await;
    assert_eq!((&reply["id"], &reply["error"]["code"]), (&Value::Null, &json!(-32600)), "{reply}");
    // The same over HTTP with JSON.
    let send = desk.post("/a2a/echo/message:send", message("x"));
    let reply = send.send().await.expect("a reply");
    assert_eq!(reply.status(), 400);
    let body: Value = reply.json().await.expect("JSON");
    assert_eq!(
        (&body["error"]["code"], &body["error"]["details"][0]["reason"]),
        (&json!(400), &json!("VERSION_NOT_SUPPORTED"))
    );
    let get = desk.get("/a2a/echo/tasks/nobody").header("A2A-Version", "1.0").send().await.expect("a reply");
    assert_eq!(get.status(), 404);
    let body: Value = get.json().await.expect("JSON");
    assert_eq!(
        (&body["error"]["status"], &body["error"]["details"][0]["reason"]),
        (&json!("NOT_FOUND"), &json!("TASK_NOT_FOUND"))
    );
    assert_eq!(ok(desk.get("/runs")).await["runs"], json!([]), "nothing was begun");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_only_begin_tasks_does_not_answer_what_they_ask() {
    let desk = Desk::with(&[ASK]).await;
    let (token, other) = (key(&desk, &[Role::Run]), key(&desk, &[Role::Run, Role::Answer]));
    let task = result(rpc(&desk, "ask", "1.0", "SendMessage", message("hi")).bearer_auth(&token)).await["task"].clone();
    assert_eq!(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    let mut answer = message("Ada");
    answer["message"]["taskId"] = task["id"].clone();
    let refused = refused(rpc(&desk, "ask", "1.0", "SendMessage", answer.clone()).bearer_auth(&token)).await;
    assert!(refused.1.contains("answer"), "{refused:?}");
    let done = result(rpc(&desk, "ask", "1.0", "SendMessage", answer).bearer_auth(&other)).await;
    assert_eq!(done["task"]["artifacts"][0]["parts"][0]["text"], "hello Ada");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_of_version_0_3_is_written_as_that_version_has_it() {
    let desk = Desk::with(&[SLOW]).await;
    let params = json!({ "message": {
        "kind": "message", "messageId": "m", "role": "user", "parts": [{ "kind": "text", "text": "x" }],
    } });
    let mut stream = Events::of(rpc(&desk, "slow", "0.3", "message/stream", params)).await;
    let mut events = vec![stream.next().await.expect("the task")];
    desk.model.answers(2);
    events.extend(stream.all().await);
    let told: Vec<&Value> = events.iter().map(|event| &event.data["result"]).collect();
    let kinds: Vec<&str> = told.iter().map(|one| one["kind"].as_str().expect("a kind")).collect();
    assert_eq!(kinds, ["task", "artifact-update", "status-update"]);
    assert_eq!((&told[0]["status"]["state"], &told[2]["status"]["state"]), (&json!("working"), &json!("completed")));
    assert_eq!(told[1]["artifact"]["parts"][0], json!({ "kind": "text", "text": "reply1 reply2" }));
    assert_eq!(told[2]["final"], true);
    assert_eq!(told[0]["history"][0]["parts"][0], json!({ "kind": "text", "text": "x" }));
}

/// What was posted: the token that came with it, and the body.
type Post = (String, Value);

async fn take(State(posts): State<UnboundedSender<Post>>, headers: HeaderMap, Json(body): Json<Value>) -> Json<Value> {
    let token = headers.get("x-a2a-notification-token").and_then(|token| token.to_str().ok()).unwrap_or_default();
    let _ = posts.send((token.to_owned(), body));
    Json(json!({ "ok": true }))
}

/// Hears everything, and says nothing.
async fn never(State(tries): State<Arc<AtomicUsize>>) {
    tries.fetch_add(1, Ordering::Relaxed);
    std::future::pending().await
}

/// Somebody who is told, at an address.
async fn told() -> (u16, UnboundedReceiver<Post>) {
    let (sender, posts) = unbounded_channel();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let router = Router::new().route("/told", post(take)).with_state(sender);
    tokio::spawn(hotcell_http::serve(listener, router, hotcell_http::Limits::default(), CancellationToken::new()));
    (port, posts)
}

async fn next(posts: &mut UnboundedReceiver<Post>) -> Value {
    let post = tokio::time::timeout(Duration::from_secs(60), posts.recv()).await.expect("no hang");
    let (token, body) = post.expect("a post");
    assert_eq!(token, "t0ken");
    body
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_is_told_where_a_task_rests_whatever_becomes_of_the_server() {
    let (port, mut posts) = told().await;
    let grants = format!("[grants.agent]\nhttp = [\"http://127.0.0.1:{port}\"]\n");
    let mut desk = Desk::with(&[ASK, ("ask/hotcell.toml", &grants)]).await;
    let mut params = message("hi");
    let url = format!("http://127.0.0.1:{port}/told");
    params["configuration"] =
        json!({ "returnImmediately": true, "taskPushNotificationConfig": { "id": "a", "url": url, "token": "t0ken" } });
    let task = result(rpc(&desk, "ask", "1.0", "SendMessage", params)).await["task"].clone();
    let id = task["id"].as_str().expect("an id").to_owned();
    let update = next(&mut posts).await;
    assert_eq!(update["statusUpdate"]["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    assert_eq!(
        (&update["statusUpdate"]["taskId"], &update["statusUpdate"]["contextId"]),
        (&task["id"], &task["contextId"])
    );
    let shown = result(rpc(&desk, "ask", "1.0", "ListTaskPushNotificationConfigs", json!({ "taskId": id }))).await;
    assert_eq!(
        shown["configs"],
        json!([{ "id": "a", "url": url, "taskId": id }]),
        "what proves who posts is not shown"
    );

    let file = opened(&desk.folder().join("runs.serve.db"));
    let noted = || file.query_row("SELECT told FROM a2a_push", [], |row| row.get::<_, i64>(0)).expect("read");
    until("it is noted what was told", || noted() > 0).await;
    desk.stop().await;
    // As if it had ended before it could note that, and somebody answered before the next one began.
    assert_eq!(file.execute("UPDATE a2a_push SET told = 0", []).expect("forgotten"), 1);
    drop(file);
    desk.host().answer(&id, None, "Ada").await.expect("answered");
    let desk = desk.again().await;
    assert_eq!(next(&mut posts).await["statusUpdate"]["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    let artifact = next(&mut posts).await;
    assert_eq!(artifact["artifactUpdate"]["artifact"]["parts"][0]["text"], "hello Ada");
    assert_eq!(next(&mut posts).await["statusUpdate"]["status"]["state"], "TASK_STATE_COMPLETED");
    let forgotten = async || {
        let shown = result(rpc(&desk, "ask", "1.0", "ListTaskPushNotificationConfigs", json!({ "taskId": id }))).await;
        shown["configs"] == json!([])
    };
    until_async("the address is forgotten", forgotten).await;
    assert!(posts.try_recv().is_err(), "nothing more was told");
}

#[tokio::test(flavor = "multi_thread")]
async fn so_many_addresses_of_a_task_and_no_more() {
    let (port, _posts) = told().await;
    let grants = format!("[grants.agent]\nhttp = [\"http://127.0.0.1:{port}\"]\n");
    let desk = Desk::with(&[ASK, ("ask/hotcell.toml", &grants)]).await;
    let task = result(rpc(&desk, "ask", "1.0", "SendMessage", message("hi"))).await["task"].clone();
    let set = |id: usize| {
        let config =
            json!({ "taskId": task["id"], "id": id.to_string(), "url": format!("http://127.0.0.1:{port}/told") });
        rpc(&desk, "ask", "1.0", "CreateTaskPushNotificationConfig", config)
    };
    for id in 0..10 {
        result(set(id)).await;
    }
    assert_eq!(refused(set(10)).await.0, -32004);
    // Nor together with an answer, which is not given then. One in the place of another is no further one.
    let mut answer = message("Ada");
    answer["message"]["taskId"] = task["id"].clone();
    answer["configuration"] = json!({
        "taskPushNotificationConfig": { "id": "11", "url": format!("http://127.0.0.1:{port}/told") },
    });
    assert_eq!(refused(rpc(&desk, "ask", "1.0", "SendMessage", answer)).await.0, -32004);
    let asks = result(rpc(&desk, "ask", "1.0", "GetTask", json!({ "id": task["id"] }))).await;
    assert_eq!(asks["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    result(set(5)).await;
    let which = json!({ "taskId": task["id"], "id": "3" });
    result(rpc(&desk, "ask", "1.0", "DeleteTaskPushNotificationConfig", which.clone())).await;
    assert_eq!(refused(rpc(&desk, "ask", "1.0", "DeleteTaskPushNotificationConfig", which)).await.0, -32001);
    result(set(10)).await;
    let here = format!("127.0.0.1:{port}");
    let (named, long) = (format!("http://me:secret@{here}/"), format!("http://{here}/{}", "x".repeat(3000)));
    for url in ["ftp://127.0.0.1/", "x", named.as_str(), long.as_str()] {
        let config = json!({ "taskId": task["id"], "url": url });
        assert_eq!(
            refused(rpc(&desk, "ask", "1.0", "CreateTaskPushNotificationConfig", config)).await.0,
            -32602,
            "{url}"
        );
    }
    let forged = json!({ "taskId": task["id"], "url": format!("http://127.0.0.1:{port}/"), "token": "x\r\nhost: y" });
    assert_eq!(refused(rpc(&desk, "ask", "1.0", "CreateTaskPushNotificationConfig", forged)).await.0, -32602);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_was_given_again_and_again_is_told_once() {
    let (port, mut posts) = told().await;
    let grants = format!("[grants.agent]\nhttp = [\"http://127.0.0.1:{port}\"]\n");
    let desk = Desk::with(&[ASK, ("ask/hotcell.toml", &grants)]).await;
    let task = result(rpc(&desk, "ask", "1.0", "SendMessage", message("hi"))).await["task"].clone();
    let which = json!({ "taskId": task["id"], "id": "a" });
    let mut config = which.clone();
    (config["url"], config["token"]) = (json!(format!("http://127.0.0.1:{port}/told")), json!("t0ken"));
    for _ in 0..20 {
        result(rpc(&desk, "ask", "1.0", "CreateTaskPushNotificationConfig", config.clone())).await;
        result(rpc(&desk, "ask", "1.0", "DeleteTaskPushNotificationConfig", which.clone())).await;
    }
    result(rpc(&desk, "ask", "1.0", "CreateTaskPushNotificationConfig", config)).await;
    let id = task["id"].as_str().expect("an id");
    ok(desk.post(&format!("/runs/{id}/answers"), json!({ "answer": "Ada" }))).await;
    assert!(!next(&mut posts).await["artifactUpdate"].is_null());
    assert_eq!(next(&mut posts).await["statusUpdate"]["status"]["state"], "TASK_STATE_COMPLETED");
    assert!(posts.try_recv().is_err(), "nothing was told twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_is_slow_holds_up_no_other() {
    let (port, mut posts) = told().await;
    let tries = Arc::new(AtomicUsize::new(0));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let slow = listener.local_addr().expect("an address").port();
    let router = Router::new().route("/told", post(never)).with_state(tries.clone());
    tokio::spawn(hotcell_http::serve(listener, router, hotcell_http::Limits::default(), CancellationToken::new()));
    let grants = format!("[grants.agent]\nhttp = [\"http://127.0.0.1:{port}\", \"http://127.0.0.1:{slow}\"]\n");
    let desk = Desk::with(&[ASK, ("ask/hotcell.toml", &grants)]).await;
    let task = result(rpc(&desk, "ask", "1.0", "SendMessage", message("hi"))).await["task"].clone();
    for (id, port) in [("a", slow), ("b", port)] {
        let url = format!("http://127.0.0.1:{port}/told");
        let config = json!({ "taskId": task["id"], "id": id, "url": url, "token": "t0ken" });
        result(rpc(&desk, "ask", "1.0", "CreateTaskPushNotificationConfig", config)).await;
    }
    let id = task["id"].as_str().expect("an id");
    ok(desk.post(&format!("/runs/{id}/answers"), json!({ "answer": "Ada" }))).await;
    assert!(!next(&mut posts).await["artifactUpdate"].is_null());
    assert_eq!(next(&mut posts).await["statusUpdate"]["status"]["state"], "TASK_STATE_COMPLETED");
    assert!(tries.load(Ordering::Relaxed) < 4, "the one was told when the other had been given up");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_waits_for_another_system_is_worked_on_and_asks_nobody() {
    let (port, mut posts) = told().await;
    let mesh = format!(
        "name: late\nmanager: {{enabled: false}}\nagents:\n  late:\n    agent_type: external\n    framework: n8n\n    \
         communication_type: chain\n    connector_config: {{webhook_url: \"http://127.0.0.1:{port}/told\", mode: callback}}\n\
         entry_points:\n  - {{name: direct, target: late}}\n"
    );
    let grants = format!("[grants.agent]\nhttp = [\"http://127.0.0.1:{port}\"]\n");
    let desk = Desk::with(&[("late/mesh.yaml", &mesh), ("late/hotcell.toml", &grants)]).await;
    let call = json!({ "entry_point": "direct", "data": {}, "session_id": "s" });
    assert_eq!(ok(desk.post("/api/mesh/request", call)).await["status"], "accepted");
    let sent = tokio::time::timeout(Duration::from_secs(60), posts.recv()).await.expect("no hang");
    let (_, sent) = sent.expect("a post");
    let run = ok(desk.get("/runs")).await["runs"][0]["run_id"].as_str().expect("a run").to_owned();
    desk.stands(&run, "waiting").await;
    let get = || rpc(&desk, "late", "1.0", "GetTask", json!({ "id": run }));
    assert_eq!(result(get()).await["status"]["state"], "TASK_STATE_WORKING");
    for (state, count) in [("TASK_STATE_WORKING", 1), ("TASK_STATE_INPUT_REQUIRED", 0)] {
        let listed = result(rpc(&desk, "late", "1.0", "ListTasks", json!({ "status": state }))).await;
        assert_eq!(listed["tasks"].as_array().map(Vec::len), Some(count), "{listed}");
    }
    let mut forged = message("forged");
    forged["message"]["taskId"] = json!(run);
    assert_eq!(refused(rpc(&desk, "late", "1.0", "SendMessage", forged)).await.0, -32004);

    let mut stream = Events::of(rpc(&desk, "late", "1.0", "SubscribeToTask", json!({ "id": run }))).await;
    let first = stream.next().await.expect("the task");
    assert_eq!(first.data["result"]["task"]["status"]["state"], "TASK_STATE_WORKING");
    let callback = sent["_leafmesh_callback_url"].as_str().expect("an address");
    let body = json!({ "session_id": sent["_leafmesh_session_id"], "result": "done" });
    ok(desk.client.post(callback).json(&body)).await;
    let last = stream.all().await.pop().expect("an end");
    assert_eq!(last.data["result"]["statusUpdate"]["status"]["state"], "TASK_STATE_COMPLETED");
    assert!(result(get()).await["history"].is_null(), "nobody said anything");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_says_of_a_task_what_the_task_says() {
    const FAILS: (&str, &str) = (
        "fails/agent.yaml",
        "manifest_version: 1\nagents:\n  fails:\n    state: {fields: [{name: messages, type: list}, {name: n, type: int, default: 0}]}\n    graph:\n      entry_point: count\n      nodes:\n        - {name: count, type: set_state, args: {values: {n: 1 / state.n}}}\n      edges: []\n",
    );
    let desk = Desk::with(&[ECHO, ASK, FAILS]).await;
    for agent in ["echo", "ask", "fails"] {
        let sent = desk.post(&format!("/a2a/{agent}/message:send"), message("x")).header("A2A-Version", "1.0");
        sent.send().await.expect("a reply");
        let listed = result(rpc(&desk, agent, "1.0", "ListTasks", json!({}))).await["tasks"][0].clone();
        let get = json!({ "id": listed["id"], "historyLength": 0 });
        let mut task = result(rpc(&desk, agent, "1.0", "GetTask", get)).await;
        task.as_object_mut().expect("an object").remove("artifacts");
        assert_eq!(listed, task, "{agent}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_comes_too_early_is_told_when_to_come_again() {
    let desk = Desk::set_up(&[SLOW], |settings| settings.max_runs = 1).await;
    desk.begin(json!({ "input": "x" })).await;
    desk.model.was_asked(1).await;
    let send = desk.post("/a2a/slow/message:send", message("x")).header("A2A-Version", "1.0");
    let reply = send.send().await.expect("a reply");
    assert_eq!((reply.status().as_u16(), reply.headers().contains_key("retry-after")), (503, true));
    // Nothing of it is left.
    assert_eq!(ok(desk.post("/threads/search", json!({}))).await, json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_null_is_not_said() {
    let desk = Desk::with(&[ECHO]).await;
    let mut params = message("x");
    (params["configuration"], params["metadata"], params["tenant"]) = (Value::Null, Value::Null, Value::Null);
    for name in ["contextId", "taskId", "extensions", "referenceTaskIds", "metadata"] {
        params["message"][name] = Value::Null;
    }
    params["message"]["parts"][0]["raw"] = Value::Null;
    let task = result(rpc(&desk, "echo", "1.0", "SendMessage", params)).await["task"].clone();
    assert_eq!(task["artifacts"][0]["parts"][0]["text"], "you said x");
    let wanted = json!({ "id": task["id"], "historyLength": null, "tenant": null });
    assert_eq!(result(rpc(&desk, "echo", "1.0", "GetTask", wanted)).await["id"], task["id"]);
    // Data may be null, and are no text then.
    let mut params = message("x");
    params["message"]["parts"] = json!([{ "data": null }]);
    assert_eq!(refused(rpc(&desk, "echo", "1.0", "SendMessage", params)).await.0, -32602);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_tasks_has_a_size() {
    let desk = Desk::with(&[ECHO]).await;
    let input = "x".repeat(3 << 20);
    for _ in 0..12 {
        ok(desk.post("/runs/wait", json!({ "agent_id": "echo", "input": input }))).await;
    }
    let list = |query: &str| desk.get(&format!("/a2a/echo/tasks?{query}")).header("A2A-Version", "1.0");
    let refused = list("includeArtifacts=true").send().await.expect("a reply");
    assert_eq!(refused.status(), 400);
    let text = refused.text().await.expect("a text");
    assert!(text.contains("ask for less with `pageSize`"), "{text:.300}");
    let found = ok(list("includeArtifacts=true&pageSize=3")).await;
    assert_eq!(found["tasks"].as_array().expect("a list").len(), 3);
    assert_eq!(ok(list("")).await["tasks"].as_array().expect("a list").len(), 12, "without what they came to");
}
