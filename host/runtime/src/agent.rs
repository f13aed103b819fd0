//! Loading an agent: the file of a folder, everything it names, every agent it may call, and everything that is wrong.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hotcell_cells::Grants;
use hotcell_dialects::agent_spec::{self, DescribedTool, Exported, Part};
use hotcell_dialects::loki::KnowledgeBaseSource;
use hotcell_dialects::sherma::{self, Child, Choice, Remote};
use hotcell_dialects::{Dialect, Surroundings, loki, recognise};
use hotcell_engine::Callee;
use hotcell_graph::Key;
use hotcell_graph::diagnostic::{Diagnostic, Severity, SourceFile, render};
use hotcell_graph::ir::{Action, Graph};
use hotcell_models::ToolSpec;
use hotcell_plugins::{AgentFolder, SETTINGS_FILE, Settings};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::agent_registry::{AgentRegistry, GuardedAgents};
use crate::folder::{AGENT_FILE, AgentSurroundings, CONFIG_FILE, FILE_GRANTS, GRAPH_FILE, Reach, both_files};
use crate::hooks::{AgentHooks, HookList};
use crate::host::Host;
use crate::knowledge::{self, AgentKnowledge};
use crate::plugin_registry::PluginRegistry;
use crate::remote;
use crate::scripts::AgentScripts;
use crate::servers::{self, AgentServers, ServersFile};
use crate::tools::AgentTools;
use crate::web::AgentWeb;

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
    /// The names of the agents in the file, where a file may hold several
    pub names: Vec<Key>,
    /// How the file is written, where its language has several styles
    pub style: Option<&'static str>,
    /// Prompts to suggest to a person
    pub conversation_starters: Vec<String>,
    /// Where it comes from, for whoever loads it again
    pub(crate) source: String,
    /// Identifies the texts of the agent and of all that it may call
    pub(crate) digest: String,
    pub(crate) own: Callee,
    /// What is granted to its file
    pub(crate) grants: Arc<Grants>,
    pub(crate) family: Arc<AgentRegistry>,
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

/// What is said when an agent is loaded.
#[derive(Clone, Copy, Debug, Default)]
pub struct Loading<'a> {
    /// Which of several agents of a file is meant
    pub agent: Which<'a>,
    /// Files with parts of the agent's file
    pub components: &'a [ComponentsFile],
}

/// Which of several agents of a file is meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Which<'a> {
    /// The only one
    #[default]
    Only,
    /// Whichever comes first, to say what is wrong with any of them
    Any,
    /// The one of this name
    Named(&'a str),
}

/// A file with parts of an agent's file (the disaggregated components of the Open Agent Specification).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComponentsFile {
    /// The file
    pub file: PathBuf,
    /// The key of a part in the file, and the one under which the agent's file knows it
    pub rename: Vec<(String, String)>,
}

/// Where an agent comes from, for whoever loads it again: its file, and `#name` for one of several. What was handed in
/// beside it makes it a JSON object.
#[derive(Serialize, Deserialize)]
struct Origin {
    file: PathBuf,
    agent: Option<String>,
    components: Vec<ComponentsFile>,
}

