//! Loops and graphs that a model may call.

use std::sync::Arc;

use super::{Contract, Graph, LoopGraph};
use crate::value::Key;

/// A loop that a model may call as a tool. It has nothing of the conversation in which it is called: it is given a text, reaches
/// only tools of its own and answers with the text of its last reply.
#[derive(Clone, Debug)]
pub struct NestedLoop {
    /// What the model calls it
    pub name: String,
    /// What the model is told about it
    pub description: String,
    /// The loop. It finds the text under `request` and sees nothing else
    pub steps: Arc<LoopGraph>,
    /// The state key under which it finds the text
    pub request: Key,
    /// What the text of its last reply has to be
    pub contract: Option<Box<Contract>>,
}

impl PartialEq for NestedLoop {
    /// By name: a graph has one of each.
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && Arc::ptr_eq(&self.steps, &other.steps)
    }
}

/// A graph that may be called as a tool: it is given the inputs of the tool, and what it gives is the value of its only output, or the
/// object of all of them. It hears the conversation in which it is called, and what it says there is told to no model that was not
/// part of it (see [`crate::conversation::aside`]).
#[derive(Clone, Debug)]
pub struct NestedGraph(pub Arc<Graph>);

impl NestedGraph {
    /// Whether it may ask whoever runs it.
    pub fn may_ask(&self) -> bool {
        self.0.may_ask()
    }
}

impl PartialEq for NestedGraph {
    /// By what they share: a graph is lowered once.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
