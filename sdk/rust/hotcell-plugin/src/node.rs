//! Node types: steps of a graph with fields of their own, named inputs and outputs, and branches to leave by.

use crate::description::Node;
use crate::{Error, Json};

/// What runs a node: the fields, the inputs, what came of it.
pub type NodeFunction = fn(Json, Json) -> Result<Outcome<Json>, Error>;

/// What running a node gave.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome<T> {
    /// What flows out: an object.
    pub outputs: T,
    /// The branch to leave by, one of those the node type declares; none where it declares none.
    pub branch: Option<String>,
    /// Further facts by name; empty is fine.
    pub metadata: Vec<(String, String)>,
}

impl<T> Outcome<T> {
    /// An outcome of a node type that has no branches.
    pub fn new(outputs: T) -> Self {
        Self { outputs, branch: None, metadata: Vec::new() }
    }

    /// An outcome that leaves by `branch`.
    pub fn by(branch: impl Into<String>, outputs: T) -> Self {
        Self { outputs, branch: Some(branch.into()), metadata: Vec::new() }
    }
}

/// Runs a node type and checks what it gave.
pub(crate) fn run(node: &Node, fields: Json, inputs: Json) -> Result<Outcome<Json>, Error> {
    let name = node.name;
    let outcome = (node.run)(fields, inputs)?;
    let declared = crate::schema::listed(node.branches.iter().copied());
    match &outcome.branch {
        Some(branch) if !node.branches.contains(&branch.as_str()) => {
            let declared = if declared.is_empty() { "none".to_owned() } else { declared };
            let message = format!("the node type `{name}` left by the branch `{branch}`; it declares {declared}");
            Err(Error::other(message))
        }
        None if !node.branches.is_empty() => {
            Err(Error::other(format!("the node type `{name}` left by no branch; it declares {declared}")))
        }
        _ if !outcome.outputs.is_object() => {
            Err(Error::other(format!("the node type `{name}` gave outputs that are not an object")))
        }
        _ => Ok(outcome),
    }
}
