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
mod tests;
