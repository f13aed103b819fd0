//! From a JSON schema to a type.

use std::fmt;
use std::sync::Arc;

use thiserror::Error;

use super::{Member, Members, Shape, Type};
use crate::value::{MAX_DEPTH, Object, Value};

/// Keywords that say nothing about values.
const ANNOTATIONS: &[&str] = &[
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "$comment",
    "contentEncoding",
    "contentMediaType",
    "$schema",
    "$id",
];

/// Keywords that limit the values of a type; they are checked as JSON schema has them.
const CONSTRAINTS: &[&str] = &[
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

/// Keywords of which the shape is made.
const SHAPES: &[&str] = &["type", "anyOf", "items", "properties", "additionalProperties", "required"];

/// Why a JSON schema is no type.
#[derive(Clone, Debug, Error, PartialEq)]
#[error("{problem}")]
pub struct SchemaError {
    /// The keys and indexes that lead to the place
    pub path: Vec<String>,
    /// What is wrong there
    pub problem: String,
}

/// A condition on the values of a type.
#[derive(Clone)]
pub(crate) struct Constraint {
    keywords: Value,
    validator: Arc<jsonschema::Validator>,
}

impl Constraint {
    /// Why the value does not satisfy it.
    pub(super) fn violated_by(&self, value: &Value) -> Option<String> {
        let value = serde_json::Value::from(value);
        self.validator.iter_errors(&value).next().map(|error| error.to_string())
    }
}

impl fmt::Debug for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.keywords.to_json())
    }
}

impl PartialEq for Constraint {
    fn eq(&self, other: &Self) -> bool {
        self.keywords == other.keywords
    }
}

impl Type {
    /// The type that a JSON schema describes.
    ///
    /// # Errors
    /// When it is no object, has a keyword that is not understood (`oneOf`, `allOf`, `$ref`), a type that does not exist or a
    /// `default` of a nested property that does not fit.
    pub fn of_schema(schema: &Value) -> Result<Type, SchemaError> {
        of_schema(schema, &mut Vec::new())
    }
}

fn error<T>(path: &[String], problem: impl Into<String>) -> Result<T, SchemaError> {
    Err(SchemaError { path: path.to_vec(), problem: problem.into() })
}

/// Reads what is below a key.
fn below<T>(
    path: &mut Vec<String>,
    key: impl Into<String>,
    read: impl FnOnce(&mut Vec<String>) -> Result<T, SchemaError>,
) -> Result<T, SchemaError> {
    path.push(key.into());
    let result = read(path);
    path.pop();
    result
}

fn of_schema(schema: &Value, path: &mut Vec<String>) -> Result<Type, SchemaError> {
    let schema = match schema {
        Value::Object(schema) => schema,
        // Where JSON schema allows a schema, `true` means anything.
        Value::Bool(true) => return Ok(Type::any()),
        other => return error(path, format!("a type is a JSON schema, which is an object and not {}", other.a_kind())),
    };
    if path.len() > MAX_DEPTH {
        return error(path, format!("types may be nested {MAX_DEPTH} deep, and this is deeper"));
    }
    for (key, _) in schema.iter() {
        let key = &**key;
        // Whoever adds keywords of their own marks them; unmarked ones may be mistyped.
        let is_own = key.starts_with("x-");
        if !(is_own || ANNOTATIONS.contains(&key) || CONSTRAINTS.contains(&key) || SHAPES.contains(&key)) {
            return below(path, key, |path| error(path, format!("the keyword `{key}` is not supported in types")));
        }
    }
    let constraint = constraint(schema, path)?;
    let shape = shape(schema, path)?;
    Ok(Type { shape, constraint })
}

