//! Nodes that call a graph.

use std::sync::Arc;

use super::{Contract, Expression, Graph, LoopGraph};
use crate::value::Key;

/// Where a graph that is called leaves what it gives.
#[derive(Clone, Debug, PartialEq)]
pub struct Results {
    /// The state key with an object, its outputs
    pub outputs: Key,
    /// The state key with the name of the branch by which it ended
    pub branch: Key,
}

/// Runs a graph as a part of the run.
#[derive(Clone, Debug)]
pub struct CallAction {
    /// Which graph
    pub target: CallTarget,
    /// What the text that it gives has to be; the answer is then a value
    pub contract: Option<Box<Contract>>,
    /// Updates also run on failure; the answer is then this text followed by the error
    pub failure_prefix: Option<String>,
    /// The name under which updates see the answer
    pub bind: &'static str,
}

/// What is called.
#[derive(Clone, Debug)]
pub enum CallTarget {
    /// A graph, with a state of its own and, if both have one, in the same conversation. The node's routes are by the branch
    /// that it ended with
    Graph {
        /// The graph; it has [`Results`]
        graph: Arc<Graph>,
        /// What its state begins with
        inputs: Vec<(Key, Expression)>,
        /// The state key with the conversation that the graph goes on with
        conversation: Option<Key>,
        /// Whether its state begins with all that the node sees, beneath the inputs
        inherits: bool,
        /// What the answer is
        gives: Gives,
    },
    /// Another agent, by its name: a graph with programs, tools, limits and a state of its own. The answer is its text
    Agent {
        /// The agent's name
        agent: Key,
        /// The text it is given
        prompt: Expression,
        /// Values of its state, and of its variables of these names, over those that it begins with
        inputs: Vec<(Key, Expression)>,
    },
    /// The loop of an agent, as the work of the node: it sees the node's state, and its steps act in the node's name. The
    /// answer is what the loop says ([`super::LoopAnswer`])
    Loop(Arc<LoopGraph>),
}

/// What a graph that is called gives.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Gives {
    /// The object of its outputs
    #[default]
    Outputs,
    /// Its state at the end. Its questions are put in the name of the node that calls it and its own: `node.question`
    State,
    /// These entries of its state, as far as they are there
    Entries(Vec<Key>),
    /// These entries of its state. Where one is not there, the branch of the node that calls it ends: nothing is written, nothing
    /// follows, and nothing has failed
    Needed(Vec<Key>),
}

impl CallAction {
    /// A call of an agent by its name.
    pub fn agent(agent: Key, prompt: Expression, bind: &'static str) -> Self {
        let target = CallTarget::Agent { agent, prompt, inputs: Vec::new() };
        CallAction { target, contract: None, failure_prefix: None, bind }
    }
}

impl CallTarget {
    /// The graph, unless it is found by name.
    pub fn graph(&self) -> Option<&Arc<Graph>> {
        match self {
            CallTarget::Graph { graph, .. } => Some(graph),
            CallTarget::Agent { .. } => None,
            CallTarget::Loop(steps) => Some(&steps.graph),
        }
    }
}
