//! Which nodes can still be reached from which by declared edges: what a join waits for.

use crate::ir::{Graph, NodeIndex};

/// The transitive closure of a graph's declared edges.
#[derive(Clone, Debug)]
pub struct Reachability {
    words: usize,
    bits: Vec<u64>,
}

impl Reachability {
    /// Computes the closure: `edges * nodes / 64` steps, whatever the edges are.
    pub fn new(graph: &Graph) -> Self {
        let targets = |index| -> Vec<usize> { graph.successors(index).into_iter().map(NodeIndex::as_usize).collect() };
        let successors: Vec<Vec<usize>> = graph.nodes().map(|(index, _)| targets(index)).collect();
        Self::of(&successors)
    }

    /// The closure of edges between numbered nodes: where each leads to.
    // By Tarjan's algorithm: nodes that lead to each other are found together, and after all that they lead to. What they reach is
    // then the same for all of them, and known.
    pub fn of(successors: &[Vec<usize>]) -> Self {
        const UNSEEN: usize = usize::MAX;
        let nodes = successors.len();
        let words = nodes.div_ceil(64);
        let mut bits = vec![0u64; words * nodes];
        let mut row = vec![0u64; words];
        let (mut number, mut lowest, mut is_open) = (vec![UNSEEN; nodes], vec![0; nodes], vec![false; nodes]);
        let (mut open, mut seen) = (Vec::new(), 0);
        for root in 0..nodes {
            // The path from the root: each node with the number of the next edge to follow.
            let mut path = if number[root] == UNSEEN { vec![(root, 0)] } else { Vec::new() };
            while let Some((node, edge)) = path.last_mut() {
                let node = *node;
                if number[node] == UNSEEN {
                    (number[node], lowest[node], is_open[node]) = (seen, seen, true);
                    seen += 1;
                    open.push(node);
                }
                if let Some(target) = successors[node].get(*edge) {
                    *edge += 1;
                    if number[*target] == UNSEEN {
                        path.push((*target, 0));
                    } else if is_open[*target] {
                        lowest[node] = lowest[node].min(number[*target]);
                    }
                    continue;
                }
                path.pop();
                if let Some((before, _)) = path.last() {
                    lowest[*before] = lowest[*before].min(lowest[node]);
                }
                if lowest[node] != number[node] {
                    continue;
                }
                let begin = open.iter().rposition(|other| *other == node).unwrap_or(0);
                let together = open.split_off(begin);
                row.fill(0);
                for target in together.iter().flat_map(|member| &successors[*member]) {
                    row[target / 64] |= 1 << (target % 64);
                    for (word, reached) in row.iter_mut().zip(&bits[target * words..][..words]) {
                        *word |= reached;
                    }
                }
                for member in together {
                    is_open[member] = false;
                    bits[member * words..][..words].copy_from_slice(&row);
                }
            }
        }
        Reachability { words, bits }
    }

    /// Whether `to` lies behind `from`, over at least one edge.
    pub fn reaches(&self, from: NodeIndex, to: NodeIndex) -> bool {
        self.leads(from.as_usize(), to.as_usize())
    }

    /// The same by the numbers of the nodes.
    pub fn leads(&self, from: usize, to: usize) -> bool {
        self.bits[from * self.words + to / 64] & (1 << (to % 64)) != 0
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closure_is_what_walks_find() {
        // Numbers that look like chance and are the same each time.
        let mut state = 7_u64;
        let mut below = |most: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % most
        };
        for nodes in [1, 2, 3, 5, 8, 70, 130] {
            for edges in [0, 1, nodes / 2, nodes, 2 * nodes, 4 * nodes] {
                let mut successors = vec![Vec::new(); nodes];
                for _ in 0..edges {
                    let (from, to) = (below(nodes), below(nodes));
                    successors[from].push(to);
                }
                let reach = Reachability::of(&successors);
                for from in 0..nodes {
                    let mut reached = vec![false; nodes];
                    let mut ahead = successors[from].clone();
                    while let Some(node) = ahead.pop() {
                        if !std::mem::replace(&mut reached[node], true) {
                            ahead.extend(&successors[node]);
                        }
                    }
                    let found = |to: usize| reach.bits[from * reach.words + to / 64] & (1 << (to % 64)) != 0;
                    assert!((0..nodes).all(|to| found(to) == reached[to]), "{nodes} {edges} {from}: {successors:?}");
                }
            }
        }
    }

    /// A chain whose end is written first took as many rounds as it has nodes.
    #[test]
    fn the_order_of_nodes_costs_nothing() {
        let nodes = 4_000;
        let backwards: Vec<Vec<usize>> =
            (0..nodes).map(|node: usize| node.checked_sub(1).into_iter().collect()).collect();
        let reach = Reachability::of(&backwards);
        let reached = |from: usize| {
            reach.bits[from * reach.words..][..reach.words].iter().map(|word| word.count_ones()).sum::<u32>()
        };
        assert!((0..nodes).all(|from| reached(from) == from as u32));
    }
}
