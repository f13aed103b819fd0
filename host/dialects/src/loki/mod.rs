//! The front end for Loki graph agents (`graph.yaml`).
//!
//! Three steps: [`read`] gives every field its type and place, [`checks`] finds what cannot work, [`lower`] makes the
//! IR. A graph comes out only if there is no error.

mod checks;
mod lower;
mod output_schema;
mod read;
mod read_node;
mod schema;

use std::sync::Arc;

use hotcell_graph::diagnostic::{self, Diagnostic, Severity, SourceFile};
use hotcell_graph::ir::Graph;

use crate::document::{self, Document, Reader};
use crate::surroundings::Surroundings;

/// The state key that receives the prompt of a run.
const INPUT_KEY: &str = "initial_prompt";

/// What a graph file gives.
#[derive(Debug)]
pub struct Loaded {
    /// The graph; none if there is an error among the diagnostics
    pub graph: Option<Graph>,
    /// What the file declares beside the graph
    pub declarations: Declarations,
    /// Everything that is wrong with the file, in its order
    pub diagnostics: Vec<Diagnostic>,
}

/// What a graph file declares beside the graph itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Declarations {
    /// The name of the agent
    pub name: String,
    /// What it does, for people
    pub description: Option<String>,
    /// The tools that its nodes may choose from, without file extensions
    pub global_tools: Vec<String>,
    /// The MCP servers that its nodes may choose from
    pub mcp_servers: Vec<String>,
    /// Prompts to suggest to a person
    pub conversation_starters: Vec<String>,
    /// Whether the author wants everything checked before the first node runs; otherwise what is broken shows when a
    /// run comes to it
    pub checked_before_run: bool,
}

/// Reads, checks and lowers a graph file.
pub fn load(file: &Arc<SourceFile>, surroundings: &dyn Surroundings) -> Loaded {
    let (document, mut diagnostics) = document::parse(file);
    let (declarations, graph) = match &document {
        Some(document) => read_and_lower(document, surroundings, &mut diagnostics),
        None => Default::default(),
    };
    diagnostic::sort(&mut diagnostics);
    let has_error = diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error);
    Loaded { graph: graph.filter(|_| !has_error), declarations, diagnostics }
}

fn read_and_lower(
    document: &Document,
    surroundings: &dyn Surroundings,
    diagnostics: &mut Vec<Diagnostic>,
) -> (Declarations, Option<Graph>) {
    let reader = Reader::new(document);
    let Some(source) = read::source(&reader) else {
        diagnostics.extend(reader.into_diagnostics());
        return Default::default();
    };
    checks::run(&source, &reader, surroundings);
    let has_error = |diagnostics: &[Diagnostic]| diagnostics.iter().any(|one| one.severity == Severity::Error);
    let found = reader.into_diagnostics();
    let graph = if has_error(&found) || has_error(diagnostics) { None } else { lower::graph(&source, surroundings) };
    diagnostics.extend(found);
    let owned = |texts: &[document::SourceText]| texts.iter().map(|text| text.to_string()).collect();
    let declarations = Declarations {
        name: source.name.as_deref().unwrap_or_default().to_owned(),
        description: source.description.as_deref().map(str::to_owned),
        global_tools: source.global_tools.iter().map(|tool| tool_name(tool).to_owned()).collect(),
        mcp_servers: owned(&source.mcp_servers),
        conversation_starters: owned(&source.conversation_starters),
        checked_before_run: source.settings.validate_before_run,
    };
    (declarations, graph)
}

/// The error of an agent's folder that holds both `config.yaml` and `graph.yaml`.
pub fn both_files(folder: &str) -> Diagnostic {
    Diagnostic::error(format!("the folder `{folder}` holds both `config.yaml` and `graph.yaml`"))
        .help("remove one of them: `config.yaml` is for a tool loop, `graph.yaml` for a graph")
}

/// The name of a tool: an entry of `global_tools` may name its file instead.
fn tool_name(written: &str) -> &str {
    match written.rsplit_once('.') {
        Some((name, "sh" | "py" | "ts" | "js" | "wasm")) if !name.is_empty() => name,
        _ => written,
    }
}
