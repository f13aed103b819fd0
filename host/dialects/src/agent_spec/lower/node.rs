//! The nodes of a flow.

use std::sync::Arc;

use hotcell_graph::conversation::Speaker;
use hotcell_graph::ir::{
    Action, AgentLoop, Arguments, AskAction, Collect, Expression, GraphItems, Iterate, Join, Next, Node,
    PluginNodeAction, PluginNodeKind, PromptPart, Reduction, Retry, Rounds, Said, ToolAction, Update,
};
use hotcell_graph::types::{Type, pointer_step, schema_at};
use hotcell_graph::{Key, Object, Value};

use super::agent::spoken_by;
use super::data::typed;
use super::flow::{Frame, asked};
use super::site::{ATTEMPTS, Site};
use super::tool::of_api_node;
use super::{ANSWER, Lowering};
use crate::agent_spec::generated;
use crate::agent_spec::model::{ComponentId, Field, Property};

impl<'c> Lowering<'c> {
    /// What a node of a flow becomes.
    pub(super) fn node(&mut self, frame: &Frame<'c>, id: ComponentId) -> Vec<Node> {
        let component = self.component(id);
        let site = Site { frame, id, component };
        match &*component.component_type {
            "StartNode" => vec![site.start()],
            "EndNode" => vec![site.end()],
            "LlmNode" => self.llm_node(&site).into_iter().collect(),
            "ApiNode" => {
                let retry = self.retry(component);
                let action = ToolAction {
                    tool: Arc::new(of_api_node(component, retry)),
                    inputs: site.inputs(),
                    arguments: Arguments::AsTheyAre,
                    bind: ANSWER,
                };
                vec![site.node(Action::Tool(Box::new(action)), site.outputs(&site.entries()))]
            }
            "ToolNode" => self.tool_node(&site).into_iter().collect(),
            "AgentNode" => self.call_node(&site, "agent").into_iter().collect(),
            "FlowNode" => self.call_node(&site, "subflow").into_iter().collect(),
            "MapNode" | "ParallelMapNode" => self.map_node(&site).into_iter().collect(),
            "ParallelFlowNode" | "ExtendedParallelFlowNode" => self.parallel_node(&site),
            "PluginCatchExceptionNode" if frame.further_steps(id).is_empty() => {
                self.call_node(&site, "flow").into_iter().collect()
            }
            "CatchExceptionNode" | "PluginCatchExceptionNode" => self.catch_node(&site),
            "ExtendedToolNode" => self.extended_tool_node(&site),
            "ExtendedLlmNode" => self.extended_llm_node(&site).into_iter().collect(),
            "ExtendedAgentNode" => self.extended_agent_node(&site).into_iter().collect(),
            "PluginTemplateNode" => vec![self.template_node(&site)],
            "PluginRegexNode" => self.regex_node(&site).into_iter().collect(),
            "PluginExtractNode" => self.extract_node(&site).into_iter().collect(),
            "ExtendedMapNode" | "ExtendedParallelMapNode" => self.extended_map_node(&site).into_iter().collect(),
            "PluginReadVariableNode" | "PluginVariableNode" | "PluginWriteVariableNode" => {
                self.variable_node(&site).into_iter().collect()
            }
            "PluginDatastoreCreateNode"
            | "PluginDatastoreDeleteNode"
            | "PluginDatastoreListNode"
            | "PluginDatastoreUpdateNode" => self.datastore_node(&site).into_iter().collect(),
            "PluginChoiceNode" => self.choice_node(&site).into_iter().collect(),
            "PluginRetryNode" => self.retry_node(&site),
            "PluginGetChatHistoryNode" => self.history_node(&site).into_iter().collect(),
            "PluginConstantValuesNode" => vec![self.constants_node(&site)],
            "PluginOutputMessageNode" => self.plugin_output_message(&site).into_iter().collect(),
            "PluginInputMessageNode" => {
                self.no_rephrasing(component);
                site.input_message()
            }
            "BranchingNode" => site.branching().into_iter().collect(),
            "InputMessageNode" => site.input_message(),
            "OutputMessageNode" => vec![site.output_message()],
            _ => self.plugin_node(&site).into_iter().collect(),
        }
    }

