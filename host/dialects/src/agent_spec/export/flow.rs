//! The flow around the nodes: its inputs, its edges, what the nodes share.

use hotcell_graph::Key;
use hotcell_graph::ir::{Action, Next, Node, NodeIndex};
use serde_json::{Map, Value as Json, json};

use super::{Exporter, RESULT, component, reference, title};
use crate::agent_spec::generated::NEXT;
use crate::agent_spec::versions::Version;

impl<'g> Exporter<'g> {
    /// The nodes that pass on to others are left out.
    fn target(&self, mut index: NodeIndex) -> Option<&'g Node> {
        for _ in 0..=self.graph.len() {
            let node = self.graph.node(index);
            match (&node.action, &node.next) {
                (Action::Pass, Next::To(targets)) if targets.len() == 1 => index = targets[0],
                _ => return Some(node),
            }
        }
        None
    }

    /// The flow, once all nodes are known.
    pub(super) fn flow(&mut self) -> Json {
        let inputs = self.inputs();
        let start = self.start.clone();
        let mut nodes = vec![component(
            "StartNode",
            &start,
            json!({
                "inputs": inputs, "outputs": inputs, "branches": [NEXT],
            }),
        )];
        nodes.append(&mut self.nodes);
        let mut control = Vec::new();
        let edges = std::mem::take(&mut self.control);
        let is_pass =
            |id: &str| self.graph.find(id).is_some_and(|index| matches!(self.graph.node(index).action, Action::Pass));
        let mut lead = |from: &str, branch: Option<&str>, to: &str| {
            let id = format!("{from}[{}]->{to}", branch.unwrap_or(NEXT));
            control.push(component(
                "ControlFlowEdge",
                &id,
                json!({
                    "from_node": reference(from), "from_branch": branch, "to_node": reference(to),
                }),
            ));
        };
        let mut endless = false;
        for (from, branch, to) in edges.iter().filter(|(from, ..)| !is_pass(from)) {
            // The branching behind a question is a node of its own, named where a branch would be.
            let gate = branch.as_ref().filter(|branch| self.graph.find(from).is_some() && self.ids.contains(*branch));
            match (gate, self.target(*to)) {
                (Some(gate), _) => lead(from, None, gate),
                (None, Some(target)) => lead(from, branch.as_deref(), &target.id),
                (None, None) => endless = true,
            }
        }
        match self.target(self.graph.start) {
            Some(target) => lead(&start, None, &target.id),
            None => endless = true,
        }
        if endless {
            self.problems.push("the graph goes in a circle in which nothing is done".to_owned());
        }
        let data = self.data();
        let has_result = nodes.iter().any(|node| node["component_type"] == "EndNode");
        if !has_result {
            self.problems.push("the graph has no end, and a flow needs one".to_owned());
        }
        let listed: Vec<Json> = nodes.iter().filter_map(|node| node["id"].as_str()).map(reference).collect();
        let mut referenced: Map<String, Json> =
            self.models.iter().map(|(model, id)| (id.clone(), model.clone())).collect();
        referenced.extend(nodes.into_iter().map(|node| (node["id"].as_str().unwrap_or_default().to_owned(), node)));
        let name = self.graph.name.clone();
        let id = self.fresh(if name.is_empty() { "flow" } else { &name });
        let mut flow = component(
            "Flow",
            &id,
            json!({
                "description": self.graph.description,
                "inputs": inputs,
                "outputs": [{"title": RESULT}],
                "start_node": reference(&start),
                "nodes": listed,
                "control_flow_connections": control,
                "data_flow_connections": data,
                "$referenced_components": referenced,
                "agentspec_version": Version::V25_4_1.name(),
            }),
        );
        flow["name"] = Json::from(if name.is_empty() { id } else { name });
        flow
    }

    /// What a caller gives and what the state begins with become inputs of the flow.
    fn inputs(&mut self) -> Json {
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
        for key in &self.graph.open_state {
            inputs.push((key.clone(), json!({"title": &**key, "default": null})));
        }
        let mut listed = Vec::new();
        for (key, property) in inputs {
            if listed.iter().any(|known: &Json| known["title"] == *key) {
                continue;
            }
            if *key != *title(&key) {
                self.problems.push(format!("the key `{key}` of the state is no name of letters and digits"));
            }
            self.writers.entry(key.clone()).or_default().push((self.start.clone(), key.to_string()));
            listed.push(property);
        }
        Json::Array(listed)
    }

    fn data(&mut self) -> Vec<Json> {
        let mut data = Vec::new();
        for (node, input, key) in std::mem::take(&mut self.readers) {
            let writers = self.writers.get(&key).map(Vec::as_slice).unwrap_or_default();
            if writers.is_empty() {
                self.problems.push(format!("the node `{node}` reads `{key}`, which nothing writes"));
            }
            for (writer, output) in writers {
                let id = format!("{writer}.{output}->{node}.{input}");
                data.push(component(
                    "DataFlowEdge",
                    &id,
                    json!({
                        "source_node": reference(writer), "source_output": output,
                        "destination_node": reference(&node), "destination_input": input,
                    }),
                ));
            }
        }
        data
    }
}
