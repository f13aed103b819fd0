//! Expressions of which graphs of meshes are made, and the names that agents and their callers share.

use hotcell_graph::ir::{Composed, Expression};
use hotcell_graph::{Key, List, Value};

use super::state::{BROUGHT, SESSION_ID};

/// Who had called the agent that gave it.
pub(super) const CALLER: &str = "caller";
/// What agents are given beside what the agent before them gave.
pub(super) const FROM_AGENT: &str = "from_agent";
pub(super) const UPSTREAM: &str = "upstream_yields";

pub(super) fn key(name: &str) -> Expression {
    Expression::Key(name.into())
}

pub(super) fn entry(of: Expression, name: &str) -> Expression {
    Expression::Entry(Box::new(of), name.into())
}

pub(super) fn composed(composed: Composed) -> Expression {
    Expression::Composed(Box::new(composed))
}

pub(super) fn or_else(first: Expression, second: impl Into<Value>) -> Expression {
    Expression::Else(Box::new(first), Box::new(Expression::Value(second.into())))
}

pub(super) fn object<'k>(entries: impl IntoIterator<Item = (&'k str, Expression)>) -> Expression {
    Expression::Object(entries.into_iter().map(|(name, value)| (Key::from(name), value)).collect())
}

pub(super) fn session() -> Expression {
    or_else(key(SESSION_ID), "")
}

pub(super) fn last() -> Expression {
    composed(Composed::Last(key(BROUGHT)))
}

/// A list of values.
pub(super) fn list(values: impl IntoIterator<Item = Value>) -> Value {
    Value::List(values.into_iter().collect::<List>())
}
