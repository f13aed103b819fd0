//! Graphs of other languages that are exported, and the tools that they use.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hotcell_dialects::agent_spec::{DescribedTool, Found};
use hotcell_dialects::sherma::Choice;
use hotcell_dialects::{Dialect, loki, recognise, sherma};
use hotcell_graph::diagnostic::{SourceFile, render};
use hotcell_graph::ir::Graph;
use serde_json::{Value as Json, json};

use crate::configurations::source;
use crate::surroundings;

/// The folder of the cases, and what they are called.
pub(crate) fn cases() -> (PathBuf, Vec<String>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/agent_spec/export");
    let names = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut stems: Vec<String> = names.filter_map(|name| Some(name.strip_suffix(".yaml")?.to_owned())).collect();
    stems.sort();
    assert!(stems.len() > 10, "the cases are not there");
    (folder, stems)
}

/// The graph of a case.
pub(crate) fn graph_of(folder: &Path, stem: &str) -> Graph {
    let file = source(folder, &format!("{stem}.yaml"));
    let (graph, diagnostics) = match recognise(&file.name, &file.text) {
        Some(Dialect::Sherma) => {
            let loaded = sherma::load(&file, Choice::Only, &surroundings::Fake);
            (loaded.graph, loaded.diagnostics)
        }
        _ if stem.starts_with("config") => {
            let loaded = loki::load_config(&file, &surroundings::Fake);
            (loaded.graph, loaded.diagnostics)
        }
        _ => {
            let loaded = loki::load(&file, &surroundings::Fake);
            (loaded.graph, loaded.diagnostics)
        }
    };
    graph.unwrap_or_else(|| panic!("{stem}: {}", render(&diagnostics, false)))
}

/// The tools that the cases know, `search` under a name of its own.
pub(crate) fn described(name: &str) -> Option<DescribedTool> {
    let (spoken, parameters) = match name {
        "search" => (
            "search_books",
            json!({
                "type": "object", "additionalProperties": false, "required": ["query"],
                "properties": {
                    "query": {"type": "string", "description": "What to look for"},
                    "most": {"type": "integer", "title": "Most", "default": 5},
                },
            }),
        ),
        "mcp:library/lend" => (
            "lend",
            json!({
                "type": "object", "required": ["book", "by"], "minProperties": 1,
                "properties": {"book": {"type": "string"}, "by": {"type": "string"}},
            }),
        ),
        "mcp:library/search_books" => (
            "search_books",
            json!({
                "type": "object", "required": ["all"],
                "properties": {
                    "all": {"type": "boolean", "default": false}, "most": {"type": "integer", "default": "many"},
                    "of": {"type": "some"},
                },
            }),
        ),
        "add" => (
            "add",
            json!({
                "type": "object", "required": ["a"],
                "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            }),
        ),
        _ => return None,
    };
    let found = if name == spoken { Found::ByName } else { Found::Elsewhere };
    Some(DescribedTool { name: spoken.to_owned(), description: format!("The tool {name}"), parameters, found })
}

/// The graphs of the shared acceptance cases that can be loaded without what lies beside them, each with its name and its
/// case.
pub(crate) fn shared_graphs() -> Vec<(String, Graph, Json)> {
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/cases");
    let mut graphs = Vec::new();
    for (language, file) in [("loki", "graph.yaml"), ("sherma", "agent.yaml")] {
        for entry in std::fs::read_dir(shared.join(language)).into_iter().flatten() {
            let folder = entry.unwrap().path();
            let Ok(text) = std::fs::read_to_string(folder.join(file)) else { continue };
            let source = Arc::new(SourceFile { name: file.to_owned(), text });
            let graph = match language {
                "loki" => loki::load(&source, &surroundings::Fake).graph,
                _ => sherma::load(&source, Choice::Only, &surroundings::Fake).graph,
            };
            let case = std::fs::read_to_string(folder.join("case.json")).unwrap();
            let name = format!("{language}-{}", folder.file_name().unwrap().to_string_lossy());
            graphs.extend(graph.map(|graph| (name, graph, serde_json::from_str(&case).unwrap())));
        }
    }
    graphs
}
