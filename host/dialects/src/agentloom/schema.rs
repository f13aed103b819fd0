//! The typed trees of a workflow and of an agent.

use std::sync::Arc;
use std::time::Duration;

use hotcell_graph::diagnostic::Span;
use hotcell_graph::ir::{ModelReasoning, Pattern, Recording, Redacted};
use hotcell_graph::python::PythonExpression;
use hotcell_graph::{BraceTemplate, Key, Place, Value};

use crate::document::SourceText;

/// The entry of the state with what the steps gave.
pub(super) const STEPS: &str = "steps";

/// A workflow.
#[derive(Debug)]
pub(super) struct Workflow {
    pub(super) name: SourceText,
    pub(super) description: Option<String>,
    pub(super) config: Config,
    pub(super) state: Vec<(Key, Value)>,
    /// Names of values that leave the run for nobody
    pub(super) redacted: Redacted,
    pub(super) steps: Vec<Step>,
}

/// What holds for all steps.
#[derive(Clone, Debug, Default)]
pub(super) struct Config {
    pub(super) provider: Option<&'static str>,
    pub(super) model: Option<Arc<str>>,
    pub(super) recording: Option<Arc<Recording>>,
    pub(super) budget_usd: Option<f64>,
    pub(super) concurrency: Option<u32>,
    pub(super) timeout: Option<Duration>,
    pub(super) max_retries: Option<u32>,
    pub(super) goes_on: bool,
    pub(super) strict_outputs: bool,
}

/// A step.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) id: SourceText,
    pub(super) kind: &'static str,
    pub(super) depends_on: Vec<SourceText>,
    pub(super) output: Option<Target>,
    pub(super) timeout: Option<Duration>,
    pub(super) attempts: Attempts,
    pub(super) body: Body,
}

/// A place of the state that is written.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) place: Place,
    pub(super) span: Span,
}

/// How often a step is tried.
#[derive(Clone, Debug)]
pub(super) struct Attempts {
    /// How often more than once
    pub(super) more: u32,
    pub(super) base: f64,
    pub(super) longest: Duration,
    pub(super) jitter: bool,
    pub(super) statuses: Arc<[u16]>,
}

impl Default for Attempts {
    fn default() -> Self {
        Attempts {
            more: 3,
            base: 2.0,
            longest: Duration::from_secs(60),
            jitter: true,
            statuses: [429, 500, 502, 503, 504].into(),
        }
    }
}

#[derive(Debug)]
pub(super) enum Body {
    LlmCall(Box<LlmCall>),
    Tool {
        /// What the host calls it
        tool: String,
        arguments: Vec<(Key, Given)>,
    },
    Router {
        conditions: Vec<Condition>,
        default: Option<SourceText>,
    },
    Subworkflow(Box<Subworkflow>),
    Gate {
        /// How long it waits; none for as long as it takes
        deadline: Option<GateDeadline>,
        /// Whom it is told to when it begins to wait
        notify: Option<Box<Notify>>,
    },
    Agent(Box<AgentStep>),
    /// What is wrong with it is reported
    Broken,
}

#[derive(Debug)]
pub(super) struct LlmCall {
    pub(super) prompt: Prompt,
    pub(super) system_prompt: Option<Prompt>,
    pub(super) model: Option<Arc<str>>,
    pub(super) temperature: Option<f64>,
    pub(super) max_tokens: Option<u32>,
    pub(super) thinking: Option<ModelReasoning>,
    pub(super) tools: Vec<DeclaredTool>,
    pub(super) tool_choice: Option<Value>,
    pub(super) max_iterations: u32,
}

/// A template with its place.
#[derive(Clone, Debug)]
pub(super) struct Prompt {
    pub(super) template: BraceTemplate,
    pub(super) text: SourceText,
}

impl Prompt {
    pub(super) fn of(text: SourceText) -> Self {
        Prompt { template: BraceTemplate::parse(&text), text }
    }
}

/// A tool that a step declares.
#[derive(Debug)]
pub(super) struct DeclaredTool {
    pub(super) name: String,
    /// What the host calls it
    pub(super) tool: String,
    pub(super) description: Option<String>,
    pub(super) parameters: Option<Value>,
}

/// A value that a step hands over.
#[derive(Clone, Debug)]
pub(super) enum Given {
    /// What is at a place of the state
    State(Place, Span),
    Template(Prompt),
    Value(Value),
}

#[derive(Debug)]
pub(super) struct Condition {
    pub(super) expression: PythonExpression,
    pub(super) target: SourceText,
}

#[derive(Debug)]
pub(super) struct Subworkflow {
    pub(super) workflow: Arc<Workflow>,
    pub(super) is_isolated: bool,
    pub(super) input: Vec<(Key, Given)>,
    pub(super) return_keys: Option<Vec<Key>>,
}

#[derive(Debug)]
pub(super) struct AgentStep {
    pub(super) agent: Arc<Agent>,
    pub(super) input: Given,
    pub(super) conversation: Option<Target>,
}

/// An agent.
#[derive(Debug)]
pub(super) struct Agent {
    pub(super) name: SourceText,
    pub(super) description: Option<String>,
    pub(super) model: Option<Arc<str>>,
    pub(super) system_prompt: Option<Arc<str>>,
    pub(super) tools: Vec<AgentTool>,
    pub(super) memory: Option<Memory>,
    pub(super) max_iterations: u32,
    pub(super) returns_at_cap: bool,
    /// None means a reply that calls no tool
    pub(super) exit: Option<PythonExpression>,
    pub(super) output_schema: Option<Value>,
    pub(super) max_cost_usd: Option<f64>,
    pub(super) max_latency: Option<Duration>,
    pub(super) forbidden: Vec<Pattern>,
}

/// How much of a conversation is kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Memory {
    pub(super) tokens: u32,
    pub(super) summarizes: bool,
}

#[derive(Debug)]
pub(super) enum AgentTool {
    /// One of the host's, by the name that the host knows
    Host(String),
    Agent {
        name: String,
        agent: Arc<Agent>,
    },
}

/// What becomes of a gate that nobody answers.
#[derive(Clone, Copy, Debug)]
pub(super) struct GateDeadline {
    pub(super) after: Duration,
    /// Whether it then counts as approved, and not as rejected
    pub(super) approves: bool,
}

/// A request that tells of a gate.
#[derive(Debug)]
pub(super) struct Notify {
    pub(super) url: Arc<str>,
    pub(super) headers: Vec<(Key, Arc<str>)>,
    /// None means what every such request says
    pub(super) body: Option<Prompt>,
    /// How long one attempt takes at most
    pub(super) timeout: Duration,
}
