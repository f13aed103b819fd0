//! What lies around an agent's file and belongs to its folder: settings, plugins, MCP servers, hooks.

use std::path::Path;
use std::sync::Arc;

use hotcell_files::{FileError, Folder};
use hotcell_graph::diagnostic::Diagnostic;
use hotcell_plugins::{AgentFolder, MAX_SERVERS, SETTINGS_FILE, Settings};

use crate::context::LoadContext;
use crate::hooks::{AgentHooks, HookList};
use crate::load::asked::Asked;
use crate::offered::AgentFunctions;
use crate::permissions::Permissions;
use crate::plugin_registry::PluginRegistry;
use crate::revision::sources::FolderFor;
use crate::servers::{self, AgentServers, Reaching, ServersFile};
use crate::tools::AgentTools;

/// What lies around an agent's file and belongs to its folder.
pub(crate) struct ProjectContext {
    /// What counts of what the operator said about the folder
    pub(crate) said: AgentFolder,
    /// What the operator said about it, whoever asks
    pub(crate) opened: AgentFolder,
    pub(crate) registry: Arc<PluginRegistry>,
    pub(crate) servers: AgentServers,
    pub(crate) tools: AgentTools,
    pub(crate) permissions: Arc<Permissions>,
    pub(crate) hooks: AgentHooks,
}

impl ProjectContext {
    /// What belongs to the folder `settled`, which people know as `shown`.
    pub(crate) fn of(
        context: &LoadContext,
        settled: &Path,
        asked: Asked,
        told: &HookList,
        shown: &str,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Self {
        let opened = match asked.folder_for() {
            FolderFor::Person => context.named_folder(settled),
            FolderFor::Agent => context.agent_folder(settled),
        };
        let mut said = opened.unwrap_or_else(|error| {
            diagnostics.push(Diagnostic::error(error.to_string()));
            AgentFolder::unspoken(settled)
        });
        let decide = format!("review what it would grant with `hotcell trust {shown}`");
        if !said.is_trusted() {
            let reason = match said.changes() {
                [] => format!("you have not trusted the `{SETTINGS_FILE}` of this folder"),
                changes => format!("this folder has changed since you trusted it ({})", changes.join("; ")),
            };
            diagnostics.push(Diagnostic::warning(format!("{reason}: its grants have no effect")).help(decide));
        } else if asked == Asked::Stranger && said.grants_something() {
            let reason = format!(
                "what is granted to the agent in `{shown}` is left out, because an agent calls it that nobody trusts"
            );
            diagnostics.push(Diagnostic::warning(reason).help(format!(
                "name the caller's folder under `[callers]` in the `{SETTINGS_FILE}` of `{shown}`, or decide with `hotcell trust` whether the caller is trusted"
            )));
        }
        let opened = said.clone();
        if asked == Asked::Stranger && said.grants_something() {
            said = said.for_a_stranger();
        }
        // What an agent does that nobody trusts is not asked for.
        let asks = said.is_trusted() && said.settings().asks_denials() && asked != Asked::Stranger;
        let trust = context.trust_of(asked.folder_for());
        let permissions = Permissions::asking(settled, trust, asks.then(|| context.trust().clone()));
        let (registry, found) = match context.sources().plugins(settled) {
            Some(kept) => {
                let now = context.folder_now(settled, asked.folder_for()).ok();
                let now = now.map(|now| if asked == Asked::Stranger { now.for_a_stranger() } else { now });
                PluginRegistry::of_revision(context, kept, &said, now.as_ref().unwrap_or(&said), permissions.clone())
            }
            None => PluginRegistry::new(context, &context.catalogue(settled), &said, permissions.clone()),
        };
        diagnostics.extend(found);
        let registry = Arc::new(registry);
        let reaching = Reaching {
            connections: context.connections(),
            sources: context.sources().clone(),
            project: settled.to_owned(),
            permissions: permissions.clone(),
            starts_programs: context.starts_programs(),
            clock: context.clock().clone(),
        };
        let servers = servers(context, reaching, said.settings(), diagnostics);
        // What the program hands in is for the agent that it names, and not for others that this one calls.
        let offered = match asked {
            Asked::Person => context.offered().clone(),
            Asked::Agent | Asked::Stranger => Arc::default(),
        };
        let functions = AgentFunctions::new(offered, context.sources().clone());
        let (model, default_model) = (context.model(), context.default_model());
        let tools = AgentTools::new(functions, registry.clone(), servers.clone(), model, default_model);
        let (hooks, found) = AgentHooks::new(tools.clone(), said.settings(), told);
        diagnostics.extend(found);
        ProjectContext { said, opened, registry, servers, tools, permissions, hooks }
    }
}

/// The MCP servers within reach of an agent.
fn servers(
    context: &LoadContext,
    reaching: Reaching,
    settings: &Settings,
    diagnostics: &mut Vec<Diagnostic>,
) -> AgentServers {
    let (environment, folder) = (context.environment(), reaching.project.clone());
    let permissions = reaching.permissions.clone();
    // A server gets at no variable that was not granted to that very server.
    let granted = |server: &str, variable: &str| {
        let grants = settings.grants(&format!("{}{server}", servers::PREFIX));
        grants.env.iter().any(|one| one == variable).then(|| environment.get(variable)).flatten()
    };
    let any = |_: &str, variable: &str| environment.get(variable);
    // How servers are reached is no part of a revision: it may hold keys.
    let own = || match Folder::new(&folder).read_text(Path::new(servers::SERVERS_FILE), MAX_SERVERS) {
        Ok(text) => {
            let pinned = settings.check_pinned(servers::SERVERS_FILE, text.as_bytes());
            // A revision goes on with a file that was changed, if it was trusted anew.
            let anew = || context.sources().is_kept() && permissions.pins_file(servers::SERVERS_FILE, text.as_bytes());
            if pinned.is_ok() || anew() { Ok(Some(text)) } else { Ok(pinned.map(|()| None)?) }
        }
        Err(FileError::Missing) => Ok(None),
        Err(error) => Err(error.into()),
    };
    let users = || match context
        .users_servers()
        .map(|file| hotcell_files::read_text(file, MAX_SERVERS).map_err(FileError::from))
    {
        None | Some(Err(FileError::Missing)) => Ok(None),
        Some(Ok(text)) => Ok(Some(text)),
        Some(Err(error)) => Err(error.into()),
    };
    let mut files = vec![ServersFile { file: folder.join(servers::SERVERS_FILE), text: &own, variable: &granted }];
    files.extend(context.users_servers().map(|file| ServersFile {
        file: file.to_owned(),
        text: &users,
        variable: &any,
    }));
    let grants = |name: &str| (settings.grants(name), settings.held_back(name));
    let (servers, problems) = AgentServers::new(reaching, &files, grants);
    diagnostics.extend(problems.iter().map(|problem| Diagnostic::error(problem.to_string())));
    servers
}
