//! Expressions in a small part of the syntax of Python, with its meaning: comparisons, `and`, `or`, `not`, `in`, `is`, `if` … `else`,
//! `+`, `-`, indexes, parts, entries by a dot, and a fixed set of functions and methods. There are no loops, no assignments and nothing
//! that leads out of the values.

mod evaluate;
mod lex;
mod methods;
mod node;
mod of_object;
mod parse;
mod slice;
#[cfg(test)]
mod tests;
mod text;
mod values;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::template::Lookup;
use crate::value::{Key, Value};

pub use of_object::{ObjectCondition, Unmet};
pub(crate) use text::is_true;
pub use text::{as_text, write_text};

use node::Node;
use parse::Names;

/// The name that stands for the state.
const STATE: &str = "state";

/// A checked expression.
#[derive(Clone, Debug, PartialEq)]
pub struct PythonExpression {
    source: Arc<str>,
    root: Arc<Node>,
}

/// Why a text is no expression.
#[derive(Clone, Debug, PartialEq)]
pub struct PythonProblem {
    /// What is wrong
    pub message: String,
    /// Where, in bytes of the source
    pub range: Range<usize>,
}

impl fmt::Display for PythonProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl PythonExpression {
    /// Reads an expression. It may use `state`, by whose entries it reaches the state, and `names`: what it calls a value, and
    /// the key of the state that it means by it.
    ///
    /// # Errors
    /// When it is none, or uses something that is not in this part of the language.
    pub fn parse(source: &str, names: &[(&str, &str)]) -> Result<Self, PythonProblem> {
        let tokens = lex::tokens(source)?;
        let root = parse::parse(source, &tokens, Names::Known(names))?;
        Ok(PythonExpression { source: source.trim().into(), root: Arc::new(root) })
    }

    /// The expression as it was written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Its value.
    ///
    /// # Errors
    /// When an operation does not go with its values; says which.
    pub fn evaluate(&self, scope: &dyn Lookup) -> Result<Value, String> {
        evaluate::evaluate(&self.root, scope).map_err(|problem| format!("`{}`: {problem}", self.source))
    }

    /// Whether its value counts as true.
    ///
    /// # Errors
    /// As [`PythonExpression::evaluate`].
    pub fn holds(&self, scope: &dyn Lookup) -> Result<bool, String> {
        evaluate::holds(&self.root, scope).map_err(|problem| format!("`{}`: {problem}", self.source))
    }

    /// The keys of the state that it reads.
    pub fn keys(&self) -> Vec<Key> {
        let mut keys = Vec::new();
        self.root.keys(&mut keys);
        keys
    }
}
