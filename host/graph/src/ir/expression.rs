//! What nodes evaluate against the state.

use std::fmt;

use super::named::Named;
use super::transcript::{Transcript, messages_of};
use super::typed::json_within;
use super::{Composed, Drawn, Rendered, Typed};
use crate::Effort;
use crate::braces::BraceTemplate;
use crate::conversation::{self, as_text, last_heard, last_reply, last_text, tool_calls};
use crate::formula::{EvaluationError, Formula};
use crate::place::Place;
use crate::python::{ObjectCondition, PythonExpression};
use crate::reducer::placed;
use crate::template::{Lookup, MAX_EXPANDED, Missing, Template};
use crate::todo::TodoList;
use crate::types::{Mismatch, to_text};
use crate::value::{Key, List, Object, Value};

/// Something that is evaluated against the state.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// A fixed value
    Value(Value),
    /// A template all of whose references must name something; gives a text
    Strict(Template),
    /// A template whose references may name nothing; exactly one reference keeps its type
    Lenient(Template),
    /// A template all of whose references must name something; exactly one reference keeps its type
    Exact(Template),
    /// A list of what these give
    List(Vec<Expression>),
    /// An object of what these give
    Object(Vec<(Key, Expression)>),
    /// A formula
    Formula(Formula),
    /// The text of the last message of a model in the conversation under this key
    LastReply {
        /// The state key
        conversation: Key,
        /// Whether a text is needed: messages without one are passed over, and it is an error that there is none.
        /// Otherwise the text may be empty, and is if there is no such message.
        required: bool,
    },
    /// The text of the last message of a person in the conversation under this key; empty if there is none
    LastHeard(Key),
    /// The to-do list under this key as a text
    TodoText(Key),
    /// Whether there are open tasks on the to-do list under the first key. There is no point in going on, and so it is false,
    /// when the model said nothing new in the conversation under the second key since it was told to go on
    HasOpenTasks(Key, Key),
    /// Whether the last message of the conversation under this key asks for tools
    AsksForTools(Key),
    /// Whether there is a number under this key that is no less than this
    AtLeast(Key, u32),
    /// What a person answered, the text under this key, as a message of theirs
    Answer(Key),
    /// The value under this key
    Key(Key),
    /// Whether there is a value under this key, and not `null`
    Has(Key),
    /// The first, or where it has no value the second
    Else(Box<Expression>, Box<Expression>),
    /// An entry of an object
    Entry(Box<Expression>, Key),
    /// A value of a type
    Typed(Box<Typed>),
    /// The texts of these, one after the other (see [`crate::types::to_text`])
    Joined(Vec<Expression>),
    /// The text of a template of the Jinja language
    Rendered(Box<Rendered>),
    /// An object whose keys are given too
    Entries(Vec<(Expression, Expression)>),
    /// The JSON object in a text
    JsonWithin(Box<Expression>),
    /// The value at a place of the state, or `null` where nothing is
    At(Place),
    /// A value for a place of the state whose key has the reducer [`crate::Reducer::Place`]
    Placed(Place, Box<Expression>),
    /// A template with single braces; gives a text
    Braces(BraceTemplate),
    /// The text for people and models that stands for a value: nothing is the empty text
    TextOf(Box<Expression>),
    /// Whether a condition holds
    Holds(PythonExpression),
    /// Whether an object meets a condition. It has no value where something is missing that the condition names
    Meets {
        /// The object
        object: Box<Expression>,
        /// The condition
        condition: ObjectCondition,
    },
    /// A value that is put together from objects and lists
    Composed(Box<Composed>),
    /// The value of the first condition that holds
    Choice {
        /// Conditions with their values
        cases: Vec<(PythonExpression, Value)>,
        /// The value where none holds; without one it is an error that none does
        otherwise: Option<Value>,
    },
    /// Whether it gives this value
    Is(Box<Expression>, Value),
    /// The messages of the conversation at a place: a list of them, an object with `messages`, one with such an object as
    /// `conversation`, or nothing yet
    MessagesAt(Place),
    /// What was said in a loop, with what was said before it, as an object with `messages`
    Transcript(Box<Transcript>),
    /// A value that is drawn out of others
    Drawn(Box<Drawn>),
}

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq)]
pub enum NoValue {
    /// A template names what is not there
    Missing(Missing),
    /// A formula failed
    Formula(EvaluationError),
    /// There is no message of a model in the conversation under this key
    NoReply(Key),
    /// This has no value
    Absent(String),
    /// A value cannot become one of its type
    Mismatch {
        /// What it is
        what: String,
        /// Why not
        mismatch: Mismatch,
    },
    /// Something else is wrong with a value
    Unfit(String),
}

impl std::error::Error for NoValue {}

