//! Evaluating an expression.

use hotcell_graph::State;
use hotcell_graph::ir::ComputeAction;

use super::Performed;
use crate::context::Interruption;
use crate::turn::NodeTurn;

pub(super) fn perform(turn: &mut NodeTurn, action: &ComputeAction, state: &State) -> Result<Performed, Interruption> {
    let value = action.value.evaluate(state).map_err(|error| {
        turn.failure_kind = action.failure_kind.map(str::to_owned);
        Interruption::Failed(error.to_string())
    })?;
    Ok(Performed { answer: Some((action.bind, value)), ..Performed::default() })
}
