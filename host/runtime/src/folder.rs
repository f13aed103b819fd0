//! The folder of an agent as front ends ask about it.

mod fetched;
mod imports;
mod named_tools;

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use hotcell_cells::Grants;
use hotcell_cells::policy::path_grant;
use hotcell_dialects::{
    AgentFolder, Called, ComponentState, DeclaredComponent, DeclaredServer, FileState, Import, Imported, KnowledgeBase,
    OwnTool, PluginNodeState, ServerState, Surroundings, ToolMarks, ToolState, Unavailable,
};
use hotcell_engine::Tools as _;
use hotcell_files::{Entry, FileError};
use hotcell_graph::ir::Retry;
use hotcell_models::ModelError;
use hotcell_plugins::{Settings, Trust};
use jiff::tz::TimeZone;
use thiserror::Error;

use crate::components;
use crate::context::LoadContext;
use crate::granted_files;
use crate::hooks::HookList;
use crate::key_files::key_file;
use crate::knowledge::{AgentKnowledge, MODEL_VARIABLE};
use crate::permissions::{FILE_GRANTS, Permissions};
use crate::plugin_nodes;
use crate::plugin_registry::{NoTool, PluginRegistry};
use crate::python::{FunctionError, Place, ProjectModules, PythonTools, working_folder};
use crate::revision::sources::{SourceFolder, Sources};
use crate::servers::{AgentServers, Granted};
use crate::tools::{AgentTools, explain};

/// The file that makes a folder a graph agent.
pub(crate) const GRAPH_FILE: &str = "graph.yaml";
/// The file that makes a folder an agent with a tool loop.
pub(crate) const CONFIG_FILE: &str = "config.yaml";

/// The file of an agent that is named for what it is.
pub(crate) const AGENT_FILE: &str = "agent.yaml";
/// Agents beside an agent that names none, in the order of their names.
const MAX_AGENTS_BESIDE: usize = 200;
/// The files of a folder that define its agent's own tools.
const OWN_TOOLS: [&str; 3] = ["tools.sh", "tools.py", "tools.ts"];
/// The shipped plugin whose granted folder is where an agent without tools of its own works.
const BUILT_IN_FOLDERS: [&str; 2] = ["fs", "execute_command"];
/// Bytes of a text that a source names.
const MAX_TEXT: u64 = 4 << 20;

/// Whether a folder holds both kinds of agent, which is an error.
pub(crate) fn both_files(sources: &Sources, folder: &Path) -> bool {
    [GRAPH_FILE, CONFIG_FILE].iter().all(|file| sources.below(folder).entry(Path::new(file)) != Entry::Missing)
}

pub(crate) struct AgentSurroundings<'a> {
    context: &'a LoadContext,
    folder: &'a Path,
    /// What import paths of Python may mean
    modules: ProjectModules,
    reach: Reach<'a>,
}

/// What the own tools of an agent are not.
#[derive(Debug, Error)]
enum OwnToolsError {
    #[error(transparent)]
    Function(#[from] FunctionError),
    #[error("two tools are called `{name}`: `{first}` and `{second}`; rename one of them")]
    Twice { name: String, first: String, second: String },
}

/// What an agent has within reach when it is loaded.
pub(crate) struct Reach<'a> {
    pub(crate) registry: &'a PluginRegistry,
    pub(crate) servers: &'a AgentServers,
    pub(crate) hooks: &'a HookList,
    pub(crate) python: &'a PythonTools,
    pub(crate) tools: &'a AgentTools,
    pub(crate) settings: &'a Settings,
    /// The folder that the settings are for: that of the agent, or of the one to which it belongs
    pub(crate) project: &'a Path,
    /// What is granted at this moment
    pub(crate) permissions: &'a Permissions,
}

impl<'a> AgentSurroundings<'a> {
    pub(crate) fn new(context: &'a LoadContext, folder: &'a Path, reach: Reach<'a>) -> Self {
        AgentSurroundings { context, folder, modules: ProjectModules::around(context.sources(), folder), reach }
    }

    /// Whether a path below the folder is there, links followed.
    fn state(&self, path: &str) -> FileState {
        let inside =
            |path: &Path| path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        if !inside(Path::new(path)) {
            return FileState::Outside;
        }
        match self.root().entry(&self.folder.join(path)) {
            Entry::File | Entry::Folder => FileState::Present,
            Entry::Special | Entry::Missing => FileState::Missing,
            Entry::Outside => FileState::Outside,
        }
    }