impl From<Missing> for NoValue {
    fn from(missing: Missing) -> Self {
        NoValue::Missing(missing)
    }
}

impl fmt::Display for NoValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoValue::Missing(missing) => missing.fmt(f),
            NoValue::Formula(error) => error.fmt(f),
            NoValue::NoReply(key) => write!(f, "there is no message of a model with a text in `{key}`"),
            NoValue::Absent(what) => write!(f, "{what} has no value and no default"),
            NoValue::Mismatch { what, mismatch } => write!(f, "{what}: {mismatch}"),
            NoValue::Unfit(problem) => f.write_str(problem),
        }
    }
}

/// What is at a place of the state.
fn at<'s>(place: &Place, scope: &'s dyn Lookup) -> Option<&'s Value> {
    place.follow(scope.lookup(place.root())?)
}

/// A text that a template became, unless it is longer than any may be.
fn bounded(text: String) -> Result<String, NoValue> {
    if text.len() > MAX_EXPANDED { Err(too_long()) } else { Ok(text) }
}

/// A value that is to be written out, if it is not too large for that: it may name one large value of the state thousands of times.
fn of_a_size(value: Value) -> Result<Value, NoValue> {
    match value.check_size() {
        Ok(_) => Ok(value),
        Err(problem) => Err(NoValue::Unfit(format!("the text of it is too long: {problem}"))),
    }
}

fn too_long() -> NoValue {
    NoValue::Unfit(format!("the text becomes longer than {MAX_EXPANDED} bytes"))
}

