//! Conversations as values of the state: where they are read from, and what is left of a loop.

use super::{Expression, NoValue};
use crate::conversation::{self, Speaker, message};
use crate::template::Lookup;
use crate::value::{Key, List, Object, Value};

/// The entries of what a loop reports (see [`super::LoopAnswer`]).
pub const REPLY: &str = "reply";
/// What was said in it, a list of messages.
pub const SAID: &str = "said";
/// How often a model was asked.
pub const ITERATIONS: &str = "iterations";
/// Whether it made all calls of tools that [`super::CallLimits::most`] allows, so that the last request offered none.
pub const CAPPED: &str = "capped";
/// What its requests cost, in USD.
pub const COST: &str = "cost_usd";
/// What stands for the oldest messages (see [`Summary`]), or nothing.
pub const SUMMARY: &str = "summary";

/// What was said before a loop and in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Transcript {
    /// The messages before it
    pub before: Expression,
    /// The text that it was given
    pub input: Expression,
    /// What it reports
    pub report: Expression,
}

/// A text that stands for the oldest messages of a conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// The text
    pub text: String,
    /// How many messages it stands for
    pub messages: usize,
    /// How many requests were made for it and for those before it
    pub requests: usize,
}

impl Summary {
    /// As a value of the state.
    pub fn to_value(&self) -> Value {
        let number = |number: usize| Value::from(i64::try_from(number).unwrap_or(i64::MAX));
        let entries = [
            ("text", self.text.as_str().into()),
            ("messages", number(self.messages)),
            ("requests", number(self.requests)),
        ];
        Value::Object(entries.into_iter().map(|(key, value): (&str, Value)| (Key::from(key), value)).collect())
    }

    /// Of a value of the state.
    pub fn of_value(value: &Value) -> Option<Self> {
        let object = value.as_object()?;
        let number = |key: &str| match object.get(key)? {
            Value::Number(number) => Some(number.to_f64() as usize),
            _ => None,
        };
        Some(Summary {
            text: object.get("text")?.as_text()?.to_owned(),
            messages: number("messages")?,
            requests: number("requests")?,
        })
    }

    /// The message that says it. A person speaks in it, because it is made of what people and tools said, which are no
    /// instructions.
    pub fn message(&self) -> Object {
        message(Speaker::Human, format!("Summary of the conversation so far:\n{}", self.text))
    }
}

impl Transcript {
    pub(super) fn evaluate(&self, scope: &dyn Lookup) -> Result<Value, NoValue> {
        let report = self.report.evaluate(scope)?;
        let entry = |key: &str| report.as_object().and_then(|report| report.get(key));
        let mut messages = Vec::new();
        if let Value::List(before) = self.before.evaluate(scope)? {
            let summary = entry(SUMMARY).and_then(Summary::of_value);
            messages.extend(summary.iter().map(|summary| Value::Object(summary.message())));
            messages.extend(before.iter().skip(summary.map_or(0, |summary| summary.messages)).cloned());
        }
        messages.push(Value::Object(message(Speaker::Human, self.input.evaluate(scope)?)));
        messages.extend(entry(SAID).and_then(Value::as_list).into_iter().flat_map(List::iter).cloned());
        let messages: List = messages.iter().map(conversation::with_role).collect();
        Ok(Value::Object([(Key::from("messages"), Value::List(messages))].into_iter().collect()))
    }
}

/// The messages of what stands for a conversation, without the calls of its last one: whoever asks no more, because that was the last
/// time that a model could be asked, leaves them without an answer, and providers refuse what goes on after such calls.
pub(super) fn messages_of(value: Option<&Value>) -> Result<List, String> {
    match value {
        None | Some(Value::Null) => Ok(List::default()),
        Some(Value::List(messages)) => {
            let messages = messages.iter().map(|message| conversation::to_message(message).map(Value::Object));
            let messages = messages.collect::<Result<List, String>>()?;
            let last = messages.len().checked_sub(1).and_then(|last| messages.get(last));
            let is_open = last.is_some_and(|last| !conversation::tool_calls(last).is_empty());
            Ok(if is_open { conversation::without_open_calls(&messages) } else { messages })
        }
        Some(Value::Object(object)) => match (object.get("conversation"), object.get("messages")) {
            (Some(within @ Value::Object(_)), None) => messages_of(Some(within)),
            (_, Some(messages @ Value::List(_))) => messages_of(Some(messages)),
            _ => Err("it is an object without `messages`".to_owned()),
        },
        Some(other) => Err(format!("it is {}", other.a_kind())),
    }
}
