//! Schemas that values are held against.

use std::fmt;
use std::sync::Arc;

use crate::json_schema::{JsonSchema, SchemaProblem};
use crate::value::Value;

/// How many misfits of one value are told.
const MOST_MISFITS: usize = 20;

/// A schema that values are held against.
#[derive(Clone)]
pub struct Fit {
    source: Value,
    schema: Arc<JsonSchema>,
}

impl Fit {
    /// The schema that this is.
    ///
    /// # Errors
    /// When it is none.
    pub fn new(source: Value) -> Result<Self, SchemaProblem> {
        let schema = Arc::new(JsonSchema::compile(&serde_json::Value::from(&source))?);
        Ok(Fit { source, schema })
    }

    /// What is wrong with a value.
    pub(super) fn problems(&self, value: &Value) -> Vec<String> {
        self.schema.problems_by_place(&serde_json::Value::from(value), MOST_MISFITS)
    }
}

impl PartialEq for Fit {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl fmt::Debug for Fit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Fit").field(&self.source).finish()
    }
}
