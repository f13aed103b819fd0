//! `hotcell runs`: list, show, cancel.

use crate::desk::{Desk, chain};

const GRAPH: &str = r#"name: loop
version: "1.0"
variables:
  - name: limit
    description: How far to count
    default: "3"
start: count
nodes:
  count:
    type: script
    script: scripts/count.js
    next: doubt
  doubt:
    type: script
    script: scripts/doubt.js
    next: done
  done:
    type: end
    output: "counted to {{counted}}"
"#;

const COUNT: &str = r#"const state = JSON.parse(process.env.GRAPH_STATE);
const counted = (state.counted ?? 0) + 1;
console.log(JSON.stringify(counted < Number(state.limit) ? { counted, _next: "count" } : { counted }));
"#;

fn counted() -> Desk {
    Desk::with(GRAPH, &[("count.js", COUNT), ("doubt.js", "console.log([1])\n")])
}

#[test]
fn show_tells_what_happened_node_by_node() {
    let desk = counted();
    desk.output(&["run", ".", "to three", "--var", "limit=3"]);
    let run = desk.only_run().to_string();
    insta::assert_snapshot!(desk.told(&["runs", "show", &run]));
}

#[test]
fn show_as_json_has_the_same_facts() {
    let desk = counted();
    desk.output(&["run", ".", "to two", "--var", "limit=2"]);
    let output = desk.output(&["runs", "show", desk.only_run().as_str(), "--json"]);
    let shown: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&shown["status"], &shown["outcome"]), (&"completed".into(), &"counted to 2".into()));
    assert_eq!(shown["given"]["variables"]["limit"], "2");
    let nodes: Vec<&str> =
        shown["turns"].as_array().unwrap().iter().map(|turn| turn["node"].as_str().unwrap()).collect();
    assert_eq!(nodes, ["count", "count", "doubt", "done"]);
    assert_eq!(shown["turns"][0]["next"], serde_json::json!(["count"]));
    assert!(shown["turns"][0]["usage"]["fuel"].as_u64().unwrap() > 0);
    assert!(shown["turns"][2]["failure"].as_str().unwrap().contains("doubt.js"));
}

#[test]
fn list_shows_the_newest_first() {
    let desk = counted();
    assert_eq!(
        desk.told(&["runs", "list"]),
        "exit code: 0\n--- stdout\n--- stderr\nno runs yet; start one with `hotcell run PATH`\n"
    );
    desk.output(&["run", "."]);
    desk.output(&["run", ".", "--var", "limit=1"]);
    insta::assert_snapshot!(desk.told(&["runs", "list"]));
}

#[test]
fn a_cancelled_run_is_over() {
    let graph = r#"name: ask
version: "1.0"
start: ask
nodes:
  ask: { type: input, question: "Now?", state_updates: { now: "{{input}}" }, next: done }
  done: { type: end, output: "{{now}}" }
"#;
    let desk = Desk::with(graph, &[]);
    desk.output(&["run", ".", "--quiet"]);
    let run = desk.only_run().to_string();
    let mut told = vec![desk.told(&["runs", "cancel", &run])];
    told.push(desk.told(&["runs", "resume", &run]));
    told.push(desk.told(&["runs", "answer", &run, "yes"]));
    told.push(desk.told(&["runs", "cancel", &run]));
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn a_run_of_another_process_is_followed_to_its_end() {
    let desk = chain(3, 100);
    let runner = desk.spawn(&["run", ".", "--quiet"]);
    while desk.runs().is_empty() {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    let run = desk.only_run().to_string();
    let watched = desk.output(&["runs", "watch", &run]);
    let ran = runner.wait_with_output().unwrap();
    assert_eq!((watched.status.code(), &watched.stdout), (Some(0), &ran.stdout));
    let told = String::from_utf8_lossy(&watched.stderr).into_owned();
    for line in ["▸ graph: chain", "▸ step_0 (", ") -> step_1", "▸ step_2 (", "▸ done ("] {
        assert!(told.contains(line), "`{line}`: {told}");
    }
    insta::assert_snapshot!(counted().told(&["runs", "watch", "zzz"]));
}

#[test]
fn a_run_that_waits_or_failed_is_told_as_it_stands() {
    let graph = "name: ask\nstart: ask\nnodes:\n  ask: { type: input, question: Who?, next: done }\n  done: { type: end, output: x }\n";
    let desk = Desk::with(graph, &[]);
    desk.output(&["run", "."]);
    insta::assert_snapshot!(desk.told(&["runs", "watch", desk.only_run().as_str()]));
    let graph = "name: bad\nversion: \"1.0\"\nstart: bad\nnodes:\n  bad: { type: script, script: scripts/bad.js }\n  \
                 done: { type: end, output: never }\n";
    let desk = Desk::with(graph, &[("bad.js", "console.log('no JSON')\n")]);
    desk.output(&["run", "."]);
    let told = desk.told(&["runs", "watch", desk.only_run().as_str()]);
    assert!(told.starts_with("exit code: 1\n") && told.contains("error: node `bad` failed: script"), "{told}");
}

/// What an agent used is a part of what its caller used.
#[test]
fn what_a_called_agent_used_is_counted_once() {
    let caller = "name: caller\nstart: call\nnodes:\n  call: { type: agent, agent: helper, prompt: hi, state_updates: { said: \"{{output}}\" }, \
                  next: done }\n  done: { type: end, output: \"{{said}}\" }\n";
    let helper = "name: helper\nstart: work\nnodes:\n  work: { type: script, script: scripts/work.js, next: done }\n  \
                  done: { type: end, output: \"{{word}}\" }\n";
    let desk = Desk::new();
    desk.write("caller/graph.yaml", caller);
    desk.write("helper/graph.yaml", helper);
    desk.write("helper/scripts/work.js", "console.log('{\"word\": \"done\"}')\n");
    assert_eq!(desk.output(&["run", "caller"]).status.code(), Some(0));
    let shown = desk.told(&["runs", "show", desk.only_run().as_str()]);
    assert!(shown.contains("in all: 1 cell call, "), "{shown}");
}

#[test]
fn the_attempt_that_ended_a_node_is_shown_once() {
    let desk = Desk::new();
    desk.output(&["new", "hello", "--lang", "leafmesh"]);
    desk.write(
        "hello/agency/greeter.py",
        "def greeter(llm_response, input_data, context):\n    raise ValueError('no')\n",
    );
    assert_eq!(desk.output(&["run", "hello", "Ada"]).status.code(), Some(1));
    let run = desk.only_run().to_string();
    let (_, shown, told) = desk.said(&["runs", "show", &run]);
    assert!(shown.contains("failed: ") && shown.contains("ValueError: no"), "{shown}{told}");
    assert!(!shown.contains("tried: "), "{shown}");
}
