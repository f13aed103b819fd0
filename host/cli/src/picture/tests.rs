//! Pictures of one graph and of one run of it, in every form.

use std::time::{Duration, UNIX_EPOCH};

use hotcell_graph::diagnostic::Span;
use hotcell_graph::ir::{AgentLoop, AskAction, CallAction, Join, Node, NodeIds, NodeItems, ScriptAction};
use hotcell_graph::{Object, Template, Value};
use hotcell_runtime::{Completed, Entry, EntryPath, Fact, RunHeader, RunRecord, RunStatus};

use super::*;

const IDS: [&str; 8] = ["read", "triage", "triage_one", "count", "write", "by_rule", "approve", "sent"];

fn expression() -> Expression {
    Expression::Value(Value::from("text"))
}

fn script(route_key: Option<&'static str>) -> Action {
    Action::Script(ScriptAction { file: "a.js".into(), route_key })
}

fn node(id: &str, kind: &'static str, action: Action, next: Next, on_failure: OnFailure) -> Node {
    Node { on_failure, join: Join::All, ..Node::new(id, kind, action, next, &Span::none()) }
}

/// One node of every form, every kind of line, and text that a format could stumble over.
fn graph() -> Graph {
    let ids = NodeIds::new(IDS);
    let at = |id: &str| ids.get(id).unwrap();
    let to = |targets: &[&str]| Next::To(targets.iter().map(|id| at(id)).collect());
    let map = NodeItems {
        over: Template::parse("{{messages}}"),
        item_key: "message".into(),
        branch: at("triage_one"),
        output_key: "ticket".into(),
        collect_into: "tickets".into(),
    }
    .at_a_time(None);
    let target = CallTarget::Loop(std::sync::Arc::new(AgentLoop::default().into_graph()));
    let model = CallAction { target, contract: None, failure_prefix: None, bind: "output" };
    let options = vec!["yes".into(), "no \"<&#1>\"".into()];
    let ask = AskAction { options, trim: true, ..AskAction::new(expression(), "choice") };
    let routes = vec![("yes".into(), at("sent")), ("no \"<&#1>\"".into(), at("read")), ("ok".into(), at("sent"))];
    let nodes = vec![
        node("read", "script", script(Some("_next")), to(&["triage", "count"]), OnFailure::Fail),
        node("triage", "map", Action::Map(map), to(&["write"]), OnFailure::Fail),
        node("triage_one", "script", script(Some("_next")), to(&[]), OnFailure::Fail),
        node("count", "script", script(Some("_next")), to(&["write"]), OnFailure::Fail),
        node("write", "llm", Action::Call(Box::new(model)), to(&["approve"]), OnFailure::To(at("by_rule"))),
        node("by_rule", "script", script(Some("_next")), to(&["approve"]), OnFailure::Continue),
        node(
            "approve",
            "approval",
            Action::Ask(ask),
            Next::ByAnswer { routes, otherwise: at("write") },
            OnFailure::Fail,
        ),
        node("sent", "end", Action::End { output: expression() }, to(&[]), OnFailure::Fail),
    ];
    Graph::new("support \"triage\" <1>", nodes, "read").unwrap()
}

fn turn(number: u32, node: &str, next: &[&str], failure: Option<&str>) -> Entry {
    Entry {
        place: EntryPath::from(number.to_string()),
        fact: Fact::Completed(Completed {
            node: node.into(),
            writes: Vec::new(),
            next: Some(next.iter().map(|id| (*id).to_owned()).collect()),
            output: None,
            failure_kind: None,
            failure: failure.map(str::to_owned),
            handled: false,
            elapsed: Duration::from_micros(1_500 * u64::from(number)),
            account: Default::default(),
        }),
    }
}

fn item(turn: u32, number: u32) -> Entry {
    let fact = Fact::Effect {
        number: 0,
        kind: "item".into(),
        subject: String::new(),
        answer: Value::from(true),
        account: Default::default(),
    };
    Entry { place: EntryPath::from(format!("{turn}.{number}")), fact }
}

fn history(graph: &Graph, status: RunStatus, outcome: Option<&str>) -> History {
    let entries = [
        turn(1, "read", &["triage", "count"], None),
        item(2, 0),
        item(2, 1),
        turn(2, "triage", &["write"], None),
        turn(3, "count", &["write"], None),
        turn(4, "write", &["by_rule"], Some("no model")),
        turn(5, "by_rule", &["write"], None),
        turn(6, "write", &["by_rule"], Some("no model")),
        turn(7, "by_rule", &["approve"], None),
    ];
    let record = RunRecord {
        id: "k3m9x2ab".to_owned().into(),
        header: RunHeader {
            graph: graph.name.clone(),
            source: "graph.yaml".into(),
            digest: String::new(),
            kept: false,
            given: Object::default(),
        },
        revision: None,
        status,
        created: UNIX_EPOCH,
        updated: UNIX_EPOCH,
        outcome: outcome.map(str::to_owned),
    };
    History::read(&record, &entries, graph)
}

