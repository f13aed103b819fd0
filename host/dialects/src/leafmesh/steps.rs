//! Steps of the work of an agent.

use hotcell_graph::ir::{Action, Expression, Next, NodeIndex, Update};

/// A step of the work. The last one is followed by the check of what it gave.
pub(super) struct Work {
    pub(super) name: &'static str,
    pub(super) action: Action,
    pub(super) updates: Vec<Update>,
    pub(super) next: Option<Onward>,
}

/// Where a step leads that is not followed by the check.
pub(super) enum Onward {
    To(&'static str),
    /// To the first of these if it holds, otherwise to the second
    If(Expression, &'static str, &'static str),
}

impl Onward {
    pub(super) fn into_next(self, index: &dyn Fn(&str) -> Option<NodeIndex>) -> Next {
        let to = |name: &str| Next::To(index(name).into_iter().collect());
        match self {
            Onward::To(name) => to(name),
            Onward::If(condition, then, otherwise) => {
                Next::When { condition, then: Box::new(to(then)), otherwise: Box::new(to(otherwise)) }
            }
        }
    }
}