    pub(super) fn llm_node(&mut self, site: &Site<'_, 'c>) -> Option<Node> {
        let prompt = site.template(site.component.text("prompt_template").unwrap_or_default());
        self.prompting_node(site, vec![PromptPart::text("`prompt_template`", Speaker::Human, prompt)])
    }

    /// A node that asks a model with this prompt.
    pub(super) fn prompting_node(&mut self, site: &Site<'_, 'c>, mut prompt: Vec<PromptPart>) -> Option<Node> {
        let component = site.component;
        let llm = component.child("llm_config")?;
        let settings = self.model(llm);
        let retry = self.retry(self.component(llm)).unwrap_or(Retry { attempts: ATTEMPTS, ..Retry::default() });
        let reply = || Expression::Entry(Box::new(Expression::Key(ANSWER.into())), "content".into());
        let is_text = generated::gives_text(component, self.configuration.version);
        let source: Box<dyn Fn(&Property) -> Expression> = if is_text {
            Box::new(move |_| reply())
        } else {
            let wanted = Expression::Value(Value::from(wanted(&component.outputs)));
            match prompt.last_mut().map(|part| &mut part.said) {
                Some(Said::Text(Speaker::Human, text)) => {
                    let before = std::mem::replace(text, Expression::Value(Value::Null));
                    *text = Expression::Joined(vec![before, wanted]);
                }
                _ => prompt.push(PromptPart::text("what is wanted", Speaker::Human, wanted)),
            }
            let json = move || Expression::JsonWithin(Box::new(reply()));
            let alone = matches!(&component.outputs[..], [only] if only.ty.is_object());
            Box::new(move |property: &Property| {
                let entry = Expression::Entry(Box::new(json()), property.title.clone());
                // The object may be the answer itself.
                if alone { Expression::Else(Box::new(entry), Box::new(json())) } else { entry }
            })
        };
        let asks_once = AgentLoop { settings, prompt, retry, bind: ANSWER, ..AgentLoop::default() };
        Some(site.node(Action::Converse(Box::new(asks_once.request())), site.outputs(&source)))
    }

    pub(super) fn tool_node(&mut self, site: &Site<'_, 'c>) -> Option<Node> {
        let id = site.component.child("tool")?;
        let (tool, lowered) = (self.component(id), self.tool(id));
        // A value has the type of the tool before it has that of the node.
        let source = |property: &Property| {
            let answer = Expression::Key(ANSWER.into());
            let value = match &tool.outputs[..] {
                [_] => answer,
                _ => Expression::Entry(Box::new(answer), site.unmapped("output_mapping", &property.title)),
            };
            match tool.output(&site.unmapped("output_mapping", &property.title)) {
                Some(output) => typed(output, "output", value),
                None => value,
            }
        };
        let inputs = site.inputs_for(&lowered);
        let action = ToolAction { tool: lowered, inputs, arguments: Arguments::AsTheyAre, bind: ANSWER };
        Some(site.node(Action::Tool(Box::new(action)), site.outputs(&source)))
    }

    /// A node that runs a flow or an agent.
    pub(super) fn call_node(&mut self, site: &Site<'_, 'c>, field: &str) -> Option<Node> {
        let graph = self.callable(site.component.child(field)?);
        let mut node = site.calls(graph);
        if matches!(&*site.component.component_type, "FlowNode" | "PluginCatchExceptionNode") {
            node.next = site.by_branch()?;
        }
        Some(node)
    }