/// Loads the agent at `path`, the file of an agent or the folder that holds one, and every agent that it may call.
/// `loading.agent` is the choice among several agents of a file.
pub(crate) fn load(host: &Host, path: &Path, loading: &Loading<'_>) -> Result<Agent, LoadFailure> {
    let choice = match loading.agent {
        Which::Only => Choice::Only,
        Which::Any => Choice::Any,
        Which::Named(name) => Choice::Named(name),
    };
    let wanted = LoadRequest { path, choice, project: None, components: loading.components };
    let (mut one, mut diagnostics) = load_one(host, wanted, &HookList::default())?;
    let mut digests = vec![one.digest.clone()];
    let mut family = children(host, &one, &one.folder, &mut vec![one.file.clone()], &mut digests, &mut diagnostics);
    let mut names = std::mem::take(&mut one.calls);
    // By name, because all agents lie side by side: each is loaded once, however they call each other.
    while let Some((name, of_checked)) = names.pop() {
        if family.knows(&name) {
            continue;
        }
        let folder = one.folder.parent().unwrap_or(&one.folder).join(&*name);
        // Where the caller is checked before it runs, what is wrong with an agent keeps the run from starting.
        match load_one(
            host,
            LoadRequest { path: &folder, choice: Choice::Only, project: None, components: &[] },
            &one.hooks,
        ) {
            Ok((child, found)) => {
                diagnostics.extend(found);
                digests.push(child.digest);
                names.extend(child.calls);
                family.add(name, Ok(child.callee), child.knowledge);
            }
            Err(failure) => {
                let reason = failure.to_string();
                let mut found = failure.diagnostics;
                if !of_checked {
                    found.clear();
                }
                diagnostics.extend(found);
                family.add(name, Err(reason), Arc::new(AgentKnowledge::none()));
            }
        }
    }
    if diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error) {
        return Err(LoadFailure { diagnostics });
    }
    family.add_knowledge(one.knowledge);
    digests.sort();
    Ok(Agent {
        graph: one.callee.graph.clone(),
        warnings: diagnostics,
        dialect: one.dialect,
        source: source(&one.file, loading)?,
        style: one.style,
        names: one.names,
        file: one.file,
        folder: one.folder,
        conversation_starters: one.conversation_starters,
        digest: match &digests[..] {
            [digest] => digest.clone(),
            several => blake3::hash(several.concat().as_bytes()).to_hex().to_string(),
        },
        own: one.callee,
        grants: one.grants,
        family: Arc::new(family),
    })
}

/// Loads an agent as a run was started with it.
pub(crate) fn load_source(host: &Host, source: &str) -> Result<Agent, LoadFailure> {
    if let Ok(Origin { file, agent, components }) = serde_json::from_str(source) {
        let agent = agent.as_deref().map_or(Which::Only, Which::Named);
        return load(host, &file, &Loading { agent, components: &components });
    }
    match source.rsplit_once('#') {
        Some((file, name)) if !Path::new(source).exists() => {
            load(host, Path::new(file), &Loading { agent: Which::Named(name), ..Loading::default() })
        }
        _ => load(host, Path::new(source), &Loading::default()),
    }
}

/// Where an agent comes from. Files are named so that they are found from any folder.
fn source(file: &Path, loading: &Loading<'_>) -> Result<String, LoadFailure> {
    if loading.components.is_empty() {
        return Ok(match loading.agent {
            Which::Named(name) => format!("{}#{name}", file.display()),
            Which::Only | Which::Any => file.display().to_string(),
        });
    }
    let absolute = |part: &ComponentsFile| {
        let (file, _) = read(&part.file)?;
        Ok::<_, LoadFailure>(ComponentsFile { file, rename: part.rename.clone() })
    };
    let components = loading.components.iter().map(absolute).collect::<Result<_, _>>()?;
    let agent = match loading.agent {
        Which::Named(name) => Some(name.to_owned()),
        Which::Only | Which::Any => None,
    };
    let origin = Origin { file: file.to_owned(), agent, components };
    // Paths that are no text cannot be written down.
    serde_json::to_string(&origin).map_err(|error| Diagnostic::error(error.to_string()).into())
}

/// The agents in files that an agent names, and theirs. Each has a registry of its own, because names count within a
/// file; all of them belong to the `project` of the first and use its plugins.
fn children(
    host: &Host,
    one: &LoadedAgent,
    project: &Path,
    above: &mut Vec<PathBuf>,
    digests: &mut Vec<String>,
    diagnostics: &mut Vec<Diagnostic>,
) -> AgentRegistry {
    let mut family = AgentRegistry::default();
    for (name, remote) in &one.remotes {
        family.add(name.clone(), Ok(remote.clone()), Arc::new(AgentKnowledge::none()));
    }
    for Child { name, path, span } in &one.children {
        let path_of_child = one.folder.join(path);
        let choice = Choice::Preferred(name);
        let wanted = LoadRequest { path: &path_of_child, choice, project: Some(project), components: &[] };
        let refused = |message: String| Diagnostic::error(message).at(span);
        if std::fs::canonicalize(wanted.path).is_ok_and(|file| above.contains(&file)) {
            let error = refused(format!("the agents of `{path}` and of this file contain each other"));
            diagnostics.push(error.help("an agent cannot be a sub-agent of itself, not even by way of others"));
            continue;
        }
        match load_one(host, wanted, &one.hooks) {
            Ok((child, found)) => {
                diagnostics.extend(found);
                digests.push(child.digest.clone());
                above.push(child.file.clone());
                let own = children(host, &child, project, above, digests, diagnostics);
                above.pop();
                let guards = child.callee.hooks.clone();
                let agents = Arc::new(GuardedAgents { family: Arc::new(own), guards });
                let callee = Callee { agents: Some(agents), ..child.callee };
                family.add(name.clone(), Ok(callee), child.knowledge);
            }
            Err(failure) => diagnostics.extend(failure.diagnostics),
        }
    }
    family
}

