//! What lies around an agent's file and belongs to its folder: settings, plugins, MCP servers, hooks.

use std::path::Path;
use std::sync::Arc;

use hotcell_graph::diagnostic::Diagnostic;
use hotcell_plugins::{AgentFolder, SETTINGS_FILE, Settings};

use crate::context::LoadContext;
use crate::folder::FILE_GRANTS;
use crate::hooks::{AgentHooks, HookList};
use crate::knowledge;
use crate::plugin_registry::PluginRegistry;
use crate::servers::{self, AgentServers, ServersFile};
use crate::tools::AgentTools;

/// What lies around an agent's file and belongs to its folder.
pub(crate) struct ProjectContext {
    pub(crate) said: AgentFolder,
    pub(crate) registry: Arc<PluginRegistry>,
    pub(crate) servers: AgentServers,
    pub(crate) tools: AgentTools,
    pub(crate) hooks: AgentHooks,
}

impl ProjectContext {
    /// What belongs to the folder `settled`, which people know as `shown`.
    pub(crate) fn of(
        context: &LoadContext,
        settled: &Path,
        told: &HookList,
        shown: &str,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Self {
        let said = context.agent_folder(settled).unwrap_or_else(|error| {
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
        let catalogue = context.catalogue(settled);
        let (registry, found) = PluginRegistry::new(context, &catalogue, &said);
        diagnostics.extend(found);
        let registry = Arc::new(registry);
        let servers = servers(context, settled, said.settings(), diagnostics);
        let tools = AgentTools::new(registry.clone(), servers.clone(), context.model(), context.default_model());
        let (hooks, found) = AgentHooks::new(tools.clone(), said.settings(), told);
        diagnostics.extend(found);
        ProjectContext { said, registry, servers, tools, hooks }
    }
}

/// The MCP servers within reach of an agent.
fn servers(
    context: &LoadContext,
    folder: &Path,
    settings: &Settings,
    diagnostics: &mut Vec<Diagnostic>,
) -> AgentServers {
    let environment = context.environment();
    let to_servers = |name: &&str| name.starts_with(servers::PREFIX);
    // A file that came with a folder gets at no variable that was not granted.
    let granted = |variable: &str| {
        let granted =
            settings.names().filter(to_servers).any(|name| settings.grants(name).env.iter().any(|one| one == variable));
        granted.then(|| environment.get(variable)).flatten()
    };
    let any = |variable: &str| environment.get(variable);
    let mut files = vec![ServersFile { file: folder.join(servers::SERVERS_FILE), variable: &granted }];
    files.extend(context.users_servers().map(|file| ServersFile { file: file.to_owned(), variable: &any }));
    let (servers, problems) = AgentServers::new(context.connections(), &files, |name| settings.grants(name));
    diagnostics.extend(problems.into_iter().map(Diagnostic::error));
    servers
}

/// What the settings say of what an agent does not have.
pub(crate) fn unused(settings: &Settings, text: &str, is_used: impl Fn(&str) -> bool) -> Vec<Diagnostic> {
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
