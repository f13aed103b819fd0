//! Nodes whose type a plugin offers: that it is there, and that the node fits what it declares.

use hotcell_graph::diagnostic::Diagnostic;
use hotcell_graph::{Value, closest};

use super::super::schema::{Body, Node, PluginNode, PluginValues};
use super::{Check, list};
use crate::surroundings::{DeclaredNode, PluginNodeState};

pub(super) fn plugin_nodes(check: &Check<'_>) {
    for node in check.nodes() {
        let Body::PluginNode(node_type) = &node.body else { continue };
        let name = &node_type.plugin_node;
        let error = match check.surroundings.plugin_node(name) {
            PluginNodeState::Usable(offered) => {
                fits(check, node, node_type, &offered);
                continue;
            }
            PluginNodeState::Unusable(reason) => check.error(node, reason, &name.span),
            PluginNodeState::Missing(near) => {
                let help = match near {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "put the component of the plugin into the plugins folder".to_owned(),
                };
                check.error(node, format!("no plugin offers the type `{}`", &**name), &name.span).help(help)
            }
        };
        check.reader.report(error);
    }
}

fn fits(check: &Check<'_>, node: &Node, node_type: &PluginNode, offered: &DeclaredNode) {
    for (field, given, schema) in
        [("with", &node_type.with, &offered.with), ("inputs", &node_type.inputs, &offered.inputs)]
    {
        known(check, node, node_type, field, given, schema);
    }
    if let Some(mode) = node_type.mode.as_ref().filter(|mode| !offered.modes.contains(&&***mode)) {
        let message = format!("`{}` has no mode `{}`", &*node_type.plugin_node, &**mode);
        let help = match offered.modes.is_empty() {
            true => "only connectors have modes: leave `mode` out".to_owned(),
            false => format!("it has {}", list(&offered.modes)),
        };
        check.reader.report(check.error(node, message, &mode.span).help(help));
    }
    let branches: Vec<&str> = offered.branches.iter().map(String::as_str).collect();
    for route in &node_type.routes {
        if branches.contains(&&*route.answer.value) {
            continue;
        }
        let message = format!("`{}` has no branch `{}`", &*node_type.plugin_node, route.answer.value);
        let help = match (closest(&route.answer.value, branches.iter().copied()), branches.is_empty()) {
            (Some(near), _) => format!("did you mean `{near}`?"),
            (None, false) => format!("its branches are {}", list(&branches)),
            (None, true) => "it has none: name the following node with `next`".to_owned(),
        };
        check.reader.report(check.error(node, message, &route.answer.span).help(help));
    }
    let open: Vec<&str> = branches
        .iter()
        .copied()
        .filter(|branch| node_type.routes.iter().all(|route| *route.answer.value != **branch))
        .collect();
    if !open.is_empty() && node.next.is_empty() {
        let message = format!("nothing says where node `{}` goes by {}", node.id.value, list(&open));
        let help = "add it to `routes`, or say with `next` where all other branches lead";
        check.reader.report(check.error(node, message, &node_type.plugin_node.span).help(help));
    }
    if node.next.len() > 1 && !branches.is_empty() {
        let message = format!(
            "`{}` leaves by branches, so `next` of node `{}` can only be one node",
            &*node_type.plugin_node, node.id.value
        );
        check.reader.report(check.error(node, message, &node_type.plugin_node.span));
    }
}

/// The names that are given, against those that the plugin declares.
fn known(check: &Check<'_>, node: &Node, node_type: &PluginNode, field: &str, given: &PluginValues, schema: &Value) {
    let schema = schema.as_object();
    let properties = schema.and_then(|schema| schema.get("properties")).and_then(Value::as_object);
    let declared: Vec<&str> = properties.map(|all| all.iter().map(|(key, _)| &**key).collect()).unwrap_or_default();
    let open = match schema.and_then(|schema| schema.get("additionalProperties")) {
        Some(Value::Bool(false)) => false,
        Some(_) => true,
        // A schema that declares nothing says nothing.
        None => declared.is_empty(),
    };
    for (key, _) in given.entries.iter().filter(|(key, _)| !open && !declared.contains(&&*key.value)) {
        let message = format!("`{}` has no `{}` in `{field}`", &*node_type.plugin_node, key.value);
        let help = match closest(&key.value, declared.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if declared.is_empty() => format!("it takes nothing in `{field}`"),
            None => format!("it takes {}", list(&declared)),
        };
        check.reader.report(check.error(node, message, &key.span).help(help));
    }
    let required = schema.and_then(|schema| schema.get("required")).and_then(Value::as_list);
    for name in required.into_iter().flat_map(|names| names.iter()).filter_map(Value::as_text) {
        if given.entries.iter().any(|(key, _)| &*key.value == name) {
            continue;
        }
        let message = format!("`{}` needs `{name}` in `{field}`", &*node_type.plugin_node);
        let error: Diagnostic = check.error(node, message, &node_type.plugin_node.span);
        check.reader.report(error.help(format!("add `{field}: {{ {name}: ... }}`")));
    }
}
