//! What an action hands to others as JSON.

use hotcell_graph::ir::Expression;
use hotcell_graph::{State, Value};

/// The value of an expression, if it is not too large to be written out: it may name one large value of the state thousands of times.
pub(super) fn given(expression: &Expression, state: &State) -> Result<Value, String> {
    let value = expression.evaluate(state).map_err(|error| error.to_string())?;
    match value.check_size() {
        Ok(_) => Ok(value),
        Err(problem) => Err(format!("what the node hands over cannot be written out: {problem}")),
    }
}
