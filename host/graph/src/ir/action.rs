//! What nodes do.

use std::sync::Arc;

use super::{
    AnswerCallsAction, AskAction, CallAction, ConverseAction, Expression, JobAction, LoadSkillsAction, MapAction,
    ReadValueAction, SpreadAction, ToolAction,
};
use crate::value::Key;

/// What a node does before its updates are written.
#[derive(Clone, Debug)]
pub enum Action {
    /// Nothing: the node only writes its updates
    Pass,
    /// Runs a program in a cell; the keys of the JSON object it answers become writes
    Script(ScriptAction),
    /// Asks a person
    Ask(AskAction),
    /// Runs another node, or a graph, once for each item of lists
    Map(Box<MapAction>),
    /// Hands over to something that a plugin offers
    PluginNode(Box<PluginNodeAction>),
    /// Looks something up in a knowledge base
    LookUp(LookUpAction),
    /// Asks a model within a conversation that is kept in the state
    Converse(Box<ConverseAction>),
    /// Answers the calls of tools that a conversation ends with
    AnswerCalls(AnswerCallsAction),
    /// Loads skills
    LoadSkills(LoadSkillsAction),
    /// Writes the entries of an object
    Spread(SpreadAction),
    /// Reads a text as a value of a schema
    ReadValue(Box<ReadValueAction>),
    /// Runs a graph as a part of the run: one of its own, another agent, or the loop of an agent
    Call(Box<CallAction>),
    /// Calls a tool that the graph defines
    Tool(Box<ToolAction>),
    /// Has work done outside that takes its time
    Job(Box<JobAction>),
    /// Evaluates an expression: its value is the answer
    Compute(ComputeAction),
    /// Fails with this text: stands for what the source names and does not define, so that only a run that comes here
    /// notices
    Fail(String),
    /// Stands for a node that edges name and the source does not have: the node that leads here fails the run
    Absent,
    /// Ends the run with a result, evaluated after the node's updates
    End {
        /// The result
        output: Expression,
    },
}

/// Evaluates an expression.
#[derive(Clone, Debug, PartialEq)]
pub struct ComputeAction {
    /// The expression
    pub value: Expression,
    /// What kind of failure it is that it has no value, where the source tells kinds apart
    pub failure_kind: Option<&'static str>,
    /// The name under which updates see its value
    pub bind: &'static str,
}

/// Runs a program in a cell.
#[derive(Clone, Debug, PartialEq)]
pub struct ScriptAction {
    /// Its file, relative to the graph's folder, with `/` between folders
    pub file: String,
    /// The key of its answer that names the next node and is not written
    pub route_key: Option<&'static str>,
}

/// Looks something up in a knowledge base; the answer is an object with `context`, a text for a prompt, and `sources`,
/// a list of texts.
#[derive(Clone, Debug)]
pub struct LookUpAction {
    /// The knowledge base
    pub base: String,
    /// What is looked for
    pub query: Expression,
    /// How many passages are wanted; none means as many as the base itself says
    pub top_k: Option<usize>,
    /// The name under which updates see the answer
    pub bind: &'static str,
}

/// Hands over to something that a plugin offers.
#[derive(Clone, Debug, PartialEq)]
pub struct PluginNodeAction {
    /// Its full name: `plugin/name`
    pub plugin_node: String,
    /// What it is
    pub kind: PluginNodeKind,
    /// An object: the fields of a node type, the configuration of a connector
    pub with: Expression,
    /// An object: the inputs of a node type, the arguments of a tool, what a connector hands over
    pub inputs: Expression,
    /// The branches it declares; the node's routes are by these
    pub branches: Vec<String>,
    /// The keys that its answer, an object, may have, each of which becomes a write; none if nothing does
    pub keys: Option<Arc<[Key]>>,
    /// The name under which updates see what it gave
    pub bind: &'static str,
}

/// What a plugin offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PluginNodeKind {
    /// A node type
    Node,
    /// A tool
    Tool,
    /// A connector that has to answer at once
    Connector,
    /// A connector whose answer may come by a callback, perhaps days later
    Callback,
}
