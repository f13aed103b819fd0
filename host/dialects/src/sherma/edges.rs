//! Edges: where a run begins and where each node leads.

use hotcell_graph::closest;
use hotcell_graph::diagnostic::Diagnostic;
use hotcell_graph::formula::Wanted;
use hotcell_graph::ir::{Expression, Next, NodeIds, NodeIndex};

use super::lowering::Lowering;
use super::names::is_native;
use super::schema::{Agent, Body, END, Edge, MESSAGES, Route, START};
use crate::document::SourceText;

/// Where a run begins.
pub(super) struct Start<'s> {
    /// The node that runs first
    pub(super) node: String,
    /// Where that leads, if it is a node that nobody wrote
    pub(super) implied: Option<Implied<'s>>,
}

/// Where a node leads that nobody wrote, once every node has its index.
type Implied<'s> = Box<dyn Fn(&NodeIds) -> Option<Next> + 's>;

/// Exactly one of `entry_point` and edges from `__start__`.
pub(super) fn start<'s>(lowering: &'s Lowering<'_, '_, '_>) -> Option<Start<'s>> {
    let agent = lowering.agent;
    let edges: Vec<&Edge> = agent.edges.iter().filter(|edge| &*edge.source == START).collect();
    let report = |message: String, span| {
        lowering.reader.report(Diagnostic::error(message).at(span).help("give exactly one of them"))
    };
    match (&agent.entry, &edges[..]) {
        (Some(_), [edge, ..]) => {
            report(format!("there are both `entry_point` and an edge from `{START}`"), &edge.source.span);
            None
        }
        (None, []) => {
            let name = &agent.name.value;
            report(
                format!("the agent `{name}` has neither `entry_point` nor an edge from `{START}`"),
                &agent.name.span,
            );
            None
        }
        (Some(entry), []) => {
            known(lowering, None, entry, false).then(|| Start { node: entry.to_string(), implied: None })
        }
        (None, [Edge { route: Route::To(target), .. }]) if &**target != END => {
            known(lowering, None, target, true).then(|| Start { node: target.to_string(), implied: None })
        }
        (None, [first, ..]) => {
            let source = &first.source;
            Some(Start { node: START.to_owned(), implied: Some(Box::new(move |ids| next(lowering, source, ids))) })
        }
    }
}

/// Whether a node leads to a tool node of its own.
pub(super) fn leads_to_tool_node(agent: &Agent, source: &str) -> bool {
    let is_tool_node =
        |target: &SourceText| agent.node(target).is_some_and(|node| matches!(node.body, Body::ToolNode(_)));
    agent.edges.iter().filter(|edge| &*edge.source == source).any(|edge| match &edge.route {
        Route::To(target) => is_tool_node(target),
        Route::Branches { branches, default } => {
            branches.iter().map(|(_, target)| target).chain(default).any(is_tool_node)
        }
    })
}

/// Edges whose source is no node.
pub(super) fn check(lowering: &Lowering<'_, '_, '_>) {
    for edge in &lowering.agent.edges {
        if &*edge.source != START && lowering.agent.node(&edge.source).is_none() {
            known(lowering, None, &edge.source, false);
        }
    }
}

/// Where a node leads: several edges are followed side by side, no edge ends the run.
pub(super) fn next(lowering: &Lowering<'_, '_, '_>, source: &SourceText, ids: &NodeIds) -> Option<Next> {
    let end = ids.get(END)?;
    let mut all = Vec::new();
    let mut complete = true;
    for edge in lowering.agent.edges.iter().filter(|edge| *edge.source == **source) {
        match route(lowering, source, &edge.route, ids, end) {
            Some(next) => all.push(next),
            None => complete = false,
        }
    }
    if !complete {
        return None;
    }
    Some(match all.len() {
        0 => Next::To(vec![end]),
        1 => all.remove(0),
        _ => Next::Each(all),
    })
}

fn route(
    lowering: &Lowering<'_, '_, '_>,
    source: &SourceText,
    route: &Route,
    ids: &NodeIds,
    end: NodeIndex,
) -> Option<Next> {
    let to = |target: &SourceText| self::target(lowering, source, target, ids).map(|target| Next::To(vec![target]));
    match route {
        Route::To(target) => to(target),
        Route::Branches { branches, default } => {
            let mut next = match default {
                Some(target) => to(target),
                None => Some(Next::To(vec![end])),
            };
            for (condition, target) in branches.iter().rev() {
                let condition = self::condition(lowering, source, condition);
                let then = to(target);
                next = match (condition, then, next) {
                    (Some(condition), Some(then), Some(otherwise)) => {
                        Some(Next::When { condition, then: Box::new(then), otherwise: Box::new(otherwise) })
                    }
                    _ => None,
                };
            }
            next
        }
    }
}

/// A condition: a formula, or the name of the question whether the last reply asks for tools.
fn condition(lowering: &Lowering<'_, '_, '_>, source: &SourceText, condition: &SourceText) -> Option<Expression> {
    if is_native(condition) && lowering.agent.fields.iter().any(|field| &*field.name == MESSAGES) {
        return Some(Expression::AsksForTools(MESSAGES.into()));
    }
    let formula = lowering.names.compile(condition, "a condition", source, &Wanted::Condition);
    formula.map(Expression::Formula)
}

/// The index of a target.
pub(super) fn target(
    lowering: &Lowering<'_, '_, '_>,
    source: &SourceText,
    target: &SourceText,
    ids: &NodeIds,
) -> Option<NodeIndex> {
    if &**target == END || known(lowering, Some(source), target, true) { ids.get(target) } else { None }
}

/// Whether a name is that of a node; it is an error if not. Where something leads to, it may be the end.
fn known(lowering: &Lowering<'_, '_, '_>, source: Option<&SourceText>, name: &SourceText, is_target: bool) -> bool {
    if lowering.agent.node(name).is_some() {
        return true;
    }
    // That there is no node at all, or none that could be read, is reported.
    if lowering.agent.nodes.is_empty() && !matches!(&**name, END | START) {
        return false;
    }
    let nodes = lowering.agent.nodes.iter().map(|node| &*node.name).chain(is_target.then_some(END));
    let (message, help) = match (&**name, closest(name, nodes)) {
        (END, _) => (format!("nothing begins at `{END}`"), "a run ends there: name a node of the graph".to_owned()),
        (START, _) => {
            (format!("nothing leads to `{START}`"), "a run begins there: name a node of the graph".to_owned())
        }
        (name, Some(near)) => (format!("there is no node `{name}`"), format!("did you mean `{near}`?")),
        (name, None) if is_target => {
            (format!("there is no node `{name}`"), format!("name a node of the graph, or `{END}`"))
        }
        (name, None) => (format!("there is no node `{name}`"), "name a node of the graph".to_owned()),
    };
    let mut error = Diagnostic::error(message).at(&name.span).help(help);
    error.node = source.map(|source| source.to_string());
    lowering.reader.report(error);
    false
}
