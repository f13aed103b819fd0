//! How long the nodes of a run took, for the summary at its end.

use std::time::Duration;

use hotcell_graph::ir::{Graph, NodeIndex};

/// Visits and times of every node.
#[derive(Clone, Debug)]
pub struct Timings(Vec<NodeTiming>);

/// Visits and times of one node.
#[derive(Clone, Debug)]
pub struct NodeTiming {
    /// The node's id
    pub node: hotcell_graph::Key,
    /// How often it ran
    pub visits: u32,
    /// All its turns together
    pub total: Duration,
    /// Its longest turn
    pub longest: Duration,
}

impl Timings {
    pub(crate) fn new(graph: &Graph) -> Self {
        let none = |id: &hotcell_graph::Key| NodeTiming {
            node: id.clone(),
            visits: 0,
            total: Duration::ZERO,
            longest: Duration::ZERO,
        };
        Timings(graph.nodes().map(|(_, node)| none(&node.id)).collect())
    }

    /// Of a graph whose times nobody looks at.
    pub(crate) fn none() -> Self {
        Timings(Vec::new())
    }

    pub(crate) fn add(&mut self, node: NodeIndex, elapsed: Duration) {
        let Some(timing) = self.0.get_mut(node.as_usize()) else { return };
        timing.visits += 1;
        timing.total += elapsed;
        timing.longest = timing.longest.max(elapsed);
    }

    /// The nodes that ran, the slowest first.
    pub fn slowest_first(&self) -> Vec<&NodeTiming> {
        let mut ran: Vec<&NodeTiming> = self.0.iter().filter(|timing| timing.visits > 0).collect();
        ran.sort_by_key(|timing| std::cmp::Reverse(timing.total));
        ran
    }

    pub(crate) fn log(&self, graph: &str) {
        if !tracing::enabled!(target: "hotcell::graph", tracing::Level::INFO) {
            return;
        }
        tracing::info!(target: "hotcell::graph", "[graph:{graph}] performance summary (slowest first):");
        for timing in self.slowest_first() {
            let average = timing.total / timing.visits;
            tracing::info!(
                target: "hotcell::graph",
                "[graph:{graph}] {}: {} visit(s), total {}ms, avg {}ms, max {}ms",
                timing.node,
                timing.visits,
                timing.total.as_millis(),
                average.as_millis(),
                timing.longest.as_millis()
            );
        }
    }
}