/// An agent that is to be loaded.
#[derive(Clone, Copy)]
struct LoadRequest<'a> {
    path: &'a Path,
    choice: Choice<'a>,
    /// The folder whose plugins and settings count; none means that of the file
    project: Option<&'a Path>,
    /// Files with parts of it
    components: &'a [ComponentsFile],
}

/// What a front end made of a file.
#[derive(Default)]
struct FrontEndOutput {
    graph: Option<Graph>,
    diagnostics: Vec<Diagnostic>,
    conversation_starters: Vec<String>,
    knowledge_bases: Vec<KnowledgeBaseSource>,
    /// Whether everything is checked before the first node runs
    checked: bool,
    children: Vec<Child>,
    remotes: Vec<Remote>,
    names: Vec<Key>,
    /// The order of its hooks, as far as it says one
    hooks: Vec<String>,
    /// What is to be said of how the file is written
    style: Option<&'static str>,
}

impl FrontEndOutput {
    /// Whether the file itself says where an agent is.
    fn names(&self, agent: &Key) -> bool {
        self.children.iter().any(|child| child.name == *agent) || self.remotes.iter().any(|one| one.name == *agent)
    }

    fn of(
        dialect: Dialect,
        is_config: bool,
        source: &Arc<SourceFile>,
        choice: Choice<'_>,
        parts: &[Part],
        surroundings: &dyn Surroundings,
    ) -> Self {
        let loaded = match dialect {
            Dialect::AgentSpec => {
                let loaded = agent_spec::load(source, parts, surroundings);
                return FrontEndOutput {
                    graph: loaded.graph,
                    diagnostics: loaded.diagnostics,
                    checked: true,
                    ..FrontEndOutput::default()
                };
            }
            Dialect::Sherma => {
                let loaded = sherma::load(source, choice, surroundings);
                let sherma::Loaded { graph, agents: names, hooks, children, remotes, style, diagnostics } = loaded;
                let style = Some(style.describe());
                return FrontEndOutput {
                    graph,
                    diagnostics,
                    names,
                    hooks,
                    children,
                    remotes,
                    style,
                    checked: true,
                    ..FrontEndOutput::default()
                };
            }
            Dialect::Loki if is_config => loki::load_config(source, surroundings),
            Dialect::Loki => loki::load(source, surroundings),
        };
        let mut front = FrontEndOutput {
            graph: loaded.graph,
            diagnostics: loaded.diagnostics,
            conversation_starters: loaded.declarations.conversation_starters,
            knowledge_bases: loaded.declarations.knowledge_bases,
            checked: loaded.declarations.checked_before_run,
            ..FrontEndOutput::default()
        };
        if let Choice::Named(name) = choice {
            let error = Diagnostic::error(format!("the file holds one agent, so `{name}` cannot be chosen"));
            front.diagnostics.push(error.help("leave the name out"));
        }
        front
    }
}

/// One agent, without those that it calls.
struct LoadedAgent {
    callee: Callee,
    grants: Arc<Grants>,
    dialect: Dialect,
    file: PathBuf,
    folder: PathBuf,
    conversation_starters: Vec<String>,
    digest: String,
    hooks: HookList,
    knowledge: Arc<AgentKnowledge>,
    /// The agents that its nodes call, and whether those nodes are checked before the run
    calls: Vec<(Key, bool)>,
    /// The agents that its file names by their files
    children: Vec<Child>,
    /// The agents that its file names by their addresses
    remotes: Vec<(Key, Callee)>,
    style: Option<&'static str>,
    names: Vec<Key>,
}

