//! Nodes that run something once for each item of lists, side by side.

use std::sync::Arc;

use super::{Expression, Graph, NodeIndex};
use crate::template::Template;
use crate::types::Type;
use crate::value::{Key, Value};

/// Runs something once for each item.
#[derive(Clone, Debug)]
pub struct MapAction {
    /// What is run
    pub body: MapBody,
    /// How many items run at the same time; none means the run's own cap
    pub concurrency: Option<usize>,
    /// The same where the state says it, which then counts
    pub concurrency_from: Option<Expression>,
}

/// What is run for each item, and what is made of what it gives.
#[derive(Clone, Debug)]
pub enum MapBody {
    /// Another node of the graph
    Node(NodeItems),
    /// A graph of its own
    Graph(GraphItems),
}

/// Runs another node once for each item of a list, each on its own copy of the state.
#[derive(Clone, Debug)]
pub struct NodeItems {
    /// The list: a template that is exactly one reference
    pub over: Template,
    /// The key under which a run finds its item
    pub item_key: Key,
    /// The node that is run
    pub branch: NodeIndex,
    /// The key of a run that is collected
    pub output_key: Key,
    /// The key that receives the collected values, in the order of the items
    pub collect_into: Key,
}

/// Runs a graph once for each item of lists that are equally long. Each begins with the conversation as it is; what they add to
/// it is added in the order of the items.
#[derive(Clone, Debug)]
pub struct GraphItems {
    /// The graph; it has [`super::Results`]
    pub graph: Arc<Graph>,
    /// What the states begin with: a value of the type is the same for all, a list of such values has one for each
    pub inputs: Vec<Iterate>,
    /// What is made of the outputs; others are dropped
    pub collect: Vec<Collect>,
    /// The state key with the conversation
    pub conversation: Option<Key>,
    /// The name under which updates see an object with what was collected
    pub bind: &'static str,
}

impl MapAction {
    /// The items of a node of the graph, if one is run.
    pub fn of_node(&self) -> Option<&NodeItems> {
        match &self.body {
            MapBody::Node(items) => Some(items),
            MapBody::Graph(_) => None,
        }
    }
}

impl NodeItems {
    /// So many of them at the same time; none means the run's own cap.
    pub fn at_a_time(self, concurrency: Option<usize>) -> Box<MapAction> {
        Box::new(MapAction { body: MapBody::Node(self), concurrency, concurrency_from: None })
    }
}

impl GraphItems {
    /// So many of them at the same time; none means the run's own cap.
    pub fn at_a_time(self, concurrency: Option<usize>) -> Box<MapAction> {
        Box::new(MapAction { body: MapBody::Graph(self), concurrency, concurrency_from: None })
    }
}

/// An input of a graph that is run for each item.
#[derive(Clone, Debug)]
pub struct Iterate {
    /// The key in the state of the graph
    pub key: Key,
    /// The value or the list of values
    pub value: Expression,
    /// The type of one value
    pub ty: Arc<Type>,
    /// What it is called where the node is written
    pub name: Key,
    /// Whether it is the same for all; none means that its value shows it
    pub rounds: Option<Rounds>,
}

/// What an input is over the rounds of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounds {
    /// The same
    Same,
    /// A list with a value for each
    Each,
}

/// What becomes of the values that an output had.
#[derive(Clone, Debug, PartialEq)]
pub struct Collect {
    /// The output of the graph
    pub output: Key,
    /// The key of the answer
    pub into: Key,
    /// How
    pub how: Reduction,
    /// The result over no values, where the reduction has none
    pub default: Option<Value>,
}

/// How several values become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// A list of them in the order of the items
    Append,
    /// Their sum; 0 over none
    Sum,
    /// Their mean, a floating point number
    Average,
    /// The largest
    Max,
    /// The smallest
    Min,
}

impl Reduction {
    /// All of them.
    pub const ALL: [Reduction; 5] =
        [Reduction::Append, Reduction::Sum, Reduction::Average, Reduction::Max, Reduction::Min];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Reduction::Append => "append",
            Reduction::Sum => "sum",
            Reduction::Average => "average",
            Reduction::Max => "max",
            Reduction::Min => "min",
        }
    }

    /// The reduction of that name.
    pub fn of_name(name: &str) -> Option<Reduction> {
        Reduction::ALL.into_iter().find(|reduction| reduction.name() == name)
    }
}
