//! Where a run starts, where it ends, and that nothing runs in circles by declaration.

use hotcell_graph::diagnostic::{Diagnostic, Severity};

use super::super::schema::{Body, Node};
use super::edges::no_such_node;
use super::{Check, list};

pub(super) fn start(check: &Check<'_>) {
    let Some(start) = &check.source.start else { return };
    if check.find(start).is_none() && !check.nodes().is_empty() {
        let error = Diagnostic::error(format!("`start` names `{}`, and there is no such node", &**start))
            .at(&start.span)
            .help(no_such_node(check, start));
        check.reader.report(error);
    }
}

/// How many cycles are shown; breaking these may show more.
const CYCLES_SHOWN: usize = 20;

/// Every cycle of declared edges. After one is found its last edge counts as removed, so that each is named once.
pub(super) fn cycles(check: &Check<'_>) {
    let mut removed = vec![Vec::new(); check.nodes().len()];
    for _ in 0..CYCLES_SHOWN {
        let Some(cycle) = find_cycle(check, &removed) else { return };
        report_cycle(check, &cycle);
        // A cycle has at least one edge, from its last node to its first.
        if let Some((from, edge)) = cycle.last() {
            removed[*from].push(*edge);
        }
    }
}

/// The nodes of a cycle, each with the number of the edge that leads on, starting with the node written first.
fn find_cycle(check: &Check<'_>, removed: &[Vec<usize>]) -> Option<Vec<(usize, usize)>> {
    #[derive(Clone, Copy, PartialEq)]
    enum Seen {
        No,
        OnPath,
        Done,
    }
    let mut seen = vec![Seen::No; check.nodes().len()];
    for root in 0..check.nodes().len() {
        if seen[root] != Seen::No {
            continue;
        }
        // The path from the root: each node with the number of the next edge to follow.
        let mut path = vec![(root, 0)];
        seen[root] = Seen::OnPath;
        while let Some((node, edge)) = path.last_mut() {
            let (from, number) = (*node, *edge);
            let Some(target) = check.edges[from].get(number) else {
                seen[from] = Seen::Done;
                path.pop();
                continue;
            };
            if removed[from].contains(&number) {
                *edge += 1;
                continue;
            }
            match seen[target.to] {
                Seen::Done => *edge += 1,
                Seen::No => {
                    *edge += 1;
                    seen[target.to] = Seen::OnPath;
                    path.push((target.to, 0));
                }
                Seen::OnPath => {
                    let first = path.iter().position(|(node, _)| *node == target.to)?;
                    let mut cycle = path.split_off(first);
                    // Edges of nodes before the last were counted on when they were followed.
                    let last = cycle.len() - 1;
                    for (_, edge) in &mut cycle[..last] {
                        *edge -= 1;
                    }
                    let earliest = (0..cycle.len()).min_by_key(|at| cycle[*at].0).unwrap_or(0);
                    cycle.rotate_left(earliest);
                    return Some(cycle);
                }
            }
        }
    }
    None
}

fn report_cycle(check: &Check<'_>, cycle: &[(usize, usize)]) {
    let mut names: Vec<String> = cycle.iter().map(|(node, _)| format!("`{}`", check.id(*node))).collect();
    names.extend(names.first().cloned());
    let edges: Vec<_> = cycle.iter().map(|(node, number)| &check.edges[*node][*number]).collect();
    let Some((last, before)) = edges.split_last() else { return };
    let closing = cycle[cycle.len() - 1].0;
    let mut error = check
        .error(&check.nodes()[closing], format!("the nodes form a cycle: {}", names.join(" -> ")), last.span)
        .label(format!("this `{}` closes it", last.field))
        .help("declared edges must not lead back; a script can send the run back with `_next`");
    for edge in before {
        error = error.related(edge.span, format!("`{}`", edge.field));
    }
    check.reader.report(error);
}

pub(super) fn ends(check: &Check<'_>) {
    let mut ends = check.nodes().iter().filter(|node| matches!(node.body, Body::End(_)));
    if ends.next().is_none() && check.all_types_known() && !check.nodes().is_empty() {
        let mut error = Diagnostic::error("the graph has no `end` node, so it would never finish")
            .help("add a node with `type: end` and lead to it with `next`");
        if let Some(start) = &check.source.start {
            error = error.at(&start.span);
        }
        check.reader.report(error);
    }
}

