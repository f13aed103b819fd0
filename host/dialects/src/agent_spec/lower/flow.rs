//! A flow as a graph.

use std::collections::HashMap;

use hotcell_graph::ir::{Graph, Next, NodeIds, NodeIndex};
use hotcell_graph::{Key, Value};

use super::data::{DataFlow, Variable};
use super::store::Store;
use super::{Lowering, OwnKeys};
use crate::agent_spec::model::{Component, ComponentId};
use crate::agent_spec::templates::are_jinja;
use crate::agent_spec::wayflow::{classes, tries};

/// What the nodes of a flow have in common.
pub(super) struct Frame<'c> {
    pub(super) flow: &'c Component,
    pub(super) keys: OwnKeys,
    pub(super) data: DataFlow,
    pub(super) variables: Vec<Variable>,
    pub(super) stores: Vec<Store>,
    pub(super) ids: NodeIds,
    /// The node of the graph where a node of the flow begins
    entries: HashMap<ComponentId, Key>,
    /// The further steps of a node
    pub(super) further: HashMap<ComponentId, Vec<Key>>,
    renders_jinja: bool,
    /// Where the branches of a node lead
    edges: HashMap<(ComponentId, &'c str), ComponentId>,
}

impl Frame<'_> {
    /// Whether the texts of a node are templates of the Jinja language.
    pub(super) fn is_jinja(&self, node: &Component) -> bool {
        are_jinja(&node.component_type, self.renders_jinja)
    }

    /// The node of the graph where a branch of a node leads.
    pub(super) fn target(&self, node: ComponentId, branch: &str) -> Option<NodeIndex> {
        self.ids.get(self.entries.get(self.edges.get(&(node, branch))?)?)
    }

    /// Where the branch `next` of a node leads.
    pub(super) fn next(&self, node: ComponentId) -> Next {
        Next::To(self.target(node, "next").into_iter().collect())
    }
}

/// What a node asks the person that waits for an answer.
pub(super) fn asked(node: &Component) -> Option<&str> {
    match &*node.component_type {
        "InputMessageNode" => node.text("message"),
        "PluginInputMessageNode" => node.text("message_template").or_else(|| node.text("message")),
        _ => None,
    }
}

/// The steps behind the first one of a node, by what is put behind its id.
fn further_steps(component: &Component) -> Vec<String> {
    match &*component.component_type {
        "CatchExceptionNode" => vec!["caught".to_owned()],
        "PluginCatchExceptionNode" => {
            let of_classes = classes(component).next().is_some();
            match (catches_all(component), of_classes) {
                (true, _) => vec!["caught".to_owned()],
                // A failure of another class goes on.
                (false, true) => vec!["caught".to_owned(), "failed".to_owned()],
                (false, false) => Vec::new(),
            }
        }
        "PluginRetryNode" => (2..=tries(component)).map(|number| number.to_string()).collect(),
        "ExtendedToolNode" if is_silent(component) => vec!["failed".to_owned()],
        "ParallelFlowNode" | "ExtendedParallelFlowNode" => {
            let flows = flows(component).len();
            (1..=flows).map(|number| number.to_string()).chain(["join".to_owned()]).collect()
        }
        _ => Vec::new(),
    }
}

/// Whether a node catches whatever fails in its flow.
fn catches_all(component: &Component) -> bool {
    matches!(component.value("catch_all_exceptions"), Some(Value::Bool(true)))
}

/// Whether a failure of the tool is its result.
pub(super) fn is_silent(component: &Component) -> bool {
    matches!(component.value("raise_exceptions"), Some(Value::Bool(false)))
}

/// The flows that a node runs side by side.
pub(super) fn flows(component: &Component) -> &[ComponentId] {
    component.children("subflows").or_else(|| component.children("flows")).unwrap_or_default()
}

impl<'c> Lowering<'c> {
    /// A flow of the reference runtime, which may have more than a flow.
    pub(super) fn extended_flow(&mut self, flow: &'c Component) -> Option<Graph> {
        let field = "context_providers";
        if matches!(flow.value(field), Some(Value::List(list)) if !list.is_empty()) {
            let instead = "pass the values on with data edges";
            self.refuse_field(flow, field, format!("`{field}` of an `ExtendedFlow` is not supported: {instead}"));
        }
        self.flow(flow)
    }