fn constraint(schema: &Object, path: &[String]) -> Result<Option<Constraint>, SchemaError> {
    let keywords: Object = schema
        .iter()
        .filter(|(key, _)| CONSTRAINTS.contains(&&***key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    if keywords.is_empty() {
        return Ok(None);
    }
    let keywords = Value::Object(keywords);
    match jsonschema::validator_for(&serde_json::Value::from(&keywords)) {
        Ok(validator) => Ok(Some(Constraint { keywords, validator: Arc::new(validator) })),
        Err(problem) => error(path, format!("not a valid JSON schema: {problem}")),
    }
}

fn shape(schema: &Object, path: &mut Vec<String>) -> Result<Shape, SchemaError> {
    if let Some(members) = schema.get("anyOf") {
        if schema.get("type").is_some() {
            return error(path, "`type` and `anyOf` stand beside each other; write one of them");
        }
        let Some(members) = members.as_list().filter(|members| !members.is_empty()) else {
            return below(path, "anyOf", |path| error(path, "`anyOf` takes a list of types with at least one"));
        };
        return below(path, "anyOf", |path| {
            let one = |(index, member): (usize, &Value)| below(path, index.to_string(), |path| of_schema(member, path));
            Ok(Shape::Union(members.iter().enumerate().map(one).collect::<Result<_, _>>()?))
        });
    }
    match schema.get("type") {
        None => Ok(Shape::Any),
        Some(Value::Text(name)) => of_name(name, schema, path),
        Some(Value::List(names)) if !names.is_empty() => {
            let mut members = Vec::with_capacity(names.len());
            for (index, name) in names.iter().enumerate() {
                let Some(name) = name.as_text() else {
                    return below(path, "type", |path| {
                        below(path, index.to_string(), |path| {
                            let quoted = if *name == Value::Null { ": write `\"null\"`" } else { "" };
                            error(path, format!("a name of a type is a text and not {}{quoted}", name.a_kind()))
                        })
                    });
                };
                members.push(Type::of_shape(of_name(name, schema, path)?));
            }
            Ok(Shape::Union(members))
        }
        Some(other) => below(path, "type", |path| {
            error(path, format!("`type` takes the name of a type or a list of names, not {}", other.a_kind()))
        }),
    }
}

fn of_name(name: &str, schema: &Object, path: &mut Vec<String>) -> Result<Shape, SchemaError> {
    Ok(match name {
        "string" => Shape::Text,
        "integer" => Shape::Integer,
        "number" => Shape::Number,
        "boolean" => Shape::Boolean,
        "null" => Shape::Null,
        "array" => Shape::Array(Arc::new(match schema.get("items") {
            Some(items) => below(path, "items", |path| of_schema(items, path))?,
            None => Type::any(),
        })),
        "object" => Shape::Object(members(schema, path)?),
        other => {
            let known = ["string", "integer", "number", "boolean", "null", "array", "object"];
            let near = crate::closest(other, known).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            return below(path, "type", |path| error(path, format!("there is no type `{other}`{near}")));
        }
    })
}

fn members(schema: &Object, path: &mut Vec<String>) -> Result<Members, SchemaError> {
    let required = match schema.get("required") {
        None => None,
        Some(Value::List(names)) => Some(names),
        Some(other) => {
            return below(path, "required", |path| error(path, format!("a list of names, not {}", other.a_kind())));
        }
    };
    let mut members = Members::default();
    if let Some(properties) = schema.get("properties") {
        members.declared = below(path, "properties", |path| {
            let Some(properties) = properties.as_object() else {
                return error(path, format!("`properties` is an object and not {}", properties.a_kind()));
            };
            let mut declared = Vec::with_capacity(properties.len());
            for (name, schema) in properties.iter() {
                let ty = below(path, &**name, |path| of_schema(schema, path))?;
                let default = schema.as_object().and_then(|schema| schema.get("default")).cloned();
                if let Some(default) = &default
                    && !ty.takes_default(default)
                {
                    return below(path, &**name, |path| error(path, format!("the default `{default}` is no {ty}")));
                }
                let optional =
                    required.is_some_and(|names| !names.iter().any(|known| known.as_text() == Some(&**name)));
                declared.push(Member { name: name.clone(), ty, default, optional });
            }
            Ok(declared)
        })?;
    }
    members.others = match schema.get("additionalProperties") {
        // Nothing is said of other entries: they pass. Forbidding them would forbid an object with more properties.
        None | Some(Value::Bool(_)) => None,
        Some(others) => Some(Arc::new(below(path, "additionalProperties", |path| of_schema(others, path))?)),
    };
    Ok(members)
}
