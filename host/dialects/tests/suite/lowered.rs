//! Good files: every field of the language, and what it becomes.

use std::sync::Arc;
use std::time::Duration;

use hotcell_dialects::loki::{self, Loaded};
use hotcell_graph::conversation::Speaker;
use hotcell_graph::diagnostic::{SourceFile, render};
use hotcell_graph::ir::{
    Action, AgentLoop, CallAction, CallTarget, Callable, CapOrigin, Comparison, Expression, Graph, Next, Node,
    NodeIndex, OnFailure, Said,
};
use hotcell_graph::{Reducer, Template, Value};

use crate::surroundings::Fake;

const EVERY_FIELD: &str = r##"
name: every-field
description: |
  Two lines
  of prose.
version: 1.0
model: test:large
temperature: 0.5
top_p: null
global_tools: [search.sh, add]
mcp_servers: [library]
conversation_starters: ["Look it up"]
settings:
  max_loop_iterations: 12
  log_state_snapshots: false
  validate_before_run: true
  timeout: 60.5
  max_concurrency: 2
variables:
  - { name: shelf, description: Which shelf, default: north }
  - { name: region, description: Where }
initial_state: &seed
  topic: "auth"
  big: 9007199254740993
  deep: { list: [1, 1.0, yes, null, true] }
reducers: { notes: append, total: sum }
start: split
nodes:
  split:
    id: split
    type: script
    description: Splits.
    script: ./scripts/../scripts/split.py
    timeout: 7
    fallback: sorry
    state_updates: { z: "{{a}}", b: plain }
    next: [one, two, one]
  one: { type: script, script: scripts/one.sh, next: ask }
  two:
    type: llm
    instructions: "Be {{topic}}"
    prompt: "{{initial_prompt}}"
    tools: [search, add.sh, search]
    model: test:small
    temperature: 0
    top_p: 0.25
    max_attempts: 3
    max_iterations: 4
    fallback: sorry
    output_schema: { type: object, properties: { y: { type: integer }, x: { $ref: "#/$defs/t" } }, $defs: { t: { type: string } } }
    state_updates: { seen: "{{output}}" }
    timeout: 1.5
    next: ask
  ask: { type: input, question: "Code?", default: "{{last}}", validation: " len(input)>=3 ", state_updates: { code: "{{input}}" }, next: gate }
  gate:
    type: approval
    question: "Go?"
    options: [yes, "no"]
    routes: { "yes": each, no: sorry }
    on_other: plain
    state_updates: { decision: "{{choice}}" }
  each: { type: map, over: " {{ deep.list }} ", as: item, branch: work, collect_into: results, output_key: found, max_concurrency: 3, next: done }
  each_plainly: { type: map, over: "{{xs}}", as: item, branch: work, collect_into: more, next: done }
  work: { type: script, script: scripts/work.wasm }
  plain: { type: llm, prompt: x, next: done }
  last: { type: llm, prompt: x }
  done: { type: end, output: "{{results}}", state_updates: { at: "now" } }
  sorry: { type: end }
"##;

fn load(text: &str) -> Loaded {
    loki::load(&Arc::new(SourceFile { name: "graph.yaml".into(), text: text.into() }), &Fake)
}

fn graph(text: &str) -> Graph {
    let loaded = load(text);
    loaded.graph.unwrap_or_else(|| panic!("{}", render(&loaded.diagnostics, false)))
}

fn ids(graph: &Graph, targets: &[NodeIndex]) -> Vec<String> {
    targets.iter().map(|target| graph.node(*target).id.to_string()).collect()
}

fn strict(text: &str) -> Expression {
    Expression::Strict(Template::parse(text))
}

fn lenient(text: &str) -> Expression {
    Expression::Lenient(Template::parse(text))
}

