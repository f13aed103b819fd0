//! Loading one agent, without those that it calls.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hotcell_cells::Grants;
use hotcell_dialects::leafmesh::MeshSettings;
use hotcell_dialects::sherma::{Child, Choice};
use hotcell_dialects::{Dialect, loki, misspelt_key, recognise};
use hotcell_engine::Callee;
use hotcell_graph::Key;
use hotcell_graph::diagnostic::{Diagnostic, Severity, SourceFile};
use hotcell_graph::ir::{Action, CallTarget, Callable, Graph};
use hotcell_plugins::AgentFolder;

use crate::agent::{ComponentsFile, LoadFailure};
use crate::context::LoadContext;
use crate::folder::{AgentSurroundings, CONFIG_FILE, GRAPH_FILE, Reach, both_files};
use crate::hooks::{AgentHooks, HookList};
use crate::knowledge::AgentKnowledge;
use crate::load::asked::Asked;
use crate::load::front_end::FrontEndOutput;
use crate::load::locate::{Located, parts, read};
use crate::load::project::ProjectContext;
use crate::load::unmatched::{Known, unmatched};
use crate::permissions::{FILE_GRANTS, Permissions};
use crate::remote;
use crate::scripts::{AgentScripts, Place};
use crate::web::AgentWeb;

/// An agent that is to be loaded.
#[derive(Clone, Copy)]
pub(crate) struct LoadRequest<'a> {
    pub(crate) located: &'a Located,
    pub(crate) choice: Choice<'a>,
    /// The folder whose plugins and settings count; none means that of the file
    pub(crate) project: Option<&'a Path>,
    pub(crate) asked: Asked,
    /// Files with parts of it
    pub(crate) components: &'a [ComponentsFile],
    /// The language it is written in; none is found out from its text
    pub(crate) dialect: Option<Dialect>,
}

/// One agent, without those that it calls.
pub(crate) struct LoadedAgent {
    pub(crate) callee: Callee,
    pub(crate) grants: Arc<Grants>,
    pub(crate) permissions: Arc<Permissions>,
    pub(crate) dialect: Dialect,
    pub(crate) file: PathBuf,
    pub(crate) folder: PathBuf,
    pub(crate) conversation_starters: Vec<String>,
    pub(crate) digest: String,
    pub(crate) hooks: HookList,
    /// Those of its hooks that are not of its own folder
    pub(crate) operators_hooks: Arc<AgentHooks>,
    pub(crate) operators_list: HookList,
    /// What the operator said about its folder, whoever asks
    pub(crate) said: AgentFolder,
    pub(crate) knowledge: Arc<AgentKnowledge>,
    /// The agents that its nodes call, and whether those nodes are checked before the run
    pub(crate) calls: Vec<(Key, bool)>,
    /// The agents that its file names by their files
    pub(crate) children: Vec<Child>,
    /// The agents that its file names by their addresses
    pub(crate) remotes: Vec<(Key, Callee)>,
    /// The agents of the file itself that others of its agents may ask
    pub(crate) members: Vec<(Key, Callee)>,
    pub(crate) style: Option<&'static str>,
    /// What it says beside its graph, if it is a mesh
    pub(crate) mesh: Option<Arc<MeshSettings>>,
    pub(crate) names: Vec<Key>,
}

