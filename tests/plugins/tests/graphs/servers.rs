//! MCP servers in graphs: nothing runs or is reached without a grant, and a server that misbehaves harms its own calls.

use std::sync::Arc;

use hotcell_runtime::Outcome;
use serde_json::json;

use crate::desk::{Desk, Says, calls, told};

const GRAPH: &str = r#"name: served
version: "1.0"
start: work
mcp_servers: [library]
nodes:
  work:
    type: llm
    prompt: "{{initial_prompt}}"
    tools: ["mcp:library"]
    state_updates: { answer: "{{output}}" }
    next: done
  done: { type: end, output: "{{answer}}" }
"#;

/// A desk whose server is a program: the one that misbehaves on request.
fn desk(mode: &str) -> Desk {
    let desk = Desk::new(GRAPH);
    let stranger = concat!(env!("CARGO_MANIFEST_DIR"), "/../../host/mcp/tests/servers/stranger.py");
    let server = json!({ "command": "python3", "args": [stranger, mode] });
    std::fs::write(desk.path("mcp.json"), json!({ "mcpServers": { "library": server } }).to_string()).unwrap();
    desk
}

fn granted(mode: &str) -> Desk {
    let desk = desk(mode);
    desk.settings("[grants.\"mcp:library\"]\nprocess = true");
    desk
}

#[test]
fn a_server_without_a_grant_is_not_started_and_the_grant_is_named() {
    let desk = Desk::new(GRAPH);
    let trace = desk.path("started");
    let server = json!({ "command": "touch", "args": [trace] });
    std::fs::write(desk.path("mcp.json"), json!({ "mcpServers": { "library": server } }).to_string()).unwrap();
    let refused = desk.refusal();
    assert!(refused.contains("[grants.\"mcp:library\"]") && refused.contains("process = true"), "{refused}");
    assert!(!trace.exists());

    let service = json!({ "mcpServers": { "library": { "url": "http://127.0.0.1:9/mcp" } } });
    std::fs::write(desk.path("mcp.json"), service.to_string()).unwrap();
    let refused = desk.refusal();
    assert!(refused.contains("http = [\"http://127.0.0.1:9\"]"), "{refused}");
}

/// The program that was looked at lies beside the file that names it, and not where somebody else has one of the same name.
#[test]
fn a_program_is_started_in_the_folder_of_the_file_that_names_it() {
    let desk = Desk::new(GRAPH);
    desk.settings("[grants.\"mcp:library\"]\nprocess = true");
    desk.write("server.py", "open('started', 'w')\n");
    let servers = json!({ "mcpServers": { "library": { "command": "python3", "args": ["server.py"] } } });
    desk.write("mcp.json", &servers.to_string());
    assert!(desk.refusal().contains("`library` has ended"), "{}", desk.refusal());
    assert!(desk.path("started").exists());
}

#[test]
fn what_is_wrong_with_the_file_of_servers_is_said() {
    let desk = Desk::new(GRAPH);
    assert!(desk.refusal().contains("is not configured"), "{}", desk.refusal());
    for (text, expected) in [
        ("{", "mcp.json"),
        (r#"{"mcpServers":{"library":{"command":"x","extra":1}}}"#, "`extra`"),
        (
            r#"{"mcpServers":{"library":{"url":"https://x.org","headers":{"A":"${HOTCELL_SECRET_KEY}"}}}}"#,
            "HOTCELL_SECRET_KEY",
        ),
    ] {
        std::fs::write(desk.path("mcp.json"), text).unwrap();
        let refused = desk.refusal();
        assert!(refused.contains(expected), "{refused}");
        assert!(!refused.contains("value-of-the-key"), "a file of the folder gets at no variable that was not granted");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn functions_of_a_granted_server_are_called() {
    let desk = granted("normal");
    let (report, model) = desk.run(calls("echo", json!({ "a": 1 }))).await;
    assert!(told(&model).contains('1'), "{}", told(&model));
    assert_eq!(report.account.total().calls, 1);
    let offered: Vec<String> = model.requests()[0].tool_names().iter().map(|name| (*name).to_owned()).collect();
    assert!(offered.contains(&"echo".to_owned()) && offered.contains(&"sleep".to_owned()), "{offered:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_misbehaves_fails_its_call_and_the_graph_goes_on() {
    for (function, expected) in
        [("die", "has ended"), ("flood_line", "library"), ("garbage_forever", "library"), ("refuse", "library")]
    {
        let (report, model) = granted("normal").run(calls(function, json!({}))).await;
        assert!(matches!(report.outcome, Outcome::Completed { .. }), "{function}: {:?}", report.outcome);
        let told = told(&model);
        assert!(told.starts_with("error: ") && told.contains(expected), "{function}: {told}");
    }
}

#[test]
fn a_server_with_tools_that_are_refused_is_named() {
    for mode in ["control", "twice"] {
        let refused = granted(mode).refusal();
        assert!(refused.contains("the tools of the MCP server `library` are refused"), "{mode}: {refused}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_of_a_server_reaches_the_person_or_waits() {
    let desk = granted("normal");
    let (report, _) = desk.run(calls("ask", json!({}))).await;
    let Outcome::Waiting { questions } = &report.outcome else { panic!("{:?}", report.outcome) };
    assert_eq!(questions[0].node, "work");

    let (report, model) = desk.run_with(calls("ask", json!({})), Arc::new(Says("blue"))).await;
    assert!(matches!(report.outcome, Outcome::Completed { .. }), "{:?}", report.outcome);
    assert!(told(&model).contains("blue"), "{}", told(&model));
}
