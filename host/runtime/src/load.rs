//! Loading an agent: the file of a folder, everything it names, every agent it may call, and everything that is wrong.

pub(crate) mod asked;
mod callees;
mod front_end;
pub(crate) mod locate;
mod one;
mod origin;
pub(crate) mod project;
mod schedules;
mod unmatched;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hotcell_dialects::Dialect;
use hotcell_dialects::sherma::{Child, Choice};
use hotcell_engine::Callee;
use hotcell_graph::diagnostic::{Diagnostic, Severity};

use crate::agent::{Agent, LoadFailure, Loading, Which};
use crate::agent_registry::{AgentRegistry, GuardedAgents};
use crate::context::LoadContext;
use crate::granted_files;
use crate::hooks::HookList;
use crate::knowledge::AgentKnowledge;
use crate::load::asked::Asked;
use crate::load::locate::{Located, absolute, locate};
use crate::load::one::{LoadRequest, LoadedAgent, load_one};
use crate::load::origin::Origin;
use crate::revision::AgentRevision;
use crate::revision::sources::{Kept, Sources};

/// Agents that one may have as sub-agents or call, theirs included: two in each of which two lie are six, and so on.
pub(crate) const MAX_AGENTS: usize = 256;

/// Loads the agent at `path`, the file of an agent or the folder that holds one, and every agent that it may call.
/// `loading.agent` is the choice among several agents of a file.
pub(crate) fn load(context: &LoadContext, path: &Path, loading: &Loading<'_>) -> Result<Agent, LoadFailure> {
    // How a person came to a file is no part of what was loaded.
    let located = locate(&Sources::Plain, path, None)?;
    let components = absolute(loading.components)?;
    let loading = Loading { agent: loading.agent, components: &components };
    load_located(&context.reading(Sources::noted(context.within())), &located, &loading, None)
}

/// The text of an agent's file.
pub(crate) fn text_of(file: &Path) -> Result<String, LoadFailure> {
    locate::read(&Sources::Plain, file)
}

/// Loads the agent at `path` as if its file had this text, which is in this language.
pub(crate) fn load_text(
    context: &LoadContext,
    path: &Path,
    text: String,
    dialect: Dialect,
) -> Result<Agent, LoadFailure> {
    let located = locate(&Sources::Plain, path, None)?;
    let sources = Sources::noted_with(located.file.clone(), text, context.within());
    load_located(&context.reading(sources), &located, &Loading::default(), Some(dialect))
}

/// Loads an agent as a revision kept it.
pub(crate) fn load_revision(context: &LoadContext, kept: Kept) -> Result<Agent, LoadFailure> {
    let origin: Origin = serde_json::from_str(&kept.manifest.source)
        .map_err(|error| Diagnostic::error(format!("the revision does not say what it is of: {error}")))?;
    let folder = origin.file.parent().unwrap_or(&origin.file).display().to_string();
    let located = Located { file: origin.file.clone(), shown: origin.file.display().to_string(), shown_folder: folder };
    load_located(&context.reading(Sources::Kept(kept)), &located, &origin.loading(), None)
}

