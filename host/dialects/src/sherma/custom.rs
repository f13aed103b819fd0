//! `custom` nodes: the language says nothing of what they do. Here a node type of a plugin does it.

use std::sync::Arc;

use hotcell_graph::ir::{Action, Expression, PluginNodeAction, PluginNodeKind};
use hotcell_graph::json_schema::JsonSchema;
use hotcell_graph::{Key, Object, Template, Value};

use super::schema::{Agent, Custom, Node};
use crate::document::Need::Optional;
use crate::document::{Fields, Reader, SourceText};
use crate::surroundings::{PluginNodeState, Surroundings};

/// The key of the metadata that names the node type.
const NAME: &str = "node";

/// Reads what a node stands for: the node type that its metadata name, or else the only one with the node's own name.
pub(super) fn read(fields: &mut Fields<'_, '_>, node: &SourceText, surroundings: &dyn Surroundings) -> Option<Custom> {
    let reader = fields.reader();
    let metadata = fields.map("metadata", Optional).map(|(entries, _)| entries).unwrap_or_default();
    let wanted = match metadata.iter().find(|entry| &*entry.key == NAME) {
        Some(entry) => Some(reader.text(&entry.value, || format!("`{NAME}` of `metadata`"), fields.owner())?),
        None => None,
    };
    let place = wanted.as_ref().map_or(&node.span, |wanted| &wanted.span);
    let refuse = |message: String, help: String| {
        reader.report(fields.error(message, place).help(help));
        None
    };
    let plugin_node = match &wanted {
        Some(wanted) => wanted.to_string(),
        None => match &surroundings.node_types(node)[..] {
            [one] => one.clone(),
            [] => {
                let message =
                    format!("nothing says what the node `{}` does: no plugin has a node type of this name", &**node);
                return refuse(message, format!("name one: `args: {{metadata: {{{NAME}: plugin/type}}}}`"));
            }
            several => {
                let message = format!("several plugins have a node type `{}`", &**node);
                let help = format!("say which is meant, `metadata: {{{NAME}: ...}}`: `{}`", several.join("` or `"));
                return refuse(message, help);
            }
        },
    };
    let offered = match surroundings.plugin_node(&plugin_node) {
        PluginNodeState::Usable(offered) => offered,
        PluginNodeState::Unusable(reason) => return refuse(reason, "see `hotcell plugin list`".to_owned()),
        PluginNodeState::Missing(near) => {
            let help = near.map_or_else(
                || "put the component of the plugin into the plugins folder".to_owned(),
                |near| format!("did you mean `{near}`?"),
            );
            return refuse(format!("no plugin offers the node type `{plugin_node}`"), help);
        }
    };
    if offered.kind != PluginNodeKind::Node {
        return refuse(
            format!("`{plugin_node}` is not a node type"),
            "a `custom` node takes a node type of a plugin".to_owned(),
        );
    }
    if !offered.branches.is_empty() {
        let message = format!(
            "`{plugin_node}` leaves by branches (`{}`), which edges cannot follow",
            offered.branches.join("`, `")
        );
        return refuse(message, "use a node type without branches, and conditions on what it writes".to_owned());
    }
    let entries = metadata.iter().filter(|entry| &*entry.key != NAME);
    let metadata = Value::Object(entries.map(|entry| (Arc::clone(&entry.key), entry.value.to_value())).collect());
    let schema = serde_json::Value::from(&offered.with);
    let given = serde_json::Value::from(&metadata);
    if let Ok(schema) = JsonSchema::compile(&schema)
        && let Some(problem) = schema.problems(&given, 1).first()
    {
        let message = format!("the `metadata` of the node `{}` do not fit `{plugin_node}`: {problem}", &**node);
        return refuse(message, "see `hotcell plugin inspect` for what it takes".to_owned());
    }
    Some(Custom { plugin_node, offered, metadata })
}

/// What the node does: it is given the fields of the state that it declares as inputs, and writes what it answers.
pub(super) fn lower(node: &Node, custom: &Custom, agent: &Agent, reader: &Reader<'_>) -> Option<Action> {
    let is_field = |name: &str| agent.fields.iter().any(|field| &*field.name == name);
    let schema = custom.offered.inputs.as_object();
    let required = schema.and_then(|schema| schema.get("required")).and_then(Value::as_list);
    let missing =
        required.into_iter().flat_map(|names| names.iter()).filter_map(Value::as_text).find(|name| !is_field(name));
    if let Some(name) = missing {
        let message = format!("`{}` needs the input `{name}`, and the state has no such field", custom.plugin_node);
        let error = hotcell_graph::diagnostic::Diagnostic::error(message).at(&node.name.span).node(&*node.name);
        reader.report(error.help(format!("declare `{name}` under `state`")));
        return None;
    }
    let properties = schema.and_then(|schema| schema.get("properties")).and_then(Value::as_object);
    let declared = properties.into_iter().flat_map(Object::iter).map(|(name, _)| name).filter(|name| is_field(name));
    let input = |name: &Key| (name.clone(), Expression::Lenient(Template::parse(&format!("{{{{{name}}}}}"))));
    Some(Action::PluginNode(Box::new(PluginNodeAction {
        plugin_node: custom.plugin_node.clone(),
        kind: PluginNodeKind::Node,
        with: Expression::Value(custom.metadata.clone()),
        inputs: Expression::Object(declared.map(input).collect()),
        branches: Vec::new(),
        bind: "outputs",
        keys: Some(agent.fields.iter().map(|field| Arc::clone(&field.name.value)).collect()),
    })))
}
