//! Nodes that become several steps of a graph: flows side by side, flows and tools whose failures are caught.

use hotcell_graph::Key;
use hotcell_graph::Value;
use hotcell_graph::ir::{
    Action, CallAction, CallTarget, Drawn, Expression, Gives, Next, Node, OnFailure, Update, failure_key,
};

use super::flow::{Frame, flows, is_silent};
use super::site::Site;
use super::{ANSWER, Lowering};
use crate::agent_spec::generated;
use crate::agent_spec::model::{ComponentId, Property};
use crate::agent_spec::wayflow::{classes, empty_value};

impl<'c> Lowering<'c> {
    /// Flows that run side by side: each gets the inputs of its name, all outputs together are those of the node.
    pub(super) fn parallel_node(&mut self, site: &Site<'_, 'c>) -> Vec<Node> {
        let component = site.component;
        let steps = site.frame.further_steps(site.id);
        let Some((join, steps)) = steps.split_last() else { return Vec::new() };
        let to = |id: &Key| site.frame.ids.get(id).into_iter();
        // Without flows the node is done at once.
        let first = if steps.is_empty() { to(join).collect() } else { steps.iter().flat_map(to).collect() };
        let mut nodes = vec![Node { next: Next::To(first), ..site.node(Action::Pass, Vec::new()) }];
        let is_input = |title: &str| component.input(title);
        for (step, id) in steps.iter().zip(flows(component)) {
            let flow = self.component(*id);
            let graph = self.callable(*id);
            let inputs = flow.inputs.iter().filter_map(|input| {
                let property = is_input(&site.mapped("input_mapping", &input.title))?;
                Some((input.title.clone(), site.frame.data.input(site.id, property)))
            });
            let target = CallTarget::Graph {
                inherits: false,
                gives: Gives::Outputs,
                graph,
                inputs: inputs.collect(),
                conversation: Some(site.frame.keys.conversation.clone()),
            };
            let action = CallAction { target, contract: None, failure_prefix: None, bind: ANSWER };
            let outputs = component.outputs.iter().filter_map(|property| {
                let own = flow.output(&site.unmapped("output_mapping", &property.title))?;
                let value = Expression::Entry(Box::new(Expression::Key(ANSWER.into())), own.title.clone());
                Some(site.frame.data.output(site.id, property, value))
            });
            let updates = outputs.flatten().collect();
            nodes.push(site.step(step, Action::Call(Box::new(action)), updates, Next::To(to(join).collect())));
        }
        nodes.push(site.step(join, Action::Pass, Vec::new(), site.frame.next(site.id)));
        nodes
    }

    /// A flow whose failure leads out by a branch of its own.
    pub(super) fn catch_node(&mut self, site: &Site<'_, 'c>) -> Vec<Node> {
        let component = site.component;
        let is_plugin = &*component.component_type == "PluginCatchExceptionNode";
        let field = if is_plugin { "flow" } else { "subflow" };
        let branch = if is_plugin { generated::DEFAULT_EXCEPTION } else { generated::CAUGHT };
        let steps = site.frame.further_steps(site.id);
        let ([caught, ..], Some(mut node)) = (&steps[..], self.call_node(site, field)) else { return Vec::new() };
        let of_failures: Vec<&str> = classes(component).map(|(_, branch)| branch).chain([branch]).collect();
        let Some(next) = site.branches_besides(&of_failures) else { return Vec::new() };
        node.next = next;
        // What the flow gives is complete but for the description of a failure that there was not.
        let id = Key::from(&*component.shown);
        let is_info = |property: &Property| {
            let title = site.unmapped("output_mapping", &property.title);
            generated::EXCEPTION_OUTPUTS.contains(&&*title)
        };
        let info = |property: &Property| match &property.default {
            Some(default) => Expression::Value(default.clone()),
            None => Expression::Value(Value::Null),
        };
        let entry = site.entries();
        node.updates = site.outputs(&|property| if is_info(property) { info(property) } else { entry(property) });
        if let Some(place) = site.frame.ids.get(caught) {
            node.on_failure = OnFailure::To(place);
        }
        let failed = |property: &Property| {
            let failure = Expression::Key(failure_key(&id));
            match &*site.unmapped("output_mapping", &property.title) {
                "exception_name" if is_plugin => {
                    let class = Expression::Drawn(Box::new(Drawn::ExceptionName(failure.clone())));
                    Expression::Else(Box::new(class), Box::new(failure))
                }
                _ if is_info(property) => failure,
                // Each has one, which was checked, or a type that has an empty value.
                _ => Expression::Value(
                    property.default.clone().or_else(|| empty_value(&property.ty)).unwrap_or_default(),
                ),
            }
        };
        let updates = site.outputs(&failed);
        let mut nodes = vec![node];
        if is_plugin {
            nodes.extend(site.caught_by_class(updates));
        } else if let Some(target) = site.frame.target(site.id, branch) {
            nodes.push(site.step(caught, Action::Pass, updates, Next::To(vec![target])));
        }
        nodes
    }

    /// A tool whose failure may be its result.
    pub(super) fn extended_tool_node(&mut self, site: &Site<'_, 'c>) -> Vec<Node> {
        let Some(mut node) = self.tool_node(site) else { return Vec::new() };
        if !is_silent(site.component) {
            return vec![node];
        }
        let steps = site.frame.further_steps(site.id);
        let ([failed], [only]) = (&steps[..], &site.component.outputs[..]) else {
            self.refuse(site.component, "`raise_exceptions: false` needs a tool with one output, a string");
            return Vec::new();
        };
        if !only.ty.is_text() {
            self.refuse(site.component, "`raise_exceptions: false` needs a tool whose output is a string");
            return Vec::new();
        }
        if let Some(place) = site.frame.ids.get(failed) {
            node.on_failure = OnFailure::To(place);
        }
        let id = Key::from(&*site.component.shown);
        let updates: Vec<Update> = site.outputs(&|_| Expression::Key(failure_key(&id)));
        vec![node, site.step(failed, Action::Pass, updates, site.frame.next(site.id))]
    }
}

impl Frame<'_> {
    /// The ids in the graph of the steps of a node behind its first.
    pub(super) fn further_steps(&self, node: ComponentId) -> Vec<Key> {
        self.further.get(&node).cloned().unwrap_or_default()
    }
}
