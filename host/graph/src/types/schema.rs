//! From a JSON schema to a type.

mod constraint;
mod keywords;

use std::sync::Arc;

use thiserror::Error;

use super::{Member, Members, Shape, Type};
use crate::value::{MAX_DEPTH, Object, Value};

pub(crate) use constraint::{Constraint, begin_file, end_file};
pub use keywords::{DoubtfulKeyword, doubtful_keywords, pointer_step, schema_at};

/// Of how many parts a type may be made, those counted again to which several references lead.
const MAX_PARTS: usize = 10_000;

/// Why a JSON schema is no type.
#[derive(Clone, Debug, Error, PartialEq)]
#[error("{problem}")]
pub struct SchemaError {
    /// The keys and indexes that lead to the place
    pub path: Vec<String>,
    /// What is wrong there
    pub problem: String,
}

impl Type {
    /// The type that a JSON schema (2020-12) describes. Keywords that JSON Schema does not have are annotations.
    ///
    /// # Errors
    /// When it is no object, names a type that does not exist, refers to something outside of itself or to nothing, has a
    /// keyword with a value that it cannot have, or a `default` of a nested property that does not fit.
    pub fn of_schema(schema: &Value) -> Result<Type, SchemaError> {
        Reader { root: schema, path: Vec::new(), depth: 0, parts: 0, open: Vec::new() }.read(schema)
    }
}

/// Reads the types in one schema.
struct Reader<'s> {
    /// The schema that references lead into
    root: &'s Value,
    /// Where it reads
    path: Vec<String>,
    depth: usize,
    parts: usize,
    /// The references that it follows
    open: Vec<&'s str>,
}

impl<'s> Reader<'s> {
    fn error<T>(&self, problem: impl Into<String>) -> Result<T, SchemaError> {
        Err(SchemaError { path: self.path.clone(), problem: problem.into() })
    }

    /// An error in the value of a keyword.
    fn error_at<T>(&mut self, key: &str, problem: impl Into<String>) -> Result<T, SchemaError> {
        self.below(key, |reader| reader.error(problem))
    }

    /// Reads what is below a key.
    fn below<T>(
        &mut self,
        key: impl Into<String>,
        read: impl FnOnce(&mut Self) -> Result<T, SchemaError>,
    ) -> Result<T, SchemaError> {
        self.path.push(key.into());
        let result = read(self);
        self.path.pop();
        result
    }

    fn read(&mut self, schema: &'s Value) -> Result<Type, SchemaError> {
        self.parts += 1;
        if self.parts > MAX_PARTS {
            return self
                .error(format!("a type may be made of {MAX_PARTS} parts, references followed, and this has more"));
        }
        if self.depth > MAX_DEPTH {
            return self.error(format!("types may be nested {MAX_DEPTH} deep, and this is deeper"));
        }
        self.depth += 1;
        let read = match schema {
            Value::Object(schema) => self.object(schema),
            // Where JSON Schema allows a schema, `true` means anything and `false` nothing.
            Value::Bool(true) => Ok(Type::any()),
            Value::Bool(false) => match Constraint::never() {
                Ok(never) => Ok(Type { shape: Shape::Any, constraint: Some(never) }),
                Err(problem) => self.error(problem),
            },
            other => self.error(format!("a type is a JSON schema, which is an object and not {}", other.a_kind())),
        };
        self.depth -= 1;
        read
    }

