//! Which language a source file is written in.

/// A source language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// A Loki agent (`graph.yaml`, or `config.yaml` for one with a tool loop)
    Loki,
    /// A sherma declarative agent (a file with `manifest_version`)
    Sherma,
}

/// The language of a file by its name and text; none if it is none that is known. Cheap, and does not depend on the
/// file being well formed: a broken file of a known name is still of that language, so that its errors are reported.
pub fn recognise(file_name: &str, text: &str) -> Option<Dialect> {
    let name = file_name.rsplit(['/', '\\']).next().unwrap_or(file_name);
    let is_loki =
        matches!(name, "graph.yaml" | "graph.yml" | "config.yaml") || has_top_level_keys(text, &["nodes", "start"]);
    if is_loki {
        return Some(Dialect::Loki);
    }
    // The version is what such a file has to have; one that lacks it and is one all the same is told so.
    let is_sherma = has_top_level_keys(text, &["manifest_version"])
        || (has_top_level_keys(text, &["agents"]) && text.contains("graph:") && text.contains("entry_point"));
    is_sherma.then_some(Dialect::Sherma)
}

/// Whether lines without indentation begin with all of these keys.
fn has_top_level_keys(yaml: &str, keys: &[&str]) -> bool {
    let yaml = yaml.strip_prefix('\u{feff}').unwrap_or(yaml);
    keys.iter().all(|key| {
        yaml.lines().any(|line| {
            let rest = line.strip_prefix(['"', '\'']).unwrap_or(line).strip_prefix(key);
            rest.is_some_and(|rest| rest.trim_start_matches(['"', '\'']).trim_start().starts_with(':'))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_or_content_tells() {
        for (name, text) in [
            ("graph.yaml", ""),
            ("a/b/graph.yml", "name: [broken"),
            ("flow.yaml", "name: x\nstart: a\nnodes:\n  a: {}\n"),
            ("x", "\u{feff}\"start\": a\n'nodes' :\n"),
        ] {
            assert_eq!(recognise(name, text), Some(Dialect::Loki), "{name}");
        }
        for text in ["manifest_version: 1\nagents: [broken", "agents:\n  a: {graph: {entry_point: b}}\n"] {
            assert_eq!(recognise("agent.yaml", text), Some(Dialect::Sherma), "{text}");
        }
        for (name, text) in [
            ("agent.yaml", "name: x\n"),
            ("mygraph.yaml", "steps:\n  start: a\n  nodes: b\n"),
            ("x.yaml", "nodes: []\nstartup: 1\n"),
            ("flow.json", r#"{"component_type": "Flow", "nodes": [], "start_node": {}}"#),
        ] {
            assert_eq!(recognise(name, text), None, "{name}");
        }
    }
}
