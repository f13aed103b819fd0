//! What an agent's model is told of a conversation in fewer words (`transforms`).

use hotcell_graph::ir::{AgentLoop, Condense, Condensed, Expression, Retry};
use hotcell_graph::{Key, Value};

use super::{Lowering, site, template};
use crate::agent_spec::model::{Component, ComponentId};
use crate::agent_spec::placeholders::{Piece, pieces};

/// What the specification says for fields that are left out.
struct Defaults {
    instructions: &'static str,
    /// The field with the text in which a summary is told, and that text
    template: (&'static str, &'static str),
}

const MESSAGE: Defaults = Defaults {
    instructions: "Please make a summary of this message. Include relevant information and keep it short. Your response will \
                   replace the message, so just output the summary directly, no introduction needed.",
    template: ("summarized_message_template", "Summarized message: {{summary}}"),
};
const CONVERSATION: Defaults = Defaults {
    instructions: "Please make a summary of this conversation. Include relevant information and keep it short. Your response \
                   will replace the messages, so just output the summary directly, no introduction needed.",
    template: ("summarized_conversation_template", "Summarized conversation: {{summary}}"),
};
/// The fields of limits, and their defaults.
const LONGEST: (&str, usize) = ("max_message_size", 20_000);
const MOST: (&str, usize) = ("max_num_messages", 50);
const KEPT: (&str, usize) = ("min_num_messages", 10);
const MOST_CHARACTERS: &str = "max_num_characters";

impl<'c> Lowering<'c> {
    /// The transforms of an agent, in their order.
    pub(super) fn transforms(&mut self, agent: &'c Component) -> Vec<Condense> {
        let listed = agent.children("transforms").unwrap_or_default();
        listed.iter().filter_map(|id| self.transform(agent, *id)).collect()
    }

    fn transform(&mut self, agent: &Component, id: ComponentId) -> Option<Condense> {
        let transform = self.component(id);
        let (defaults, what) = match &*transform.component_type {
            "MessageSummarizationTransform" => {
                (MESSAGE, Condensed::Messages { longest: self.limit(transform, LONGEST)? })
            }
            "ConversationSummarizationTransform" => (CONVERSATION, self.conversation(transform)?),
            kind => {
                self.refuse(transform, format!("`{kind}` in `transforms` cannot be run"));
                return None;
            }
        };
        if let Some(datastore) = transform.child("datastore").map(|datastore| self.component(datastore))
            && &*datastore.component_type != "InMemoryCollectionDatastore"
        {
            let problem = format!(
                "summaries are kept with the run, not in a `{}`: leave `datastore` out of `{}`",
                datastore.component_type, transform.shown
            );
            self.refuse(datastore, problem);
        }
        let llm = transform.child("llm")?;
        let settings = self.model(llm);
        let retry = self.retry(self.component(llm));
        let retry = retry.unwrap_or(Retry { attempts: site::ATTEMPTS, ..Retry::default() });
        let (field, default) = defaults.template;
        let told = self.told(transform, field, default);
        let instructions = transform.text("summarization_instructions").unwrap_or(defaults.instructions).to_owned();
        let by = Box::new(AgentLoop { settings, retry, needs_text: true, ..AgentLoop::default() }.request());
        Some(Condense { what, by, instructions, told, key: Key::from(format!("({}/{})", agent.id, transform.id)) })
    }

    fn conversation(&mut self, transform: &Component) -> Option<Condensed> {
        let (most, kept) = (self.limit(transform, MOST)?, self.limit(transform, KEPT)?);
        let given = |field: &str| transform.value(field);
        let most_messages = (given(MOST.0) != Some(&Value::Null)).then_some(most);
        let most_characters = match given(MOST_CHARACTERS) {
            None | Some(Value::Null) => None,
            Some(_) => Some(self.limit(transform, (MOST_CHARACTERS, 0))?),
        };
        if let Some(most) = most_messages.filter(|most| *most < kept) {
            let problem = format!("`{}` ({kept}) is more than `{}` ({most})", KEPT.0, MOST.0);
            self.refuse_field(transform, KEPT.0, problem);
        }
        Some(Condensed::Conversation { most_messages, most_characters, kept })
    }

    /// A limit, which is at least one.
    fn limit(&mut self, transform: &Component, (field, default): (&str, usize)) -> Option<usize> {
        match transform.value(field) {
            Some(Value::Number(number)) if number.to_f64() >= 1.0 => Some(number.to_f64() as usize),
            Some(number @ Value::Number(_)) => {
                self.refuse_field(transform, field, format!("`{field}` is {number} and has to be 1 or more"));
                None
            }
            _ => Some(default),
        }
    }

    /// The text in which a summary is told.
    fn told(&mut self, transform: &Component, field: &str, default: &str) -> Expression {
        let text = transform.text(field).unwrap_or(default);
        let other = pieces(text).find_map(|piece| match piece {
            Piece::Name(name) if name != Condense::SUMMARY => Some(name.to_owned()),
            _ => None,
        });
        if let Some(name) = other {
            let problem = format!("`{field}` names `{{{{{name}}}}}`, and there is nothing in it but `{{{{summary}}}}`");
            self.refuse_field(transform, field, problem);
        }
        template::rendered(text, self.surroundings.renders_jinja(), |name| Expression::Key(Key::from(name)))
    }
}