/// Nodes, and ends, that no declared edge leads to.
pub(super) fn reachable(check: &Check<'_>) {
    let Some(start) = check.source.start.as_deref().and_then(|start| check.find(start)) else { return };
    let has_script = check.nodes().iter().any(|node| matches!(node.body, Body::Script(_)));
    let mut reached = vec![false; check.nodes().len()];
    reach(check, start, &mut reached);
    warn_of_ends(check, start, &reached);

    let mut has_predecessor = vec![false; reached.len()];
    for from in (0..reached.len()).filter(|node| !reached[*node]) {
        followers(check, from).for_each(|to| has_predecessor[to] = true);
    }
    // One warning for the first of nodes that lead to each other; the others are named in it.
    for first in (0..reached.len()).filter(|node| !has_predecessor[*node]) {
        if reached[first] || check.reader.is_full_of(Severity::Warning) || !check.takes(reached.len()) {
            continue;
        }
        let before = reached.clone();
        reach(check, first, &mut reached);
        let behind: Vec<&str> = (0..reached.len())
            .filter(|node| reached[*node] && !before[*node] && *node != first)
            .map(|node| check.id(node))
            .collect();
        let mut help = match has_script {
            true => "only a script can send the run here, with `_next`".to_owned(),
            false => "lead to it with `next`, or remove it".to_owned(),
        };
        if !behind.is_empty() {
            help.push_str(&format!("; behind it lies {}", list(&behind)));
        }
        let node = &check.nodes()[first];
        let message = format!("no declared edge leads from `{}` to node `{}`", check.id(start), node.id.value);
        check.reader.report(check.warning(node, message, &node.id.span).help(help));
    }
}

/// Approvals that a script can leave out: it names any node of the graph in `_next`, also one that declared edges reach by way of
/// the approval only.
pub(super) fn approvals(check: &Check<'_>) {
    let Some(start) = check.source.start.as_deref().and_then(|start| check.find(start)) else { return };
    let nodes = check.nodes();
    for approval in (0..nodes.len()).filter(|node| matches!(nodes[*node].body, Body::Approval(_))) {
        if !check.takes(4 * nodes.len()) {
            return;
        }
        let mut reached = vec![false; nodes.len()];
        reach(check, start, &mut reached);
        let mut around = vec![false; nodes.len()];
        around[approval] = true;
        if start != approval {
            reach(check, start, &mut around);
        }
        let named = |wanted: &dyn Fn(usize) -> bool| -> Vec<&str> {
            (0..nodes.len()).filter(|node| *node != approval && wanted(*node)).map(|node| check.id(node)).collect()
        };
        let behind = named(&|node| reached[node] && !around[node] && !matches!(nodes[node].body, Body::End(_)));
        let scripts = named(&|node| around[node] && matches!(nodes[node].body, Body::Script(_)));
        if !reached[approval] || behind.is_empty() || scripts.is_empty() {
            continue;
        }
        let node = &nodes[approval];
        let message = format!(
            "{} can send the run past the approval `{}` with `_next`, to {}",
            any_of(&scripts),
            node.id.value,
            list(&behind)
        );
        let help = "a script that must not can be put into an agent of its own, which this one calls";
        check.reader.insist(check.warning(node, message, &node.id.span).help(help));
    }
}

fn warn_of_ends(check: &Check<'_>, start: usize, reached: &[bool]) {
    let ends_the_run = |(node, reached): (&Node, &bool)| *reached && matches!(node.body, Body::End(_));
    if check.nodes().iter().zip(reached).any(ends_the_run) {
        return;
    }
    let scripts: Vec<&str> =
        check.nodes().iter().filter(|node| matches!(node.body, Body::Script(_))).map(|node| &*node.id.value).collect();
    let help = match &scripts[..] {
        [] => "lead to an `end` node with `next`".to_owned(),
        scripts => format!("the run ends only if {} leads there with `_next`", any_of(scripts)),
    };
    let node = &check.nodes()[start];
    let span = check.source.start.as_ref().map_or(&node.id.span, |start| &start.span);
    let message = format!("no declared edges lead from `{}` to an `end` node", node.id.value);
    check.reader.report(check.warning(node, message, span).help(help));
}

/// Marks a node and all that it leads to.
fn reach(check: &Check<'_>, from: usize, reached: &mut [bool]) {
    let mut open = vec![from];
    while let Some(node) = open.pop() {
        if !std::mem::replace(&mut reached[node], true) && check.takes(1 + check.edges[node].len()) {
            open.extend(followers(check, node));
        }
    }
}

/// The nodes that a node leads to, and the branch that it runs if it is a `map`.
fn followers(check: &Check<'_>, node: usize) -> impl Iterator<Item = usize> {
    let branch = match &check.nodes()[node].body {
        Body::Map(map) => map.branch.as_deref().and_then(|branch| check.find(branch)),
        _ => None,
    };
    check.edges[node].iter().map(|edge| edge.to).chain(branch)
}

fn any_of(scripts: &[&str]) -> String {
    match scripts {
        [one] => format!("the script `{one}`"),
        scripts => format!("one of the scripts {}", list(scripts)),
    }
}

/// Nodes that are certain to fail the run when they are left.
pub(super) fn nowhere_to_go(check: &Check<'_>) {
    let branches = check.map_branches();
    for (index, node) in check.nodes().iter().enumerate() {
        let needs_next =
            matches!(node.body, Body::Agent(_) | Body::Input(_) | Body::Llm(_) | Body::Rag(_) | Body::Map(_));
        if !needs_next || branches[index] || !node.next.is_empty() {
            continue;
        }
        let span = node.next_span.as_ref().unwrap_or(&node.id.span);
        let message = format!("node `{}` has no `next`, so the run fails when it is done", node.id.value);
        check.reader.report(check.warning(node, message, span).help("name the node that follows in `next`"));
    }
}