#[test]
fn the_top_level() {
    let loaded = load(EVERY_FIELD);
    let declarations = &loaded.declarations;
    assert_eq!(declarations.name, "every-field");
    assert_eq!(declarations.description.as_deref(), Some("Two lines\nof prose.\n"));
    assert_eq!(declarations.global_tools, ["search", "add"]);
    assert_eq!(declarations.mcp_servers, ["library"]);
    assert_eq!(declarations.conversation_starters, ["Look it up"]);

    let graph = graph(EVERY_FIELD);
    assert_eq!(graph.name, "every-field");
    assert_eq!(&*graph.node(graph.start).id, "split");
    assert_eq!(graph.input_key.as_deref(), Some("initial_prompt"));
    let seed: Vec<_> = graph.initial_state.iter().map(|(key, value)| format!("{key}={}", value.to_json())).collect();
    assert_eq!(seed, ["topic=\"auth\"", "big=9007199254740993", r#"deep={"list":[1,1.0,"yes",null,true]}"#]);
    assert_eq!(graph.reducers.get("notes"), Some(&Reducer::Append));
    assert_eq!(graph.reducers.get("total"), Some(&Reducer::Sum));
    let variables: Vec<_> = graph.variables.iter().map(|v| (&*v.name, &*v.description, v.default.as_deref())).collect();
    assert_eq!(variables, [("shelf", "Which shelf", Some("north")), ("region", "Where", None)]);
    let visits = graph.limits.visits_per_node.as_ref().unwrap();
    assert_eq!((visits.visits, &visits.origin), (12, &CapOrigin::Setting("max_loop_iterations")));
    assert_eq!(graph.limits.wall_clock, Some(Duration::from_millis(60_500)));
    assert_eq!(graph.limits.concurrency, 2);
    assert_eq!(graph.model.model.as_deref(), Some("test:large"));
    assert_eq!((graph.model.temperature, graph.model.top_p), (Some(0.5), None));
    assert!(!graph.log_state);
}

#[test]
fn the_defaults() {
    let graph = graph("name: g\nstart: a\nnodes:\n  a: { type: script, script: a.js, next: b }\n  b: { type: end }\n");
    assert_eq!(graph.limits.visits_per_node.as_ref().map(|cap| cap.visits), Some(100));
    assert_eq!((graph.limits.wall_clock, graph.limits.concurrency), (None, 8));
    assert!(graph.log_state);
    assert_eq!(graph.node(graph.start).timeout, Some(Duration::from_secs(30)));
    assert_eq!(graph.node(graph.start).on_failure, OnFailure::Continue);
    assert_eq!((graph.model.model.clone(), graph.model.temperature), (None, None));
}

#[test]
fn every_type_of_node() {
    let graph = graph(EVERY_FIELD);
    let node = |id: &str| graph.node(graph.find(id).unwrap());

    let split = node("split");
    assert_eq!((split.kind, split.description.as_deref()), ("script", Some("Splits.")));
    let Action::Script(script) = &split.action else { panic!("{:?}", split.action) };
    assert_eq!((&*script.file, script.route_key), ("scripts/split.py", Some("_next")));
    assert_eq!(split.timeout, Some(Duration::from_secs(7)));
    assert_eq!(ids(&graph, &split.next.targets()), ["one", "two"]);
    assert_eq!(split.on_failure, OnFailure::To(graph.find("sorry").unwrap()));
    let updates: Vec<_> = split.updates.iter().map(|update| (&*update.key, update.value.clone())).collect();
    assert_eq!(updates, [("z", lenient("{{a}}")), ("b", lenient("plain"))]);
    assert_eq!(split.span.line_column(), (29, 3));

    let two = node("two");
    let (call, model) = agent_loop(two);
    let [instructions, prompt, _said] = &model.prompt[..] else { panic!("{:?}", model.prompt) };
    let (Said::Text(Speaker::System, instructions), Said::Text(Speaker::Human, prompt)) =
        (&instructions.said, &prompt.said)
    else {
        panic!("{:?}", model.prompt)
    };
    let Expression::Joined(parts) = instructions else { panic!("{instructions:?}") };
    assert_eq!(parts[0], strict("Be {{topic}}"));
    assert!(matches!(&parts[1], Expression::Value(hint) if hint.to_display().contains("matches this schema")));
    assert_eq!(*prompt, strict("{{initial_prompt}}"));
    assert_eq!(model.tools, ["search", "add"].map(|tool| Callable::Tool(tool.to_owned())));
    assert_eq!(model.settings.model.as_deref(), Some("test:small"));
    assert_eq!((model.settings.temperature, model.settings.top_p), (Some(0.0), Some(0.25)));
    assert_eq!((model.retry.attempts, model.cap.as_ref().map(|cap| cap.requests)), (3, Some(4)));
    assert_eq!((call.bind, call.failure_prefix.as_deref()), ("output", Some("LLM node failed: ")));
    let structure = call.contract.as_ref().unwrap();
    assert_eq!(structure.merge.iter().map(|key| &**key).collect::<Vec<_>>(), ["y", "x"]);
    assert!(structure.schema.to_json().starts_with(r#"{"type":"object","properties":{"y":"#));
    assert_eq!(two.timeout, Some(Duration::from_millis(1500)));
    assert_eq!(two.on_failure, OnFailure::To(graph.find("sorry").unwrap()));

    let plain = node("plain");
    let (_, model) = agent_loop(plain);
    assert_eq!((model.retry.attempts, model.cap.as_ref().map(|cap| cap.requests)), (1, Some(10)));
    assert!(model.tools.is_empty());
    assert_eq!((plain.timeout, &plain.on_failure), (None, &OnFailure::Continue));
    assert_eq!(node("last").on_failure, OnFailure::Fail);
    assert_eq!(node("last").next, Next::To(Vec::new()));

    let ask = node("ask");
    let Action::Ask(input) = &ask.action else { panic!("{:?}", ask.action) };
    assert_eq!((&input.question, &input.default), (&strict("Code?"), &Some(lenient("{{last}}"))));
    let check = input.check.as_ref().unwrap();
    assert_eq!((check.operator, check.length, &*check.source), (Comparison::GreaterOrEqual, 3, " len(input)>=3 "));
    assert_eq!((input.trim, input.bind, ask.timeout), (false, "input", None));
    assert_eq!(ask.on_failure, OnFailure::Fail);

    let gate = node("gate");
    let Action::Ask(approval) = &gate.action else { panic!("{:?}", gate.action) };
    assert_eq!(approval.options, ["yes", "no"]);
    assert_eq!((approval.trim, approval.bind), (true, "choice"));
    let Next::ByAnswer { routes, otherwise } = &gate.next else { panic!("{:?}", gate.next) };
    let routes: Vec<_> = routes.iter().map(|(answer, to)| (&**answer, &*graph.node(*to).id)).collect();
    assert_eq!(routes, [("yes", "each"), ("no", "sorry")]);
    assert_eq!(&*graph.node(*otherwise).id, "plain");

    let Action::Map(each) = &node("each").action else { panic!("not a map") };
    let map = each.of_node().unwrap();
    assert_eq!(map.over.single_reference().unwrap().as_str(), "deep.list");
    assert_eq!((&*map.item_key, &*map.output_key, &*map.collect_into), ("item", "found", "results"));
    assert_eq!((&*graph.node(map.branch).id, each.concurrency), ("work", Some(3)));
    let Action::Map(each) = &node("each_plainly").action else { panic!("not a map") };
    assert_eq!((&*each.of_node().unwrap().output_key, each.concurrency), ("output", None));
    assert_eq!(node("work").next, Next::To(Vec::new()));
    assert_eq!(node("work").on_failure, OnFailure::Fail);

    let Action::End { output } = &node("done").action else { panic!("not an end") };
    assert_eq!(output, &strict("{{results}}"));
    assert_eq!(&*node("done").updates[0].key, "at");
    let Action::End { output } = &node("sorry").action else { panic!("not an end") };
    assert_eq!(output, &strict(""));
}

#[test]
fn aliases_and_merge_keys_are_resolved() {
    let graph = graph(
        r#"
name: g
start: a
initial_state:
  base: &base { a: 1, b: [x] }
  other: &other { b: 2, c: 3 }
  merged: { <<: [*base, *other], c: own }
  copy: *base
nodes:
  a: { type: llm, prompt: &p "ask", state_updates: { r: *p }, next: done }
  done: { type: end }
"#,
    );
    let seed: Vec<_> = graph.initial_state.iter().map(|(key, value)| format!("{key}={}", value.to_json())).collect();
    assert_eq!(
        seed,
        [
            r#"base={"a":1,"b":["x"]}"#,
            r#"other={"b":2,"c":3}"#,
            r#"merged={"c":"own","a":1,"b":["x"]}"#,
            r#"copy={"a":1,"b":["x"]}"#,
        ]
    );
    assert_eq!(graph.node(graph.start).updates[0].value, lenient("ask"));
}

#[test]
fn json_is_read_as_well() {
    let text = r#"{"name": "g", "start": "a", "initial_state": {"n": 18446744073709551616, "t": "\u00e9\n"},
        "nodes": {"a": {"type": "end", "output": "{{t}}"}}}"#;
    let loaded = loki::load(&Arc::new(SourceFile { name: "graph.json".into(), text: text.into() }), &Fake);
    let graph = loaded.graph.unwrap_or_else(|| panic!("{}", render(&loaded.diagnostics, false)));
    assert_eq!(graph.initial_state[0].1.to_json(), "18446744073709551616");
    assert_eq!(graph.initial_state[1].1, Value::text("é\n"));
}

#[test]
fn without_validation_names_of_no_node_lead_to_a_node_that_is_absent() {
    let graph = graph(
        r#"
name: g
settings: { validate_before_run: false }
start: a
nodes:
  a: { type: script, script: scripts/missing.py, fallback: gone, next: [nowhere, b] }
  b: { type: approval, question: q, options: [x, y], routes: { x: a }, on_other: nowhere }
"#,
    );
    let a = graph.node(graph.start);
    assert_eq!(ids(&graph, &a.next.targets()), ["nowhere", "b"]);
    assert_eq!(a.on_failure, OnFailure::To(graph.find("gone").unwrap()));
    let nowhere = graph.node(graph.find("nowhere").unwrap());
    assert!(matches!(nowhere.action, Action::Absent), "{:?}", nowhere.action);
    assert_eq!(nowhere.span.line_column(), (6, 73));
}

/// The loop that a node is.
fn agent_loop(node: &Node) -> (&CallAction, &AgentLoop) {
    let Action::Call(call) = &node.action else { panic!("{:?}", node.action) };
    let CallTarget::Loop(steps) = &call.target else { panic!("{:?}", call.target) };
    (call, &steps.agent)
}
