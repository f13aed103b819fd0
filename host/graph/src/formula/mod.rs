//! Expressions in CEL, the Common Expression Language.
//!
//! The grammar is that of the `cel` crate, whose parser is used and whose types stay inside this module. Evaluation is
//! ours, because it has to read our values where they are: a list of 10,000 messages costs nothing until an expression
//! looks at it. An expression is compiled once, when a graph is loaded; names and functions that do not exist are found
//! then, and so is what fails whatever the values are (see [`Formula::check`]). Evaluation is bounded in steps and in
//! what it produces.

mod check;
mod compile;
mod evaluate;
mod functions;
mod kinds;
mod parse;
mod patterns;
mod plain;
mod signatures;
mod types;
mod words;

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::template::Lookup;
use crate::value::{Key, Value};

pub use check::{Checked, Doubt, Reason, Wanted};
use functions::Function;
pub use parse::{RootName, root_names};
pub(crate) use parse::{begin_file, end_file};
pub use plain::{Membership, Place, Plain, Step};
pub use types::ValueType;

/// A compiled expression.
#[derive(Clone)]
pub struct Formula(Arc<Compiled>);

struct Compiled {
    source: Arc<str>,
    root: Part,
}

/// The names that an expression may use.
#[derive(Clone, Debug, Default)]
pub struct Vocabulary {
    /// Names with fixed values
    pub constants: Vec<(Key, Value)>,
    /// Names of values that are bound where the expression is evaluated, beside the state
    pub locals: Vec<Variable>,
    /// The keys of the state
    pub fields: Variables,
    /// Whether keys of the state are names by themselves
    pub bare: bool,
    /// The name under which the state has its keys as fields
    pub state: Option<Key>,
}

/// A name whose value is known only when an expression is evaluated.
#[derive(Clone, Debug)]
pub struct Variable {
    /// The name
    pub name: Key,
    /// What it is said to hold
    pub holds: ValueType,
    /// Whether it cannot hold anything else: a type that is declared and that nothing enforces is a hope
    pub enforced: bool,
}

impl<N: Into<Key>> From<N> for Variable {
    /// A name of which nothing is known.
    fn from(name: N) -> Self {
        Variable { name: name.into(), holds: ValueType::any(), enforced: true }
    }
}

/// Variables in an order, each found by its name without looking at the others: a state may have thousands, and a file tens of thousands of
/// expressions.
#[derive(Clone, Debug, Default)]
pub struct Variables {
    all: Vec<Variable>,
    places: HashMap<Key, usize>,
}

impl Variables {
    /// The variable of that name, the first one of several.
    pub fn get(&self, name: &str) -> Option<&Variable> {
        self.places.get(name).map(|place| &self.all[*place])
    }

    /// All names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.all.iter().map(|variable| &*variable.name)
    }
}

impl FromIterator<Variable> for Variables {
    fn from_iter<I: IntoIterator<Item = Variable>>(all: I) -> Self {
        let all: Vec<Variable> = all.into_iter().collect();
        let mut places = HashMap::with_capacity(all.len());
        for (place, variable) in all.iter().enumerate() {
            places.entry(Key::clone(&variable.name)).or_insert(place);
        }
        Variables { all, places }
    }
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
    /// What to write instead, where that is known
    advice: Option<String>,
    /// Whether something was named that is not there
    missing: bool,
    /// Whether a bound was reached, which nothing may hide
    spent: bool,
}

/// A part of an expression, and where it is.
#[derive(Clone, Debug)]
struct Part {
    node: Node,
    /// Its place in the text, in bytes; empty where a macro stands for more than is written
    range: Range<usize>,
}

/// What a part of an expression is.
#[derive(Clone, Debug)]
enum Node {
    Constant(Value),
    /// A key of the state, or a name that is bound beside it
    Name(Key),
    /// A variable of a comprehension, counted from the outermost
    Local(usize),
    Select {
        operand: Box<Part>,
        field: Key,
    },
    /// Whether a field is there
    Has {
        operand: Box<Part>,
        field: Key,
    },
    /// Whether a key of the state is there
    HasName(Key),
    Index(Box<Part>, Box<Part>),
    /// A key of the state that is computed
    StateIndex(Box<Part>),
    And(Box<Part>, Box<Part>),
    Or(Box<Part>, Box<Part>),
    Choose(Box<[Part; 3]>),
    /// The second where the first names something missing
    Default(Box<Part>, Box<Part>),
    Call(Function, Vec<Part>),
    List(Vec<Part>),
    Object(Vec<(Part, Part)>),
    Fold(Box<Fold>),
}

/// Goes through a list, or the keys of an object, with an accumulator.
#[derive(Clone, Debug)]
struct Fold {
    range: Part,
    start: Part,
    condition: Part,
    step: Part,
    result: Part,
}

impl Part {
    /// Its own parts, in the order in which they are written.
    fn parts(&self) -> Vec<&Part> {
        match &self.node {
            Node::Constant(_) | Node::Name(_) | Node::Local(_) | Node::HasName(_) => Vec::new(),
            Node::Select { operand, .. } | Node::Has { operand, .. } => vec![operand],
            Node::StateIndex(index) => vec![index],
            Node::Index(one, other) | Node::And(one, other) | Node::Or(one, other) | Node::Default(one, other) => {
                vec![one, other]
            }
            Node::Choose(parts) => parts.iter().collect(),
            Node::Call(_, parts) | Node::List(parts) => parts.iter().collect(),
            Node::Object(entries) => entries.iter().flat_map(|(key, value)| [key, value]).collect(),
            Node::Fold(fold) => vec![&fold.range, &fold.start, &fold.condition, &fold.step, &fold.result],
        }
    }
}

impl Formula {
    /// Compiles an expression whose value may be anything.
    ///
    /// # Errors
    /// As [`Formula::check`] does.
    pub fn compile(source: &str, vocabulary: &Vocabulary) -> Result<Self, FormulaError> {
        Formula::check(source, vocabulary, &Wanted::Anything).map(|checked| checked.formula)
    }

    /// Compiles an expression and finds out what is certain about its types.
    ///
    /// # Errors
    /// When it does not parse, names something that is not there, or fails whatever the values are.
    pub fn check(source: &str, vocabulary: &Vocabulary, wanted: &Wanted<'_>) -> Result<Checked, FormulaError> {
        let compiled = parse::with_parsed(source, |tree, offsets| {
            let root = compile::Compiler::new(source, vocabulary, offsets).compile(tree)?;
            // Here as well, because it goes as deep as the tree does.
            let doubts = check::check(&root, source, vocabulary, wanted)?;
            Ok((root, doubts))
        })?;
        let (root, doubts) = compiled?;
        Ok(Checked { formula: Formula(Arc::new(Compiled { source: source.into(), root })), doubts })
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
        evaluate::evaluate(&self.0.root, scope).map_err(|error| self.in_context(error))
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
        EvaluationError { message: message.into(), advice: None, missing: false, spent: false }
    }

    fn advise(self, advice: impl Into<String>) -> Self {
        EvaluationError { advice: Some(advice.into()), ..self }
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
        f.write_str(&self.message)?;
        match &self.advice {
            Some(advice) => write!(f, "; {advice}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for EvaluationError {}

#[cfg(test)]
mod tests;
