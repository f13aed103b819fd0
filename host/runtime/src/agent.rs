//! Loading an agent: the graph file of a folder, everything it names, and everything that is wrong with it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hotcell_dialects::{Dialect, loki, recognise};
use hotcell_engine::{Hooks, Offers, Scripts, Tools};
use hotcell_graph::diagnostic::{Diagnostic, Severity, SourceFile, render};
use hotcell_graph::ir::{Action, Graph};
use hotcell_plugins::{AgentFolder, SETTINGS_FILE};

use crate::folder::{AgentSurroundings, GRAPH_FILE, both_files};
use crate::hooks::AgentHooks;
use crate::host::Host;
use crate::scripts::AgentScripts;
use crate::shelf::Shelf;
use crate::tools::AgentTools;

/// Bytes that a graph file may have.
const MAX_SOURCE: u64 = 16 << 20;

/// A loaded agent, ready to run.
#[derive(Clone)]
pub struct Agent {
    /// Its graph
    pub graph: Arc<Graph>,
    /// What is probably not as meant
    pub warnings: Vec<Diagnostic>,
    /// The language it is written in
    pub dialect: Dialect,
    /// The file it was loaded from
    pub file: PathBuf,
    /// The folder of the file
    pub folder: PathBuf,
    /// Prompts to suggest to a person
    pub conversation_starters: Vec<String>,
    pub(crate) digest: String,
    pub(crate) scripts: Arc<dyn Scripts>,
    pub(crate) tools: Arc<dyn Tools>,
    pub(crate) hooks: Arc<dyn Hooks>,
    pub(crate) offers: Arc<dyn Offers>,
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent").field("file", &self.file).field("graph", &self.graph.name).finish_non_exhaustive()
    }
}

/// Why an agent cannot be loaded: at least one of the diagnostics is an error.
#[derive(Clone, Debug)]
pub struct LoadFailure {
    /// Everything that was found, warnings included
    pub diagnostics: Vec<Diagnostic>,
}

impl std::error::Error for LoadFailure {}

impl fmt::Display for LoadFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&render(&self.diagnostics, false))
    }
}

impl From<Diagnostic> for LoadFailure {
    fn from(diagnostic: Diagnostic) -> Self {
        LoadFailure { diagnostics: vec![diagnostic] }
    }
}

