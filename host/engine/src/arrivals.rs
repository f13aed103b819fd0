//! Who has come to a join with a condition, and what that means.

use std::collections::HashSet;

use hotcell_graph::ir::{Arrived, NodeIndex};

use crate::token::{Place, Token};

/// Branches as seen from a join.
pub(crate) struct Arrivals<'a> {
    /// By node: whether one has come from there
    come: Vec<bool>,
    /// By node: whether one is there
    at: Vec<bool>,
    /// Nodes whose last turn failed and ended its branch
    failed: &'a HashSet<NodeIndex>,
    /// Whether nothing more is waited for
    expired: bool,
}

/// What a condition comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It holds
    Yes {
        /// Whether somebody came for it; without, nobody was needed
        arrived: bool,
    },
    /// It may hold later
    NotYet,
    /// It cannot hold any more
    Never,
}

impl<'a> Arrivals<'a> {
    /// The branches of a graph of so many nodes as seen from `join`, which has waited long enough or has not.
    pub(crate) fn at(
        join: NodeIndex,
        tokens: &[Token],
        nodes: usize,
        failed: &'a HashSet<NodeIndex>,
        expired: bool,
    ) -> Self {
        let (mut come, mut at) = (vec![false; nodes], vec![false; nodes]);
        for token in tokens {
            at[token.place.node().as_usize()] = true;
            if let (Place::Waiting(place), Some(from)) = (token.place, token.from)
                && place == join
            {
                come[from.as_usize()] = true;
            }
        }
        Self { come, at, failed, expired }
    }

    /// What the condition comes to now.
    pub(crate) fn verdict(&self, condition: &Arrived) -> Verdict {
        match condition {
            Arrived::From(node) if self.come[node.as_usize()] => Verdict::Yes { arrived: true },
            Arrived::From(node) if self.expired || self.failed.contains(node) => Verdict::Never,
            Arrived::From(_) => Verdict::NotYet,
            Arrived::Optional(inner) => match self.verdict(inner) {
                Verdict::Yes { arrived: true } => Verdict::Yes { arrived: true },
                _ if !self.expired && inner.is_any(&|node| self.at[node.as_usize()]) => Verdict::NotYet,
                _ => Verdict::Yes { arrived: false },
            },
            Arrived::All(parts) => {
                let verdicts: Vec<Verdict> = parts.iter().map(|part| self.verdict(part)).collect();
                match () {
                    () if verdicts.contains(&Verdict::Never) => Verdict::Never,
                    () if verdicts.contains(&Verdict::NotYet) => Verdict::NotYet,
                    () => Verdict::Yes { arrived: verdicts.contains(&Verdict::Yes { arrived: true }) },
                }
            }
            Arrived::Any(parts) => {
                let verdicts: Vec<Verdict> = parts.iter().map(|part| self.verdict(part)).collect();
                let order = [Verdict::Yes { arrived: true }, Verdict::NotYet, Verdict::Yes { arrived: false }];
                order.into_iter().find(|verdict| verdicts.contains(verdict)).unwrap_or(Verdict::Never)
            }
        }
    }

    /// The nodes without which the condition does not hold, and from which nobody has come.
    pub(crate) fn missing(&self, condition: &Arrived) -> Vec<NodeIndex> {
        match condition {
            Arrived::From(node) if self.come[node.as_usize()] => Vec::new(),
            Arrived::From(node) => vec![*node],
            Arrived::Optional(_) => Vec::new(),
            Arrived::All(parts) => parts.iter().flat_map(|part| self.missing(part)).collect(),
            Arrived::Any(parts) => {
                let missing: Vec<Vec<NodeIndex>> = parts.iter().map(|part| self.missing(part)).collect();
                if missing.iter().any(Vec::is_empty) { Vec::new() } else { missing.concat() }
            }
        }
    }
}
