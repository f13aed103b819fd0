//! The entries of an object as writes.

use hotcell_graph::ir::SpreadAction;
use hotcell_graph::{Key, State, Value};
use hotcell_journal::Write;
use thiserror::Error;

use super::Performed;
use crate::context::Interruption;

/// Writes the entries of an object.
pub(super) fn perform(action: &SpreadAction, state: &State) -> Result<Performed, Interruption> {
    let value =
        action.value.evaluate(state).map_err(|error| Interruption::Failed(format!("the expression {error}")))?;
    let writes = match &action.keys {
        Some(keys) => entries(&value, keys),
        None => entries_of(&value).map(|entries| entries.collect()),
    };
    let writes = writes.map_err(|problem| Interruption::Failed(problem.to_string()))?;
    Ok(Performed { writes, ..Performed::default() })
}

/// Why a value gives nothing that could be written.
#[derive(Debug, Error)]
pub(super) enum SpreadError {
    #[error("the expression has to give a map, not {0}")]
    NoMap(&'static str),
    #[error("the expression writes `{0}`, which is not a field of the state")]
    UnknownField(Key),
}

/// The entries of an object as writes, if it has only these keys.
pub(super) fn entries(value: &Value, keys: &[Key]) -> Result<Vec<Write>, SpreadError> {
    let entries: Vec<Write> = entries_of(value)?.collect();
    match entries.iter().find(|write| !keys.contains(&write.key)) {
        Some(write) => Err(SpreadError::UnknownField(write.key.clone())),
        None => Ok(entries),
    }
}

fn entries_of(value: &Value) -> Result<impl Iterator<Item = Write> + '_, SpreadError> {
    let object = value.as_object().ok_or_else(|| SpreadError::NoMap(value.a_kind()))?;
    Ok(object.iter().map(|(key, value)| Write { key: key.clone(), value: value.clone() }))
}
