//! Capabilities that calls are denied, and whoever runs the command grants.

use serde_json::json;

use crate::desk::Desk;

const GRAPH: &str = r#"name: asks
start: work
nodes:
  work:
    type: acme/say
    inputs: { do: ask, text: "Who?" }
    state_updates: { said: "{{output}}" }
    next: done
    fallback: lost
  done: { type: end, output: "{{said}}" }
  lost: { type: end, output: lost }
"#;
const ASKS: &str = "[denials]\nask = true\n";

/// An agent whose plugin puts a question, pinned and granted nothing, in a trusted folder in which that is asked for.
pub(crate) fn desk() -> Desk {
    let desk = Desk::with(GRAPH, &[]);
    std::fs::create_dir(desk.path("plugins")).unwrap();
    let takes = json!({ "do": { "type": "string" }, "text": { "type": "string" } });
    let description = json!({
        "contract": "0.2.0", "name": "acme",
        "tools": [{ "name": "say", "description": "Does what it is told", "parameters": {
            "type": "object", "properties": takes, "required": ["do"] } }],
        "hooks": [{ "point": "before-skill-load" }], "nodes": [{ "type": "work" }], "connector": { "modes": ["sync"] },
        "capabilities": { "ask": true },
    });
    std::fs::write(desk.path("plugins/acme.wasm"), hotcell_plugin_tests::described(&description)).unwrap();
    done(&desk, &["plugin", "grant", "acme", "--nothing", "--yes"]);
    desk.write("hotcell.toml", ASKS);
    done(&desk, &["trust", ".", "--yes"]);
    desk
}

fn done(desk: &Desk, arguments: &[&str]) {
    let output = desk.output(arguments);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_capability_is_granted_later_and_by_nothing_that_was_said_before() {
    let desk = desk();
    // What the command line says was not said to this question.
    let (code, _, shown) = desk.said(&["run", ".", "--answer", "always"]);
    assert_eq!(code, Some(3), "{shown}");
    let asked = "`acme` asks for `ask`, questions to a person, which is not granted";
    assert!(shown.contains(asked) && shown.contains("options: once | run | always | refuse\n"), "{shown}");
    let run = desk.only_run().to_string();
    let (_, shown, _) = desk.said(&["runs", "show", &run]);
    assert!(shown.contains(asked), "{shown}");

    let (code, _, shown) = desk.said(&["runs", "answer", &run, "yes"]);
    assert!(code == Some(2) && shown.contains("answer `once`, `run` (for all calls of the run), `always`"), "{shown}");
    let (code, _, shown) = desk.said(&["runs", "answer", &run, "once", "--resume"]);
    assert!(code == Some(3) && shown.contains("Who?"), "{shown}");
    let (code, said, shown) = desk.said(&["runs", "answer", &run, "Ada", "--resume"]);
    assert_eq!((code, said.as_str()), (Some(0), "Ada\n"), "{shown}");
    assert_eq!(crate::desk::read(&desk.path("hotcell.toml")), ASKS);
}

#[test]
fn what_is_granted_for_always_is_written_and_trusted() {
    let desk = desk();
    assert_eq!(desk.said(&["run", "."]).0, Some(3));
    let run = desk.only_run().to_string();
    let (code, _, shown) = desk.said(&["runs", "answer", &run, "always", "--resume"]);
    assert!(code == Some(3) && shown.contains("Who?"), "{shown}");
    let written = crate::desk::read(&desk.path("hotcell.toml"));
    assert_eq!(written, format!("{ASKS}\n[grants.acme]\nask = true\n"));
    // The next run has it, without anybody who is asked to trust the folder.
    let (code, said, shown) = desk.said(&["run", ".", "--answer", "Ada"]);
    assert_eq!((code, said.as_str()), (Some(0), "Ada\n"), "{shown}");
    assert!(!shown.contains("trust"), "{shown}");
}

#[test]
fn in_a_folder_that_nobody_trusts_nobody_is_asked() {
    let desk = desk();
    desk.output(&["trust", ".", "--forget"]);
    let (code, said, shown) = desk.said(&["run", "."]);
    assert_ne!(code, Some(3), "{said}{shown}");
    assert!(!shown.contains("asks for"), "{shown}");
}