    fn map_node(&mut self, site: &Site<'_, 'c>) -> Option<Node> {
        let component = site.component;
        let id = component.child("subflow")?;
        let (subflow, graph) = (self.component(id), self.callable(id));
        let mut inputs = Vec::new();
        for property in &component.inputs {
            let inner = property.title.strip_prefix("iterated_").and_then(|name| subflow.input(name));
            let Some(inner) = inner else { continue };
            // The declared type has room for a value and a list, so nothing is converted before it is known which it is.
            let any = Property { ty: Arc::new(Type::any()), ..property.clone() };
            inputs.push(Iterate {
                key: inner.title.clone(),
                value: site.frame.data.input(site.id, &any),
                ty: inner.ty.clone(),
                name: property.title.clone(),
                rounds: rounds(site.frame.data.sources(site.id, &property.title), &inner.ty),
            });
        }
        let reducers = component.value("reducers").and_then(Value::as_object);
        let mut collect = Vec::new();
        for output in &subflow.outputs {
            let how = match reducers {
                None => Reduction::Append,
                Some(reducers) => match reducers.get(&output.title).and_then(Value::as_text) {
                    Some(name) => Reduction::of_name(name)?,
                    None => continue,
                },
            };
            let into = Key::from(format!("collected_{}", output.title));
            let default = component.output(&into).and_then(|property| property.default.clone());
            collect.push(Collect { output: output.title.clone(), into, how, default });
        }
        let items = GraphItems {
            graph,
            inputs,
            collect,
            conversation: Some(site.frame.keys.conversation.clone()),
            bind: ANSWER,
        };
        Some(site.node(Action::Map(items.at_a_time(None)), site.outputs(&site.entries())))
    }

    /// A node whose type a plugin provides: it gets its own fields and its inputs.
    fn plugin_node(&mut self, site: &Site<'_, 'c>) -> Option<Node> {
        let component = site.component;
        let plugin = component.plugin.as_ref()?;
        let mut fields = Object::default();
        for (name, field) in component.fields.iter().filter(|(name, _)| !matches!(&***name, "description" | "metadata"))
        {
            if let Field::Value { value, .. } = field {
                fields.insert(name.clone(), value.clone());
            }
        }
        let action = PluginNodeAction {
            plugin_node: format!("{}/{}", plugin.name, component.component_type),
            kind: PluginNodeKind::Node,
            with: Expression::Value(Value::Object(fields)),
            inputs: site.inputs(),
            branches: match &component.branches[..] {
                [only] if &**only == "next" => Vec::new(),
                branches => branches.iter().map(|branch| branch.to_string()).collect(),
            },
            keys: None,
            bind: ANSWER,
        };
        let mut node = site.node(Action::PluginNode(Box::new(action)), site.outputs(&site.entries()));
        node.next = site.by_branch()?;
        Some(node)
    }
}

impl Site<'_, '_> {
    fn start(&self) -> Node {
        let value = |input: &Property| {
            let given = Expression::Key(input.title.clone());
            // The flow may say more of an input than its StartNode does: another type, a default.
            let given = match self.frame.flow.input(&input.title) {
                Some(of_flow) => typed(of_flow, "input", given),
                None => given,
            };
            typed(input, "input", given)
        };
        let inputs = self.component.inputs.iter();
        let mut updates: Vec<Update> =
            inputs.map(|input| Update { key: input.title.clone(), value: value(input) }).collect();
        let given = |property: &Property| match self.component.input(&property.title) {
            Some(input) => value(input),
            None => Expression::Key(property.title.clone()),
        };
        updates.extend(self.outputs(&given).into_iter().filter(|update| {
            // Where names are keys, the input is the output.
            self.component.inputs.iter().all(|input| input.title != update.key)
        }));
        self.node(Action::Pass, updates)
    }

    fn end(&self) -> Node {
        let Frame { flow, keys, .. } = self.frame;
        let mut outputs = Vec::new();
        for output in &flow.outputs {
            let value = match self.component.output(&output.title) {
                Some(own) => {
                    let input = self.component.input(&output.title).unwrap_or(own);
                    let value = typed(own, "output", self.frame.data.input(self.id, input));
                    // The default of the flow is for ends that lack the output, not for those that lack its value.
                    typed(&Property { default: None, ..output.clone() }, "output", value)
                }
                None => typed(output, "output", Expression::Key("".into())),
            };
            outputs.push((output.title.clone(), value));
        }
        let branch = self.component.text("branch_name").unwrap_or("next");
        let updates = vec![
            Update { key: keys.results.outputs.clone(), value: Expression::Object(outputs) },
            Update { key: keys.results.branch.clone(), value: Expression::Value(branch.into()) },
        ];
        let output = Expression::Key(keys.results.outputs.clone());
        self.node(Action::End { output }, updates)
    }

