//! Which nodes can still be reached from which by declared edges: what a join waits for.

use crate::ir::{Graph, NodeIndex};

/// The transitive closure of a graph's declared edges.
#[derive(Clone, Debug)]
pub struct Reachability {
    words: usize,
    bits: Vec<u64>,
}

impl Reachability {
    /// Computes the closure: `nodes * edges / 64` steps.
    pub fn new(graph: &Graph) -> Self {
        let words = graph.len().div_ceil(64);
        let successors: Vec<Vec<NodeIndex>> = graph.nodes().map(|(index, _)| graph.successors(index)).collect();
        let mut bits = vec![0u64; words * graph.len()];
        // Later nodes of a file are mostly targets of earlier ones, so going backwards settles in few rounds.
        let mut row = vec![0u64; words];
        loop {
            let mut changed = false;
            for from in (0..graph.len()).rev() {
                row.copy_from_slice(&bits[from * words..][..words]);
                for target in &successors[from] {
                    let target = target.as_usize();
                    row[target / 64] |= 1 << (target % 64);
                    for (word, reached) in row.iter_mut().zip(&bits[target * words..][..words]) {
                        *word |= reached;
                    }
                }
                let stored = &mut bits[from * words..][..words];
                if stored != row {
                    stored.copy_from_slice(&row);
                    changed = true;
                }
            }
            if !changed {
                return Reachability { words, bits };
            }
        }
    }

    /// Whether `to` lies behind `from`, over at least one edge.
    pub fn reaches(&self, from: NodeIndex, to: NodeIndex) -> bool {
        let to = to.as_usize();
        self.bits[from.as_usize() * self.words + to / 64] & (1 << (to % 64)) != 0
    }

    /// Whether `to` lies behind `from` without `around` in between. This is a walk through the graph.
    pub fn reaches_around(graph: &Graph, from: NodeIndex, to: NodeIndex, around: NodeIndex) -> bool {
        let mut seen = vec![false; graph.len()];
        seen[around.as_usize()] = true;
        let mut ahead = if from == around { Vec::new() } else { vec![from] };
        while let Some(node) = ahead.pop() {
            for next in graph.successors(node) {
                if next == to {
                    return true;
                }
                if !std::mem::replace(&mut seen[next.as_usize()], true) {
                    ahead.push(next);
                }
            }
        }
        false
    }
}
