//! Whether a graph can be laid out: a layout looks at every layer that a line crosses, over and over, and thirty nodes that all lead to
//! each other keep it busy for minutes.

use super::Picture;

/// Layers that all lines of a drawing may cross together.
const MOST_LAYERS: usize = 2_000;
/// Lines of a drawing.
const MOST_LINES: usize = 4_000;

impl Picture {
    /// Whether nobody would live to see it laid out.
    pub(crate) fn is_too_dense(&self) -> bool {
        let lines: Vec<(usize, usize)> = self.lines.iter().map(|line| (line.from, line.to)).collect();
        lines.len() > MOST_LINES || layers_crossed(self.shapes.len(), &lines) > MOST_LAYERS
    }
}

/// How many layers lines cross, where each node lies below all that lead to it. Lines that lead back go up.
fn layers_crossed(nodes: usize, lines: &[(usize, usize)]) -> usize {
    let mut targets = vec![Vec::new(); nodes];
    for (from, to) in lines {
        targets[*from].push(*to);
    }
    // In the order in which nodes are left for the last time, backwards, all lines lead on but those that lead back.
    let (mut seen, mut left) = (vec![false; nodes], Vec::with_capacity(nodes));
    for root in 0..nodes {
        let mut path = if std::mem::replace(&mut seen[root], true) { Vec::new() } else { vec![(root, 0)] };
        while let Some((node, line)) = path.last_mut() {
            match targets[*node].get(*line) {
                Some(target) => {
                    *line += 1;
                    if !std::mem::replace(&mut seen[*target], true) {
                        path.push((*target, 0));
                    }
                }
                None => {
                    left.push(*node);
                    path.pop();
                }
            }
        }
    }
    left.reverse();
    let mut place = vec![0; nodes];
    left.iter().enumerate().for_each(|(number, node)| place[*node] = number);
    let mut layer = vec![0_usize; nodes];
    for node in &left {
        for target in targets[*node].iter().filter(|target| place[**target] > place[*node]) {
            layer[*target] = layer[*target].max(layer[*node] + 1);
        }
    }
    lines.iter().map(|(from, to)| layer[*from].abs_diff(layer[*to])).sum()
}

#[cfg(test)]
mod tests {
    use super::layers_crossed;

    #[test]
    fn lines_cross_as_many_layers_as_lie_between() {
        let chain = |nodes: usize| (1..nodes).map(|to| (to - 1, to)).collect::<Vec<_>>();
        assert_eq!(layers_crossed(5, &chain(5)), 4);
        // Written backwards it is the same.
        assert_eq!(layers_crossed(3, &[(2, 1), (1, 0)]), 2);
        assert_eq!(layers_crossed(4, &[(0, 1), (0, 2), (1, 3), (2, 3), (0, 3)]), 6);
        // A circle is a chain and a way back; a node may lead to itself.
        assert_eq!(layers_crossed(3, &[(0, 1), (1, 2), (2, 0), (1, 1)]), 4);
        let all: Vec<_> = (0..30).flat_map(|from| (from + 1..30).map(move |to| (from, to))).collect();
        assert_eq!(layers_crossed(30, &all), 4495);
    }
}
