//! Questions that are put as the result of a call: the client calls again with the answers.

use std::collections::BTreeMap;

use rmcp::model::{ElicitResult, ElicitationAction, InputResponses};
use serde_json::{Map, Value};

use crate::exchange::Elicited;

/// The most bytes of what a client sends back to go on with a call.
const MOST_STATE: usize = 64 << 10;

/// What has to be known before a tool can go on.
#[derive(Clone, Debug, PartialEq)]
pub struct Asks {
    /// The questions, all of which may be answered at once
    pub questions: Vec<Asked>,
    /// What the client sends back with the answers. It can read and change it
    pub state: String,
}

/// One question.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// What its answer is told apart by
    pub id: String,
    /// What is asked
    pub message: String,
    /// The JSON schema of the answer: an object whose fields are texts, numbers, booleans or choices
    pub schema: Value,
}

/// What a client sends that goes on with a call which asked something.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GoingOn {
    /// [`Asks::state`], as the client sends it; none from one that answers before it was asked
    pub state: Option<String>,
    /// Its answers by [`Asked::id`]. None of them has to be one of a question that was put
    pub answers: BTreeMap<String, Elicited>,
}

/// Reads what a client goes on with.
///
/// # Errors
/// What of it cannot be used.
pub(super) fn going_on(state: Option<String>, answers: Option<InputResponses>) -> Result<GoingOn, String> {
    if state.as_ref().is_some_and(|state| state.len() > MOST_STATE) {
        return Err(format!("`requestState` has more than {MOST_STATE} bytes"));
    }
    let read = |(id, answer): (String, Value)| match serde_json::from_value::<ElicitResult>(answer) {
        Ok(result) => Ok((id, elicited(result))),
        Err(_) => Err("an answer in `inputResponses` is not the result of an elicitation".to_owned()),
    };
    let answers = answers.unwrap_or_default().into_iter().map(read).collect::<Result<_, _>>()?;
    Ok(GoingOn { state, answers })
}

/// What a person did with a question.
pub(super) fn elicited(result: ElicitResult) -> Elicited {
    match result.action {
        ElicitationAction::Accept => Elicited::Accept(result.content.unwrap_or_else(|| Value::Object(Map::new()))),
        ElicitationAction::Decline => Elicited::Decline,
        _ => Elicited::Cancel,
    }
}
