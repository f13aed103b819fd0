//! What a graph file can be refused for, or warned about, before anything runs.
//!
//! Each module holds one family of rules. All of them run, so that everything is reported at once; what a rule needs
//! and could not be read is passed over, because it was reported already.

mod edges;
mod files;
mod flow;
mod map;
mod outputs;
mod parallel;
mod people;
mod plugin_nodes;
mod state;
mod tools;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use hotcell_graph::diagnostic::{Diagnostic, Span};

use super::branches::Branches;
use super::schema::{Body, Map, Node, Source};
use crate::document::Reader;
use crate::surroundings::Surroundings;
use edges::Edge;

/// Steps that all rules together may take: edges that are followed, nodes that are compared. No graph that somebody wrote takes a
/// hundredth of them; a small file of edges from everywhere to everywhere can ask for any number.
const MAX_STEPS: u64 = 100_000_000;

/// Checks a graph file. With `validate_before_run: false` only what is needed to run at all remains.
pub(super) fn run(source: &Source, reader: &Reader<'_>, surroundings: &dyn Surroundings) {
    let ids: HashMap<&str, usize> =
        source.nodes.iter().enumerate().map(|(index, node)| (&*node.id.value, index)).collect();
    let edges = edges::edges(source, &ids);
    let check = Check {
        source,
        reader,
        surroundings,
        ids,
        edges,
        branches: Branches::of(source),
        steps_left: Cell::new(MAX_STEPS),
        reached: RefCell::default(),
    };
    flow::start(&check);
    map::size(&check);
    files::inside_the_folder(&check);
    files::knowledge_files(&check);
    edges::fallbacks_of_agents(&check);
    if source.settings.validate_before_run {
        edges::targets_exist(&check);
        flow::cycles(&check);
        flow::ends(&check);
        people::approvals(&check);
        files::scripts(&check);
        files::agents(&check);
        files::knowledge(&check);
        tools::models(&check);
        tools::tools(&check);
        plugin_nodes::plugin_nodes(&check);
        parallel::people_in_branches(&check);
        parallel::shared_keys(&check);
        map::branches(&check);
        state::references(&check);
        state::initial_state(&check);
        // What is missing because of an error would be reported as never reached.
        if !reader.has_error() {
            flow::reachable(&check);
            flow::nowhere_to_go(&check);
            outputs::unread(&check);
            outputs::unguarded(&check);
        }
    }
    // No file keeps that from whoever is asked.
    if !reader.has_error() {
        flow::approvals(&check);
    }
}

/// A source with what all rules look up.
struct Check<'a> {
    source: &'a Source,
    reader: &'a Reader<'a>,
    surroundings: &'a dyn Surroundings,
    ids: HashMap<&'a str, usize>,
    /// The declared edges of each node to nodes that exist, in the order of the source
    edges: Vec<Vec<Edge<'a>>>,
    branches: Branches<'a>,
    steps_left: Cell<u64>,
    /// What was reached from nodes that were asked for
    reached: RefCell<HashMap<usize, Rc<[bool]>>>,
}

impl<'a> Check<'a> {
    /// Takes so many steps. If there are not so many left, nothing more is checked, and the graph is refused.
    fn takes(&self, steps: usize) -> bool {
        let left = self.steps_left.get();
        match left.checked_sub(steps as u64) {
            Some(rest) => {
                self.steps_left.set(rest);
                true
            }
            None => {
                if left > 0 {
                    let error =
                        Diagnostic::error("the graph is too large to be checked: too many ways lead through it")
                            .help("split it into agents, and call them with `agent` nodes");
                    self.reader.report(error);
                }
                self.steps_left.set(0);
                false
            }
        }
    }

    fn nodes(&self) -> &'a [Node] {
        &self.source.nodes
    }

    fn find(&self, id: &str) -> Option<usize> {
        self.ids.get(id).copied()
    }

    fn id(&self, index: usize) -> &'a str {
        &self.source.nodes[index].id.value
    }

    fn error(&self, node: &Node, message: impl Into<String>, span: &Span) -> Diagnostic {
        Diagnostic::error(message).at(span).node(&*node.id.value)
    }

    fn warning(&self, node: &Node, message: impl Into<String>, span: &Span) -> Diagnostic {
        Diagnostic::warning(message).at(span).node(&*node.id.value)
    }

    /// Whether the type of every node is known, so that rules about the whole graph can be certain.
    fn all_types_known(&self) -> bool {
        self.nodes().iter().all(|node| !matches!(node.body, Body::Unknown))
    }

    /// Which nodes run as the branch of a `map`.
    fn map_branches(&self) -> Vec<bool> {
        let mut is_branch = vec![false; self.nodes().len()];
        for node in self.nodes() {
            if let Body::Map(map) = &node.body {
                self.branch_of(map).into_iter().for_each(|branch| is_branch[branch] = true);
            }
        }
        is_branch
    }

    /// The nodes that a map runs for each item.
    fn branch_of(&self, map: &Map) -> Vec<usize> {
        match self.branches.chain(map) {
            Some(chain) => chain.iter().filter_map(|node| self.find(&node.id.value)).collect(),
            None => map.branch.as_deref().and_then(|branch| self.find(branch)).into_iter().collect(),
        }
    }

    /// The nodes that can be reached from `from` over declared edges, itself included.
    fn reachable_from(&self, from: usize) -> Rc<[bool]> {
        if let Some(known) = self.reached.borrow().get(&from) {
            return Rc::clone(known);
        }
        let mut reached = vec![false; self.nodes().len()];
        let mut open = vec![from];
        while let Some(node) = open.pop() {
            if !std::mem::replace(&mut reached[node], true) && self.takes(1 + self.edges[node].len()) {
                open.extend(self.edges[node].iter().map(|edge| edge.to));
            }
        }
        let reached: Rc<[bool]> = reached.into();
        self.reached.borrow_mut().insert(from, Rc::clone(&reached));
        reached
    }
}

/// Names in backticks: "`a`", "`a` and `b`", "`a`, `b` and `c`".
fn list(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, before)) => format!("{} and {last}", before.join(", ")),
        None => String::new(),
    }
}
