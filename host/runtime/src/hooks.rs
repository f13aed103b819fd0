//! Hooks of plugins as the engine sees them.

use std::sync::Arc;

use async_trait::async_trait;
use hotcell_budget::{Account, Purse};
use hotcell_cells::{HookCall, Verdict};
use hotcell_engine::{HookPoint, HookVerdict, Hooks};
use hotcell_graph::diagnostic::Diagnostic;
use hotcell_graph::value::parse_json;
use hotcell_graph::{Object, Value};
use hotcell_plugins::{SETTINGS_FILE, Settings};

use crate::shelf::Shelf;

/// The hook plugins of an agent.
pub(crate) struct AgentHooks {
    shelf: Arc<Shelf>,
    hooks: Vec<Hook>,
}

/// One hook plugin.
struct Hook {
    plugin: String,
    points: Vec<HookPoint>,
    /// What it guards goes on when it fails
    optional: bool,
}

impl AgentHooks {
    /// The hooks that count for an agent. A hook that cannot be used is an error: a guard that is left out in silence
    /// guards nothing.
    pub(crate) fn new(shelf: Arc<Shelf>, settings: &Settings) -> (Self, Vec<Diagnostic>) {
        let mut diagnostics = Vec::new();
        let all: Vec<String> = shelf
            .plugins()
            .filter(|(_, shelved)| !shelved.plugin.description.hooks.is_empty())
            .map(|(name, _)| name.to_owned())
            .collect();
        let wanted = settings.hook_order().map_or_else(|| all.clone(), <[String]>::to_vec);
        let mut hooks = Vec::new();
        for name in wanted {
            let Some(shelved) = shelf.plugin(&name).filter(|_| all.contains(&name)) else {
                let error = format!("`{SETTINGS_FILE}` names the hook plugin `{name}`, which is not there");
                diagnostics.push(Diagnostic::error(error).help("put its component into the plugins folder"));
                continue;
            };
            if let Some(reason) = shelved.held() {
                diagnostics.push(Diagnostic::error(reason).help("a run without its hooks would not be guarded"));
                continue;
            }
            let described = &shelved.plugin.description.hooks;
            let points =
                HookPoint::ALL.into_iter().filter(|point| described.iter().any(|hook| hook.point == point.name()));
            let optional = settings.is_optional_hook(&name);
            hooks.push(Hook { plugin: name.clone(), points: points.collect(), optional });
        }
        (AgentHooks { shelf, hooks }, diagnostics)
    }

    /// What one hook makes of an event; the error is why it failed.
    async fn tell_one(
        &self,
        hook: &Hook,
        point: HookPoint,
        event: &Object,
        purse: &Arc<Purse>,
        account: &mut Account,
    ) -> Result<Verdict, String> {
        let shelved = self.shelf.plugin(&hook.plugin).ok_or("it is gone")?;
        let cell = self.shelf.cell(shelved)?;
        let mut terms = shelved.terms.clone();
        terms.budget = purse.lend(&terms.budget).map_err(|overdrawn| overdrawn.to_string())?;
        let event = Value::Object(event.clone()).to_json();
        let call = HookCall { point: point.name().to_owned(), event, terms };
        let report = self.shelf.cells().call_hook(&cell, call).await;
        for line in &report.logs {
            tracing::info!(target: "hotcell::plugin", plugin = hook.plugin, level = ?line.level, "{}", line.message);
        }
        purse.spend(&report.usage);
        account.add(hook.plugin.as_str(), report.usage);
        for (who, usage) in report.nested {
            account.add(who, usage);
        }
        report.result.map_err(|error| error.to_string())
    }
}

#[async_trait]
impl Hooks for AgentHooks {
    fn listens(&self, point: HookPoint) -> bool {
        self.hooks.iter().any(|hook| hook.points.contains(&point))
    }

    async fn tell(&self, point: HookPoint, event: Object, purse: &Arc<Purse>) -> (HookVerdict, Account) {
        let mut account = Account::default();
        let mut changed = None;
        for hook in self.hooks.iter().filter(|hook| hook.points.contains(&point)) {
            let plugin = &hook.plugin;
            let event = changed.as_ref().unwrap_or(&event);
            let verdict = match self.tell_one(hook, point, event, purse, &mut account).await {
                Ok(Verdict::Change(text)) => match parse_json(&text) {
                    Ok(Value::Object(object)) => {
                        changed = Some(object);
                        continue;
                    }
                    _ => Err("it changed the event into something that is no JSON object".to_owned()),
                },
                other => other,
            };
            match verdict {
                Ok(Verdict::Refuse(reason)) => return (HookVerdict::Refuse(format!("`{plugin}`: {reason}")), account),
                Ok(_) => {}
                Err(reason) if hook.optional => {
                    tracing::warn!(target: "hotcell::plugin", plugin, "hook at `{}` failed: {reason}", point.name());
                }
                Err(reason) => {
                    return (HookVerdict::Refuse(format!("the hook `{plugin}` failed: {reason}")), account);
                }
            }
        }
        (changed.map_or(HookVerdict::Proceed, HookVerdict::Change), account)
    }
}
