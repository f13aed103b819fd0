//! Models as a person sees them, and the example that the README shows, with and without one.

use std::path::PathBuf;

use hotcell_loopback::{Loopback, Script};
use serde_json::{Value, json};

use crate::desk::Desk;

fn server(replies: &Value) -> Loopback {
    Loopback::start(Script::from_json(replies).unwrap()).unwrap()
}

/// The path of the example, and a desk from which it is run.
fn example() -> (Desk, String) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/support-triage");
    (Desk::new(), path.canonicalize().unwrap().to_str().unwrap().to_owned())
}

const ASK: &str = r#"name: ask
version: "1.0"
start: ask
nodes:
  ask:
    type: llm
    prompt: "{{initial_prompt}}"
    max_attempts: 2
    state_updates: { answer: "{{output}}" }
    next: done
  done: { type: end, output: "{{answer}}" }
"#;

#[test]
fn a_model_call_and_its_retry_are_told() {
    let desk = Desk::with(ASK, &[]);
    let model = server(&json!([
        { "status": 429, "error": "slow \u{1b}[5mdown" },
        { "content": "four", "usage": { "prompt_tokens": 12, "completion_tokens": 3 } },
    ]));
    let output = desk
        .hotcell(&["run", ".", "two and two?", "--model", "test:small"])
        .env("HOTCELL_MODEL_URL", model.base_url())
        .output()
        .unwrap();
    insta::assert_snapshot!(desk.describe(&output));
    assert_eq!(model.requests().len(), 2);
    assert!(model.problems().is_empty(), "{:?}", model.problems());
}

#[test]
fn a_forbidden_reply_is_in_no_log() {
    let desk = Desk::new();
    desk.write(
        "agent.yaml",
        "name: desk\nmodel: gpt-4o-mini\nsystem_prompt: s\nconstraints: {forbidden_patterns: [zebra]}\n",
    );
    let model = server(&json!([{ "content": "the striped zebra" }]));
    let output = desk
        .hotcell(&["run", "agent.yaml", "hello", "--json"])
        .env("HOTCELL_MODEL_URL", model.base_url())
        .env("RUST_LOG", "trace,rig=trace,rig::completions=trace")
        .output()
        .unwrap();
    let told = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(model.requests().len(), 1, "{told}");
    assert!(told.contains("`zebra`") && told.contains("TRACE"), "{told}");
    assert!(!told.contains("striped"), "{told}");
}

#[test]
fn without_a_model_the_node_says_how_to_name_one() {
    let desk = Desk::with(ASK, &[]);
    let output = desk.output(&["run", ".", "two and two?"]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("`HOTCELL_MODEL`"), "{stderr}");
}

#[test]
fn the_example_is_useful_without_a_model() {
    let (desk, example) = example();
    assert_eq!(desk.output(&["check", &example]).status.code(), Some(0));
    let output = desk.output(&["run", &example, "--quiet", "--trust"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    insta::assert_snapshot!(desk.describe(&output));
}

#[test]
fn the_example_can_be_asked_for_a_part() {
    let (desk, example) = example();
    let output = desk.output(&["run", &example, "billing", "--quiet", "--trust"]);
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(stdout.contains("3 tickets") && !stdout.contains("gift cards"), "{stdout}");
}

#[test]
fn the_example_is_better_with_a_model() {
    let (desk, example) = example();
    let model = server(&json!([{ "content": "Call Ines first: eu-2 is down." }]));
    let output = desk
        .hotcell(&["run", &example, "--quiet", "--trust"])
        .env("HOTCELL_MODEL", "test:small")
        .env("HOTCELL_MODEL_URL", model.base_url())
        .output()
        .unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(stdout.contains("Call Ines first: eu-2 is down."), "{stdout}");
    let requests = model.requests();
    assert_eq!(requests.len(), 1);
    assert!(requests[0].tool_names().is_empty());
    // A mail that holds a template is data: it is not expanded.
    assert!(requests[0].mentions("{{messages}}"));
}

#[test]
fn a_run_is_recorded_once_and_replayed_without_a_model() {
    let desk = Desk::with(ASK, &[]);
    let model = server(&json!([{ "content": "four" }]));
    let recorded = desk
        .hotcell(&["run", ".", "two and two?", "--model", "test:small", "--record", "exchanges.jsonl", "--quiet"])
        .env("HOTCELL_MODEL_URL", model.base_url())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&recorded.stdout), "four\n", "{recorded:?}");
    drop(model);
    let replay = |prompt: &str| {
        desk.hotcell(&["run", ".", prompt, "--model", "test:small", "--replay", "exchanges.jsonl", "--quiet"])
            .env("HOTCELL_MODEL_URL", "http://127.0.0.1:9")
            .output()
            .unwrap()
    };
    assert_eq!(String::from_utf8_lossy(&replay("two and two?").stdout), "four\n");
    // What was not recorded is a failed model call, which a Loki node tells in its output.
    let unknown = replay("three and three?");
    let told = String::from_utf8_lossy(&unknown.stdout);
    assert!(told.starts_with("LLM node failed: ") && told.contains("exchanges.jsonl"), "{unknown:?}");
}
