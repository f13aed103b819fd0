//! The folder of an agent as front ends ask about it.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use hotcell_dialects::{
    AgentFolder, ComponentState, FileState, KnowledgeBase, OfferState, ServerState, Surroundings, ToolState,
};
use hotcell_models::ModelError;
use hotcell_plugins::Trust;

use crate::hooks::HookList;
use crate::host::Host;
use crate::knowledge::AgentKnowledge;
use crate::offers;
use crate::servers::AgentServers;
use crate::shelf::{NoTool, Shelf};
use crate::tools::explain;

/// What is granted to the file of an agent itself: variables of the environment that it may name.
pub(crate) const FILE_GRANTS: &str = "agent";
/// The file that makes a folder a graph agent.
pub(crate) const GRAPH_FILE: &str = "graph.yaml";
/// The file that makes a folder an agent with a tool loop.
pub(crate) const CONFIG_FILE: &str = "config.yaml";

/// The file of an agent that is named for what it is.
pub(crate) const AGENT_FILE: &str = "agent.yaml";
/// Bytes of a text that a source names.
const MAX_TEXT: u64 = 4 << 20;

/// Whether a folder holds both kinds of agent, which is an error.
pub(crate) fn both_files(folder: &Path) -> bool {
    folder.join(GRAPH_FILE).exists() && folder.join(CONFIG_FILE).exists()
}

pub(crate) struct AgentSurroundings<'a> {
    host: &'a Host,
    folder: &'a Path,
    shelf: &'a Shelf,
    servers: &'a AgentServers,
    hooks: &'a HookList,
}

impl<'a> AgentSurroundings<'a> {
    pub(crate) fn new(
        host: &'a Host,
        folder: &'a Path,
        shelf: &'a Shelf,
        servers: &'a AgentServers,
        hooks: &'a HookList,
    ) -> Self {
        AgentSurroundings { host, folder, shelf, servers, hooks }
    }

    /// Whether a path below the folder is there, links followed.
    fn state(&self, path: &str) -> FileState {
        let inside =
            |path: &Path| path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        if !inside(Path::new(path)) {
            return FileState::Outside;
        }
        let (Ok(found), Ok(folder)) =
            (std::fs::canonicalize(self.folder.join(path)), std::fs::canonicalize(self.folder))
        else {
            return FileState::Missing;
        };
        if found.starts_with(folder) { FileState::Present } else { FileState::Outside }
    }

    fn agent_folder(&self, name: &str) -> Option<PathBuf> {
        let single = matches!(Path::new(name).components().collect::<Vec<_>>()[..], [Component::Normal(_)]);
        single.then(|| self.folder.parent().unwrap_or(Path::new("..")).join(name))
    }
}

impl Surroundings for AgentSurroundings<'_> {
    fn script(&self, path: &str) -> FileState {
        match self.state(path) {
            FileState::Present if !self.folder.join(path).is_file() => FileState::Missing,
            state => state,
        }
    }

    fn documents(&self, path: &str) -> FileState {
        self.state(path)
    }

    fn tool(&self, name: &str) -> ToolState {
        match self.shelf.tool(name) {
            Ok(_) => ToolState::Usable,
            Err(NoTool::Missing) => ToolState::Missing,
            Err(problem) => ToolState::Unusable(explain(name, &problem)),
        }
    }

    fn offer(&self, name: &str) -> OfferState {
        offers::state(self.shelf, name)
    }

    fn component(&self, plugin: &str, component_type: &str) -> ComponentState {
        offers::component(self.shelf, plugin, component_type)
    }

    fn own_tool(&self, _name: &str) -> bool {
        false
    }

    fn model(&self, name: &str) -> Option<bool> {
        if let Some(known) = self.host.known_models() {
            return Some(known.iter().any(|known| known == name));
        }
        match name.parse().and_then(|name| self.host.providers().check(&name)) {
            // A provider that lacks its key, or a model it may not have, shows when it is called.
            Ok(()) | Err(ModelError::MissingKey { .. }) => None,
            Err(ModelError::UnknownProvider { .. } | ModelError::InvalidName { .. }) => Some(false),
            Err(_) => None,
        }
    }

    fn mcp_server(&self, name: &str) -> ServerState {
        self.servers.state(name)
    }

    fn agent(&self, name: &str) -> AgentFolder {
        let Some(folder) = self.agent_folder(name).filter(|folder| folder.is_dir()) else {
            return AgentFolder::Missing;
        };
        match (folder.join(CONFIG_FILE).is_file(), folder.join(GRAPH_FILE).is_file()) {
            (true, true) => AgentFolder::Both,
            (true, false) => AgentFolder::Config,
            (false, true) => AgentFolder::Graph,
            (false, false) => AgentFolder::Neither,
        }
    }

    fn knowledge_base(&self, node: &str) -> KnowledgeBase {
        match (AgentKnowledge::file(self.folder, node).exists(), self.host.is_interactive()) {
            (true, _) => KnowledgeBase::Built,
            (false, true) => KnowledgeBase::Askable,
            (false, false) => KnowledgeBase::NotBuilt,
        }
    }

    fn read(&self, path: &str, within: Option<&str>) -> Result<Arc<str>, String> {
        let of_the_system = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
            _ => error.to_string(),
        };
        let file = std::fs::canonicalize(self.folder.join(path)).map_err(of_the_system)?;
        if let Some(within) = within {
            let folder = std::fs::canonicalize(self.folder.join(within)).map_err(of_the_system)?;
            if !file.starts_with(folder) {
                return Err("it leads out of its folder".to_owned());
            }
        }
        let size = std::fs::metadata(&file).map_err(of_the_system)?.len();
        if size > MAX_TEXT {
            return Err(format!("it has {size} bytes, and {MAX_TEXT} are the most that is read"));
        }
        std::fs::read_to_string(&file).map(Arc::from).map_err(of_the_system)
    }

    fn variable(&self, name: &str) -> Option<String> {
        // A file that came with a folder gets at no variable that was not granted to it.
        let said = || self.host.agent_folder(self.folder);
        let granted = || said().is_ok_and(|said| said.settings().grants(FILE_GRANTS).env.iter().any(|one| one == name));
        let may = *self.host.trust() == Trust::Everything || granted();
        may.then(|| self.host.environment().get(name)).flatten()
    }

    fn hook(&self, name: &str) -> bool {
        self.hooks.has(name)
    }
}