    pub(super) fn flow(&mut self, flow: &'c Component) -> Option<Graph> {
        let nodes = flow.children("nodes")?;
        let names = self.names_of(flow, nodes);
        let variables = self.variables(flow, &names);
        let stores = self.stores(flow, nodes, &names);
        let frame = self.frame(flow, nodes, &names, variables, stores);
        let mut made = Vec::new();
        let is_entry = std::ptr::eq(flow, self.component(self.configuration.root));
        for id in nodes {
            if is_entry {
                self.within = Some(*id);
            }
            made.extend(self.node(&frame, *id));
        }
        let start = frame.entries.get(&flow.child("start_node")?)?;
        let mut graph = Graph::new(&*flow.name, made, start)?;
        graph.description = flow.text("description").map(str::to_owned);
        frame.keys.give_to(&mut graph, &flow.inputs, &flow.outputs, Vec::new());
        graph.initial_state.extend(frame.variables.iter().filter_map(Variable::initial));
        graph.initial_state.extend(frame.stores.iter().map(Store::initial));
        Some(graph)
    }

    /// The names of the inputs and outputs in a flow.
    fn names_of(&self, flow: &'c Component, nodes: &'c [ComponentId]) -> Vec<&'c str> {
        let mut names: Vec<&str> = flow.inputs.iter().map(|input| &*input.title).collect();
        for id in nodes {
            let node = self.component(*id);
            names.extend(node.inputs.iter().chain(&node.outputs).map(|property| &*property.title));
        }
        names
    }

    fn frame(
        &self,
        flow: &'c Component,
        nodes: &'c [ComponentId],
        names: &[&str],
        variables: Vec<Variable>,
        stores: Vec<Store>,
    ) -> Frame<'c> {
        let keys = OwnKeys::beside(names.iter().copied());
        let mut taken = vec![
            keys.conversation.clone(),
            keys.results.outputs.clone(),
            keys.results.branch.clone(),
            keys.decided.clone(),
        ];
        taken.extend(variables.iter().map(|variable| variable.key.clone()));
        taken.extend(stores.iter().map(|store| store.key.clone()));
        let data = DataFlow::of(self.configuration, flow, &taken);

        let written: Vec<&str> = nodes.iter().map(|id| &*self.component(*id).shown).collect();
        let mut all: Vec<String> = Vec::new();
        let mut entries = HashMap::new();
        let mut further: HashMap<ComponentId, Vec<Key>> = HashMap::new();
        for id in nodes {
            let node = self.component(*id);
            let mut entry = node.shown.to_string();
            // What it says first is a step of its own, done before anybody waits.
            if asked(node).is_some() {
                entry.push_str("/message");
                while written.contains(&&*entry) {
                    entry.push('\'');
                }
                all.push(entry.clone());
            }
            entries.insert(*id, Key::from(entry));
            all.push(node.shown.to_string());
            for step in further_steps(node) {
                let mut step = format!("{}/{step}", node.shown);
                while written.contains(&&*step) {
                    step.push('\'');
                }
                further.entry(*id).or_default().push(Key::from(&*step));
                all.push(step);
            }
        }
        let mut edges = HashMap::new();
        for id in flow.children("control_flow_connections").unwrap_or_default() {
            let edge = self.component(*id);
            if let (Some(from), Some(to)) = (edge.child("from_node"), edge.child("to_node")) {
                edges.insert((from, edge.text("from_branch").unwrap_or("next")), to);
            }
        }
        let renders_jinja = self.surroundings.renders_jinja();
        Frame {
            flow,
            keys,
            data,
            variables,
            stores,
            ids: NodeIds::new(all.iter().map(String::as_str)),
            entries,
            further,
            renders_jinja,
            edges,
        }
    }
}

impl Frame<'_> {
    /// The id in the graph of what a node says first, if it says something.
    pub(super) fn opening(&self, node: ComponentId, id: &Key) -> Option<&Key> {
        self.entries.get(&node).filter(|entry| *entry != id)
    }
}
