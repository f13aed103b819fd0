//! Files with several agents, conversations that go on, and first values of the state.

use std::path::PathBuf;

use crate::desk::Desk;

const AGENTS: &str = r#"manifest_version: 1
agents:
  counter:
    state: {fields: [{name: messages, type: list}, {name: n, type: int, default: 0}]}
    graph:
      entry_point: count
      nodes:
        - {name: count, type: set_state, args: {values: {n: n + 1, messages: '{"type": "ai", "content": string(n + 1)}'}}}
      edges: []
  waiter:
    state: {fields: [{name: messages, type: list}]}
    graph:
      entry_point: say
      nodes:
        - {name: say, type: set_state, args: {values: {messages: '{"type": "ai", "content": "Which?"}'}}}
        - {name: ask, type: interrupt, args: {}}
        - {name: tell, type: set_state, args: {values: {messages: '{"type": "ai", "content": "so " + last(messages)}'}}}
      edges: [{source: say, target: ask}, {source: ask, target: tell}]
"#;

fn desk() -> Desk {
    let desk = Desk::new();
    desk.write("agent.yaml", AGENTS);
    let later = AGENTS.split("  waiter:").next().unwrap().replace("n + 1", "state.n + 1");
    desk.write("later.yaml", &later);
    desk
}

fn answer(desk: &Desk, arguments: &[&str]) -> String {
    let output = desk.output(arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[test]
fn check_looks_at_all_agents_of_a_file_and_says_how_it_is_written() {
    insta::assert_snapshot!(desk().told(&["check", "agent.yaml", "later.yaml"]));
    insta::assert_snapshot!(desk().told(&["check", "--json", "later.yaml"]));
}

#[test]
fn one_of_several_agents_has_to_be_chosen() {
    insta::assert_snapshot!(desk().told(&["run", "agent.yaml", "go"]));
    insta::assert_snapshot!(desk().told(&["run", "agent.yaml", "go", "--agent", "countr"]));
    assert_eq!(answer(&desk(), &["run", "agent.yaml", "go", "--agent", "counter"]), "1");
    assert!(answer(&desk(), &["graph", "agent.yaml", "--agent", "waiter"]).contains("tell"));
}

#[test]
fn a_thread_goes_on_from_process_to_process() {
    let desk = desk();
    let count = |thread: &str| answer(&desk, &["run", "later.yaml", "go", "--thread", thread]);
    assert_eq!([count("a"), count("a"), count("b"), count("a")], ["1", "2", "1", "3"]);

    let ask =
        |text: &str| desk.output(&["run", "agent.yaml", text, "--agent", "waiter", "--thread", "w", "--no-input"]);
    let first = ask("hello");
    assert!(String::from_utf8_lossy(&first.stderr).contains("Which?"));
    assert_eq!(String::from_utf8_lossy(&ask("that one").stdout).trim(), "so that one");
}

#[test]
fn fields_of_the_state_get_first_values() {
    assert_eq!(answer(&desk(), &["run", "later.yaml", "--state", r#"{"n": 41}"#]), "42");
    insta::assert_snapshot!(desk().told(&["run", "later.yaml", "--state", "7"]));
    insta::assert_snapshot!(desk().told(&["run", "later.yaml", "--state", r#"{"m": 1}"#]));
}

/// The example of a mesh: functions of Python files, a join, a person. Only its connector needs a server.
#[test]
fn the_returns_desk_needs_no_keys() {
    let desk = Desk::new();
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/returns-desk");
    let example = path.canonicalize().unwrap().to_str().unwrap().to_owned();
    let check = desk.output(&["check", &example]);
    assert_eq!(check.status.code(), Some(0), "{}", String::from_utf8_lossy(&check.stderr));

    let late = desk.output(&["run", &example, "Order A-18, EUR 40, bought 50 days ago", "--quiet", "--trust"]);
    let said = String::from_utf8_lossy(&late.stdout);
    assert!(said.contains("We cannot refund order A-18. The return came too late."), "{said}");

    let high = desk.output(&["run", &example, "Order A-19, EUR 400, 5 days", "--quiet", "--trust"]);
    let asked = String::from_utf8_lossy(&high.stderr);
    assert_eq!(high.status.code(), Some(3), "{asked}");
    assert!(asked.contains("Refund 400.0 for order A-19?"), "{asked}");
    // What is decided is about what was asked, whatever the answer says.
    let run = asked.split_once("\nrun ").and_then(|(_, rest)| rest.split(' ').next()).unwrap_or_default();
    let said = r#"{"decision": "rejected", "order": "A-20"}"#;
    let refused = desk.output(&["runs", "answer", run, said, "--resume"]);
    let told = String::from_utf8_lossy(&refused.stdout);
    let why = String::from_utf8_lossy(&refused.stderr);
    assert!(told.contains("We cannot refund order A-19. Our supervisor looked at it."), "{told}{why}");
}
