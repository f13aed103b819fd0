//! A loop that a model may call.

use std::sync::Arc;

use super::{Contract, LoopGraph};
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
