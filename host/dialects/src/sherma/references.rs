//! What nodes refer to: models, tools, sub-agents.

use std::sync::Arc;

use hotcell_graph::diagnostic::Diagnostic;
use hotcell_graph::ir::{Callable, SkillTool};
use hotcell_graph::{Key, closest};

use super::schema::{Body, CallLlm, Declared, Llm, Node, Reference, Source, SubAgentTools};
use crate::document::{self, Kind, Reader};

/// The declarations that references are resolved in.
pub(super) struct Scope<'a, 'r, 'd> {
    pub(super) source: &'a Source,
    pub(super) reader: &'r Reader<'d>,
}

impl Scope<'_, '_, '_> {
    fn report(&self, node: Option<&Node>, reference: &Reference, message: String, help: String) {
        let mut error = Diagnostic::error(message).at(&reference.id.span).help(help);
        error.node = node.map(|node| node.name.to_string());
        self.reader.report(error);
    }

    /// Finds what a reference, of a node or of the file, means among what is declared, version included.
    fn find<'s, T>(
        &self,
        node: Option<&Node>,
        reference: &Reference,
        (what, section): (&str, &str),
        all: &'s [T],
        declared: impl Fn(&'s T) -> &'s Declared,
    ) -> Option<&'s T> {
        let id = &*reference.id;
        let Some(found) = all.iter().find(|one| *declared(one).id == *id) else {
            if self.declares(section, id) {
                return None;
            }
            let help = match closest(id, all.iter().map(|one| &*declared(one).id)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "declare it at the top of the file".to_owned(),
            };
            self.report(node, reference, format!("no {what} `{id}` is declared"), help);
            return None;
        };
        let wanted = reference.version.as_deref().unwrap_or("*").trim().trim_start_matches("==");
        let version = declared(found).version.as_deref().unwrap_or("*");
        if wanted == "*" || wanted == version.trim_start_matches("==") {
            return Some(found);
        }
        let message = format!("the {what} `{id}` is declared with the version {version}, not {wanted}");
        self.report(node, reference, message, "refer to the version that is declared, or leave it out".to_owned());
        None
    }

    /// Whether the file declares something under an id. Where that is wrong, what refers to it is not wrong as well.
    fn declares(&self, section: &str, id: &str) -> bool {
        let has_id = |item: &document::Node| item.get("id").and_then(|entry| entry.value.as_text()) == Some(id);
        self.items(section).iter().any(has_id)
    }

    /// The items of a list at the top of the file, as they are written.
    pub(super) fn items(&self, section: &str) -> &[document::Node] {
        match self.reader.document().root.get(section).map(|entry| &entry.value.kind) {
            Some(Kind::List(items)) => items,
            _ => &[],
        }
    }

    /// The full name of a node's model.
    pub(super) fn model(&self, node: &Node, llm: Option<&Reference>) -> Option<String> {
        let Some(reference) = llm.or(self.source.default_llm.as_ref()) else {
            if self.reader.document().root.get("default_llm").is_some() {
                return None;
            }
            let error =
                Diagnostic::error(format!("the node `{}` has no `llm`, and the file no `default_llm`", &*node.name));
            self.reader.report(error.at(&node.name.span).node(&*node.name).help("set one of them"));
            return None;
        };
        let llm = self.llm(Some(node), reference)?;
        Some(format!("{}:{}", llm.provider, llm.model))
    }

    fn llm(&self, node: Option<&Node>, reference: &Reference) -> Option<&Llm> {
        self.find(node, reference, ("LLM", "llms"), &self.source.llms, |llm| &llm.declared)
    }

    /// Looks whether the model of nodes that name none is declared. Where a node needs it, that is said of the node.
    pub(super) fn check_default_llm(&self) {
        let Some(reference) = &self.source.default_llm else { return };
        let needs_it = |node: &Node| matches!(&node.body, Body::CallLlm(call) if call.llm.is_none());
        if !self.source.agents.iter().flat_map(|agent| &agent.nodes).any(needs_it) {
            self.llm(None, reference);
        }
    }

    /// The agent that a `call_agent` node calls.
    pub(super) fn sub_agent(&self, node: &Node, reference: &Reference) -> Option<Key> {
        let all = &self.source.sub_agents;
        let found = self.find(Some(node), reference, ("sub-agent", "sub_agents"), all, |agent| &agent.declared)?;
        Some(Arc::clone(&found.declared.id.value))
    }

    /// The flags of a node that exclude each other.
    pub(super) fn check_flags(&self, node: &Node, call: &CallLlm) {
        let flags = [
            ("use_tools_from_registry", call.from_registry),
            ("use_tools_from_loaded_skills", call.from_skills),
            ("use_sub_agents_as_tools", !matches!(call.sub_agents, SubAgentTools::None)),
        ];
        let set: Vec<String> = flags.iter().filter(|(_, set)| *set).map(|(name, _)| format!("`{name}`")).collect();
        if set.len() > 1 {
            let message = format!("the node `{}` sets {}, which exclude each other", &*node.name, set.join(" and "));
            let error = Diagnostic::error(message).at(&node.name.span).node(&*node.name);
            self.reader.report(error.help("keep one of them; `tools` may be added to any"));
        }
        // Where sub-agents are declared and cannot be used, that is reported.
        if let SubAgentTools::All(span) = &call.sub_agents
            && self.source.sub_agents.is_empty()
            && self.items("sub_agents").is_empty()
        {
            let error =
                Diagnostic::error("`use_sub_agents_as_tools` is set, and the file has no `sub_agents`").at(span);
            self.reader.report(error.node(&*node.name).help("declare them at the top of the file, or remove the flag"));
        }
    }

    /// What the model of a node may call.
    pub(super) fn offered(&self, node: &Node, call: &CallLlm) -> Vec<Callable> {
        let mut offered: Vec<Callable> = call.tools.iter().filter_map(|reference| self.tool(node, reference)).collect();
        if call.from_registry {
            offered.extend(self.registry());
        }
        if call.from_skills {
            offered.push(Callable::LoadedSkills);
        }
        match &call.sub_agents {
            SubAgentTools::None => {}
            SubAgentTools::All(_) => offered.extend(self.all_sub_agents()),
            SubAgentTools::These(these) => {
                offered.extend(these.iter().filter_map(|one| self.sub_agent(node, one)).map(agent_tool));
            }
        }
        offered
    }

    /// What a tool node runs: its tools, or everything there is.
    pub(super) fn of_tool_node(&self, node: &Node, tools: Option<&[Reference]>) -> Vec<Callable> {
        match tools {
            Some(tools) => tools.iter().filter_map(|reference| self.tool(node, reference)).collect(),
            None => self.registry().chain([Callable::LoadedSkills]).chain(self.all_sub_agents()).collect(),
        }
    }

    /// Every tool that is declared, and those of skills.
    fn registry(&self) -> impl Iterator<Item = Callable> {
        let declared = self.source.tools.iter().map(|tool| Callable::Tool(tool.name.clone()));
        let of_skills = SkillTool::ALL.into_iter().filter(|_| !self.source.skills.is_empty());
        declared.chain(of_skills.map(Callable::Skills))
    }

    fn all_sub_agents(&self) -> impl Iterator<Item = Callable> {
        self.source.sub_agents.iter().map(|agent| agent_tool(Arc::clone(&agent.declared.id.value)))
    }

    fn tool(&self, node: &Node, reference: &Reference) -> Option<Callable> {
        let id = &*reference.id;
        if self.source.tools.iter().all(|tool| *tool.declared.id != *id) {
            match self.source.skill_tool(id) {
                Some(tool) => return Some(Callable::Skills(tool)),
                // The skills are wrong; that is reported.
                None if SkillTool::ALL.iter().any(|tool| tool.name() == id) && !self.items("skills").is_empty() => {
                    return None;
                }
                None => {}
            }
            // A function of a server of a skill goes by its own name.
            let of_a_skill = |tool: &&String| {
                *tool == id || tool.strip_prefix("mcp:").is_some_and(|tool| tool.rsplit('/').next() == Some(id))
            };
            if let Some(name) = self.source.skills.iter().flat_map(|skill| &skill.tools).find(of_a_skill) {
                return Some(Callable::Tool(name.clone()));
            }
            // An agent is called as a tool under its id.
            if let Some(agent) = self.source.sub_agents.iter().find(|agent| *agent.declared.id == *id) {
                return Some(agent_tool(Arc::clone(&agent.declared.id.value)));
            }
        }
        let tool = self.find(Some(node), reference, ("tool", "tools"), &self.source.tools, |tool| &tool.declared)?;
        Some(Callable::Tool(tool.name.clone()))
    }
}

fn agent_tool(agent: Key) -> Callable {
    let name = agent.to_string();
    Callable::Agent { agent, description: format!("Invoke agent: {name}"), name }
}