    fn object(&mut self, schema: &'s Object) -> Result<Type, SchemaError> {
        let others = ["type", "allOf", "anyOf", "oneOf"].iter().filter(|key| schema.get(key).is_some()).count();
        let target = match schema.get("$ref") {
            Some(reference) => self.reference(reference)?,
            None => None,
        };
        // What stands beside a reference, and none of it limits values, is about the place and not about the type.
        if let Some(target) = &target
            && others == 0
            && Constraint::of(schema, self.root, &["properties", "items", "required"])
                .is_ok_and(|found| found.is_none())
        {
            return Ok(target.clone());
        }
        let mut more: Vec<&str> = Vec::new();
        if schema.get("$ref").is_some() {
            more.push("$ref");
        }
        if schema.get("type").is_none() {
            more.extend(["properties", "items", "required", "additionalProperties"]);
        }
        if schema.get("prefixItems").is_some() || schema.get("unevaluatedItems").is_some() {
            more.push("items");
        }
        if schema.get("patternProperties").is_some() || schema.get("unevaluatedProperties").is_some() {
            more.extend(["properties", "additionalProperties"]);
        }
        let alternatives = schema.get("anyOf").is_some();
        if alternatives && (others > 1 || schema.get("$ref").is_some()) {
            more.push("anyOf");
        }
        let mut shape = self.own_shape(schema)?;
        if let Some(target) = target {
            shape = both(shape, target.shape);
        }
        for (key, is_all) in [("allOf", true), ("anyOf", false), ("oneOf", false)] {
            let Some(value) = schema.get(key) else { continue };
            let members = self.members_of(key, value)?;
            if is_all {
                shape = members.into_iter().fold(shape, |shape, member| both(shape, member.shape));
            } else {
                shape = both(shape, Shape::Union(members));
            }
        }
        match Constraint::of(schema, self.root, &more) {
            Ok(constraint) => Ok(Type { shape, constraint }),
            Err(problem) => self.error(problem),
        }
    }

