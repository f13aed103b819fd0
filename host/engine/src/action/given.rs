//! What an action hands to others as JSON.

use hotcell_graph::ir::Expression;
use hotcell_graph::{State, Value};

/// The value of an expression, if it is not too large to be written out: it may name one large value of the state thousands of times.
pub(super) fn given(expression: &Expression, state: &State) -> Result<Value, String> {
    let value = expression.evaluate(state).map_err(|error| error.to_string())?;
    of_a_size(value)
}

/// The same for a value that is there already.
pub(super) fn of_a_size(value: Value) -> Result<Value, String> {
    match value.check_size() {
        Ok(_) => Ok(value),
        Err(problem) => Err(format!("what is handed over cannot be: {problem}")),
    }
}