    /// The folder that no path in a file of the agent leaves.
    fn root(&self) -> SourceFolder<'_> {
        self.context.sources().below(self.reach.project)
    }

    /// The folder that a text named by the agent's file has to lie in, and where it lies.
    fn around(&self, path: &str) -> (SourceFolder<'_>, PathBuf) {
        let Reach { settings, permissions, project, .. } = self.reach;
        let path = self.folder.join(path);
        match granted_files::directory_of(settings, permissions, project, &path) {
            Some((directory, path)) => (self.context.sources().below(&directory), path),
            None => (self.root(), path),
        }
    }

    /// Whether there is such a file in the project.
    fn is_file(&self, path: &str) -> bool {
        self.root().is_file(&self.folder.join(path))
    }

    /// The plugins' folders, as the places where something was searched.
    fn plugins(&self, what: &str, name: &str) -> String {
        let folders: Vec<String> = self
            .context
            .plugin_folders(self.folder)
            .iter()
            .map(|folder| format!("`{}`", folder.strip_prefix(self.folder).unwrap_or(folder).display()))
            .collect();
        format!("{what} `{name}` of the plugins in {}", folders.join(", "))
    }

    /// A file of the folder as the settings of the project name it: what is granted to a file is granted to the one that the
    /// operator named, from where they named it.
    fn path_in_project(&self, file: &str) -> String {
        let file = self.folder.join(file);
        file.strip_prefix(self.reach.project).unwrap_or(&file).to_string_lossy().into_owned()
    }

    /// What files with tools are loaded with.
    fn place<'p>(&'p self, module: Option<&'p str>) -> Place<'p> {
        let Reach { settings, project, .. } = self.reach;
        Place { context: self.context, folder: project, settings, modules: &self.modules, module }
    }

    /// What is granted to a server that the agent's file describes.
    fn granted(&self, name: &str) -> Granted {
        (self.reach.settings.grants_of_file(name), self.reach.settings.held_back(name))
    }

    /// The tools that files of the agent's folder define, in their order.
    fn tools_of_files(&self) -> Result<Vec<OwnTool>, OwnToolsError> {
        let mut tools: Vec<OwnTool> = Vec::new();
        for file in OWN_TOOLS.iter().filter(|file| self.script(file) == FileState::Present) {
            let path = self.path_in_project(file);
            for (name, full_name) in self.reach.python.all(&self.place(None), &path)? {
                if let Some(twice) = tools.iter().find(|tool| tool.name == name) {
                    let (first, second) = (twice.full_name.clone(), full_name);
                    return Err(OwnToolsError::Twice { name, first, second });
                }
                tools.push(OwnTool { name, full_name });
            }
        }
        Ok(tools)
    }

    fn agent_folder(&self, name: &str) -> Option<PathBuf> {
        let single = matches!(Path::new(name).components().collect::<Vec<_>>()[..], [Component::Normal(_)]);
        single.then(|| self.folder.parent().unwrap_or(Path::new("..")).join(name))
    }
}

