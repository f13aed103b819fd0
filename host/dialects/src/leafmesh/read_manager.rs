//! Reading the manager: who watches a mesh, and who is told when something goes wrong.

use super::read::MOST_SECONDS;
use super::read_human::{PROVIDERS, check_url};
use super::reading::{LONGEST, Reading};
use super::schema::{Manager, Mesh};
use crate::document::Fields;
use crate::document::Need::{Optional, Required};
use crate::document::SourceText;

pub(super) fn manager<'r, 'd>(
    reading: &Reading<'r, 'd>,
    fields: &mut Fields<'r, 'd>,
    mesh: &mut Mesh,
) -> Option<Manager> {
    let entry = fields.entry("manager", Optional)?;
    let mut of_one = reading.block(fields, "manager")?;
    let enabled = of_one.flag("enabled", Optional).is_none_or(|flag| flag.value);
    let model = of_one.text("model", Optional);
    if enabled && model.as_ref().is_none_or(|model| model.trim().is_empty()) {
        let error = of_one.error("the manager is enabled and has no `model`", &reading.reader.span(entry.key_place));
        reading.reader.report(error.help("say which, or write `enabled: false`"));
    }
    of_one.word("domain", &["generic", "ecommerce", "data_analysis"]);
    of_one.text("prompt", Optional);
    of_one.flag("can_intervene", Optional);
    of_one.map("coordination_rules", Optional);
    reading.seconds(&mut of_one, "chain_completion_timeout", LONGEST);
    of_one.between("health_check_interval", 1, MOST_SECONDS);
    of_one.between("agent_timeout_threshold", 1, MOST_SECONDS);
    let escalation_agents = escalation(reading, &mut of_one, mesh);
    routing(reading, &mut of_one);
    rules(reading, &mut of_one);
    of_one.text("feed_model", Optional);
    of_one.within("temperature", 0.0..=2.0);
    of_one.between("max_tokens", 1, u32::MAX);
    // Blocks of later versions of the documentation, which the manager alone reads.
    for name in
        ["analysis_style", "omnipresent_mode", "triggers", "yields", "super_agent", "knowledge", "command_center"]
    {
        of_one.ignore(name);
    }
    of_one.finish(|_| None);
    if enabled {
        reading.later(fields, entry);
    }
    Some(Manager { escalation_agents })
}

/// The agents that are asked.
fn escalation<'r, 'd>(reading: &Reading<'r, 'd>, fields: &mut Fields<'r, 'd>, mesh: &mut Mesh) -> Vec<SourceText> {
    let mut agents = Vec::new();
    let Some(mut of_one) = reading.block(fields, "escalation") else { return agents };
    for item in of_one.list("targets", Optional).unwrap_or_default() {
        let Some(mut target) = reading.fields_of(&of_one, item, "an escalation target".to_owned()) else { continue };
        let kind = target.text("type", Required);
        let known = ["human_agent", "webhook", "channel"];
        if let Some(kind) = kind.as_ref().filter(|kind| !known.contains(&&***kind)) {
            let error = target.unknown_word("type", kind, &known);
            reading.reader.report(error);
        }
        let needed = match kind.as_deref() {
            Some("human_agent") => Some("agent"),
            Some("webhook") => Some("url"),
            Some("channel") => Some("provider"),
            _ => None,
        };
        let need = |name: &str| if needed == Some(name) { Required } else { Optional };
        agents.extend(target.text("agent", need("agent")));
        mesh.named_entries.extend(target.text("entry_point", Optional));
        if let Some(url) = target.text("url", need("url")) {
            check_url(reading, &target, "url", &url);
        }
        target.word("method", &["POST", "PUT", "PATCH"]);
        if let Some((headers, _)) = target.map("headers", Optional) {
            for header in headers {
                reading.reader.text(&header.value, || format!("the header `{}`", header.key), target.owner());
            }
        }
        target.map("payload_template", Optional);
        target.text("provider", need("provider"));
        target.word("provider", &PROVIDERS);
        target.text("channel_id", Optional);
        target.text("message_template", Optional);
        target.finish(|_| None);
    }
    if let Some(mut rules) = reading.block(&mut of_one, "auto_escalate") {
        for name in ["max_retries", "max_attempts"] {
            rules.between(name, 0, u32::MAX);
        }
        rules.between("max_errors_per_session", 1, u32::MAX);
        rules.between("timeout_threshold", 1, u32::MAX);
        rules.finish(|_| None);
    }
    of_one.finish(|_| None);
    agents
}

fn routing<'r, 'd>(reading: &Reading<'r, 'd>, fields: &mut Fields<'r, 'd>) {
    let Some(mut of_one) = reading.block(fields, "routing") else { return };
    of_one.word("mode", &["static", "learning"]);
    of_one.between("memory_size", 1, 1000);
    of_one.within("confidence_threshold", 0.0..=1.0);
    of_one.word("fallback", &["all"]);
    of_one.between("decay_days", 1, 365);
    of_one.finish(|_| None);
}

/// The rules about people, time-outs and pauses.
fn rules<'r, 'd>(reading: &Reading<'r, 'd>, fields: &mut Fields<'r, 'd>) {
    let blocks: [(&str, &[&str], &[&str]); 3] = [
        ("human_input_rules", &["max_concurrent_requests", "max_agent_requests"], &["enable_request_queuing"]),
        (
            "timeout_rules",
            &["max_timeouts_before_escalation"],
            &["timeout_escalation_enabled", "escalation_notify_managers"],
        ),
        (
            "workflow_pause_rules",
            &["max_pause_duration_minutes", "max_concurrent_paused_workflows"],
            &["pause_monitoring_enabled"],
        ),
    ];
    for (name, counts, flags) in blocks {
        let Some(mut of_one) = reading.block(fields, name) else { continue };
        for name in counts {
            of_one.between(name, 1, u32::MAX);
        }
        for name in flags {
            of_one.flag(name, Optional);
        }
        of_one.finish(|_| None);
    }
    let Some(mut of_one) = reading.block(fields, "human_response_rules") else { return };
    for name in ["approval", "escalation", "timeout"] {
        let Some(mut scenario) = reading.block(&mut of_one, name) else { continue };
        scenario.flag("requires_manager_review", Optional);
        scenario.flag("auto_escalate", Optional);
        scenario.finish(|_| None);
    }
    of_one.finish(|_| None);
}
