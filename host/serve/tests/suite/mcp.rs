//! The Model Context Protocol on the port of the server.

use hotcell_serve::{Keys, Role};
use reqwest::RequestBuilder;
use serde_json::{Value, json};

use crate::desk::{ASK, Desk, ECHO, Events, SLOW, ok, problem};

/// The revision without sessions.
const LATEST: &str = "2026-07-28";
/// The last revision with sessions.
const SESSIONS: &str = "2025-11-25";

/// Asks two questions side by side.
const TWO: (&str, &str) =
    ("two/agent.yaml", include_str!("../../../../tests/cases/data/passing/sherma-questions-side-by-side/agent.yaml"));

/// Another agent of the same name as [`ECHO`].
const OTHER_ECHO: (&str, &str) =
    ("other/echo/graph.yaml", "name: echo\nstart: done\nnodes:\n  done: { type: end, output: other }\n");

/// Has one input and one typed output.
const FLOW: (&str, &str) = ("sum.json", include_str!("sum.json"));

/// A request of the revision without sessions.
fn request(desk: &Desk, path: &str, method: &str, mut params: Value) -> RequestBuilder {
    if params["_meta"].is_null() {
        params["_meta"] = json!({});
    }
    for (name, value) in [
        ("protocolVersion", json!(LATEST)),
        ("clientInfo", json!({ "name": "test", "version": "1" })),
        ("clientCapabilities", json!({ "elicitation": {} })),
    ] {
        let name = format!("io.modelcontextprotocol/{name}");
        if params["_meta"][&name].is_null() {
            params["_meta"][name] = value;
        }
    }
    let named = params["name"].as_str().map(str::to_owned);
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let request = desk.post(path, message).header("accept", "application/json, text/event-stream");
    let request = request.header("mcp-protocol-version", LATEST).header("mcp-method", method);
    match named {
        Some(name) => request.header("mcp-name", name),
        None => request,
    }
}

/// The answer to a request: as JSON, or as the last event of a stream.
async fn answer(request: RequestBuilder) -> Value {
    let response = request.send().await.expect("a reply");
    let text = response.text().await.expect("text");
    let last = text.lines().filter_map(|line| line.strip_prefix("data: ")).next_back();
    serde_json::from_str(last.unwrap_or(&text)).unwrap_or_else(|error| panic!("{error}: {text}"))
}

async fn call(desk: &Desk, name: &str, arguments: Value) -> Value {
    answer(request(desk, "/mcp", "tools/call", json!({ "name": name, "arguments": arguments }))).await["result"].take()
}

/// The call of [`ASK`] that goes on with an answer.
fn going_on(desk: &Desk, asked: &Value, answer: Value) -> RequestBuilder {
    let id = asked["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    let params = json!({
        "name": "ask", "arguments": {}, "requestState": asked["requestState"], "inputResponses": { id: answer },
    });
    request(desk, "/mcp", "tools/call", params)
}

fn accepted(text: &str) -> Value {
    json!({ "action": "accept", "content": { "answer": text } })
}

fn text_of(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}"))
}

