//! The steps of a graph.

use std::sync::Arc;
use std::time::Duration;

use super::{Action, CallTarget, Callable, Expression, Join, MapBody, Next, OnFailure, Retry};
use crate::diagnostic::Span;
use crate::value::Key;

/// One step of a graph.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its id, unique in the graph
    pub id: Key,
    /// The type as the source calls it, for narration and errors
    pub kind: &'static str,
    /// What it is for, for people
    pub description: Option<String>,
    /// What it does
    pub action: Action,
    /// Writes after the action, all evaluated against one snapshot and written in order
    pub updates: Vec<Update>,
    /// What it waits for when branches lead to it
    pub join: Join,
    /// How often it is tried, and with which pauses; none means once. What an attempt did is done again by the next one. With
    /// [`RetryOn::Transient`](super::RetryOn::Transient) the failure has to speak of a trouble that passes; otherwise any
    /// failure counts
    pub retry: Option<Retry>,
    /// Where it goes on success
    pub next: Next,
    /// Where it goes on failure
    pub on_failure: OnFailure,
    /// Wall clock of the action, all its attempts included
    pub timeout: Option<Duration>,
    /// Where the node is written
    pub span: Span,
    /// The node for which this one stands, if nobody wrote it: it acts in that node's name
    pub implied_by: Option<Key>,
}

impl Node {
    /// A node with an action and nothing else: it begins for each branch that comes to it, and the run fails with it.
    pub fn new(id: &str, kind: &'static str, action: Action, next: Next, span: &Span) -> Self {
        Node {
            id: Arc::from(id),
            kind,
            description: None,
            action,
            updates: Vec::new(),
            join: Join::Each,
            retry: None,
            next,
            on_failure: OnFailure::Fail,
            timeout: None,
            span: span.clone(),
            implied_by: None,
        }
    }

    /// The name in which it acts.
    pub fn speaks_as(&self) -> &Key {
        self.implied_by.as_ref().unwrap_or(&self.id)
    }

    /// The name of the agent that it runs, where a file defines one.
    pub fn agent(&self) -> Option<&Key> {
        match &self.action {
            Action::Call(call) => match &call.target {
                CallTarget::Loop(steps) => steps.agent.agent.as_ref(),
                CallTarget::Agent { .. } | CallTarget::Graph { .. } => None,
            },
            _ => None,
        }
    }

    /// Whether it, or a graph that it runs, may ask whoever runs the graph: a person, or the client for what a tool gives.
    /// What plugins and other agents may ask is not known here.
    pub fn may_ask(&self) -> bool {
        match &self.action {
            Action::Ask(_) => true,
            Action::Tool(action) => action.tool.may_ask(),
            Action::AnswerCalls(action) => action.tools.iter().any(|offered| match offered {
                Callable::Defined(tool) => tool.may_ask(),
                Callable::Described { confirm, .. } => *confirm,
                Callable::Loop(nested) => nested.steps.graph.may_ask(),
                _ => false,
            }),
            Action::Call(action) => action.target.graph().is_some_and(|graph| graph.may_ask()),
            Action::Map(action) => match &action.body {
                // Of the node that is run, its own graph tells.
                MapBody::Node(_) => false,
                MapBody::Graph(items) => items.graph.may_ask(),
            },
            _ => false,
        }
    }
}

/// A write to a state key.
#[derive(Clone, Debug, PartialEq)]
pub struct Update {
    /// The key
    pub key: Key,
    /// What is written
    pub value: Expression,
}
