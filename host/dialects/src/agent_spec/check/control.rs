//! The nodes of a flow and the control edges between them.

use std::collections::{HashMap, HashSet};

use hotcell_graph::closest;
use hotcell_graph::diagnostic::Diagnostic;

use super::super::generated::NEXT;
use super::super::model::ComponentId;
use super::{Checker, names};

/// Which node of a flow can follow which.
pub(super) struct Control {
    /// The nodes of the flow, each once
    pub(super) nodes: Vec<ComponentId>,
    places: HashMap<ComponentId, usize>,
    before: Vec<Vec<usize>>,
    edges: usize,
    /// Whether the start node leads to a node
    reachable: Vec<bool>,
}

impl Control {
    /// Whether a node is in the flow.
    pub(super) fn contains(&self, node: ComponentId) -> bool {
        self.places.contains_key(&node)
    }

    /// Whether a node can run at all.
    pub(super) fn is_reachable(&self, node: ComponentId) -> bool {
        self.places.get(&node).is_some_and(|place| self.reachable[*place])
    }

    /// Steps that it takes to find out what comes before a node.
    pub(super) fn steps(&self) -> usize {
        self.nodes.len() + self.edges
    }

    /// Whether one of the `sources` can have run before `node` does.
    pub(super) fn follows_any(&self, node: ComponentId, sources: &[ComponentId]) -> bool {
        let Some(place) = self.places.get(&node) else { return false };
        let mut is_source = vec![false; self.nodes.len()];
        for source in sources.iter().filter_map(|source| self.places.get(source)) {
            is_source[*source] = self.reachable[*source];
        }
        let mut seen = vec![false; self.nodes.len()];
        let mut open = vec![*place];
        while let Some(place) = open.pop() {
            for before in &self.before[place] {
                if is_source[*before] {
                    return true;
                }
                if !std::mem::replace(&mut seen[*before], true) {
                    open.push(*before);
                }
            }
        }
        false
    }
}

