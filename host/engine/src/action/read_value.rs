//! Reading a text as a value of a schema: fences off, JSON in, schema enforced.

use std::sync::Arc;

use hotcell_graph::ir::ReadValueAction;
use hotcell_graph::json_schema::JsonSchema;
use hotcell_graph::value::{JsonError, parse_json};
use hotcell_graph::{State, Value};
use hotcell_journal::Write;
use thiserror::Error;

use super::Performed;
use crate::context::Interruption;
use crate::shape::misfit;

/// Why a text is no value of a schema.
#[derive(Debug, Error)]
pub(super) enum ReadError {
    #[error("it is not JSON: {0}")]
    NotJson(#[from] JsonError),
    /// What does not match, by its place
    #[error("it does not match the schema: {0}")]
    Misfit(String),
}

/// A compiled schema.
pub(super) struct Schema(Arc<JsonSchema>);

impl Schema {
    pub(super) fn compile(schema: &Value) -> Result<Self, Interruption> {
        JsonSchema::compiled(&serde_json::Value::from(schema)).map(Schema).map_err(|error| {
            Interruption::Failed(format!("`output_schema` is not a JSON schema that can be used: {error}"))
        })
    }

    /// The text as a value that satisfies the schema, or what is wrong with it.
    pub(super) fn read(&self, text: &str) -> Result<Value, ReadError> {
        let value = parse_json(unfenced(text))?;
        match misfit(&self.0, &value) {
            None => Ok(value),
            Some(problems) => Err(ReadError::Misfit(problems)),
        }
    }
}

/// A node that reads a text.
pub(super) fn perform(action: &ReadValueAction, state: &State) -> Result<Performed, Interruption> {
    let text = action.text.evaluate_text(state).map_err(|missing| Interruption::Failed(missing.to_string()))?;
    let (value, problem) = match (Schema::compile(&action.schema)?.read(&text), &action.failure) {
        (Ok(value), _) => (value, Value::Null),
        (Err(problem), None) => (Value::Null, Value::text(problem.to_string())),
        (Err(problem), Some(failure)) => {
            let shown: String = text.chars().take(200).collect();
            let shown = shown.escape_debug();
            return Err(Interruption::Failed(format!("{failure}: {problem}; the last answer was: {shown}")));
        }
    };
    let writes =
        vec![Write { key: action.value.clone(), value }, Write { key: action.problem.clone(), value: problem }];
    Ok(Performed { writes, ..Performed::default() })
}

/// The text without a Markdown code fence around it.
pub(super) fn unfenced(text: &str) -> &str {
    let text = text.trim();
    let Some(inside) = text.strip_prefix("```") else { return text };
    let inside = inside.strip_suffix("```").unwrap_or(inside);
    // What follows the opening fence on its line is the name of a language.
    match inside.split_once('\n') {
        Some((language, rest)) if language.chars().all(|c| c.is_alphanumeric() || c.is_whitespace()) => rest.trim(),
        _ => inside.strip_prefix("json").unwrap_or(inside).trim(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fences_come_off() {
        for text in [
            "{\"a\":1}",
            " {\"a\":1}\n",
            "```json\n{\"a\":1}\n```",
            "```\n{\"a\":1}\n```\n",
            "```json {\"a\":1}```",
            "```{\"a\":1}```",
        ] {
            assert_eq!(unfenced(text), "{\"a\":1}", "{text:?}");
        }
    }
}
