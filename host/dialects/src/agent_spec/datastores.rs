//! The nodes of the reference runtime's plugins that read and write datastores: what follows from their configuration.

use std::sync::Arc;

use hotcell_graph::{Object, Value};
use indexmap::IndexSet;

use super::generated::{Generated, NEXT, list_schema};
use super::model::Component;
use super::placeholders;
use super::properties::{of_schema, text};

/// The input with what is created.
pub(super) const ENTITY: &str = "entity";
/// The input with what is changed.
pub(super) const UPDATE: &str = "update";
/// What a node gives that creates something.
const CREATED: &str = "created_entity";
/// What nodes give that find or change something.
const ENTITIES: &str = "entities";

/// What the configuration of such a node implies; none if a component is no such node.
pub(super) fn generated(component: &Component) -> Option<Generated> {
    let span = &component.span;
    let (given, gives) = match &*component.component_type {
        "PluginDatastoreCreateNode" => (Some(ENTITY), Some((CREATED, object()))),
        "PluginDatastoreListNode" if gives_one(component) => (None, Some((ENTITIES, object()))),
        "PluginDatastoreListNode" => (None, Some((ENTITIES, list_schema(&object(), "")))),
        "PluginDatastoreUpdateNode" => (Some(UPDATE), Some((ENTITIES, list_schema(&object(), "")))),
        "PluginDatastoreDeleteNode" => (None, None),
        _ => return None,
    };
    let given = given.and_then(|name| of_schema(name, &object(), span).ok());
    let inputs = filled_in(component).into_iter().map(|name| text(name, span)).chain(given);
    let outputs = gives.and_then(|(name, schema)| of_schema(name, &schema, span).ok());
    let generated = Generated {
        inputs: Some(inputs.collect()),
        outputs: Some(outputs.into_iter().collect()),
        branches: Some(vec![Arc::from(NEXT)]),
    };
    Some(generated.outside(component))
}

/// Whether a node gives what it finds as it is, and not in a list.
pub(super) fn gives_one(component: &Component) -> bool {
    matches!(component.value("unpack_single_entity_from_list"), Some(Value::Bool(true)))
}

/// The placeholders in what a node says of its collection and of what it looks for there.
pub(super) fn filled_in(component: &Component) -> IndexSet<&str> {
    let mut names = IndexSet::new();
    names.extend(placeholders::names(component.text("collection_name").unwrap_or_default()));
    let wanted = component.value("where").and_then(Value::as_object);
    for (key, value) in wanted.into_iter().flat_map(Object::iter) {
        names.extend(placeholders::names(key));
        names.extend(placeholders::names(value.as_text().unwrap_or_default()));
    }
    names
}

/// The schema of an object with any entries.
fn object() -> Value {
    let any = Value::Object(Object::default());
    let schema = [(Arc::from("type"), Value::from("object")), (Arc::from("additionalProperties"), any)];
    Value::Object(schema.into_iter().collect())
}
