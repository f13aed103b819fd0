//! From a configuration to a text that says the same.

use std::collections::HashMap;
use std::sync::Arc;

use hotcell_graph::{List, Object, Value};

use super::generated;
use super::later;
use super::model::{Component, ComponentId, Configuration, Field, Piece, Property};
use super::schema::{FieldKind, Schema};
use super::sources::{COMPONENT_TYPE, PLUGIN_NAME, PLUGIN_VERSION, REFERENCE, REFERENCED, VERSION};
use super::versions::Version;
use super::wayflow;

/// How deep what is written may be nested; beyond it, all components stand side by side. Readers have limits too.
const DEEPEST: usize = 64;

/// Writes a configuration as JSON. What is implied is written out, a component that is used more than once stands once,
/// in the innermost component around all its uses, and the version is the first that has all that is used.
///
/// What was handed in beside the configuration stays apart, as that is where secrets are: it is written as the reference
/// that it was, so that the same files have to be handed in again. What is implied is then not written out, because it may
/// come from there, and the version stays, because the files may be written for it.
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
    /// Whether each component is written at all, and not handed in or used only by what is
    is_written: Vec<bool>,
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
        let (is_written, uses, owners) = (vec![false; count], vec![0; count], vec![None; count]);
        let mut writer = Writer { configuration, is_written, uses, owners, dictionaries: HashMap::new(), flat };
        writer.find_uses();
        writer.find_owners();
        for (id, _) in configuration.components().filter(|(id, _)| writer.is_written[id.0 as usize]) {
            let owner = if flat { Some(configuration.root) } else { writer.owners[id.0 as usize] };
            if let Some(owner) = owner.filter(|_| writer.is_referred_to(id)) {
                writer.dictionaries.entry(owner).or_default().push(id);
            }
        }
        writer
    }

    /// The components that are written within a component or referred to there, and not handed in.
    fn children(&self, id: ComponentId) -> Vec<ComponentId> {
        let component = self.configuration.component(id);
        let own = written(component).filter(|child| self.configuration.component(*child).handed_in.is_none());
        own.collect()
    }

    fn find_uses(&mut self) {
        let root = self.configuration.root;
        let mut open: Vec<ComponentId> =
            std::iter::once(root).filter(|root| self.configuration.component(*root).handed_in.is_none()).collect();
        while let Some(user) = open.pop() {
            if std::mem::replace(&mut self.is_written[user.0 as usize], true) {
                continue;
            }
            for child in self.children(user) {
                self.uses[child.0 as usize] += 1;
                open.push(child);
            }
        }
    }

    /// Goes through the components, each after all that use it.
    fn find_owners(&mut self) {
        let mut waiting = self.uses.clone();
        let mut levels = vec![0_usize; waiting.len()];
        let mut ready = vec![self.configuration.root];
        while let Some(user) = ready.pop().filter(|user| self.is_written[user.0 as usize]) {
            for child in self.children(user) {
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
        let mut document = match &self.configuration.component(root).handed_in {
            Some(key) => reference(key),
            None => self.component(root),
        };
        document.insert(VERSION, self.version().name().into());
        Value::Object(document)
    }

    /// The first version that has all that is used, or that of the document where something was handed in beside it.
    fn version(&self) -> Version {
        let version = self.configuration.version;
        if self.configuration.has_parts {
            return version;
        }
        let needs = |component: &Component| {
            let kind = &*component.component_type;
            let fields = component.fields.keys().filter_map(|field| later::field(kind, field)).map(|field| field.since);
            let is_structured = kind == "LlmNode" && !generated::gives_text(component, version);
            let data = component.value("data").filter(|_| matches!(kind, "RemoteTool" | "ApiNode"));
            let is_wide = data.is_some_and(|data| !matches!(data, Value::Object(_) | Value::Null));
            let wide = (is_structured || is_wide).then_some(Version::V25_4_2);
            let schema = Schema::get().component(kind).map(|(_, schema)| schema);
            let is_described =
                |name: &str| schema.is_some_and(|schema| schema.field(name) == Some(&FieldKind::Described));
            let described = component.fields.iter().filter_map(|(name, field)| match field {
                Field::Value { value, .. } if is_described(name) => described_since(value),
                _ => None,
            });
            fields.chain(later::type_since(kind)).chain(wide).chain(described).max()
        };
        let written = self.configuration.components().filter(|(id, _)| self.is_written[id.0 as usize]);
        written.filter_map(|(_, component)| needs(component)).max().unwrap_or(Version::V25_4_1)
    }

    fn component(&self, id: ComponentId) -> Object {
        let component = self.configuration.component(id);
        let schema = Schema::get().component(&component.component_type);
        let schema = schema.filter(|(_, schema)| schema.plugin.is_some() || component.plugin.is_none());
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
        let has = |field: &str| has(field) && !component.left_out.contains(&field);
        for (name, list) in [("inputs", &component.inputs), ("outputs", &component.outputs)] {
            if has(name) {
                written.insert(name, properties(list));
            }
        }
        // A plugin's tool has no branches, its nodes have at least one.
        if has("branches") && (schema.is_some() || !component.branches.is_empty()) {
            let branches: List = component.branches.iter().map(|branch| Value::Text(Arc::clone(branch))).collect();
            written.insert("branches", Value::List(branches));
        }
        for (name, field) in own {
            written.insert(Arc::clone(name), self.field(field));
        }
        for name in wayflow::always_written(&component.component_type) {
            if written.get(name).is_none() {
                written.insert(*name, Value::Null);
            }
        }
        if schema.is_some_and(|(name, _)| Schema::get().is_in(name, "Flow"))
            && component.children("data_flow_connections").is_none()
        {
            written.insert("data_flow_connections", Value::Null);
        }
        for (name, piece) in &component.pieces {
            written.insert(Arc::clone(name), self.piece(piece));
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

    fn piece(&self, piece: &Piece) -> Value {
        match piece {
            Piece::Value(value) => value.clone(),
            Piece::HandedIn(key) => Value::Object(reference(key)),
            Piece::Component(id) => self.child(*id),
            Piece::List(items) => Value::List(items.iter().map(|item| self.piece(item)).collect()),
            Piece::Object(entries) => {
                Value::Object(entries.iter().map(|(key, piece)| (Arc::clone(key), self.piece(piece))).collect())
            }
        }
    }

    fn child(&self, id: ComponentId) -> Value {
        let component = self.configuration.component(id);
        Value::Object(match &component.handed_in {
            Some(key) => reference(key),
            None if self.is_referred_to(id) => reference(&component.id),
            None => self.component(id),
        })
    }

    /// The components that stand in the dictionary of one.
    fn referenced(&self, owner: ComponentId) -> Object {
        let entry =
            |id: &ComponentId| (Arc::clone(&self.configuration.component(*id).id), Value::Object(self.component(*id)));
        self.dictionaries.get(&owner).into_iter().flatten().map(entry).collect()
    }
}

fn reference(key: &Arc<str>) -> Object {
    std::iter::once((Arc::from(REFERENCE), Value::Text(Arc::clone(key)))).collect()
}

/// The components that stand in a component as it is written, handed in or not.
fn written(component: &Component) -> impl Iterator<Item = ComponentId> + '_ {
    let is_own = |name: &Arc<str>| !component.pieces.contains_key(name);
    let in_fields =
        component.fields.iter().filter(move |(name, _)| is_own(name)).flat_map(|(_, field)| field.components());
    in_fields.copied().chain(component.pieces.values().flat_map(Piece::components))
}

/// The first version that has all component types of a value in which components stand as they are written.
fn described_since(value: &Value) -> Option<Version> {
    match value {
        Value::List(items) => items.iter().filter_map(described_since).max(),
        Value::Object(object) => {
            let own = object.get(COMPONENT_TYPE).and_then(Value::as_text).and_then(|name| {
                // The transforms of the reference runtime are kinds of a type that this version brought.
                let is_transform = name.starts_with("Plugin") && name.ends_with("Transform");
                later::type_since(name).or(is_transform.then_some(Version::V26_1_2))
            });
            object.iter().filter_map(|(_, value)| described_since(value)).chain(own).max()
        }
        _ => None,
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
