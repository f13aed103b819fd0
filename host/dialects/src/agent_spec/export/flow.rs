//! The flow around the nodes: its inputs, its edges, what the nodes share.

use hotcell_graph::Key;
use hotcell_graph::ir::{Action, Next, NodeIndex};
use serde_json::{Map, Value as Json, json};

use super::slots::Slot;
use super::{Exporter, RESULT, Target, component, control_edge, data_edge, free, reference, title};
use crate::agent_spec::generated::NEXT;

impl Exporter<'_> {
    /// The node of the flow where a node of the graph begins. Nodes that only pass on are left out; none if the way never
    /// comes to another.
    fn entry(&self, mut index: NodeIndex) -> Option<String> {
        for _ in 0..=self.graph.len() {
            let node = self.graph.node(index);
            if let Some(entry) = self.entries.get(&node.id) {
                return Some(entry.clone());
            }
            match (&node.action, &node.next) {
                (Action::Pass, Next::To(targets)) if node.updates.is_empty() && targets.len() == 1 => {
                    index = targets[0];
                }
                _ => return Some(node.id.to_string()),
            }
        }
        None
    }

    /// The whole flow.
    pub(super) fn flow(&mut self) -> Json {
        self.whole();
        if self.graph.conversation.is_some() {
            let begins = "a later message of a conversation goes on with the state that the run before it left, and a flow \
                          begins anew each time";
            self.differences.push(begins.to_owned());
        }
        self.graph_nodes();
        if !self.problems.is_empty() {
            // What flows is only known once every node is.
            return Json::Null;
        }
        let inputs = self.inputs();
        let start = self.start.clone();
        let mut nodes =
            vec![component("StartNode", &start, json!({"inputs": inputs, "outputs": inputs, "branches": [NEXT]}))];
        nodes.append(&mut self.nodes);
        let mut control = vec![(start, None, Target::Node(self.graph.start))];
        control.append(&mut self.control);
        let edge = |(from, branch, to): (String, Option<String>, Target)| {
            let to = match to {
                Target::Node(index) => self.entry(index)?,
                Target::Made(id) => id,
            };
            Some(control_edge(&from, branch.as_deref(), &to))
        };
        let control: Option<Vec<Json>> = control.into_iter().map(edge).collect();
        if control.is_none() {
            self.problems.push("the graph has a cycle without any work in it".to_owned());
        }
        let data = self.data();
        if nodes.iter().all(|node| node["component_type"] != "EndNode") {
            self.problems.push("the graph has no end, and a flow needs one".to_owned());
        }
        let listed: Vec<Json> = nodes.iter().filter_map(|node| node["id"].as_str()).map(reference).collect();
        let mut referenced: Map<String, Json> =
            self.models.iter().map(|(model, id)| (id.clone(), model.clone())).collect();
        referenced.extend(by_id(nodes));
        self.root(
            "Flow",
            json!({
                "inputs": inputs,
                "outputs": [{"title": RESULT}],
                "start_node": reference(&self.start),
                "nodes": listed,
                "control_flow_connections": control,
                "data_flow_connections": data,
                "$referenced_components": referenced,
            }),
        )
    }

    /// A flow within a node; the first of its nodes is its start.
    pub(super) fn subflow(
        &mut self,
        id: &str,
        (inputs, outputs): (&[Json], &[Json]),
        nodes: Vec<Json>,
        control: Vec<Json>,
        data: Vec<Json>,
    ) -> Json {
        let listed: Vec<Json> = nodes.iter().filter_map(|node| node["id"].as_str()).map(reference).collect();
        let id = self.fresh(id);
        component(
            "Flow",
            &id,
            json!({
                "inputs": inputs,
                "outputs": outputs,
                "start_node": listed[0],
                "nodes": listed,
                "control_flow_connections": control,
                "data_flow_connections": data,
                "$referenced_components": by_id(nodes).collect::<Map<String, Json>>(),
            }),
        )
    }

    /// What a caller gives and what the state begins with become inputs of the flow.
    fn inputs(&mut self) -> Vec<Json> {
        let mut inputs: Vec<(Key, Json)> = Vec::new();
        if let Some(key) = &self.graph.input_key {
            inputs.push((key.clone(), json!({"title": &**key, "type": "string"})));
        }
        for variable in &self.graph.variables {
            let mut property = json!({"title": &*variable.name, "type": "string", "description": variable.description});
            if let Some(default) = &variable.default {
                property["default"] = Json::from(default.as_str());
            }
            inputs.push((variable.name.clone(), property));
        }
        for (key, value) in &self.graph.initial_state {
            inputs.push((key.clone(), json!({"title": &**key, "default": Json::from(value)})));
        }
        // A key without a value is needed from the caller if nothing else gives it one.
        let begins_with = |key: &Key| self.graph.initial_state.iter().any(|(known, _)| known == key);
        for key in self.graph.open_state.iter().filter(|key| !begins_with(key)) {
            let slot = Slot::Key(key.clone());
            if self.writers.contains_key(&slot) {
                let what = format!("the flow takes no value for `{key}` to begin with: its nodes write it");
                self.differences.push(what);
            } else if self.readers.iter().any(|read| read.slot == slot) {
                inputs.push((key.clone(), json!({"title": &**key})));
            }
        }
        let mut listed: Vec<Json> = Vec::new();
        for (key, property) in inputs {
            let is_conversation = self.graph.conversation.as_ref() == Some(&key);
            if is_conversation || listed.iter().any(|known| known["title"] == *key) {
                continue;
            }
            if *key != *title(&key) {
                self.problems.push(format!("the key `{key}` of the state is not a valid name of letters and digits"));
            }
            let start = self.start.clone();
            self.fed(Slot::Key(key.clone()), &start, &key);
            listed.push(property);
        }
        self.text_of_the_caller(&mut listed);
        listed
    }

    /// The text that a run is given is an input, if a node looks at it.
    fn text_of_the_caller(&mut self, inputs: &mut Vec<Json>) {
        let is_read = self.readers.iter().any(|read| read.slot.begins_with_the_caller());
        if !is_read {
            return;
        }
        let name = free("message", |name| inputs.iter().any(|known| known["title"] == name));
        let start = self.start.clone();
        for slot in [Slot::FirstMessage, Slot::LastMessage] {
            self.fed(slot, &start, &name);
        }
        self.differences.push(format!("the text that a run is given is the input `{name}` of the flow"));
        inputs.push(json!({"title": name, "type": "string"}));
    }

    fn data(&mut self) -> Vec<Json> {
        let mut data = Vec::new();
        for read in std::mem::take(&mut self.readers) {
            let writers = self.writers.get(&read.slot).map(Vec::as_slice).unwrap_or_default();
            if writers.is_empty() && read.required {
                self.problems.push(format!("the node `{}` reads {}, which nothing writes", read.node, read.slot));
            }
            data.extend(writers.iter().map(|(writer, output)| data_edge(writer, output, &read.node, &read.input)));
        }
        data
    }
}

/// Components by their ids.
fn by_id(nodes: Vec<Json>) -> impl Iterator<Item = (String, Json)> {
    nodes.into_iter().map(|node| (node["id"].as_str().unwrap_or_default().to_owned(), node))
}