/// Loads one agent; `told` are hooks that are told of it anyway.
fn load_one(
    host: &Host,
    wanted: LoadRequest<'_>,
    told: &HookList,
) -> Result<(LoadedAgent, Vec<Diagnostic>), LoadFailure> {
    let LoadRequest { path, choice, project, components } = wanted;
    let (file, text) = read(path)?;
    let shown = path_to_show(path, &file);
    let folder = file.parent().map(Path::to_path_buf).unwrap_or_default();
    let is_config = file.file_name().is_some_and(|name| name == CONFIG_FILE);
    if both_files(&folder) && (is_config || file.file_name().is_some_and(|name| name == GRAPH_FILE)) {
        return Err(loki::both_files(&folder.display().to_string()).into());
    }
    let mut digest = blake3::hash(text.as_bytes()).to_hex().to_string();
    let parts = parts(components)?;
    for part in &parts {
        digest = blake3::hash(format!("{digest}{}{:?}", part.file.text, part.rename).as_bytes()).to_hex().to_string();
    }
    let source = Arc::new(SourceFile { name: shown.clone(), text });
    let Some(dialect) = recognise(&shown, &source.text) else {
        return Err(Diagnostic::error(format!("`{shown}` is not an agent in any language that hotcell reads"))
            .help("a Loki graph has `nodes` and `start` at its top level, a sherma agent `manifest_version`, a configuration of the \
                   Open Agent Specification `component_type`")
            .into());
    };

    let mut diagnostics = Vec::new();
    let settled = project.unwrap_or(&folder);
    let shown = folder_to_show(path, &file);
    let ProjectContext { said, registry, servers, tools, mut hooks } =
        ProjectContext::of(host, settled, told, &shown, &mut diagnostics);
    let settings = said.settings();

    let listed = hooks.list().and(told);
    let reach = Reach {
        registry: &registry,
        servers: &servers,
        hooks: &listed,
        python: tools.python(),
        settings,
        project: settled,
    };
    let surroundings = AgentSurroundings::new(host, &folder, reach);
    let mut loaded = FrontEndOutput::of(dialect, is_config, &source, choice, &parts, &surroundings);
    diagnostics.append(&mut loaded.diagnostics);
    if settings.hook_order().is_none() {
        hooks.tell_in_order(&loaded.hooks);
    }

    let mut scripts = AgentScripts::new(host.cell_runtime().cells().clone());
    let checked = loaded.checked;
    let mut calls = Vec::new();
    if let Some(graph) = &loaded.graph {
        for (_, node) in graph.nodes() {
            let script = match &node.action {
                Action::Script(script) => script,
                // The front end says where the other agents of this one are.
                Action::Agent(action) if loaded.names(&action.agent) => continue,
                Action::Agent(action) => {
                    calls.push((action.agent.clone(), checked));
                    continue;
                }
                _ => continue,
            };
            match scripts.load(host.cell_runtime(), &folder, &script.file, settings, host.environment()) {
                Err(reason) if checked => {
                    diagnostics.push(Diagnostic::error(reason).at(&node.span).node(&*node.id));
                }
                Err(reason) => scripts.leave_broken(&script.file, reason),
                Ok(()) => {}
            }
        }
        // The settings of a project are for all of its agents.
        if project.is_none() && loaded.children.is_empty() {
            let is_used = |name: &str| scripts.has(name) || tools.python().has(name) || registry.plugin(name).is_some();
            diagnostics.extend(unused(settings, &source.text, is_used));
        }
    }
    let broken = diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error);
    let Some(graph) = loaded.graph.filter(|_| !broken) else { return Err(LoadFailure { diagnostics }) };
    let tools = Arc::new(tools);
    let bases = loaded.knowledge_bases;
    let knowledge = Arc::new(AgentKnowledge::new(&folder, bases, tools.clone(), |name| settings.grants(name)));
    let callee = Callee {
        at_once: None,
        graph: Arc::new(graph),
        scripts: Arc::new(scripts),
        tools: tools.clone(),
        plugin_nodes: tools,
        knowledge: knowledge.clone(),
        hooks: Arc::new(hooks),
        agents: None,
        web: Arc::new(AgentWeb { grants: settings.grants(FILE_GRANTS) }),
    };
    let mut remotes = Vec::with_capacity(loaded.remotes.len());
    for Remote { name, url, span } in &loaded.remotes {
        match remote::callee(name, url, span, settings.grants(FILE_GRANTS), &callee) {
            Ok(remote) => remotes.push((name.clone(), remote)),
            Err(reason) => diagnostics.push(Diagnostic::error(reason).at(span)),
        }
    }
    if diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error) {
        return Err(LoadFailure { diagnostics });
    }
    let one = LoadedAgent {
        callee,
        grants: settings.grants(FILE_GRANTS),
        remotes,
        style: loaded.style,
        names: loaded.names,
        dialect,
        file,
        folder,
        conversation_starters: loaded.conversation_starters,
        digest,
        hooks: listed,
        knowledge,
        calls,
        children: loaded.children,
    };
    Ok((one, diagnostics))
}

