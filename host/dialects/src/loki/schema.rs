//! A graph file as it was written: every field of the language, typed, with its place in the file.
//!
//! What could not be read is absent here and was reported; checks therefore take everything as optional.

use std::sync::Arc;
use std::time::Duration;

use hotcell_budget::RunBudget;
use hotcell_graph::diagnostic::Span;
use hotcell_graph::ir::{LengthCheck, ModelReasoning, ModelSettings};
use hotcell_graph::{Reducer, Value};

use super::mcp_tools::Choice;
use super::skills::Named;
use super::spawning::Spawning;
use crate::document::{SourceText, Spanned};

/// The whole file.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) name: Option<SourceText>,
    pub(super) description: Option<SourceText>,
    pub(super) model: Model,
    pub(super) global_tools: Vec<SourceText>,
    pub(super) mcp_servers: Vec<SourceText>,
    pub(super) conversation_starters: Vec<SourceText>,
    pub(super) settings: Settings,
    /// The skills of nodes that name none
    pub(super) skills: Option<Named>,
    pub(super) choice: Choice,
    /// The agents that its models may have work
    pub(super) spawning: Option<Spawning>,
    pub(super) agent_depth: u32,
    pub(super) variables: Vec<Variable>,
    pub(super) initial_state: Vec<(Spanned<Arc<str>>, Value)>,
    pub(super) reducers: Vec<(Spanned<Arc<str>>, Reducer)>,
    pub(super) start: Option<SourceText>,
    pub(super) nodes: Vec<Node>,
}

/// The fields that choose a model, of the file or of a node.
#[derive(Debug, Default)]
pub(super) struct Model {
    pub(super) name: Option<SourceText>,
    pub(super) temperature: Option<f64>,
    pub(super) top_p: Option<f64>,
    pub(super) reasoning: Option<ModelReasoning>,
}

impl Model {
    pub(super) fn settings(&self) -> ModelSettings {
        ModelSettings {
            model: self.name.as_deref().map(str::to_owned),
            temperature: self.temperature,
            top_p: self.top_p,
            reasoning: self.reasoning,
            ..ModelSettings::default()
        }
    }
}

#[derive(Debug)]
pub(super) struct Settings {
    pub(super) max_loop_iterations: u32,
    pub(super) log_state_snapshots: bool,
    pub(super) validate_before_run: bool,
    pub(super) timeout: Option<Duration>,
    pub(super) max_concurrency: usize,
    pub(super) budget: RunBudget,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            max_loop_iterations: 100,
            log_state_snapshots: true,
            validate_before_run: true,
            timeout: None,
            max_concurrency: 8,
            budget: RunBudget::default(),
        }
    }
}

#[derive(Debug)]
pub(super) struct Variable {
    pub(super) name: SourceText,
    pub(super) description: SourceText,
    pub(super) default: Option<SourceText>,
}

/// A node.
#[derive(Debug)]
pub(super) struct Node {
    /// Its key in `nodes`
    pub(super) id: Spanned<Arc<str>>,
    pub(super) description: Option<SourceText>,
    /// Without duplicates, in the order of the source
    pub(super) next: Vec<SourceText>,
    /// Where `next` is written, if it is
    pub(super) next_span: Option<Span>,
    pub(super) updates: Vec<Update>,
    pub(super) body: Body,
}

#[derive(Debug)]
pub(super) struct Update {
    pub(super) key: Spanned<Arc<str>>,
    pub(super) value: SourceText,
}

/// What is particular to a type of node.
#[derive(Debug)]
pub(super) enum Body {
    Agent(Agent),
    Script(Script),
    Approval(Approval),
    Input(Input),
    Llm(Box<Llm>),
    Rag(Box<Rag>),
    Map(Map),
    End(End),
    PluginNode(Box<PluginNode>),
    /// The type is missing or unknown, or the node is no mapping
    Unknown,
}

#[derive(Debug)]
pub(super) struct Agent {
    pub(super) agent: Option<SourceText>,
    pub(super) prompt: Option<SourceText>,
    /// Values for the state of a graph that is called
    pub(super) inputs: Vec<Update>,
    pub(super) max_attempts: u32,
    /// Only where the operator allows it
    pub(super) fallback: Option<SourceText>,
    pub(super) timeout: Duration,
    pub(super) output_schema: Option<Schema>,
}

