//! Which language a source file is written in.

use hotcell_graph::closest;

/// A source language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// A Loki agent (`graph.yaml`, or `config.yaml` for one with a tool loop)
    Loki,
    /// A sherma declarative agent (a file with `manifest_version`)
    Sherma,
    /// An Open Agent Specification configuration (a file with `component_type`)
    AgentSpec,
    /// An AgentLoom workflow (a file with `steps`) or agent (one with `system_prompt`)
    AgentLoom,
    /// A LeafMesh mesh (a file with `agents`, each with an `agent_type`, and `entry_points`)
    LeafMesh,
}

/// The language of a file by its name and text; none if it is none that is known. Cheap, and does not depend on the
/// file being well formed: a broken file of a known name is still of that language, so that its errors are reported.
pub fn recognise(file_name: &str, text: &str) -> Option<Dialect> {
    let keys = Keys::of(text);
    let has = |key: &str| keys.has(key);
    // A flow has `nodes` too; these keys no other language has.
    if ["component_type", "agentspec_version", "$component_ref", "$referenced_components"].into_iter().any(has) {
        return Some(Dialect::AgentSpec);
    }
    // Agents of sherma have a graph; what only a mesh has tells it from them, also where one of these is misspelt.
    let of_meshes = ["agent_type", "entry_points", "can_call", "communication_type"];
    if has("agents") && !has("manifest_version") && of_meshes.iter().any(|key| text.contains(key)) {
        return Some(Dialect::LeafMesh);
    }
    // Steps are a list there, and no graph of another language has such a list at its top.
    if has("steps") && !has("nodes") && (has("name") || text.contains("type:") || text.contains("\"type\"")) {
        return Some(Dialect::AgentLoom);
    }
    let name = file_name.rsplit(['/', '\\']).next().unwrap_or(file_name);
    let is_loki = matches!(name, "graph.yaml" | "graph.yml" | "config.yaml") || (has("nodes") && has("start"));
    if is_loki {
        return Some(Dialect::Loki);
    }
    // The version is what such a file has to have; one that lacks it and is one all the same is told so.
    let is_sherma =
        has("manifest_version") || (has("agents") && text.contains("graph") && text.contains("entry_point"));
    if is_sherma {
        return Some(Dialect::Sherma);
    }
    let of_agents = ["memory", "loop_policy", "output_schema", "constraints"];
    let is_plain = || has("model") && has("tools");
    if has("system_prompt") || (has("name") && (of_agents.iter().any(|key| has(key)) || is_plain())) {
        return Some(Dialect::AgentLoom);
    }
    // A list of components, or one whose top lacks all of the keys, is told so.
    let is_agent_spec = ["component_type", "$component_ref"].iter().any(|key| text.contains(key));
    is_agent_spec.then_some(Dialect::AgentSpec)
}

/// Keys by which a language is recognised.
const KEYS: [&str; 17] = [
    "component_type",
    "agentspec_version",
    "$component_ref",
    "$referenced_components",
    "agents",
    "manifest_version",
    "steps",
    "nodes",
    "name",
    "model",
    "tools",
    "start",
    "system_prompt",
    "memory",
    "loop_policy",
    "output_schema",
    "constraints",
];

/// Which of these keys the top of a text has. It is looked through once: it may be large.
struct Keys([bool; KEYS.len()]);

impl Keys {
    fn of(text: &str) -> Self {
        let mut keys = Keys([false; KEYS.len()]);
        each_key(text, |key| keys.note(key));
        keys
    }

    fn note(&mut self, key: &str) {
        if let Some(place) = KEYS.iter().position(|known| *known == key) {
            self.0[place] = true;
        }
    }

    fn has(&self, key: &str) -> bool {
        KEYS.iter().zip(self.0).any(|(known, is_there)| is_there && *known == key)
    }
}

/// Whether the top of a text, JSON or YAML, has one of the keys by which a language is recognised.
pub(crate) fn has_key(text: &str, key: &str) -> bool {
    Keys::of(text).has(key)
}

/// Keys of which each tells a language, alone or with another one.
const TELLING: [&str; 8] =
    ["component_type", "agentspec_version", "agents", "manifest_version", "steps", "nodes", "start", "system_prompt"];
/// Keys of a text that are compared with those.
const COMPARED: usize = 100;

/// A key at the top of a text of no language that is probably misspelt, and the key by which a language is recognised that it is like.
pub fn misspelt_key(text: &str) -> Option<(&str, &'static str)> {
    let mut keys = Vec::new();
    each_key(text, |key| {
        if keys.len() < COMPARED {
            keys.push(key);
        }
    });
    keys.into_iter().filter(|key| !TELLING.contains(key)).find_map(|key| Some((key, closest(key, TELLING)?)))
}

/// Hands on every key at the top of a text, JSON or YAML.
fn each_key<'t>(text: &'t str, note: impl FnMut(&'t str)) {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim_start().starts_with('{') {
        json_keys(text).for_each(note);
    } else {
        text.lines().filter_map(key_of_line).for_each(note);
    }
}

/// The keys of the outermost object of a JSON text, as far as it is one.
fn json_keys(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    let mut depth = 0_usize;
    std::iter::from_fn(move || {
        loop {
            let at = rest.find(['"', '{', '[', '}', ']'])?;
            let found = rest.as_bytes()[at];
            rest = &rest[at + 1..];
            match found {
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth = depth.saturating_sub(1),
                _ => {
                    let end = end_of_string(rest)?;
                    let string = &rest[..end];
                    rest = &rest[end + 1..];
                    if depth == 1 && rest.trim_start().starts_with(':') {
                        return Some(string);
                    }
                }
            }
        }
    })
}

