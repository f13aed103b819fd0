//! Branches as the schedule sees them: where they are, and where they came from.

use hotcell_graph::ir::NodeIndex;
use hotcell_graph::{State, Value};

use crate::branch::Branch;

/// The number of a node's turn in a run, from 1 in the order in which turns started.
pub type Turn = u64;

/// Where a branch is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    Waiting(NodeIndex),
    Running(NodeIndex, Turn),
}

impl Place {
    pub(crate) fn node(self) -> NodeIndex {
        let (Place::Waiting(node) | Place::Running(node, _)) = self;
        node
    }
}

/// A branch, at a node.
#[derive(Debug)]
pub(crate) struct Token {
    pub(crate) branch: Branch,
    pub(crate) place: Place,
    /// What all branches shared when its turn began; none before and after it, and where they share nothing
    pub(crate) shared: Option<State>,
    /// The node that it came from; none where the run begins
    pub(crate) from: Option<NodeIndex>,
    /// How many nodes led here, each of which waited for the one before
    pub(crate) round: u32,
    /// What it brings along, if nodes find that
    pub(crate) brings: Option<Value>,
    /// Which of all arrivals at nodes it was
    pub(crate) arrival: u64,
    /// Whether it waits at a join whose condition names where it came from
    pub(crate) is_waited_for: bool,
}

impl Token {
    /// The branch with which a run begins.
    pub(crate) fn at_the_start(branch: Branch, start: NodeIndex) -> Self {
        Token::at(Place::Waiting(start), branch, None, 0)
    }

    /// A branch at a place, which brings nothing along.
    pub(crate) fn at(place: Place, branch: Branch, from: Option<NodeIndex>, round: u32) -> Self {
        Token { branch, place, shared: None, from, round, brings: None, arrival: 0, is_waited_for: false }
    }
}
