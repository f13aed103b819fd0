//! What WayFlow, the reference runtime, adds to the specification by components of its own plugins.

use std::sync::Arc;

use hotcell_graph::Value;
use hotcell_graph::conversation::Speaker;
use hotcell_graph::ir::{Action, Callable, Expression, NestedGraph, Node, Tool, ToolKind, Update};

use super::agent::{free_name, shown_only, spoken_by};
use super::site::Site;
use super::team::Member;
use super::tool::{slot, spoken};
use super::{ANSWER, Lowering};
use crate::agent_spec::model::{Component, ComponentId};

impl<'c> Lowering<'c> {
    /// What an `ExtendedAgent` has beside what an `Agent` has; gives the template of its prompt, if it has one.
    pub(super) fn extended_agent(&mut self, agent: &'c Component, offered: &mut Vec<Callable>) -> Option<&'c Value> {
        let field = "context_providers";
        if matches!(agent.value(field), Some(Value::List(list)) if !list.is_empty()) {
            let instead = "give the agent inputs, and values for them";
            self.refuse_field(agent, field, format!("`{field}` of an `ExtendedAgent` is not supported: {instead}"));
        }
        let framing = self.agent_template(agent);
        for other in agent.children("agents").unwrap_or_default() {
            let callable = self.colleague(offered, Member { agent: *other, swarm: None });
            offered.extend(callable);
        }
        let flows = agent.children("flows").unwrap_or_default();
        for (_, flow) in flows.iter().enumerate().filter(|(place, flow)| !flows[..*place].contains(flow)) {
            let tool = self.flow_tool(*flow, offered);
            offered.push(Callable::Defined(Arc::new(tool)));
        }
        framing
    }

    /// A flow as a tool of an agent: its inputs are the arguments, its outputs the answer.
    fn flow_tool(&mut self, id: ComponentId, offered: &[Callable]) -> Tool {
        let flow = self.component(id);
        let description = flow.text("description").filter(|text| !text.trim().is_empty());
        Tool {
            name: flow.name.clone(),
            spoken: free_name(offered, &spoken(&flow.name)),
            description: description.map_or_else(|| format!("Runs the flow {}", flow.name), str::to_owned),
            inputs: flow.inputs.iter().map(slot).collect(),
            kind: ToolKind::Graph(NestedGraph(self.callable(id))),
            confirm: false,
        }
    }

    /// A node that says something to the person.
    pub(super) fn plugin_output_message(&mut self, site: &Site<'_, 'c>) -> Option<Node> {
        let component = site.component;
        self.no_rephrasing(component);
        let speaker = match component.text("message_type") {
            None | Some("AGENT") => Some(Speaker::Ai),
            Some("USER") => Some(Speaker::Human),
            Some("SYSTEM") => Some(Speaker::System),
            Some("DISPLAY_ONLY") => None,
            Some(other) => {
                let known = "`AGENT`, `USER`, `SYSTEM` and `DISPLAY_ONLY`";
                let problem = format!("a message of the type `{other}` is not supported: {known} are");
                self.refuse_field(component, "message_type", problem);
                return None;
            }
        };
        let template = component.text("message").or_else(|| component.text("message_template")).unwrap_or_default();
        let text = site.template(template);
        let said = match speaker {
            Some(speaker) => spoken_by(speaker, text.clone()),
            None => shown_only(text.clone()),
        };
        let mut updates = vec![Update { key: site.frame.keys.conversation.clone(), value: said }];
        updates.extend(site.outputs(&|_| text.clone()));
        Some(site.node(Action::Pass, updates))
    }

    /// Says that a message is not rephrased.
    pub(super) fn no_rephrasing(&mut self, component: &Component) {
        if matches!(component.value("rephrase"), Some(Value::Bool(true))) {
            self.refuse_field(
                component,
                "rephrase",
                "`rephrase: true` is not supported: put an `LlmNode` before the message",
            );
        }
    }

    /// A node that calls a model and may say to the person what it answers.
    pub(super) fn extended_llm_node(&mut self, site: &Site<'_, 'c>) -> Option<Node> {
        let component = site.component;
        let mut node = match component.value("prompt_template_object") {
            Some(object) => {
                let prompt = self.prompt_messages(site, object)?;
                self.prompting_node(site, prompt)?
            }
            None => self.llm_node(site)?,
        };
        if matches!(component.value("send_message"), Some(Value::Bool(true))) {
            let reply = Expression::Entry(Box::new(Expression::Key(ANSWER.into())), "content".into());
            let key = site.frame.keys.conversation.clone();
            node.updates.push(Update { key, value: spoken_by(Speaker::Ai, reply) });
        }
        Some(node)
    }

    /// A node that runs an agent, which perhaps may not ask the person, and perhaps owes other outputs than it does by itself.
    pub(super) fn extended_agent_node(&mut self, site: &Site<'_, 'c>) -> Option<Node> {
        let before = self.is_alone;
        self.is_alone |= site.component.text("caller_input_mode") == Some("never");
        let node = self.agent_with_outputs(site);
        self.is_alone = before;
        node
    }

    fn agent_with_outputs(&mut self, site: &Site<'_, 'c>) -> Option<Node> {
        let component = site.component;
        let id = component.child("agent")?;
        let agent = self.component(id);
        let gives = |name: &str| agent.output(name).is_some();
        let unknown =
            component.outputs.iter().find(|property| !gives(&site.unmapped("output_mapping", &property.title)));
        let Some(unknown) = unknown else { return self.call_node(site, "agent") };
        let mapping = component.value("output_mapping").and_then(Value::as_object);
        let is_mapped = mapping.is_some_and(|mapping| !mapping.is_empty());
        if is_mapped || !matches!(&*agent.component_type, "Agent" | "ExtendedAgent" | "SpecializedAgent") {
            let message = format!("`{}` is not an output of its agent: declare it there", unknown.title);
            self.refuse(component, message);
            return None;
        }
        let mut parts = self.parts(id)?;
        parts.outputs = &component.outputs;
        let graph = self.agent_of(parts)?;
        Some(site.calls(Arc::new(graph)))
    }

    /// A node that fills a template.
    pub(super) fn template_node(&self, site: &Site<'_, 'c>) -> Node {
        let text = site.template(site.component.text("template").unwrap_or_default());
        site.node(Action::Pass, site.outputs(&|_| text.clone()))
    }

    /// A node that gives values.
    pub(super) fn constants_node(&self, site: &Site<'_, 'c>) -> Node {
        let values = site.component.value("constant_values").and_then(Value::as_object);
        let updates = site.outputs(&|property| {
            let name = site.unmapped("output_mapping", &property.title);
            Expression::Value(values.and_then(|values| values.get(&name)).cloned().unwrap_or_default())
        });
        site.node(Action::Pass, updates)
    }
}
