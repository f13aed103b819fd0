//! What is certain about an expression before it is evaluated.
//!
//! An error is what fails by the kinds of its values whatever these are, so nothing that has a value today is refused.
//! What is probably not meant is a doubt: a part that always fails where it is reached (the other operand of `&&` may
//! decide, the other branch may be taken, the list may be empty), what fails only if the state holds what it declares,
//! where nobody enforces that, and what fails by the values themselves (`1 / 0`, a key that is not there): that is found
//! ahead only where nothing comes from outside, and a graph may never get there.
//!
//! Two things are found out of every part. If it takes nothing from outside, it is evaluated, and what that says is
//! exact. Otherwise the kinds of values that its operands may have decide: it fails if no combination of them works.

mod infer;

use std::collections::BTreeMap;
use std::ops::Range;

use super::evaluate::Evaluation;
use super::kinds::Kinds;
use super::types::ValueType;
use super::{EvaluationError, Formula, FormulaError, Node, Part, Vocabulary, words};
use crate::conversation;
use crate::state::State;
use crate::value::{Key, List, Value};

/// An expression that was checked.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The compiled expression
    pub formula: Formula,
    /// What is probably not meant
    pub doubts: Vec<Doubt>,
}

/// Something that is probably not meant.
#[derive(Clone, Debug, PartialEq)]
pub struct Doubt {
    /// What is wrong, and where
    pub error: FormulaError,
    /// Why it is no error
    pub reason: Reason,
}

/// Why something that fails is no error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It may never be reached
    Reached,
    /// It fails only if the state holds what it declares
    Declared,
    /// It does not fail, and writes to a field what the field is not declared to hold
    Written,
}

/// What the value of an expression is needed for.
#[derive(Clone, Debug)]
pub enum Wanted<'w> {
    /// Any value does
    Anything,
    /// A truth value
    Condition,
    /// A list
    List,
    /// A list of messages
    Conversation,
    /// What can be added to a conversation: a message, a text, or a list of them
    Messages,
    /// A value for a field that is declared so, which nobody enforces: it is a doubt if it cannot be one
    Declared(ValueType),
    /// A map whose entries are written: its keys, and what their values are needed for
    Writes(&'w BTreeMap<Key, Wanted<'w>>),
}

/// What the parts that take nothing from outside may cost, in steps and bytes of text, all together.
const MAX_STEPS: u32 = 20_000;
const MAX_BYTES: usize = 1 << 18;

/// Finds what is certain, and what is doubtful.
///
/// # Errors
/// What fails whatever the values are.
pub(super) fn check(
    root: &Part,
    source: &str,
    vocabulary: &Vocabulary,
    wanted: &Wanted<'_>,
) -> Result<Vec<Doubt>, FormulaError> {
    let nothing = State::default();
    let check = |trusting, exact| {
        let mut checker = Checker { exact, ..Checker::new(vocabulary, trusting, root, &nothing) };
        let outcome = checker.check(root, wanted);
        (outcome, checker.doubts, checker.unfit)
    };
    let (outcome, mut suspected, unfit) = check(true, true);
    suspected.extend(outcome.err());
    let doubt = |finding: Finding, reason| Doubt { error: finding.in_text(source), reason };
    let mut doubts: Vec<Doubt> = unfit.into_iter().map(|finding| doubt(finding, Reason::Written)).collect();
    // Whatever is certain fails as well if the state holds what it declares, so there is seldom more to do.
    if !suspected.is_empty() {
        let (outcome, ..) = check(false, false);
        outcome.map_err(|finding| finding.in_text(source))?;
        let (outcome, mut sure, _) = check(false, true);
        sure.extend(outcome.err());
        doubts.extend(suspected.into_iter().map(|finding| {
            let reason = if sure.contains(&finding) { Reason::Reached } else { Reason::Declared };
            doubt(finding, reason)
        }));
    }
    Ok(doubts)
}

/// What is known of a value; none if there never is one.
#[cfg(test)]
pub(super) fn inferred(root: &Part, vocabulary: &Vocabulary) -> Option<ValueType> {
    Checker::new(vocabulary, false, root, &State::default()).infer(root).ok()
}

/// What fails, and where.
#[derive(Clone, Debug, PartialEq)]
struct Finding {
    error: EvaluationError,
    range: Range<usize>,
}

