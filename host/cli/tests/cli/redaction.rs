//! A workflow that redacts values, from outside: what is printed, what is written to disk, and that the run goes on.

use std::fs;

use crate::desk::Desk;

const SECRET: &str = "correct-horse-9271";

const WORKFLOW: &str = "name: greet
config: { provider: mock, responses_file: replies.json }
state_schema:
  password: { redact: true }
  '*_token': { redact: true }
steps:
- { id: ask, type: llm_call, prompt: 'Greet Ada whose password is {state.password}', output: text }
- id: sub
  type: subworkflow
  depends_on: [ask]
  isolated_state: true
  input: { copied: 'she has {state.password}' }
  output: child
  workflow_inline: { name: child, steps: [{ id: sure, type: approval_gate, output: decision }] }
- { id: again, type: llm_call, depends_on: [sub], prompt: 'Once more for {state.password}', output: more_token }
";

fn desk() -> Desk {
    let desk = Desk::new();
    desk.write("workflow.yaml", WORKFLOW);
    desk.write("replies.json", r#"{"ask": {"content": "Hello!"}, "again": {"content": "issued-41"}}"#);
    desk
}

/// What the command printed, in all ways, has nothing of the secret.
fn hidden(desk: &Desk, arguments: &[&str]) -> String {
    let output = desk.hotcell(arguments).env("RUST_LOG", "hotcell=trace").output().unwrap();
    let told = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(!told.contains(SECRET), "{arguments:?} says the secret:\n{told}");
    told
}

#[test]
fn a_redacted_value_is_printed_nowhere_and_the_run_goes_on_with_it() {
    let desk = desk();
    let state = format!(r#"{{"password": "{SECRET}"}}"#);
    let told = hidden(&desk, &["run", "workflow.yaml", "--state", &state, "--json"]);
    assert!(told.contains("waiting"), "{told}");
    let run = desk.only_run().to_string();
    hidden(&desk, &["runs", "answer", &run, "approved"]);
    let told = hidden(&desk, &["runs", "resume", &run, "--json"]);
    assert!(told.contains("she has <REDACTED>") && !told.contains("issued-41"), "{told}");
    assert!(told.contains(r#""status":"completed""#) || told.contains(r#""status": "completed""#), "{told}");
    for command in [
        &["runs", "show", &run][..],
        &["runs", "show", &run, "--json"],
        &["runs", "list"],
        &["graph", "workflow.yaml", "--run", &run],
    ] {
        hidden(&desk, command);
    }
    let shown = hidden(&desk, &["runs", "show", &run]);
    assert!(shown.contains("<REDACTED>") && !shown.contains("<REDACTED:"), "{shown}");
    for file in fs::read_dir(desk.path("")).unwrap() {
        let path = file.unwrap().path();
        if path.is_file() && path.file_name().unwrap().to_str().unwrap().starts_with("runs.db") {
            let bytes = fs::read(&path).unwrap();
            let found = bytes.windows(SECRET.len()).filter(|window| *window == SECRET.as_bytes()).count();
            assert_eq!(found, 0, "{}", path.display());
        }
    }
}

#[test]
fn without_the_key_the_run_says_what_is_missing() {
    let desk = desk();
    let state = format!(r#"{{"password": "{SECRET}"}}"#);
    hidden(&desk, &["run", "workflow.yaml", "--state", &state]);
    fs::write(desk.path("runs.db.key"), [7; 32]).unwrap();
    let told = desk.told(&["runs", "answer", &desk.only_run().to_string(), "approved", "--resume"]);
    assert!(told.contains("exit code: 1"), "{told}");
    assert!(told.contains("they were kept with another key than the one beside this journal"), "{told}");
}

#[test]
fn names_that_are_none_are_refused_where_they_stand() {
    let desk = desk();
    desk.write("workflow.yaml", &WORKFLOW.replace("'*_token': { redact: true }", "'a[': { redact: true, hide: 1 }"));
    let told = desk.told(&["check", "workflow.yaml"]);
    assert!(told.contains("`a[` is not a valid name") && told.contains("hide"), "{told}");
}
