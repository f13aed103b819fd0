//! Nodes that fail in runs that go on: whoever runs the graph sees it, and can have it fail the command.

use crate::desk::Desk;

/// `split` fails, the language goes on without it, and `join` cannot find what it should have written.
const CONSEQUENCE: &str = r#"name: parts
version: "1.0"
start: split
nodes:
  split: { type: script, script: scripts/split.py, next: join }
  join: { type: script, script: scripts/join.sh, next: done }
  done: { type: end, output: "joined: {{joined}}" }
"#;

/// The same without anybody who needs the result.
const UNNOTICED: &str = r#"name: parts
version: "1.0"
start: split
nodes:
  split: { type: script, script: scripts/split.py, next: done }
  done: { type: end, output: "done" }
"#;

/// The same with a node that takes over.
const HANDLED: &str = r#"name: parts
version: "1.0"
start: split
nodes:
  split: { type: script, script: scripts/split.py, next: done, fallback: instead }
  instead: { type: script, script: scripts/join.sh, next: done }
  done: { type: end, output: "done" }
"#;

fn desk(graph: &str) -> Desk {
    Desk::with(graph, &[("split.py", "print({)\n"), ("join.sh", "echo '{}'\n")])
}

#[test]
fn a_run_that_goes_on_after_a_failure_says_so_at_its_end() {
    insta::assert_snapshot!(desk(UNNOTICED).told(&["run", "."]));
}

#[test]
fn progress_output_can_be_suppressed_and_failures_cannot() {
    let output = desk(UNNOTICED).output(&["run", ".", "--quiet"]);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.starts_with("warning: the run completed, but 1 node failed: `split`: "), "{told}");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn strict_runs_fail_where_nothing_handles_a_failure_also_after_they_were_resumed() {
    let output = desk(UNNOTICED).output(&["run", ".", "--quiet", "--strict"]);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.starts_with("error: 1 node failed: `split`: ") && told.contains("without `--strict`"), "{told}");
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(1), &b"done\n"[..]));
    assert_eq!(desk(HANDLED).output(&["run", ".", "--quiet", "--strict"]).status.code(), Some(0));

    let asking = UNNOTICED.replace("next: done }", "next: ask }").replace(
        "  done:",
        "  ask: { type: input, question: \"Go on?\", state_updates: { said: \"{{input}}\" }, next: done }\n  done:",
    );
    let desk = desk(&asking);
    assert_eq!(desk.output(&["run", ".", "--strict"]).status.code(), Some(3));
    let answered = desk.output(&["runs", "answer", desk.only_run().as_str(), "yes", "--resume"]);
    assert_eq!(answered.status.code(), Some(1), "{}", desk.describe(&answered));
}

#[test]
fn a_folder_can_say_that_its_runs_are_strict() {
    let asking = UNNOTICED.replace("next: done }", "next: ask }").replace(
        "  done:",
        "  ask: { type: input, question: \"Go on?\", state_updates: { said: \"{{input}}\" }, next: done }\n  done:",
    );
    let desk = desk(&asking);
    desk.write("hotcell.toml", "[run]\nstrict = true\n");
    let output = desk.output(&["run", ".", "--quiet", "--answer", "yes"]);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("error: 1 node failed: `split`: ") && told.contains("under `[run]`"), "{told}");
    assert!(!told.contains("trust"), "it grants nothing: {told}");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(desk.output(&["run", "."]).status.code(), Some(3));
    let run = desk.runs()[0].id.clone();
    let answered = desk.output(&["runs", "answer", run.as_str(), "yes", "--resume"]);
    assert_eq!(answered.status.code(), Some(1), "{}", desk.describe(&answered));
}

#[test]
fn programs_find_failures_in_the_result_and_in_the_run() {
    let desk = desk(HANDLED);
    let output = desk.output(&["run", ".", "--json"]);
    let last = String::from_utf8_lossy(&output.stdout).lines().last().unwrap_or_default().to_owned();
    let result: serde_json::Value = serde_json::from_str(&last).unwrap();
    let shown = desk.output(&["runs", "show", desk.only_run().as_str(), "--json"]).stdout;
    let shown: serde_json::Value = serde_json::from_slice(&shown).unwrap();
    for failures in [&result["failures"], &shown["failures"]] {
        assert_eq!((&failures[0]["node"], &failures[0]["handled"]), (&"split".into(), &true.into()), "{failures}");
        assert!(failures[0]["error"].as_str().unwrap().contains("SyntaxError"), "{failures}");
    }
}

#[test]
fn an_error_that_follows_from_an_earlier_failure_comes_with_it() {
    insta::assert_snapshot!(desk(CONSEQUENCE).told(&["run", "."]));
}
