//! Where a node goes.

use hotcell_graph::ir::{Edge, Expression, Graph, Next, NoValue, NodeIndex};
use hotcell_graph::{Effort, State, Value};
use thiserror::Error;

/// Why a node does not know where it goes.
#[derive(Debug, Error)]
pub(crate) enum RouteError {
    /// What its answer is chosen by has no value
    #[error(transparent)]
    Value(NoValue),
    /// A condition has no value
    #[error("a condition of its edges: {0}")]
    Condition(#[source] NoValue),
    /// A condition has another value than true and false
    #[error("a condition of its edges has to be true or false, and{source_text} gave {kind}")]
    NotBoolean {
        /// The condition as it is written, if that is known
        source_text: String,
        kind: &'static str,
    },
}

/// The declared targets of a node for an answer and the state that it left, duplicates collapsed.
pub(crate) fn declared_route(
    graph: &Graph,
    node: NodeIndex,
    answer: Option<&str>,
    state: &State,
) -> Result<Vec<NodeIndex>, RouteError> {
    let _effort = Effort::begin();
    let mut targets = Vec::new();
    collect_route(&graph.node(node).next, answer, state, &mut targets)?;
    Ok(targets)
}

fn collect_route(
    next: &Next,
    answer: Option<&str>,
    state: &State,
    into: &mut Vec<NodeIndex>,
) -> Result<(), RouteError> {
    let mut add = |target: NodeIndex| {
        if !into.contains(&target) {
            into.push(target);
        }
    };
    match next {
        Next::To(targets) => targets.iter().copied().for_each(add),
        Next::ByAnswer { routes, otherwise } => {
            let known = routes.iter().find(|(text, _)| Some(text.as_str()) == answer);
            add(known.map_or(*otherwise, |(_, target)| *target));
        }
        Next::ByValue { value, routes, otherwise } => {
            let value = value.evaluate(state).map_err(RouteError::Value)?;
            let known = routes.iter().find(|(text, _)| Some(text.as_str()) == value.as_text());
            add(known.map_or(*otherwise, |(_, target)| *target));
        }
        Next::When { condition, then, otherwise } => {
            let next = match condition.evaluate(state) {
                Ok(Value::Bool(true)) => then,
                Ok(Value::Bool(false)) => otherwise,
                Ok(other) => {
                    let source_text = match condition {
                        Expression::Formula(formula) => format!(" `{}`", formula.source()),
                        _ => String::new(),
                    };
                    return Err(RouteError::NotBoolean { source_text, kind: other.a_kind() });
                }
                Err(error) => return Err(RouteError::Condition(error)),
            };
            collect_route(next, answer, state, into)?;
        }
        Next::Each(all) => {
            for next in all {
                collect_route(next, answer, state, into)?;
            }
        }
        Next::Open(edges) => {
            let is_open = |edge: &&Edge| match edge.condition.as_ref().map(|condition| condition.evaluate(state)) {
                None | Some(Ok(Value::Bool(true))) => true,
                Some(Ok(_)) => false,
                Some(Err(error)) => {
                    tracing::debug!(target: "hotcell::graph", %error, "an edge is closed");
                    false
                }
            };
            edges.iter().filter(is_open).for_each(|edge| add(edge.target));
        }
    }
    Ok(())
}
