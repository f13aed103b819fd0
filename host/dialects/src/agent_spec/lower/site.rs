//! One node of a flow while it is lowered: its inputs and outputs, and the nodes of the graph that it becomes.

use std::sync::Arc;

use hotcell_graph::ir::{
    Action, CallAction, CallTarget, Expression, Gives, Graph, Join, Next, Node, Slot, Tool, Typed, Update,
};
use hotcell_graph::{Key, Object, Value};

use super::flow::Frame;
use super::{ANSWER, template};
use crate::agent_spec::model::{Component, ComponentId, Property};

/// How often a model is asked for a text where that may help.
pub(super) const ATTEMPTS: u32 = 3;

/// The types of nodes that the specification has.
const KINDS: &[&str] = &[
    "StartNode",
    "EndNode",
    "LlmNode",
    "ApiNode",
    "AgentNode",
    "FlowNode",
    "MapNode",
    "BranchingNode",
    "ToolNode",
    "InputMessageNode",
    "OutputMessageNode",
    "ParallelFlowNode",
    "ParallelMapNode",
    "CatchExceptionNode",
    "ExtendedAgentNode",
    "ExtendedLlmNode",
    "ExtendedMapNode",
    "ExtendedParallelFlowNode",
    "ExtendedParallelMapNode",
    "ExtendedToolNode",
    "PluginCatchExceptionNode",
    "PluginChoiceNode",
    "PluginConstantValuesNode",
    "PluginDatastoreCreateNode",
    "PluginDatastoreDeleteNode",
    "PluginDatastoreListNode",
    "PluginDatastoreUpdateNode",
    "PluginExtractNode",
    "PluginGetChatHistoryNode",
    "PluginInputMessageNode",
    "PluginOutputMessageNode",
    "PluginReadVariableNode",
    "PluginRegexNode",
    "PluginRetryNode",
    "PluginTemplateNode",
    "PluginVariableNode",
    "PluginWriteVariableNode",
];

/// A node that only has its action.
pub(super) fn bare(id: &str, kind: &'static str, action: Action, component: &Component) -> Node {
    Node {
        description: component.text("description").map(str::to_owned),
        join: Join::All,
        ..Node::new(id, kind, action, Next::To(Vec::new()), &component.span)
    }
}

/// One node of a flow, on its way to the graph.
pub(super) struct Site<'a, 'c> {
    pub(super) frame: &'a Frame<'c>,
    pub(super) id: ComponentId,
    pub(super) component: &'c Component,
}

impl Site<'_, '_> {
    /// What a name within the node is called outside of it.
    pub(super) fn mapped(&self, mapping: &str, name: &str) -> Key {
        let mapping = self.component.value(mapping).and_then(Value::as_object);
        mapping.and_then(|mapping| mapping.get(name)?.as_text()).map_or_else(|| Key::from(name), Key::from)
    }

    /// What the node calls an input or output of its own.
    pub(super) fn unmapped(&self, mapping: &str, title: &Key) -> Key {
        let mapping = self.component.value(mapping).and_then(Value::as_object);
        let found = mapping.into_iter().flat_map(Object::iter).find(|(_, outside)| outside.as_text() == Some(&**title));
        found.map_or_else(|| title.clone(), |(name, _)| name.clone())
    }

    /// The node as one that runs a graph.
    pub(super) fn calls(&self, graph: Arc<Graph>) -> Node {
        let input = |property: &Property| {
            (self.unmapped("input_mapping", &property.title), self.frame.data.input(self.id, property))
        };
        let target = CallTarget::Graph {
            inherits: false,
            gives: Gives::Outputs,
            graph,
            inputs: self.component.inputs.iter().map(input).collect(),
            conversation: Some(self.frame.keys.conversation.clone()),
        };
        let action = CallAction { target, contract: None, failure_prefix: None, bind: ANSWER };
        self.node(Action::Call(Box::new(action)), self.outputs(&self.entries()))
    }

    /// A further step of the node.
    pub(super) fn step(&self, id: &Key, action: Action, updates: Vec<Update>, next: Next) -> Node {
        Node { id: id.clone(), next, implied_by: Some(self.component.shown.clone()), ..self.node(action, updates) }
    }

    pub(super) fn node(&self, action: Action, updates: Vec<Update>) -> Node {
        let kind = &*self.component.component_type;
        let kind = KINDS.iter().find(|known| **known == kind).copied().unwrap_or("plugin node");
        let next = self.frame.next(self.id);
        Node { updates, next, ..bare(&self.component.shown, kind, action, self.component) }
    }

    /// The value of the input of that name.
    pub(super) fn input(&self, name: &str) -> Expression {
        match self.component.input(&self.mapped("input_mapping", name)) {
            Some(property) => self.frame.data.input(self.id, property),
            None => Expression::Value(Value::from("")),
        }
    }

    pub(super) fn template(&self, template: &str) -> Expression {
        template::rendered(template, self.frame.is_jinja(self.component), |name| self.input(name))
    }

    /// An object with all inputs.
    pub(super) fn inputs(&self) -> Expression {
        let input = |property: &Property| (property.title.clone(), self.frame.data.input(self.id, property));
        Expression::Object(self.component.inputs.iter().map(input).collect())
    }

    /// An object with the inputs of a tool, which may have other types than those of the node.
    pub(super) fn inputs_for(&self, tool: &Tool) -> Expression {
        let input = |slot: &Slot| {
            let value = match self.component.input(&self.mapped("input_mapping", &slot.name)) {
                Some(property) => self.frame.data.input(self.id, property),
                None => Expression::Key("".into()),
            };
            let what = format!("input `{}`", slot.name);
            let (to, default) = (slot.ty.clone(), slot.default.clone());
            (slot.name.clone(), Expression::Typed(Box::new(Typed { value, default, to, what })))
        };
        Expression::Object(tool.inputs.iter().map(input).collect())
    }

    /// What is written when the outputs have these values.
    pub(super) fn outputs(&self, source: &dyn Fn(&Property) -> Expression) -> Vec<Update> {
        let outputs = self.component.outputs.iter();
        outputs.flat_map(|property| self.frame.data.output(self.id, property, source(property))).collect()
    }

    /// Outputs are the entries of the answer.
    pub(super) fn entries(&self) -> impl Fn(&Property) -> Expression {
        |property: &Property| {
            let name = self.unmapped("output_mapping", &property.title);
            Expression::Entry(Box::new(Expression::Key(ANSWER.into())), name)
        }
    }
}
