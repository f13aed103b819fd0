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
    /// There is no answer yet
    Awaited,
}

/// Asks about all calls that need it, so that they can be answered together: the answers by the places of the calls.
///
/// This comes before all calls, as the numbers of the questions have to be the same when the turn is repeated.
pub(super) async fn ask(
    turn: &mut NodeTurn,
    reach: &[ReachableTool],
    calls: &[ToolCallRequest],
) -> Result<HashMap<usize, Answer>, Interruption> {
    let mut answers = HashMap::new();
    for (place, call) in calls.iter().enumerate() {
        if !named(reach, call).is_some_and(|callable| callable.confirm) {
            continue;
        }
        let arguments = parse_json(&call.arguments).unwrap_or_default();
        let answer = match defined::may_call(turn, &call.name, &arguments).await {
            Ok(true) => Answer::Yes,
            Ok(false) => Answer::No,
            Err(Interruption::Waiting) => Answer::Awaited,
            Err(other) => return Err(other),
        };
        answers.insert(place, answer);
    }
    Ok(answers)
}
