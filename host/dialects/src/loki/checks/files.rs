//! Files, agents and documents that a graph names.

use hotcell_graph::diagnostic::Span;

use super::super::both_files;
use super::super::documents::{Problem, problem};
use super::super::schema::{Body, Node, Rag};
use super::{Check, list};
use crate::surroundings::{AgentFolder, FileState, KnowledgeBase};

const EXTENSIONS: [&str; 5] = ["js", "ts", "py", "sh", "wasm"];

/// Paths that leave the agent's folder are refused whatever `validate_before_run` says.
pub(super) fn inside_the_folder(check: &Check<'_>) {
    for node in check.nodes() {
        match &node.body {
            Body::Script(script) => {
                let Some(path) = &script.script else { continue };
                let state = path.normal.as_deref().map(|path| check.surroundings.script(path));
                if matches!(state, None | Some(FileState::Outside)) {
                    outside(check, node, &path.written, &path.written.span);
                }
            }
            Body::Rag(rag) => {
                for document in &rag.documents {
                    if problem(document, check.surroundings) == Some(Problem::Outside) {
                        outside(check, node, document, &document.span);
                    }
                }
            }
            _ => {}
        }
    }
}

/// A knowledge base is written beside the graph, so what its file is called counts whatever `validate_before_run` says.
pub(super) fn knowledge_files(check: &Check<'_>) {
    for node in check.nodes().iter().filter(|node| matches!(node.body, Body::Rag(_))) {
        if let Some(message) = unfit_for_a_file(&node.id.value) {
            let help = "rename the node: its knowledge base is stored as `<node id>.yaml`";
            check.reader.report(check.error(node, message, &node.id.span).help(help));
        }
    }
}

/// Why the file of a knowledge base cannot be called by this id of a node.
fn unfit_for_a_file(id: &str) -> Option<String> {
    if matches!(id.to_lowercase().as_str(), "graph" | "config") {
        return Some(format!("the knowledge base of node `{id}` would overwrite `{id}.yaml`"));
    }
    id.contains(['/', '\\', '\0']).then(|| format!("the id `{id}` of a `rag` node cannot be a file name"))
}

fn outside(check: &Check<'_>, node: &Node, path: &str, span: &Span) {
    let message = format!("the path `{path}` of node `{}` leaves the agent's folder", node.id.value);
    let help = "name a file below the folder of this file, relative to it";
    check.reader.report(check.error(node, message, span).help(help));
}

pub(super) fn scripts(check: &Check<'_>) {
    for node in check.nodes() {
        let Body::Script(script) = &node.body else { continue };
        let Some(path) = &script.script else { continue };
        let Some(normal) = &path.normal else { continue };
        let name = normal.rsplit('/').next().unwrap_or(normal);
        let extension = name.rsplit_once('.').map(|(_, extension)| extension);
        if !extension.is_some_and(|extension| EXTENSIONS.contains(&extension)) {
            let message = match extension {
                Some(extension) => format!("scripts with the extension `.{extension}` are not supported"),
                None => format!("the script `{}` has no extension that tells its language", &*path.written),
            };
            let error = check
                .error(node, message, &path.written.span)
                .help("use one of `.js`, `.ts`, `.py`, `.sh`, `.wasm`: the extension decides how a script runs");
            check.reader.report(error);
        } else if check.surroundings.script(normal) == FileState::Missing {
            let message = format!("the script `{}` of node `{}` is not there", &*path.written, node.id.value);
            let help = "the path is relative to the folder of this file";
            check.reader.report(check.error(node, message, &path.written.span).help(help));
        }
    }
}

pub(super) fn agents(check: &Check<'_>) {
    for node in check.nodes() {
        let Body::Agent(agent) = &node.body else { continue };
        let Some(name) = &agent.agent else { continue };
        let is_name = !name.is_empty() && !name.contains(['/', '\\']) && &**name != "." && &**name != "..";
        let state = if is_name { check.surroundings.agent(name) } else { AgentFolder::Missing };
        let error = match (state, agent.inputs.first()) {
            (AgentFolder::Config, Some(input)) => check
                .error(node, format!("`inputs` cannot be given to the agent `{}`", &**name), &input.key.span)
                .help("it is a tool loop (`config.yaml`), which has no state: put them into its `prompt`"),
            (AgentFolder::Config | AgentFolder::Graph, _) => continue,
            (AgentFolder::Missing, _) => check
                .error(node, format!("there is no agent `{}`", &**name), &name.span)
                .help("`agent` names a folder beside the folder of this file"),
            (AgentFolder::Neither, _) => check
                .error(node, format!("the folder of agent `{}` contains no agent", &**name), &name.span)
                .help("it needs a `config.yaml` or a `graph.yaml`"),
            (AgentFolder::Both, _) => both_files(name).at(&name.span).node(&*node.id.value),
        };
        check.reader.report(error);
    }
}

pub(super) fn knowledge(check: &Check<'_>) {
    let branches = check.map_branches();
    for (index, node) in check.nodes().iter().enumerate() {
        let Body::Rag(rag) = &node.body else { continue };
        let id = &*node.id.value;
        if unfit_for_a_file(id).is_some() {
            continue;
        }
        if let (Some(span), true) = (&rag.documents_span, rag.documents.is_empty()) {
            let error = check
                .error(node, format!("node `{id}` has no `documents`"), span)
                .help("list at least one file, folder or address");
            check.reader.report(error);
        }
        // What the branch of a map finds is collected by the map.
        if node.updates.is_empty() && !branches[index] {
            let warning = check
                .warning(
                    node,
                    format!("node `{id}` has no `state_updates`, so what it finds goes nowhere"),
                    &node.id.span,
                )
                .help("store it: `state_updates: { context: \"{{output.context}}\" }`");
            check.reader.report(warning);
        }
        let state = check.surroundings.knowledge_base(id);
        if state != KnowledgeBase::Built {
            documents_are_there(check, node, rag);
        }
        if state == KnowledgeBase::NotBuilt {
            can_be_built(check, node, rag);
        }
    }
}

fn documents_are_there(check: &Check<'_>, node: &Node, rag: &Rag) {
    for document in &rag.documents {
        if problem(document, check.surroundings) == Some(Problem::Missing) {
            let message = format!("the document `{}` of node `{}` is not there", &**document, node.id.value);
            let help = "the path is relative to the folder of this file";
            check.reader.report(check.error(node, message, &document.span).help(help));
        }
    }
}

fn can_be_built(check: &Check<'_>, node: &Node, rag: &Rag) {
    let fields = [
        ("embedding_model", rag.embedding_model.is_some() || check.surroundings.embedding_model().is_some()),
        ("chunk_size", rag.chunk_size.is_some()),
        ("chunk_overlap", rag.chunk_overlap.is_some()),
    ];
    let missing: Vec<&str> = fields.into_iter().filter(|(_, is_set)| !is_set).map(|(name, _)| name).collect();
    if missing.is_empty() || rag.documents.is_empty() || rag.is_misread {
        return;
    }
    let message = format!(
        "the knowledge base of node `{}` is not built and nobody can be asked for {}",
        node.id.value,
        list(&missing)
    );
    let variable = if missing.contains(&"embedding_model") {
        " (the environment variable `HOTCELL_EMBEDDING_MODEL` names the model of nodes that name none)"
    } else {
        ""
    };
    let help = format!("set them in the node{variable}, or run the graph once on a terminal");
    check.reader.report(check.error(node, message, &node.id.span).help(help));
}