#[derive(Debug)]
pub(super) struct Script {
    pub(super) script: Option<ScriptPath>,
    pub(super) timeout: Duration,
    pub(super) fallback: Option<SourceText>,
}

/// A path relative to the agent's folder.
#[derive(Debug)]
pub(super) struct ScriptPath {
    pub(super) written: SourceText,
    /// Without `.` and `..`; none when it leaves the folder
    pub(super) normal: Option<String>,
}

#[derive(Debug)]
pub(super) struct Approval {
    pub(super) question: Option<SourceText>,
    pub(super) options: Vec<SourceText>,
    pub(super) routes: Vec<Route>,
    pub(super) on_other: Option<SourceText>,
}

#[derive(Debug)]
pub(super) struct Route {
    pub(super) answer: Spanned<Arc<str>>,
    pub(super) target: SourceText,
}

#[derive(Debug)]
pub(super) struct Input {
    pub(super) question: Option<SourceText>,
    pub(super) default: Option<SourceText>,
    pub(super) validation: Option<LengthCheck>,
}

#[derive(Debug)]
pub(super) struct Llm {
    pub(super) instructions: Option<SourceText>,
    pub(super) prompt: Option<SourceText>,
    pub(super) tools: Vec<SourceText>,
    /// Whether the file says that it has no tools
    pub(super) has_no_tools: bool,
    pub(super) model: Model,
    pub(super) max_attempts: u32,
    pub(super) max_iterations: u32,
    pub(super) fallback: Option<SourceText>,
    pub(super) output_schema: Option<Schema>,
    pub(super) timeout: Option<Duration>,
    pub(super) skills: Option<Named>,
    pub(super) choice: Choice,
}

/// A JSON schema that was checked.
#[derive(Debug)]
pub(super) struct Schema {
    pub(super) value: Value,
    /// The names under `properties`, in order
    pub(super) properties: Vec<Spanned<Arc<str>>>,
}

#[derive(Debug)]
pub(super) struct Rag {
    pub(super) documents: Vec<SourceText>,
    /// Where `documents` is written; none if it is not, or is no list, which was reported
    pub(super) documents_span: Option<Span>,
    pub(super) query: Option<SourceText>,
    pub(super) embedding_model: Option<SourceText>,
    pub(super) chunk_size: Option<u32>,
    pub(super) chunk_overlap: Option<u32>,
    /// Whether one of these three is written and of no use, which was reported
    pub(super) is_misread: bool,
    pub(super) retrieval: Retrieval,
}

/// The fields of a `rag` node that only retrieval needs.
#[derive(Debug)]
pub(super) struct Retrieval {
    pub(super) top_k: Option<u32>,
    pub(super) timeout: Duration,
    pub(super) reranker_model: Option<SourceText>,
    pub(super) batch_size: Option<u32>,
}

#[derive(Debug)]
pub(super) struct Map {
    pub(super) over: Option<SourceText>,
    pub(super) item_key: Option<SourceText>,
    pub(super) branch: Option<SourceText>,
    pub(super) collect_into: Option<SourceText>,
    /// None for `output`
    pub(super) output_key: Option<SourceText>,
    pub(super) max_concurrency: Option<usize>,
    /// The same as a template
    pub(super) max_concurrency_from: Option<SourceText>,
}

impl Map {
    pub(super) fn output_key(&self) -> &str {
        self.output_key.as_deref().unwrap_or("output")
    }
}

/// A node of a type that a plugin offers.
#[derive(Debug)]
pub(super) struct PluginNode {
    /// `plugin/name`
    pub(super) plugin_node: SourceText,
    /// How a connector gets its answer
    pub(super) mode: Option<SourceText>,
    pub(super) with: PluginValues,
    pub(super) inputs: PluginValues,
    pub(super) routes: Vec<Route>,
    pub(super) fallback: Option<SourceText>,
    pub(super) timeout: Option<Duration>,
}

/// Values that are handed to a plugin, by their names.
#[derive(Debug, Default)]
pub(super) struct PluginValues {
    pub(super) entries: Vec<(Spanned<Arc<str>>, Tree)>,
}

