//! The branch of a `map`: one node, or a chain of nodes that nothing else leads to, which runs once for each item.

use std::rc::Rc;

use hotcell_graph::diagnostic::Diagnostic;

use super::super::branches;
use super::super::schema::{Body, Node};
use super::Check;
use super::edges::Edge;
use crate::document::SourceText;

/// What the branches of all maps have together. A graph is made of each.
pub(super) fn size(check: &Check<'_>) {
    if check.branches.are_too_large() {
        let error = Diagnostic::error("the branches of the maps of this graph have too many nodes and edges together")
            .help("put nodes that several maps run into an agent, and call it with an `agent` node");
        check.reader.report(error);
    }
}

pub(super) fn branches(check: &Check<'_>) {
    for node in check.nodes() {
        let Body::Map(map) = &node.body else { continue };
        let Some(name) = &map.branch else { continue };
        let Some(branch) = check.find(name).map(|index| &check.nodes()[index]) else { continue };
        let id = &*branch.id.value;
        match &branch.body {
            Body::Unknown => continue,
            Body::Script(_) | Body::Llm(_) | Body::Agent(_) | Body::Rag(_) => {}
            other => {
                let message = format!("the `branch` of node `{}` is the `{}` node `{id}`", node.id.value, other.kind());
                let help = "a branch is a `script`, `llm`, `agent` or `rag` node";
                check.reader.report(check.error(node, message, &name.span).help(help));
                continue;
            }
        }
        let chain = check.branches.chain(map);
        if let Some(chain) = chain {
            goes_on_within(check, node, chain, name);
        }
        let key = map.output_key();
        let gives_output = matches!(branch.body, Body::Llm(_) | Body::Agent(_) | Body::Rag(_)) && key == "output";
        let alone = [branch];
        let members = chain.unwrap_or(&alone);
        let may_write_anything = members.iter().any(|member| matches!(member.body, Body::Script(_)));
        let writes = members.iter().any(|member| member.writes().iter().any(|(written, _)| &***written == key));
        if !gives_output && !may_write_anything && !writes {
            let message = format!("node `{id}` never writes `{key}`, which the map `{}` collects", node.id.value);
            let span = map.output_key.as_ref().map_or(&name.span, |key| &key.span);
            let help = format!("add `{key}` to the `state_updates` of `{id}`");
            check.reader.report(check.warning(node, message, span).help(help));
        }
    }
}

/// Looks whether the nodes of a chain lead to each other alone, one after the other.
fn goes_on_within(check: &Check<'_>, map: &Node, chain: &[&Node], name: &SourceText) {
    let mut of_run: Rc<[bool]> = vec![false; check.nodes().len()].into();
    if let Some(start) = check.source.start.as_deref().and_then(|start| check.find(start)) {
        of_run = check.reachable_from(start);
    }
    for member in chain {
        let Some(index) =
            check.find(&member.id.value).filter(|index| chain[0].id.value == member.id.value || !of_run[*index])
        else {
            continue;
        };
        let id = &*member.id.value;
        let edges = &check.edges[index];
        let leaves = |edge: &&Edge<'_>| {
            let target = &check.nodes()[edge.to];
            !matches!(target.body, Body::Unknown) && (of_run[edge.to] || !branches::may_be_in(&target.body))
        };
        for edge in edges.iter().filter(leaves) {
            let (field, target) = (edge.field, check.id(edge.to));
            let message = format!(
                "`{field}` of node `{id}` leads to `{target}`, which is not part of the branch of the map `{}`",
                map.id.value
            );
            let help = match of_run[edge.to] {
                true => format!(
                    "remove the `{field}`, or lead to a node to which nothing else leads: the run goes on with the `next` of the map"
                ),
                false => "the nodes of a branch are `script`, `llm`, `agent` and `rag` nodes".to_owned(),
            };
            let error =
                check.error(member, message, edge.span).related(&name.span, "the branch begins here").help(help);
            check.reader.report(error);
        }
        if let (Some(span), 2..) = (&member.next_span, member.next.len()) {
            let message = format!("node `{id}` leads to several nodes within the branch of the map `{}`", map.id.value);
            check
                .reader
                .report(check.error(member, message, span).help("lead to one: a branch runs one node at a time"));
        }
    }
}