    fn branching(&self) -> Option<Node> {
        let input = self.component.inputs.first()?;
        let otherwise = self.frame.target(self.id, "default")?;
        let mapping = self.component.value("mapping").and_then(Value::as_object)?;
        let mut routes = Vec::new();
        for (key, branch) in mapping.iter() {
            routes.push((key.to_string(), self.frame.target(self.id, branch.as_text()?)?));
        }
        let text = Property { ty: Arc::new(Type::text()), ..input.clone() };
        let value = typed(&text, "input", self.frame.data.input(self.id, input));
        let mut node = self.node(Action::Pass, Vec::new());
        node.next = Next::ByValue { value, routes, otherwise };
        Some(node)
    }

    fn input_message(&self) -> Vec<Node> {
        let message = asked(self.component);
        let conversation = &self.frame.keys.conversation;
        let mut nodes = Vec::new();
        if let (Some(message), Some(opening)) = (message, self.frame.opening(self.id, &self.component.shown)) {
            let say = spoken_by(Speaker::Ai, self.template(message));
            let updates = vec![Update { key: conversation.clone(), value: say }];
            nodes.push(Node {
                id: opening.clone(),
                next: Next::To(self.frame.ids.get(&self.component.shown).into_iter().collect()),
                join: Join::All,
                retry: None,
                implied_by: Some(self.component.shown.clone()),
                ..self.node(Action::Pass, updates)
            });
        }
        let ask = AskAction::new(self.template(message.unwrap_or_default()), ANSWER);
        let answer = || Expression::Key(ANSWER.into());
        let mut updates = vec![Update { key: conversation.clone(), value: spoken_by(Speaker::Human, answer()) }];
        updates.extend(self.outputs(&|_| answer()));
        nodes.push(self.node(Action::Ask(ask), updates));
        nodes
    }

    fn output_message(&self) -> Node {
        let text = self.template(self.component.text("message").unwrap_or_default());
        let value = spoken_by(Speaker::Ai, text);
        self.node(Action::Pass, vec![Update { key: self.frame.keys.conversation.clone(), value }])
    }
}

/// What an input is over the rounds, as far as the types of what feeds it show that.
fn rounds(sources: &[Arc<Type>], inner: &Type) -> Option<Rounds> {
    let of = |source: &Type| {
        if *source == *inner {
            return Some(Rounds::Same);
        }
        if source.is_any() || inner.is_any() {
            return None;
        }
        match source.items() {
            Some(items) if items.converts_to(inner) => Some(Rounds::Each),
            _ if source.converts_to(inner) => Some(Rounds::Same),
            _ => None,
        }
    };
    // Of a source that gives one type or another, what each of them shows counts.
    let one_of = |source: &Arc<Type>| {
        if **source == *inner { Some(Rounds::Same) } else { agreed(source.members().iter().map(of)) }
    };
    agreed(sources.iter().map(one_of))
}

/// What all say, if it is the same.
fn agreed(mut all: impl Iterator<Item = Option<Rounds>>) -> Option<Rounds> {
    let first = all.next()??;
    all.all(|other| other == Some(first)).then_some(first)
}

/// What a model is told that owes more than a text.
fn wanted(outputs: &[Property]) -> String {
    format!(
        "\n\nAnswer with one JSON object and nothing else. It has these entries, as a JSON schema:\n{}",
        Value::Object(object_of(outputs))
    )
}

/// The JSON schema of an object with these entries.
pub(super) fn object_of(properties: &[Property]) -> Object {
    let schema = |entry: &Property| schema_at(&entry.schema, &format!("/properties/{}", pointer_step(&entry.title)));
    let entries: Object = properties.iter().map(|entry| (entry.title.clone(), schema(entry))).collect();
    [("type".into(), Value::from("object")), ("properties".into(), Value::Object(entries))].into_iter().collect()
}
