//! What a value has to satisfy beyond its shape.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

use super::keywords::{CONDITIONS, CONSTRAINTS, has_reference, schema_at};
use crate::json_schema::{JsonSchema, SchemaProblem};
use crate::types::convert::count;
use crate::value::{Object, Value};

/// Where the schema stands that the references of a condition lead into.
const ROOT: &str = "/$defs/root";
/// Values that all conditions of a file have together. One with a reference has a copy of the whole schema that the reference leads into.
const OF_A_FILE: u64 = 500_000;

thread_local! {
    /// Values that are left for the file that this thread reads
    static LEFT: Cell<Option<u64>> = const { Cell::new(None) };
}

/// From now on, the conditions that this thread reads are those of one file.
pub(crate) fn begin_file() {
    LEFT.set(Some(LEFT.get().unwrap_or(OF_A_FILE)));
}

/// The file is read.
pub(crate) fn end_file() {
    LEFT.set(None);
}

/// A condition on the values of a type.
#[derive(Clone)]
pub(crate) struct Constraint {
    keywords: Value,
    validator: Arc<JsonSchema>,
}

impl Constraint {
    /// The condition of a schema that stands in `root`; none if it has none. `more` are keywords that make shapes elsewhere.
    pub(super) fn of(schema: &Object, root: &Value, more: &[&str]) -> Result<Option<Constraint>, String> {
        let is_of_it = |key: &str| CONSTRAINTS.contains(&key) || CONDITIONS.contains(&key) || more.contains(&key);
        let keywords: Object = schema
            .iter()
            .filter(|(key, value)| {
                is_of_it(key) && !(&***key == "additionalProperties" && **value == Value::Bool(false))
            })
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        if keywords.is_empty() {
            return Ok(None);
        }
        Constraint::build(Value::Object(keywords), root).map(Some)
    }

    /// The condition that no value satisfies.
    pub(super) fn never() -> Result<Constraint, String> {
        let keywords: Object = [("not".into(), Value::Object(Object::default()))].into_iter().collect();
        Constraint::build(Value::Object(keywords), &Value::Null)
    }

    fn build(keywords: Value, root: &Value) -> Result<Constraint, String> {
        let mut keywords = keywords;
        if has_reference(&keywords) {
            keywords = schema_at(&keywords, ROOT);
            let definitions: Object = [("root".into(), schema_at(root, ROOT))].into_iter().collect();
            if let Value::Object(object) = &mut keywords {
                object.insert("$defs", Value::Object(definitions));
            }
        }
        let of_file = LEFT.get();
        let left = of_file.unwrap_or(OF_A_FILE).checked_sub(count(&keywords)).ok_or_else(|| {
            format!("the conditions of the types of a file have {OF_A_FILE} parts at most, with what they refer to")
        })?;
        LEFT.set(of_file.map(|_| left));
        match JsonSchema::compile(&serde_json::Value::from(&keywords)) {
            Ok(validator) => Ok(Constraint { keywords, validator: Arc::new(validator) }),
            Err(problem) => {
                let keyword = match &problem {
                    SchemaProblem::Invalid(error) => error.instance_path().as_str().trim_start_matches('/'),
                    SchemaProblem::TooMuch(_) => "",
                };
                let place = if keyword.is_empty() { String::new() } else { format!("`{keyword}`: ") };
                Err(format!("not a valid JSON schema: {place}{problem}"))
            }
        }
    }

    /// Why the value does not satisfy it.
    pub(in crate::types) fn violated_by(&self, value: &Value) -> Option<String> {
        let value = serde_json::Value::from(value);
        self.validator.problems(&value, 1).pop()
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
