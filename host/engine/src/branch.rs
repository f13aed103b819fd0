//! Branches of a run: what each of them has written since it split off, and how they become one again.
//!
//! A branch works on the state as it was when it split off, plus its own writes. Where branches meet, their writes are
//! replayed on the state of the split in the order in which the branches were declared, so that the result does not
//! depend on which of them was faster. While there is only one branch nothing is logged and nothing grows.

use std::collections::HashMap;
use std::sync::Arc;

use hotcell_graph::ir::{Graph, NodeIndex};
use hotcell_graph::{Key, ReducerError, State};
use hotcell_journal::Write;
use thiserror::Error;

/// Why writes cannot become state.
#[derive(Debug, Error, Clone, PartialEq)]
pub enum WriteError {
    /// The reducer of the key does not take the value
    #[error("cannot write `{key}`: {source}")]
    Reducer {
        /// The key
        key: Key,
        /// What the reducer says
        source: ReducerError,
    },
    /// Two branches wrote one key
    #[error(
        "`{key}` was written by `{}` and `{}`, which run side by side, and it has no reducer that says how to combine \
         what they wrote",
        by[0], by[1]
    )]
    Conflict {
        /// The key
        key: Key,
        /// The nodes that wrote it
        by: [Key; 2],
    },
}

/// Applies a write to a state through the reducer of its key.
pub(crate) fn apply(graph: &Graph, state: &mut State, write: &Write) -> Result<(), WriteError> {
    let value = match graph.reducers.get(&write.key) {
        Some(reducer) => reducer
            .reduce(state.get(&write.key), write.value.clone())
            .map_err(|source| WriteError::Reducer { key: write.key.clone(), source })?,
        None => write.value.clone(),
    };
    state.set(write.key.clone(), value);
    Ok(())
}

/// Writes of one branch between two places where it split or met others.
#[derive(Debug)]
struct Segment {
    /// Segments whose writes this one saw
    seen: Vec<Arc<Segment>>,
    /// Each with the node that wrote it
    writes: Vec<(NodeIndex, Write)>,
}

/// Where a branch split off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Fork {
    /// Which of the branches it is
    index: u32,
    /// The node with several targets
    at: NodeIndex,
}

/// One branch of a run.
#[derive(Clone, Debug)]
pub(crate) struct Branch {
    /// Position among all branches: compared in declaration order
    pub(crate) order: Vec<Fork>,
    /// The state as this branch sees it
    pub(crate) state: State,
    /// What it shares with branches it will meet; none for the only branch of a run
    log: Option<Log>,
}

/// The writes of a branch since the run had only one.
#[derive(Clone, Debug)]
struct Log {
    /// The state when the run last had only one branch
    start: State,
    /// Everything up to the last split or meeting, in the order of replay
    history: Vec<Arc<Segment>>,
    /// Everything since, each with the node that wrote it
    writes: Vec<(NodeIndex, Write)>,
}

impl Log {
    /// The whole history, the latest writes included.
    fn into_history(self) -> Vec<Arc<Segment>> {
        let mut history = self.history;
        if !self.writes.is_empty() {
            history.push(Arc::new(Segment { seen: history.clone(), writes: self.writes }));
        }
        history
    }
}

impl Branch {
    pub(crate) fn root(state: State) -> Self {
        Branch { order: Vec::new(), state, log: None }
    }

    /// Whether what it writes is replayed where it meets others.
    pub(crate) fn is_logged(&self) -> bool {
        self.log.is_some()
    }

    /// Adds writes of a node that led to `state`.
    pub(crate) fn record(&mut self, node: NodeIndex, writes: Vec<Write>, state: State) {
        self.state = state;
        if let Some(log) = &mut self.log {
            log.writes.extend(writes.into_iter().map(|write| (node, write)));
        }
    }

    /// The node at which this branch and another one split.
    pub(crate) fn split_from(&self, other: &Branch) -> Option<NodeIndex> {
        self.order.iter().zip(&other.order).find(|(own, of_other)| own != of_other).map(|(own, _)| own.at)
    }

    /// Splits into `count` branches after a node. What each writes is logged where they are to become one again.
    pub(crate) fn split(self, at: NodeIndex, count: usize, is_logged: bool) -> Vec<Branch> {
        let (start, history) = match self.log {
            Some(log) => (log.start.clone(), log.into_history()),
            None => (self.state.clone(), Vec::new()),
        };
        (0..count)
            .map(|index| {
                let mut order = self.order.clone();
                order.push(Fork { index: index as u32, at });
                let log = Log { start: start.clone(), history: history.clone(), writes: Vec::new() };
                Branch { order, state: self.state.clone(), log: is_logged.then_some(log) }
            })
            .collect()
    }

    /// Makes one branch of several that meet; `alone` if no other branch is left. Every write that one of them saw is
    /// replayed once, on the state that all of them began with.
    pub(crate) fn merge(graph: &Graph, mut meeting: Vec<Branch>, alone: bool) -> Result<Branch, WriteError> {
        meeting.sort_by(|left, right| left.order.cmp(&right.order));
        let mut merged = Branch { order: Vec::new(), state: State::default(), log: None };
        let mut history: Vec<Arc<Segment>> = Vec::new();
        for (index, branch) in meeting.into_iter().enumerate() {
            if index == 0 {
                merged.order = branch.order;
                merged.state = branch.log.as_ref().map_or(branch.state, |log| log.start.clone());
            }
            for segment in branch.log.map(Log::into_history).unwrap_or_default() {
                if !history.iter().any(|known| Arc::ptr_eq(known, &segment)) {
                    history.push(segment);
                }
            }
        }

        let start = merged.state.clone();
        let mut writers: HashMap<&Key, (&Arc<Segment>, NodeIndex)> = HashMap::new();
        for segment in &history {
            for (node, write) in &segment.writes {
                let saw = |writer: &Arc<Segment>| {
                    Arc::ptr_eq(writer, segment) || segment.seen.iter().any(|seen| Arc::ptr_eq(seen, writer))
                };
                if let Some((writer, other)) = writers.insert(&write.key, (segment, *node))
                    && !saw(writer)
                    && !graph.reducers.contains_key(&write.key)
                {
                    let by = [other, *node].map(|node| graph.node(node).speaks_as().clone());
                    return Err(WriteError::Conflict { key: write.key.clone(), by });
                }
                apply(graph, &mut merged.state, write)?;
            }
        }
        if alone {
            return Ok(Branch::root(merged.state));
        }
        merged.log = Some(Log { start, history, writes: Vec::new() });
        Ok(merged)
    }
}