impl Checker<'_> {
    /// Checks the nodes and control edges of a flow.
    pub(super) fn control(&mut self, flow: ComponentId) -> Control {
        let before = self.diagnostics.len();
        let component = self.component(flow);
        let mut control =
            Control { nodes: Vec::new(), places: HashMap::new(), before: Vec::new(), edges: 0, reachable: Vec::new() };
        for node in component.children("nodes").unwrap_or_default() {
            if control.contains(*node) {
                let message = format!("the node `{}` is listed twice in `nodes`", self.name(*node));
                self.report(flow, Diagnostic::error(message).at(self.span(flow, "nodes")));
            } else {
                control.places.insert(*node, control.nodes.len());
                control.nodes.push(*node);
            }
        }
        self.start_and_ends(flow, &control);
        control.before = vec![Vec::new(); control.nodes.len()];
        control.reachable = vec![false; control.nodes.len()];
        let mut mistaken = HashSet::new();
        let edges = self.control_edges(flow, &control, &mut mistaken);
        self.branches_have_edges(flow, &control, &edges, &mistaken);
        let mut after = vec![Vec::new(); control.nodes.len()];
        for (from, to) in edges.values().filter_map(|edge| self.ends_of(*edge)) {
            if let (Some(from), Some(to)) = (control.places.get(&from), control.places.get(&to)) {
                control.before[*to].push(*from);
                control.edges += 1;
                after[*from].push(*to);
            }
        }
        let mut open: Vec<usize> =
            component.child("start_node").and_then(|start| control.places.get(&start)).copied().into_iter().collect();
        while let Some(place) = open.pop() {
            if !std::mem::replace(&mut control.reachable[place], true) {
                open.extend(&after[place]);
            }
        }
        if self.diagnostics.len() == before {
            self.unreachable(&control);
        }
        control
    }

    fn start_and_ends(&mut self, flow: ComponentId, control: &Control) {
        let component = self.component(flow);
        let is_of = |id: ComponentId, name: &str| &*self.component(id).component_type == name;
        let mut errors = Vec::new();
        if let Some(start) = component.child("start_node") {
            let span = self.span(flow, "start_node");
            let name = self.name(start);
            if !is_of(start, "StartNode") {
                let component_type = &self.component(start).component_type;
                let message = format!("`start_node` takes a StartNode, and `{name}` is of the type `{component_type}`");
                errors.push(Diagnostic::error(message).at(span));
            } else if !control.contains(start) {
                let message = format!("the start node `{name}` is not in `nodes`");
                errors.push(Diagnostic::error(message).at(span).help("list it, the start node is a node of the flow"));
            }
            let others = control.nodes.iter().filter(|node| **node != start && is_of(**node, "StartNode"));
            for other in others {
                let message = format!("`{}` is a second StartNode beside `{name}`", self.name(*other));
                errors.push(Diagnostic::error(message).at(span).related(&self.written(*other).id, "this one"));
            }
        }
        if !control.nodes.iter().any(|node| is_of(*node, "EndNode")) {
            let error = Diagnostic::error(format!("the flow `{}` has no EndNode", component.shown))
                .at(self.span(flow, "nodes"))
                .help("add one; a flow ends at an EndNode");
            errors.push(error);
        }
        for error in errors {
            self.report(flow, error);
        }
    }

    fn ends_of(&self, edge: ComponentId) -> Option<(ComponentId, ComponentId)> {
        let edge = self.component(edge);
        Some((edge.child("from_node")?, edge.child("to_node")?))
    }

    /// The edge of each branch of each node. Nodes that an edge leaves by a branch they do not have are `mistaken`.
    fn control_edges(
        &mut self,
        flow: ComponentId,
        control: &Control,
        mistaken: &mut HashSet<ComponentId>,
    ) -> HashMap<(ComponentId, String), ComponentId> {
        let mut edges: HashMap<(ComponentId, String), ComponentId> = HashMap::new();
        let start = self.component(flow).child("start_node");
        for &id in self.component(flow).children("control_flow_connections").unwrap_or_default() {
            let Some((from, to)) = self.ends_of(id) else { continue };
            self.edge_stays_inside(id, control, [("from_node", from), ("to_node", to)]);
            let (from_name, to_name) = (self.name(from), self.name(to));
            if Some(to) == start {
                let message = format!("an edge leads from `{from_name}` into the start node `{to_name}`");
                let error = Diagnostic::error(message).at(self.span(id, "to_node"));
                self.report(id, error.help("let it lead to the node behind the start node"));
            }
            let node = self.component(from);
            let branch = self.component(id).text("from_branch").unwrap_or(NEXT);
            if !node.branches.iter().any(|known| **known == *branch) {
                mistaken.insert(from);
                mistaken.insert(to);
                if self.is_full() {
                    continue;
                }
                let span = self.span(id, "from_branch");
                let known = || node.branches.iter().map(|branch| &**branch);
                let error = if node.branches.is_empty() {
                    Diagnostic::error(format!("an edge leaves the EndNode `{from_name}`, where the flow ends")).at(span)
                } else {
                    let error = Diagnostic::error(format!("the node `{from_name}` has no branch `{branch}`")).at(span);
                    match closest(branch, known()) {
                        Some(near) => error.help(format!("did you mean `{near}`?")),
                        None => error.help(format!("its branches are {}", names(known()))),
                    }
                };
                self.report(id, error);
                continue;
            }
            match edges.get(&(from, branch.to_owned())) {
                Some(first) => {
                    let error = Diagnostic::error(format!("two edges leave the branch `{branch}` of `{from_name}`"))
                        .at(&self.written(id).id)
                        .label("the second")
                        .related(&self.written(*first).id, "the first")
                        .help("remove one of them: a branch leads to one node");
                    self.report(id, error);
                }
                None => {
                    edges.insert((from, branch.to_owned()), id);
                }
            }
        }
        edges
    }

    /// Reports the ends of an edge that are no nodes of its flow.
    pub(super) fn edge_stays_inside(
        &mut self,
        edge: ComponentId,
        control: &Control,
        ends: [(&str, ComponentId); 2],
    ) -> bool {
        let outside: Vec<_> = ends.into_iter().filter(|(_, node)| !control.contains(*node)).collect();
        for (field, node) in &outside {
            let message = format!("`{field}` of an edge is `{}`, which is not in the flow's `nodes`", self.name(*node));
            let error = Diagnostic::error(message).at(self.span(edge, field));
            self.report(edge, error.help("list the node, or let the edge lead elsewhere"));
        }
        outside.is_empty()
    }

    fn branches_have_edges(
        &mut self,
        flow: ComponentId,
        control: &Control,
        edges: &HashMap<(ComponentId, String), ComponentId>,
        mistaken: &HashSet<ComponentId>,
    ) {
        // An edge that is wrong was probably meant for the branch that lacks one, and for the node that it names.
        for &id in control.nodes.iter().filter(|id| !mistaken.contains(*id)) {
            let node = self.component(id);
            for branch in node.branches.iter().filter(|branch| !edges.contains_key(&(id, branch.to_string()))) {
                let message = format!("the branch `{branch}` of the node `{}` has no edge", node.shown);
                let error = Diagnostic::error(message)
                    .at(&self.written(id).id)
                    .help("add an edge to `control_flow_connections` that leads to the next node");
                self.report(id, error);
            }
        }
        let mut entered = edges.values().filter_map(|edge| self.ends_of(*edge)).map(|(_, to)| to).collect::<Vec<_>>();
        entered.sort_unstable();
        for &id in control.nodes.iter().filter(|id| !mistaken.contains(*id)) {
            let is_end = &*self.component(id).component_type == "EndNode";
            if is_end && entered.binary_search(&id).is_err() {
                let flow = self.name(flow);
                let message = format!("no edge leads to the EndNode `{}` of the flow `{flow}`", self.name(id));
                let error = Diagnostic::error(message).at(&self.written(id).id);
                self.report(id, error.help("add one, or remove the node"));
            }
        }
    }

    /// Warns of nodes that never run.
    fn unreachable(&mut self, control: &Control) {
        for &id in control.nodes.iter().filter(|id| !control.is_reachable(**id)) {
            let message = format!("the node `{}` never runs: nothing leads to it from the start node", self.name(id));
            self.report(id, Diagnostic::warning(message).at(&self.written(id).id));
        }
    }
}
