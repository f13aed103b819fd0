//! Fields of all agents that count only beside another one, and fields that never do: a file that has them is told so.

use super::reading::Reading;
use super::schema::AgentType;
use super::settings::BudgetSettings;
use crate::document::Need::Optional;
use crate::document::{Fields, Kind, Node};

/// What an agent has of that on which other fields depend.
pub(super) struct Has<'a> {
    pub(super) kind: AgentType,
    pub(super) wakes_up: bool,
    pub(super) waits: bool,
    pub(super) copies: bool,
    pub(super) contract: bool,
    pub(super) yields: bool,
    pub(super) memory: bool,
    pub(super) history: bool,
    pub(super) budget: Option<&'a BudgetSettings>,
}

/// Fields that were never wired, with which files are written all the same.
const DEAD: [&str; 6] = [
    "super_agent_cost_ceiling",
    "super_agent_wall_clock",
    "super_agent_step_max_tokens",
    "super_agent_synth_max_tokens",
    "super_agent_verify_view_chars",
    "super_agent_step_concurrency",
];

/// Warns of fields that count only beside another one, which the agent does not have.
pub(super) fn alone<'r, 'd>(reading: &Reading<'r, 'd>, fields: &mut Fields<'r, 'd>, has: &Has<'_>) {
    for (name, counts, why) in [
        ("wake_up_input", has.wakes_up, "the agent has no `wake_up`"),
        ("timezone", has.wakes_up, "the agent has no `wake_up`"),
        ("wait_for_timeout", has.waits, "the agent has no `wait_for`"),
        ("instances_handoff", has.copies, "there is one of `instances`"),
        ("enforce_yields_retry", has.contract, "`enforce_yields` is off"),
        ("enforce_yields", has.yields || !has.contract, "the agent declares no `yields`"),
        ("memory_limit", has.memory, "the agent has no `memory`"),
        ("history_limit", has.history, "`receive_conversation_history` is off"),
        ("budget_on_exhaust", has.budget.is_some(), "the agent has no budget"),
    ] {
        if !counts {
            reading.no_effect(fields, name, why);
        }
    }
    if has.budget.is_some_and(|budget| budget.escalates) && !reading.has_manager {
        reading.no_effect(fields, "budget_on_exhaust", "no `manager` is enabled, whose `escalation` says who is told");
    }
    let instead = "write `previous_name` when the agent gets another name";
    reading.no_effect_but(fields, "id", "what is kept of an agent is kept under its name", instead);
    let is_human = has.kind == AgentType::Human;
    if fields.flag("is_human_powered", Optional).is_some_and(|flag| flag.value != is_human) {
        reading.no_effect_but(fields, "is_human_powered", "`agent_type` says whether a person is asked", "take it out");
    }
}

/// Warns of fields that mean nothing.
pub(super) fn dead<'d>(reading: &Reading<'_, 'd>, fields: &mut Fields<'_, 'd>, node: &'d Node) {
    let Kind::Map(entries) = &node.kind else { return };
    for name in DEAD {
        fields.ignore(name);
        if let Some(entry) = entries.iter().find(|entry| &*entry.key == name) {
            let message = format!("`{name}` means nothing");
            reading.reader.report(reading.warning(fields, message, entry.key_place).help("take it out"));
        }
    }
}