fn load_located(
    context: &LoadContext,
    located: &Located,
    loading: &Loading<'_>,
    dialect: Option<Dialect>,
) -> Result<Agent, LoadFailure> {
    let choice = match loading.agent {
        Which::Only => Choice::Only,
        Which::Any => Choice::Any,
        Which::Named(name) => Choice::Named(name),
    };
    let asked = Asked::Person;
    let wanted = LoadRequest { located, choice, project: None, asked, components: loading.components, dialect };
    let (one, mut diagnostics) = load_one(context, wanted, &HookList::default())?;
    let mut digests = vec![one.digest.clone()];
    let mut family = children(context, &one, &one.folder, &mut vec![one.file.clone()], &mut digests, &mut diagnostics);
    callees::load_into(&mut family, context, &one, &mut digests, &mut diagnostics);
    diagnostics.extend(schedules::check(one.said.settings().schedules()));
    if diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error) {
        return Err(LoadFailure { diagnostics });
    }
    family.add_knowledge(one.knowledge);
    digests.sort();
    let origin = Origin::of(&one.file, loading);
    let revision = AgentRevision::of(context.sources(), &origin.to_json());
    Ok(Agent {
        graph: one.callee.graph.clone(),
        warnings: diagnostics,
        dialect: one.dialect,
        source: origin.source(),
        revision,
        style: one.style,
        names: one.names,
        strict: one.said.settings().is_strict(),
        journal_bytes: one.said.settings().journal_bytes(),
        schedules: one.said.settings().schedules().to_vec(),
        file: one.file,
        folder: one.folder,
        conversation_starters: one.conversation_starters,
        mesh: one.mesh,
        texts: match &digests[..] {
            [digest] => digest.clone(),
            several => blake3::hash(several.concat().as_bytes()).to_hex().to_string(),
        },
        is_unnamed: context.is_unnamed(),
        own: one.callee,
        grants: one.grants,
        permissions: one.permissions,
        family: Arc::new(family),
        operators_hooks: one.operators_hooks,
    })
}

/// Loads an agent as a run was started with it.
pub(crate) fn load_source(context: &LoadContext, source: &str) -> Result<Agent, LoadFailure> {
    let origin = Origin::parse(source);
    load(context, &origin.file, &origin.loading())
}

/// The agents in files that an agent names, and theirs. Each has a registry of its own, because names count within a
/// file; all of them belong to the `project` of the first and use its plugins.
fn children(
    context: &LoadContext,
    one: &LoadedAgent,
    project: &Path,
    above: &mut Vec<PathBuf>,
    digests: &mut Vec<String>,
    diagnostics: &mut Vec<Diagnostic>,
) -> AgentRegistry {
    let mut family = AgentRegistry::default();
    for (name, agent) in one.remotes.iter().chain(&one.members) {
        family.add(name.clone(), Ok(agent.clone()), Arc::new(AgentKnowledge::none()));
    }
    for Child { name, path, span } in &one.children {
        let path_of_child = one.folder.join(path);
        let choice = Choice::Preferred(name);
        // It belongs to the same folder, whose grants are asked for by whoever asked for the first.
        let asked = Asked::Person;
        let refused = |message: String| Diagnostic::error(message).at(span);
        if digests.len() >= MAX_AGENTS {
            let error =
                refused(format!("`{path}` is not loaded: with its sub-agents this agent has more than {MAX_AGENTS}"));
            diagnostics.push(
                error.help("an agent that several others name is loaded for each of them; name it from fewer places"),
            );
            return family;
        }
        let located = match granted_files::directory_of(one.said.settings(), &one.permissions, project, &path_of_child)
        {
            Some((directory, path)) => locate(context.sources(), &path, Some(&directory)),
            None => locate(context.sources(), &path_of_child, Some(project)),
        };
        if located.as_ref().is_ok_and(|located| above.contains(&located.file)) {
            let error = refused(format!("the agents of `{path}` and of this file contain each other"));
            diagnostics.push(error.help("an agent cannot be a sub-agent of itself, not even by way of others"));
            continue;
        }
        let loaded = located.and_then(|located| {
            let wanted = LoadRequest {
                located: &located,
                choice,
                project: Some(project),
                asked,
                components: &[],
                dialect: None,
            };
            load_one(context, wanted, &one.hooks)
        });
        match loaded {
            Ok((child, found)) => {
                diagnostics.extend(found);
                digests.push(child.digest.clone());
                above.push(child.file.clone());
                let own = children(context, &child, project, above, digests, diagnostics);
                above.pop();
                let guards = child.callee.hooks.clone();
                let of_child = Arc::new(own);
                let agents = Arc::new(GuardedAgents { family: of_child, operators_guards: guards.clone(), guards });
                let callee = Callee { agents: Some(agents), ..child.callee };
                family.add(name.clone(), Ok(callee), child.knowledge);
            }
            Err(failure) => diagnostics.extend(failure.diagnostics),
        }
    }
    family
}
