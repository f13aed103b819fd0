//! Tools of plugins outside of any run: called by other programs, or by hand.

use std::path::Path;
use std::sync::Arc;

use hotcell_budget::BudgetScope;
use hotcell_cells::PlaceFinder;
use hotcell_engine::{CallReport, CallSite, Nobody, SharedState, ToolCall, Tools as _};
use hotcell_graph::diagnostic::Diagnostic;
use hotcell_models::ToolSpec;
use hotcell_plugins::{AgentFolder, Catalogue, FolderError, GrantError, GrantOrder, Plugin};

use crate::host::Host;
use crate::offered::AgentFunctions;
use crate::permissions::Permissions;
use crate::plugin_registry::PluginRegistry;
use crate::revision::sources::FolderFor;
use crate::servers::{AgentServers, Reaching};
use crate::tools::AgentTools;

/// Tools of plugins, on the terms that a folder has for them.
#[derive(Clone)]
pub struct PluginTools {
    pub(crate) registry: Arc<PluginRegistry>,
    tools: AgentTools,
}

impl PluginTools {
    fn of(
        host: &Host,
        catalogue: &Catalogue,
        said: &AgentFolder,
        permissions: Arc<Permissions>,
        places: Option<PlaceFinder>,
    ) -> (Self, Vec<Diagnostic>) {
        let context = host.context();
        let (registry, diagnostics) = PluginRegistry::new(context, catalogue, said, permissions.clone());
        let registry = Arc::new(match places {
            Some(places) => registry.with_places(&places),
            None => registry,
        });
        let servers = AgentServers::none(Reaching {
            connections: context.connections(),
            sources: context.sources().clone(),
            project: said.path().to_owned(),
            permissions,
            starts_programs: context.starts_programs(),
            clock: context.clock().clone(),
        });
        let functions = AgentFunctions::new(Arc::default(), context.sources().clone());
        let (model, default_model) = (context.model(), context.default_model());
        let tools = AgentTools::new(functions, registry.clone(), servers, model, default_model);
        (PluginTools { registry, tools }, diagnostics)
    }

    /// What is known of a tool, by its own name or in full (`plugin/tool`). Nothing where it cannot be used.
    pub fn describe(&self, name: &str) -> Option<ToolSpec> {
        self.tools.describe(name)
    }

    /// One call. `answers` are those of the person to the questions of the tool so far.
    pub async fn call(&self, name: &str, arguments: &str, answers: &[String]) -> CallReport {
        let call = ToolCall {
            name,
            arguments,
            answers,
            state: SharedState::new(Default::default()),
            variables: Arc::default(),
            budget_scope: Arc::new(BudgetScope::default()),
            hooks: Arc::new(Nobody),
            site: CallSite::outside(),
        };
        self.tools.call(call).await
    }
}

impl Host {
    /// The tools of the plugins within reach of a folder. The diagnostics say what cannot be used.
    ///
    /// # Errors
    /// When what is said about the folder cannot be used.
    pub fn plugin_tools(&self, folder: &Path) -> Result<(PluginTools, Vec<Diagnostic>), FolderError> {
        let said = self.context().named_folder(folder)?;
        let permissions = Permissions::new(folder, self.context().trust_of(FolderFor::Person));
        Ok(PluginTools::of(self, &self.catalogue(folder), &said, permissions, None))
    }

    /// The tools of one component, whether it is installed anywhere or not, with what `order` grants. Where its source is at hand,
    /// `places` says where in it a trap happened.
    ///
    /// # Errors
    /// When it asks for something that has to be named, or more would be granted than it asks for.
    pub fn tools_of_component(
        &self,
        file: &Path,
        plugin: &Plugin,
        order: &GrantOrder,
        places: Option<PlaceFinder>,
    ) -> Result<(PluginTools, Vec<Diagnostic>), GrantError> {
        let grants = order.grants(&plugin.description.name, &plugin.description.capabilities, None)?;
        let folder = file.parent().unwrap_or(Path::new("."));
        let said = AgentFolder::for_one_call(folder, plugin, grants);
        let catalogue = Catalogue::of_file(file, plugin);
        Ok(PluginTools::of(self, &catalogue, &said, Permissions::as_given(folder), places))
    }
}
