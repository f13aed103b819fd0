//! Hooks of plugins as the engine sees them.

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use hotcell_budget::{Account, BudgetScope};
use hotcell_cells::{HookCall, Verdict};
use hotcell_engine::{CallError, CallSite, HookPoint, HookVerdict, Hooks, Nobody};
use hotcell_graph::diagnostic::Diagnostic;
use hotcell_graph::value::parse_json;
use hotcell_graph::{Object, Value};
use hotcell_plugins::{SETTINGS_FILE, Settings};
use thiserror::Error;

use crate::plugin_registry::NotPrepared;
use crate::settle::settle;
use crate::tools::AgentTools;

/// The hook plugins of an agent.
pub(crate) struct AgentHooks {
    tools: AgentTools,
    hooks: Vec<Hook>,
}

/// Hook plugins by name and the digest of their component.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HookList(HashSet<(String, String)>);

/// One hook plugin.
#[derive(Clone)]
struct Hook {
    plugin: String,
    digest: String,
    points: Vec<HookPoint>,
    /// Its component lies in the agent's folder, from wherever that came
    of_folder: bool,
    /// What it guards goes on when it fails
    optional: bool,
}

/// Why a hook does not say what is to become of an event.
#[derive(Debug, Error)]
enum HookError {
    /// Its plugin is not there any more
    #[error("it is gone")]
    Gone,
    /// It cannot be called
    #[error(transparent)]
    NotPrepared(#[from] NotPrepared),
    /// Its call failed; the text says which limit, trap or error
    #[error("{0}")]
    Failed(String),
    /// It asks a person
    #[error("a hook cannot ask questions, and it asked: {0}")]
    Asks(String),
    /// It changed what happens where that is only told
    #[error("events at `{}` cannot be changed, and it tried to", .0.name())]
    NoChangesHere(HookPoint),
    /// What it made of the event is none
    #[error("it changed the event into something that is not a JSON object")]
    NoObject,
}

impl HookList {
    /// Both lists.
    pub(crate) fn and(&self, other: &HookList) -> HookList {
        HookList(self.0.union(&other.0).cloned().collect())
    }

    /// Whether a plugin of that name is among them. Names of plugins have no capital letters, and may begin with that
    /// of their author: `AuditLog` is `acme:audit-log`.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(plugin, _)| is_called(plugin, name))
    }
}

/// Whether a plugin is meant by a name.
fn is_called(plugin: &str, name: &str) -> bool {
    let plain = |name: &str| name.replace(['-', '_'], "").to_lowercase();
    plugin == name || plain(plugin.rsplit(':').next().unwrap_or(plugin)) == plain(name)
}

impl AgentHooks {
    /// The hooks that count for an agent, without those that are `told` anyway. A hook that cannot be used is an error:
    /// a guard that is left out in silence guards nothing.
    pub(crate) fn new(tools: AgentTools, settings: &Settings, told: &HookList) -> (Self, Vec<Diagnostic>) {
        let mut diagnostics = Vec::new();
        let registry = tools.registry();
        let all: Vec<String> = registry
            .plugins()
            .filter(|(_, registered)| !registered.plugin.description.hooks.is_empty())
            .map(|(name, _)| name.to_owned())
            .collect();
        let wanted = settings.hook_order().map_or_else(|| all.clone(), <[String]>::to_vec);
        let mut hooks = Vec::new();
        for name in wanted {
            let Some(registered) = registry.plugin(&name).filter(|_| all.contains(&name)) else {
                let error = format!("`{SETTINGS_FILE}` names the hook plugin `{name}`, which is not there");
                diagnostics.push(Diagnostic::error(error).help("put its component into the plugins folder"));
                continue;
            };
            if let Some(reason) = registered.held() {
                diagnostics.push(Diagnostic::error(reason).help("a run without its hooks would not be guarded"));
                continue;
            }
            let described = &registered.plugin.description.hooks;
            let points =
                HookPoint::ALL.into_iter().filter(|point| described.iter().any(|hook| hook.point == point.name()));
            let digest = registered.plugin.survey.digest.clone();
            if told.0.contains(&(name.clone(), digest.clone())) {
                continue;
            }
            let optional = settings.is_optional_hook(&name);
            let of_folder = registry.is_of_folder(registered);
            hooks.push(Hook { plugin: name.clone(), digest, points: points.collect(), of_folder, optional });
        }
        (AgentHooks { tools, hooks }, diagnostics)
    }

    /// Tells the hooks of these names in this order, and before them all that have none of these names: those are the
    /// operator's, and see what happens as it is.
    pub(crate) fn tell_in_order(&mut self, names: &[String]) {
        let place =
            |hook: &Hook| names.iter().position(|name| is_called(&hook.plugin, name)).map_or(0, |place| place + 1);
        self.hooks.sort_by_key(place);
    }

    /// Those that are not of the agent's own folder, but the operator's for all folders.
    pub(crate) fn of_operator(&self) -> Self {
        let hooks = self.hooks.iter().filter(|hook| !hook.of_folder).cloned().collect();
        AgentHooks { tools: self.tools.clone(), hooks }
    }

