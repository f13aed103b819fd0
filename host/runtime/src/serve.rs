//! What a host offers to other programs as tools: the tools of plugins, and agents, each as one tool that takes a prompt.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hotcell_graph::diagnostic::Diagnostic;
use hotcell_mcp::{CallContext, Calling, Catalog, CatalogError, Client, OfferedTool};
use hotcell_plugins::FolderError;
use serde_json::{Map, Value};

use crate::agent::{Agent, LoadFailure};
use crate::agent_tool::AgentTool;
use crate::host::Host;
use crate::plugin_tool::PluginTool;
use crate::revision_registry::RevisionRegistry;

/// Tools for other programs.
pub struct ToolCatalog {
    registry: Arc<RevisionRegistry>,
    plugins: Vec<PluginTool>,
    agents: Vec<AgentTool>,
}

impl ToolCatalog {
    /// Nothing yet.
    pub fn new(host: Host) -> Self {
        ToolCatalog::of(Arc::new(RevisionRegistry::new(host)))
    }

    /// Nothing yet, with agents that come from a registry.
    pub fn of(registry: Arc<RevisionRegistry>) -> Self {
        ToolCatalog { registry, plugins: Vec::new(), agents: Vec::new() }
    }

    fn host(&self) -> &Host {
        self.registry.host()
    }

    /// Offers the tools of the plugins within reach of a folder, on the terms that the folder has for them. What cannot be
    /// used is left out; the diagnostics say why.
    ///
    /// # Errors
    /// When what is said about the folder cannot be used.
    pub fn add_plugins(&mut self, folder: &Path) -> Result<Vec<Diagnostic>, FolderError> {
        let (tools, mut diagnostics) = self.host().plugin_tools(folder)?;
        let registry = tools.registry.clone();
        for (name, registered) in registry.plugins() {
            if let Some(reason) = registered.held() {
                diagnostics.push(Diagnostic::warning(reason));
                continue;
            }
            // Loaded now, so that a call never meets a file that was replaced in the meantime.
            if let Err(error) = registry.cell(registered) {
                diagnostics.push(Diagnostic::warning(error.to_string()));
                continue;
            }
            for tool in &registered.plugin.description.tools {
                let full = format!("{name}_{}", tool.name);
                let called = match self.shows(&tool.name) || registry.tool(&tool.name).is_err() {
                    false => tool.name.clone(),
                    true => tool_name(&full),
                };
                self.plugins.push(PluginTool::new(called, name, tool, registered, tools.clone()));
            }
        }
        Ok(diagnostics)
    }

    /// Offers agents as they are now, each as a tool of its own name. Gives their warnings.
    ///
    /// # Errors
    /// When one of them cannot be loaded.
    pub async fn add_agents(&mut self, paths: &[PathBuf]) -> Result<Vec<Diagnostic>, LoadFailure> {
        let loaded = self.registry.refresh_all(paths).await;
        let agents = loaded.into_iter().collect::<Result<Vec<Arc<Agent>>, _>>()?;
        let warnings = agents.iter().flat_map(|agent| agent.warnings.clone()).collect();
        agents.into_iter().for_each(|agent| self.add_agent(agent));
        Ok(warnings)
    }

    fn add_agent(&mut self, agent: Arc<Agent>) {
        let name = self.free_name(&agent);
        self.agents.push(AgentTool::new(name, agent));
    }

    /// How many tools there are.
    pub fn len(&self) -> usize {
        self.plugins.len() + self.agents.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The agent's own name, else that of its folder, else one with a number.
    fn free_name(&self, agent: &Agent) -> String {
        let folder = agent.folder.file_name().map(|name| name.to_string_lossy().into_owned());
        let own: Vec<String> = [Some(agent.graph.name.clone()), folder].into_iter().flatten().collect();
        let mut names = own.iter().map(|name| tool_name(name)).filter(|name| !name.is_empty());
        let first = names.clone().next().unwrap_or_else(|| "agent".to_owned());
        let numbered = (2..).map(|number| format!("{first}_{number}"));
        names
            .find(|name| !self.shows(name))
            .or_else(|| numbered.into_iter().find(|name| !self.shows(name)))
            .unwrap_or(first)
    }

    fn shows(&self, name: &str) -> bool {
        self.all().any(|offered| offered.name == name)
    }

    fn all(&self) -> impl Iterator<Item = &OfferedTool> {
        self.plugins.iter().map(|tool| &tool.offered).chain(self.agents.iter().map(AgentTool::offered))
    }
}

impl Catalog for ToolCatalog {
    fn tools(&self, _client: &Client) -> Vec<OfferedTool> {
        self.all().cloned().collect()
    }

    fn call<'a>(&'a self, name: &'a str, arguments: Map<String, Value>, call: CallContext) -> Calling<'a> {
        Box::pin(async move {
            if let Some(tool) = self.plugins.iter().find(|tool| tool.offered.name == name) {
                return tool.call(&arguments, &call).await;
            }
            match self.agents.iter().find(|tool| tool.offered().name == name) {
                Some(tool) => tool.call(&arguments, &call, self.host()).await,
                None => Err(CatalogError::Unavailable(format!("there is no tool `{name}`"))),
            }
        })
    }
}

/// The agents below a folder: the folder itself, or each folder in it that holds one.
pub fn agents_in(folder: &Path) -> Vec<PathBuf> {
    if holds_agent(folder) {
        return vec![folder.to_owned()];
    }
    let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| holds_agent(path)).collect();
    found.sort();
    found
}

/// Whether a folder is that of an agent.
pub(crate) fn holds_agent(folder: &Path) -> bool {
    ["graph.yaml", "config.yaml", "agent.yaml"].iter().any(|file| folder.join(file).is_file())
}

/// A name as every client takes it.
pub fn tool_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.') { c } else { '_' };
    name.trim().chars().map(plain).take(128).collect()
}
