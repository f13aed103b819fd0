//! Messages of a conversation as values of the state.
//!
//! A message is an object: `type` says who speaks (`system`, `human`, `ai`, `tool`), `content` is its text, `id` tells it
//! from the others. One of a model has `tool_calls`, a list of objects with `id`, `name` and `args`, and `arguments`
//! beside them where the model wrote something that is no object. One of a tool has `tool_call_id`.

use crate::value::{Key, List, Object, Value};

/// What was given with a message beside its text.
const ADDITIONAL: &str = "additional_kwargs";

/// What marks a message that was said aside.
const ASIDE: &str = "aside";

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaker {
    /// Instructions
    System,
    /// A person
    Human,
    /// A model
    Ai,
    /// A tool
    Tool,
}

impl Speaker {
    /// The word for it in a message.
    pub fn word(self) -> &'static str {
        match self {
            Speaker::System => "system",
            Speaker::Human => "human",
            Speaker::Ai => "ai",
            Speaker::Tool => "tool",
        }
    }

    /// Who speaks by any of the words that are in use.
    pub fn of_word(word: &str) -> Option<Self> {
        match word {
            "system" => Some(Speaker::System),
            "human" | "user" => Some(Speaker::Human),
            "ai" | "assistant" => Some(Speaker::Ai),
            "tool" => Some(Speaker::Tool),
            _ => None,
        }
    }
}

/// A message.
pub fn message(speaker: Speaker, content: impl Into<Value>) -> Object {
    let mut message = Object::default();
    message.insert("type", speaker.word().into());
    message.insert("content", content.into());
    if speaker == Speaker::Ai {
        message.insert("tool_calls", Value::List(List::default()));
    }
    message
}

/// A message that was said while a model waited for what it had called, as one that no model is told later: it would stand between
/// the call and its answer. It takes its place among the others anew.
pub fn aside(message: &Value) -> Value {
    let mut message = message.as_object().cloned().unwrap_or_default();
    message.remove("id");
    message.insert(ASIDE, true.into());
    Value::Object(message)
}

/// Whether a message was said aside.
pub fn is_aside(message: &Value) -> bool {
    message.as_object().and_then(|message| message.get(ASIDE)) == Some(&Value::Bool(true))
}

/// A conversation without the calls at its end that wait for answers, for those who are to hear it meanwhile.
pub fn without_open_calls(messages: &List) -> List {
    let from_last = (0..messages.len()).rev().find(|place| messages.get(*place).and_then(speaker) == Some(Speaker::Ai));
    let Some(place) = from_last.filter(|place| messages.get(*place).is_some_and(|last| !tool_calls(last).is_empty()))
    else {
        return messages.clone();
    };
    let mut heard: List = messages.iter().take(place).cloned().collect();
    if let Some(words) = messages.get(place).and_then(as_text).filter(|words| !words.trim().is_empty()) {
        heard.push(Value::Object(message(Speaker::Ai, words)));
    }
    heard
}

/// What a person answered, as a message of theirs. An answer may be a message already, the text of a JSON object with a text as
/// `content` and more about it as `additional_kwargs`; anything else is the content.
pub fn of_person(answer: &str) -> Object {
    let plain = || message(Speaker::Human, answer);
    let Ok(Value::Object(given)) = crate::value::parse_json(answer) else { return plain() };
    let is_known = |name: &str| matches!(name, "content" | "type" | "role" | ADDITIONAL);
    let is_persons = |word: &Value| word.as_text().and_then(Speaker::of_word) == Some(Speaker::Human);
    let words = ["type", "role"].into_iter().filter_map(|name| given.get(name));
    let (content, more) = (given.get("content"), given.get(ADDITIONAL));
    let fits = given.iter().all(|(name, _)| is_known(name)) && words.into_iter().all(is_persons);
    match (content, more) {
        (Some(content @ Value::Text(_)), more) if fits && more.is_none_or(|more| more.as_object().is_some()) => {
            let mut message = message(Speaker::Human, content.clone());
            if let Some(more) = more {
                message.insert(ADDITIONAL, more.clone());
            }
            message
        }
        _ => plain(),
    }
}