    /// Who is told.
    pub(crate) fn list(&self) -> HookList {
        HookList(self.hooks.iter().map(|hook| (hook.plugin.clone(), hook.digest.clone())).collect())
    }

    /// What one hook makes of an event; the error is why it failed.
    async fn tell_one(
        &self,
        hook: &Hook,
        point: HookPoint,
        event: &Object,
        called: (&Arc<BudgetScope>, &CallSite),
        account: &mut Account,
    ) -> Result<Verdict, HookError> {
        let (budget_scope, site) = called;
        let registry = self.tools.registry();
        let registered = registry.plugin(&hook.plugin).ok_or(HookError::Gone)?;
        // A hook that were told of its own calls would never end.
        let nobody: Arc<dyn Hooks> = Arc::new(Nobody);
        let (cell, terms) = self.tools.prepare(registered, site.within(), budget_scope, (&nobody, site))?;
        let event = Value::Object(event.clone()).to_json();
        let call = HookCall { point: point.name().to_owned(), event, terms };
        let report = registry.cells().call_hook(&cell, call).await;
        let (result, used) = settle(&hook.plugin, report, budget_scope, site);
        *account += used;
        result.map_err(|error| match error {
            CallError::Failed(reason) => HookError::Failed(reason),
            CallError::Asks(question) => HookError::Asks(question),
        })
    }
}

#[async_trait]
impl Hooks for AgentHooks {
    fn listens(&self, point: HookPoint) -> bool {
        self.hooks.iter().any(|hook| hook.points.contains(&point))
    }

    async fn tell(
        &self,
        point: HookPoint,
        event: Object,
        budget_scope: &Arc<BudgetScope>,
        site: &CallSite,
    ) -> (HookVerdict, Account) {
        let mut account = Account::default();
        let mut changed = None;
        for hook in self.hooks.iter().filter(|hook| hook.points.contains(&point)) {
            let plugin = &hook.plugin;
            let event = changed.as_ref().unwrap_or(&event);
            let verdict = match self.tell_one(hook, point, event, (budget_scope, site), &mut account).await {
                Ok(Verdict::Change(_)) if !point.takes_changes() => Err(HookError::NoChangesHere(point)),
                Ok(Verdict::Change(text)) => match parse_json(&text) {
                    Ok(Value::Object(object)) => {
                        changed = Some(object);
                        continue;
                    }
                    _ => Err(HookError::NoObject),
                },
                other => other,
            };
            match verdict {
                Ok(Verdict::Refuse(reason)) => return (HookVerdict::Refuse(format!("`{plugin}`: {reason}")), account),
                Ok(_) => {}
                Err(error) if hook.optional => {
                    tracing::warn!(target: "hotcell::plugin", plugin, "hook at `{}` failed: {error}", point.name());
                }
                Err(error) => {
                    return (HookVerdict::Refuse(format!("the hook `{plugin}` failed: {error}")), account);
                }
            }
        }
        (changed.map_or(HookVerdict::Proceed, HookVerdict::Change), account)
    }
}

/// Two sets of hooks, one told after the other.
pub(crate) struct Stacked {
    pub(crate) first: Arc<dyn Hooks>,
    pub(crate) second: Arc<dyn Hooks>,
}

#[async_trait]
impl Hooks for Stacked {
    fn listens(&self, point: HookPoint) -> bool {
        self.first.listens(point) || self.second.listens(point)
    }

    async fn tell(
        &self,
        point: HookPoint,
        event: Object,
        budget_scope: &Arc<BudgetScope>,
        site: &CallSite,
    ) -> (HookVerdict, Account) {
        let (verdict, mut account) = self.first.tell(point, event.clone(), budget_scope, site).await;
        let changed = match verdict {
            HookVerdict::Refuse(_) => return (verdict, account),
            HookVerdict::Change(event) => Some(event),
            HookVerdict::Proceed => None,
        };
        if !self.second.listens(point) {
            return (changed.map_or(HookVerdict::Proceed, HookVerdict::Change), account);
        }
        let (verdict, used) = self.second.tell(point, changed.clone().unwrap_or(event), budget_scope, site).await;
        account += used;
        match (verdict, changed) {
            (HookVerdict::Proceed, Some(event)) => (HookVerdict::Change(event), account),
            (verdict, _) => (verdict, account),
        }
    }
}

#[cfg(test)]
mod tests {
    use hotcell_cells::HOOK_POINTS;
    use hotcell_engine::HookPoint;

    #[test]
    fn the_contract_its_text_and_the_engine_name_the_same_points() {
        let engine: Vec<&str> = HookPoint::ALL.iter().map(|point| point.name()).collect();
        assert_eq!(engine, HOOK_POINTS);
        let repository = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        for file in ["wit/worlds.wit", "sdk/rust/hotcell-plugin-macros/src/hook.rs"] {
            let text = std::fs::read_to_string(format!("{repository}/{file}")).unwrap();
            for point in HOOK_POINTS {
                assert!(text.contains(point), "`{file}` does not name `{point}`");
            }
        }
    }
}