/// Loads one agent; `told` are hooks that are told of it anyway.
pub(crate) fn load_one(
    context: &LoadContext,
    wanted: LoadRequest<'_>,
    told: &HookList,
) -> Result<(LoadedAgent, Vec<Diagnostic>), LoadFailure> {
    let LoadRequest { located, choice, project, asked, components, dialect } = wanted;
    let Located { file, shown, shown_folder } = located;
    let sources = context.sources();
    let text = read(sources, file)?;
    let folder = file.parent().map(Path::to_path_buf).unwrap_or_default();
    let is_config = file.file_name().is_some_and(|name| name == CONFIG_FILE);
    if both_files(sources, &folder) && (is_config || file.file_name().is_some_and(|name| name == GRAPH_FILE)) {
        return Err(loki::both_files(&folder.display().to_string()).into());
    }
    let mut digest = blake3::hash(text.as_bytes()).to_hex().to_string();
    let parts = parts(sources, components)?;
    for part in &parts {
        digest = blake3::hash(format!("{digest}{}{:?}", part.file.text, part.rename).as_bytes()).to_hex().to_string();
    }
    let source = Arc::new(SourceFile { name: shown.clone(), text });
    let Some(dialect) = dialect.or_else(|| recognise(shown, &source.text)) else {
        let near = misspelt_key(&source.text);
        let (near, a) = near.map_or_else(
            || (String::new(), "a"),
            |(key, known)| (format!("did you mean `{known}` in place of `{key}`? "), "A"),
        );
        let languages = "Loki graph has `nodes` and `start` at its top level, a sherma agent `manifest_version`, a configuration of the \
                         Open Agent Specification `component_type`, an AgentLoom workflow `steps`, an agent of AgentLoom `system_prompt`, \
                         a mesh of LeafMesh `agents` and `entry_points`";
        return Err(Diagnostic::error(format!("`{shown}` is not an agent in any language that hotcell reads"))
            .help(format!("{near}{a} {languages}"))
            .into());
    };

    let mut diagnostics = Vec::new();
    let settled = project.unwrap_or(&folder);
    let ProjectContext { said, opened, registry, servers, tools, permissions, mut hooks } =
        ProjectContext::of(context, settled, asked, told, shown_folder, &mut diagnostics);
    let (settings, held_back) = said.settings_for_file(file, source.text.as_bytes());
    let settings = &settings;
    if held_back {
        let what = match said.counts_as_it_is() {
            true => format!("`{shown}` lies in a directory that is granted for writing"),
            false => format!("`{shown}` is not as it was when its folder was trusted"),
        };
        diagnostics.push(
            Diagnostic::warning(format!(
                "{what}: what is granted to the file itself, its MCP servers and documents is left out"
            ))
            .help(format!("look at it, and decide, with `hotcell trust {shown_folder}`")),
        );
    }

    let listed = hooks.list().and(told);
    let operators_hooks = Arc::new(hooks.of_operator());
    let operators_list = operators_hooks.list().and(told);
    let reach = Reach {
        registry: &registry,
        servers: &servers,
        hooks: &listed,
        python: tools.python(),
        tools: &tools,
        settings,
        project: settled,
        permissions: &permissions,
    };
    let surroundings = AgentSurroundings::new(context, &folder, reach);
    let mut loaded = FrontEndOutput::of(dialect, is_config, &source, choice, &parts, &surroundings);
    diagnostics.append(&mut loaded.diagnostics);
    if settings.hook_order().is_none() {
        hooks.tell_in_order(&loaded.hooks);
    }

    let mut scripts = AgentScripts::new(context.cell_runtime().cells().clone(), permissions.clone());
    let checked = loaded.checked;
    let mut calls = Vec::new();
    if let Some(graph) = &loaded.graph {
        for (_, node) in graph.nodes() {
            let script = match &node.action {
                Action::Script(script) => script,
                // The front end says where the other agents of this one are.
                Action::Call(action) => {
                    let called: Vec<(&Key, bool)> = match &action.target {
                        CallTarget::Agent { agent, .. } => vec![(agent, checked)],
                        CallTarget::Loop(steps) => {
                            let teams = steps.agent.tools.iter().filter_map(Callable::team);
                            teams
                                .flat_map(|team| team.agents.iter().map(|agent| (agent, checked && team.needed)))
                                .collect()
                        }
                        CallTarget::Graph { .. } => Vec::new(),
                    };
                    for (agent, checked) in called {
                        if !loaded.names(agent) && calls.iter().all(|(known, _)| known != agent) {
                            calls.push((agent.clone(), checked));
                        }
                    }
                    continue;
                }
                _ => continue,
            };
            match scripts.load(context, Place { project: settled, folder: &folder }, &script.file, settings) {
                Err(error) if checked => {
                    diagnostics.push(Diagnostic::error(error.to_string()).at(&node.span).node(&*node.id));
                }
                Err(error) => scripts.leave_broken(&script.file, error),
                Ok(()) => {}
            }
        }
        // The settings of a project are for all of its agents.
        if project.is_none() && loaded.children.is_empty() {
            let files = tools.python().names();
            let of_graph = graph.nodes().filter_map(|(_, node)| match &node.action {
                Action::Script(script) => Some(script.file.as_str()),
                _ => None,
            });
            let plugins = registry.plugins().map(|(name, _)| name);
            let guards = registry.plugins().filter(|(_, registered)| !registered.plugin.description.hooks.is_empty());
            let known = Known {
                names: of_graph.chain(files.iter().map(String::as_str)).chain(plugins).collect(),
                servers: servers.names(),
                knowledge: loaded.knowledge_bases.iter().map(|base| &*base.node).collect(),
                hooks: guards.map(|(name, _)| name).collect(),
                text: &source.text,
            };
            let mut found = unmatched(said.written(), &known);
            if !said.is_trusted() {
                // What import paths mean does not count, so that files which only those name are not known.
                found.retain(|(name, _)| !settled.join(name).is_file());
            }
            diagnostics.extend(found.into_iter().map(|(_, warning)| warning));
        }
    }
    let broken = diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error);
    let Some(graph) = loaded.graph.filter(|_| !broken) else { return Err(LoadFailure { diagnostics }) };
    let tools = Arc::new(tools);
    let bases = loaded.knowledge_bases;
    registry.note_used(context.sources(), settled, context.is_lasting());
    let of_file = |name: &str| settings.grants_of_file(name);
    let knowledge = Arc::new(AgentKnowledge::new(&folder, bases, tools.clone(), permissions.clone(), of_file));
    let callee = Callee {
        at_once: None,
        graph: Arc::new(graph),
        scripts: Arc::new(scripts),
        tools: tools.clone(),
        plugin_nodes: tools,
        knowledge: knowledge.clone(),
        hooks: Arc::new(hooks),
        agents: None,
        web: Arc::new(AgentWeb { grants: settings.grants_of_file(FILE_GRANTS), permissions: permissions.clone() }),
    };
    // What is granted to the file is granted to all of its agents.
    let member = |(name, graph): (Key, Arc<Graph>)| (name, Callee { graph, ..callee.clone() });
    let members = loaded.members.into_iter().map(member).collect();
    let mut remotes = Vec::with_capacity(loaded.remotes.len());
    let granted = (settings.grants_of_file(FILE_GRANTS), permissions.clone());
    for remote in &loaded.remotes {
        match remote::callee(remote, granted.clone(), &callee, context.clock().clone()) {
            Ok(found) => remotes.push((remote.name.clone(), found)),
            Err(error) => diagnostics.push(Diagnostic::error(error.to_string()).at(&remote.span)),
        }
    }
    if diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error) {
        return Err(LoadFailure { diagnostics });
    }
    let one = LoadedAgent {
        callee,
        grants: settings.grants_of_file(FILE_GRANTS),
        permissions,
        remotes,
        members,
        style: loaded.style,
        mesh: loaded.mesh.map(Arc::new),
        names: loaded.names,
        dialect,
        file: file.clone(),
        folder,
        conversation_starters: loaded.conversation_starters,
        digest,
        hooks: listed,
        operators_hooks,
        operators_list,
        said: opened,
        knowledge,
        calls,
        children: loaded.children,
    };
    Ok((one, diagnostics))
}
