//! Which branches need not wait any longer.

use std::collections::HashMap;

use hotcell_graph::Reachability;
use hotcell_graph::ir::{Action, Graph, Join, NodeIndex, Unmet};

use super::{Schedule, ScheduleError};
use crate::arrivals::{Arrivals, Verdict};
use crate::token::{Place, Token};

/// What may start: a node, with those that are to become one there.
pub(super) struct Ready {
    pub(super) node: NodeIndex,
    pub(super) tokens: Vec<usize>,
    pub(super) missed: Vec<NodeIndex>,
    /// Whether this is the one time that a join with a condition runs
    pub(super) fires: bool,
}

impl Schedule {
    /// The first waiting branch, with those that meet it, that need not wait for another.
    pub(super) fn next_ready(&self, graph: &Graph) -> Result<Option<Ready>, ScheduleError> {
        if let [Token { place: Place::Waiting(node), .. }] = &self.tokens[..]
            && !matches!(graph.node(*node).join, Join::When(_))
        {
            return Ok(Some(Ready { node: *node, tokens: vec![0], missed: Vec::new(), fires: false }));
        }
        let is_end = |node: NodeIndex| matches!(graph.node(node).action, Action::End { .. });
        let comes_before = |at: usize, other: usize| self.tokens[at].branch.order < self.tokens[other].branch.order;
        let mut first: Option<usize> = None;
        // What holds for one branch holds for all that wait there together.
        let mut together: HashMap<NodeIndex, bool> = HashMap::new();
        for (at, token) in self.tokens.iter().enumerate() {
            let Place::Waiting(node) = token.place else { continue };
            if is_end(node) || first.is_some_and(|first| !comes_before(at, first)) {
                continue;
            }
            let is_ready = || self.ready(graph, at, node).is_some();
            if self.is_alone(graph, token, node) || *together.entry(node).or_insert_with(is_ready) {
                first = Some(at);
            }
        }
        if let Some(ready) = first.and_then(|at| self.ready(graph, at, self.tokens[at].place.node())) {
            return Ok(Some(ready));
        }
        if self.running > 0 {
            return Ok(None);
        }
        // Nothing runs and nothing is free: all branches stand before end nodes, or each waits for another.
        let mut waiting: Vec<(usize, NodeIndex)> =
            self.tokens.iter().map(|token| token.place.node()).enumerate().collect();
        waiting.sort_by(|(left, _), (right, _)| self.tokens[*left].branch.order.cmp(&self.tokens[*right].branch.order));
        let meeting = |node: NodeIndex| {
            let tokens = waiting.iter().filter(|(_, place)| *place == node).map(|(at, _)| *at).collect();
            Ready { node, tokens, missed: Vec::new(), fires: false }
        };
        let conditional = |node: NodeIndex| matches!(graph.node(node).join, Join::When(_));
        if let Some((_, node)) = waiting.iter().find(|(_, node)| !is_end(*node) && !conditional(*node)) {
            return Ok(Some(meeting(*node)));
        }
        for (_, node) in waiting.iter().filter(|(_, node)| conditional(*node)) {
            let Join::When(join) = &graph.node(*node).join else { continue };
            // What it waits for cannot come any more. One with a deadline waits for that.
            if join.deadline.is_none() || self.expired.contains(node) {
                let missed = self.arrivals(*node, true).missing(&join.condition);
                return Ok(Some(Ready { missed, fires: true, ..meeting(*node) }));
            }
        }
        let mut ends: Vec<NodeIndex> = waiting.iter().map(|(_, node)| *node).filter(|node| is_end(*node)).collect();
        ends.sort_unstable();
        ends.dedup();
        match &ends[..] {
            [] => Ok(None),
            _ if ends.len() < waiting.len() && waiting.iter().any(|(_, node)| conditional(*node)) => Ok(None),
            [end] => Ok(Some(meeting(*end))),
            _ => Err(ScheduleError::Ends(ends)),
        }
    }

    /// Whether a branch that came to a node waits there for no other.
    fn is_alone(&self, graph: &Graph, token: &Token, node: NodeIndex) -> bool {
        match &graph.node(node).join {
            Join::Each => true,
            Join::All => false,
            Join::When(_) => !token.is_waited_for,
        }
    }

    /// What starts with the branch that waits there, if it need not wait.
    fn ready(&self, graph: &Graph, at: usize, node: NodeIndex) -> Option<Ready> {
        let alone = Ready { node, tokens: vec![at], missed: Vec::new(), fires: false };
        match &graph.node(node).join {
            Join::Each => Some(alone),
            Join::All if self.blocked(graph, node) => None,
            Join::All => Some(Ready { tokens: self.waiting_at(node), ..alone }),
            Join::When(_) if !self.tokens[at].is_waited_for => Some(alone),
            Join::When(join) => {
                let tokens = self.waiting_at(node).into_iter().filter(|at| self.tokens[*at].is_waited_for);
                let fires = Ready { tokens: tokens.collect(), fires: true, ..alone };
                match self.arrivals(node, self.expired.contains(&node)).verdict(&join.condition) {
                    Verdict::Yes { arrived: true } => Some(fires),
                    Verdict::Never if join.unmet == Unmet::Skip => None,
                    Verdict::Never => {
                        let missed = self.arrivals(node, true).missing(&join.condition);
                        Some(Ready { missed, ..fires })
                    }
                    Verdict::Yes { arrived: false } | Verdict::NotYet => None,
                }
            }
        }
    }

    fn waiting_at(&self, node: NodeIndex) -> Vec<usize> {
        let waits = |token: &Token| matches!(token.place, Place::Waiting(place) if place == node);
        self.tokens.iter().enumerate().filter(|(_, token)| waits(token)).map(|(at, _)| at).collect()
    }

    /// Who has come to a join, who is on the way, and who will not come.
    pub(super) fn arrivals(&self, join: NodeIndex, expired: bool) -> Arrivals<'_> {
        Arrivals::at(join, &self.tokens, self.visits.len(), &self.failed, expired)
    }

    /// Whether another branch may still arrive at `node`, where some wait.
    fn blocked(&self, graph: &Graph, node: NodeIndex) -> bool {
        let reach = self.reach.get_or_init(|| Reachability::new(graph));
        let (here, elsewhere): (Vec<&Token>, Vec<&Token>) =
            self.tokens.iter().partition(|token| matches!(token.place, Place::Waiting(place) if place == node));
        elsewhere.into_iter().any(|other| {
            let place = other.place.node();
            if !reach.reaches(place, node) || !reach.reaches(node, place) {
                return reach.reaches(place, node);
            }
            // Within a cycle everything lies behind everything. What is behind the node where the branches split is the
            // next time round, for which nobody waits.
            here.iter().any(|token| match token.branch.split_from(&other.branch) {
                Some(split) => Reachability::reaches_around(graph, place, node, split),
                None => true,
            })
        })
    }
}
