//! The graph IR: what every front end lowers to and the only thing the engine knows.
//!
//! It names concepts, never a source language. A field exists because some engine behaviour needs it; when a front end
//! needs behaviour that cannot be said here, the concept is added here.

mod action;
mod agent_loop;
mod ask;
mod call;
mod composed;
mod condense;
mod contract;
mod conversation;
mod drawn;
mod expression;
mod fit;
mod job;
mod limits;
mod map;
mod model;
mod named;
mod nested;
mod next;
mod node;
mod recall;
mod recording;
mod redacted;
mod retry;
mod rows;
mod scheduling;
mod tool;
mod transcript;
mod typed;
mod value_path;
mod way;

use std::collections::{HashMap, HashSet};

use hotcell_budget::RunBudget;

use crate::reducer::Reducer;
use crate::value::{Key, Value};

pub use crate::searching::{SearchFlags, TakesTooLong};
pub use action::{Action, ComputeAction, LookUpAction, PluginNodeAction, PluginNodeKind, ScriptAction};
pub use agent_loop::{
    AgentLoop, Allowance, AtCap, CallLimits, Continuation, Forbidden, KeptArguments, LoopAnswer, LoopGraph, LoopLimits,
    LoopPlaces, LoopSteps, Pattern, RequestCap, ToolChoice, Trim, Window,
};
pub use ask::{AskAction, AskDeadline, Asked, Comparison, Expiry, LengthCheck, Notice};
pub use call::{CallAction, CallTarget, Gives, Results};
pub use composed::Composed;
pub use condense::{Condense, Condensed};
pub use contract::{Contract, FITTING, ReadValueAction, TEXT};
pub use conversation::{
    AnswerCallsAction, Callable, ConverseAction, DelegateTool, FailureRecord, LoadSkillsAction, OwnSteps, PromptPart,
    Said, Skill, SkillTool, SkillWords, Skills, SpreadAction, Team,
};
pub use drawn::{Drawn, Excerpt, SearchPattern, WhichMatch};
pub use expression::{Expression, NoValue};
pub use fit::Fit;
pub use job::JobAction;
pub use limits::{CapOrigin, RunLimits, VisitCap};
pub use map::{Collect, GraphItems, Iterate, MapAction, MapBody, NodeItems, Reduction, Rounds};
pub use model::{ModelApi, ModelReasoning, ModelServer, ModelSettings, TlsPaths};
pub use nested::{NestedGraph, NestedLoop};
pub use next::{Next, OnFailure};
pub use node::{Node, Update};
pub use recall::Recall;
pub use recording::{RecordedModel, RecordedReply, Recording};
pub use redacted::Redacted;
pub use retry::{Jitter, Recoverable, Retry, RetryOn};
pub use rows::{Collection, CollectionEntry, Rows, RowsAct};
pub use scheduling::{Arrived, Edge, Ends, FailedNodes, Join, JoinWhen, Scheduling, Sharing, Unmet};
pub use tool::{Arguments, Slot, Submit, Tool, ToolAction, ToolKind, UrlPart, WebAnswer, WebRequest};
pub use transcript::{CAPPED, COST, ITERATIONS, REPLY, SAID, SUMMARY, Summary, Transcript};
pub use typed::{Rendered, Typed};
pub use value_path::ValuePath;
pub use way::{Barred, Way, WayCase};

/// A checked graph, ready to run.
#[derive(Clone, Debug)]
pub struct Graph {
    /// The name under which the graph is reported
    pub name: String,
    /// What the graph does, for people
    pub description: Option<String>,
    nodes: Vec<Node>,
    by_id: HashMap<Key, NodeIndex>,
    /// The node that runs first
    pub start: NodeIndex,
    /// State before the first node, written without reducers, in order
    pub initial_state: Vec<(Key, Value)>,
    /// The state key that receives the caller's text
    pub input_key: Option<Key>,
    /// The state key with a conversation to whose end the caller's text is added as a message
    pub conversation: Option<Key>,
    /// The keys whose first values a caller may give
    pub open_state: Vec<Key>,
    /// Those of them that have a value of their own where the caller of a graph with [`results`](Self::results) gives none
    pub optional: Vec<Key>,
    /// Whether a caller may give first values of any key
    pub is_open: bool,
    /// The keys whose first values are floating point numbers also where the caller writes an integer
    pub floats: Vec<Key>,
    /// A JSON schema that structured input has to fit: values of the state, or a text that is a JSON object
    pub input_schema: Option<Value>,
    /// Where the reason of a failure is written when the run goes on after it
    pub failure_record: FailureRecord,
    /// What models may load when they need it
    pub skills: Option<Skills>,
    /// The keys with which a later run of the same thread begins as the one before left them; none means all
    pub kept: Option<Vec<Key>>,
    /// Where it leaves what it gives to a graph that calls it
    pub results: Option<Results>,
    /// A JSON schema of the object with its results, where it says of which form they are
    pub output_schema: Option<Value>,
    /// How writes to a key are combined with its value; a key without a reducer is replaced
    pub reducers: HashMap<Key, Reducer>,
    /// Values that whoever runs the graph gives once per run
    pub variables: Vec<Variable>,
    /// The variable that is the time at which the run began, unless whoever runs the graph gives it
    pub start_time: Option<Key>,
    /// When nodes run side by side, what they see of each other, and when a run is over
    pub scheduling: Scheduling,
    /// How many calls of it as a part of runs are worked on at a time, in all runs of its agent that a process works on; none
    /// for any number. The others wait, the first to come first
    pub at_once: Option<u32>,
    /// Caps on the whole run
    pub limits: RunLimits,
    /// Settings of model calls that a node does not set itself
    pub model: ModelSettings,
    /// Values of the state that are shown to nobody outside of the run
    pub redacted: Redacted,
    /// Whether the state is logged before each node
    pub log_state: bool,
}

