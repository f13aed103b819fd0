//! What a map runs for each item: a node alone, or a chain of nodes.

use std::collections::{HashMap, HashSet};

use super::schema::{Body, Map, Node, Source};

/// What the branches of all maps of a file may have together: nodes, edges between these, and hundreds of bytes of their texts. A
/// graph is made of the branch of each map, also where maps share their nodes, so a small file could ask for millions of nodes.
const MAX_SIZE: usize = 100_000;
/// Bytes of text that count like a node.
const TEXT: usize = 100;

/// The branches of the maps of a file.
pub(super) struct Branches<'s> {
    /// Those that go on from one node to others, by the node where they begin
    chains: HashMap<&'s str, Chain<'s>>,
    are_too_large: bool,
}

impl<'s> Branches<'s> {
    pub(super) fn of(source: &'s Source) -> Self {
        let by_id: HashMap<&str, &Node> = source.nodes.iter().map(|node| (&*node.id.value, node)).collect();
        let mut branches = Branches { chains: HashMap::new(), are_too_large: false };
        let mut size_left = MAX_SIZE;
        for node in &source.nodes {
            let Body::Map(map) = &node.body else { continue };
            let Some(first) = map.branch.as_deref().and_then(|branch| by_id.get(branch).copied()) else { continue };
            if !goes_on_from(first) {
                continue;
            }
            let id = &*first.id.value;
            if !branches.chains.contains_key(id) {
                branches.chains.insert(id, Chain::from(first, &by_id, size_left));
            }
            match size_left.checked_sub(branches.chains[id].size) {
                Some(left) => size_left = left,
                None => {
                    branches.are_too_large = true;
                    break;
                }
            }
        }
        branches
    }

    /// Whether the maps have more in their branches than is looked at. Then some chains are not known.
    pub(super) fn are_too_large(&self) -> bool {
        self.are_too_large
    }

    /// The nodes of the branch of a map that goes on from one node to others, that where it begins first; none for a node alone.
    pub(super) fn chain(&self, map: &Map) -> Option<&[&'s Node]> {
        self.chains.get(map.branch.as_deref()?).map(|chain| &*chain.nodes)
    }
}

struct Chain<'s> {
    nodes: Vec<&'s Node>,
    size: usize,
}

impl<'s> Chain<'s> {
    /// The nodes to which one leads, up to a size; what is larger than that ends somewhere beyond it.
    fn from(first: &'s Node, by_id: &HashMap<&'s str, &'s Node>, most: usize) -> Self {
        let mut known: HashSet<&str> = HashSet::from([&*first.id.value]);
        let mut chain = Chain { nodes: vec![first], size: 0 };
        let mut place = 0;
        while let Some(node) = chain.nodes.get(place).copied().filter(|_| chain.size <= most) {
            place += 1;
            let texts = node.templates().into_iter().chain(node.updates.iter().map(|update| &update.value));
            chain.size += 1 + texts.map(|text| text.len()).sum::<usize>() / TEXT;
            for target in node.next.iter().chain(node.fallback()) {
                chain.size += 1;
                if let Some(next) = by_id.get(&**target).copied()
                    && may_be_in(&next.body)
                    && known.insert(&*next.id.value)
                {
                    chain.nodes.push(next);
                }
            }
        }
        chain
    }
}

/// Whether the branch of a map goes on from one node to others.
pub(super) fn goes_on(source: &Source, map: &Map) -> bool {
    let branch = map.branch.as_deref();
    source.nodes.iter().find(|node| Some(&*node.id.value) == branch).is_some_and(goes_on_from)
}

fn goes_on_from(first: &Node) -> bool {
    may_be_in(&first.body) && (!first.next.is_empty() || first.fallback().is_some())
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
