//! A graph that is driven within a turn: another agent, a graph that is called, or the steps of a node's own work.

use std::sync::Arc;

use hotcell_budget::Account;
use hotcell_graph::State;

use crate::context::{Interruption, RunContext};
use crate::outcome::{Outcome, Part};

/// What came of it.
pub(super) struct Driven {
    /// Its result
    pub(super) result: Result<String, Interruption>,
    /// What kind of failure it failed with, where it tells kinds apart
    pub(super) failure_kind: Option<String>,
    /// Whether a model refused for good what one of its nodes asked
    pub(super) final_refusal: bool,
    /// The state that it left
    pub(super) state: State,
    /// Who used what for it
    pub(super) account: Account,
}

impl Driven {
    /// One that could not begin.
    pub(super) fn not_begun(stop: Interruption) -> Self {
        let (state, account) = (State::default(), Account::default());
        Driven { result: Err(stop), failure_kind: None, final_refusal: false, state, account }
    }
}

/// Drives a graph to its end, or to where it waits.
///
/// What is awaited is small: the context is on the heap before, and not in every future around.
pub(super) fn drive(context: RunContext, state: State) -> impl Future<Output = Driven> {
    let drive_part = context.drive_part;
    let part = drive_part(Arc::new(context), state);
    async move { driven(part.await) }
}

fn driven(part: Part) -> Driven {
    let Part { result, is_refused, failure_kind, final_refusal, used: account } = part;
    let (outcome, state) = match result {
        Ok(result) => result,
        Err(error) => return Driven { account, final_refusal, ..Driven::not_begun(error.into()) },
    };
    let result = match outcome {
        Outcome::Completed { output } => Ok(output),
        // Whoever calls it goes on after a refusal no more than the graph itself.
        Outcome::Failed { error, .. } if is_refused => Err(Interruption::Refused(error)),
        Outcome::Failed { error, .. } | Outcome::Stopped { reason: error } => Err(Interruption::Failed(error)),
        Outcome::Waiting { .. } | Outcome::Interrupted | Outcome::Paused | Outcome::Cancelled => {
            Err(Interruption::Waiting)
        }
    };
    Driven { result, failure_kind, final_refusal, state, account }
}
