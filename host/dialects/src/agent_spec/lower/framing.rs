//! The template in which an agent of the reference runtime tells its model what it is and what was said.
//!
//! The runtime writes the one that fits the model into most of its configurations. Those for models without an interface for
//! tools describe calls as texts; here tools are always offered through the interface of the provider, so what a template says
//! of them is left out.

use hotcell_graph::diagnostic::Span;
use hotcell_graph::ir::{Expression, PromptPart};
use hotcell_graph::{Key, Object, Value};

use super::{Lowering, template};
use crate::agent_spec::model::Component;
use crate::agent_spec::placeholders::{Piece, pieces};
use crate::agent_spec::prompts::{PromptMessage, fields_besides, messages, too_much};
use crate::agent_spec::templates::{inputs, jinja};

const FIELD: &str = "agent_template";
/// The name that stands for the instructions of the agent.
const INSTRUCTIONS: &str = "custom_instruction";
/// Names that stand for what is never said in a text here.
const UNSAID: &[&str] = &["__TOOLS__", "__PLAN__"];
/// What a template may say beside what every prompt may.
const FIELDS: &[&str] = &["output_parser", "pre_rendering_transforms", "post_rendering_transforms"];
/// Transforms that change the form of messages and not what they say: a provider is told them in the form that it takes.
const FORMS: &[&str] = &[
    "PluginAppendTrailingSystemMessageToUserMessageTransform",
    "PluginCanonicalizationMessageTransform",
    "PluginCoalesceSystemMessagesTransform",
    "PluginLlamaMergeToolRequestAndCallsTransform",
    "PluginReactMergeToolRequestAndCallsTransform",
    "PluginRemoveEmptyNonUserMessageTransform",
    "PluginSwarmToolRequestAndCallsTransform",
    "PluginToolRequestAndCallsTransform",
];
/// How the types end of parsers that read calls of tools out of texts.
const OF_CALLS: &str = "ToolOutputParser";

impl<'c> Lowering<'c> {
    /// The template of an agent; none, with a reason, if it is one that cannot be used here.
    pub(super) fn agent_template(&mut self, agent: &'c Component) -> Option<&'c Value> {
        let object = agent.value(FIELD)?;
        let transforms = agent.children("transforms").unwrap_or_default();
        let transforms: Vec<&str> = transforms.iter().map(|id| &*self.component(*id).id).collect();
        match problem(agent, object, &transforms) {
            Some(problem) => {
                self.refuse_field(agent, FIELD, problem);
                None
            }
            None => Some(object),
        }
    }
}

/// What keeps a template from being used; `transforms` are the ids of those that the agent has itself.
fn problem(agent: &Component, object: &Value, transforms: &[&str]) -> Option<String> {
    if let Some(field) = fields_besides(object, FIELDS).first() {
        return Some(format!("`{field}` of an `{FIELD}` is not supported: leave it out"));
    }
    if let Some(much) = too_much(object) {
        return Some(format!("`{FIELD}` has {much}"));
    }
    let listed = |field: &str| components_in(object.as_object().and_then(|object| object.get(field)));
    let text = |component: &Object, field: &str| -> String {
        component.get(field).and_then(Value::as_text).unwrap_or_default().to_owned()
    };
    for parser in listed("output_parser") {
        let kind = text(parser, "component_type");
        if !kind.ends_with(OF_CALLS) {
            return Some(format!("`{kind}` in `{FIELD}` is not supported: give the agent `outputs`"));
        }
    }
    let before = listed("pre_rendering_transforms");
    for transform in before.into_iter().chain(listed("post_rendering_transforms")) {
        let kind = text(transform, "component_type");
        // The runtime lists those of the agent in its template once more.
        let is_own = transforms.contains(&&*text(transform, "id"));
        if !is_own && !FORMS.contains(&&*kind) {
            let is_standard = kind.ends_with("SummarizationTransform");
            let instead = if is_standard { "write it in `transforms` of the agent" } else { "leave it out" };
            return Some(format!("`{kind}` in `{FIELD}` is not supported: {instead}"));
        }
    }
    let mut has_conversation = false;
    for message in messages(object) {
        match message {
            PromptMessage::Conversation => has_conversation = true,
            PromptMessage::Unknown(problem) => return Some(format!("`{FIELD}`: {problem}")),
            PromptMessage::Said(_, texts) => {
                let text = texts.join("\n");
                if let Some(Err(problem)) = jinja(&text) {
                    return Some(format!("a message of `{FIELD}` is not a valid template: {problem}"));
                }
                let known = |name: &str| name == INSTRUCTIONS || UNSAID.contains(&name) || agent.input(name).is_some();
                if let Some(name) = names(&text).into_iter().find(|name| !known(name)) {
                    return Some(format!("`{FIELD}` names `{name}`, and the agent has no such input"));
                }
            }
        }
    }
    (!has_conversation).then(|| format!("`{FIELD}` has no place for the conversation"))
}

/// The components of a value that is one, or a list of them.
fn components_in(value: Option<&Value>) -> Vec<&Object> {
    match value {
        Some(Value::List(list)) => list.iter().filter_map(Value::as_object).collect(),
        Some(value) => value.as_object().into_iter().collect(),
        None => Vec::new(),
    }
}

fn names(text: &str) -> Vec<String> {
    inputs(text, true, &Span::none()).into_iter().map(|input| input.title.to_string()).collect()
}

/// The prompt that a template makes of an agent's instructions, if it has any, and the conversation.
pub(super) fn framed(
    object: &Value,
    instructions: Option<&Expression>,
    input: impl Fn(&str) -> Expression,
    conversation: &Key,
) -> Vec<PromptPart> {
    let nothing = || Expression::Value(Value::from(""));
    let mut parts = Vec::new();
    for message in messages(object) {
        let (speaker, texts) = match message {
            PromptMessage::Said(speaker, texts) => (speaker, texts),
            PromptMessage::Conversation => {
                parts.push(PromptPart::messages("the conversation", Expression::Key(conversation.clone())));
                continue;
            }
            // Whoever has one of these was refused.
            PromptMessage::Unknown(_) => continue,
        };
        let text = texts.join("\n");
        let is_fixed = |name: &String| UNSAID.contains(&&**name) || (&**name == INSTRUCTIONS && instructions.is_none());
        let fixed = if names(&text).iter().all(is_fixed) { fixed(&text) } else { None };
        let said = match fixed {
            // A message that says nothing is none.
            Some(Ok(text)) if text.trim().is_empty() => continue,
            Some(Ok(text)) => Expression::Value(Value::text(text)),
            Some(Err(_)) => continue,
            None => template::rendered(&text, true, |name| match name {
                INSTRUCTIONS => instructions.cloned().unwrap_or_else(nothing),
                name if UNSAID.contains(&name) => nothing(),
                name => input(name),
            }),
        };
        parts.push(PromptPart::text(format!("`{FIELD}`"), speaker, said));
    }
    parts
}

/// What a text says all of whose names stand for nothing; none if that is not known without running it at length.
fn fixed(text: &str) -> Option<Result<String, String>> {
    match jinja(text) {
        Some(Ok(template)) => {
            let names = template.names();
            let values: Object = names.iter().map(|name| (Key::from(name.as_str()), Value::from(""))).collect();
            template.render_briefly(&values)
        }
        _ => {
            let literal = |piece| match piece {
                Piece::Literal(text) => Some(text),
                Piece::Name(_) => None,
            };
            Some(Ok(pieces(text).filter_map(literal).collect()))
        }
    }
}