    /// The types in the list of a keyword.
    fn members_of(&mut self, key: &str, list: &'s Value) -> Result<Vec<Type>, SchemaError> {
        let Some(list) = list.as_list().filter(|list| !list.is_empty()) else {
            return self.error_at(key, format!("`{key}` takes a list of types with at least one"));
        };
        self.below(key, |reader| {
            let one =
                |(index, member): (usize, &'s Value)| reader.below(index.to_string(), |reader| reader.read(member));
            list.iter().enumerate().map(one).collect()
        })
    }

    /// The type that a reference names; none if that is the one which is being read.
    fn reference(&mut self, reference: &'s Value) -> Result<Option<Type>, SchemaError> {
        let Value::Text(reference) = reference else {
            return self.error_at("$ref", format!("a reference is a text and not {}", reference.a_kind()));
        };
        let reference: &'s str = reference;
        let Some(pointer) = reference.strip_prefix('#').filter(|rest| rest.is_empty() || rest.starts_with('/')) else {
            let problem =
                format!("`{reference}` is outside of the schema: write it below `$defs`, and `#/$defs/...` here");
            return self.error_at("$ref", problem);
        };
        if self.open.contains(&reference) {
            return Ok(None);
        }
        let steps: Vec<String> =
            pointer.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~")).collect();
        let mut target = Some(self.root);
        for step in &steps {
            target = match target {
                Some(Value::Object(object)) => object.get(step),
                Some(Value::List(list)) => step.parse().ok().and_then(|index: usize| list.get(index)),
                _ => None,
            };
        }
        let Some(target) = target else {
            let defined = self.root.as_object().and_then(|root| root.get("$defs")).and_then(Value::as_object);
            let known = defined.into_iter().flat_map(Object::iter).map(|(name, _)| &**name);
            let near = steps.last().and_then(|name| crate::closest(name, known));
            let near = near.map(|near| format!("; did you mean `#/$defs/{near}`?")).unwrap_or_default();
            return self.error_at("$ref", format!("the schema has nothing at `{reference}`{near}"));
        };
        let here = std::mem::replace(&mut self.path, steps);
        self.open.push(reference);
        let read = self.read(target);
        self.open.pop();
        self.path = here;
        read.map(Some)
    }

    /// The shape that `type` and what belongs to it describe.
    fn own_shape(&mut self, schema: &'s Object) -> Result<Shape, SchemaError> {
        match schema.get("type") {
            None => Ok(Shape::Any),
            Some(Value::Text(name)) => self.of_name(name, schema),
            Some(Value::List(names)) if !names.is_empty() => {
                let mut members = Vec::with_capacity(names.len());
                for (index, name) in names.iter().enumerate() {
                    let Some(name) = name.as_text() else {
                        return self.below("type", |reader| {
                            let quoted = if *name == Value::Null { ": write `\"null\"`" } else { "" };
                            let problem = format!("a name of a type is a text and not {}{quoted}", name.a_kind());
                            reader.error_at(&index.to_string(), problem)
                        });
                    };
                    members.push(Type::of_shape(self.of_name(name, schema)?));
                }
                Ok(Shape::Union(members))
            }
            Some(other) => {
                let what = other.a_kind();
                self.error_at("type", format!("`type` takes the name of a type or a list of names, not {what}"))
            }
        }
    }

    fn of_name(&mut self, name: &str, schema: &'s Object) -> Result<Shape, SchemaError> {
        Ok(match name {
            "string" => Shape::Text,
            "integer" => Shape::Integer,
            "number" => Shape::Number,
            "boolean" => Shape::Boolean,
            "null" => Shape::Null,
            "array" => Shape::Array(Arc::new(match schema.get("items") {
                Some(Value::List(_)) => {
                    return self.error_at("items", "a list of schemas for the first items is `prefixItems`");
                }
                // The first items have schemas of their own; what the others have to be is a condition.
                Some(_) if schema.get("prefixItems").is_some() => Type::any(),
                Some(items) => self.below("items", |reader| reader.read(items))?,
                None => Type::any(),
            })),
            "object" => Shape::Object(self.members(schema)?),
            other => {
                let known = ["string", "integer", "number", "boolean", "null", "array", "object"];
                let near = crate::closest(other, known);
                let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
                return self.error_at("type", format!("there is no type `{other}`{near}"));
            }
        })
    }

    fn members(&mut self, schema: &'s Object) -> Result<Members, SchemaError> {
        let required = match schema.get("required") {
            None => None,
            Some(Value::List(names)) => Some(names),
            Some(other) => return self.error_at("required", format!("a list of names, not {}", other.a_kind())),
        };
        let mut members = Members::default();
        if let Some(properties) = schema.get("properties") {
            members.declared = self.below("properties", |reader| {
                let Some(properties) = properties.as_object() else {
                    return reader.error(format!("`properties` is an object and not {}", properties.a_kind()));
                };
                let mut declared = Vec::with_capacity(properties.len());
                for (name, schema) in properties.iter() {
                    let ty = reader.below(&**name, |reader| reader.read(schema))?;
                    let default = schema.as_object().and_then(|schema| schema.get("default")).cloned();
                    if let Some(default) = &default
                        && !ty.takes_default(default)
                    {
                        return reader.error_at(name, format!("the default `{default}` is not {}", ty.with_article()));
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
            // Which entries are others is a condition.
            Some(_) if schema.get("patternProperties").is_some() => None,
            Some(others) => Some(Arc::new(self.below("additionalProperties", |reader| reader.read(others))?)),
        };
        Ok(members)
    }
}

/// The shape of a value that has both. Where no shape can say that, the conditions of the schema do.
fn both(one: Shape, other: Shape) -> Shape {
    match (one, other) {
        (Shape::Any, shape) | (shape, Shape::Any) => shape,
        (Shape::Object(one), Shape::Object(other)) => {
            let mut members = one;
            for member in other.declared {
                match members.declared.iter_mut().find(|known| known.name == member.name) {
                    Some(known) => {
                        known.optional &= member.optional;
                        if known.ty.is_any() {
                            known.ty = member.ty;
                        }
                    }
                    None => members.declared.push(member),
                }
            }
            members.others = members.others.or(other.others);
            Shape::Object(members)
        }
        (Shape::Number, Shape::Integer) => Shape::Integer,
        // An alternative that the other says nothing about is decided by the conditions.
        (Shape::Union(_), shape) if !matches!(shape, Shape::Union(_)) => shape,
        (shape, _) => shape,
    }
}