impl Surroundings for AgentSurroundings<'_> {
    fn script(&self, path: &str) -> FileState {
        match self.state(path) {
            FileState::Present if !self.is_file(path) => FileState::Missing,
            state => state,
        }
    }

    fn documents(&self, path: &str) -> FileState {
        self.state(path)
    }

    fn tool(&self, name: &str) -> ToolState {
        if let Some(state) = self.reach.tools.functions().find(name) {
            return state;
        }
        match self.reach.registry.tool(name) {
            Ok(_) => ToolState::Usable,
            Err(NoTool::Missing) => match self.reach.python.load_carried(&self.place(None), name) {
                Some(Ok(())) => ToolState::Usable,
                Some(Err(error)) => ToolState::Unusable(error.to_string()),
                None => ToolState::Missing,
            },
            Err(problem) => ToolState::Unusable(explain(name, &problem)),
        }
    }

    fn function(&self, module: &str, function: &str, called: Called) -> Imported {
        let found = self.modules.find(module).filter(|found| found.file.ends_with(".py"));
        let Some(found) = found else {
            return Imported::Missing { searched: self.modules.searched(module) };
        };
        let file = self.path_in_project(&found.file);
        match self.reach.python.function(&self.place(Some(module)), &file, function, called) {
            Ok(Some(name)) => Imported::Usable(name),
            Ok(None) => Imported::Missing { searched: vec![format!("`{}`", found.file)] },
            Err(error) => Imported::Unusable(error.to_string()),
        }
    }

    fn functions(&self, module: &str) -> Result<Vec<String>, Unavailable> {
        let Some(found) = self.modules.find(module).filter(|found| found.file.ends_with(".py")) else {
            return Ok(Vec::new());
        };
        let file = self.path_in_project(&found.file);
        self.reach.python.names_in(&self.place(Some(module)), &file).map_err(Unavailable::new)
    }

    fn tool_marks(&self, tool: &str) -> ToolMarks {
        self.reach.python.marks(tool).unwrap_or_default()
    }

    fn type_schema(&self, path: &str) -> Option<Arc<str>> {
        self.reach.tools.functions().schema_of(path)
    }

    fn model_schema(&self, module: &str, model: &str) -> Result<Option<Arc<str>>, Unavailable> {
        let Some(found) = self.modules.find(module).filter(|found| found.file.ends_with(".py")) else {
            return Ok(None);
        };
        let file = self.path_in_project(&found.file);
        let schema = self.reach.python.model(&self.place(Some(module)), &file, model).map_err(Unavailable::new)?;
        Ok(Some(schema.to_string().into()))
    }

    fn renders_jinja(&self) -> bool {
        self.reach.settings.renders_jinja()
    }

    fn agents_fall_back(&self) -> bool {
        self.reach.settings.agents_fall_back()
    }

    fn embedding_model(&self) -> Option<String> {
        self.context.environment().get(MODEL_VARIABLE)
    }

    fn named_tool(&self, name: &str) -> Imported {
        self.find_named_tool(name)
    }

    fn plugin_node(&self, name: &str) -> PluginNodeState {
        plugin_nodes::state(self.reach.registry, name)
    }

    fn import(&self, what: Import, path: &str) -> Imported {
        match what {
            Import::Tool => self.import_tool(path),
            Import::Agent => self.import_agent(path),
            Import::Hook => {
                let name = path.rsplit(['.', ':']).next().unwrap_or_default();
                let name = self.reach.settings.import(path).unwrap_or(name);
                match self.hook(name) {
                    true => Imported::Usable(name.to_owned()),
                    false => Imported::Missing { searched: vec![self.plugins("the hooks", name)] },
                }
            }
        }
    }

    fn declare_server(&self, server: &DeclaredServer) -> ServerState {
        self.reach.servers.declare(server, self.folder, |name| self.granted(name));
        self.reach.servers.state(&server.name)
    }

    fn note_server(&self, server: &DeclaredServer) {
        self.reach.servers.declare(server, self.folder, |name| self.granted(name));
    }

    fn retry_function(&self, function: &str, retry: &Retry) {
        self.reach.servers.retry_function(function, retry);
    }

    fn declare_component(&self, component: &DeclaredComponent) -> Result<(), Unavailable> {
        let Reach { tools, settings, project, .. } = self.reach;
        let place = components::Place { context: self.context, settings, project };
        tools.components().declare(component, &place).map_err(Unavailable::new)
    }

    fn node_types(&self, name: &str) -> Vec<String> {
        self.reach.registry.node_types(name)
    }

    fn component(&self, plugin: &str, component_type: &str) -> ComponentState {
        plugin_nodes::component(self.reach.registry, plugin, component_type)
    }

    fn own_tools(&self) -> Result<Vec<OwnTool>, Unavailable> {
        self.tools_of_files().map_err(Unavailable::new)
    }

    fn has_time_zone(&self, name: &str) -> bool {
        TimeZone::get(name).is_ok()
    }

    fn tool_file(&self, name: &str) -> Imported {
        self.find_tool_file(name)
    }

    fn is_sealed_shell(&self, tool: &str) -> bool {
        self.reach.tools.is_carried(tool)
    }

    fn shown_tool(&self, tool: &str) -> Option<(String, String)> {
        let told = self.reach.tools.describe(tool)?;
        Some((told.name, told.description))
    }

    fn working_folder(&self) -> String {
        let own = OWN_TOOLS.iter().map(|file| self.path_in_project(file));
        let granted = own.chain(BUILT_IN_FOLDERS.iter().map(|name| (*name).to_owned())).find_map(|name| {
            let grants = self.reach.settings.grants(&name);
            grants.fs.first().map(|granted| granted.guest.clone())
        });
        granted.unwrap_or_else(|| working_folder(&Grants::default()).to_owned())
    }

    fn model(&self, name: &str) -> Option<bool> {
        if let Some(known) = self.context.known_models() {
            return Some(known.iter().any(|known| known == name));
        }
        match name.parse().and_then(|name| self.context.providers().check(&name)) {
            // A provider that lacks its key, or a model it may not have, shows when it is called.
            Ok(()) | Err(ModelError::MissingKey { .. }) => None,
            Err(ModelError::UnknownProvider { .. } | ModelError::InvalidName { .. }) => Some(false),
            Err(_) => None,
        }
    }

    fn mcp_server(&self, name: &str) -> ServerState {
        self.reach.servers.state(name)
    }

    fn agent(&self, name: &str) -> AgentFolder {
        let around = self.context.sources().anywhere();
        let Some(folder) = self.agent_folder(name).filter(|folder| around.is_folder(folder)) else {
            return AgentFolder::Missing;
        };
        match (around.is_file(&folder.join(CONFIG_FILE)), around.is_file(&folder.join(GRAPH_FILE))) {
            (true, true) => AgentFolder::Both,
            (true, false) => AgentFolder::Config,
            (false, true) => AgentFolder::Graph,
            (false, false) => AgentFolder::Neither,
        }
    }

    fn agents(&self) -> Vec<String> {
        let Some(above) = self.modules.above() else { return Vec::new() };
        let around = self.context.sources().anywhere();
        let own = self.modules.roots().first();
        let is_other = |name: &String| {
            let real = around.real_path(&above.join(name));
            // A link may lead anywhere, and nobody named what it leads to.
            real.is_ok_and(|real| real.parent() == Some(above) && Some(&real) != own)
                && matches!(self.agent(name), AgentFolder::Config | AgentFolder::Graph)
        };
        let beside = self.context.sources().names(above);
        beside.into_iter().filter(is_other).take(MAX_AGENTS_BESIDE).collect()
    }

    fn skill(&self, name: &str) -> Result<(String, Arc<str>), Unavailable> {
        let path = format!("skills/{name}/SKILL.md");
        let mut problem = None;
        for root in self.modules.roots() {
            match self.context.sources().below(root).read_text(Path::new(&path), MAX_TEXT) {
                Ok(text) => return Ok((path, text.into())),
                // That of the nearest root says more than that another one has not got it either.
                Err(error) => {
                    problem.get_or_insert_with(|| Unavailable::new(error));
                }
            }
        }
        Err(problem.unwrap_or_else(|| Unavailable::new("it is not there")))
    }

    fn knowledge_base(&self, node: &str) -> KnowledgeBase {
        match (AgentKnowledge::file(self.folder, node).exists(), self.context.is_interactive()) {
            (true, _) => KnowledgeBase::Built,
            (false, true) => KnowledgeBase::Askable,
            (false, false) => KnowledgeBase::NotBuilt,
        }
    }

    fn read(&self, path: &str, within: Option<&str>) -> Result<Arc<str>, Unavailable> {
        if path.contains("://") {
            return self.fetch(path, within).map_err(Unavailable::new);
        }
        let said = |error: FileError| match error {
            FileError::Outside => {
                let directory = Path::new(path).parent().unwrap_or(Path::new(".")).to_string_lossy();
                Unavailable::new(format!("{error}; {}", path_grant(FILE_GRANTS, &directory, "/texts")))
            }
            error => Unavailable::new(error),
        };
        let (around, file) = self.around(path);
        if let Some(within) = within {
            let (around_folder, folder) = self.around(within);
            let (file, folder) = (around.real_path(&file), around_folder.real_path(&folder));
            if !file.map_err(said)?.starts_with(folder.map_err(said)?) {
                return Err(Unavailable::new("it leads out of its folder"));
            }
        }
        around.read_text(&file, MAX_TEXT).map(Arc::from).map_err(said)
    }

    fn key_file(&self, path: &str) -> Result<PathBuf, Unavailable> {
        key_file(self.folder, path, &self.reach.settings.grants_of_file(FILE_GRANTS), FILE_GRANTS)
            .map_err(Unavailable::new)
    }

    fn variable(&self, name: &str) -> Option<String> {
        // A file that came with a folder gets at no variable that was not granted to it.
        // For a run that goes on it has to be granted still.
        let granted = self.reach.settings.grants_of_file(FILE_GRANTS);
        let granted = self.reach.permissions.grants(FILE_GRANTS, &granted);
        let granted = granted.is_ok_and(|granted| granted.env.iter().any(|one| one == name));
        let may = granted || *self.context.trust() == Trust::Everything;
        may.then(|| self.context.environment().get(name)).flatten()
    }

    fn hook(&self, name: &str) -> bool {
        self.reach.hooks.has(name)
    }
}
