//! Templates: texts with names in double braces.

use std::sync::Arc;

use hotcell_graph::ir::{Expression, Rendered, UrlPart};
use hotcell_graph::{Object, Value};

use crate::agent_spec::placeholders::{Piece, pieces};
use crate::agent_spec::templates::jinja;

/// The text of a template; `value` gives the values of its names.
pub(super) fn text(template: &str, value: impl Fn(&str) -> Expression) -> Expression {
    let part = |piece: Piece<'_>| match piece {
        Piece::Literal(text) => Expression::Value(Value::from(text)),
        Piece::Name(name) => value(name),
    };
    Expression::Joined(pieces(template).map(part).collect())
}

/// The text of a template of the Jinja language, or of one with placeholders, which means the same in both.
pub(super) fn rendered(template: &str, is_jinja: bool, value: impl Fn(&str) -> Expression) -> Expression {
    match jinja(template).filter(|_| is_jinja) {
        Some(Ok(template)) => {
            let values = template.names().into_iter().map(|name| (Arc::from(&*name), value(&name))).collect();
            Expression::Rendered(Box::new(Rendered { template, values }))
        }
        _ => text(template, value),
    }
}

/// A JSON value whose texts, keys included, are templates.
pub(super) fn json(template: &Value, value: &impl Fn(&str) -> Expression) -> Expression {
    match template {
        Value::Text(template) => text(template, value),
        Value::List(items) => Expression::List(items.iter().map(|item| json(item, value)).collect()),
        Value::Object(object) => entries(object, value),
        other => Expression::Value(other.clone()),
    }
}

/// An object whose texts, keys included, are templates.
pub(super) fn entries(object: &Object, value: &impl Fn(&str) -> Expression) -> Expression {
    let entry = |(key, item): (&Arc<str>, &Value)| (text(key, value), json(item, value));
    Expression::Entries(object.iter().map(entry).collect())
}

/// An address with names: those before its path are used as they are, those behind stay within their segment.
pub(super) fn url(template: &str, value: impl Fn(&str) -> Expression) -> Vec<UrlPart> {
    // What is before the path, every name standing for one letter.
    let mut before = String::new();
    let mut parts = Vec::new();
    for piece in pieces(template) {
        parts.push(match piece {
            Piece::Literal(text) => {
                before.push_str(text);
                UrlPart::Literal(text.to_owned())
            }
            Piece::Name(name) if in_path(&before) => UrlPart::Encoded(value(name)),
            Piece::Name(name) => {
                before.push('x');
                UrlPart::Raw(value(name))
            }
        });
    }
    parts
}

/// Whether what follows this beginning of an address is in its path, query or fragment.
fn in_path(beginning: &str) -> bool {
    let behind_scheme = beginning.split_once("://").map_or(beginning, |(_, rest)| rest);
    behind_scheme.contains(['/', '?', '#'])
}
