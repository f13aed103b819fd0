//! The tree of an expression.

use super::methods::Function;
use super::slice::Slice;
use crate::value::{Key, Value};

/// A part of an expression.
#[derive(Debug, PartialEq)]
pub(super) enum Node {
    Value(Value),
    /// The value under a key of the state
    Key(Key),
    /// The state itself: only its entries are values
    State,
    List(Vec<Node>),
    Object(Vec<(Key, Node)>),
    Not(Box<Node>),
    Minus(Box<Node>),
    And(Box<Node>, Box<Node>),
    Or(Box<Node>, Box<Node>),
    /// A chain: each operator stands between two neighbours
    Compare(Box<Node>, Vec<(Operator, Node)>),
    /// The same, where only numbers and only texts have an order
    CompareAlike(Box<Node>, Vec<(Operator, Node)>),
    Add(Box<Node>, Box<Node>),
    Subtract(Box<Node>, Box<Node>),
    /// An entry by a dot
    Entry(Box<Node>, Key),
    Index(Box<Node>, Box<Node>),
    Slice(Box<Node>, Slice),
    /// The first value where the condition holds, otherwise the second
    Either {
        condition: Box<Node>,
        then: Box<Node>,
        otherwise: Box<Node>,
    },
    Call(Function, Vec<Node>),
    /// Whether a value is of one of these types
    IsInstance(Box<Node>, Vec<&'static str>),
    Method(Box<Node>, &'static str, Vec<Node>),
}

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    NotIn,
    Is,
    IsNot,
}

impl Node {
    /// The keys of the state that it reads.
    pub(super) fn keys(&self, into: &mut Vec<Key>) {
        let mut all = |nodes: &[Node]| nodes.iter().for_each(|node| node.keys(into));
        match self {
            Node::Value(_) | Node::State => {}
            Node::Key(key) => into.push(key.clone()),
            Node::List(items) | Node::Call(_, items) => all(items),
            Node::Object(entries) => entries.iter().for_each(|(_, node)| node.keys(into)),
            Node::Not(of) | Node::Minus(of) | Node::Entry(of, _) | Node::Slice(of, _) | Node::IsInstance(of, _) => {
                of.keys(into)
            }
            Node::Either { condition, then, otherwise } => {
                condition.keys(into);
                then.keys(into);
                otherwise.keys(into);
            }
            Node::And(left, right)
            | Node::Or(left, right)
            | Node::Add(left, right)
            | Node::Subtract(left, right)
            | Node::Index(left, right) => {
                left.keys(into);
                right.keys(into);
            }
            Node::Compare(first, rest) | Node::CompareAlike(first, rest) => {
                first.keys(into);
                rest.iter().for_each(|(_, node)| node.keys(into));
            }
            Node::Method(of, _, arguments) => {
                of.keys(into);
                arguments.iter().for_each(|node| node.keys(into));
            }
        }
    }
}
