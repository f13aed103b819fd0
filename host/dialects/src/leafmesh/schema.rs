//! The typed tree of a mesh.

use std::time::Duration;

use hotcell_graph::diagnostic::Span;
use hotcell_graph::ir::{CallLimits, Pattern, ToolChoice};
use hotcell_graph::python::ObjectCondition;
use hotcell_graph::{Key, Object, Value};

use super::functions::CodeFolder;
use super::hidden::Hidden;
use super::mcp_server::McpServer;
use super::settings::{BudgetSettings, ChannelSettings, WakeUp, WebhookLimits, WebhookSettings};
use super::shapes::{Field, Shape, Structured, with_fields};
use super::thoughts::Thoughts;
use super::wait::Wait;
use super::watching::{Evolution, Healing, ManagerSettings, Scenario};
use crate::document::SourceText;
use crate::knowledge_base::KnowledgeBaseSource;
use crate::surroundings::Surroundings;

/// The connector that is a function.
pub(super) const CUSTOM: &str = "custom";

/// A mesh.
#[derive(Debug, Default)]
pub(super) struct Mesh {
    pub(super) name: String,
    pub(super) is_production: bool,
    pub(super) agents: Vec<Agent>,
    pub(super) entry_points: Vec<EntryPoint>,
    pub(super) structures: Vec<(Key, Structure)>,
    pub(super) max_chain_events: u32,
    pub(super) manager: Option<Manager>,
    pub(super) cors_origins: Vec<String>,
    pub(super) webhooks: WebhookLimits,
    pub(super) max_history_bytes: u32,
    pub(super) session_ttl: Duration,
    pub(super) misfire_grace: Duration,
    pub(super) scenarios: Vec<Scenario>,
    pub(super) evolution: Evolution,
    pub(super) providers: Providers,
    pub(super) code: CodeFolder,
    /// What is watched of its agents, if anything is
    pub(super) healing: Option<Healing>,
    /// Names of entry points in places that are checked when all of them are known
    pub(super) named_entries: Vec<SourceText>,
    /// Those that stand for names which nobody wrote
    pub(super) usual_entries: Vec<SourceText>,
}

/// What blocks of `mesh` are there, of those that models need.
#[derive(Clone, Debug, Default)]
pub(super) struct Providers {
    /// Where Bedrock is asked; none for the usual region
    pub(super) bedrock: Option<String>,
    /// Where the project at Vertex speaks Chat Completions
    pub(super) vertex: Option<String>,
    /// Where the resource of Foundry speaks Chat Completions; the error is why hotcell cannot ask it
    pub(super) foundry: Option<Result<String, String>>,
    pub(super) local: Option<LocalServer>,
    /// How long one request may take where the agent and its server say nothing
    pub(super) time: Option<Duration>,
}

/// The server that serves models of unknown names.
#[derive(Clone, Debug)]
pub(super) struct LocalServer {
    /// Where it speaks Chat Completions; the error is why hotcell cannot ask it
    pub(super) address: Result<String, String>,
    pub(super) timeout: Duration,
}

/// What agents are lowered with.
#[derive(Clone, Copy)]
pub(super) struct World<'a> {
    pub(super) surroundings: &'a dyn Surroundings,
    pub(super) providers: &'a Providers,
    pub(super) code: &'a CodeFolder,
}

impl<'a> World<'a> {
    pub(super) fn of(mesh: &'a Mesh, surroundings: &'a dyn Surroundings) -> Self {
        World { surroundings, providers: &mesh.providers, code: &mesh.code }
    }
}

#[derive(Debug)]
pub(super) struct Manager {
    /// How it looks at what agents give; none where it is off
    pub(super) summarizer: Option<Summarizer>,
    /// Agents that are asked when something goes wrong
    pub(super) escalation_agents: Vec<SourceText>,
    /// Chat providers that are posted to then
    pub(super) escalation_channels: Vec<SourceText>,
    /// What whoever serves the mesh has to know; none where it is off
    pub(super) settings: Option<ManagerSettings>,
}

/// Who makes a post of everything that an agent gives.
#[derive(Debug)]
pub(super) struct Summarizer {
    pub(super) model: SourceText,
    pub(super) temperature: f64,
    pub(super) max_tokens: u32,
    pub(super) domain: &'static str,
    /// What it looks for
    pub(super) criteria: Option<String>,
    /// Rules of the mesh's own, as JSON
    pub(super) rules: Option<String>,
    /// Whether agents are called that it names
    pub(super) intervenes: bool,
}

