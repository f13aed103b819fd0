//! Nodes of the reference runtime that look at the conversation, and prompts that are several messages.

use hotcell_graph::conversation::Speaker;
use hotcell_graph::ir::{Action, Drawn, Excerpt, Expression, Node, PromptPart};
use hotcell_graph::{Key, Value};

use super::site::Site;
use super::{Lowering, template};
use crate::agent_spec::prompts::{PromptMessage, fields_besides, messages, too_much};
use crate::agent_spec::templates::jinja;
use crate::agent_spec::wayflow::HISTORY;

/// The words for who speaks.
const WORDS: &[(Speaker, &str)] =
    &[(Speaker::Human, "USER"), (Speaker::Ai, "AGENT"), (Speaker::System, "SYSTEM"), (Speaker::Tool, "TOOL_RESULT")];
/// How many messages are given where nothing is said.
const USUAL_MESSAGES: usize = 10;
/// How messages are told where nothing is said.
const USUAL_TEMPLATE: &str = "{% for message in chat_history %}{{ message.message_type }} >> {{ message.content }}\
                              {% if not loop.last %}\n{% endif %}{% endfor %}";
/// What the prompt of a node may say beside what every prompt may.
const PROMPT_FIELDS: &[&str] = &["response_format"];

impl<'c> Lowering<'c> {
    /// A node that gives messages of the conversation.
    pub(super) fn history_node(&mut self, site: &Site<'_, 'c>) -> Option<Node> {
        let component = site.component;
        let mut words = Vec::new();
        match component.value("message_types") {
            Some(Value::List(listed)) => {
                for word in listed.iter().filter_map(Value::as_text) {
                    let Some(known) = WORDS.iter().find(|(_, known)| *known == word) else {
                        let all = WORDS.iter().map(|(_, word)| format!("`{word}`")).collect::<Vec<_>>().join(", ");
                        let problem = format!("messages of the type `{word}` are not supported: {all} are");
                        self.refuse_field(component, "message_types", problem);
                        return None;
                    };
                    words.push(*known);
                }
            }
            Some(_) => words.extend(WORDS),
            None => words.extend(&WORDS[..2]),
        }
        let number = |field: &str| match component.value(field) {
            Some(Value::Number(number)) => Some(number.to_f64() as usize),
            _ => None,
        };
        let excerpt = Excerpt {
            conversation: site.frame.keys.conversation.clone(),
            words,
            entry: Key::from("message_type"),
            from_end: component.text("which_messages") != Some("first"),
            skipped: number("offset").unwrap_or(0),
            most: number("n").unwrap_or(USUAL_MESSAGES),
        };
        let list = Expression::Drawn(Box::new(Drawn::Excerpt(excerpt)));
        let value = match (component.value("output_template"), component.text("output_template")) {
            (Some(Value::Null), _) => list,
            (_, text) => {
                let text = text.filter(|text| !text.is_empty()).unwrap_or(USUAL_TEMPLATE);
                if let Some(Err(problem)) = jinja(text) {
                    let problem = format!("`output_template` is not a template that can be rendered: {problem}");
                    self.refuse_field(component, "output_template", problem);
                    return None;
                }
                let given = |name: &str| if name == HISTORY { list.clone() } else { site.input(name) };
                template::rendered(text, true, given)
            }
        };
        Some(site.node(Action::Pass, site.outputs(&|_| value.clone())))
    }

    /// The prompt of a node as several messages; none, with a reason, if it has more.
    pub(super) fn prompt_messages(&mut self, site: &Site<'_, 'c>, object: &Value) -> Option<Vec<PromptPart>> {
        const FIELD: &str = "prompt_template_object";
        let component = site.component;
        if let Some(field) = fields_besides(object, PROMPT_FIELDS).first() {
            let problem = format!("`{field}` of a `{FIELD}` is not supported: `messages` and `response_format` are");
            self.refuse_field(component, FIELD, problem);
            return None;
        }
        if let Some(much) = too_much(object) {
            self.refuse_field(component, FIELD, format!("`{FIELD}` has {much}"));
            return None;
        }
        let mut parts = Vec::new();
        for message in messages(object) {
            match message {
                PromptMessage::Conversation => {
                    let conversation = Expression::Key(site.frame.keys.conversation.clone());
                    parts.push(PromptPart::messages("the conversation", conversation));
                }
                PromptMessage::Said(speaker, texts) => {
                    let text = texts.join("\n");
                    if let Some(Err(problem)) = jinja(&text) {
                        self.refuse_field(
                            component,
                            FIELD,
                            format!("a message of `{FIELD}` is not a valid template: {problem}"),
                        );
                        return None;
                    }
                    let text = template::rendered(&text, true, |name| site.input(name));
                    parts.push(PromptPart::text(format!("`{FIELD}`"), speaker, text));
                }
                PromptMessage::Unknown(problem) => {
                    self.refuse_field(component, FIELD, format!("`{FIELD}`: {problem}"));
                    return None;
                }
            }
        }
        if parts.is_empty() {
            self.refuse_field(component, FIELD, format!("`{FIELD}` has no messages"));
            return None;
        }
        Some(parts)
    }
}