#[test]
fn a_graph_in_every_form() {
    let graph = graph();
    let picture = Picture::new(&graph, None);
    insta::assert_snapshot!("graph_mermaid", picture.mermaid());
    insta::assert_snapshot!("graph_dot", picture.dot());
    insta::assert_snapshot!("graph_svg", picture.svg());
}

#[test]
fn a_run_in_every_form() {
    let graph = graph();
    let history = history(&graph, RunStatus::Failed, Some("node `approve` failed: `question`: x is missing"));
    let picture = Picture::new(&graph, Some(&history));
    insta::assert_snapshot!("run_mermaid", picture.mermaid());
    insta::assert_snapshot!("run_dot", picture.dot());
    insta::assert_snapshot!("run_svg", picture.svg());
}

#[test]
fn what_a_run_did_is_counted() {
    let graph = graph();
    let history = history(&graph, RunStatus::Failed, Some("node `approve` failed: `question`: x is missing"));
    let picture = Picture::new(&graph, Some(&history));
    let details: Vec<Option<&str>> = picture.shapes.iter().map(|shape| shape.detail.as_deref()).collect();
    let expected = [
        Some("1.5 ms"),
        Some("3.0 ms"),
        Some("2 items"),
        Some("4.5 ms"),
        Some("2 visits · 15.0 ms · 2 failures"),
        Some("2 visits · 18.0 ms"),
        Some("failed"),
        None,
    ];
    assert_eq!(details, expected);
    // `by_rule` went back to `write` although nothing declares that.
    let chosen: Vec<_> = picture.lines.iter().filter(|line| line.kind == LineKind::Chosen).collect();
    assert_eq!(chosen.len(), 1);
    assert_eq!((chosen[0].from, chosen[0].to, chosen[0].label.as_deref()), (5, 4, Some("_next")));
}

#[test]
fn many_failure_lines_to_one_node_are_folded() {
    for (count, drawn) in [(6, true), (7, false)] {
        let names: Vec<String> = (0..count).map(|number| format!("node_{number}")).chain(["sorry".into()]).collect();
        let ids = NodeIds::new(names.iter().map(String::as_str));
        let sorry = ids.get("sorry").unwrap();
        let nodes = names
            .iter()
            .map(|name| node(name, "script", script(None), Next::To(Vec::new()), OnFailure::To(sorry)))
            .take(count)
            .chain([node("sorry", "end", Action::End { output: expression() }, Next::To(Vec::new()), OnFailure::Fail)])
            .collect();
        let svg = Picture::new(&Graph::new("folded", nodes, "node_0").unwrap(), None).svg();
        assert_eq!(svg.matches(">on failure<").count(), if drawn { count } else { 0 });
        assert_eq!(svg.matches(">on failure → sorry<").count(), if drawn { 0 } else { count });
    }
}

#[test]
fn every_shape_of_graph_has_a_layout() {
    let mut seed = 7_u64;
    let mut random = move |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    for _ in 0..60 {
        let count = 1 + random(14);
        let names: Vec<String> = (0..count).map(|number| format!("node_{number}")).collect();
        let ids = NodeIds::new(names.iter().map(String::as_str));
        let nodes = names
            .iter()
            .map(|name| {
                let targets = (0..random(4)).filter_map(|_| ids.get(&names[random(count) as usize])).collect();
                node(name, "script", script(None), Next::To(targets), OnFailure::Continue)
            })
            .collect();
        let graph = Graph::new("random", nodes, "node_0").unwrap();
        let svg = Picture::new(&graph, None).svg();
        assert_eq!(svg.matches("text-anchor").count(), 2 * count as usize);
        assert!(!svg.contains("NaN"), "{svg}");
    }
}

/// A viewer of Mermaid follows `%%{…}%%` wherever it stands, and takes single quotes for double ones.
#[test]
fn no_name_is_an_instruction_to_a_viewer() {
    let name = "%%{init: {'themeCSS': '.node { display: none }'}}%%";
    let shape = Shape { id: name.into(), kind: "end", form: Form::End, fate: Fate::Open, detail: None };
    let picture = Picture { title: name.into(), subtitle: None, shapes: vec![shape], lines: Vec::new(), start: 0 };
    let text = picture.mermaid();
    assert!(text.contains("themeCSS") && !text.contains("%%{"), "{text}");
}
