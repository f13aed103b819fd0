//! What nodes write: the answer of an action by its own output, everything else by a node that only hands values over.

use hotcell_graph::formula::{Plain, Step};
use hotcell_graph::ir::{Expression, Node, SpreadAction, Update};
use hotcell_graph::{Key, Value};
use serde_json::{Value as Json, json};

use super::prompt::Inputs;
use super::slots::Slot;
use super::values::{plain, single};
use super::{Exporter, Target, component, control_edge, data_edge, free, title};
use crate::agent_spec::generated::NEXT;

/// What the action of a node gives, and by which output.
pub(super) struct Answer<'a> {
    /// The name under which updates see it
    pub(super) bind: &'a str,
    pub(super) output: &'a str,
    /// Whether it is a message, of which the output is the text
    pub(super) is_message: bool,
    /// What it is once it is added to a conversation
    pub(super) said: &'a [Slot],
}

impl Answer<'_> {
    /// Whether this is what the output gives.
    fn is_given_by(&self, plain: &Plain) -> bool {
        let Plain::Place(place) = plain else { return false };
        let is_output = match &place.steps[..] {
            [] => !self.is_message,
            [Step::Entry(entry)] => self.is_message && &**entry == "content",
            _ => false,
        };
        is_output && &*place.root == self.bind
    }
}

/// Whether this is what an action gave under this name, as one message.
pub(super) fn is_message(value: &Plain, bind: &str) -> bool {
    match value {
        Plain::Place(place) => &*place.root == bind && place.steps.is_empty(),
        Plain::List(items) => matches!(&items[..], [only] if is_message(only, bind)),
        _ => false,
    }
}

/// Where a value comes from.
enum Given {
    Fixed(Json),
    From(Slot),
}

impl<'g> Exporter<'g> {
    /// Notes what the answer of a node feeds, and gives the node that is left when all is written.
    pub(super) fn writes(&mut self, node: &'g Node, answer: &Answer<'_>) -> String {
        let conversation = self.graph.conversation.as_ref();
        let (said, others): (Vec<&Update>, Vec<&Update>) =
            node.updates.iter().partition(|update| Some(&update.key) == conversation);
        for update in &said {
            let is_answer = match &update.value {
                Expression::Answer(bind) => &**bind == answer.bind,
                value => plain(value).is_some_and(|value| is_message(&value, answer.bind)),
            };
            if answer.said.is_empty() || !is_answer {
                self.problem(node, "adds something else to the conversation than what it got");
            }
            for slot in answer.said {
                self.fed(slot.clone(), &node.id, answer.output);
            }
        }
        let values: Vec<Option<Plain>> = others.iter().map(|update| plain(&update.value)).collect();
        let is_answer = |value: &Option<Plain>| value.as_ref().is_some_and(|value| answer.is_given_by(value));
        if values.iter().all(is_answer) {
            for update in others {
                self.written(node, &update.key, &node.id, answer.output);
            }
            return node.id.to_string();
        }
        let looks_back = |value: &Plain| matches!(value, Plain::Place(place) if Some(&place.root) == conversation);
        if !said.is_empty() && values.iter().flatten().any(looks_back) {
            self.problem(
                node,
                "looks into the conversation as it is before it adds to it, and a flow would look later",
            );
        }
        let mut entries = Vec::new();
        for (update, value) in others.into_iter().zip(values) {
            self.leniency(node, update, answer.bind);
            let given = match is_answer(&value) {
                true => Some(Given::From(self.answer_of(node, answer.output))),
                false => self.given(node, &update.key, value),
            };
            entries.push((update.key.clone(), given));
        }
        let id = self.fresh(&format!("{}_writes", node.id));
        self.assign(node, &id, entries);
        self.control.push((node.id.to_string(), None, Target::Made(id.clone())));
        id
    }

    /// What a node gives, whether the state has it or not.
    pub(super) fn answer_of(&mut self, node: &Node, output: &str) -> Slot {
        let slot = Slot::Answer(node.id.clone());
        if !self.writers.contains_key(&slot) {
            self.fed(slot.clone(), &node.id, output);
        }
        slot
    }

    /// A node that only writes.
    pub(super) fn set(&mut self, node: &'g Node) -> String {
        let id = node.id.to_string();
        self.update(node, &id);
        id
    }

