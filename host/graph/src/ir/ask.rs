//! Questions to people.

use std::sync::Arc;
use std::time::Duration;

use super::{Expression, Tool};
use crate::value::{Key, Value};

/// Asks a person.
#[derive(Clone, Debug)]
pub struct AskAction {
    /// What the person is shown
    pub question: Expression,
    /// Answers that are offered
    pub options: Vec<String>,
    /// Whether another answer than these is not taken, so that the question is put again
    pub only_options: bool,
    /// Used when the answer is empty; not checked
    pub default: Option<Expression>,
    /// What the answer must satisfy
    pub check: Option<LengthCheck>,
    /// Whether white space around the answer is removed
    pub trim: bool,
    /// How long it waits; none for as long as it takes
    pub deadline: Option<Box<AskDeadline>>,
    /// Whom it is put to, and by whom it is answered
    pub asked: Box<Asked>,
    /// The name under which updates see the answer
    pub bind: &'static str,
}

/// How long a question waits, and what is then.
#[derive(Clone, Debug)]
pub struct AskDeadline {
    /// How long, from when it is put
    pub after: Duration,
    /// What is, when it has no answer until then
    pub then: Expiry,
}

/// What becomes of a question whose time is over.
#[derive(Clone, Debug)]
pub enum Expiry {
    /// This counts as its answer
    Answer(Expression),
    /// Its branch ends: nothing is written, nothing follows, and nothing has failed
    EndBranch,
}

/// Whom a question is put to.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// The name of the seat, where it has one
    pub seat: Option<String>,
    /// Who may answer; empty for anybody
    pub operator_ids: Vec<String>,
    /// What else whoever shows or delivers the question has to know: an object
    pub context: Option<Expression>,
    /// The tool that answers in the place of a person: its name, and its arguments
    pub tool: Option<(String, Expression)>,
    /// Who is told of the question before it is put
    pub notice: Option<Notice>,
}

/// Tells somebody that there is a question. Whether that succeeds makes no difference to the question.
#[derive(Clone, Debug)]
pub struct Notice {
    /// What tells them
    pub tool: Arc<Tool>,
    /// An object: its inputs
    pub inputs: Expression,
    /// What the inputs see beside the state
    pub names: Vec<(Key, Value)>,
    /// The name under which they see the name of the run
    pub run: Key,
}

impl AskAction {
    /// A question that takes any answer as it is given; updates see it as `bind`.
    pub fn new(question: Expression, bind: &'static str) -> Self {
        AskAction {
            question,
            options: Vec::new(),
            only_options: false,
            default: None,
            check: None,
            trim: false,
            deadline: None,
            asked: Box::default(),
            bind,
        }
    }
}

/// A condition on the length of a text, in characters.
#[derive(Clone, Debug, PartialEq)]
pub struct LengthCheck {
    /// The comparison
    pub operator: Comparison,
    /// The number it is compared with
    pub length: u64,
    /// The condition as it was written
    pub source: String,
}

/// A comparison of two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `==`
    Equal,
}

impl LengthCheck {
    /// Whether the text satisfies the condition.
    pub fn holds(&self, text: &str) -> bool {
        let length = text.chars().count() as u64;
        match self.operator {
            Comparison::Greater => length > self.length,
            Comparison::GreaterOrEqual => length >= self.length,
            Comparison::Less => length < self.length,
            Comparison::LessOrEqual => length <= self.length,
            Comparison::Equal => length == self.length,
        }
    }
}
