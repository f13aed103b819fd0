//! Prompts and messages: texts with placeholders, each of which is an input of its node.

use hotcell_graph::formula::Plain;
use hotcell_graph::ir::{Action, Expression, Node};
use hotcell_graph::{Template, Value};
use serde_json::{Value as Json, json};

use super::slots::Slot;
use super::values::plain;
use super::{Exporter, free};
use crate::agent_spec::placeholders::{self, Piece};

/// A text with placeholders, and what these stand for.
#[derive(Default)]
pub(super) struct Prompt {
    pub(super) text: String,
    pub(super) inputs: Inputs,
}

/// Inputs that are made of what they read.
#[derive(Default)]
pub(super) struct Inputs(pub(super) Vec<(String, Slot)>);

impl Inputs {
    /// The input that reads this.
    pub(super) fn name(&mut self, slot: Slot) -> String {
        if let Some((name, _)) = self.0.iter().find(|(_, known)| *known == slot) {
            return name.clone();
        }
        let name = free(&slot.title(), |name| self.0.iter().any(|(known, _)| known == name));
        self.0.push((name.clone(), slot));
        name
    }

    /// As inputs whose values become texts.
    pub(super) fn texts(&self) -> Vec<Json> {
        self.0.iter().map(|(name, _)| json!({"title": name, "type": "string"})).collect()
    }

    /// As inputs of any type.
    pub(super) fn values(&self) -> Vec<Json> {
        self.0.iter().map(|(name, _)| json!({"title": name})).collect()
    }
}

impl Exporter<'_> {
    /// The prompt or message behind an expression.
    pub(super) fn prompt(&mut self, node: &Node, expression: &Expression) -> Prompt {
        let prompt = self.text(node, expression);
        let parts: Vec<&Slot> =
            prompt.inputs.0.iter().map(|(_, slot)| slot).filter(|slot| self.holds_parts(slot)).collect();
        for slot in parts {
            let what = format!("puts {slot} into a text as compact JSON, and there blanks follow each `,` and `:`");
            self.difference(node, &what);
        }
        prompt
    }

    /// Whether something is known to be a list or an object.
    fn holds_parts(&self, slot: &Slot) -> bool {
        let Slot::Key(key) = slot else { return false };
        let begins = self.graph.initial_state.iter().find(|(known, _)| known == key);
        let collects = |node: &Node| matches!(&node.action, Action::Map(map) if map.of_node().is_some_and(|items| items.collect_into == *key));
        begins.is_some_and(|(_, value)| matches!(value, Value::List(_) | Value::Object(_)))
            || self.graph.nodes().any(|(_, node)| collects(node))
    }

    fn text(&mut self, node: &Node, expression: &Expression) -> Prompt {
        match expression {
            Expression::Value(value) => self.of_template(node, &Template::parse(&value.to_display())),
            Expression::Strict(template) => self.of_template(node, template),
            Expression::Lenient(template) => {
                let prompt = self.of_template(node, template);
                let may_lack = |(_, slot): &(_, Slot)| !matches!(slot, Slot::Key(key) if self.is_given(key));
                if prompt.inputs.0.iter().any(may_lack) {
                    self.problem(node, "allows values of its prompt to be missing, and a placeholder needs its value");
                }
                prompt
            }
            Expression::LastReply { required, .. } => {
                if *required {
                    self.difference(node, "passes over replies without a text, and a flow shows them");
                }
                let mut inputs = Inputs::default();
                let text = format!("{{{{{}}}}}", inputs.name(Slot::LastReply));
                Prompt { text, inputs }
            }
            other => match plain(other) {
                Some(Plain::Joined(parts)) => self.of_parts(node, &parts),
                Some(only) => self.of_parts(node, &[only]),
                None => {
                    self.problem(node, "computes its prompt, and a flow only fills in values");
                    Prompt::default()
                }
            },
        }
    }

    fn of_template(&mut self, node: &Node, template: &Template) -> Prompt {
        let text = template.source();
        let names: Vec<String> = placeholders::names(&text).into_iter().map(str::to_owned).collect();
        for path in template.references().filter(|path| !names.iter().any(|name| name == path.as_str())) {
            let path = path.as_str();
            self.problem(
                node,
                format!("uses `{path}` in its prompt, and a placeholder is a name of letters and digits"),
            );
        }
        for name in names.iter().filter(|name| !template.references().any(|path| path.as_str() == **name)) {
            self.no_placeholder(node, name);
        }
        let inputs = names.into_iter().map(|name| (name.clone(), Slot::Key(name.into()))).collect();
        Prompt { text, inputs: Inputs(inputs) }
    }

    fn no_placeholder(&mut self, node: &Node, name: &str) {
        self.problem(node, format!("has `{{{{{name}}}}}` in its prompt as plain text, and there it is a placeholder"));
    }

    /// A text that is put together of texts and places.
    fn of_parts(&mut self, node: &Node, parts: &[Plain]) -> Prompt {
        let mut prompt = Prompt::default();
        let mut wanted = Vec::new();
        for part in parts {
            match part {
                Plain::Value(value) => prompt.text.push_str(&value.to_display()),
                Plain::Place(place) => {
                    let Some(slot) = self.slot(node, place, true) else { continue };
                    let name = prompt.inputs.name(slot);
                    prompt.text.push_str(&format!("{{{{{name}}}}}"));
                    wanted.push(name);
                }
                _ => self.problem(node, "makes a text of lists or objects, and a flow only fills in values"),
            }
        }
        // Braces of the texts may have become placeholders, alone or together with what is beside them.
        let found: Vec<&str> = placeholders::pieces(&prompt.text)
            .filter_map(|piece| match piece {
                Piece::Name(name) => Some(name),
                Piece::Literal(_) => None,
            })
            .collect();
        if found != wanted {
            let other = found.iter().find(|name| !wanted.iter().any(|wanted| wanted == *name)).or(found.first());
            self.no_placeholder(node, other.copied().unwrap_or_default());
        }
        prompt
    }

    /// The inputs of a node are fed with what they stand for.
    pub(super) fn reads(&mut self, id: &str, inputs: Inputs) {
        for (input, slot) in inputs.0 {
            self.read(id, &input, slot);
        }
    }
}
