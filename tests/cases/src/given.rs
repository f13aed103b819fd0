//! What a run of a case is given: its environment, and the messages or values of each turn.

use hotcell_graph::Value;
use hotcell_runtime::{Price, Prices, RunInput};

use crate::case_file::{CaseFile, Json};
use crate::loki::PlayError;

/// The environment of the host, in which the scripted model is found.
pub(crate) fn environment(case: &CaseFile, model_url: &str) -> Vec<(String, String)> {
    let own = case.env.iter().map(|(name, value)| (name.clone(), value.clone()));
    own.chain([("HOTCELL_MODEL_URL".to_owned(), model_url.to_owned())]).collect()
}

/// What models cost.
pub(crate) fn prices(case: &CaseFile) -> Prices {
    let price = |(name, price): (&String, &crate::case_file::Price)| {
        (name.clone(), Price { input: price.input_per_million, output: price.output_per_million })
    };
    Prices::of(case.prices.iter().map(price))
}

/// What each turn is given; a case without turns is one.
pub(crate) fn turns(case: &CaseFile) -> Result<Vec<RunInput>, PlayError> {
    let Some(turns) = &case.turns else { return Ok(vec![given("input", case.input.as_ref())?]) };
    let turn = |turn: &crate::case_file::Turn| {
        let given = given("turns[].input", turn.input.as_ref())?;
        let input = turn.message.clone().or(given.input);
        Ok(RunInput { input, thread: Some(turn.thread.clone()), ..given })
    };
    turns.iter().map(turn).collect()
}

/// A text is a message of the user, an object gives values of the state.
fn given(key: &'static str, input: Option<&Json>) -> Result<RunInput, PlayError> {
    match input {
        None => Ok(RunInput::default()),
        Some(Json(Value::Text(text))) => Ok(RunInput { input: Some(text.to_string()), ..RunInput::default() }),
        Some(Json(Value::Object(state))) => Ok(RunInput { state: state.clone(), ..RunInput::default() }),
        Some(_) => Err(PlayError::Form(key)),
    }
}
