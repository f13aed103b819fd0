//! What a person sees for each kind of bad sherma file: `sherma/refused/*.yaml` are the inputs, the snapshots beside
//! them the complete output; `sherma/doubted` the same for what only gives warnings. And what a good file becomes.

use std::path::Path;
use std::sync::Arc;

use hotcell_dialects::sherma::{self, Choice, Loaded, Style};
use hotcell_graph::diagnostic::{SourceFile, render};
use hotcell_graph::ir::{Action, Callable, Next};

use crate::shown::{files_in, snapshots_in};
use crate::surroundings::Fake;

fn load(name: &str, text: &str) -> Loaded {
    let file = Arc::new(SourceFile { name: name.to_owned(), text: text.to_owned() });
    sherma::load(&file, Choice::Only, &Fake)
}

/// Loads every file of a folder and compares what is shown with the snapshot of its name.
fn shown(folder: &str, check: impl Fn(&str, &Loaded)) -> usize {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sherma").join(folder);
    let paths = files_in(&folder);
    snapshots_in(&folder).bind(|| {
        for path in &paths {
            let name = path.file_stem().unwrap().to_str().unwrap();
            let loaded = load(&format!("{name}.yaml"), &std::fs::read_to_string(path).unwrap());
            check(name, &loaded);
            insta::assert_snapshot!(name, render(&loaded.diagnostics, false));
        }
    });
    paths.len()
}

#[test]
fn every_kind_of_bad_input_is_explained() {
    let files = shown("refused", |name, loaded| assert!(loaded.graph.is_none(), "{name}"));
    assert!(files > 8, "the inputs are not there");
}

#[test]
fn what_is_doubtful_is_said_and_runs() {
    let files = shown("doubted", |name, loaded| assert!(loaded.graph.is_some(), "{name}"));
    assert!(files > 0, "the inputs are not there");
}

const DESK: &str = r#"
manifest_version: 1
llms: [{id: main, model_name: small}]
default_llm: {id: main}
tools: [{id: find, version: "1.0.0", import_path: my.tools.search}]
sub_agents: [{id: clerk, yaml_path: clerk.yaml}]
agents:
  desk:
    state: {fields: [{name: messages, type: list}, {name: n, type: float, default: 1}]}
    graph:
      entry_point: work
      nodes:
        - name: work
          type: call_llm
          args:
            prompt: [{role: messages, content: messages}]
            tools: [{id: find, version: "==1.0.0"}]
            use_sub_agents_as_tools: true
        - {name: note, type: set_state, args: {values: {n: double(size(messages))}}}
      edges:
        - {source: work, branches: [{condition: n > 2.0, target: note}]}
"#;

#[test]
fn a_node_with_tools_gets_a_tool_node() {
    let loaded = load("agent.yaml", DESK);
    assert!(loaded.diagnostics.is_empty(), "{}", render(&loaded.diagnostics, false));
    assert_eq!(loaded.style, Style::Bare);
    assert_eq!(
        loaded.children.iter().map(|child| (&*child.name, &*child.path)).collect::<Vec<_>>(),
        [("clerk", "clerk.yaml")]
    );
    let graph = loaded.graph.unwrap();
    let ids: Vec<&str> = graph.nodes().map(|(_, node)| &*node.id).collect();
    assert_eq!(ids, ["work", "note", "work_tools", "__end__"]);
    let Action::AnswerCalls(tools) = &graph.node(graph.find("work_tools").unwrap()).action else {
        panic!("no tool node")
    };
    assert!(
        matches!(&tools.tools[..], [Callable::Tool(tool), Callable::Agent { name, .. }] if tool == "search" && name == "clerk")
    );
    let Next::When { then, otherwise, .. } = &graph.node(graph.find("work").unwrap()).next else {
        panic!("no condition")
    };
    assert_eq!(**then, Next::To(vec![graph.find("work_tools").unwrap()]));
    assert_eq!(otherwise.targets(), [graph.find("note").unwrap(), graph.find("__end__").unwrap()]);
    assert_eq!(graph.initial_state.iter().map(|(_, value)| value.to_json()).collect::<Vec<_>>(), ["[]", "1.0"]);
    assert_eq!(graph.floats.iter().map(|key| &**key).collect::<Vec<_>>(), ["n"]);
}

#[test]
fn deep_files_are_refused_and_not_crashed_on() {
    let deep = format!("\"{}1\"", "(".repeat(60_000));
    let text = DESK.replace("double(size(messages))", &deep);
    assert!(load("agent.yaml", &text).graph.is_none());
}
