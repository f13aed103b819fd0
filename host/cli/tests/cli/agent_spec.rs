//! Configurations of the Open Agent Specification: inputs, parts beside the file, calls of the client, other languages.

use crate::desk::Desk;

const FLOW: &str = r#"component_type: Flow
id: f
name: measure
agentspec_version: "25.4.1"
start_node: {$component_ref: start}
nodes: [{$component_ref: start}, {$component_ref: read}, {$component_ref: note}, {$component_ref: end}]
control_flow_connections:
  - {component_type: ControlFlowEdge, id: e1, name: e1, from_node: {$component_ref: start}, to_node: {$component_ref: read}}
  - {component_type: ControlFlowEdge, id: e2, name: e2, from_node: {$component_ref: read}, to_node: {$component_ref: note}}
  - {component_type: ControlFlowEdge, id: e3, name: e3, from_node: {$component_ref: note}, to_node: {$component_ref: end}}
$referenced_components:
  start: {component_type: StartNode, id: start, name: start, inputs: [{title: room, type: string}]}
  read: {component_type: ToolNode, id: read, name: read, tool: {$component_ref: THE_SENSOR}}
  note: {component_type: InputMessageNode, id: note, name: note, outputs: [{title: why, type: string}]}
  end:
    component_type: EndNode
    id: end
    name: end
    outputs: [{title: celsius, type: integer}, {title: why, type: string}]
"#;

const PARTS: &str = r#"$referenced_components:
  sensor:
    component_type: ClientTool
    id: sensor
    name: read_sensor
    inputs: [{title: room, type: string}]
    outputs: [{title: celsius, type: integer}]
"#;

/// An agent of sherma that only converses.
const CONVERSATION: &str = "
manifest_version: 1
llms: [{ id: main, model_name: small }]
default_llm: { id: main }
agents:
  guide:
    state: { fields: [{ name: messages, type: list }] }
    graph:
      entry_point: work
      nodes:
        - name: work
          type: call_llm
          args:
            prompt: [{ role: system, content: '\"Be kind.\"' }, { role: messages, content: messages }]
      edges: []
";

/// A graph of another language that the specification has words for, and one that it has none for.
const GRAPH: &str = "name: g\nstart: ask\nnodes:\n  ask: { type: input, question: Who?, state_updates: { who: \"{{input}}\" }, next: done }\n  done: { type: end, output: \"{{who}}\" }\n";
const SCRIPTED: &str = "name: g\nstart: run\nnodes:\n  run: { type: script, script: a.js, next: done }\n  done: { type: end, output: x }\n";

const WITH_PARTS: &str = "parts.yaml,sensor=THE_SENSOR";

fn desk() -> Desk {
    let desk = Desk::new();
    desk.write("flow.yaml", FLOW);
    desk.write("parts.yaml", PARTS);
    desk
}

/// What is given and has no place is no secret: nothing would come of it.
#[test]
fn a_prompt_or_inputs_that_nothing_uses_are_refused() {
    let desk = desk();
    let (code, _, told) = desk.said(&["run", "flow.yaml", "kitchen", "--components", WITH_PARTS]);
    assert_eq!(code, Some(2), "{told}");
    assert!(told.contains("nothing in `measure` uses a prompt") && told.contains("`--inputs JSON`"), "{told}");
    let (code, _, told) = desk.said(&["run", "flow.yaml", "--components", WITH_PARTS]);
    assert_eq!(code, Some(2), "{told}");
    assert!(
        told.contains("the input `room` has no value and no default") && told.contains("`--inputs JSON`"),
        "{told}"
    );
    desk.write("graph.yaml", GRAPH);
    let (code, out, told) = desk.said(&["run", ".", "--inputs", r#"{"who": "x"}"#, "--json"]);
    assert_eq!(code, Some(2), "{told}");
    assert!(told.contains("`g` is not a flow") && told.contains("`--state JSON`"), "{told}");
    assert!(out.contains(r#""status":"refused""#), "{out}");
}

#[test]
fn parts_are_handed_in_and_a_run_of_them_goes_on_in_other_processes() {
    let desk = desk();
    let (code, _, told) = desk.said(&["check", "flow.yaml"]);
    assert_eq!(code, Some(2), "{told}");
    let (code, checked, told) = desk.said(&["check", "flow.yaml", "--components", WITH_PARTS]);
    assert_eq!(code, Some(0), "{checked}{told}");

    let inputs = r#"{"room": "kitchen"}"#;
    let run = ["run", "flow.yaml", "--inputs", inputs, "--components", WITH_PARTS, "--no-input"];
    let (code, _, told) = desk.said(&run);
    assert_eq!(code, Some(3), "{told}");
    assert!(told.contains("read_sensor") && told.contains(r#"{"room":"kitchen"}"#), "{told}");

    let run = desk.only_run();
    let (code, _, told) = desk.said(&["runs", "answer", run.as_str(), "21.6", "--resume"]);
    assert_eq!(code, Some(3), "{told}");
    assert!(told.contains("`note` waits for a message"), "{told}");
    let (code, result, told) = desk.said(&["runs", "answer", run.as_str(), "warm", "--resume"]);
    assert_eq!((code, result.trim()), (Some(0), r#"{"celsius":21,"why":"warm"}"#), "{told}");
}

#[test]
fn an_input_that_is_missing_or_unknown_is_named() {
    let desk = desk();
    for (inputs, named) in [("{}", "`room`"), (r#"{"room": "a", "rom": 1}"#, "`rom`")] {
        let (code, _, told) = desk.said(&["run", "flow.yaml", "--inputs", inputs, "--components", WITH_PARTS]);
        assert!(code != Some(0) && told.contains(named), "{inputs}: {told}");
    }
}

#[test]
fn agents_are_converted_or_it_is_said_what_cannot_be() {
    let desk = desk();
    desk.write("graph.yaml", GRAPH);
    desk.write("agent.yaml", CONVERSATION);
    desk.write("scripted.yaml", SCRIPTED);
    desk.write("a.js", "");
    // What is handed in stays apart, so it is handed in again.
    let sources = [("graph.yaml", &[][..]), ("agent.yaml", &[]), ("flow.yaml", &["--components", WITH_PARTS])];
    for (source, parts) in sources {
        let (code, written, told) = desk.said(&[&["convert", source], parts].concat());
        assert_eq!(code, Some(0), "{told}");
        assert!(!written.contains("read_sensor"), "{written}");
        desk.write("written.json", &written);
        let (code, checked, told) = desk.said(&[&["check", "written.json"], parts].concat());
        assert_eq!(code, Some(0), "{checked}{told}");
    }
    let (code, written, told) = desk.said(&["convert", "scripted.yaml"]);
    assert_eq!((code, written.as_str()), (Some(2), ""), "{told}");
    assert!(told.contains("`run`") && told.contains("runs a script"), "{told}");
}