impl Expression {
    /// Evaluates against a scope.
    pub fn evaluate(&self, scope: &dyn Lookup) -> Result<Value, NoValue> {
        let _effort = Effort::begin();
        match self {
            Expression::Value(value) => Ok(value.clone()),
            Expression::Strict(template) => Ok(Value::text(bounded(template.expand(scope)?)?)),
            Expression::Exact(template) if template.single_reference().is_some() => Ok(template.evaluate(scope)?),
            Expression::Exact(template) => Ok(Value::text(bounded(template.expand(scope)?)?)),
            Expression::Lenient(template) => match template.evaluate_lenient(scope) {
                Value::Text(text) if text.len() > MAX_EXPANDED && template.single_reference().is_none() => {
                    Err(too_long())
                }
                value => Ok(value),
            },
            Expression::List(items) => {
                let items = items.iter().map(|item| item.evaluate(scope)).collect::<Result<List, _>>()?;
                Ok(Value::List(items))
            }
            Expression::Object(entries) => {
                let entry = |(key, value): &(Key, Expression)| Ok((key.clone(), value.evaluate(scope)?));
                Ok(Value::Object(entries.iter().map(entry).collect::<Result<Object, NoValue>>()?))
            }
            Expression::Formula(formula) => formula.evaluate(scope).map_err(NoValue::Formula),
            Expression::LastReply { conversation, required } => {
                let messages = scope.lookup(conversation).and_then(Value::as_list);
                if !required {
                    return Ok(Value::from(messages.and_then(last_reply).unwrap_or_default()));
                }
                let text = messages.and_then(last_text);
                text.map(Value::from).ok_or_else(|| NoValue::NoReply(conversation.clone()))
            }
            Expression::LastHeard(conversation) => {
                let messages = scope.lookup(conversation).and_then(Value::as_list);
                Ok(Value::from(messages.and_then(last_heard).unwrap_or_default()))
            }
            Expression::TodoText(list) => Ok(Value::text(TodoList::of(scope.lookup(list)).to_string())),
            Expression::HasOpenTasks(list, conversation) => {
                let messages = scope.lookup(conversation).and_then(Value::as_list);
                let is_open = TodoList::of(scope.lookup(list)).open() > 0;
                Ok(Value::Bool(is_open && !messages.is_some_and(conversation::repeats_itself)))
            }
            Expression::AsksForTools(conversation) => {
                let messages = scope.lookup(conversation).and_then(Value::as_list);
                let last = messages.and_then(|messages| messages.get(messages.len().checked_sub(1)?));
                Ok(Value::Bool(last.is_some_and(|message| !tool_calls(message).is_empty())))
            }
            Expression::AtLeast(key, least) => {
                let is_enough =
                    |value: &Value| matches!(value, Value::Number(number) if number.to_f64() >= f64::from(*least));
                Ok(Value::Bool(scope.lookup(key).is_some_and(is_enough)))
            }
            Expression::Answer(key) => {
                let answer = scope.lookup(key).cloned().unwrap_or_default();
                Ok(Value::Object(conversation::of_person(&answer.to_display())))
            }
            Expression::Key(key) => scope.lookup(key).cloned().ok_or_else(|| NoValue::Absent(format!("`{key}`"))),
            Expression::Else(first, second) => match first.named(scope) {
                Named::There(value) => Ok(value.clone()),
                Named::Absent => second.evaluate(scope),
                Named::Made => match first.evaluate(scope) {
                    Err(NoValue::Absent(_)) => second.evaluate(scope),
                    other => other,
                },
            },
            Expression::Has(key) => Ok(Value::Bool(scope.lookup(key).is_some_and(|value| *value != Value::Null))),
            Expression::Entry(of, key) => {
                if let Named::There(value) = self.named(scope) {
                    return Ok(value.clone());
                }
                match of.evaluate(scope)? {
                    Value::Object(object) => {
                        object.get(key).cloned().ok_or_else(|| NoValue::Absent(format!("the entry `{key}`")))
                    }
                    other => Err(NoValue::Unfit(format!(
                        "`{key}` is an entry of an object, and what was given is {}",
                        other.a_kind()
                    ))),
                }
            }
            Expression::Typed(typed) => typed.evaluate(scope),
            Expression::Joined(parts) => {
                let mut text = String::new();
                for part in parts {
                    text.push_str(&to_text(&of_a_size(part.evaluate(scope)?)?));
                    if text.len() > MAX_EXPANDED {
                        return Err(too_long());
                    }
                }
                Ok(Value::text(text))
            }
            Expression::Rendered(rendered) => rendered.evaluate(scope),
            Expression::Entries(entries) => {
                let mut object = Object::default();
                for (key, value) in entries {
                    object.insert(to_text(&key.evaluate(scope)?), value.evaluate(scope)?);
                }
                Ok(Value::Object(object))
            }
            Expression::JsonWithin(text) => {
                let text = text.evaluate(scope)?;
                let found = text.as_text().and_then(json_within);
                found.ok_or_else(|| NoValue::Unfit("there is no JSON object in the text".to_owned()))
            }
            Expression::At(place) => Ok(at(place, scope).cloned().unwrap_or_default()),
            Expression::Placed(place, value) => Ok(placed(place, value.evaluate(scope)?)),
            Expression::Braces(template) => template.expand(scope).map(Value::text).map_err(NoValue::Unfit),
            Expression::TextOf(of) => Ok(match of.evaluate(scope)? {
                Value::Null => Value::from(""),
                value => Value::from(&*of_a_size(value)?.to_display()),
            }),
            Expression::Holds(condition) => condition.holds(scope).map(Value::Bool).map_err(NoValue::Unfit),
            Expression::Meets { object, condition } => match object.evaluate(scope)? {
                Value::Object(object) => condition
                    .holds(&object)
                    .map(Value::Bool)
                    .map_err(|unmet| NoValue::Unfit(format!("`{}`: {unmet}", condition.source()))),
                other => {
                    Err(NoValue::Unfit(format!("`{}` is about an object, not {}", condition.source(), other.a_kind())))
                }
            },
            Expression::Composed(composed) => composed.evaluate(scope),
            Expression::Choice { cases, otherwise } => {
                for (condition, value) in cases {
                    if condition.holds(scope).map_err(NoValue::Unfit)? {
                        return Ok(value.clone());
                    }
                }
                let none = || NoValue::Unfit("no condition holds, and there is no default".to_owned());
                otherwise.clone().ok_or_else(none)
            }
            Expression::Is(of, value) => Ok(Value::Bool(of.evaluate(scope)? == *value)),
            Expression::MessagesAt(place) => messages_of(at(place, scope))
                .map(Value::List)
                .map_err(|problem| NoValue::Unfit(format!("`{place}` holds no conversation: {problem}"))),
            Expression::Transcript(transcript) => transcript.evaluate(scope),
            Expression::Drawn(drawn) => drawn.evaluate(scope),
        }
    }

    /// Evaluates to the text that stands for the value; a message is its own text.
    pub fn evaluate_text(&self, scope: &dyn Lookup) -> Result<String, NoValue> {
        match self {
            Expression::Value(value) => Ok(value.to_display().into_owned()),
            Expression::Strict(template) => bounded(template.expand(scope)?),
            Expression::Lenient(template) => bounded(template.expand_lenient(scope)),
            Expression::Formula(_) => {
                let value = self.evaluate(scope)?;
                Ok(as_text(&value).map_or_else(|| value.to_display().into_owned(), str::to_owned))
            }
            _ => Ok(of_a_size(self.evaluate(scope)?)?.to_display().into_owned()),
        }
    }

    /// The template behind it, if there is one.
    pub fn template(&self) -> Option<&Template> {
        match self {
            Expression::Strict(template) | Expression::Lenient(template) | Expression::Exact(template) => {
                Some(template)
            }
            _ => None,
        }
    }
}
