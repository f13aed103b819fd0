//! The state of a run as its entries build it, one after the other.

use std::sync::Arc;

use hotcell_graph::State;
use hotcell_graph::ir::Graph;
use hotcell_journal::{Completed, Entry, Fact};

use crate::branch::{WriteError, apply};

/// The state of a run, which follows its entries.
///
/// Writes count in the order in which they were committed. Where branches run side by side, a node may have seen less than that.
#[derive(Clone, Debug)]
pub struct StateFold {
    graph: Arc<Graph>,
    state: State,
}

impl StateFold {
    /// From the state that a run began with.
    pub(crate) fn new(graph: Arc<Graph>, state: State) -> Self {
        StateFold { graph, state }
    }

    /// Follows an entry. True if a turn of the run's own graph was completed, whether or not it wrote something.
    ///
    /// # Errors
    /// When a write does not fit what the state holds.
    pub fn follow(&mut self, entry: &Entry) -> Result<bool, WriteError> {
        match &entry.fact {
            Fact::Completed(completed) if entry.place.around().is_none() => {
                self.complete(completed)?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Follows a completed turn of the run's own graph.
    pub(crate) fn complete(&mut self, completed: &Completed) -> Result<(), WriteError> {
        completed.writes.iter().try_for_each(|write| apply(&self.graph, &mut self.state, write))
    }

    /// The state at this point.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The state at this point, alone.
    pub(crate) fn into_state(self) -> State {
        self.state
    }
}
