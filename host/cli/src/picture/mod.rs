//! Pictures of graphs and of runs: what there is to draw, as shapes and lines, and the forms in which it is drawn.
//!
//! Everything is taken from the graph IR and from journal entries, so that a picture shows what the engine runs and did,
//! not what a source file says.

mod dense;
mod dot;
mod history;
mod mermaid;
mod svg;

use hotcell_graph::ir::{Action, CallTarget, Expression, Graph, Next, NodeIndex, OnFailure};

pub(crate) use history::History;

use crate::narration::{counted, short};
use crate::picture::history::Seen;

/// A graph as shapes and lines between them.
pub(crate) struct Picture {
    title: String,
    /// Which run it shows
    subtitle: Option<String>,
    shapes: Vec<Shape>,
    lines: Vec<Line>,
    start: usize,
}

struct Shape {
    id: String,
    kind: &'static str,
    form: Form,
    fate: Fate,
    /// Visits and times
    detail: Option<String>,
}

/// What a node does, as far as it is drawn differently.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Step,
    Script,
    Model,
    Question,
    Map,
    End,
}

/// What became of a node in the run that is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// No run is shown
    Open,
    Done,
    /// Its action failed and the graph went on
    Failed,
    /// The run stopped here
    Stopped,
    Waiting,
    Unvisited,
}

struct Line {
    from: usize,
    to: usize,
    label: Option<String>,
    kind: LineKind,
    /// How often the run went this way; none if no run is shown
    taken: Option<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LineKind {
    /// Declared
    Route,
    /// Declared for failures
    Failure,
    /// From a map to the node it runs
    Item,
    /// Not declared: the run went this way because a script said so
    Chosen,
}

impl Picture {
    pub(crate) fn new(graph: &Graph, history: Option<&History>) -> Self {
        let shapes = graph
            .nodes()
            .map(|(_, node)| Shape {
                id: node.id.to_string(),
                kind: node.kind,
                form: form(&node.action),
                fate: history.map_or(Fate::Open, |history| fate(history.node(&node.id))),
                detail: history.and_then(|history| detail(history.node(&node.id))),
            })
            .collect();
        let mut lines: Vec<Line> = graph.nodes().flat_map(|(index, _)| declared(graph, index)).collect();
        if let Some(history) = history {
            for line in &mut lines {
                let from = &graph_id(graph, line.from);
                line.taken = Some(match line.kind {
                    LineKind::Item => history.node(&graph_id(graph, line.to)).map_or(0, |seen| seen.items),
                    _ => history.taken(from, &graph_id(graph, line.to)),
                });
            }
            let chosen = history.ways().filter_map(|(from, to, taken)| {
                let (from, to) = (graph.find(from)?, graph.find(to)?);
                let key = match &graph.node(from).action {
                    Action::Script(script) => script.route_key,
                    _ => None,
                };
                let (from, to) = (from.as_usize(), to.as_usize());
                let is_declared = lines.iter().any(|line| (line.from, line.to) == (from, to));
                let label = key.map(str::to_owned);
                (!is_declared).then_some(Line { from, to, label, kind: LineKind::Chosen, taken: Some(taken) })
            });
            let chosen: Vec<Line> = chosen.collect();
            lines.extend(chosen);
        }
        let subtitle = history.map(|history| history.title().to_owned());
        Picture { title: graph.name.clone(), subtitle, shapes, lines, start: graph.start.as_usize() }
    }
}

impl Picture {
    fn shows_run(&self) -> bool {
        self.subtitle.is_some()
    }

    fn whole_title(&self) -> String {
        match &self.subtitle {
            Some(subtitle) => format!("{} · {subtitle}", self.title),
            None => self.title.clone(),
        }
    }
}

impl Line {
    /// The words at the line: its label, and how often it was taken if that is more than once.
    fn words(&self) -> Option<String> {
        match (&self.label, self.taken) {
            (Some(label), Some(taken)) if taken > 1 => Some(format!("{label} ×{taken}")),
            (None, Some(taken)) if taken > 1 => Some(format!("×{taken}")),
            (label, _) => label.clone(),
        }
    }

