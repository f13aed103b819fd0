//! Which expressions only say where a value is, and what the end of a graph gives.

use hotcell_graph::formula::{Place, Plain};
use hotcell_graph::ir::{Expression, Node};
use hotcell_graph::{Key, Template, Value};
use serde_json::{Map, Value as Json, json};

use super::slots::{Read, Slot};
use super::{Exporter, RESULT};

/// What an expression is, if it computes nothing.
pub(super) fn plain(expression: &Expression) -> Option<Plain> {
    match expression {
        Expression::Value(value) => Some(Plain::Value(value.clone())),
        Expression::Formula(formula) => formula.plain(),
        Expression::Strict(template) | Expression::Lenient(template) => match single(template) {
            Some(root) => Some(Plain::Place(Place { root, steps: Vec::new() })),
            None if template.references().next().is_none() => Some(Plain::Value(Value::text(template.source()))),
            None => None,
        },
        _ => None,
    }
}

/// The key that a template is nothing but a reference to.
pub(super) fn single(template: &Template) -> Option<Key> {
    let path = template.single_reference()?;
    path.root().filter(|root| *root == path.as_str()).map(Key::from)
}

/// The value of what is always the same.
pub(super) fn constant(expression: &Expression) -> Option<Json> {
    match expression {
        Expression::List(items) => items.iter().map(constant).collect(),
        Expression::Object(entries) => {
            let entries = entries.iter().map(|(key, entry)| Some((key.to_string(), constant(entry)?)));
            entries.collect::<Option<Map<String, Json>>>().map(Json::Object)
        }
        other => match plain(other)? {
            Plain::Value(value) => Some(Json::from(&value)),
            _ => None,
        },
    }
}

impl Exporter<'_> {
    /// What the end of a graph gives, as an input of an EndNode.
    pub(super) fn result(&mut self, node: &Node, output: &Expression) -> Json {
        let mut property = json!({"title": RESULT});
        match output {
            Expression::LastReply { required, .. } => {
                if !required {
                    property["default"] = Json::from("");
                }
                let (node, input) = (node.id.to_string(), RESULT.to_owned());
                self.readers.push(Read { node, input, slot: Slot::LastReply, required: *required });
            }
            Expression::Strict(template) | Expression::Lenient(template)
                if single(template).is_none() && template.references().next().is_some() =>
            {
                let source = template.source();
                self.problem(
                    node,
                    format!("makes a text of values, `{source}`, and an EndNode gives values as they are"),
                );
            }
            other => match plain(other) {
                Some(Plain::Value(value)) => property["default"] = Json::from(&value),
                Some(Plain::Place(place)) => {
                    if let Some(slot) = self.slot(node, &place, false) {
                        self.read(&node.id, RESULT, slot);
                    }
                }
                _ => self.problem(node, "computes its result, and an EndNode gives values as they are"),
            },
        }
        property
    }
}
