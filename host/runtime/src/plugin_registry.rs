//! The plugins within reach of an agent, each compiled when it is first used.

mod error;
mod registered;
mod store;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use hotcell_budget::Budget;
use hotcell_cells::{
    Cell, Cells, ConnectorDescription, Description, NodeDescription, PlaceFinder, Terms, ToolDescription, digest,
};
use hotcell_graph::diagnostic::{Diagnostic, Severity};
use hotcell_plugins::{
    AgentFolder, Catalogue, Plugin, SignatureError, SignaturePolicy, Standing, UnsignedError, signature_file,
    signer_by_text,
};

pub(crate) use self::error::{ComponentUnusable, NoPluginNode, NoTool, NotPrepared};
pub(crate) use self::registered::RegisteredPlugin;
use self::store::store;
use crate::context::LoadContext;
use crate::permissions::Permissions;
use crate::revision::sources::{PluginOfRevision, Sources};
use crate::scripts::granted_variables;
use crate::settle::log_of;

/// What a plugin's tool is called in full: `plugin/tool`.
const SEPARATOR: char = '/';
/// The variable of the environment with the address at which other systems reach this host.
pub(crate) const CALLBACK_URL: &str = "HOTCELL_CALLBACK_URL";
/// What the connector of a plugin is called.
const CONNECTOR: &str = "connector";

/// The plugins of an agent.
pub(crate) struct PluginRegistry {
    cells: Cells,
    plugins: BTreeMap<String, RegisteredPlugin>,
    /// Tools by every name a graph may use for them
    tools: HashMap<String, Vec<ToolPlace>>,
    /// Where other systems send answers that come later
    callback_url: Option<String>,
    /// The folder of the agent
    folder: PathBuf,
    permissions: Arc<Permissions>,
    used: Used,
}

/// The plugins that were asked for while an agent was loaded.
#[derive(Default)]
struct Used {
    names: Mutex<BTreeSet<String>>,
    /// Whether nobody asks any more what is used
    is_noted: AtomicBool,
}

impl Used {
    fn add(&self, name: &str) {
        if !self.is_noted.load(Ordering::Relaxed) {
            self.names.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned());
        }
    }
}

/// Which tool of which plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ToolPlace {
    plugin: String,
    tool: usize,
}

/// A tool that was found by its name.
pub(crate) struct FoundTool<'s> {
    pub(crate) registered: &'s RegisteredPlugin,
    pub(crate) tool: &'s ToolDescription,
}

/// Something that was found by its full name.
pub(crate) struct FoundPluginNode<'s> {
    pub(crate) registered: &'s RegisteredPlugin,
    pub(crate) plugin_node: PluginNode<'s>,
}

