//! What a turn leads to, and what of it is needed to complete it.

use hotcell_graph::State;
use hotcell_graph::ir::Graph;
use hotcell_journal::Write;

use super::{After, Schedule};
use crate::branch::{WriteError, apply};
use crate::token::Turn;

impl Schedule {
    /// The state that all branches share after a turn that led to `state`, where no other one has changed it since the turn began:
    /// what [`Schedule::fits`] comes to, without combining what was written once more.
    pub(crate) fn led_to(&self, graph: &Graph, turn: Turn, state: &State, writes: &[Write]) -> Option<State> {
        let shared = self.shared.as_ref()?;
        self.token_of(turn)?.shared.as_ref().filter(|begun| begun.is_clone_of(shared))?;
        // What a branch brings along is in the state of its turn alone.
        let Some(brought) = &graph.scheduling.brought else { return Some(state.clone()) };
        let mut shared = shared.clone();
        for write in writes.iter().filter(|write| write.key != *brought) {
            shared.set(write.key.clone(), state.get(&write.key)?.clone());
        }
        Some(shared)
    }

    /// Whether more of a turn is needed to complete it than the state that it led to: its writes.
    pub(crate) fn needs_writes(&self, graph: &Graph, turn: Turn, after: &After) -> bool {
        graph.scheduling.brought.is_some()
            || match (&self.shared, after) {
                (Some(_), After::Shared(_)) => false,
                (Some(_), After::Own(_)) => true,
                (None, _) => self.token_of(turn).is_some_and(|token| token.branch.is_logged()),
            }
    }

    /// Whether what a turn writes goes with what other branches wrote meanwhile, where they share a state: that state with the
    /// writes. It is that of the run once the turn is completed, unless another one is completed before.
    pub(crate) fn fits(&self, graph: &Graph, writes: &[Write]) -> Result<Option<State>, WriteError> {
        let Some(mut shared) = self.shared.clone() else { return Ok(None) };
        let is_applied = |write: &&Write| graph.scheduling.brought.as_ref() != Some(&write.key);
        writes.iter().filter(is_applied).try_for_each(|write| apply(graph, &mut shared, write))?;
        Ok(Some(shared))
    }
}
