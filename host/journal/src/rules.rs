//! What may be done to a run, by how it stands and what was committed of it: the same in every store.

use crate::entry::{Entry, Fact};
use crate::ids::RunId;
use crate::projection::RunStatus;
use crate::store::JournalError;

/// Whether a run that stands like this can be taken for that.
pub(crate) fn may_take(run: &RunId, status: RunStatus, fact: &Fact) -> Result<(), JournalError> {
    match (status, fact) {
        (RunStatus::Cancelled, _) => Err(JournalError::Cancelled(run.clone())),
        (RunStatus::Failed, Fact::Retried) => Ok(()),
        (status, _) if status.is_final() => Err(JournalError::Ended { run: run.clone(), status }),
        _ => Ok(()),
    }
}

/// Whether this has to be sent to a run that stands like that: a second cancellation or pause is no error, and nothing.
pub(crate) fn may_send(run: &RunId, status: RunStatus, entry: &Entry) -> Result<bool, JournalError> {
    match (status, &entry.fact) {
        (RunStatus::Cancelled, Fact::Cancelled) | (RunStatus::Paused, Fact::PauseAsked) => Ok(false),
        (RunStatus::Cancelled, _) => Err(JournalError::Cancelled(run.clone())),
        (status, _) if status.is_final() => Err(JournalError::Ended { run: run.clone(), status }),
        _ => Ok(true),
    }
}

/// The one run that a person means by `name`, of those whose names begin with it.
pub(crate) fn choose<T: std::fmt::Display>(mut matching: Vec<T>, name: &str) -> Result<T, JournalError> {
    match matching.len() {
        0 => Err(JournalError::NoSuchRun(name.into())),
        1 => Ok(matching.swap_remove(0)),
        _ => {
            let names: Vec<String> = matching.iter().map(|run| format!("`{run}`")).collect();
            Err(JournalError::Ambiguous(name.into(), names.join(", ")))
        }
    }
}

/// Whether `entry`, an answer or the expiry of a question, may be taken: its question was put and has no answer among `entries`. Whoever put the question
/// need not be told that it was put.
pub(crate) fn answerable<'e>(
    run: &RunId,
    entries: impl IntoIterator<Item = &'e Entry>,
    entry: &Entry,
    wanted: u32,
    look_for_question: bool,
) -> Result<(), JournalError> {
    let mut asked = !look_for_question;
    let not = |why| JournalError::NotAsked { run: run.clone(), question: format!("{}:{wanted}", entry.place), why };
    for known in entries.into_iter().filter(|known| known.place == entry.place) {
        match known.fact {
            Fact::Asked { number, .. } if number == wanted => asked = true,
            Fact::Answered { number, .. } if number == wanted => return Err(not("has an answer already")),
            Fact::Expired { number } if number == wanted => {
                return Err(JournalError::Expired { run: run.clone(), question: format!("{}:{wanted}", entry.place) });
            }
            _ => {}
        }
    }
    if asked { Ok(()) } else { Err(not("was never asked")) }
}
