//! The agents beside an agent, in folders of their own, that it and they call.
//!
//! Such a folder has settings, grants and trust of its own. A stranger's agent that calls a trusted one must not use what is
//! granted to that one: whoever writes the prompt decides what is done with a grant. So a call from folder to folder needs a yes,
//! of the callee (`[callers]` in its `hotcell.toml`) or of the operator (who trusts the caller).

use std::collections::{BTreeSet, HashMap};
use std::path::{Component, Path};
use std::sync::Arc;

use hotcell_dialects::sherma::Choice;
use hotcell_graph::Key;
use hotcell_graph::diagnostic::Diagnostic;

use crate::agent::LoadFailure;
use crate::agent_registry::AgentRegistry;
use crate::context::LoadContext;
use crate::knowledge::AgentKnowledge;
use crate::load::MAX_AGENTS;
use crate::load::asked::Asked;
use crate::load::locate::locate;
use crate::load::one::{LoadRequest, LoadedAgent, load_one};

/// An agent that was loaded, or why it cannot be.
type Found = Result<(LoadedAgent, Vec<Diagnostic>), LoadFailure>;

/// The agents beside the root, by their names, as they were reached.
struct Callees {
    /// In the order in which they were found, and whether whoever calls is checked before the run
    found: Vec<(Key, bool, Found)>,
    /// Who calls whom; the root has no name
    calls: Vec<(Option<Key>, Key)>,
}

/// Adds all agents beside `root` that it can reach to a registry.
pub(crate) fn load_into(
    family: &mut AgentRegistry,
    context: &LoadContext,
    root: &LoadedAgent,
    digests: &mut Vec<String>,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let mut strangers = BTreeSet::new();
    // Who is whose stranger shows only when all are loaded. Each round finds more of them or is the last one.
    let callees = loop {
        let callees = load_all(family, context, root, &strangers);
        let found = strangers_among(root, &callees);
        if found.is_subset(&strangers) {
            break callees;
        }
        strangers.extend(found);
    };
    for (name, of_checked, found) in callees.found {
        match found {
            Ok((child, found)) => {
                diagnostics.extend(found);
                digests.push(child.digest);
                if strangers.contains(&name) && child.said.is_trusted_by_operator() {
                    family.put_behind_border(name.clone());
                }
                family.add(name, Ok(child.callee), child.knowledge);
            }
            Err(failure) => {
                // Where the caller is checked before it runs, what is wrong with an agent keeps the run from starting.
                if of_checked {
                    diagnostics.extend_from_slice(&failure.diagnostics);
                }
                family.add(name, Err(Arc::new(failure)), Arc::new(AgentKnowledge::none()));
            }
        }
    }
}

/// Loads each agent once, however they call each other: they have their names from their folders, which lie side by side.
fn load_all(family: &AgentRegistry, context: &LoadContext, root: &LoadedAgent, strangers: &BTreeSet<Key>) -> Callees {
    let mut callees = Callees { found: Vec::new(), calls: Vec::new() };
    let mut names: Vec<(Option<Key>, Key, bool)> =
        root.calls.iter().map(|(name, checked)| (None, name.clone(), *checked)).collect();
    while let Some((caller, name, of_checked)) = names.pop() {
        callees.calls.push((caller, name.clone()));
        if family.knows(&name) || callees.found.iter().any(|(known, ..)| *known == name) {
            continue;
        }
        if callees.found.len() >= MAX_AGENTS {
            let message =
                format!("`{name}` is not loaded: the agents that this one may call are more than {MAX_AGENTS}");
            callees.found.push((name, true, Err(Diagnostic::error(message).into())));
            break;
        }
        let is_stranger = strangers.contains(&name);
        let found = load_beside(context, root, &name, is_stranger);
        if let Ok((child, _)) = &found {
            names.extend(child.calls.iter().map(|(called, checked)| (Some(name.clone()), called.clone(), *checked)));
        }
        callees.found.push((name, of_checked, found));
    }
    callees
}

fn load_beside(context: &LoadContext, root: &LoadedAgent, name: &Key, is_stranger: bool) -> Found {
    if !matches!(Path::new(&**name).components().collect::<Vec<_>>()[..], [Component::Normal(_)]) {
        return Err(Diagnostic::error(format!("`{name}` is not the name of an agent beside this one")).into());
    }
    let folder = root.folder.parent().unwrap_or(&root.folder).join(&**name);
    let asked = if is_stranger { Asked::Stranger } else { Asked::Agent };
    let told = if is_stranger { &root.operators_list } else { &root.hooks };
    let located = locate(context.sources(), &folder, None)?;
    let wanted =
        LoadRequest { located: &located, choice: Choice::Only, project: None, asked, components: &[], dialect: None };
    load_one(context, wanted, told)
}

/// The agents that somebody can make work who has no yes for it: by a call that nobody agreed to, at first or second hand.
fn strangers_among(root: &LoadedAgent, callees: &Callees) -> BTreeSet<Key> {
    let loaded: HashMap<&Key, &LoadedAgent> =
        callees.found.iter().filter_map(|(name, _, found)| Some((name, &found.as_ref().ok()?.0))).collect();
    let agreed = |caller: &LoadedAgent, callee: &LoadedAgent| {
        caller.said.is_trusted_by_operator() || caller.folder == callee.folder || callee.said.admits(&caller.folder)
    };
    let mut strangers = BTreeSet::new();
    loop {
        let before = strangers.len();
        for (caller, name) in &callees.calls {
            let Some(callee) = loaded.get(name) else { continue };
            let allowed = match caller {
                None => agreed(root, callee),
                Some(caller) => {
                    !strangers.contains(caller) && loaded.get(caller).is_some_and(|one| agreed(one, callee))
                }
            };
            if !allowed {
                strangers.insert(name.clone());
            }
        }
        if strangers.len() == before {
            return strangers;
        }
    }
}
