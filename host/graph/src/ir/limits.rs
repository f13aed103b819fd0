//! Caps on whole runs.

use std::time::Duration;

use hotcell_budget::RunBudget;

use crate::value::Key;

/// Caps on a whole run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunLimits {
    /// How often one node may be entered
    pub visits_per_node: Option<VisitCap>,
    /// How many rounds a run may have: the longest chain of nodes, each of which waited for the one before
    pub rounds: Option<VisitCap>,
    /// How many turns a run may have. A run that comes to it stops, and has not failed
    pub turns: Option<VisitCap>,
    /// How often nodes may lead to others that somebody wrote. A first node that nobody wrote does not count. A run that comes to
    /// it stops, and has not failed
    pub hops: Option<VisitCap>,
    /// The key of the state with which a run begins that says how often nodes led to others before it: [`hops`](Self::hops) caps
    /// both together
    pub hops_before: Option<Key>,
    /// Wall clock, checked before each node starts; a node that is running is not cut short by it
    pub wall_clock: Option<Duration>,
    /// Wall clock that also ends what is running
    pub deadline: Option<Duration>,
    /// How many branches and map items run at the same time
    pub concurrency: usize,
    /// How many agents deep those of its nodes may be that call agents, counted from the run
    pub agent_depth: u32,
    /// What all calls of the run may use together
    pub budget: RunBudget,
}

impl RunLimits {
    /// How many agents deep a run goes whose graph does not say.
    pub const AGENT_DEPTH: u32 = 3;
}

/// A cap on entering nodes, with what an error says of it.
#[derive(Clone, Debug, PartialEq)]
pub struct VisitCap {
    /// The largest number of visits
    pub visits: u32,
    /// Where it comes from
    pub origin: CapOrigin,
}

/// Where a cap comes from, and so what may be done about it.
#[derive(Clone, Debug, PartialEq)]
pub enum CapOrigin {
    /// A setting of the source, by its name
    Setting(&'static str),
    /// The source has no setting for it: what it means for a person that it is reached, and what to do
    Fixed(String),
}