/// What a plugin offers as a node of a graph.
pub(crate) enum PluginNode<'s> {
    Node(&'s NodeDescription),
    Tool(&'s ToolDescription),
    Connector(&'s ConnectorDescription),
}

impl PluginRegistry {
    /// Whether the component of a plugin lies in the agent's folder, and not in one of the operator's.
    pub(crate) fn is_of_folder(&self, registered: &RegisteredPlugin) -> bool {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        real(&registered.file).starts_with(real(&self.folder))
    }

    /// Puts up the plugins of a catalogue as they stand in an agent's folder. What is broken is a warning and stops
    /// nothing else.
    pub(crate) fn new(
        context: &LoadContext,
        catalogue: &Catalogue,
        folder: &AgentFolder,
        permissions: Arc<Permissions>,
    ) -> (Self, Vec<Diagnostic>) {
        let mut registry = PluginRegistry::empty(context, folder, permissions);
        let mut diagnostics = broken(catalogue);
        for (file, plugin, standing) in folder.standings(catalogue, context.signatures()) {
            if context.signatures().required && standing == Standing::Ready {
                let Description { name, version, .. } = &plugin.description;
                if let Err(reason) = context.signatures().versions.note(name, version.as_deref()) {
                    diagnostics
                        .push(Diagnostic::warning(format!("plugin `{name}`: its version is not kept: {reason}")));
                }
            }
            diagnostics.extend(registry.add(context, folder, file, plugin, standing, None));
        }
        (registry, diagnostics)
    }

    /// Puts up the plugins that a revision used. Whose signatures are needed is decided now. The revision came with its journal, which may
    /// have been sent, so it has no say about the hooks in the folders of the user: they are told whatever it names, as they are in these
    /// folders now. `now` is what is said about the agent's folder at this moment.
    pub(crate) fn of_revision(
        context: &LoadContext,
        plugins: Vec<PluginOfRevision>,
        folder: &AgentFolder,
        now: &AgentFolder,
        permissions: Arc<Permissions>,
    ) -> (Self, Vec<Diagnostic>) {
        let mut registry = PluginRegistry::empty(context, folder, permissions);
        let users = context.users_catalogue();
        let mut diagnostics = broken(&users);
        diagnostics.retain(|diagnostic| diagnostic.severity == Severity::Error);
        let guards = || users.plugins().filter(|(_, plugin)| !plugin.description.hooks.is_empty());
        for (file, plugin) in guards() {
            let is_the_same = |kept: &PluginOfRevision| {
                kept.plugin.description.name == plugin.description.name
                    && kept.plugin.survey.digest == plugin.survey.digest
            };
            // What was set for a guard when the run began counts for that guard, if the user trusted it.
            let as_it_was = folder.is_trusted_by_operator() && plugins.iter().any(is_the_same);
            let said = if as_it_was { folder } else { now };
            let standing = said.standing(file, plugin, context.signatures());
            diagnostics.extend(registry.add(context, said, file, plugin, standing, None));
        }
        for PluginOfRevision { file, plugin, component, signature } in plugins {
            if guards().any(|(_, guard)| guard.description.name == plugin.description.name) {
                continue;
            }
            let signed = signed(context.signatures(), &file, component.as_deref(), signature.as_deref());
            let standing = folder.standing_signed(&file, &plugin, signed);
            diagnostics.extend(registry.add(context, folder, &file, &plugin, standing, component));
        }
        (registry, diagnostics)
    }

    /// The same plugins, and `places` says where in their source a trap happened.
    pub(crate) fn with_places(mut self, places: &PlaceFinder) -> Self {
        for registered in self.plugins.values_mut() {
            registered.terms.places = Some(places.clone());
        }
        self
    }

    fn empty(context: &LoadContext, folder: &AgentFolder, permissions: Arc<Permissions>) -> Self {
        PluginRegistry {
            cells: context.cell_runtime().cells().clone(),
            plugins: BTreeMap::new(),
            tools: HashMap::new(),
            folder: folder.path().to_owned(),
            callback_url: context.environment().get(CALLBACK_URL).filter(|url| !url.is_empty()),
            permissions,
            used: Used::default(),
        }
    }

    /// Puts up a plugin; without a component it is the one in the file.
    fn add(
        &mut self,
        context: &LoadContext,
        folder: &AgentFolder,
        file: &Path,
        plugin: &Plugin,
        standing: Standing,
        component: Option<Arc<[u8]>>,
    ) -> Vec<Diagnostic> {
        let (environment, mut diagnostics) = (context.environment(), Vec::new());
        let name = plugin.description.name.clone();
        let settings = folder.settings();
        let budget = match folder.budget(file, &name, Budget::default()) {
            Ok(budget) => budget,
            Err(reason) => {
                diagnostics.push(Diagnostic::error(format!("budget of plugin `{name}`: {reason}")));
                return diagnostics;
            }
        };
        let grants = settings.grants(&name);
        // The data is for the component that was granted it, and for no other one of that name.
        let kv = match grants.kv && standing == Standing::Ready {
            true => store(context, folder.path(), file, &name, &mut diagnostics),
            false => None,
        };
        let terms = Terms {
            env: granted_variables(&grants, environment),
            config: settings.config(&name),
            held_back: settings.held_back(&name),
            requests: Some(Arc::new(plugin.description.capabilities.clone())),
            secrets: settings.secrets(&name, &|variable| environment.get(variable)),
            kv,
            grants,
            budget,
            listener: Some(log_of(&name)),
            record: settings.record(&name),
            origin: Some(file.to_string_lossy().into()),
            ..Terms::new(name.clone())
        };
        for (number, tool) in plugin.description.tools.iter().enumerate() {
            let place = ToolPlace { plugin: name.clone(), tool: number };
            let full = format!("{name}{SEPARATOR}{}", tool.name);
            let spoken = full.replace([':', '/', '.'], "_");
            let spoken_alone = tool.name.replace('.', "_");
            for called in [tool.name.clone(), spoken_alone, full, spoken] {
                let places = self.tools.entry(called).or_default();
                if !places.contains(&place) {
                    places.push(place.clone());
                }
            }
        }
        let registered = RegisteredPlugin {
            file: file.to_owned(),
            plugin: plugin.clone(),
            standing,
            terms,
            pinned: folder.asks(file, plugin) && folder.pins_plugin(&name),
            component,
            cell: OnceLock::new(),
        };
        self.plugins.insert(name, registered);
        diagnostics
    }

    /// What is granted in the folder at this moment.
    pub(crate) fn permissions(&self) -> &Arc<Permissions> {
        &self.permissions
    }

    /// Takes note of the plugins that were asked for since this was made, and of those whose tools they may call. Where they are used for
    /// long, they are compiled, so that calls do not hang on files that somebody replaces.
    pub(crate) fn note_used(&self, sources: &Sources, project: &Path, is_lasting: bool) {
        let mut noted = BTreeSet::new();
        loop {
            let used = self.used.names.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let Some(name) = used.difference(&noted).next().cloned() else { break };
            if let Some(registered) = self.plugins.get(&name) {
                sources.note_plugin(project, &registered.file, &registered.plugin);
                if is_lasting && registered.standing == Standing::Ready {
                    // What is wrong with it shows when it is called.
                    let _ = self.cell(registered);
                }
                // Those that it may be granted while a run waits are there when the run goes on.
                let asked = self.permissions.asks_denials().map(|_| &registered.plugin.description.capabilities.tool);
                for tool in registered.terms.grants.tool.iter().chain(asked.into_iter().flatten()) {
                    match tool.as_str() {
                        "*" => self.plugins.keys().for_each(|name| self.used.add(name)),
                        tool => drop(self.tool(tool)),
                    }
                }
            }
            noted.insert(name);
        }
        self.used.is_noted.store(true, Ordering::Relaxed);
    }

    /// The tool that a graph or a plugin means by `name`: its own name where only one plugin has it, or its full name.
    pub(crate) fn tool(&self, name: &str) -> Result<FoundTool<'_>, NoTool> {
        let places = self.tools.get(name).map(Vec::as_slice).unwrap_or_default();
        places.iter().for_each(|place| self.used.add(&place.plugin));
        let place = match places {
            [] => return Err(NoTool::Missing),
            [place] => place,
            several => {
                let full = |place: &ToolPlace| format!("{}{SEPARATOR}{name}", place.plugin);
                return Err(NoTool::Ambiguous(several.iter().map(full).collect()));
            }
        };
        let registered = self.plugins.get(&place.plugin).ok_or(NoTool::Missing)?;
        if let Some(reason) = registered.held() {
            return Err(NoTool::Held(reason));
        }
        let tool = registered.plugin.description.tools.get(place.tool).ok_or(NoTool::Missing)?;
        Ok(FoundTool { registered, tool })
    }

    /// The names by which tools are known without their plugins, in order.
    pub(crate) fn tool_names(&self) -> impl Iterator<Item = &str> {
        let mut names: Vec<&str> =
            self.tools.keys().map(String::as_str).filter(|name| !name.contains(SEPARATOR)).collect();
        names.sort_unstable();
        names.into_iter()
    }

    /// What a full name, `plugin/name`, stands for: a node type, a tool, or `connector`.
    pub(crate) fn plugin_node(&self, name: &str) -> Result<FoundPluginNode<'_>, NoPluginNode> {
        let (plugin, own) = name.rsplit_once(SEPARATOR).unwrap_or((name, ""));
        let Some(registered) = self.plugins.get(plugin) else {
            let near = hotcell_graph::closest(plugin, self.plugins.keys().map(String::as_str));
            return Err(NoPluginNode::Missing(near.map(|plugin| format!("{plugin}{SEPARATOR}{own}"))));
        };
        self.used.add(plugin);
        if let Some(reason) = registered.held() {
            return Err(NoPluginNode::Held(reason));
        }
        let description = &registered.plugin.description;
        if let Some(node) = description.nodes.iter().find(|node| node.node_type == own) {
            return Ok(FoundPluginNode { registered, plugin_node: PluginNode::Node(node) });
        }
        if let Some(tool) = description.tools.iter().find(|tool| tool.name == own) {
            return Ok(FoundPluginNode { registered, plugin_node: PluginNode::Tool(tool) });
        }
        if let (CONNECTOR, Some(connector)) = (own, &description.connector) {
            return Ok(FoundPluginNode { registered, plugin_node: PluginNode::Connector(connector) });
        }
        let nodes = description.nodes.iter().map(|node| node.node_type.as_str());
        let names = nodes.chain(description.tools.iter().map(|tool| tool.name.as_str()));
        let names = names.chain(description.connector.iter().map(|_| CONNECTOR));
        let near = hotcell_graph::closest(own, names);
        Err(NoPluginNode::Missing(near.map(|own| format!("{plugin}{SEPARATOR}{own}"))))
    }

    /// The full names of the node types with this name.
    pub(crate) fn node_types(&self, name: &str) -> Vec<String> {
        let has = |registered: &RegisteredPlugin| {
            registered.plugin.description.nodes.iter().any(|node| node.node_type == name)
        };
        let full = |(plugin, _): (&str, &RegisteredPlugin)| format!("{plugin}{SEPARATOR}{name}");
        let those = self.plugins().filter(|(_, registered)| has(registered));
        those.inspect(|(plugin, _)| self.used.add(plugin)).map(full).collect()
    }

    pub(crate) fn plugin(&self, name: &str) -> Option<&RegisteredPlugin> {
        self.used.add(name);
        self.plugins.get(name)
    }

    /// All plugins, in the order of their names.
    pub(crate) fn plugins(&self) -> impl Iterator<Item = (&str, &RegisteredPlugin)> {
        self.plugins.iter().map(|(name, registered)| (name.as_str(), registered))
    }

    /// Where other systems send answers that come later, if the operator has said so.
    pub(crate) fn callback_url(&self) -> Option<&str> {
        self.callback_url.as_deref()
    }

    pub(crate) fn cells(&self) -> &Cells {
        &self.cells
    }

    /// The compiled plugin. What is loaded are the bytes that were looked at when it was found, or nothing.
    pub(crate) fn cell(&self, registered: &RegisteredPlugin) -> Result<Cell, ComponentUnusable> {
        registered.cell.get_or_init(|| self.load(registered)).clone()
    }

    fn load(&self, registered: &RegisteredPlugin) -> Result<Cell, ComponentUnusable> {
        let name = &registered.plugin.description.name;
        if let Some(component) = &registered.component {
            return Ok(self.cells.load(name, component)?);
        }
        let file = &registered.file;
        let unreadable = |error| ComponentUnusable::Unreadable { file: file.clone(), cause: Arc::new(error) };
        let bytes = hotcell_files::read(file, hotcell_files::MAX_COMPONENT).map_err(unreadable)?;
        // Before anything else is done with them: a file that is half written is not worth a look.
        if digest(&bytes) != registered.plugin.survey.digest {
            return Err(ComponentUnusable::Changed { plugin: name.clone() });
        }
        Ok(self.cells.load(name, &bytes)?)
    }
}

/// What is broken in a catalogue: a warning, which stops nothing else, but for a guard, because one that is left out guards nothing.
fn broken(catalogue: &Catalogue) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    for found in catalogue.found() {
        if let Err(reason) = &found.plugin {
            let text = format!("plugin `{}`: {reason}", found.file.display());
            diagnostics.push(if found.guards { Diagnostic::error(text) } else { Diagnostic::warning(text) });
        }
    }
    diagnostics
}

/// Whether a component is signed by somebody whose signature counts, where one is needed; the error is why not. Without bytes it
/// is the one in the file.
fn signed(
    policy: &SignaturePolicy,
    file: &Path,
    component: Option<&[u8]>,
    signature: Option<&str>,
) -> Result<(), UnsignedError> {
    if !policy.required {
        return Ok(());
    }
    let read = || hotcell_files::read(file, hotcell_files::MAX_COMPONENT);
    let bytes = component.map_or_else(read, |component| Ok(component.to_vec()))?;
    let path = signature_file(file);
    let text = signature.ok_or_else(|| SignatureError::Missing { path: path.clone() })?;
    signer_by_text(path, text, &bytes, &policy.keys)?;
    Ok(())
}
