//! Learnt routes (`manager.routing`): of the agents that an agent always calls, those that came to nothing while others did well are left
//! out. Whoever serves the mesh says which.
//!
//! A condition always counts as it is: an edge with one is neither opened nor closed. Nor is anything left out that somebody waits for.

use std::collections::BTreeSet;

use hotcell_graph::Key;
use hotcell_graph::ir::{Composed, Expression};

use super::expressions::{composed, entry, key, list, or_else};
use super::schema::{Agent, Mesh};
use super::shapes::Shape;
use super::state::{BROUGHT, LEFT_OUT, OUTPUT, left_out};

/// The flags that an agent declares, in their order.
pub(super) fn flags(agent: &Agent) -> impl Iterator<Item = &Key> {
    agent.yields.iter().filter(|(_, field)| field.shape == Shape::Boolean).map(|(name, _)| name)
}

/// The agents that an agent always calls and of which some may be left out.
pub(super) fn learnable<'m>(agent: &'m Agent, mesh: &'m Mesh) -> impl Iterator<Item = &'m str> {
    let manager = mesh.manager.as_ref().and_then(|manager| manager.settings.as_ref());
    let learns = manager.is_some_and(|manager| manager.learning.is_some());
    let waited_for: BTreeSet<&str> = mesh
        .agents
        .iter()
        .filter(|_| learns)
        .filter_map(|agent| agent.wait.as_ref())
        .flat_map(|wait| wait.expression.agents())
        .map(|(name, _)| name)
        .collect();
    let waits = move |name: &str| mesh.agents.iter().any(|other| *other.name == *name && other.wait.is_some());
    let always = agent.edges.iter().filter(move |edge| learns && !edge.has_condition).map(|edge| &*edge.target.value);
    let several = always.clone().count() > 1;
    always.filter(move |name| several && !waited_for.contains(name) && !waits(name))
}

/// The condition of an edge that may be left out.
pub(super) fn condition(agent: &Agent, target: &str) -> Expression {
    let output = || entry(key(BROUGHT), OUTPUT);
    let mut parts = vec![Expression::Value(left_out(&agent.name, target).into())];
    for flag in flags(agent) {
        let value = Expression::TextOf(Box::new(or_else(entry(output(), flag), "")));
        parts.extend([Expression::Value(";".into()), value]);
    }
    let is_left_out = Composed::Contains(or_else(key(LEFT_OUT), list([])), Expression::Joined(parts));
    composed(Composed::Either {
        condition: composed(is_left_out),
        then: Expression::Value(false.into()),
        otherwise: Expression::Value(true.into()),
    })
}