/// Where the quote is that ends a JSON string.
fn end_of_string(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.bytes().position(|byte| {
        let is_end = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        is_end
    })
}

/// The key with which a line without indentation begins.
fn key_of_line(line: &str) -> Option<&str> {
    let line = line.strip_prefix(['"', '\'']).unwrap_or(line);
    let end = line.find(|sign: char| !(sign.is_ascii_alphanumeric() || matches!(sign, '_' | '$')))?;
    let (key, rest) = line.split_at(end);
    rest.trim_start_matches(['"', '\'']).trim_start().starts_with(':').then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_that_is_asked_for_is_looked_for() {
        for key in KEYS {
            for text in [format!("{key}: x\n"), format!("a: 1\n'{key}' :\n"), format!(r#"{{"{key}": 1}}"#)] {
                assert!(has_key(&text, key), "{text}");
            }
            for text in [
                format!(" {key}: x\n"),
                format!("{key}s: x\n"),
                format!("{key}\n"),
                format!(r#"{{"a": {{"{key}": 1}}}}"#),
            ] {
                assert!(!has_key(&text, key), "{text}");
            }
        }
    }

    #[test]
    fn a_key_is_named_that_is_probably_misspelt() {
        for (text, found) in [
            ("name: x\nstep:\n- id: a\n", Some(("step", "steps"))),
            (r#"{"name": "x", "Component_type": "Flow"}"#, Some(("Component_type", "component_type"))),
            ("nodes: {}\nstrat: a\n", Some(("strat", "start"))),
            ("name: x\nsteps: []\n", None),
            ("hello: x\n", None),
        ] {
            assert_eq!(misspelt_key(text), found, "{text}");
        }
    }

    #[test]
    fn name_or_content_tells() {
        for (name, text) in [
            ("graph.yaml", ""),
            ("a/b/graph.yml", "name: [broken"),
            ("flow.yaml", "name: x\nstart: a\nnodes:\n  a: {}\n"),
            ("x.json", r#"{"start": "a", "nodes": {"a": {}}}"#),
            ("x", "\u{feff}\"start\": a\n'nodes' :\n"),
        ] {
            assert_eq!(recognise(name, text), Some(Dialect::Loki), "{name}");
        }
        for text in [
            "manifest_version: 1\nagents: [broken",
            "agents:\n  a: {graph: {entry_point: b}}\n",
            r#"{"agents": {}, "manifest_version": 1}"#,
            r#"{"agents": {"a": {"graph": {"entry_point": "b"}}}}"#,
        ] {
            assert_eq!(recognise("agent.yaml", text), Some(Dialect::Sherma), "{text}");
        }
        for (name, text) in [
            ("flow.json", r#"{"component_type": "Flow", "nodes": [], "start_node": {}}"#),
            ("flow.json", r#"{"nodes": [{"x": "\"}"}], "start": {}, "agentspec_version" : "25.4.1""#),
            ("flow.yaml", "nodes: []\nstart: x\ncomponent_type: Flow\n"),
            ("graph.yaml", "\u{feff}$component_ref: [broken"),
            ("parts.json", r#"{"$referenced_components": {}}"#),
            ("list.json", r#"[{"component_type": "Flow"}]"#),
            ("deeper.json", r#"{"id": "x", "nodes": [{"$component_ref": "y"}]}"#),
        ] {
            assert_eq!(recognise(name, text), Some(Dialect::AgentSpec), "{text}");
        }
        for (name, text) in [
            ("workflow.yaml", "name: x\nsteps:\n- id: a\n"),
            ("workflow.yaml", "steps:\n- id: a\n  type: tool\n"),
            ("graph.yaml", "name: x\nsteps: []\n"),
            ("x.json", r#"{"name": "x", "steps": []}"#),
            ("agents/a.yaml", "name: x\nsystem_prompt: |\n  nodes: 1\n"),
            ("a.yaml", "name: x\nloop_policy: {max_iterations: 1}\n"),
            ("a.yaml", "name: x\nmodel: gpt-4o\ntools: [add]\n"),
        ] {
            assert_eq!(recognise(name, text), Some(Dialect::AgentLoom), "{text}");
        }
        for (name, text) in [
            ("configs/config.yaml", "agents:\n  a: {agent_type: llm}\nentry_points: []\n"),
            ("mesh.yaml", "agents: [broken\n  agent_type: llm\n"),
            ("mesh.json", r#"{"agents": {"a": {"can_call": []}}}"#),
        ] {
            assert_eq!(recognise(name, text), Some(Dialect::LeafMesh), "{text}");
        }
        for (name, text) in [
            ("agent.yaml", "name: x\n"),
            ("agent.yaml", "name: x\ntools: [add]\n"),
            ("mygraph.yaml", "steps:\n  start: a\n  nodes: b\n"),
            ("x.yaml", "nodes: []\nstartup: 1\n"),
            ("x.json", r#"{"nodes": [], "text": "agentspec_version: {"}"#),
        ] {
            assert_eq!(recognise(name, text), None, "{name}");
        }
    }
}
