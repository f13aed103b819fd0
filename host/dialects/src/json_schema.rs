//! JSON schemas that a file holds: each must be valid and complete in itself.

use hotcell_graph::Value;
use hotcell_graph::diagnostic::Diagnostic;
use hotcell_graph::json_schema::{JsonSchema, SchemaProblem};

use crate::document::{Fields, Kind, Need, Node, Place};

/// Reads the field `name`, with its node; none if it is left out or wrong.
pub(crate) fn read<'d>(fields: &mut Fields<'_, 'd>, name: &'static str, need: Need) -> Option<(&'d Node, Value)> {
    let node = fields.node(name, need)?;
    Some((node, of_node(fields, node, name)?))
}

/// The schema that a node of these fields is, called `name`; none, with an error, if it is wrong.
pub(crate) fn of_node(fields: &Fields<'_, '_>, node: &Node, name: &str) -> Option<Value> {
    let reader = fields.reader();
    if !matches!(node.kind, Kind::Map(_)) {
        reader.wrong_type(node, &format!("`{name}`"), "a mapping", fields.owner());
        return None;
    }
    let value = node.to_value();
    let schema = serde_json::Value::from(&value);
    if let Err(problem) = JsonSchema::compile(&schema) {
        let diagnostic = match (problem, bad_reference(node, node)) {
            (SchemaProblem::TooMuch(what), _) => fields
                .error(format!("the `{name}` asks for too much: {what}"), &reader.span(node.place))
                .help("refer to the same part from fewer places, and nest less"),
            (_, Some((place, reference))) => fields
                .error(format!("the `{name}` refers to `{reference}`, which it does not hold"), &reader.span(place))
                .help("refer to parts of the same schema, such as `#/$defs/name`; nothing is fetched"),
            (SchemaProblem::Invalid(error), None) => invalid(fields, name, node, &error),
        };
        reader.report(diagnostic);
        return None;
    }
    Some(value)
}

fn invalid(fields: &Fields<'_, '_>, name: &str, schema: &Node, error: &jsonschema::ValidationError<'_>) -> Diagnostic {
    let path = error.instance_path().as_str();
    let place = schema.nearest(path.split('/').skip(1)).place;
    let help = match path.rsplit('/').next() {
        Some("type") => "the types are `object`, `array`, `string`, `number`, `integer`, `boolean` and `null`",
        _ => "write a JSON Schema, such as `{ type: object, properties: { name: { type: string } } }`",
    };
    fields.error(format!("the `{name}` is not a valid JSON Schema: {error}"), &fields.reader().span(place)).help(help)
}

/// The first `$ref` that leads out of the schema or to nothing in it.
fn bad_reference<'n>(schema: &Node, node: &'n Node) -> Option<(Place, &'n str)> {
    match &node.kind {
        Kind::List(items) => items.iter().find_map(|item| bad_reference(schema, item)),
        Kind::Map(entries) => entries.iter().find_map(|entry| match &entry.value.kind {
            Kind::Text(text) if &*entry.key == "$ref" => {
                let is_there = text.value.strip_prefix('#').is_some_and(|pointer| is_there(schema, pointer));
                (!is_there).then_some((entry.value.place, &*text.value))
            }
            _ => bad_reference(schema, &entry.value),
        }),
        _ => None,
    }
}

/// Whether a JSON pointer leads to something; names of anchors are not followed and count as there.
fn is_there(schema: &Node, pointer: &str) -> bool {
    let Some(path) = pointer.strip_prefix('/') else { return true };
    let mut node = schema;
    for step in path.split('/') {
        let step = step.replace("~1", "/").replace("~0", "~");
        let next = match &node.kind {
            Kind::List(items) => step.parse::<usize>().ok().and_then(|index| items.get(index)),
            _ => node.get(&step).map(|entry| &entry.value),
        };
        match next {
            Some(next) => node = next,
            None => return false,
        }
    }
    true
}