/// The place of a node in its graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeIndex(u32);

impl NodeIndex {
    /// The index as a number, for tables with one entry per node.
    pub fn as_usize(self) -> usize {
        self.0 as usize
    }
}

/// A variable that whoever runs the graph may set.
#[derive(Clone, Debug, PartialEq)]
pub struct Variable {
    /// Its name, also its key in the state
    pub name: Key,
    /// What it is for
    pub description: String,
    /// Its value when none is given; without one it has to be given
    pub default: Option<String>,
}

/// The state key that tells later nodes why `node` failed.
pub fn failure_key(node: &str) -> Key {
    format!("{node}_error").into()
}

impl Graph {
    /// A graph of these nodes, with no settings. `None` if two nodes share an id or `start` is not among them.
    pub fn new(name: impl Into<String>, nodes: Vec<Node>, start: &str) -> Option<Self> {
        let by_id: HashMap<Key, NodeIndex> =
            nodes.iter().enumerate().map(|(index, node)| (node.id.clone(), NodeIndex(index as u32))).collect();
        if by_id.len() != nodes.len() {
            return None;
        }
        let start = *by_id.get(start)?;
        Some(Graph { by_id, ..Graph::of(name, nodes, start) })
    }

    /// A graph of nodes that begins at one of them. Their ids are not looked at, so they have to be different.
    fn of(name: impl Into<String>, nodes: Vec<Node>, start: NodeIndex) -> Self {
        let by_id = nodes.iter().enumerate().map(|(index, node)| (node.id.clone(), NodeIndex(index as u32))).collect();
        Graph {
            name: name.into(),
            description: None,
            nodes,
            by_id,
            start,
            initial_state: Vec::new(),
            input_key: None,
            conversation: None,
            open_state: Vec::new(),
            optional: Vec::new(),
            is_open: false,
            floats: Vec::new(),
            input_schema: None,
            failure_record: FailureRecord::default(),
            skills: None,
            kept: None,
            results: None,
            output_schema: None,
            reducers: HashMap::new(),
            variables: Vec::new(),
            start_time: None,
            scheduling: Scheduling::default(),
            at_once: None,
            limits: RunLimits {
                visits_per_node: None,
                rounds: None,
                turns: None,
                hops: None,
                hops_before: None,
                wall_clock: None,
                deadline: None,
                concurrency: 8,
                agent_depth: RunLimits::AGENT_DEPTH,
                budget: RunBudget::default(),
            },
            model: ModelSettings::default(),
            redacted: Redacted::default(),
            log_state: false,
        }
    }

    /// The node at an index of this graph.
    pub fn node(&self, index: NodeIndex) -> &Node {
        &self.nodes[index.as_usize()]
    }

    /// All nodes in the order of the source.
    pub fn nodes(&self) -> impl Iterator<Item = (NodeIndex, &Node)> {
        self.nodes.iter().enumerate().map(|(index, node)| (NodeIndex(index as u32), node))
    }

    /// The number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is no node.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The node of that id.
    pub fn find(&self, id: &str) -> Option<NodeIndex> {
        self.by_id.get(id).copied()
    }

    /// Whether one of its nodes may, see [`Node::may_ask`].
    pub fn may_ask(&self) -> bool {
        self.nodes.iter().any(Node::may_ask)
    }

    /// Whether a text that a run is given is seen by anything in the graph.
    pub fn takes_text(&self) -> bool {
        let converses = self.conversation.is_some();
        // What is called like a function has inputs; its conversation may be nobody's.
        self.input_key.is_some() || converses && (self.results.is_none() || self.reads_conversation())
    }

    /// Whether a model is shown the conversation, here or in a graph that is called.
    fn reads_conversation(&self) -> bool {
        self.nodes.iter().any(|node| match &node.action {
            Action::Converse(action) => action.prompt.iter().any(|part| matches!(part.said, Said::Messages(_))),
            Action::Call(call) => call.target.graph().is_some_and(|graph| graph.reads_conversation()),
            Action::Map(map) => match &map.body {
                MapBody::Graph(items) => items.graph.reads_conversation(),
                MapBody::Node(_) => false,
            },
            _ => false,
        })
    }

    /// The nodes that a node may go to by what is declared, failures included, without duplicates.
    pub fn successors(&self, index: NodeIndex) -> Vec<NodeIndex> {
        let node = self.node(index);
        let mut targets = node.next.targets();
        if let OnFailure::To(target) = node.on_failure {
            targets.push(target);
        }
        let mut seen = HashSet::with_capacity(targets.len());
        targets.retain(|target| seen.insert(*target));
        targets
    }
}

/// A builder step of front ends: ids get their index before nodes exist.
#[derive(Clone, Debug, Default)]
pub struct NodeIds(HashMap<Key, NodeIndex>);

impl NodeIds {
    /// Gives each id its index, in order.
    pub fn new<'a>(ids: impl IntoIterator<Item = &'a str>) -> Self {
        NodeIds(ids.into_iter().enumerate().map(|(index, id)| (Key::from(id), NodeIndex(index as u32))).collect())
    }

    /// The index of an id.
    pub fn get(&self, id: &str) -> Option<NodeIndex> {
        self.0.get(id).copied()
    }
}
