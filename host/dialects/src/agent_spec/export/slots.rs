//! What flows between nodes: the keys of a state, and what has no key and flows all the same.

use std::fmt;

use hotcell_graph::Key;
use hotcell_graph::formula::{Place, Step};
use hotcell_graph::ir::Node;

use super::{Exporter, title};

/// Something that nodes write and others read. The writer that ran last wins, as it does in a state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Slot {
    /// A key of the state
    Key(Key),
    /// What the node of this id gives, whether the state has it or not
    Answer(Key),
    /// The text of the first message of the conversation
    FirstMessage,
    /// The text of the last one
    LastMessage,
    /// The text of the last one of a model
    LastReply,
}

impl Slot {
    /// A name for an input that it feeds.
    pub(super) fn title(&self) -> String {
        match self {
            Slot::Key(key) => title(key),
            Slot::Answer(node) => title(&format!("{node}_answer")),
            Slot::FirstMessage => "first_message".to_owned(),
            Slot::LastMessage => "last_message".to_owned(),
            Slot::LastReply => "last_reply".to_owned(),
        }
    }

    /// Whether the text that a run is given is what it begins with.
    pub(super) fn begins_with_the_caller(&self) -> bool {
        matches!(self, Slot::FirstMessage | Slot::LastMessage)
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Slot::Key(key) => write!(f, "`{key}`"),
            Slot::Answer(node) => write!(f, "what `{node}` gives"),
            Slot::FirstMessage => f.write_str("the first message of the conversation"),
            Slot::LastMessage => f.write_str("the last message of the conversation"),
            Slot::LastReply => f.write_str("the last reply of a model"),
        }
    }
}

/// Which input of which node reads what.
pub(super) struct Read {
    pub(super) node: String,
    pub(super) input: String,
    pub(super) slot: Slot,
    /// Whether it is wrong that nothing writes it
    pub(super) required: bool,
}

impl Exporter<'_> {
    /// What flows to where a place is read. None, with a problem, if no output gives what is there.
    pub(super) fn slot(&mut self, node: &Node, place: &Place, as_text: bool) -> Option<Slot> {
        if self.graph.conversation.as_ref() != Some(&place.root) {
            if place.steps.is_empty() {
                return Some(Slot::Key(place.root.clone()));
            }
            self.problem(node, format!("takes a part of `{}`, and a flow hands over whole values", place.root));
            return None;
        }
        // A message is its own text where one is needed.
        let message = match &place.steps[..] {
            [message] if as_text => Some(message),
            [message, Step::Entry(entry)] if &**entry == "content" => Some(message),
            _ => None,
        };
        match message {
            Some(Step::First) => Some(Slot::FirstMessage),
            Some(Step::Last) => Some(Slot::LastMessage),
            _ => {
                self.problem(
                    node,
                    "looks into the conversation, of which a flow has the texts of the first and the last message only",
                );
                None
            }
        }
    }

    /// Whether every run begins with a value of a key.
    pub(super) fn is_given(&self, key: &Key) -> bool {
        let graph = self.graph;
        graph.input_key.as_ref() == Some(key)
            || graph.variables.iter().any(|variable| variable.name == *key)
            || graph.initial_state.iter().any(|(known, _)| known == key)
    }

    pub(super) fn fed(&mut self, slot: Slot, by: &str, output: &str) {
        self.writers.entry(slot).or_default().push((by.to_owned(), output.to_owned()));
    }

    pub(super) fn written(&mut self, node: &Node, key: &Key, by: &str, output: &str) {
        if self.graph.reducers.contains_key(key) {
            self.problem(
                node,
                format!("combines what it writes with the value of `{key}`, and a flow replaces values"),
            );
        }
        self.fed(Slot::Key(key.clone()), by, output);
    }

    pub(super) fn read(&mut self, node: &str, input: &str, slot: Slot) {
        self.readers.push(Read { node: node.to_owned(), input: input.to_owned(), slot, required: true });
    }
}