/// What lies around an agent's file and belongs to its folder.
struct ProjectContext {
    said: AgentFolder,
    registry: Arc<PluginRegistry>,
    servers: AgentServers,
    tools: AgentTools,
    hooks: AgentHooks,
}

impl ProjectContext {
    /// What belongs to the folder `settled`, which people know as `shown`.
    fn of(host: &Host, settled: &Path, told: &HookList, shown: &str, diagnostics: &mut Vec<Diagnostic>) -> Self {
        let said = host.agent_folder(settled).unwrap_or_else(|error| {
            diagnostics.push(Diagnostic::error(error.to_string()));
            AgentFolder::unspoken(settled)
        });
        if !said.is_trusted() {
            diagnostics.push(
                Diagnostic::warning(format!(
                    "nobody trusts the `{SETTINGS_FILE}` of this folder: what it grants is left out"
                ))
                .help(format!("see what it would grant, and decide, with `hotcell trust {shown}`")),
            );
        }
        let catalogue = host.catalogue(settled);
        let (registry, found) = PluginRegistry::new(host, &catalogue, &said);
        diagnostics.extend(found);
        let registry = Arc::new(registry);
        let servers = servers(host, settled, said.settings(), diagnostics);
        let tools = AgentTools::new(registry.clone(), servers.clone(), host.model(), host.default_model());
        let (hooks, found) = AgentHooks::new(tools.clone(), said.settings(), told);
        diagnostics.extend(found);
        ProjectContext { said, registry, servers, tools, hooks }
    }
}

