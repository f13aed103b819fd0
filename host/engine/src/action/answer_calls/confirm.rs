//! Calls that a person has to allow before they are made.

use std::collections::HashMap;

use hotcell_graph::value::parse_json;
use hotcell_models::ToolCallRequest;

use super::{ReachableTool, named};
use crate::action::defined;
use crate::context::Interruption;
use crate::turn::NodeTurn;

pub(super) use crate::action::defined::NOT_ALLOWED;

/// What became of the question whether a call may be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Yes,
    No,
}

/// Asks about all calls that need it, so that they can be answered together: the answers by the places of the calls.
///
/// This comes before all calls, and none is made before all are answered: what a call does and asks has numbers, which have to be the same
/// when the turn is repeated, whichever of the answers came first.
pub(super) async fn ask(
    turn: &mut NodeTurn,
    reach: &[ReachableTool],
    calls: &[ToolCallRequest],
) -> Result<HashMap<usize, Answer>, Interruption> {
    let (mut answers, mut is_waiting) = (HashMap::new(), false);
    for (place, call) in calls.iter().enumerate() {
        if !named(reach, call).is_some_and(|callable| callable.confirm) {
            continue;
        }
        let arguments = parse_json(&call.arguments).unwrap_or_default();
        match defined::may_call(turn, &call.name, &arguments).await {
            Ok(may_call) => drop(answers.insert(place, if may_call { Answer::Yes } else { Answer::No })),
            Err(Interruption::Waiting) => is_waiting = true,
            Err(other) => return Err(other),
        }
    }
    if is_waiting { Err(Interruption::Waiting) } else { Ok(answers) }
}
