//! The keywords of JSON Schema (2020-12): what each says, and where in a schema further schemas stand.

use crate::suggest::closest;
use crate::value::{List, Object, Value};

/// Keywords that limit the values of a type; they are checked as JSON Schema has them.
pub(super) const CONSTRAINTS: &[&str] = &[
    "enum",
    "const",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "format",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
];

/// Keywords that limit values by further schemas; they are checked as JSON Schema has them, too.
pub(super) const CONDITIONS: &[&str] = &[
    "allOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "prefixItems",
    "contains",
    "minContains",
    "maxContains",
    "patternProperties",
    "propertyNames",
    "dependentRequired",
    "dependentSchemas",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// Keywords of which the shape is made.
const SHAPES: &[&str] =
    &["type", "anyOf", "items", "properties", "additionalProperties", "required", "$ref", "$defs", "definitions"];

/// Keywords whose value is a schema.
const ONE_SCHEMA: &[&str] = &[
    "items",
    "additionalProperties",
    "not",
    "if",
    "then",
    "else",
    "contains",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
];
/// Keywords whose value is a list of schemas.
const LISTS_OF_SCHEMAS: &[&str] = &["allOf", "anyOf", "oneOf", "prefixItems"];
/// Keywords whose value has a schema under each of its keys.
const SCHEMAS_BY_NAME: &[&str] = &["properties", "patternProperties", "dependentSchemas", "$defs", "definitions"];

/// A keyword that JSON Schema does not have and that is spelled like one that limits values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DoubtfulKeyword {
    /// The keys and indexes that lead to it, itself included
    pub path: Vec<String>,
    /// The keyword that was probably meant
    pub meant: &'static str,
}

/// The keywords of a schema that are probably mistyped. Every other keyword that JSON Schema does not have is an annotation.
pub fn doubtful_keywords(schema: &Value) -> Vec<DoubtfulKeyword> {
    let mut found = Vec::new();
    doubtful(schema, &mut Vec::new(), &mut found);
    found
}

fn doubtful(schema: &Value, path: &mut Vec<String>, found: &mut Vec<DoubtfulKeyword>) {
    let Value::Object(object) = schema else { return };
    for (key, _) in object.iter() {
        let known = || [SHAPES, CONSTRAINTS, CONDITIONS].into_iter().flatten().copied();
        if key.starts_with("x-") || key.starts_with('$') || known().any(|one| *one == **key) {
            continue;
        }
        // Short words are near to too many others.
        let near = closest(key, known()).filter(|near| near.len() >= 5 && object.get(near).is_none());
        if let Some(meant) = near {
            let path = path.iter().cloned().chain([key.to_string()]).collect();
            found.push(DoubtfulKeyword { path, meant });
        }
    }
    each_schema(object, |steps, schema| {
        let length = path.len();
        path.extend(steps);
        doubtful(schema, path, found);
        path.truncate(length);
    });
}

/// Gives the schemas that stand in one, with the steps that lead to each.
fn each_schema(object: &Object, mut give: impl FnMut(Vec<String>, &Value)) {
    for (key, value) in object.iter() {
        let key = &**key;
        match value {
            _ if ONE_SCHEMA.contains(&key) => give(vec![key.to_owned()], value),
            Value::List(list) if LISTS_OF_SCHEMAS.contains(&key) => {
                for (index, schema) in list.iter().enumerate() {
                    give(vec![key.to_owned(), index.to_string()], schema);
                }
            }
            Value::Object(named) if SCHEMAS_BY_NAME.contains(&key) => {
                for (name, schema) in named.iter() {
                    give(vec![key.to_owned(), name.to_string()], schema);
                }
            }
            _ => {}
        }
    }
}

/// A schema as it has to be written where it stands at `place` (a JSON pointer) of another: its references to itself lead
/// there.
pub fn schema_at(schema: &Value, place: &str) -> Value {
    let Value::Object(object) = schema else { return schema.clone() };
    let moved = |schema: &Value| schema_at(schema, place);
    let entry = |(key, value): (&crate::Key, &Value)| {
        let name = &**key;
        let value = match value {
            Value::Text(reference) if name == "$ref" => match reference.strip_prefix('#') {
                Some(pointer) => Value::text(format!("#{place}{pointer}")),
                None => value.clone(),
            },
            _ if ONE_SCHEMA.contains(&name) => moved(value),
            Value::List(list) if LISTS_OF_SCHEMAS.contains(&name) => {
                Value::List(list.iter().map(moved).collect::<List>())
            }
            Value::Object(named) if SCHEMAS_BY_NAME.contains(&name) => {
                Value::Object(named.iter().map(|(key, schema)| (key.clone(), moved(schema))).collect())
            }
            _ => value.clone(),
        };
        (key.clone(), value)
    };
    // An address of its own would make the references lead there.
    Value::Object(object.iter().filter(|(key, _)| !matches!(&***key, "$id" | "$schema")).map(entry).collect())
}

/// A step of a JSON pointer as it is written.
pub fn pointer_step(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// Whether a schema, or one within it, refers to another.
pub(super) fn has_reference(schema: &Value) -> bool {
    let Value::Object(object) = schema else { return false };
    let mut found = object.get("$ref").is_some();
    each_schema(object, |_, schema| found = found || has_reference(schema));
    found
}
