//! When nodes run and when a run is over. All of it is data: the engine has one schedule, and languages choose.

use std::time::Duration;

use crate::ir::{Expression, NodeIndex};
use crate::value::Key;

/// How a graph is scheduled as a whole.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scheduling {
    /// When a run is over
    pub ends: Ends,
    /// What branches that run side by side see of each other
    pub sharing: Sharing,
    /// What becomes of a run in which nodes failed and which went on
    pub failed_nodes: FailedNodes,
    /// A key whose value each branch has for itself, also where all share one state: what a node writes to it its branches take
    /// along. The node that they come to finds a list there, of what those brought that began it, in the order in which they
    /// came
    pub brought: Option<Key>,
}

/// What becomes of a run in which nodes failed, once nothing is left to run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailedNodes {
    /// It has its result all the same
    #[default]
    Forgiven,
    /// It has failed
    FailTheRun,
}

/// When a run is over.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Ends {
    /// When it reaches a node that ends it
    #[default]
    AtNode,
    /// When nothing is left to run
    WhenQuiet {
        /// The result, evaluated over the state at that point
        output: Box<Expression>,
    },
}

/// What branches that run side by side see of each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sharing {
    /// Nothing before they meet: each has the state of the split and its own writes, which are combined in the order in which
    /// the branches are declared
    #[default]
    Branches,
    /// Everything: there is one state, to which writes are applied in the order in which turns are committed. What a branch
    /// wrote stays when the branch ends
    Shared,
}

/// What a node waits for when branches lead to it.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Join {
    /// For every branch that can still reach it; they run it once
    #[default]
    All,
    /// For nothing: each branch that arrives runs it
    Each,
    /// For those that a condition names
    When(JoinWhen),
}

/// A join with a condition over the nodes that lead to it. It runs its node once in a run; what arrives later from a node that
/// the condition names is dropped. A branch that comes from a node that the condition does not name, or that the run begins
/// with, runs the node at once.
#[derive(Clone, Debug, PartialEq)]
pub struct JoinWhen {
    /// What has to have arrived
    pub condition: Arrived,
    /// How long it waits after the first arrival. If all that is missing then is optional it runs with what there is;
    /// otherwise it fails, and those that arrived go no further
    pub deadline: Option<Duration>,
    /// What becomes of it when what it waits for cannot come any more
    pub unmet: Unmet,
}

/// What becomes of a join that waits in vain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unmet {
    /// Its node fails
    #[default]
    Fail,
    /// Its node fails, and this is what kind of failure it is
    FailAs(&'static str),
    /// Its node is left out: the branches that arrived end there
    Skip,
}

/// A condition over nodes that lead to a join.
#[derive(Clone, Debug, PartialEq)]
pub enum Arrived {
    /// A branch from this node
    From(NodeIndex),
    /// Waited for while it is on its way, and not missed otherwise: not when it never started, nor when it failed
    Optional(Box<Arrived>),
    /// All of these
    All(Vec<Arrived>),
    /// One of these
    Any(Vec<Arrived>),
}

impl Arrived {
    /// Whether it is true of one of the nodes that it names.
    pub fn is_any(&self, holds: &dyn Fn(NodeIndex) -> bool) -> bool {
        match self {
            Arrived::From(node) => holds(*node),
            Arrived::Optional(inner) => inner.is_any(holds),
            Arrived::All(parts) | Arrived::Any(parts) => parts.iter().any(|part| part.is_any(holds)),
        }
    }

    /// Whether it names a node.
    pub fn names(&self, node: NodeIndex) -> bool {
        self.is_any(&|named| named == node)
    }
}

/// An edge that is taken beside others, if its condition holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Edge {
    /// Closed unless this is true: a value that is missing, or an expression that fails, closes it
    pub condition: Option<Expression>,
    /// Where it leads
    pub target: NodeIndex,
}
