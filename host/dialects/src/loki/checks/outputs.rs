//! What models answer: whether anybody reads it, and what becomes of it when the model fails.

use std::collections::{HashMap, HashSet};

use hotcell_graph::Braces;
use hotcell_graph::diagnostic::Diagnostic;

use super::super::schema::{Body, Node};
use super::Check;
use crate::document::SourceText;

/// Models that are paid for answers which nothing reads.
pub(super) fn unread(check: &Check<'_>) {
    let collected = collected(check);
    for (index, node) in check.nodes().iter().enumerate() {
        let Body::Llm(llm) = &node.body else { continue };
        // One with tools may be there for what it does with them.
        let is_kept = !node.updates.is_empty() || llm.output_schema.is_some() || collected[index];
        if !is_kept && llm.tools.is_empty() {
            let message = format!("the model's answer is never used at node `{}`", node.id.value);
            let help = "keep it with `state_updates`, for instance `answer: \"{{output}}\"`";
            check.reader.report(check.warning(node, message, &node.id.span).help(help));
        }
    }
}

/// Which nodes give their answer to a map, without any `state_updates`.
fn collected(check: &Check<'_>) -> Vec<bool> {
    let mut collected = vec![false; check.nodes().len()];
    for node in check.nodes() {
        if let Body::Map(map) = &node.body
            && map.output_key() == "output"
        {
            check.branch_of(map).into_iter().for_each(|member| collected[member] = true);
        }
    }
    collected
}

/// Models without a fallback whose answer is the result of the graph: when they fail, the result is the error.
pub(super) fn unguarded(check: &Check<'_>) {
    let mut written: HashMap<&str, &Node> = HashMap::new();
    for node in check.nodes() {
        let Body::Llm(llm) = &node.body else { continue };
        if llm.fallback.is_none() {
            let of_output = node.updates.iter().filter(|update| names(&update.value, "output"));
            written.extend(of_output.map(|update| (&*update.key.value, node)));
        }
    }
    for end in check.nodes() {
        let Body::End(body) = &end.body else { continue };
        let Some(output) = &body.output else { continue };
        let braces = Braces::find(output);
        let named: HashSet<&str> = braces.iter().filter_map(|braces| braces.path.as_ref()?.root()).collect();
        for (key, node) in written.iter().filter(|(key, _)| named.contains(**key)) {
            let id = &node.id.value;
            let message =
                format!("if the model of node `{id}` fails, its error becomes the result: `{key}` goes into `output`");
            let help = format!("give `{id}` a `fallback`, or run with `--strict` to have such a run fail");
            check.reader.report(Diagnostic::note(message).at(&node.id.span).node(&**id).help(help));
        }
    }
}

/// Whether a template refers to a key.
fn names(template: &SourceText, key: &str) -> bool {
    Braces::find(template).iter().any(|braces| braces.path.as_ref().and_then(|path| path.root()) == Some(key))
}
