//! Where the value of an input comes from, and where that of an output goes.

use std::collections::{HashMap, HashSet};

use hotcell_graph::ir::{Expression, Typed, Update};
use hotcell_graph::types::Type;
use hotcell_graph::{Key, Value};

use crate::agent_spec::model::{Component, ComponentId, Configuration, Property};

/// The state keys of a flow.
pub(super) struct DataFlow {
    /// Whether a name is a key
    by_name: bool,
    outputs: HashMap<(ComponentId, Key), Key>,
    /// The keys of inputs; an input without any is fed by nothing
    inputs: HashMap<(ComponentId, Key), Key>,
    /// Inputs that an output feeds beside others
    shared: HashMap<(ComponentId, Key), Vec<Key>>,
    /// The types of what feeds an input
    sources: HashMap<(ComponentId, Key), Vec<std::sync::Arc<Type>>>,
}

/// A variable of a flow.
pub(super) struct Variable {
    /// What it holds
    pub(super) property: Property,
    /// The state key under which it is
    pub(super) key: Key,
}

impl Variable {
    /// The state before the first node: its default, if it has one.
    pub(super) fn initial(&self) -> Option<(Key, Value)> {
        Some((self.key.clone(), self.property.default.clone()?))
    }
}

/// The value of a property of its type, with its default.
pub(super) fn typed(property: &Property, what: &str, value: Expression) -> Expression {
    Expression::Typed(Box::new(Typed {
        value,
        default: property.default.clone(),
        to: property.ty.clone(),
        what: format!("{what} `{}`", property.title),
    }))
}

impl DataFlow {
    /// The data flow of a flow. `taken` are keys that have another meaning.
    pub(super) fn of(configuration: &Configuration, flow: &Component, taken: &[Key]) -> Self {
        let mut this = DataFlow {
            by_name: flow.children("data_flow_connections").is_none(),
            outputs: HashMap::new(),
            inputs: HashMap::new(),
            shared: HashMap::new(),
            sources: HashMap::new(),
        };
        if this.by_name {
            this.note_names(configuration, flow);
        } else {
            this.note_edges(configuration, flow, taken);
        }
        this
    }

    fn note_names(&mut self, configuration: &Configuration, flow: &Component) {
        let nodes = flow.children("nodes").unwrap_or_default();
        let mut written: HashMap<&Key, Vec<std::sync::Arc<Type>>> = HashMap::new();
        for id in nodes {
            for output in &configuration.component(*id).outputs {
                written.entry(&output.title).or_default().push(output.ty.clone());
            }
        }
        for id in nodes {
            for input in &configuration.component(*id).inputs {
                let types = written.get(&input.title).cloned().unwrap_or_default();
                self.sources.insert((*id, input.title.clone()), types);
            }
        }
    }

    fn note_edges(&mut self, configuration: &Configuration, flow: &Component, taken: &[Key]) {
        let mut used: HashSet<Key> = taken.iter().cloned().collect();
        used.extend(flow.inputs.iter().map(|input| input.title.clone()));
        let mut key = |node: ComponentId, title: &str| {
            let mut key = format!("{}.{title}", configuration.component(node).shown);
            while used.contains(key.as_str()) {
                key.push('\'');
            }
            let key = Key::from(key);
            used.insert(key.clone());
            key
        };
        for id in flow.children("nodes").unwrap_or_default() {
            for output in &configuration.component(*id).outputs {
                let slot = (*id, output.title.clone());
                self.outputs.entry(slot).or_insert_with(|| key(*id, &output.title));
            }
        }
        let mut fed: HashMap<(ComponentId, Key), Vec<(ComponentId, Key)>> = HashMap::new();
        for id in flow.children("data_flow_connections").unwrap_or_default() {
            let edge = configuration.component(*id);
            let end = |node: &str, name: &str| Some((edge.child(node)?, Key::from(edge.text(name)?)));
            let (Some(source), Some(destination)) =
                (end("source_node", "source_output"), end("destination_node", "destination_input"))
            else {
                continue;
            };
            if let Some(output) = configuration.component(source.0).output(&source.1) {
                self.sources.entry(destination.clone()).or_default().push(output.ty.clone());
            }
            let sources = fed.entry(destination).or_default();
            if !sources.contains(&source) {
                sources.push(source);
            }
        }
        for (destination, sources) in fed {
            let only = if let [only] = &sources[..] { self.outputs.get(only).cloned() } else { None };
            let feeds = only.is_none();
            let slot = only.unwrap_or_else(|| key(destination.0, &destination.1));
            self.inputs.insert(destination, slot.clone());
            for source in sources.into_iter().filter(|_| feeds) {
                self.shared.entry(source).or_default().push(slot.clone());
            }
        }
    }

    /// The value of an input as it is, without its default and type.
    pub(super) fn raw(&self, node: ComponentId, title: &Key) -> Option<Expression> {
        if self.by_name {
            return Some(Expression::Key(title.clone()));
        }
        self.inputs.get(&(node, title.clone())).map(|key| Expression::Key(key.clone()))
    }

    /// The value of an input.
    pub(super) fn input(&self, node: ComponentId, property: &Property) -> Expression {
        // An input that nothing feeds has its default.
        let nothing = || Expression::Key("".into());
        typed(property, "input", self.raw(node, &property.title).unwrap_or_else(nothing))
    }

    /// The types of what feeds an input.
    pub(super) fn sources(&self, node: ComponentId, title: &Key) -> &[std::sync::Arc<Type>] {
        self.sources.get(&(node, title.clone())).map_or(&[], Vec::as_slice)
    }

    /// What is written when an output has this value.
    pub(super) fn output(&self, node: ComponentId, property: &Property, value: Expression) -> Vec<Update> {
        let value = typed(property, "output", value);
        if self.by_name {
            return vec![Update { key: property.title.clone(), value }];
        }
        let slot = (node, property.title.clone());
        let own = self.outputs.get(&slot).into_iter();
        let keys = own.chain(self.shared.get(&slot).into_iter().flatten());
        keys.map(|key| Update { key: key.clone(), value: value.clone() }).collect()
    }
}
