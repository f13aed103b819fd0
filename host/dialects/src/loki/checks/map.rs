//! The branch of a `map`: one node that runs alone, once for each item.

use super::super::schema::Body;
use super::Check;

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
        if let (Some(span), false) = (&branch.next_span, branch.next.is_empty()) {
            let message = format!("node `{id}` has a `next`, but it is the branch of the map `{}`", node.id.value);
            let error = check
                .error(branch, message, span)
                .related(&name.span, "used as a branch here")
                .help("remove its `next`: the run goes on with the `next` of the map");
            check.reader.report(error);
        }
        if let Some(fallback) = branch.fallback() {
            let message =
                format!("`fallback` of node `{id}` has no effect: it is the branch of the map `{}`", node.id.value);
            let help = "a failing item fails the map; let the branch handle errors itself";
            check.reader.report(check.warning(branch, message, &fallback.span).help(help));
        }
        let key = map.output_key();
        let gives_output = matches!(branch.body, Body::Llm(_) | Body::Agent(_) | Body::Rag(_)) && key == "output";
        let may_write_anything = matches!(branch.body, Body::Script(_));
        let writes = branch.writes().iter().any(|(written, _)| &***written == key);
        if !gives_output && !may_write_anything && !writes {
            let message = format!("node `{id}` never writes `{key}`, which the map `{}` collects", node.id.value);
            let span = map.output_key.as_ref().map_or(&name.span, |key| &key.span);
            let help = format!("add `{key}` to the `state_updates` of `{id}`");
            check.reader.report(check.warning(node, message, span).help(help));
        }
    }
}
