//! Nodes that run a graph of their own: once, or once for each item of lists.

use std::sync::Arc;

use super::{Expression, Graph};
use crate::types::Type;
use crate::value::{Key, Value};

/// Where a graph that is called leaves what it gives.
#[derive(Clone, Debug, PartialEq)]
pub struct Results {
    /// The state key with an object, its outputs
    pub outputs: Key,
    /// The state key with the name of the branch by which it ended
    pub branch: Key,
}

/// Runs a graph as a part of the run: with a state of its own and, if both have one, in the same conversation. The answer
/// that updates see is the object of its outputs; the node's routes are by the branch that it ended with.
#[derive(Clone, Debug)]
pub struct CallAction {
    /// The graph; it has [`Results`]
    pub graph: Arc<Graph>,
    /// What its state begins with
    pub inputs: Vec<(Key, Expression)>,
    /// The state key with the conversation that the graph goes on with
    pub conversation: Option<Key>,
    /// The name under which updates see its outputs
    pub bind: &'static str,
}

/// Runs a graph once for each item of lists that are equally long, side by side. Each begins with the conversation as it
/// is; what they add to it is added in the order of the items.
#[derive(Clone, Debug)]
pub struct CallEachAction {
    /// The graph; it has [`Results`]
    pub graph: Arc<Graph>,
    /// What the states begin with: a value of the type is the same for all, a list of such values has one for each
    pub inputs: Vec<Iterate>,
    /// What is made of the outputs; others are dropped
    pub collect: Vec<Collect>,
    /// The state key with the conversation
    pub conversation: Option<Key>,
    /// How many run at the same time; none means the run's own cap
    pub concurrency: Option<usize>,
    /// The name under which updates see an object with what was collected
    pub bind: &'static str,
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