/// Loads the agent at `path`, a graph file or the folder that holds one.
pub(crate) fn load(host: &Host, path: &Path) -> Result<Agent, LoadFailure> {
    let (file, text) = read(path)?;
    let shown = path_to_show(path, &file);
    let folder = file.parent().map(Path::to_path_buf).unwrap_or_default();
    if both_files(&folder) && file.file_name().is_some_and(|name| name == GRAPH_FILE) {
        return Err(loki::both_files(&folder.display().to_string()).into());
    }
    let digest = blake3::hash(text.as_bytes()).to_hex().to_string();
    let source = Arc::new(SourceFile { name: shown.clone(), text });
    let Some(dialect) = recognise(&shown, &source.text) else {
        return Err(Diagnostic::error(format!("`{shown}` is not a graph in any language that hotcell reads"))
            .help("a Loki graph has `nodes` and `start` at its top level")
            .into());
    };

    let mut diagnostics = Vec::new();
    let said = host.agent_folder(&folder).unwrap_or_else(|error| {
        diagnostics.push(Diagnostic::error(error.to_string()));
        AgentFolder::unspoken(&folder)
    });
    if !said.is_trusted() {
        let shown = folder_to_show(path, &file);
        diagnostics.push(
            Diagnostic::warning(format!(
                "nobody trusts the `{SETTINGS_FILE}` of this folder: what it grants is left out"
            ))
            .help(format!("see what it would grant, and decide, with `hotcell trust {shown}`")),
        );
    }
    let settings = said.settings();
    let catalogue = host.catalogue(&folder);
    let (shelf, found) = Shelf::new(host, &catalogue, &said);
    diagnostics.extend(found);
    let shelf = Arc::new(shelf);
    let (hooks, found) = AgentHooks::new(shelf.clone(), settings);
    diagnostics.extend(found);

    let surroundings = AgentSurroundings::new(host, &folder, &shelf);
    let loaded = match dialect {
        Dialect::Loki => loki::load(&source, &surroundings),
    };
    diagnostics.extend(loaded.diagnostics);

    let mut scripts = AgentScripts::new(host.kitchen().cells().clone());
    if let Some(graph) = &loaded.graph {
        for (_, node) in graph.nodes() {
            let Action::Script(script) = &node.action else { continue };
            let loaded_script = scripts.load(host.kitchen(), &folder, &script.file, settings, host.environment());
            match loaded_script {
                Err(reason) if loaded.declarations.checked_before_run => {
                    diagnostics.push(Diagnostic::error(reason).at(&node.span).node(&*node.id));
                }
                Err(reason) => scripts.leave_broken(&script.file, reason),
                Ok(()) => {}
            }
        }
        for name in settings.names() {
            if !scripts.has(name) && shelf.plugin(name).is_none() {
                diagnostics.push(
                    Diagnostic::warning(format!(
                        "`{SETTINGS_FILE}` has settings for `{name}`, which this graph does not use"
                    ))
                    .help("names are script paths as the graph writes them, or names of plugins"),
                );
            }
        }
    }
    let broken = diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error);
    let tools = Arc::new(AgentTools::new(shelf, host.model(), host.default_model()));
    match loaded.graph {
        Some(graph) if !broken => Ok(Agent {
            graph: Arc::new(graph),
            warnings: diagnostics,
            dialect,
            file,
            folder,
            conversation_starters: loaded.declarations.conversation_starters,
            digest,
            scripts: Arc::new(scripts),
            tools: tools.clone(),
            offers: tools,
            hooks: Arc::new(hooks),
        }),
        _ => Err(LoadFailure { diagnostics }),
    }
}

/// The graph file that `path` means, absolute and without links, and its text.
fn read(path: &Path) -> Result<(PathBuf, String), LoadFailure> {
    let fail =
        |path: &Path, error: &dyn fmt::Display| Diagnostic::error(format!("cannot read `{}`: {error}", path.display()));
    let mut file = path.to_path_buf();
    if path.is_dir() {
        file = path.join(GRAPH_FILE);
        if both_files(path) {
            return Err(loki::both_files(&path.display().to_string()).into());
        }
        if !file.exists() {
            return Err(Diagnostic::error(format!("there is no `{GRAPH_FILE}` in `{}`", path.display()))
                .help("give the folder that holds the graph, or the graph file itself")
                .into());
        }
    }
    let size = std::fs::metadata(&file).map_err(|error| fail(&file, &error))?.len();
    if size > MAX_SOURCE {
        return Err(fail(&file, &format!("it has {size} bytes; a graph may have {MAX_SOURCE}")).into());
    }
    let bytes = std::fs::read(&file).map_err(|error| fail(&file, &error))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        fail(&file, &format!("it is not UTF-8 text: byte {} is wrong", error.utf8_error().valid_up_to()))
    })?;
    let file = std::fs::canonicalize(&file).map_err(|error| fail(&file, &error))?;
    Ok((file, text))
}

/// The folder of the file, as the person wrote it.
fn folder_to_show(path: &Path, file: &Path) -> String {
    let folder = if path.is_dir() { Some(path) } else { path.parent() };
    let shown = folder.unwrap_or_else(|| file.parent().unwrap_or(path)).display().to_string();
    if shown.is_empty() { ".".to_owned() } else { shown }
}

/// The name under which diagnostics show the file: as the person wrote it.
fn path_to_show(path: &Path, file: &Path) -> String {
    match file.file_name() {
        Some(name) if path.is_dir() => path.join(name).display().to_string(),
        _ => path.display().to_string(),
    }
}