/// What an agent remembers of what was posted.
#[derive(Debug)]
pub(super) struct Memory {
    pub(super) most: usize,
    pub(super) recency: f64,
    pub(super) relevance: f64,
    pub(super) decay_hours: f64,
    /// How many posts about it of other sessions, if any
    pub(super) of_others: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AgentType {
    Llm,
    Human,
    Programmatic,
    External,
}

impl AgentType {
    pub(super) fn word(self) -> &'static str {
        match self {
            AgentType::Llm => "llm",
            AgentType::Human => "human",
            AgentType::Programmatic => "programmatic",
            AgentType::External => "external",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Communication {
    Dual,
    Chain,
}

/// The knowledge service that an agent names.
#[derive(Debug)]
pub(super) enum Knowledge {
    /// The agent cannot look anything up there
    Unavailable,
    /// Its documents
    Base(Box<KnowledgeBaseSource>),
}

/// An agent.
#[derive(Debug)]
pub(super) struct Agent {
    pub(super) name: Key,
    /// Its key in the file
    pub(super) span: Span,
    pub(super) previous_name: Option<SourceText>,
    pub(super) description: Option<String>,
    pub(super) communication: Communication,
    pub(super) instances: u32,
    /// Whether each of them leads on with what it gave itself
    pub(super) hands_on_each: bool,
    /// In how many sessions it works at a time
    pub(super) at_once: Option<u32>,
    pub(super) yields: Vec<(Key, Field)>,
    pub(super) inputs: Vec<(Key, Field)>,
    pub(super) edges: Vec<Edge>,
    pub(super) wake_ups: Vec<WakeUp>,
    pub(super) wait: Option<WaitFor>,
    pub(super) is_strict: bool,
    pub(super) retries: u32,
    /// Who else may be called when it has given something, in words for the manager
    pub(super) narration: Option<String>,
    pub(super) memory: Option<Memory>,
    /// What it can look up, if it is to look anything up
    pub(super) knowledge: Option<Knowledge>,
    pub(super) budget: Option<BudgetSettings>,
    /// How many of the earlier messages of a session it is told, if it is
    pub(super) history: Option<u32>,
    pub(super) overrides: Vec<(SourceText, Communication)>,
    pub(super) body: Body,
    /// Why it cannot run, if it cannot
    pub(super) closed: Option<String>,
}

impl Agent {
    /// What it looks things up in.
    pub(super) fn knowledge_base(&self) -> Option<&KnowledgeBaseSource> {
        match &self.knowledge {
            Some(Knowledge::Base(base)) => Some(base),
            Some(Knowledge::Unavailable) | None => None,
        }
    }

    /// What is looked up for its input before it works.
    pub(super) fn told_of(&self) -> Option<&KnowledgeBaseSource> {
        self.knowledge_base().filter(|_| matches!(&self.body, Body::Llm(llm) if llm.is_told_knowledge))
    }

    /// What its model may look things up in.
    pub(super) fn queried(&self) -> Option<&KnowledgeBaseSource> {
        self.knowledge_base().filter(|_| matches!(&self.body, Body::Llm(llm) if llm.queries_knowledge))
    }

    /// How it answers a caller.
    pub(super) fn communication_toward(&self, caller: &str) -> Communication {
        let own = self.overrides.iter().find(|(name, _)| **name == *caller);
        own.map_or(self.communication, |(_, kind)| *kind)
    }
}

/// What an agent calls.
#[derive(Debug)]
pub(super) struct Edge {
    pub(super) target: SourceText,
    /// None means always
    pub(super) condition: Option<Condition>,
    /// Whether the file has a condition, which may be that it is always
    pub(super) has_condition: bool,
}

/// A condition with the place of its text.
#[derive(Clone, Debug)]
pub(super) struct Condition {
    pub(super) condition: ObjectCondition,
    pub(super) span: Span,
}

#[derive(Debug)]
pub(super) struct WaitFor {
    pub(super) expression: Wait,
    /// What it was read from
    pub(super) texts: Vec<SourceText>,
    pub(super) timeout: Duration,
}

#[derive(Debug)]
pub(super) enum Body {
    Llm(Box<Llm>),
    Human(Box<Human>),
    /// A function, perhaps behind a connector
    Programmatic {
        integration: Option<Connector>,
    },
    External(Option<Connector>),
}

impl Body {
    /// How it reaches another system, if it does.
    pub(super) fn connector(&self) -> Option<&Connector> {
        match self {
            Body::Programmatic { integration: connector } | Body::External(connector) => connector.as_ref(),
            Body::Llm(_) | Body::Human(_) => None,
        }
    }

    pub(super) fn agent_type(&self) -> AgentType {
        match self {
            Body::Llm(_) => AgentType::Llm,
            Body::Human(_) => AgentType::Human,
            Body::Programmatic { .. } => AgentType::Programmatic,
            Body::External(_) => AgentType::External,
        }
    }
}

/// What only agents with a model have.
#[derive(Debug, Default)]
pub(super) struct Llm {
    pub(super) model: Option<SourceText>,
    pub(super) prompt: Option<SourceText>,
    pub(super) temperature: f64,
    pub(super) max_tokens: u32,
    /// How long one request may take, if it says so itself
    pub(super) time: Option<Duration>,
    pub(super) fallback_models: Vec<SourceText>,
    pub(super) response_format: Option<Value>,
    /// Parts of the prompt beside it, with their labels, in the order in which models see them
    pub(super) context_parts: Vec<(String, SourceText)>,
    pub(super) thoughts: Thoughts,
    /// Whether the provider is asked to keep the prompt
    pub(super) keeps_prompt: bool,
    pub(super) tools: Tools,
    /// Servers whose functions are tools, too
    pub(super) servers: Vec<McpServer>,
    /// Whether it is told what is found for its input, and whether it has a tool to look something up (`knowledge_strategy`)
    pub(super) is_told_knowledge: bool,
    pub(super) queries_knowledge: bool,
}

/// What a model may call.
#[derive(Debug, Default)]
pub(super) struct Tools {
    /// Their names
    pub(super) names: Vec<SourceText>,
    /// The categories of the project's tools that it may have, too
    pub(super) categories: Vec<SourceText>,
    /// What the first request has to call
    pub(super) choice: Option<ToolChoice>,
    pub(super) limits: CallLimits,
}

/// What only people have.
#[derive(Debug)]
pub(super) struct Human {
    pub(super) interface: Interface,
    pub(super) prompt: Option<SourceText>,
    pub(super) context: Option<SourceText>,
    pub(super) webhook: Option<WebhookSettings>,
    pub(super) channels: Vec<ChannelSettings>,
    pub(super) operator_ids: Vec<String>,
    /// How long they have
    pub(super) timeout: Duration,
    /// What counts as their answer after that; none if nothing does
    pub(super) fallback: Option<Value>,
    /// The model that finds in what they say what conditions ask for
    pub(super) intent_model: Option<SourceText>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interface {
    Default,
    Api,
    Webhook,
    Custom,
}

/// What is reached by a connector.
#[derive(Debug)]
pub(super) struct Connector {
    /// `n8n`, `crewai` and so on
    pub(super) name: SourceText,
    /// Its settings, but for secrets
    pub(super) settings: Object,
    /// Secrets by their names
    pub(super) secrets: Hidden<Vec<(String, String)>>,
    /// Addresses that the settings name
    pub(super) servers: Vec<String>,
    pub(super) policy: Policy,
    /// What is sent beside the input
    pub(super) request_form: Option<Value>,
}

impl Connector {
    /// A setting that is a text.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.settings.get(name)?.as_text()
    }

    /// Whether it is a function and nothing is sent.
    pub(super) fn is_function(&self) -> bool {
        &*self.name == CUSTOM
    }

    /// Whether it is a program of this machine.
    pub(super) fn is_program(&self) -> bool {
        &*self.name == "mcp" && self.text("transport") != Some("http")
    }
}

/// What an agent may do with another system (`external_policy`).
#[derive(Debug, Default)]
pub(super) struct Policy {
    pub(super) allowed_hosts: Vec<String>,
    pub(super) max_response_bytes: Option<u32>,
    pub(super) quarantine_after: Option<u32>,
    /// The entries of the input that are sent; all where nothing is said
    pub(super) send_fields: Option<Vec<Key>>,
    /// What is taken out of texts that are sent
    pub(super) redact: Vec<Pattern>,
}

/// An entry point.
#[derive(Debug)]
pub(super) struct EntryPoint {
    pub(super) name: SourceText,
    pub(super) target: SourceText,
    pub(super) description: Option<String>,
    pub(super) condition: Option<Condition>,
}

/// A data structure.
#[derive(Clone, Debug)]
pub(super) struct Structure {
    pub(super) field: Field,
    pub(super) required: Vec<Key>,
}

impl Structure {
    /// The JSON schema of its values, with what stands for each data structure that it names.
    pub(super) fn schema_with(&self, structure: Structured<'_>) -> Value {
        match &self.field.shape {
            Shape::Object(Some(properties)) => with_fields(properties, &self.required, structure),
            _ => self.field.schema_with(structure),
        }
    }
}
