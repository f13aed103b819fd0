//! In which order questions are answered that are open at once: in that of their nodes in the file, whichever asked first.
//!
//! A case has its answers in order, one for each pause. Where branches run side by side, chance says which of them asks first,
//! so the run counts as paused when none of them goes on without an answer.

use std::collections::{BTreeSet, HashMap};

use hotcell_runtime::Event;
use hotcell_runtime::ir::Graph;

/// A question that waits for its answer: where its node stands in the file, and a number.
pub(crate) type Place = (usize, u64);

/// The turns that are under way, and the questions that wait.
#[derive(Debug, Default)]
pub(crate) struct Order {
    /// Where nodes stand in the file
    ranks: HashMap<String, usize>,
    /// Where in the run turns are that are under way
    turns: BTreeSet<String>,
    /// Whether two of them ever were at once
    is_parallel: bool,
    asking: BTreeSet<Place>,
    /// How many questions nobody answered; their turns wait on
    unanswered: usize,
    number: u64,
    happened: u64,
}

impl Order {
    /// The order of a graph.
    pub(crate) fn of(graph: &Graph) -> Self {
        let ranks = graph.nodes().enumerate().map(|(rank, (_, node))| (node.id.to_string(), rank)).collect();
        Order { ranks, ..Order::default() }
    }

    /// Takes note of what happened.
    pub(crate) fn follow(&mut self, event: &Event<'_>) {
        self.happened += 1;
        match innermost(event) {
            Event::NodeStarted { place, .. } => {
                self.turns.insert((*place).to_owned());
                self.is_parallel |= self.under_way() > 1;
            }
            Event::NodeCompleted { place, .. } | Event::NodeFailed { place, .. } => {
                self.turns.remove(*place);
            }
            _ => {}
        }
    }

    /// A question of a node waits from now on.
    pub(crate) fn begin(&mut self, node: &str) -> Place {
        self.number += 1;
        let place = (self.rank(node), self.number);
        self.asking.insert(place);
        place
    }

    /// It waits no more.
    pub(crate) fn end(&mut self, place: Place) {
        self.asking.remove(&place);
    }

    /// Nobody answered a question.
    pub(crate) fn leave_open(&mut self) {
        self.unanswered += 1;
    }

    /// Whether this question is the first of those that wait.
    pub(crate) fn is_first(&self, place: Place) -> bool {
        self.asking.first() == Some(&place)
    }

    /// Whether nothing goes on without an answer.
    pub(crate) fn is_quiet(&self) -> bool {
        self.asking.len() + self.unanswered >= self.under_way()
    }

    /// Whether there ever was more than one thing at once.
    pub(crate) fn is_parallel(&self) -> bool {
        self.is_parallel
    }

    /// How much has happened.
    pub(crate) fn happened(&self) -> u64 {
        self.happened
    }

    /// How many turns are under way, without those that wait for turns within them.
    fn under_way(&self) -> usize {
        self.turns.iter().filter(|turn| !self.waits_for_others(turn)).count()
    }

    fn waits_for_others(&self, turn: &str) -> bool {
        let within = format!("{turn}.");
        self.turns.range(within.clone()..).next().is_some_and(|other| other.starts_with(&within))
    }

    /// Where a node stands in the file; of one of a graph that a node calls, where that node stands.
    fn rank(&self, node: &str) -> usize {
        let mut name = node;
        loop {
            if let Some(rank) = self.ranks.get(name) {
                return *rank;
            }
            match name.rsplit_once('.') {
                Some((around, _)) => name = around,
                None => return usize::MAX,
            }
        }
    }
}

/// What happened in the graph that it happened in.
fn innermost<'e>(event: &'e Event<'e>) -> &'e Event<'e> {
    match event {
        Event::Within { within, .. } => innermost(within),
        event => event,
    }
}