fn key(desk: &Desk, roles: &[Role]) -> String {
    let keys = Keys::open(&desk.folder().join("runs.serve.db")).expect("the server's file");
    keys.add("test", None, roles, None).expect("made").reveal()
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_are_tools_with_what_they_take_and_give() {
    let desk = Desk::with(&[ECHO, ASK, FLOW]).await;
    let found = answer(request(&desk, "/mcp", "server/discover", json!({}))).await;
    let versions = found["result"]["supportedVersions"].as_array().unwrap();
    assert!([SESSIONS, LATEST].iter().all(|version| versions.contains(&json!(version))), "{found}");
    let listed = answer(request(&desk, "/mcp", "tools/list", json!({}))).await;
    assert_eq!(listed["result"]["cacheScope"], "private", "whoever asks decides what is listed: {listed}");
    let tools = listed["result"]["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["ask", "echo", "sum"]);
    assert_eq!(tools[1]["description"], "Repeats what it is told");
    assert_eq!(tools[1]["annotations"], json!({ "readOnlyHint": false, "openWorldHint": true }));
    assert_eq!(tools[1]["outputSchema"], Value::Null, "a text has no form");
    assert_eq!(tools[2]["outputSchema"]["properties"]["total"]["type"], "integer", "{}", tools[2]);
    assert_eq!(text_of(&call(&desk, "echo", json!({ "prompt": "hello" })).await), "you said hello");
    let summed = call(&desk, "sum", json!({ "number": 41 })).await;
    assert_eq!(summed["structuredContent"], json!({ "total": 41 }), "{summed}");
    // It is a run like any other.
    let runs = ok(desk.get("/runs?agent_id=echo")).await;
    assert_eq!(runs["runs"][0]["status"], "success", "{runs}");
    let one = answer(request(&desk, "/mcp/ask", "tools/list", json!({}))).await;
    assert_eq!(one["result"]["tools"].as_array().unwrap().len(), 1, "{one}");
    let other = answer(request(&desk, "/mcp/ask", "tools/call", json!({ "name": "echo", "arguments": {} }))).await;
    assert_eq!(other["error"]["code"], -32602, "{other}");
    assert_eq!(problem(request(&desk, "/mcp/nobody", "tools/list", json!({}))).await["status"], 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_of_one_name_are_told_apart() {
    let desk = Desk::with(&[ECHO, OTHER_ECHO]).await;
    let listed = answer(request(&desk, "/mcp", "tools/list", json!({}))).await;
    let tools = listed["result"]["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["echo", "other.echo"]);
    assert_eq!(text_of(&call(&desk, "other.echo", json!({ "prompt": "x" })).await), "other");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_is_told_to_whoever_can_mend_it() {
    let desk = Desk::with(&[ECHO]).await;
    // A model reads what a tool says, and never an error of the protocol.
    for arguments in [json!({}), json!({ "prompt": 1 }), json!({ "prompt": "x", "more": 1 })] {
        let wrong = call(&desk, "echo", arguments).await;
        assert_eq!(wrong["isError"], true, "{wrong}");
        assert!(text_of(&wrong).starts_with("the arguments of `echo` cannot be used: "), "{wrong}");
    }
    assert_eq!(ok(desk.get("/runs")).await["runs"], json!([]), "nothing was begun");
    let unknown = answer(request(&desk, "/mcp", "tools/call", json!({ "name": "nothing" }))).await;
    assert_eq!(unknown["error"]["code"], -32602);
    let method = request(&desk, "/mcp", "nothing/there", json!({})).send().await.unwrap();
    assert_eq!(
        (method.status().as_u16(), method.headers()["content-type"].to_str().unwrap()),
        (404, "application/json")
    );
    for (body, status) in [(json!([]), 415), (json!("x"), 415), (json!({ "jsonrpc": "2.0" }), 415)] {
        let reply = desk.post("/mcp", body).header("accept", "application/json, text/event-stream").send().await;
        let found = reply.unwrap().status().as_u16();
        assert!((400..500).contains(&found), "{found}, not {status}");
    }
    let list = || desk.post("/mcp", json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }));
    let accepts = list().header("accept", "application/json, text/event-stream");
    let nowhere = problem(accepts.header("mcp-session-id", "nobody")).await;
    assert_eq!((&nowhere["status"], &nowhere["detail"]), (&json!(404), &json!("Session not found")));
    let takes_nothing = problem(list().header("accept", "image/png")).await;
    assert_eq!(takes_nothing["status"], 406, "{takes_nothing}");
    assert!(takes_nothing["detail"].as_str().unwrap().contains("text/event-stream"), "{takes_nothing}");
    // Little more than may be: whoever is refused before they have sent everything may see a reset.
    let large = json!({ "name": "echo", "arguments": { "prompt": "x".repeat(4 << 20) } });
    assert_eq!(problem(request(&desk, "/mcp", "tools/call", large)).await["status"], 413);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_the_result_of_a_call_and_the_next_call_answers_it() {
    let desk = Desk::with(&[ASK]).await;
    let asked = call(&desk, "ask", json!({ "prompt": "x" })).await;
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let form = asked["inputRequests"].as_object().unwrap().values().next().unwrap();
    assert_eq!(
        (form["method"].clone(), form["params"]["message"].clone()),
        (json!("elicitation/create"), json!("Who asks?"))
    );
    assert_eq!(form["params"]["requestedSchema"]["properties"]["answer"]["default"], "somebody");
    // The question is in the inbox, too, and the server may be another one meanwhile.
    assert_eq!(ok(desk.get("/inbox")).await["items"].as_array().unwrap().len(), 1);
    let desk = desk.again().await;
    // What is no answer is asked again.
    let again = answer(going_on(&desk, &asked, json!({ "action": "accept", "content": { "other": 1 } }))).await;
    assert_eq!(again["result"]["inputRequests"], asked["inputRequests"], "{again}");
    let declined = answer(going_on(&desk, &asked, json!({ "action": "decline" }))).await;
    assert_eq!(declined["result"]["isError"], true, "{declined}");
    assert!(text_of(&declined["result"]).contains("hotcell runs answer"), "{declined}");
    let answered = answer(going_on(&desk, &asked, accepted("Ada"))).await;
    assert_eq!(text_of(&answered["result"]), "hello Ada", "{answered}");
    // A reply that was lost is asked for again, and nothing is done twice.
    let repeated = answer(going_on(&desk, &asked, accepted("Bob"))).await;
    assert_eq!(text_of(&repeated["result"]), "hello Ada", "{repeated}");
    assert_eq!(ok(desk.get("/runs")).await["runs"].as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_goes_on_with_a_run_that_another_one_began() {
    let desk = Desk::with(&[ASK, ECHO]).await;
    let asked = call(&desk, "ask", json!({ "prompt": "x" })).await;
    let state: Value = serde_json::from_str(asked["requestState"].as_str().unwrap()).unwrap();
    let other = desk.begin(json!({ "agent_id": "ask" })).await;
    desk.stands(&other, "waiting").await;
    let ticket = state["ticket"].as_str().unwrap();
    let flipped = ticket.replace(&ticket[..1], if ticket.starts_with('0') { "1" } else { "0" });
    for forged in [
        format!("{}-TAMPERED", asked["requestState"].as_str().unwrap()),
        json!({ "run": other, "ticket": ticket }).to_string(),
        json!({ "run": state["run"], "ticket": flipped }).to_string(),
        json!({ "run": state["run"] }).to_string(),
        json!({ "run": "nobody", "ticket": ticket }).to_string(),
        "x".repeat(100_000),
        String::new(),
    ] {
        let forged = json!({ "requestState": forged, "inputRequests": { "1:0": {} } });
        let refused = answer(going_on(&desk, &forged, accepted("Mallory"))).await;
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
    // Nor with another tool.
    let state = json!({
        "name": "echo", "arguments": { "prompt": "x" }, "requestState": asked["requestState"],
        "inputResponses": { "1:0": accepted("Mallory") },
    });
    let refused = answer(request(&desk, "/mcp", "tools/call", state)).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    assert_eq!(ok(desk.get("/inbox")).await["items"].as_array().unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn several_questions_are_put_together() {
    let desk = Desk::with(&[TWO]).await;
    let name = answer(request(&desk, "/mcp", "tools/list", json!({}))).await["result"]["tools"][0]["name"].clone();
    let params = json!({ "name": name, "arguments": { "prompt": "x" } });
    let asked = answer(request(&desk, "/mcp", "tools/call", params)).await["result"].take();
    let ids: Vec<String> =
        asked["inputRequests"].as_object().unwrap_or_else(|| panic!("{asked}")).keys().cloned().collect();
    assert_eq!(ids.len(), 3);
    let go_on = |answers: Value| {
        let state = &asked["requestState"];
        let params = json!({
            "name": name, "arguments": { "prompt": "x" }, "requestState": state, "inputResponses": answers,
        });
        answer(request(&desk, "/mcp", "tools/call", params))
    };
    let rest = go_on(json!({ ids[0].clone(): accepted("yes") })).await;
    let left: Vec<&String> =
        rest["result"]["inputRequests"].as_object().unwrap_or_else(|| panic!("{rest}")).keys().collect();
    assert_eq!(left, ids.iter().skip(1).collect::<Vec<_>>());
    let done =
        go_on(json!({ ids[1].clone(): accepted("yes"), ids[2].clone(): accepted("yes"), "more": accepted("x") })).await;
    assert_eq!(done["result"]["isError"], false, "{done}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_call_and_who_may_answer_the_key_says() {
    let desk = Desk::with(&[ASK]).await;
    let (runs, both, answers) =
        (key(&desk, &[Role::Run]), key(&desk, &[Role::Run, Role::Answer]), key(&desk, &[Role::Answer]));
    let list = || request(&desk, "/mcp", "tools/list", json!({}));
    let reply = list().send().await.unwrap();
    let challenge = reply.headers()["www-authenticate"].to_str().unwrap().to_owned();
    assert_eq!(reply.status(), 401);
    let metadata = format!("{}/.well-known/oauth-protected-resource/mcp", desk.url);
    assert!(challenge.contains(&format!("Bearer resource_metadata=\"{metadata}\"")), "{challenge}");
    assert!(!challenge.contains("invalid_token"), "{challenge}");
    let wrong = list().bearer_auth("hck_wrong").send().await.unwrap();
    assert!(wrong.headers()["www-authenticate"].to_str().unwrap().contains("error=\"invalid_token\""));
    // Where to get in is told to whoever asks.
    for path in ["", "/mcp"] {
        let resource = ok(desk.get(&format!("/.well-known/oauth-protected-resource{path}"))).await;
        assert_eq!(resource["resource"], format!("{}/mcp", desk.url), "{resource}");
        assert_eq!(resource["bearer_methods_supported"], json!(["header"]));
    }
    assert_eq!(list().bearer_auth(&answers).send().await.unwrap().status(), 403);
    let params = json!({ "name": "ask", "arguments": { "prompt": "x" } });
    let call = |key: &str| answer(request(&desk, "/mcp", "tools/call", params.clone()).bearer_auth(key));
    let waits = call(&runs).await["result"].take();
    assert_eq!(waits["isError"], true, "{waits}");
    assert!(text_of(&waits).contains("waits for a person"), "{waits}");
    let asked = call(&both).await["result"].take();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    // Whoever may not answer may not answer with the words of somebody who may.
    let refused = answer(going_on(&desk, &asked, accepted("Mallory")).bearer_auth(&runs)).await;
    assert_eq!(refused["result"]["isError"], true, "{refused}");
    let answered = answer(going_on(&desk, &asked, accepted("Ada")).bearer_auth(&both)).await;
    assert_eq!(text_of(&answered["result"]), "hello Ada");
}

/// A client of the last revision with sessions.
struct Session<'a> {
    desk: &'a Desk,
    id: String,
    key: Option<String>,
}

impl<'a> Session<'a> {
    async fn begin(desk: &'a Desk, key: Option<String>) -> Self {
        let mut session = Session { desk, id: String::new(), key };
        let hello = json!({
            "protocolVersion": SESSIONS, "capabilities": { "elicitation": {} },
            "clientInfo": { "name": "test", "version": "1" },
        });
        let message = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello });
        let reply = session.post(message).send().await.unwrap();
        session.id = reply.headers()["mcp-session-id"].to_str().unwrap().to_owned();
        let text = reply.text().await.unwrap();
        assert!(text.contains(&format!("\"protocolVersion\":\"{SESSIONS}\"")), "{text}");
        session.send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        session
    }

    fn post(&self, message: Value) -> RequestBuilder {
        let mut request = self.desk.post("/mcp", message).header("accept", "application/json, text/event-stream");
        if !self.id.is_empty() {
            request = request.header("mcp-session-id", &self.id).header("mcp-protocol-version", SESSIONS);
        }
        match &self.key {
            Some(key) => request.bearer_auth(key),
            None => request,
        }
    }

    async fn send(&self, message: Value) {
        assert_eq!(self.post(message).send().await.unwrap().status(), 202);
    }

    /// The stream of what belongs to no request.
    async fn listen(&self) -> Events {
        let request = self.desk.get("/mcp").header("accept", "text/event-stream");
        Events::of(request.header("mcp-session-id", &self.id).header("mcp-protocol-version", SESSIONS)).await
    }

    /// Calls a tool, and gives the stream of what comes of it.
    async fn call(&self, name: &str, arguments: Value) -> Events {
        let params = json!({ "name": name, "arguments": arguments, "_meta": { "progressToken": "far" } });
        Events::of(self.post(json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params }))).await
    }
}

/// The next message of this kind.
async fn next(events: &mut Events, method: &str) -> Value {
    loop {
        let told = events.next().await.expect("an event");
        if told.data["method"] == method || (method.is_empty() && !told.data["result"].is_null()) {
            return told.data;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_session_a_question_is_put_while_the_call_goes_on() {
    let desk = Desk::with(&[ASK]).await;
    let session = Session::begin(&desk, None).await;
    let mut events = session.call("ask", json!({ "prompt": "x" })).await;
    let asked = next(&mut events, "elicitation/create").await;
    assert_eq!(asked["params"]["message"], "Who asks?");
    session.send(json!({ "jsonrpc": "2.0", "id": asked["id"], "result": accepted("Ada") })).await;
    let progress = next(&mut events, "notifications/progress").await;
    assert_eq!(
        (progress["params"]["progress"].clone(), progress["params"]["message"].clone()),
        (json!(1.0), json!("name"))
    );
    assert_eq!(text_of(&next(&mut events, "").await["result"]), "hello Ada");
    // One that nobody answers stays in the inbox.
    let mut events = session.call("ask", json!({ "prompt": "x" })).await;
    let asked = next(&mut events, "elicitation/create").await;
    session.send(json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "action": "decline" } })).await;
    let declined = next(&mut events, "").await;
    assert!(text_of(&declined["result"]).contains("waits for a person"), "{declined}");
    assert_eq!(ok(desk.get("/inbox")).await["items"].as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_answered_elsewhere_is_not_asked_any_more() {
    let desk = Desk::with(&[ASK]).await;
    let session = Session::begin(&desk, None).await;
    let mut events = session.call("ask", json!({ "prompt": "x" })).await;
    let asked = next(&mut events, "elicitation/create").await;
    let inbox = ok(desk.get("/inbox")).await;
    let run = inbox["items"][0]["run_id"].as_str().unwrap();
    ok(desk.post(&format!("/runs/{run}/answers"), json!({ "answer": "the inbox" }))).await;
    // What belongs to no request of the client comes in the stream of the session.
    let taken_back = next(&mut session.listen().await, "notifications/cancelled").await;
    assert_eq!(taken_back["params"]["requestId"], asked["id"]);
    assert_eq!(text_of(&next(&mut events, "").await["result"]), "hello the inbox");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_ends_when_its_call_is_cancelled_and_not_when_its_client_is_gone() {
    let desk = Desk::with(&[SLOW]).await;
    let session = Session::begin(&desk, None).await;
    let cancelled = session.call("slow", json!({ "prompt": "one" })).await;
    desk.model.was_asked(1).await;
    session.send(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 7 } })).await;
    let run = ok(desk.get("/runs")).await["runs"][0]["run_id"].as_str().unwrap().to_owned();
    desk.stands(&run, "cancelled").await;
    drop(cancelled);
    let other = Session::begin(&desk, None).await;
    let left = other.call("slow", json!({ "prompt": "two" })).await;
    desk.model.was_asked(2).await;
    drop(left);
    // The session ends, and the run has somebody who looks for it.
    let end = desk.delete("/mcp").header("mcp-session-id", &other.id).send().await.unwrap();
    assert_eq!(end.status(), 202);
    let run = ok(desk.get("/runs")).await["runs"][0]["run_id"].as_str().unwrap().to_owned();
    desk.model.answers(3);
    desk.stands(&run, "completed").await;
    // Without a session, to close the stream is to cancel.
    let call = request(&desk, "/mcp", "tools/call", json!({ "name": "slow", "arguments": { "prompt": "three" } }));
    let sending = tokio::spawn(call.send());
    desk.model.was_asked(4).await;
    sending.abort();
    let run = ok(desk.get("/runs")).await["runs"][0]["run_id"].as_str().unwrap().to_owned();
    desk.stands(&run, "cancelled").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_belongs_to_the_key_that_began_it() {
    let desk = Desk::with(&[ECHO]).await;
    let (one, other) = (key(&desk, &[Role::Run]), key(&desk, &[Role::Run]));
    let session = Session::begin(&desk, Some(one)).await;
    let stolen = Session { desk: &desk, id: session.id.clone(), key: Some(other.clone()) };
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    assert_eq!(problem(stolen.post(list.clone())).await["status"], 404);
    assert_eq!(session.post(list).send().await.unwrap().status(), 200);
    let ended = desk.delete("/mcp").header("mcp-session-id", &session.id).bearer_auth(&other).send().await.unwrap();
    assert_eq!(ended.status(), 404);
    // Nobody has so many that there is no room for others.
    for _ in 1..64 {
        Session::begin(&desk, session.key.clone()).await;
    }
    let full = Session { desk: &desk, id: String::new(), key: session.key.clone() };
    let hello =
        json!({ "protocolVersion": SESSIONS, "capabilities": {}, "clientInfo": { "name": "x", "version": "1" } });
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello });
    assert_eq!(problem(full.post(hello.clone())).await["status"], 503);
    // Nor if they begin all at once.
    let third = Session { desk: &desk, id: String::new(), key: Some(key(&desk, &[Role::Run])) };
    let all = futures::future::join_all((0..100).map(|_| third.post(hello.clone()).send())).await;
    let begun = all.into_iter().filter(|reply| reply.as_ref().is_ok_and(|reply| reply.status() == 200)).count();
    assert_eq!(begun, 48, "a quarter of what the first one leaves");
    Session::begin(&desk, Some(other)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_offered_is_no_method() {
    let desk = Desk::with(&[ECHO]).await;
    for method in ["prompts/list", "resources/list", "resources/templates/list"] {
        let refused = answer(request(&desk, "/mcp", method, json!({}))).await;
        assert_eq!(refused["error"]["code"], -32601, "{method}: {refused}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_and_names_of_others_get_nothing() {
    let desk = Desk::with(&[ECHO]).await;
    let list = || request(&desk, "/mcp", "tools/list", json!({}));
    assert_eq!(problem(list().header("host", "evil.example")).await["status"], 421);
    assert_eq!(problem(list().header("origin", "http://evil.example")).await["status"], 403);
    assert_eq!(list().header("origin", &desk.url).send().await.unwrap().status(), 200);
}
