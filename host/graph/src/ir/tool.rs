//! Tools that a graph defines itself: what a model or a node may call, whoever does the work.

use std::sync::Arc;

use super::{Expression, NestedGraph, Retry};
use crate::types::Type;
use crate::value::{Key, Value};

/// A tool that a graph defines.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    /// Its name
    pub name: Key,
    /// What a model calls it: letters, digits, `_` and `-`
    pub spoken: String,
    /// What a model is told about it
    pub description: String,
    /// What it takes
    pub inputs: Vec<Slot>,
    /// Who does the work
    pub kind: ToolKind,
    /// Whether a person has to allow each call
    pub confirm: bool,
}

impl Tool {
    /// Whether a call of it may ask whoever runs the graph.
    pub fn may_ask(&self) -> bool {
        self.confirm
            || match &self.kind {
                ToolKind::Client => true,
                ToolKind::Graph(nested) => nested.may_ask(),
                ToolKind::Host(_) | ToolKind::Web(_) | ToolKind::Note(_) | ToolKind::Refused(_) => false,
            }
    }
}

/// A named and typed input or output.
#[derive(Clone, Debug, PartialEq)]
pub struct Slot {
    /// Its name
    pub name: Key,
    /// Its JSON schema
    pub schema: Value,
    /// Its type
    pub ty: Arc<Type>,
    /// Its value where none is given
    pub default: Option<Value>,
}

/// Who does the work of a tool.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolKind {
    /// A tool that the host has, or a function of an MCP server, by its full name
    Host(String),
    /// Whoever runs the graph: the run waits for the result
    Client,
    /// A server, asked over HTTP
    Web(Box<WebRequest>),
    /// Another graph
    Graph(NestedGraph),
    /// Nobody has to: that the model wrote it down is what it is for. This is the answer
    Note(&'static str),
    /// Nobody; the text says why
    Refused(String),
}

/// A request over HTTP. Its expressions see the inputs of the call and nothing else.
#[derive(Clone, Debug, PartialEq)]
pub struct WebRequest {
    /// The address
    pub url: Vec<UrlPart>,
    /// The method
    pub method: Expression,
    /// What is added to the query: an object
    pub query: Expression,
    /// The headers: an object
    pub headers: Expression,
    /// The body: `null` for none
    pub body: Expression,
    /// What is taken of the answer
    pub answer: WebAnswer,
    /// The beginnings of addresses that may be asked; none for any
    pub allowed: Option<Vec<String>>,
    /// How often it is sent while that may help
    pub retry: Option<Retry>,
}

/// What is taken of the answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebAnswer {
    /// Its text
    Text,
    /// The JSON value that it is
    Json,
    /// The JSON object that it has to be
    Object,
}

/// A part of an address.
#[derive(Clone, Debug, PartialEq)]
pub enum UrlPart {
    /// A text that is used as it is
    Literal(String),
    /// A text that may be anything: the scheme, the server
    Raw(Expression),
    /// A text that stays within its segment of the path, or within the query
    Encoded(Expression),
}

/// Calls a tool that the graph defines. The answer that updates see is the value it gave.
#[derive(Clone, Debug)]
pub struct ToolAction {
    /// The tool
    pub tool: Arc<Tool>,
    /// An object: its inputs
    pub inputs: Expression,
    /// What of them a tool of the host is given
    pub arguments: Arguments,
    /// The name under which updates see the answer
    pub bind: &'static str,
}

/// What a tool of the host is given of the inputs of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arguments {
    /// All of them; the tool says what it does not take
    AsTheyAre,
    /// All of them, if they fit its parameters; otherwise it is not called
    Checked,
    /// Those that its parameters let in, if these fit: a node that tells what it knows need not know who listens
    LetIn,
}

/// The tool by which a model hands in what it owes: values for named outputs.
#[derive(Clone, Debug, PartialEq)]
pub struct Submit {
    /// What the model calls it
    pub name: String,
    /// What the model is told about it; none for what is told of results
    pub description: Option<String>,
    /// What is owed
    pub outputs: Vec<Slot>,
    /// The state key that receives an object with all outputs, once those without default are there
    pub key: Key,
    /// The state key that has what was handed in before all of them were there, so that a call may add what is missing; none where
    /// each call has to have all of them
    pub kept: Option<Key>,
}