/// A field that every message has and that is empty where nothing was given.
pub fn implied_field(value: &Value, field: &str) -> Option<Value> {
    let is_implied = matches!(field, ADDITIONAL | "response_metadata") && speaker(value).is_some();
    is_implied.then(|| Value::Object(Object::default()))
}

/// Who speaks in a value, if it is a message.
pub fn speaker(value: &Value) -> Option<Speaker> {
    let object = value.as_object()?;
    object.get("content")?.as_text()?;
    let word = object.get("type").or_else(|| object.get("role"))?;
    Speaker::of_word(word.as_text()?)
}

/// The text of a value: a text, or the content of a message.
pub fn as_text(value: &Value) -> Option<&str> {
    match value {
        Value::Text(text) => Some(text),
        Value::Object(object) => {
            speaker(value)?;
            object.get("content")?.as_text()
        }
        _ => None,
    }
}

/// The calls of a message that asks for tools; empty if it does not.
pub fn tool_calls(value: &Value) -> List {
    let calls = value.as_object().and_then(|message| message.get("tool_calls")).and_then(Value::as_list);
    match (speaker(value), calls) {
        (Some(Speaker::Ai), Some(calls)) => calls.clone(),
        _ => List::default(),
    }
}

/// The text of the last message of a model, however short.
pub fn last_reply(messages: &List) -> Option<&str> {
    replies(messages).next()
}

/// The text of the last message of a model that has one: some only call tools.
pub fn last_text(messages: &List) -> Option<&str> {
    replies(messages).find(|text| !text.trim().is_empty())
}

/// The text of the last message of a person.
pub fn last_heard(messages: &List) -> Option<&str> {
    said_by(messages, Speaker::Human).next()
}

/// Whether a model answered what a person said last with the same text as it had said before.
pub fn repeats_itself(messages: &List) -> bool {
    let from_last = |back: usize| messages.get(messages.len().checked_sub(back)?);
    let (Some(last), Some(between), Some(before)) = (from_last(1), from_last(2), from_last(3)) else { return false };
    let speakers = [before, between, last].map(speaker);
    speakers == [Some(Speaker::Ai), Some(Speaker::Human), Some(Speaker::Ai)] && as_text(before) == as_text(last)
}

/// The texts of a model's messages, the last one first.
fn replies(messages: &List) -> impl Iterator<Item = &str> {
    said_by(messages, Speaker::Ai)
}

fn said_by(messages: &List, by: Speaker) -> impl Iterator<Item = &str> {
    let messages = (0..messages.len()).rev().filter_map(|place| messages.get(place));
    messages.filter(move |message| speaker(message) == Some(by)).filter_map(as_text)
}

/// A value as a message: a text is one of a person. One that asks for tools may have no `content`, or null.
///
/// # Errors
/// When it is neither a text nor a message; says what it is.
pub fn to_message(value: &Value) -> Result<Object, String> {
    let mut message = match value {
        Value::Text(_) => return Ok(message(Speaker::Human, value.clone())),
        Value::Object(object) => object.clone(),
        other => return Err(format!("{} is not a message", other.a_kind())),
    };
    let asks_for_tools = message.get("tool_calls").and_then(Value::as_list).is_some_and(|calls| !calls.is_empty());
    if asks_for_tools && message.get("content").is_none_or(|content| *content == Value::Null) {
        message.insert("content", Value::text(""));
    }
    let Some(speaker) = speaker(&Value::Object(message.clone())) else {
        return Err("an object is a message only with `type` (human, ai, system, tool) and a text as `content`".into());
    };
    message.remove("role");
    message.insert("type", speaker.word().into());
    if speaker == Speaker::Ai && message.get("tool_calls").is_none_or(|calls| *calls == Value::Null) {
        message.insert("tool_calls", Value::List(List::default()));
    }
    if speaker == Speaker::Ai {
        let calls = tool_calls(&Value::Object(message.clone()));
        message.insert("tool_calls", Value::List(calls.iter().map(to_call).collect()));
    }
    Ok(message)
}

