//! Evaluating an expression.

use hotcell_graph::State;
use hotcell_graph::ir::ComputeAction;

use super::Performed;
use crate::context::Interruption;

pub(super) fn perform(action: &ComputeAction, state: &State) -> Result<Performed, Interruption> {
    let value = action.value.evaluate(state).map_err(|error| Interruption::Failed(error.to_string()))?;
    Ok(Performed { answer: Some((action.bind, value)), ..Performed::default() })
}
