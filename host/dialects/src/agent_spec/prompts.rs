//! Prompts of the reference runtime that are more than one template: messages in a row, and those for a choice.

use std::collections::HashSet;

use hotcell_graph::conversation::Speaker;
use hotcell_graph::diagnostic::Span;
use hotcell_graph::{List, Object, Value};

use super::model::{Component, Property};
use super::placeholders::MOST;
use super::templates;

/// Messages of one prompt.
const MOST_MESSAGES: usize = 256;

/// The prompt for a choice that has none of its own.
pub(super) const CHOICE: &str = "Choose what fits the request best.\n\nThe choices:\n{% for choice in next_steps %}\
    - {{ choice.displayed_step_name }}: {{ choice.description }}\n{% endfor %}\nThe request: {{ input }}\n\n\
    Answer with the name of one choice and nothing else.";
/// The name that stands for the choices in such a prompt.
pub(super) const CHOICES: &str = "next_steps";

/// What every prompt may say beside what is of its own kind. How a model is asked natively has no effect: where tools and outputs
/// are declared, calls are made and answers are read through the interface of the provider.
const FIELDS: &[&str] = &[
    "component_type",
    "id",
    "name",
    "description",
    "metadata",
    "messages",
    "inputs",
    "native_tool_calling",
    "native_structured_generation",
    "component_plugin_name",
    "component_plugin_version",
];

/// The text of a message that stands for the conversation. Before 26.1, a message of the user without contents does.
const CONVERSATION: &str = "$$__CHAT_HISTORY_PLACEHOLDER__$$";

/// A choice that a model has.
pub(super) struct Choice<'c> {
    /// The branch to which it leads
    pub(super) branch: &'c str,
    /// What it is for
    pub(super) description: &'c str,
    /// What the model calls it
    pub(super) name: &'c str,
}

/// The choices of a node.
pub(super) fn choices(node: &Component) -> Vec<Choice<'_>> {
    let listed = node.value("next_branches").and_then(Value::as_list).into_iter().flat_map(List::iter);
    listed.filter_map(choice).collect()
}

fn choice(listed: &Value) -> Option<Choice<'_>> {
    let listed = listed.as_list()?;
    let text = |place: usize| listed.get(place).and_then(Value::as_text);
    let branch = text(0)?;
    let name = text(2).filter(|name| !name.is_empty()).unwrap_or(branch);
    Some(Choice { branch, description: text(1).unwrap_or_default(), name })
}

/// A message of a prompt.
pub(super) enum PromptMessage<'c> {
    /// One with texts
    Said(Speaker, Vec<&'c str>),
    /// All messages of the conversation
    Conversation,
    /// One that cannot be told, and why
    Unknown(String),
}

/// The messages of a prompt.
pub(super) fn messages(object: &Value) -> Vec<PromptMessage<'_>> {
    let listed = object.as_object().and_then(|object| object.get("messages")).and_then(Value::as_list);
    listed.into_iter().flat_map(List::iter).map(message).collect()
}

fn message(written: &Value) -> PromptMessage<'_> {
    let unknown = |problem: &str| PromptMessage::Unknown(problem.to_owned());
    let Some(message) = written.as_object() else { return unknown("a message is an object") };
    let is_given = |field: &str| message.get(field).is_some_and(|value| *value != Value::Null);
    if is_given("tool_requests") || is_given("tool_result") {
        return unknown("messages with calls of tools are not supported");
    }
    let contents = message.get("contents").and_then(Value::as_list);
    let mut texts = Vec::new();
    for content in contents.into_iter().flat_map(List::iter) {
        let text = content.as_object().filter(|content| content.get("type").and_then(Value::as_text) == Some("text"));
        match text.and_then(|content| content.get("content")?.as_text()) {
            Some(text) => texts.push(text),
            None => return unknown("contents of a message other than text are not supported"),
        }
    }
    if texts == [CONVERSATION] {
        return PromptMessage::Conversation;
    }
    let role = message.get("role").and_then(Value::as_text);
    match role.and_then(Speaker::of_word) {
        Some(Speaker::Human) if texts.is_empty() => PromptMessage::Conversation,
        Some(speaker @ (Speaker::System | Speaker::Human | Speaker::Ai)) => PromptMessage::Said(speaker, texts),
        _ => unknown("the `role` of a message is `system`, `user` or `assistant`"),
    }
}

/// What has to be given for the messages of a prompt; of one that has too much, a part of it.
pub(super) fn inputs(object: &Value, span: &Span) -> Vec<Property> {
    let (mut inputs, mut known) = (Vec::new(), HashSet::new());
    for message in messages(object).into_iter().take(MOST_MESSAGES) {
        let PromptMessage::Said(_, texts) = message else { continue };
        for input in texts.into_iter().flat_map(|text| templates::inputs(text, true, span)) {
            if inputs.len() > MOST {
                return inputs;
            }
            if known.insert(input.title.clone()) {
                inputs.push(input);
            }
        }
    }
    inputs
}

/// What a prompt has more of than it may have, if it has too much.
pub(super) fn too_much(object: &Value) -> Option<String> {
    if messages(object).len() > MOST_MESSAGES {
        return Some(format!("more than {MOST_MESSAGES} messages"));
    }
    (inputs(object, &Span::none()).len() > MOST).then(|| format!("more than {MOST} placeholders"))
}

/// The fields of a prompt that say something, and that neither every prompt may have nor one of this kind.
pub(super) fn fields_besides<'v>(object: &'v Value, own: &[&str]) -> Vec<&'v str> {
    let says_something = |value: &Value| match value {
        Value::Null | Value::Bool(false) => false,
        Value::List(list) => !list.is_empty(),
        Value::Object(object) => !object.is_empty(),
        _ => true,
    };
    let fields = object.as_object().into_iter().flat_map(Object::iter);
    let is_known = |name: &str| FIELDS.contains(&name) || own.contains(&name);
    let fields = fields.filter(|&(name, value)| !is_known(name) && says_something(value));
    fields.map(|(name, _)| &**name).collect()
}

#[cfg(test)]
mod tests {
    use hotcell_graph::value::parse_json;

    use super::*;

    fn much(texts: &[String]) -> Option<String> {
        let message =
            |text: &String| format!(r#"{{"role": "user", "contents": [{{"type": "text", "content": "{text}"}}]}}"#);
        let messages: Vec<String> = texts.iter().map(message).collect();
        too_much(&parse_json(&format!(r#"{{"messages": [{}]}}"#, messages.join(","))).expect("an object"))
    }

    #[test]
    fn a_prompt_has_so_many_messages_and_placeholders() {
        let names = |from: usize| (from..from + 600).map(|number| format!("{{{{a{number}}}}}")).collect::<String>();
        let many = |count: usize| vec!["x".to_owned(); count];
        assert_eq!(much(&many(256)), None);
        assert_eq!(much(&many(257)).as_deref(), Some("more than 256 messages"));
        assert_eq!(much(&[names(0), names(0)]), None, "each counts once");
        assert_eq!(much(&[names(0), names(600)]).as_deref(), Some("more than 1000 placeholders"));
    }
}
