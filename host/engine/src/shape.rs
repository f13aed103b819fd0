//! Whether what goes into a run and what comes out of it has the form that the graph declares.

use hotcell_graph::ir::Graph;
use hotcell_graph::json_schema::JsonSchema;
use hotcell_graph::value::parse_json;
use hotcell_graph::{Key, Value};

use crate::outcome::{InputMisfit, RunError};
use crate::run_input::{RunInput, check_state, check_variables};

/// Problems that are named of a value that does not fit.
const MOST_PROBLEMS: usize = 5;

/// What is wrong with a value, if something is.
pub(crate) fn misfit(schema: &JsonSchema, value: &Value) -> Option<String> {
    let problems = schema.problems_by_place(&serde_json::Value::from(value), MOST_PROBLEMS);
    (!problems.is_empty()).then(|| problems.join("; "))
}

impl RunInput {
    /// Whether a run of a graph can begin with this. What the state makes of it, which may be that of an earlier run, is not looked at.
    ///
    /// # Errors
    /// What of it does not fit.
    pub fn check(&self, graph: &Graph) -> Result<(), RunError> {
        check_variables(graph, self)?;
        check_state(graph, self)?;
        check_inputs(graph, self)?;
        check_input(graph, self)?;
        Ok(())
    }
}

/// Looks whether a graph that is called like a function is given all that it needs. What a thread keeps may be given already.
fn check_inputs(graph: &Graph, given: &RunInput) -> Result<(), RunError> {
    if graph.results.is_none() || given.thread.is_some() || given.earlier.is_some() || given.after.is_some() {
        return Ok(());
    }
    let has_value = |key: &Key| {
        given.state.get(key).is_some()
            || graph.optional.contains(key)
            || graph.initial_state.iter().any(|(initial, _)| initial == key)
    };
    let missing: Vec<String> =
        graph.open_state.iter().filter(|key| !has_value(key)).map(|key| key.to_string()).collect();
    if missing.is_empty() { Ok(()) } else { Err(RunError::MissingInputs(missing)) }
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
