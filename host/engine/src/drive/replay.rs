//! Bringing a graph to where the entries of its run left it.

use std::collections::{HashMap, HashSet};

use hotcell_graph::State;

use super::Drive;
use crate::branch::apply;
use crate::memory::Moved;
use crate::outcome::{Outcome, RunError};
use crate::schedule::{After, Route, Start};
use crate::token::Turn;

impl Drive {
    /// Brings the schedule to where its completed turns left it. `Some` if the run had ended without saying so.
    pub(crate) fn replay(&mut self, moves: Vec<Moved>) -> Result<Option<(Outcome, State)>, RunError> {
        let run = self.context.run.clone();
        let mismatch = |cause: String| RunError::Mismatch { run: run.clone(), cause };
        let mut started: HashMap<Turn, Start> = HashMap::new();
        for moved in moves {
            self.schedule_into(&mut started);
            let (place, completed) = match moved {
                Moved::Completed(place, completed) => (place, completed),
                Moved::Expired(node) => {
                    let node = self.graph.find(&node).ok_or_else(|| mismatch(format!("there is no node `{node}`")))?;
                    self.schedule.expire(node);
                    continue;
                }
            };
            let turn = self.context.turn_at(&place).ok_or_else(|| mismatch(format!("`{place}` is not a turn")))?;
            let start = started.remove(&turn).ok_or_else(|| {
                mismatch(format!("turn {turn} was `{}`, and the graph does not come there", completed.node))
            })?;
            let id = &self.graph.node(start.node).id;
            if **id != *completed.node {
                return Err(mismatch(format!("turn {turn} was `{}`, the graph says `{id}`", completed.node)));
            }
            let mut state = start.state;
            for write in &completed.writes {
                apply(&self.graph, &mut state, write).map_err(|error| mismatch(error.to_string()))?;
            }
            let route = match &completed.next {
                None => Route::End,
                Some(ids) => Route::To(
                    ids.iter()
                        .map(|id| self.graph.find(id).ok_or_else(|| mismatch(format!("there is no node `{id}`"))))
                        .collect::<Result<_, _>>()?,
                ),
            };
            self.timings.add(start.node, completed.elapsed);
            self.worked += completed.elapsed;
            self.account += completed.account;
            self.note_failure(start.node, completed.failure.as_deref());
            let (writes, has_failed) = (completed.writes, completed.failure.is_some());
            let ended = self.schedule.complete(&self.graph, turn, writes, After::Own(state), &route, has_failed);
            match ended {
                Ok(Some(state)) => return Ok(Some((self.end(completed.output, &state), state))),
                Ok(None) => {}
                // The live run met the same error after this entry, and died before it could say so.
                Err(error) => return Ok(Some((self.explain(error), self.schedule.state()))),
            }
        }
        self.schedule_into(&mut started);
        let mut open: Vec<Start> = started.into_values().collect();
        open.sort_by_key(|start| start.turn);
        self.queue = open.into();
        Ok(None)
    }

    /// Leaves out all turns that are to be begun but these.
    pub(crate) fn begin_only(&mut self, turns: &HashSet<Turn>) {
        self.queue.retain(|start| turns.contains(&start.turn));
    }

    /// A turn that is to be begun.
    pub(crate) fn start_of(&self, turn: Turn) -> Option<&Start> {
        self.queue.iter().find(|start| start.turn == turn)
    }

    /// The node of a turn that is to be begun.
    pub(crate) fn begins(&self, turn: Turn) -> Option<&str> {
        Some(&self.graph.node(self.start_of(turn)?.node).id)
    }

    /// Starts what is ready.
    fn schedule_into(&mut self, started: &mut HashMap<Turn, Start>) {
        // The live run met the same error after its last entry and will meet it again.
        let starts = self.schedule.start_ready(&self.graph).unwrap_or_default();
        started.extend(starts.into_iter().map(|start| (start.turn, start)));
    }
}
