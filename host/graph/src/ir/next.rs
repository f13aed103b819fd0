//! Where a node goes.

use super::{Edge, Expression, NodeIndex};

/// Where a node goes on success.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// To all of these side by side; empty means nowhere: leaving the node is then a failure of the run
    To(Vec<NodeIndex>),
    /// By the text the action answered
    ByAnswer {
        /// The answers that are known, with their targets
        routes: Vec<(String, NodeIndex)>,
        /// The target of every other answer
        otherwise: NodeIndex,
    },
    /// By the text of a value
    ByValue {
        /// The value, of the state that the node left
        value: Expression,
        /// The texts that are known, with their targets
        routes: Vec<(String, NodeIndex)>,
        /// The target of everything else, `null` included
        otherwise: NodeIndex,
    },
    /// By the state that the node left
    When {
        /// What has to be true or false
        condition: Expression,
        /// Where it goes if it is true
        then: Box<Next>,
        /// Where it goes if it is false
        otherwise: Box<Next>,
    },
    /// To wherever each of these leads, side by side
    Each(Vec<Next>),
    /// Along every edge that is open; with none, the branch ends here
    Open(Vec<Edge>),
}

impl Next {
    /// Whether it may lead nowhere, so that the branch ends.
    pub fn may_end_branch(&self) -> bool {
        match self {
            Next::Open(_) => true,
            Next::When { then, otherwise, .. } => then.may_end_branch() || otherwise.may_end_branch(),
            Next::Each(all) => all.iter().any(Next::may_end_branch),
            Next::To(_) | Next::ByAnswer { .. } | Next::ByValue { .. } => false,
        }
    }

    /// All targets, in order.
    pub fn targets(&self) -> Vec<NodeIndex> {
        match self {
            Next::To(targets) => targets.clone(),
            Next::ByAnswer { routes, otherwise } | Next::ByValue { routes, otherwise, .. } => {
                routes.iter().map(|(_, target)| *target).chain([*otherwise]).collect()
            }
            Next::When { then, otherwise, .. } => then.targets().into_iter().chain(otherwise.targets()).collect(),
            Next::Each(all) => all.iter().flat_map(Next::targets).collect(),
            Next::Open(edges) => edges.iter().map(|edge| edge.target).collect(),
        }
    }
}

/// Where a node goes when its action fails.
#[derive(Clone, Debug, PartialEq)]
pub enum OnFailure {
    /// The run fails
    Fail,
    /// To this node
    To(NodeIndex),
    /// Where it goes on success, with the error's text in state
    Continue,
    /// Nowhere: its branch ends, and the others go on
    EndBranch,
}