/// Why an agent cannot be written in another language.
#[derive(Debug, Error)]
pub enum NotConverted {
    /// It cannot be loaded
    #[error(transparent)]
    Load(#[from] LoadFailure),
    /// What it does cannot be expressed in the other language; each reason is a sentence
    #[error("{}", .0.join("\n"))]
    Inexpressible(Vec<String>),
}

/// The agent at `path` in the Open Agent Specification, and where that behaves in another way.
pub(crate) fn convert(host: &Host, path: &Path, loading: &Loading<'_>) -> Result<Exported, NotConverted> {
    let (file, text) = read(path)?;
    if recognise(&path_to_show(path, &file), &text) == Some(Dialect::AgentSpec) {
        return Ok(Exported { text: write(host, path, loading)?, differences: Vec::new() });
    }
    let agent = load(host, path, loading)?;
    let describe = |name: &str| {
        let ToolSpec { name, description, parameters } = agent.own.tools.describe(name)?;
        Some(DescribedTool { name, description, parameters })
    };
    agent_spec::export(&agent.graph, &describe).map_err(NotConverted::Inexpressible)
}

/// The configuration of the Open Agent Specification at `path`, written as JSON.
pub(crate) fn write(host: &Host, path: &Path, loading: &Loading<'_>) -> Result<String, LoadFailure> {
    let (file, text) = read(path)?;
    let name = path_to_show(path, &file);
    let source = Arc::new(SourceFile { name, text });
    let folder = file.parent().map(Path::to_path_buf).unwrap_or_default();
    let mut diagnostics = Vec::new();
    let told = HookList::default();
    let project = ProjectContext::of(host, &folder, &told, &folder_to_show(path, &file), &mut diagnostics);
    let listed = project.hooks.list();
    let reach = Reach {
        registry: &project.registry,
        servers: &project.servers,
        hooks: &listed,
        python: project.tools.python(),
        settings: project.said.settings(),
        project: &folder,
    };
    let surroundings = AgentSurroundings::new(host, &folder, reach);
    let (configuration, found) = agent_spec::read(&source, &parts(loading.components)?, &surroundings);
    diagnostics.extend(found);
    configuration.map(|configuration| agent_spec::write(&configuration)).ok_or(LoadFailure { diagnostics })
}

/// The texts of files with parts.
fn parts(components: &[ComponentsFile]) -> Result<Vec<Part>, LoadFailure> {
    let part = |part: &ComponentsFile| {
        let (_, text) = read(&part.file)?;
        let file = Arc::new(SourceFile { name: part.file.display().to_string(), text });
        Ok(Part { file, rename: part.rename.clone() })
    };
    components.iter().map(part).collect()
}

/// What the settings say of what an agent does not have.
fn unused(settings: &Settings, text: &str, is_used: impl Fn(&str) -> bool) -> Vec<Diagnostic> {
    let of_other_kind = |name: &str| {
        name == FILE_GRANTS || name.starts_with(servers::PREFIX) || name.starts_with(knowledge::GRANT_PREFIX)
    };
    let names = settings.names().filter(|name| !of_other_kind(name) && !is_used(name)).map(|name| {
        Diagnostic::warning(format!("`{SETTINGS_FILE}` has settings for `{name}`, which this graph does not use"))
            .help("names are script paths as the graph writes them, or names of plugins")
    });
    let imports = settings.imports().filter(|path| !text.contains(path)).map(|path| {
        Diagnostic::warning(format!("`{SETTINGS_FILE}` says what `{path}` means, which this file does not import"))
            .help("below `[imports]` stand import paths as the file writes them")
    });
    names.chain(imports).collect()
}

/// The MCP servers within reach of an agent.
fn servers(host: &Host, folder: &Path, settings: &Settings, diagnostics: &mut Vec<Diagnostic>) -> AgentServers {
    let environment = host.environment();
    let to_servers = |name: &&str| name.starts_with(servers::PREFIX);
    // A file that came with a folder gets at no variable that was not granted.
    let granted = |variable: &str| {
        let granted =
            settings.names().filter(to_servers).any(|name| settings.grants(name).env.iter().any(|one| one == variable));
        granted.then(|| environment.get(variable)).flatten()
    };
    let any = |variable: &str| environment.get(variable);
    let mut files = vec![ServersFile { file: folder.join(servers::SERVERS_FILE), variable: &granted }];
    files.extend(host.users_servers().map(|file| ServersFile { file: file.to_owned(), variable: &any }));
    let (servers, problems) = AgentServers::new(host.connections(), &files, |name| settings.grants(name));
    diagnostics.extend(problems.into_iter().map(Diagnostic::error));
    servers
}

/// The file of an agent that `path` means, absolute and without links, and its text.
fn read(path: &Path) -> Result<(PathBuf, String), LoadFailure> {
    let fail =
        |path: &Path, error: &dyn fmt::Display| Diagnostic::error(format!("cannot read `{}`: {error}", path.display()));
    let mut file = path.to_path_buf();
    if path.is_dir() {
        if both_files(path) {
            return Err(loki::both_files(&path.display().to_string()).into());
        }
        let candidates = [GRAPH_FILE, CONFIG_FILE, AGENT_FILE].map(|name| path.join(name));
        file = candidates.into_iter().find(|file| file.exists()).ok_or_else(|| {
            Diagnostic::error(format!("there is neither `{GRAPH_FILE}` nor `{CONFIG_FILE}` in `{}`", path.display()))
                .help("give the folder that holds an agent, or its file itself")
        })?;
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
