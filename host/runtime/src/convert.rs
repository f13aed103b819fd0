//! Writing agents in the Open Agent Specification.

use std::path::Path;
use std::sync::Arc;

use hotcell_dialects::agent_spec::{self, DescribedTool, Exported, Found};
use hotcell_dialects::{Dialect, leafmesh, recognise};
use hotcell_graph::diagnostic::SourceFile;
use hotcell_models::ToolSpec;

use crate::agent::{LoadFailure, Loading, NotConverted};
use crate::context::LoadContext;
use crate::folder::{AgentSurroundings, Reach};
use crate::hooks::HookList;
use crate::load::asked::Asked;
use crate::load::load;
use crate::load::locate::{Located, absolute, locate, parts, read};
use crate::load::project::ProjectContext;
use crate::python::PythonTools;

/// The agent at `path` in the Open Agent Specification, and where that behaves in another way.
pub(crate) fn convert(context: &LoadContext, path: &Path, loading: &Loading<'_>) -> Result<Exported, NotConverted> {
    let located = locate(context.sources(), path, None)?;
    let text = read(context.sources(), &located.file)?;
    if recognise(&located.shown, &text) == Some(Dialect::AgentSpec) {
        return Ok(Exported { text: write(context, path, loading)?, differences: Vec::new() });
    }
    let agent = load(context, path, loading)?;
    if let Some(mesh) = agent.mesh() {
        return Err(NotConverted::Inexpressible(leafmesh::no_flow(&agent.graph, mesh)));
    }
    let describe = |full: &str| {
        let ToolSpec { name, description, parameters } = agent.own.tools.describe(full)?;
        let found = found(full, &name);
        Some(DescribedTool { name, description, parameters, found })
    };
    agent_spec::export(&agent.graph, &describe).map_err(NotConverted::Inexpressible)
}

/// How the tool with this full name is found where the configuration knows it as `spoken`.
fn found(full: &str, spoken: &str) -> Found {
    match PythonTools::place(full) {
        // Functions of Python files beside the configuration are found by their names.
        Some((file, _)) if !file.contains('/') => Found::ByName,
        Some((file, function)) => Found::BySaying(format!("{file}:{function}")),
        None if full == spoken => Found::ByName,
        None => Found::Elsewhere,
    }
}

/// The configuration of the Open Agent Specification at `path`, written as JSON.
pub(crate) fn write(context: &LoadContext, path: &Path, loading: &Loading<'_>) -> Result<String, LoadFailure> {
    let Located { file, shown, shown_folder } = locate(context.sources(), path, None)?;
    let text = read(context.sources(), &file)?;
    let source = Arc::new(SourceFile { name: shown, text });
    let folder = file.parent().map(Path::to_path_buf).unwrap_or_default();
    let mut diagnostics = Vec::new();
    let told = HookList::default();
    let project = ProjectContext::of(context, &folder, Asked::Person, &told, &shown_folder, &mut diagnostics);
    let listed = project.hooks.list();
    let reach = Reach {
        registry: &project.registry,
        servers: &project.servers,
        hooks: &listed,
        python: project.tools.python(),
        tools: &project.tools,
        settings: project.said.settings(),
        project: &folder,
        permissions: &project.permissions,
    };
    let surroundings = AgentSurroundings::new(context, &folder, reach);
    let (configuration, found) =
        agent_spec::read(&source, &parts(context.sources(), &absolute(loading.components)?)?, &surroundings);
    diagnostics.extend(found);
    configuration.map(|configuration| agent_spec::write(&configuration)).ok_or(LoadFailure { diagnostics })
}