    /// Whether the run did not go this way.
    fn is_idle(&self) -> bool {
        self.taken == Some(0)
    }
}

fn graph_id(graph: &Graph, node: usize) -> String {
    graph.nodes().nth(node).map_or(String::new(), |(_, node)| node.id.to_string())
}

fn form(action: &Action) -> Form {
    match action {
        Action::Script(_) => Form::Script,
        Action::Call(call) if matches!(call.target, CallTarget::Loop(_)) => Form::Model,
        Action::Ask(_) => Form::Question,
        Action::Map(_) => Form::Map,
        Action::PluginNode(_) | Action::AnswerCalls(_) => Form::Script,
        Action::Converse(_) => Form::Model,
        Action::End { .. } => Form::End,
        _ => Form::Step,
    }
}

fn fate(seen: Option<&Seen>) -> Fate {
    match seen {
        None => Fate::Unvisited,
        Some(seen) if seen.stopped => Fate::Stopped,
        Some(seen) if seen.waiting => Fate::Waiting,
        Some(seen) if seen.failures > 0 => Fate::Failed,
        Some(seen) if seen.visits + seen.items > 0 => Fate::Done,
        Some(_) => Fate::Unvisited,
    }
}

fn detail(seen: Option<&Seen>) -> Option<String> {
    let seen = seen?;
    let mut parts = Vec::new();
    if seen.visits > 1 {
        parts.push(counted(u64::from(seen.visits), "visit"));
    }
    if seen.items > 0 {
        parts.push(counted(u64::from(seen.items), "item"));
    }
    if seen.visits > 0 {
        parts.push(short(seen.total));
    }
    if seen.failures > 0 {
        parts.push(counted(u64::from(seen.failures), "failure"));
    }
    if seen.waiting {
        parts.push("waits".into());
    }
    if seen.stopped {
        parts.push("failed".into());
    }
    (!parts.is_empty()).then(|| parts.join(" · "))
}

/// The lines that a node declares; several ways from one node to another are one line.
fn declared(graph: &Graph, index: NodeIndex) -> Vec<Line> {
    let node = graph.node(index);
    let mut lines: Vec<Line> = Vec::new();
    let mut add = |to: NodeIndex, label: Option<String>, kind: LineKind| {
        let to = to.as_usize();
        match lines.iter_mut().find(|line| line.to == to) {
            Some(line) => {
                if let (Some(known), Some(label)) = (&mut line.label, label) {
                    known.push_str(&format!(" | {label}"));
                }
            }
            None => lines.push(Line { from: index.as_usize(), to, label, kind, taken: None }),
        }
    };
    routes(&node.next, None, &mut |target, label| add(target, label, LineKind::Route));
    if let Action::Map(map) = &node.action
        && let Some(items) = map.of_node()
    {
        add(items.branch, Some("each item".into()), LineKind::Item);
    }
    if let OnFailure::To(target) = node.on_failure {
        add(target, Some("on failure".into()), LineKind::Failure);
    }
    lines
}

/// Every target of a route with what leads there.
fn routes(next: &Next, label: Option<String>, add: &mut dyn FnMut(NodeIndex, Option<String>)) {
    match next {
        Next::To(targets) => targets.iter().for_each(|target| add(*target, label.clone())),
        Next::ByAnswer { routes, otherwise } | Next::ByValue { routes, otherwise, .. } => {
            routes.iter().for_each(|(answer, target)| add(*target, Some(answer.clone())));
            add(*otherwise, Some("else".into()));
        }
        Next::When { condition, then, otherwise } => {
            let shown = match condition {
                Expression::Formula(formula) => formula.source().to_owned(),
                Expression::AsksForTools(_) => "asks for tools".to_owned(),
                _ => "if".to_owned(),
            };
            routes(then, Some(shown), add);
            routes(otherwise, Some(label.unwrap_or_else(|| "else".into())), add);
        }
        Next::Each(all) => all.iter().for_each(|next| routes(next, label.clone(), add)),
        Next::Open(edges) => edges.iter().for_each(|edge| {
            let condition = match &edge.condition {
                Some(Expression::Formula(formula)) => Some(formula.source().to_owned()),
                Some(Expression::Meets { condition, .. }) => Some(condition.source().to_owned()),
                Some(_) => Some("if".to_owned()),
                None => label.clone(),
            };
            add(edge.target, condition);
        }),
    }
}

#[cfg(test)]
mod tests {
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
        Node {
            id: id.into(),
            kind,
            description: None,
            action,
            updates: Vec::new(),
            next,
            on_failure,
            timeout: None,
            span: Span::none(),
            join: Join::All,
            retry: None,
            implied_by: None,
        }
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
        let ask = AskAction {
            question: expression(),
            options: vec!["yes".into(), "no \"<&#1>\"".into()],
            only_options: false,
            default: None,
            check: None,
            trim: true,
            bind: "choice",
            deadline: None,
            asked: Default::default(),
        };
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
            let names: Vec<String> =
                (0..count).map(|number| format!("node_{number}")).chain(["sorry".into()]).collect();
            let ids = NodeIds::new(names.iter().map(String::as_str));
            let sorry = ids.get("sorry").unwrap();
            let nodes = names
                .iter()
                .map(|name| node(name, "script", script(None), Next::To(Vec::new()), OnFailure::To(sorry)))
                .take(count)
                .chain([node(
                    "sorry",
                    "end",
                    Action::End { output: expression() },
                    Next::To(Vec::new()),
                    OnFailure::Fail,
                )])
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
}
