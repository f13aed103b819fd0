//! By which names a model knows what it may call.

use std::collections::HashMap;

use hotcell_graph::ir::Callable;

use super::{ReachableKind, ReachableTool};

/// What is offered by its full name, by how a model would know that.
pub(super) fn full_names(offered: &[Callable]) -> HashMap<String, &str> {
    let mut names = HashMap::new();
    for one in offered {
        if let Callable::Tool(full) = one {
            names.entry(spoken(full)).or_insert(full.as_str());
        }
    }
    names
}

/// Adds one of what is offered. What is offered twice is there once; a tool whose name is taken is called by its full name, and of others
/// with one name the first counts. The full name of a tool that is offered is taken for that tool: a server calls its functions what it
/// likes, and would keep a model from those of another one.
pub(super) fn add(reach: &mut Vec<ReachableTool>, full_names: &HashMap<String, &str>, mut callable: ReachableTool) {
    let is_taken = |name: &str| reach.iter().any(|known| known.spec.name == name);
    if let ReachableKind::Tool(full) = &callable.kind {
        let name = &callable.spec.name;
        let is_of_another = full_names.get(name).is_some_and(|other| *other != full.as_str());
        if is_of_another || is_taken(name) {
            if reach.iter().any(|known| known.name() == full) {
                return;
            }
            callable.spec.name = spoken(full);
        }
    }
    if !is_taken(&callable.spec.name) {
        reach.push(callable);
    }
}

/// A full name as models take names: without the marks between its parts, and whatever else a server put into it.
fn spoken(full: &str) -> String {
    full.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use hotcell_models::ToolSpec;
    use serde_json::json;

    use super::*;

    /// By which names tools are known, in the order in which they are offered; each is offered under the second name.
    fn known(offered: &[(&str, &str)]) -> Vec<String> {
        let callables: Vec<Callable> = offered.iter().map(|(full, _)| Callable::Tool((*full).to_owned())).collect();
        let (mut reach, full_names) = (Vec::new(), full_names(&callables));
        for (full, name) in offered {
            let spec = ToolSpec { name: (*name).to_owned(), description: String::new(), parameters: json!({}) };
            add(
                &mut reach,
                &full_names,
                ReachableTool { spec, kind: ReachableKind::Tool((*full).to_owned()), confirm: false },
            );
        }
        reach.iter().map(|known| format!("{} {}", known.spec.name, known.name())).collect()
    }

    #[test]
    fn a_name_that_is_taken_is_a_full_one() {
        let twice = [("mcp:a/f", "f"), ("mcp:b/f", "f"), ("mcp:a/f", "f")];
        assert_eq!(known(&twice), ["f mcp:a/f", "mcp_b_f mcp:b/f"]);
        // Whatever a server calls it, a model takes the name.
        assert_eq!(known(&[("mcp:a/f_g", "f_g"), ("mcp:a/f gü", "f_g")])[1], "mcp_a_f_g_ mcp:a/f gü");
    }

    #[test]
    fn no_server_takes_the_names_of_another_one() {
        let offered =
            [("mcp:evil/mcp_bank_send", "mcp_bank_send"), ("mcp:evil/send", "send"), ("mcp:bank/send", "send")];
        let expected =
            ["mcp_evil_mcp_bank_send mcp:evil/mcp_bank_send", "send mcp:evil/send", "mcp_bank_send mcp:bank/send"];
        assert_eq!(known(&offered), expected);
    }
}
