//! Expressions in CEL, the Common Expression Language.
//!
//! The grammar is that of the `cel` crate, whose parser is used and whose types stay inside this module. Evaluation is
//! ours, because it has to read our values where they are: a list of 10,000 messages costs nothing until an expression
//! looks at it. An expression is compiled once, when a graph is loaded; names and functions that do not exist are found
//! then. Evaluation is bounded in steps and in what it produces.

mod compile;
mod evaluate;
mod functions;
mod parse;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::template::Lookup;
use crate::value::{Key, Value};

use functions::Function;
pub use parse::{RootName, root_names};

/// A compiled expression.
#[derive(Clone)]
pub struct Formula(Arc<Compiled>);

struct Compiled {
    source: Arc<str>,
    root: Node,
}

/// The names that an expression may use.
#[derive(Clone, Debug, Default)]
pub struct Vocabulary {
    /// Names with fixed values
    pub constants: Vec<(Key, Value)>,
    /// Names of values that are bound where the expression is evaluated, beside the state
    pub locals: Vec<Key>,
    /// The keys of the state
    pub fields: Vec<Key>,
    /// Whether keys of the state are names by themselves
    pub bare: bool,
    /// The name under which the state has its keys as fields
    pub state: Option<Key>,
}

/// What is wrong with the text of an expression.
#[derive(Clone, Debug, PartialEq)]
pub struct FormulaError {
    /// What is wrong: a sentence without full stop
    pub message: String,
    /// The part of the text, in bytes
    pub range: Range<usize>,
    /// What to do about it
    pub help: Option<String>,
}

/// Why an evaluation gave no value.
#[derive(Clone, Debug, PartialEq)]
pub struct EvaluationError {
    message: String,
    /// Whether something was named that is not there
    missing: bool,
    /// Whether a bound was reached, which nothing may hide
    spent: bool,
}

/// A part of an expression.
#[derive(Clone, Debug)]
enum Node {
    Constant(Value),
    /// A key of the state, or a name that is bound beside it
    Name(Key),
    /// A variable of a comprehension, counted from the outermost
    Local(usize),
    Select {
        operand: Box<Node>,
        field: Key,
    },
    /// Whether a field is there
    Has {
        operand: Box<Node>,
        field: Key,
    },
    /// Whether a key of the state is there
    HasName(Key),
    Index(Box<Node>, Box<Node>),
    /// A key of the state that is computed
    StateIndex(Box<Node>),
    And(Box<Node>, Box<Node>),
    Or(Box<Node>, Box<Node>),
    Choose(Box<[Node; 3]>),
    /// The second where the first names something missing
    Default(Box<Node>, Box<Node>),
    Call(Function, Vec<Node>),
    List(Vec<Node>),
    Object(Vec<(Node, Node)>),
    Fold(Box<Fold>),
}

/// Goes through a list, or the keys of an object, with an accumulator.
#[derive(Clone, Debug)]
struct Fold {
    range: Node,
    start: Node,
    condition: Node,
    step: Node,
    result: Node,
}

impl Formula {
    /// Compiles an expression.
    ///
    /// # Errors
    /// When it does not parse, or names something that is not there.
    pub fn compile(source: &str, vocabulary: &Vocabulary) -> Result<Self, FormulaError> {
        let root = parse::with_parsed(source, |tree, offsets| {
            compile::Compiler::new(source, vocabulary, offsets).compile(tree)
        })?;
        Ok(Formula(Arc::new(Compiled { source: source.into(), root: root? })))
    }

    /// The text it was compiled from.
    pub fn source(&self) -> &str {
        &self.0.source
    }

    /// Evaluates against a scope.
    ///
    /// # Errors
    /// When it names something that is not there, combines what cannot be combined, or reaches a bound.
    pub fn evaluate(&self, scope: &dyn Lookup) -> Result<Value, EvaluationError> {
        evaluate::Evaluation::new(scope).evaluate(&self.0.root).map_err(|error| self.in_context(error))
    }

    fn in_context(&self, error: EvaluationError) -> EvaluationError {
        const SHOWN: usize = 120;
        let mut source: String = self.0.source.chars().take(SHOWN).collect();
        if source.len() < self.0.source.len() {
            source.push('…');
        }
        EvaluationError { message: format!("`{source}`: {}", error.message), ..error }
    }
}

impl PartialEq for Formula {
    fn eq(&self, other: &Self) -> bool {
        self.0.source == other.0.source
    }
}

impl fmt::Debug for Formula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Formula").field(&self.0.source).finish()
    }
}

impl EvaluationError {
    /// An error with this text.
    pub fn new(message: impl Into<String>) -> Self {
        EvaluationError { message: message.into(), missing: false, spent: false }
    }

    fn missing(message: impl Into<String>) -> Self {
        EvaluationError { missing: true, ..EvaluationError::new(message) }
    }

    fn spent(message: impl Into<String>) -> Self {
        EvaluationError { spent: true, ..EvaluationError::new(message) }
    }
}

impl fmt::Display for EvaluationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for EvaluationError {}

#[cfg(test)]
mod tests;