    /// The updates of a node as a node of this id.
    pub(super) fn update(&mut self, node: &'g Node, id: &str) {
        for update in &node.updates {
            self.leniency(node, update, "");
        }
        let values = node.updates.iter().map(|update| (update.key.clone(), plain(&update.value))).collect();
        self.assign_values(node, id, values);
    }

    /// What a template makes of a value that is missing, a flow does not.
    fn leniency(&mut self, node: &Node, update: &Update, bind: &str) {
        let Expression::Lenient(template) = &update.value else { return };
        let Some(key) = single(template).filter(|key| &**key != bind) else { return };
        if !self.is_given(&key) {
            self.difference(node, &format!("writes an empty text if `{key}` is missing, and a flow fails there"));
        }
    }

    /// A node that writes the entries of an object.
    pub(super) fn spread(&mut self, node: &'g Node, spread: &SpreadAction) -> String {
        let values = match plain(&spread.value) {
            Some(Plain::Object(entries)) => entries.into_iter().map(|(key, value)| (key, Some(value))).collect(),
            Some(Plain::Value(Value::Object(entries))) => {
                entries.iter().map(|(key, value)| (key.clone(), Some(Plain::Value(value.clone())))).collect()
            }
            _ => {
                self.problem(node, "computes what it writes, and a configuration contains no code");
                Vec::new()
            }
        };
        self.assign_values(node, &node.id, values);
        node.id.to_string()
    }

    fn assign_values(&mut self, node: &Node, id: &str, values: Vec<(Key, Option<Plain>)>) {
        let mut entries = Vec::new();
        for (key, value) in values {
            let given = self.given(node, &key, value);
            entries.push((key, given));
        }
        self.assign(node, id, entries);
    }

    /// Where the value of a key comes from; none, with a problem, if a flow cannot say that.
    fn given(&mut self, node: &Node, key: &Key, value: Option<Plain>) -> Option<Given> {
        if self.graph.conversation.as_ref() == Some(key) {
            self.problem(node, "adds messages to the conversation that nobody wrote, and no node does that");
            return None;
        }
        match value {
            Some(Plain::Value(value)) => Some(Given::Fixed(Json::from(&value))),
            Some(Plain::Place(place)) => self.slot(node, &place, false).map(Given::From),
            _ => {
                self.problem(node, format!("computes `{key}`, and a flow hands over values as they are"));
                None
            }
        }
    }

    /// A node that hands values over: a subflow whose end has them as inputs, fixed ones as defaults. All are read before
    /// the first is written, as it is with updates.
    fn assign(&mut self, node: &Node, id: &str, entries: Vec<(Key, Option<Given>)>) {
        let (start, end) = (self.fresh(&format!("{id}_start")), self.fresh(&format!("{id}_end")));
        let mut inputs = Inputs::default();
        let (mut names, mut ends, mut edges): (Vec<String>, Vec<Json>, Vec<Json>) = Default::default();
        for (key, given) in entries {
            // What a flow cannot say was told.
            let Some(given) = given else { continue };
            let name = free(&title(&key), |name| names.iter().any(|known| known == name));
            let mut property = json!({"title": name});
            match given {
                Given::Fixed(value) => property["default"] = value,
                Given::From(slot) => edges.push(data_edge(&start, &inputs.name(slot), &end, &name)),
            }
            self.written(node, &key, id, &name);
            ends.push(property);
            names.push(name);
        }
        let outputs: Vec<Json> = names.iter().map(|name| json!({"title": name})).collect();
        let read = inputs.values();
        let nodes = vec![
            component("StartNode", &start, json!({"inputs": read, "outputs": read, "branches": [NEXT]})),
            component("EndNode", &end, json!({"inputs": ends, "outputs": ends, "branches": []})),
        ];
        let control = vec![control_edge(&start, None, &end)];
        let subflow = self.subflow(&format!("{id}_values"), (&read, &outputs), nodes, control, edges);
        self.nodes.push(component(
            "FlowNode",
            id,
            json!({"inputs": read, "outputs": outputs, "branches": [NEXT], "subflow": subflow}),
        ));
        self.reads(id, inputs);
    }
}
