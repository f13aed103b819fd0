//! Declared edges: `next`, `routes`, `on_other` and `fallback`.

use std::collections::HashMap;

use hotcell_graph::closest;
use hotcell_graph::diagnostic::{Severity, Span};

use super::super::schema::{Body, Node, Source};
use super::Check;
use crate::document::SourceText;

/// A declared edge to a node that exists.
pub(super) struct Edge<'a> {
    pub(super) to: usize,
    pub(super) field: &'static str,
    pub(super) span: &'a Span,
}

/// The edges that a node takes part in, whether their targets exist or not. An approval and an end have no `next`.
fn declared(node: &Node) -> Vec<(&'static str, &SourceText)> {
    let mut targets = Vec::new();
    if let Body::Approval(approval) = &node.body {
        targets.extend(approval.routes.iter().map(|route| ("routes", &route.target)));
        targets.extend(approval.on_other.iter().map(|target| ("on_other", target)));
    } else if !matches!(node.body, Body::End(_)) {
        if let Body::PluginNode(plugin_node) = &node.body {
            targets.extend(plugin_node.routes.iter().map(|route| ("routes", &route.target)));
        }
        targets.extend(node.next.iter().map(|target| ("next", target)));
    }
    targets.extend(node.fallback().map(|target| ("fallback", target)));
    targets
}

pub(super) fn edges<'a>(source: &'a Source, ids: &HashMap<&str, usize>) -> Vec<Vec<Edge<'a>>> {
    source
        .nodes
        .iter()
        .map(|node| {
            declared(node)
                .into_iter()
                .filter_map(|(field, target)| {
                    let to = *ids.get(&*target.value)?;
                    Some(Edge { to, field, span: &target.span })
                })
                .collect()
        })
        .collect()
}

pub(super) fn targets_exist(check: &Check<'_>) {
    for node in check.nodes() {
        let mut targets = declared(node);
        if matches!(node.body, Body::Approval(_) | Body::End(_)) {
            // Without meaning there, but a name that is nowhere is a mistake all the same.
            targets.extend(node.next.iter().map(|target| ("next", target)));
            if let Some(span) = &node.next_span {
                let kind = node.body.kind();
                let help = match &node.body {
                    Body::End(_) => "remove it: the run ends here",
                    _ => "remove it: `routes` and `on_other` say where the answer leads",
                };
                let message = format!("`next` has no effect in `{kind}` nodes");
                check.reader.report(check.warning(node, message, span).help(help));
            }
        }
        if let Body::Map(map) = &node.body {
            targets.extend(map.branch.iter().map(|target| ("branch", target)));
        }
        for (field, target) in targets {
            if check.find(target).is_some() || check.reader.is_full_of(Severity::Error) {
                continue;
            }
            let message =
                format!("`{field}` of node `{}` names `{}`, and there is no such node", node.id.value, &**target);
            let error = check.error(node, message, &target.span).help(no_such_node(check, target));
            check.reader.report(error);
        }
    }
}

/// The documented graphs have no fallback of an agent, and later releases do: which of them is meant, the operator says.
pub(super) fn fallbacks_of_agents(check: &Check<'_>) {
    if check.surroundings.agents_fall_back() {
        return;
    }
    for node in check.nodes() {
        let Body::Agent(agent) = &node.body else { continue };
        if let Some(fallback) = &agent.fallback {
            let error = check.error(node, "`fallback` is not a field of `agent` nodes", &fallback.span);
            check.reader.report(error.help(
                "only `script` and `llm` nodes have a fallback; with `agent_fallback = true` below `[compat]` in `hotcell.toml`, \
                 `agent` nodes have one as in later releases of the language",
            ));
        }
    }
}

/// Advice for a name that should be that of a node.
pub(super) fn no_such_node(check: &Check<'_>, name: &str) -> String {
    let ids = || check.nodes().iter().map(|node| &*node.id.value);
    if let Some(near) = closest(name, ids()) {
        return format!("did you mean `{near}`?");
    }
    const SHOWN: usize = 12;
    let shown: Vec<&str> = ids().take(SHOWN).collect();
    let more = check.nodes().len().saturating_sub(SHOWN);
    let more = if more == 0 { String::new() } else { format!(" (and {more} more)") };
    format!("the nodes are {}{more}", super::list(&shown))
}
