//! Configurations of the Open Agent Specification: what they reach goes by grants, and what they wait for outlives the process.

use std::sync::Arc;

use hotcell_loopback::{Loopback, Script, WebAnswer, WebServer};
use hotcell_runtime::value::parse_json;
use hotcell_runtime::{Host, HostOptions, JournalChoice, Loading, Nobody, Outcome, RunInput};
use serde_json::{Value, json};

use crate::declarative::talker;
use crate::desk::{Desk, calls, error, output, told};

/// A flow from its start by these nodes to its end, whose output is the last property.
pub(crate) fn flow(inputs: Value, nodes: &[Value], output: Value) -> Value {
    let start = json!({ "component_type": "StartNode", "id": "start", "name": "start", "inputs": inputs });
    let end = json!({ "component_type": "EndNode", "id": "end", "name": "end", "outputs": [output] });
    let all: Vec<Value> = [&[start], nodes, &[end]].concat();
    let id = |node: &Value| node["id"].as_str().unwrap().to_owned();
    let at = |node: &Value| json!({ "$component_ref": id(node) });
    let edge = |pair: &[Value]| {
        let name = format!("{}->{}", id(&pair[0]), id(&pair[1]));
        json!({ "component_type": "ControlFlowEdge", "id": name, "name": name, "from_node": at(&pair[0]), "to_node": at(&pair[1]) })
    };
    let named: serde_json::Map<String, Value> = all.iter().map(|node| (id(node), node.clone())).collect();
    json!({
        "component_type": "Flow", "id": "flow", "name": "flow", "agentspec_version": "25.4.1",
        "start_node": { "$component_ref": "start" },
        "nodes": all.iter().map(at).collect::<Vec<_>>(),
        "control_flow_connections": all.windows(2).map(edge).collect::<Vec<_>>(),
        "$referenced_components": named,
    })
}

pub(crate) fn text(name: &str) -> Value {
    json!({ "title": name, "type": "string" })
}

pub(crate) fn call_of(tool: Value) -> Value {
    json!({ "component_type": "ToolNode", "id": "call", "name": "call", "tool": tool })
}

pub(crate) fn desk(flow: &Value) -> Desk {
    Desk::of("flow.json", &flow.to_string())
}

pub(crate) fn nobody_asked() -> Loopback {
    Loopback::start(Script::from_json(&json!([])).unwrap()).unwrap()
}

pub(crate) fn inputs(values: Value) -> RunInput {
    let state = parse_json(&values.to_string()).unwrap().as_object().cloned().unwrap();
    RunInput { state, ..RunInput::default() }
}