impl Finding {
    fn new(part: &Part, error: EvaluationError) -> Self {
        Finding { error, range: part.range.clone() }
    }

    fn in_text(self, source: &str) -> FormulaError {
        let range = if self.range.is_empty() { 0..source.len() } else { self.range };
        FormulaError { message: self.error.message, range, help: self.error.advice }
    }
}

type Result<T, E = Finding> = std::result::Result<T, E>;

struct Checker<'c> {
    vocabulary: &'c Vocabulary,
    /// Whether fields are taken to hold what they declare
    trusting: bool,
    /// Whether parts that take nothing from outside are evaluated; otherwise only the kinds of values count
    exact: bool,
    /// Names whose type the expression asks about; it knows better than their declaration
    asked: Vec<Key>,
    /// What is known of the variables of loops, the outermost first
    locals: Vec<ValueType>,
    /// For parts that take nothing from outside
    evaluation: Evaluation<'c>,
    /// What fails and may be never reached
    doubts: Vec<Finding>,
    /// What is written to a field that is declared to hold something else
    unfit: Vec<Finding>,
}

impl<'c> Checker<'c> {
    fn new(vocabulary: &'c Vocabulary, trusting: bool, root: &Part, nothing: &'c State) -> Self {
        let evaluation = Evaluation::within(nothing, MAX_STEPS, MAX_BYTES);
        let mut asked = Vec::new();
        if trusting {
            infer::names_asked_about(root, &mut asked);
        }
        Checker {
            vocabulary,
            trusting,
            exact: true,
            asked,
            locals: Vec::new(),
            evaluation,
            doubts: Vec::new(),
            unfit: Vec::new(),
        }
    }

    fn check(&mut self, root: &Part, wanted: &Wanted<'_>) -> Result<()> {
        let found = self.infer(root)?;
        self.demand(root, &found, wanted)
    }

    /// Whether a value can be what it is needed for.
    fn demand(&mut self, part: &Part, found: &ValueType, wanted: &Wanted<'_>) -> Result<()> {
        let kinds = found.kinds();
        let needs = |accepted: Kinds, words: &str| match kinds.meets(accepted) {
            true => Ok(()),
            false => Err(Finding::new(part, words::no_result(words, kinds))),
        };
        let no_message = |reason: String| Finding::new(part, EvaluationError::new(reason));
        match wanted {
            Wanted::Anything => Ok(()),
            Wanted::Condition if kinds.meets(Kinds::BOOL) => Ok(()),
            Wanted::Condition => Err(Finding::new(part, words::no_condition(kinds))),
            Wanted::List => needs(Kinds::LIST, "a list"),
            Wanted::Conversation | Wanted::Messages => {
                let one = matches!(wanted, Wanted::Messages);
                let accepted = if one { Kinds::LIST.or(Kinds::TEXT) } else { Kinds::LIST };
                needs(accepted, if one { "a message, a text or a list of them" } else { "a list of messages" })?;
                match found.exact() {
                    Some(value) => conversation::add(&List::default(), value).map(|_| ()).map_err(no_message),
                    None => Ok(()),
                }
            }
            Wanted::Declared(declared) => {
                if self.trusting && !kinds.meets(declared.kinds().or(Kinds::NULL)) {
                    self.unfit.push(Finding::new(part, words::not_as_declared(declared.kinds(), kinds)));
                }
                Ok(())
            }
            Wanted::Writes(fields) => {
                needs(Kinds::MAP, "a map")?;
                let Node::Object(entries) = &part.node else { return Ok(()) };
                entries.iter().try_for_each(|(key, value)| self.demand_write(key, value, fields))
            }
        }
    }

    fn demand_write(&mut self, key: &Part, value: &Part, fields: &BTreeMap<Key, Wanted<'_>>) -> Result<()> {
        let Node::Constant(Value::Text(name)) = &key.node else { return Ok(()) };
        let Some(wanted) = fields.get(name) else {
            let known = fields.keys().map(|field| &**field);
            return Err(Finding::new(key, words::no_state_field(known, name)));
        };
        // What is doubtful in it was found before.
        let doubts = self.doubts.len();
        let found = self.infer(value)?;
        self.doubts.truncate(doubts);
        self.demand(value, &found, wanted)
    }
}
