//! The front end for Loki graph agents (`graph.yaml`).
//!
//! Three steps: [`read`] gives every field its type and place, [`checks`] finds what cannot work, [`lower`] makes the
//! IR. A graph comes out only if there is no error.

mod auto_continue;
mod branches;
mod checks;
mod config;
mod documents;
mod elsewhere;
mod global_tools;
mod lower;
mod lower_node;
mod mcp_tools;
mod output_schema;
mod placeholders;
mod read;
mod read_field;
mod read_node;
mod schema;
mod skills;
mod spawning;

use std::sync::Arc;

use hotcell_graph::Courtesy;
use hotcell_graph::diagnostic::{self, Diagnostic, Severity, SourceFile};
use hotcell_graph::ir::Graph;

use crate::document::{self, Document, Reader};
use crate::knowledge_base::KnowledgeBaseSource;
use crate::surroundings::{OwnTool, ServerState, Surroundings};

/// What to do about an MCP server that is not configured.
const SERVER_HELP: &str = "name it in `mcp.json`, beside this file or in your own configuration folder";
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
    /// What has to be built before its nodes can look things up
    pub knowledge_bases: Vec<KnowledgeBaseSource>,
    /// Whether the author wants everything checked before the first node runs; otherwise what is broken shows when a
    /// run comes to it
    pub checked_before_run: bool,
}

/// Reads, checks and lowers the file of an agent with a tool loop (`config.yaml`).
pub fn load_config(file: &Arc<SourceFile>, surroundings: &dyn Surroundings) -> Loaded {
    load_with(file, |document, diagnostics| config::read_and_lower(document, surroundings, diagnostics))
}

/// Reads, checks and lowers a graph file.
pub fn load(file: &Arc<SourceFile>, surroundings: &dyn Surroundings) -> Loaded {
    load_with(file, |document, diagnostics| read_and_lower(document, surroundings, diagnostics))
}

fn load_with(
    file: &Arc<SourceFile>,
    read_and_lower: impl FnOnce(&Document, &mut Vec<Diagnostic>) -> (Declarations, Option<Graph>),
) -> Loaded {
    let _courtesy = Courtesy::for_a_file();
    let (document, mut diagnostics) = document::parse(file);
    let (declarations, graph) = match &document {
        Some(document) => read_and_lower(document, &mut diagnostics),
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
        knowledge_bases: source.nodes.iter().filter_map(knowledge_base).collect(),
        checked_before_run: source.settings.validate_before_run,
    };
    (declarations, graph)
}

fn knowledge_base(node: &schema::Node) -> Option<KnowledgeBaseSource> {
    let schema::Body::Rag(rag) = &node.body else { return None };
    Some(KnowledgeBaseSource {
        node: node.id.value.to_string(),
        documents: rag.documents.iter().map(|document| document.to_string()).collect(),
        embedding_model: rag.embedding_model.as_deref().map(str::to_owned),
        chunk_size: rag.chunk_size,
        chunk_overlap: rag.chunk_overlap,
        reranker_model: rag.retrieval.reranker_model.as_deref().map(str::to_owned),
        batch_size: rag.retrieval.batch_size,
        is_optional: false,
        span: node.id.span.clone(),
    })
}

/// The error of an agent's folder that holds both `config.yaml` and `graph.yaml`.
pub fn both_files(folder: &str) -> Diagnostic {
    Diagnostic::error(format!("the folder `{folder}` holds both `config.yaml` and `graph.yaml`"))
        .help("remove one of them: `config.yaml` is for a tool loop, `graph.yaml` for a graph")
}

/// What the providers of models are called, for whoever misspells one.
const PROVIDERS: [&str; 7] = ["openai", "anthropic", "gemini", "deepseek", "xai", "mistral", "ollama"];

/// What to do about a model that does not exist.
fn model_help(model: &str) -> String {
    if let Some(name) = model.strip_prefix("claude:") {
        return format!("the provider `claude` is called `anthropic` here: write `anthropic:{name}`");
    }
    if let Some((provider, name)) = model.split_once(':')
        && !PROVIDERS.contains(&provider)
        && let Some(near) = hotcell_graph::closest(provider, PROVIDERS)
    {
        return format!("did you mean `{near}:{name}`? The providers are `{}`", PROVIDERS.join("`, `"));
    }
    "models are named `provider:model`; leave `model` out for the host's default".to_owned()
}

/// The tools that files of the agent's folder define; what is wrong with them, checks report.
fn own_tools(surroundings: &dyn Surroundings) -> Vec<OwnTool> {
    surroundings.own_tools().unwrap_or_default()
}

/// The variable with the time at which a run begins: for whoever names it, and for the agents that are called.
fn start_time() -> hotcell_graph::ir::Variable {
    hotcell_graph::ir::Variable {
        name: placeholders::NOW.into(),
        description: "when the run began".to_owned(),
        default: Some(String::new()),
    }
}

/// All functions of an MCP server, as tools.
fn server_functions(server: &str, surroundings: &dyn Surroundings) -> Vec<String> {
    match surroundings.mcp_server(server) {
        ServerState::Usable(functions) => functions.iter().map(|function| format!("mcp:{server}/{function}")).collect(),
        ServerState::NotStarted | ServerState::Missing | ServerState::Unusable(_) => Vec::new(),
    }
}

/// The full name of a function of one of the file's MCP servers, `mcp:server/function`, if one has it.
fn mcp_function(source: &schema::Source, surroundings: &dyn Surroundings, name: &str) -> Option<String> {
    let has = |server: &str| matches!(surroundings.mcp_server(server), ServerState::Usable(all) if all.iter().any(|one| one == name));
    source.mcp_servers.iter().find(|server| has(server)).map(|server| format!("mcp:{}/{name}", &**server))
}

/// The name of a tool: an entry of `global_tools` may name its file instead.
fn tool_name(written: &str) -> &str {
    match written.rsplit_once('.') {
        Some((name, "sh" | "py" | "ts" | "js" | "wasm")) if !name.is_empty() => name,
        _ => written,
    }
}

#[cfg(test)]
mod tests {
    use super::model_help;

    #[test]
    fn a_misspelt_provider_is_named_with_all_there_are() {
        let help = model_help("opnai:gpt");
        assert!(help.contains("did you mean `openai:gpt`?") && help.contains("`mistral`"), "{help}");
        assert!(model_help("openai:gtp").starts_with("models are named"));
        assert!(model_help("claude:x").contains("`anthropic:x`"));
    }
}
