//! A configuration as the rest of the front end sees it: every reference followed, every property typed, every list of
//! inputs, outputs and branches complete.

use std::sync::Arc;

use hotcell_graph::diagnostic::Span;
use hotcell_graph::types::Type;
use hotcell_graph::{List, Object, Value};
use indexmap::IndexMap;

use super::versions::Version;

/// A checked configuration.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// The version that its text names, or that it has for want of one
    pub version: Version,
    /// The component that the text describes
    pub root: ComponentId,
    /// Whether something was handed in beside the document
    pub has_parts: bool,
    components: Vec<Component>,
}

/// The place of a component in its configuration. Two references to one component have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ComponentId(pub(super) u32);

/// A component.
#[derive(Clone, Debug)]
pub struct Component {
    /// Its `component_type`
    pub component_type: Arc<str>,
    /// Its `id`; one that has none written gets one that is unique in the configuration
    pub id: Arc<str>,
    /// Whether the id is in the text
    pub id_is_written: bool,
    /// Its `name`
    pub name: Arc<str>,
    /// What it is called where people read it, unique in the configuration: its id, or its name where the id is a UUID
    pub shown: Arc<str>,
    /// Its other fields in the order of the text, references followed; what is `null` in the text is left out, except
    /// where that is not the same as leaving it out
    pub fields: IndexMap<Arc<str>, Field>,
    /// Its inputs, declared or inferred; empty for components that have none
    pub inputs: Vec<Property>,
    /// Its outputs, declared or inferred
    pub outputs: Vec<Property>,
    /// The branches of a node, declared or inferred
    pub branches: Vec<Arc<str>>,
    /// The plugin that provides its type
    pub plugin: Option<Plugin>,
    /// The key by which the document refers to it, if it does and this was handed in beside it
    pub handed_in: Option<Arc<str>>,
    /// How members are written of whose values a part was handed in or is a component
    pub pieces: IndexMap<Arc<str>, Piece>,
    /// The members (`inputs`, `outputs`, `branches`) that are implied, perhaps by something that was handed in, and are
    /// therefore implied again by what is written
    pub left_out: Vec<&'static str>,
    /// Where it is written
    pub span: Span,
}

/// A value as it stands in a document, where that is not the value itself.
#[derive(Clone, Debug)]
pub enum Piece {
    /// It is
    Value(Value),
    /// What was handed in by this key
    HandedIn(Arc<str>),
    /// A component
    Component(ComponentId),
    /// A list of such
    List(Vec<Piece>),
    /// An object of such
    Object(Vec<(Arc<str>, Piece)>),
}

/// What a field holds. `inputs`, `outputs` and `branches` are no fields: they are members of [`Component`].
#[derive(Clone, Debug)]
pub enum Field {
    /// JSON: plain, or of a plugin's component with other components in it, as they are written, references followed
    Value {
        /// The value
        value: Value,
        /// Where it is written
        span: Span,
    },
    /// A component
    Component(ComponentId),
    /// A list of components
    Components(Vec<ComponentId>),
}

/// An input or output.
#[derive(Clone, Debug)]
pub struct Property {
    /// Its name
    pub title: Arc<str>,
    /// Its type
    pub ty: Arc<Type>,
    /// Its value where nothing else gives one
    pub default: Option<Value>,
    /// Its JSON schema as it is written, title included
    pub schema: Value,
    /// Where it is written, or where the component is from which it is inferred
    pub span: Span,
}

/// The plugin that provides a component's type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plugin {
    /// Its name
    pub name: Arc<str>,
    /// Its version
    pub version: Arc<str>,
}

impl Configuration {
    /// The component of an id of this configuration.
    pub fn component(&self, id: ComponentId) -> &Component {
        &self.components[id.0 as usize]
    }

    /// All components, each once, in the order in which they are written.
    pub fn components(&self) -> impl Iterator<Item = (ComponentId, &Component)> {
        self.components.iter().enumerate().map(|(index, component)| (ComponentId(index as u32), component))
    }

    pub(super) fn new(version: Version, root: ComponentId, has_parts: bool, components: Vec<Component>) -> Self {
        Configuration { version, root, has_parts, components }
    }
}

impl Field {
    /// The components that it holds.
    pub(super) fn components(&self) -> &[ComponentId] {
        match self {
            Field::Component(id) => std::slice::from_ref(id),
            Field::Components(ids) => ids,
            Field::Value { .. } => &[],
        }
    }
}

impl Piece {
    /// A list: a value if all its items are.
    pub(super) fn of_list(items: Vec<Piece>) -> Self {
        let values: Option<List> = items.iter().map(|item| item.value().cloned()).collect();
        values.map_or(Piece::List(items), |values| Piece::Value(Value::List(values)))
    }

    /// An object: a value if all its entries are.
    pub(super) fn of_object(entries: Vec<(Arc<str>, Piece)>) -> Self {
        let values: Option<Object> =
            entries.iter().map(|(key, piece)| Some((Arc::clone(key), piece.value()?.clone()))).collect();
        values.map_or(Piece::Object(entries), |values| Piece::Value(Value::Object(values)))
    }

    fn value(&self) -> Option<&Value> {
        match self {
            Piece::Value(value) => Some(value),
            _ => None,
        }
    }

    /// The components in it.
    pub(super) fn components(&self) -> Vec<ComponentId> {
        match self {
            Piece::Value(_) | Piece::HandedIn(_) => Vec::new(),
            Piece::Component(id) => vec![*id],
            Piece::List(items) => items.iter().flat_map(Piece::components).collect(),
            Piece::Object(entries) => entries.iter().flat_map(|(_, piece)| piece.components()).collect(),
        }
    }

    /// Gives each component in it another id.
    pub(super) fn renumber(&mut self, renumbered: &impl Fn(&mut ComponentId)) {
        match self {
            Piece::Value(_) | Piece::HandedIn(_) => {}
            Piece::Component(id) => renumbered(id),
            Piece::List(items) => items.iter_mut().for_each(|item| item.renumber(renumbered)),
            Piece::Object(entries) => entries.iter_mut().for_each(|(_, piece)| piece.renumber(renumbered)),
        }
    }
}

impl Component {
    /// The text of a field that holds one.
    pub fn text(&self, field: &str) -> Option<&str> {
        self.value(field).and_then(Value::as_text)
    }

    /// The value of a field that holds plain JSON.
    pub fn value(&self, field: &str) -> Option<&Value> {
        match self.fields.get(field)? {
            Field::Value { value, .. } => Some(value),
            _ => None,
        }
    }

    /// The component that a field holds.
    pub fn child(&self, field: &str) -> Option<ComponentId> {
        match self.fields.get(field)? {
            Field::Component(id) => Some(*id),
            _ => None,
        }
    }

    /// The components of a field that holds a list of them; none if the field is left out.
    pub fn children(&self, field: &str) -> Option<&[ComponentId]> {
        match self.fields.get(field)? {
            Field::Components(ids) => Some(ids),
            _ => None,
        }
    }

    /// Where a field is written, or the component if it is a component or left out.
    pub fn span_of(&self, field: &str) -> &Span {
        match self.fields.get(field) {
            Some(Field::Value { span, .. }) => span,
            _ => &self.span,
        }
    }

    /// The input of that name.
    pub fn input(&self, title: &str) -> Option<&Property> {
        self.inputs.iter().find(|property| &*property.title == title)
    }

    /// The output of that name.
    pub fn output(&self, title: &str) -> Option<&Property> {
        self.outputs.iter().find(|property| &*property.title == title)
    }
}