/// A tool of an MCP server that is a program.
fn of_a_program(mode: &str, function: &str) -> Value {
    let stranger = concat!(env!("CARGO_MANIFEST_DIR"), "/../../host/mcp/tests/servers/stranger.py");
    json!({
        "component_type": "MCPTool", "id": "tool", "name": function, "inputs": [text("x")], "outputs": [text("y")],
        "client_transport": {
            "component_type": "StdioTransport", "id": "library", "name": "library", "command": "python3",
            "args": [stranger, mode],
        },
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_function_of_a_server_needs_a_grant_and_is_called_with_it() {
    let desk = desk(&flow(json!([text("x")]), &[call_of(of_a_program("normal", "echo"))], text("y")));
    let host = desk.host(&nobody_asked());
    let refused = desk.start(&host, inputs(json!({ "x": "hi" })), Arc::new(Nobody)).await.unwrap();
    let refused = error(&refused);
    assert!(refused.contains("node `call` failed"), "{refused}");
    assert!(refused.contains("[grants.\"mcp:library\"]") && refused.contains("process = true"), "{refused}");

    desk.settings("[grants.\"mcp:library\"]\nprocess = true");
    let report = desk.start(&host, inputs(json!({ "x": "hi" })), Arc::new(Nobody)).await.unwrap();
    let Outcome::Completed { output } = &report.outcome else { panic!("{:?}", report.outcome) };
    assert!(output.contains("hi"), "{output}");
    assert_eq!(report.account.total().calls, 1);
}

/// A plugin `acme` whose tool `speak` says what it is told.
pub(crate) fn saying(desk: &Desk) {
    desk.plugin_like("acme", "speak", &[], json!({}), "", |description| {
        description["tools"][0]["parameters"] = json!({
            "type": "object", "properties": { "do": { "type": "string" }, "text": { "type": "string" } },
            "required": ["do", "text"],
        });
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_adds_a_type_of_tool() {
    let tool = json!({
        "component_type": "speak", "component_plugin_name": "acme", "component_plugin_version": "1.0.0", "id": "tool",
        "name": "tool", "inputs": [text("do"), text("text")], "outputs": [text("y")],
    });
    let desk = desk(&flow(json!([text("do"), text("text")]), &[call_of(tool)], text("y")));
    saying(&desk);
    let host = desk.host(&nobody_asked());
    let given = inputs(json!({ "do": "say", "text": "hello" }));
    let report = desk.start(&host, given, Arc::new(Nobody)).await.unwrap();
    assert_eq!(report.outcome, Outcome::Completed { output: r#"{"y":"hello"}"#.into() });
    assert_eq!(report.account.total().calls, 1);
}

fn request_to(url: &str) -> Value {
    json!({
        "component_type": "RemoteTool", "id": "tool", "name": "ask", "url": url, "http_method": "GET",
        "outputs": [text("y")],
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_needs_a_grant_and_its_inputs_stay_in_their_segment() {
    let server = WebServer::start(|_| {
        Some(WebAnswer { status: 200, body: "there".into(), is_json: false, headers: Vec::new() })
    })
    .unwrap();
    let origin = format!("http://127.0.0.1:{}", server.port());
    let desk = desk(&flow(json!([text("x")]), &[call_of(request_to(&format!("{origin}/a/{{{{x}}}}")))], text("y")));
    let host = desk.host(&nobody_asked());
    let refused = desk.start(&host, inputs(json!({ "x": "b" })), Arc::new(Nobody)).await.unwrap();
    let refused = error(&refused);
    assert!(refused.contains("[grants.\"agent\"]") && refused.contains(&origin), "{refused}");
    assert!(server.requests().is_empty());

    desk.settings(&format!("[grants.agent]\nhttp = [\"{origin}\"]"));
    for (x, path) in [("b", "/a/b"), ("../c", "/a/..%2Fc"), ("...", "/a/..."), ("d?e=f#g", "/a/d%3Fe%3Df%23g")] {
        let report = desk.start(&host, inputs(json!({ "x": x })), Arc::new(Nobody)).await.unwrap();
        assert_eq!(report.outcome, Outcome::Completed { output: r#"{"y":"there"}"#.into() }, "{x}");
        let asked = server.requests().last().unwrap().path.clone();
        assert_eq!(asked, path, "{x}");
    }
    let asked = server.requests().len();
    let refused = desk.start(&host, inputs(json!({ "x": ".." })), Arc::new(Nobody)).await.unwrap();
    assert!(error(&refused).contains("would lead elsewhere"), "{}", error(&refused));
    assert_eq!(server.requests().len(), asked);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_address_of_a_model_needs_a_grant() {
    let model = Loopback::start(Script::from_json(&json!([{ "content": "hello" }])).unwrap()).unwrap();
    let llm = json!({
        "component_type": "VllmConfig", "id": "llm", "name": "llm", "model_id": "small", "url": model.base_url(),
        "default_generation_parameters": { "max_tokens": 9, "seed": 7 },
    });
    let node = json!({
        "component_type": "LlmNode", "id": "say", "name": "say", "llm_config": llm, "prompt_template": "{{x}}!",
        "outputs": [text("y")],
    });
    let desk = desk(&flow(json!([text("x")]), &[node], text("y")));
    let host = Host::new(HostOptions::isolated()).unwrap();
    let refused = desk.start(&host, inputs(json!({ "x": "hi" })), Arc::new(Nobody)).await.unwrap();
    let refused = error(&refused);
    assert!(refused.contains("node `say` failed") && refused.contains("[grants.\"agent\"]"), "{refused}");
    assert!(model.requests().is_empty());

    let origin = model.base_url().replace("/v1", "");
    desk.settings(&format!("[grants.agent]\nhttp = [\"{origin}\"]"));
    let report = desk.start(&host, inputs(json!({ "x": "hi" })), Arc::new(Nobody)).await.unwrap();
    assert_eq!(report.outcome, Outcome::Completed { output: r#"{"y":"hello"}"#.into() });
    let request = &model.requests()[0];
    assert_eq!((request.model.as_str(), request.max_tokens), ("small", Some(9)));
    assert_eq!(request.body["seed"], 7);
    assert_eq!(request.messages[0].content, "hi!");
}

/// An agent that a node runs, whose model calls a tool that is not there, over and over.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_without_an_end_says_which_one_and_what_to_do() {
    let calls: Vec<Value> = vec![json!({ "tool_calls": [{ "name": "again", "arguments": {} }] }); 100];
    let model = Loopback::start(Script::from_json(&json!(calls)).unwrap()).unwrap();
    let llm = json!({
        "component_type": "VllmConfig", "id": "llm", "name": "llm", "model_id": "small", "url": model.base_url(),
    });
    let agent = json!({
        "component_type": "Agent", "id": "clerk", "name": "Clerk", "llm_config": llm, "system_prompt": "Help with {{x}}.",
        "outputs": [text("y")],
    });
    let node = json!({ "component_type": "AgentNode", "id": "ask", "name": "ask", "agent": agent });
    let desk = desk(&flow(json!([text("x")]), &[node], text("y")));
    desk.settings(&format!("[grants.agent]\nhttp = [\"{}\"]", model.base_url().replace("/v1", "")));
    let host = Host::new(HostOptions::isolated()).unwrap();
    let report = desk.start(&host, inputs(json!({ "x": "this" })), Arc::new(Nobody)).await.unwrap();
    let failure = error(&report);
    assert!(failure.starts_with("node `ask` failed: the agent `clerk` has asked its model 100 times"), "{failure}");
    assert!(failure.contains("(`y`) with `submit_result`") && failure.contains("`system_prompt`"), "{failure}");
    assert_eq!(model.requests().len(), 100);
}

/// A flow within another one that asks how many `x` there are.
fn asking() -> Value {
    let ask = json!({
        "component_type": "InputMessageNode", "id": "ask", "name": "ask", "message": "How many, {{x}}?",
        "outputs": [text("y")],
    });
    let mut inner = flow(json!([text("x")]), &[ask], text("y")).to_string();
    for id in ["flow", "start", "end", "start->ask", "ask->end"] {
        inner = inner.replace(&format!("\"{id}\""), &format!("\"inner {id}\""));
    }
    let mut inner: Value = serde_json::from_str(&inner).unwrap();
    inner.as_object_mut().unwrap().remove("agentspec_version");
    inner
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_subflow_waits_for_is_answered_in_another_process() {
    let node = json!({ "component_type": "FlowNode", "id": "sub", "name": "sub", "subflow": asking() });
    let desk = desk(&flow(json!([text("x")]), &[node], text("y")));
    let journal = JournalChoice::File(desk.path("runs.db"));
    let host = || Host::new(HostOptions { journal: journal.clone(), ..desk.options(&nobody_asked()) }).unwrap();

    let report = desk.start(&host(), inputs(json!({ "x": "Ann" })), Arc::new(Nobody)).await.unwrap();
    let Outcome::Waiting { questions } = &report.outcome else { panic!("{:?}", report.outcome) };
    assert_eq!((questions[0].node.as_str(), questions[0].text.as_str()), ("sub", "How many, Ann?"));

    let later = host();
    later.answer(report.run.as_str(), None, "seven").await.unwrap();
    let report = later.resume(report.run.as_str(), Desk::session(Arc::new(Nobody))).await.unwrap();
    assert_eq!(report.outcome, Outcome::Completed { output: r#"{"y":"seven"}"#.into() });
    let talk = report.state.get("conversation").unwrap().to_json();
    assert!(talk.contains("How many, Ann?") && talk.contains("seven"), "{talk}");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_several_questions_the_one_that_is_named_is_answered() {
    let list = |name: &str| json!({ "title": name, "type": "array", "items": { "type": "string" } });
    let node = json!({
        "component_type": "MapNode", "id": "each", "name": "each", "subflow": asking(), "reducers": { "y": "append" },
    });
    let desk = desk(&flow(json!([list("iterated_x")]), &[node], list("collected_y")));
    let journal = JournalChoice::File(desk.path("runs.db"));
    let host = || Host::new(HostOptions { journal: journal.clone(), ..desk.options(&nobody_asked()) }).unwrap();
    let report = desk.start(&host(), inputs(json!({ "iterated_x": ["Ann", "Bob"] })), Arc::new(Nobody)).await.unwrap();
    let Outcome::Waiting { questions } = &report.outcome else { panic!("{:?}", report.outcome) };
    let asked: Vec<&str> = questions.iter().map(|question| question.text.as_str()).collect();
    assert_eq!(asked, ["How many, Ann?", "How many, Bob?"]);

    let (later, run) = (host(), report.run.as_str());
    for named in [None, Some("9:9")] {
        let refused = later.answer(run, named, "seven").await.unwrap_err().to_string();
        let (ann, bob) = (&questions[0].id, &questions[1].id);
        assert!(refused.contains(&format!("{ann} (`each`: How many, Ann?), {bob} (`each`")), "{refused}");
    }
    later.answer(run, Some(&questions[1].id), "two").await.unwrap();
    // Only one is left: it need not be named.
    later.answer(run, None, "one").await.unwrap();
    let report = later.resume(run, Desk::session(Arc::new(Nobody))).await.unwrap();
    assert_eq!(report.outcome, Outcome::Completed { output: r#"{"collected_y":["one","two"]}"#.into() });
}

/// A flow of a tool whose name no tool can have.
fn gathering(given: &[&str]) -> Value {
    let given: Vec<Value> = given.iter().map(|name| text(name)).collect();
    let tool = json!({
        "component_type": "ServerTool", "id": "tool", "name": "Gather user information tool", "inputs": given,
        "outputs": [text("y")],
    });
    flow(json!(given), &[call_of(tool)], text("y"))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_says_what_a_server_tool_is() {
    let said = |tool: &str| format!("[imports]\n\"Gather user information tool\" = \"{tool}\"\n");
    let of_file = desk(&gathering(&["text"]));
    assert!(of_file.refusal().contains("Gather user information tool"), "{}", of_file.refusal());
    of_file.write("lib/tools.py", "def gather(text: str) -> str:\n    return text.upper()\n");
    for (tool, problem) in [
        ("lib/tools.py:absent", "absent"),
        ("lib/none.py:gather", "lib/none.py"),
        ("../lib/tools.py:gather", "lib/tools.py"),
        ("acme/speak", "acme/speak"),
        ("mcp:library/echo", "there is no MCP server `library`"),
        ("mcp:library", "mcp:SERVER/FUNCTION"),
    ] {
        of_file.write("hotcell.toml", &said(tool));
        let refusal = of_file.refusal();
        assert!(refusal.contains("Gather user information tool") && refusal.contains(problem), "{tool}: {refusal}");
    }
    of_file.write("hotcell.toml", &said("lib/tools.py:gather"));
    let host = of_file.host(&nobody_asked());
    let report = of_file.start(&host, inputs(json!({ "text": "hello" })), Arc::new(Nobody)).await.unwrap();
    assert_eq!(report.outcome, Outcome::Completed { output: r#"{"y":"HELLO"}"#.into() });

    let of_plugin = desk(&gathering(&["do", "text"]));
    saying(&of_plugin);
    of_plugin.write("hotcell.toml", &said("acme/speak"));
    let host = of_plugin.host(&nobody_asked());
    let given = inputs(json!({ "do": "say", "text": "hello" }));
    let report = of_plugin.start(&host, given, Arc::new(Nobody)).await.unwrap();
    assert_eq!(report.outcome, Outcome::Completed { output: r#"{"y":"hello"}"#.into() });
}

#[tokio::test(flavor = "multi_thread")]
async fn what_becomes_of_a_declarative_agent_with_python_tools_runs() {
    let desk = Desk::of("agent.yaml", &talker("tools: [{id: weather, import_path: tools.weather}]"));
    desk.write(
        "tools.py",
        "from langchain_core.tools import tool\n\n\n@tool\ndef weather(city: str) -> str:\n    \"\"\"Tells the weather.\"\"\"\n    \
         return f'{city}: rain'\n",
    );
    let replies = || calls("weather", json!({ "city": "Oslo" }));
    let (report, model) = desk.run(replies()).await;
    assert_eq!((output(&report).as_str(), told(&model).as_str()), ("done", "Oslo: rain"));

    let exported = desk.host(&nobody_asked()).convert(&desk.path("agent.yaml"), &Loading::default()).unwrap();
    let converted = Desk::of("converted.json", &exported.text);
    assert!(converted.refusal().contains("weather"), "{}", converted.refusal());
    std::fs::copy(desk.path("tools.py"), converted.path("tools.py")).unwrap();
    let (report, model) = converted.run(replies()).await;
    assert_eq!((output(&report).as_str(), told(&model).as_str()), ("done", "Oslo: rain"));
    let offered = &model.requests()[0].tools[0];
    assert_eq!((offered.name.as_str(), offered.description.as_str()), ("weather", "Tells the weather."));
}