/// A message in the form that others know: `role` with the words of Chat Completions in the place of `type`, `arguments` in
/// that of `args`. [`to_message`] reads it.
pub fn with_role(message: &Value) -> Value {
    let (Value::Object(object), Some(speaker)) = (message, speaker(message)) else { return message.clone() };
    let role = match speaker {
        Speaker::Human => "user",
        Speaker::Ai => "assistant",
        other => other.word(),
    };
    let mut told = Object::default();
    told.insert("role", role.into());
    for (key, value) in object.iter().filter(|(key, _)| !matches!(&***key, "type" | "role" | "id" | "tool_calls")) {
        told.insert(key.clone(), value.clone());
    }
    let calls = tool_calls(message);
    if !calls.is_empty() {
        told.insert("tool_calls", Value::List(calls.iter().map(with_arguments).collect()));
    }
    Value::Object(told)
}

fn with_arguments(call: &Value) -> Value {
    let Some(object) = call.as_object() else { return call.clone() };
    let mut told = object.clone();
    let arguments = told.remove("args");
    if told.get("arguments").is_none() {
        told.insert("arguments", arguments.unwrap_or_default());
    }
    Value::Object(told)
}

/// A call in the one form, whatever form it was written in.
fn to_call(call: &Value) -> Value {
    let Some(object) = call.as_object() else { return call.clone() };
    if object.get("args").is_some() {
        return call.clone();
    }
    let mut call = object.clone();
    match call.remove("arguments") {
        Some(Value::Object(arguments)) => call.insert("args", arguments.into()),
        Some(Value::Text(text)) => match crate::value::parse_json(&text) {
            Ok(arguments @ Value::Object(_)) => call.insert("args", arguments),
            _ => {
                call.insert("args", Object::default().into());
                call.insert("arguments", Value::Text(text));
            }
        },
        _ => call.insert("args", Object::default().into()),
    }
    Value::Object(call)
}

/// Adds messages to a conversation: one, or a list. A message with the `id` of one that is there takes its place.
///
/// # Errors
/// When something is no message.
pub fn add(conversation: &List, added: &Value) -> Result<List, String> {
    let one;
    let added = match added {
        Value::List(list) => list,
        other => {
            one = List::from_iter([other.clone()]);
            &one
        }
    };
    let mut result = conversation.clone();
    for value in added.iter() {
        let mut message = to_message(value)?;
        match message.get("id").and_then(Value::as_text).map(Key::from) {
            Some(id) => match place_of(&result, &id) {
                Some(place) => result.set(place, Value::Object(message)),
                None => result.push(Value::Object(message)),
            },
            None => {
                // Numbers the place at which it stands, so that the same writes lead to the same ids.
                message.insert("id", Value::from(format!("m{}", result.len() + 1)));
                result.push(Value::Object(message));
            }
        }
    }
    Ok(result)
}

fn place_of(messages: &List, id: &str) -> Option<usize> {
    let has = |message: &Value| {
        message.as_object().and_then(|message| message.get("id")).and_then(Value::as_text) == Some(id)
    };
    // Where a message stands is in the id that it was given here.
    let guess =
        id.strip_prefix('m').and_then(|number| number.parse::<usize>().ok()).and_then(|number| number.checked_sub(1));
    if let Some(place) = guess.filter(|place| messages.get(*place).is_some_and(has)) {
        return Some(place);
    }
    messages.iter().position(has)
}

#[cfg(test)]
mod tests {
    use super::{Speaker, last_reply, last_text, message};
    use crate::value::{List, Value};

    #[test]
    fn the_last_reply_may_be_empty() {
        let conversation = [(Speaker::Ai, "ready"), (Speaker::Human, "go"), (Speaker::Ai, " "), (Speaker::Tool, "3")];
        let messages: List = conversation.into_iter().map(|(by, text)| Value::Object(message(by, text))).collect();
        assert_eq!((last_reply(&messages), last_text(&messages)), (Some(" "), Some("ready")));
        assert_eq!((last_reply(&List::default()), last_text(&List::default())), (None, None));
    }
}
