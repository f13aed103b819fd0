//! Whether what goes into a run and what comes out of it has the form that the graph declares.

use hotcell_graph::Value;
use hotcell_graph::ir::Graph;
use hotcell_graph::json_schema::JsonSchema;
use hotcell_graph::value::parse_json;

use crate::outcome::InputMisfit;
use crate::run_input::RunInput;

/// Problems that are named of a value that does not fit.
const MOST_PROBLEMS: usize = 5;

/// What is wrong with a value, if something is.
pub(crate) fn misfit(schema: &JsonSchema, value: &Value) -> Option<String> {
    let problems = schema.problems_by_place(&serde_json::Value::from(value), MOST_PROBLEMS);
    (!problems.is_empty()).then(|| problems.join("; "))
}

/// Looks at structured input: values of the state, or a text that is a JSON object. Other texts are messages.
pub(crate) fn check_input(graph: &Graph, given: &RunInput) -> Result<(), InputMisfit> {
    let Some(schema) = &graph.input_schema else { return Ok(()) };
    let of_text =
        || given.input.as_deref().and_then(|text| parse_json(text).ok()).filter(|value| value.as_object().is_some());
    let value = if given.state.is_empty() { of_text() } else { Some(Value::Object(given.state.clone())) };
    let Some(value) = value else { return Ok(()) };
    let schema = JsonSchema::compiled(&serde_json::Value::from(schema)).map_err(InputMisfit::Schema)?;
    misfit(&schema, &value).map_or(Ok(()), |problems| Err(InputMisfit::Value(problems)))
}