/// A value in which every text is a template.
#[derive(Debug)]
pub(super) enum Tree {
    Text(SourceText),
    Value(Value),
    List(Vec<Tree>),
    Object(Vec<(Arc<str>, Tree)>),
}

impl Tree {
    fn texts<'t>(&'t self, texts: &mut Vec<&'t SourceText>) {
        match self {
            Tree::Text(text) => texts.push(text),
            Tree::Value(_) => {}
            Tree::List(items) => items.iter().for_each(|item| item.texts(texts)),
            Tree::Object(entries) => entries.iter().for_each(|(_, value)| value.texts(texts)),
        }
    }
}

#[derive(Debug)]
pub(super) struct End {
    pub(super) output: Option<SourceText>,
}

impl Body {
    /// The type as the file names it.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Body::Agent(_) => "agent",
            Body::Script(_) => "script",
            Body::Approval(_) => "approval",
            Body::Input(_) => "input",
            Body::Llm(_) => "llm",
            Body::Rag(_) => "rag",
            Body::Map(_) => "map",
            Body::End(_) => "end",
            Body::PluginNode(_) => "plugin",
            Body::Unknown => "unknown",
        }
    }
}

impl Node {
    /// The name that stands for the node's result in its own `state_updates`.
    pub(super) fn scoped_name(&self) -> Option<&'static str> {
        match &self.body {
            Body::Agent(_) | Body::Llm(_) | Body::Rag(_) | Body::PluginNode(_) => Some("output"),
            Body::Approval(_) => Some("choice"),
            Body::Input(_) => Some("input"),
            Body::Script(_) | Body::Map(_) | Body::End(_) | Body::Unknown => None,
        }
    }

    pub(super) fn output_schema(&self) -> Option<&Schema> {
        match &self.body {
            Body::Agent(agent) => agent.output_schema.as_ref(),
            Body::Llm(llm) => llm.output_schema.as_ref(),
            _ => None,
        }
    }

    pub(super) fn fallback(&self) -> Option<&SourceText> {
        match &self.body {
            Body::Script(script) => script.fallback.as_ref(),
            Body::Llm(llm) => llm.fallback.as_ref(),
            Body::Agent(agent) => agent.fallback.as_ref(),
            Body::PluginNode(plugin_node) => plugin_node.fallback.as_ref(),
            _ => None,
        }
    }

    /// The texts outside `state_updates` that are expanded against the state.
    pub(super) fn templates(&self) -> Vec<&SourceText> {
        let fields: [Option<&SourceText>; 2] = match &self.body {
            Body::Agent(agent) => {
                return agent.prompt.iter().chain(agent.inputs.iter().map(|input| &input.value)).collect();
            }
            Body::Approval(approval) => [approval.question.as_ref(), None],
            Body::Input(input) => [input.question.as_ref(), input.default.as_ref()],
            Body::Llm(llm) => [llm.instructions.as_ref(), llm.prompt.as_ref()],
            Body::Rag(rag) => [rag.query.as_ref(), None],
            Body::Map(map) => [map.over.as_ref(), map.max_concurrency_from.as_ref()],
            Body::End(end) => [end.output.as_ref(), None],
            Body::PluginNode(plugin_node) => {
                let mut texts = Vec::new();
                plugin_node
                    .with
                    .entries
                    .iter()
                    .chain(&plugin_node.inputs.entries)
                    .for_each(|(_, value)| value.texts(&mut texts));
                return texts;
            }
            Body::Script(_) | Body::Unknown => [None, None],
        };
        fields.into_iter().flatten().collect()
    }

    /// The keys that the node is declared to write, with the place of each.
    pub(super) fn writes(&self) -> Vec<(&Arc<str>, &Span)> {
        let updates = self.updates.iter().map(|update| &update.key);
        let merged = self.output_schema().into_iter().flat_map(|schema| &schema.properties);
        let mut writes: Vec<_> = updates.chain(merged).map(|key| (&key.value, &key.span)).collect();
        if let Body::Map(Map { collect_into: Some(key), .. }) = &self.body {
            writes.push((&key.value, &key.span));
        }
        writes
    }
}
