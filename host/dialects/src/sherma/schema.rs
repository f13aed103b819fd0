//! The typed tree of a file.

use std::sync::Arc;

use hotcell_graph::Value;
use hotcell_graph::conversation::Speaker;
use hotcell_graph::diagnostic::Span;
use hotcell_graph::formula::ValueType;
use hotcell_graph::ir::{Retry, Skill, SkillTool};

use crate::document::{SourceText, Spanned};
use crate::surroundings::DeclaredNode;

/// A whole file.
#[derive(Debug, Default)]
pub(super) struct Source {
    pub(super) prompts: Vec<(SourceText, Arc<str>)>,
    pub(super) llms: Vec<Llm>,
    pub(super) tools: Vec<Tool>,
    pub(super) skills: Vec<Skill>,
    pub(super) sub_agents: Vec<SubAgent>,
    pub(super) default_llm: Option<Reference>,
    pub(super) data: Value,
    pub(super) hooks: Vec<String>,
    pub(super) agents: Vec<Agent>,
}

/// What is declared under an id.
#[derive(Debug)]
pub(super) struct Declared {
    pub(super) id: SourceText,
    pub(super) version: Option<SourceText>,
}

#[derive(Debug)]
pub(super) struct Llm {
    pub(super) declared: Declared,
    pub(super) provider: String,
    pub(super) model: String,
}

#[derive(Debug)]
pub(super) struct Tool {
    pub(super) declared: Declared,
    /// What the host calls it
    pub(super) name: String,
}

#[derive(Debug)]
pub(super) struct SubAgent {
    pub(super) declared: Declared,
    /// Its file
    pub(super) path: Option<SourceText>,
    /// Its address
    pub(super) url: Option<SourceText>,
}

/// A reference to something that is declared.
#[derive(Clone, Debug)]
pub(super) struct Reference {
    pub(super) id: SourceText,
    pub(super) version: Option<SourceText>,
}

#[derive(Debug)]
pub(super) struct Agent {
    pub(super) name: Spanned<Arc<str>>,
    pub(super) fields: Vec<Field>,
    pub(super) entry: Option<SourceText>,
    pub(super) nodes: Vec<Node>,
    pub(super) edges: Vec<Edge>,
    pub(super) rounds: u32,
    pub(super) concurrency: Option<usize>,
    pub(super) input_schema: Option<Value>,
}

#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: SourceText,
    pub(super) is_list: bool,
    pub(super) is_float: bool,
    /// What it is declared to hold
    pub(super) holds: ValueType,
    pub(super) default: Option<Value>,
}

#[derive(Debug)]
pub(super) struct Node {
    pub(super) name: SourceText,
    pub(super) body: Body,
    pub(super) fallback: Option<SourceText>,
}

#[derive(Debug)]
pub(super) enum Body {
    CallLlm(Box<CallLlm>),
    ToolNode(Option<Vec<Reference>>),
    CallAgent {
        agent: Option<Reference>,
        input: Option<SourceText>,
    },
    Transform(Option<SourceText>),
    SetState(Vec<(Spanned<Arc<str>>, SourceText)>),
    Interrupt(Option<SourceText>),
    LoadSkills(Option<SourceText>),
    /// None if what it stands for is wrong; that is reported
    Custom(Option<Box<Custom>>),
    /// Its type or its `args` are wrong; that is reported
    Unknown,
}

/// A node whose work a plugin does.
#[derive(Debug)]
pub(super) struct Custom {
    /// The full name of the node type
    pub(super) plugin_node: String,
    pub(super) offered: DeclaredNode,
    /// What the node says beside the name
    pub(super) metadata: Value,
}

#[derive(Debug)]
pub(super) struct CallLlm {
    pub(super) llm: Option<Reference>,
    pub(super) prompt: Vec<(PromptRole, SourceText)>,
    pub(super) tools: Vec<Reference>,
    pub(super) from_registry: bool,
    pub(super) from_skills: bool,
    pub(super) sub_agents: SubAgentTools,
    pub(super) schema: Option<Value>,
    pub(super) updates: Option<Vec<(Spanned<Arc<str>>, SourceText)>>,
    pub(super) retry: Retry,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum PromptRole {
    Speaker(Speaker),
    Messages,
}

#[derive(Debug)]
pub(super) enum SubAgentTools {
    None,
    All(Span),
    These(Vec<Reference>),
}

#[derive(Debug)]
pub(super) struct Edge {
    pub(super) source: SourceText,
    pub(super) route: Route,
}

#[derive(Debug)]
pub(super) enum Route {
    To(SourceText),
    Branches { branches: Vec<(SourceText, SourceText)>, default: Option<SourceText> },
}

/// The node at which a run ends.
pub(super) const END: &str = "__end__";
/// The source of edges to the nodes that run first.
pub(super) const START: &str = "__start__";
/// The field that is a conversation.
pub(super) const MESSAGES: &str = "messages";

impl CallLlm {
    /// Whether its model may call anything.
    pub(super) fn has_tools(&self) -> bool {
        !self.tools.is_empty()
            || self.from_registry
            || self.from_skills
            || !matches!(self.sub_agents, SubAgentTools::None)
    }
}

impl Field {
    pub(super) fn is_conversation(&self) -> bool {
        &*self.name == MESSAGES && self.is_list
    }
}

impl Agent {
    pub(super) fn has_conversation(&self) -> bool {
        self.fields.iter().any(Field::is_conversation)
    }

    /// Whether nodes need a conversation that the state does not have. That is an error of those nodes.
    pub(super) fn lacks_conversation(&self) -> bool {
        !self.has_conversation() && self.nodes.iter().any(Node::needs_conversation)
    }

    pub(super) fn node(&self, name: &str) -> Option<&Node> {
        self.nodes.iter().find(|node| &*node.name == name)
    }
}

impl Source {
    /// The tool of skills of that name, if there are skills.
    pub(super) fn skill_tool(&self, name: &str) -> Option<SkillTool> {
        let tool = SkillTool::ALL.into_iter().find(|tool| tool.name() == name)?;
        (!self.skills.is_empty()).then_some(tool)
    }
}

impl Node {
    /// Every expression of the node.
    pub(super) fn expressions(&self) -> Vec<&SourceText> {
        match &self.body {
            Body::CallLlm(call) => {
                let updates = call.updates.iter().flatten().map(|(_, text)| text);
                call.prompt.iter().map(|(_, text)| text).chain(updates).collect()
            }
            Body::CallAgent { input, .. } => input.iter().collect(),
            Body::Transform(text) | Body::Interrupt(text) | Body::LoadSkills(text) => text.iter().collect(),
            Body::SetState(values) => values.iter().map(|(_, text)| text).collect(),
            Body::ToolNode(_) | Body::Custom(_) | Body::Unknown => Vec::new(),
        }
    }

    /// Whether the node reads or writes the conversation.
    pub(super) fn needs_conversation(&self) -> bool {
        matches!(
            self.body,
            Body::CallLlm(_) | Body::Interrupt(_) | Body::CallAgent { .. } | Body::ToolNode(_) | Body::LoadSkills(_)
        )
    }

    /// The type as the file calls it.
    pub(super) fn kind(&self) -> &'static str {
        match self.body {
            Body::CallLlm(_) => "call_llm",
            Body::ToolNode(_) => "tool_node",
            Body::CallAgent { .. } => "call_agent",
            Body::Transform(_) => "data_transform",
            Body::SetState(_) => "set_state",
            Body::Interrupt(_) => "interrupt",
            Body::LoadSkills(_) => "load_skills",
            Body::Custom(_) => "custom",
            Body::Unknown => "unknown",
        }
    }
}
