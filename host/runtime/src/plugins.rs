//! Tool plugins: components found in folders, and the tools they offer.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use hotcell_budget::Budget;
use hotcell_cells::{Cell, Cells, Terms};
use hotcell_engine::{CallError, CallReport, ToolCall, Tools};
use hotcell_graph::diagnostic::Diagnostic;
use hotcell_models::ToolSpec;

use crate::environment::Environment;
use crate::scripts::{granted_variables, into_report};
use crate::settings::Settings;

/// The folder of plugins beside a graph.
pub(crate) const PLUGIN_FOLDER: &str = "plugins";

/// The tools within reach of an agent.
pub(crate) struct AgentTools {
    cells: Cells,
    tools: HashMap<String, LoadedTool>,
}

struct LoadedTool {
    plugin: String,
    cell: Cell,
    spec: ToolSpec,
    terms: Terms,
}

impl AgentTools {
    /// Loads every plugin of `folders`. A plugin that cannot be used is a warning and stops nothing else; a tool that
    /// two plugins claim is an error.
    pub(crate) fn load(
        cells: &Cells,
        folders: &[PathBuf],
        settings: &Settings,
        environment: &Environment,
    ) -> (Self, Vec<Diagnostic>) {
        let mut tools = AgentTools { cells: cells.clone(), tools: HashMap::new() };
        let mut diagnostics = Vec::new();
        for folder in folders {
            for path in components(folder) {
                match tools.load_plugin(&path, settings, environment) {
                    Ok(()) => {}
                    Err(Broken::Unusable(reason)) => {
                        diagnostics.push(Diagnostic::warning(format!("plugin `{}`: {reason}", path.display())));
                    }
                    Err(Broken::Claimed(reason)) => diagnostics.push(
                        Diagnostic::error(format!("plugin `{}`: {reason}", path.display()))
                            .help("remove one of the two plugins"),
                    ),
                }
            }
        }
        (tools, diagnostics)
    }

    fn load_plugin(&mut self, path: &Path, settings: &Settings, environment: &Environment) -> Result<(), Broken> {
        let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let bytes = std::fs::read(path).map_err(|error| Broken::Unusable(error.to_string()))?;
        let cell = self.cells.load(&stem, &bytes).map_err(|error| Broken::Unusable(error.to_string()))?;
        let Some(description) = cell.description().cloned() else {
            return Err(Broken::Unusable("it offers no tools".into()));
        };
        let plugin = description.name.clone();
        let terms = Terms {
            grants: settings.grants(&plugin),
            env: granted_variables(settings, &plugin, environment),
            config: settings.config(&plugin),
            budget: settings.budget(&plugin, Budget::default()).map_err(Broken::Unusable)?,
            ..Terms::new(plugin.clone())
        };
        for tool in description.tools {
            if let Some(other) = self.tools.get(&tool.name) {
                return Err(Broken::Claimed(format!(
                    "it claims the tool `{}`, which plugin `{}` offers already",
                    tool.name, other.plugin
                )));
            }
            let spec = ToolSpec { name: tool.name.clone(), description: tool.description, parameters: tool.parameters };
            let loaded = LoadedTool { plugin: plugin.clone(), cell: cell.clone(), spec, terms: terms.clone() };
            self.tools.insert(tool.name, loaded);
        }
        Ok(())
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.tools.contains_key(name)
    }

    pub(crate) fn has_plugin(&self, name: &str) -> bool {
        self.tools.values().any(|tool| tool.plugin == name)
    }
}

enum Broken {
    Unusable(String),
    Claimed(String),
}

/// The components of a folder, in the order of their names. A folder that is not there has none.
fn components(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "wasm"))
        .collect();
    paths.sort();
    paths
}

#[async_trait]
impl Tools for AgentTools {
    fn describe(&self, name: &str) -> Option<ToolSpec> {
        self.tools.get(name).map(|tool| tool.spec.clone())
    }

    async fn call(&self, call: ToolCall<'_>) -> CallReport {
        let Some(tool) = self.tools.get(call.name) else {
            let error = CallError::Failed(format!("there is no tool `{}`", call.name));
            return CallReport { result: Err(error), usage: Default::default() };
        };
        let report = self
            .cells
            .call_tool(
                &tool.cell,
                hotcell_cells::ToolCall {
                    tool: call.name.to_owned(),
                    arguments: call.arguments.to_owned(),
                    answers: call.answers.to_vec(),
                    terms: tool.terms.clone(),
                },
            )
            .await;
        into_report(&tool.plugin, report)
    }
}
