//! From a configuration to a text that says the same.

use std::collections::HashMap;
use std::sync::Arc;

use hotcell_graph::types::Type;
use hotcell_graph::{List, Object, Value};

use super::builder::{PLUGIN_NAME, PLUGIN_VERSION};
use super::ids::children;
use super::model::{Component, ComponentId, Configuration, Field, Property};
use super::schema::Schema;
use super::sources::{COMPONENT_TYPE, REFERENCE, REFERENCED, VERSION};
use super::versions::Version;

/// How deep what is written may be nested; beyond it, all components stand side by side. Readers have limits too.
const DEEPEST: usize = 64;

/// Writes a configuration as JSON. What is implied is written out, a component that is used more than once stands once,
/// in the innermost component around all its uses, and the version is the first that has all that is used. What was
/// handed in beside the configuration becomes a part of it, secrets too.
pub fn write(configuration: &Configuration) -> String {
    let nested = Writer::new(configuration, false).document();
    let document = if depth(&nested) > DEEPEST { Writer::new(configuration, true).document() } else { nested };
    // A value has only text keys and finite numbers, so writing it cannot fail.
    let mut text = serde_json::to_string_pretty(&document).expect("a JSON value can always be written");
    text.push('\n');
    text
}

struct Writer<'c> {
    configuration: &'c Configuration,
    /// How often each component is used
    uses: Vec<usize>,
    /// The innermost component around all uses of each
    owners: Vec<Option<ComponentId>>,
    /// The components in the dictionary of each
    dictionaries: HashMap<ComponentId, Vec<ComponentId>>,
    /// Whether all components stand in the dictionary of the root
    flat: bool,
}

impl<'c> Writer<'c> {
    fn new(configuration: &'c Configuration, flat: bool) -> Self {
        let count = configuration.components().count();
        let (uses, owners) = (vec![0; count], vec![None; count]);
        let mut writer = Writer { configuration, uses, owners, dictionaries: HashMap::new(), flat };
        for (_, component) in configuration.components() {
            for child in children(component) {
                writer.uses[child.0 as usize] += 1;
            }
        }
        writer.find_owners();
        for (id, _) in configuration.components() {
            let owner = if flat { Some(configuration.root) } else { writer.owners[id.0 as usize] };
            if let Some(owner) = owner.filter(|_| writer.is_referred_to(id)) {
                writer.dictionaries.entry(owner).or_default().push(id);
            }
        }
        writer
    }

    /// Goes through the components, each after all that use it.
    fn find_owners(&mut self) {
        let mut waiting = self.uses.clone();
        let mut levels = vec![0_usize; waiting.len()];
        let mut ready = vec![self.configuration.root];
        while let Some(user) = ready.pop() {
            for child in children(self.configuration.component(user)) {
                let index = child.0 as usize;
                let owner = match self.owners[index] {
                    Some(known) => self.around_both(known, user, &levels),
                    None => user,
                };
                self.owners[index] = Some(owner);
                waiting[index] -= 1;
                if waiting[index] == 0 {
                    levels[index] = levels[owner.0 as usize] + 1;
                    ready.push(child);
                }
            }
        }
    }

    fn around_both(&self, mut one: ComponentId, mut other: ComponentId, levels: &[usize]) -> ComponentId {
        let level = |id: ComponentId| levels[id.0 as usize];
        while one != other {
            let lower = if level(one) >= level(other) { &mut one } else { &mut other };
            match self.owners[lower.0 as usize] {
                Some(owner) => *lower = owner,
                None => return *lower,
            }
        }
        one
    }

    fn is_referred_to(&self, id: ComponentId) -> bool {
        id != self.configuration.root && (self.flat || self.uses[id.0 as usize] > 1)
    }

    fn document(&self) -> Value {
        let root = self.configuration.root;
        let mut document = self.component(root);
        document.insert(VERSION, self.version().name().into());
        Value::Object(document)
    }

    /// The first version that has all that is used.
    fn version(&self) -> Version {
        let is_structured = |component: &Component| {
            let one_text = matches!(&component.outputs[..], [only] if Type::text().converts_to(&only.ty));
            &*component.component_type == "LlmNode" && !one_text
        };
        let later = self.configuration.components().any(|(_, component)| is_structured(component));
        if later { Version::V25_4_2 } else { Version::V25_4_1 }
    }

    fn component(&self, id: ComponentId) -> Object {
        let component = self.configuration.component(id);
        let schema = Schema::get().component(&component.component_type).filter(|_| component.plugin.is_none());
        let has = |field: &str| schema.is_none_or(|(_, schema)| schema.field(field).is_some());
        let mut written = Object::default();
        written.insert(COMPONENT_TYPE, Value::Text(Arc::clone(&component.component_type)));
        if let Some(plugin) = &component.plugin {
            written.insert(PLUGIN_NAME, Value::Text(Arc::clone(&plugin.name)));
            written.insert(PLUGIN_VERSION, Value::Text(Arc::clone(&plugin.version)));
        }
        written.insert("id", Value::Text(Arc::clone(&component.id)));
        written.insert("name", Value::Text(Arc::clone(&component.name)));
        let (about, own): (Vec<_>, Vec<_>) =
            component.fields.iter().partition(|(name, _)| matches!(&***name, "description" | "metadata"));
        for (name, field) in about {
            written.insert(Arc::clone(name), self.field(field));
        }
        if has("inputs") {
            written.insert("inputs", properties(&component.inputs));
            written.insert("outputs", properties(&component.outputs));
        }
        // A plugin's tool has no branches, its nodes have at least one.
        if has("branches") && (schema.is_some() || !component.branches.is_empty()) {
            let branches: List = component.branches.iter().map(|branch| Value::Text(Arc::clone(branch))).collect();
            written.insert("branches", Value::List(branches));
        }
        for (name, field) in own {
            written.insert(Arc::clone(name), self.field(field));
        }
        if schema.is_some_and(|(name, _)| name == "Flow") && component.children("data_flow_connections").is_none() {
            written.insert("data_flow_connections", Value::Null);
        }
        let referenced = self.referenced(id);
        if !referenced.is_empty() {
            written.insert(REFERENCED, Value::Object(referenced));
        }
        written
    }

    fn field(&self, field: &Field) -> Value {
        match field {
            Field::Value { value, .. } => value.clone(),
            Field::Component(id) => self.child(*id),
            Field::Components(ids) => Value::List(ids.iter().map(|id| self.child(*id)).collect()),
        }
    }

    fn child(&self, id: ComponentId) -> Value {
        if !self.is_referred_to(id) {
            return Value::Object(self.component(id));
        }
        let id = &self.configuration.component(id).id;
        Value::Object(std::iter::once((Arc::from(REFERENCE), Value::Text(Arc::clone(id)))).collect())
    }

    /// The components that stand in the dictionary of one.
    fn referenced(&self, owner: ComponentId) -> Object {
        let entry =
            |id: &ComponentId| (Arc::clone(&self.configuration.component(*id).id), Value::Object(self.component(*id)));
        self.dictionaries.get(&owner).into_iter().flatten().map(entry).collect()
    }
}

fn properties(properties: &[Property]) -> Value {
    Value::List(properties.iter().map(|property| property.schema.clone()).collect())
}

fn depth(value: &Value) -> usize {
    match value {
        Value::List(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        Value::Object(object) => 1 + object.iter().map(|(_, value)| depth(value)).max().unwrap_or_default(),
        _ => 0,
    }
}
