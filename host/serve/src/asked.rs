//! Whom agents ask, as far as their files say it.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use hotcell_graph::ir::{Action, Graph, MapBody};

use crate::agents::Agents;
use crate::groups::Groups;

/// Groups of an agent that are told; a file may name as many as it has room for.
const MOST: usize = 20;

/// The groups that agents name and nobody defined, each with the id of an agent.
pub(crate) fn undefined_groups(agents: &Agents, groups: &Groups) -> BTreeSet<(String, String)> {
    let mut found = BTreeSet::new();
    for (id, agent) in agents.all() {
        let undefined: BTreeSet<&str> =
            asked(&agent.graph).into_iter().flat_map(|asked| groups.undefined(asked)).collect();
        found.extend(undefined.into_iter().take(MOST).map(|group| (id.clone(), group.to_owned())));
    }
    found
}

/// The lists of people of a graph, and of those that are parts of it.
fn asked(graph: &Arc<Graph>) -> Vec<&[String]> {
    let (mut lists, mut left, mut seen) = (Vec::new(), vec![graph], HashSet::new());
    while let Some(graph) = left.pop() {
        if !seen.insert(Arc::as_ptr(graph)) {
            continue;
        }
        for (_, node) in graph.nodes() {
            match &node.action {
                Action::Ask(ask) => lists.push(&ask.asked.operator_ids[..]),
                Action::Call(call) => left.extend(call.target.graph()),
                Action::Map(map) => {
                    if let MapBody::Graph(items) = &map.body {
                        left.push(&items.graph);
                    }
                }
                _ => {}
            }
        }
    }
    lists
}
