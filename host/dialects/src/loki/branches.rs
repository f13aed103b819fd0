//! What a map runs for each item: a node alone, or a chain of nodes.

use std::collections::HashMap;

use super::schema::{Body, Map, Node, Source};

/// The nodes of the branch of a map that goes on from one node to others, that where it begins first; none for a node alone.
pub(super) fn chain<'s>(source: &'s Source, map: &Map) -> Option<Vec<&'s Node>> {
    let by_id: HashMap<&str, &Node> = source.nodes.iter().map(|node| (&*node.id.value, node)).collect();
    let first = *by_id.get(&**map.branch.as_ref()?)?;
    let leads_on = |node: &Node| !node.next.is_empty() || node.fallback().is_some();
    if !leads_on(first) || !may_be_in(&first.body) {
        return None;
    }
    let mut chain = vec![first];
    let mut place = 0;
    while let Some(node) = chain.get(place).copied() {
        place += 1;
        for target in node.next.iter().chain(node.fallback()) {
            if let Some(next) = by_id.get(&**target)
                && may_be_in(&next.body)
                && chain.iter().all(|known| known.id.value != next.id.value)
            {
                chain.push(next);
            }
        }
    }
    Some(chain)
}

/// Whether a node may be in the branch of a map.
pub(super) fn may_be_in(body: &Body) -> bool {
    matches!(body, Body::Script(_) | Body::Llm(_) | Body::Agent(_) | Body::Rag(_))
}

/// The id of the node that stands for the chain of a map, which no node of the file has.
pub(super) fn id(source: &Source, map: &Node) -> String {
    let mut id = format!("{} (branch)", map.id.value);
    while source.nodes.iter().any(|node| *node.id.value == *id) {
        id.push('\'');
    }
    id
}
