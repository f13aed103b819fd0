//! Reading the manager: who watches a mesh, and who is told when something goes wrong.

use hotcell_graph::{Path, Template, closest};

use super::addresses::check_url;
use super::hidden::Hidden;
use super::read_channels::PROVIDERS;
use super::reading::{LONGEST, MOST_SECONDS, Reading, is_on, text_values};
use super::schema::{Manager, Mesh, Summarizer};
use super::watching::{EscalationTarget, LearningSettings, ManagerSettings};
use crate::document::Need::{Optional, Required};
use crate::document::{Fields, Kind, Node, SourceText};

/// When the targets of an escalation are told where nothing is said: after so many failures of a session, and after so many
/// questions one after the other that nobody answered.
const MAX_ERRORS: u32 = 5;
const MAX_TIMEOUTS: u32 = 2;
/// How routes are learnt where nothing is said: how many are remembered, how certain it has to be, and after how many days one counts
/// for a third.
const MEMORY_SIZE: u32 = 100;
const CONFIDENCE: f64 = 0.7;
const DECAY_DAYS: u32 = 30;
/// The types of escalation targets with their fields, the first of which is needed.
const TARGETS: [(&str, &[&str]); 3] = [
    ("human_agent", &["agent", "entry_point"]),
    ("webhook", &["url", "method", "headers", "payload_template"]),
    ("channel", &["provider", "channel_id", "message_template"]),
];
/// What its model is asked with where nothing is said.
const TEMPERATURE: f64 = 0.1;
const MAX_TOKENS: u32 = 800;

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
    let domain = of_one.word("domain", &["generic", "ecommerce", "data_analysis"]).unwrap_or("generic");
    let criteria = of_one.text("prompt", Optional).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    let can_intervene = of_one.flag("can_intervene", Optional).is_none_or(|flag| flag.value);
    let rules_in_words = of_one.map("coordination_rules", Optional).and(of_one.node("coordination_rules", Optional));
    let rules_in_words = rules_in_words.filter(|rules| is_on(rules)).map(|rules| rules.to_value().to_json());
    reading.seconds(&mut of_one, "chain_completion_timeout", LONGEST);
    of_one.between("health_check_interval", 1, MOST_SECONDS);
    of_one.between("agent_timeout_threshold", 1, MOST_SECONDS);
    for (name, why) in [
        ("chain_completion_timeout", "a call is over when everything that it started is over"),
        ("health_check_interval", "each run of an agent is looked at when it is over"),
    ] {
        reading.no_effect(&mut of_one, name, why);
    }
    let instead = "write `llm_hard_timeout_s`, `tool_call_timeout`, `human_timeout_seconds` or the `timeout` of a connector there";
    reading.no_effect_but(&mut of_one, "agent_timeout_threshold", "agents have time limits of their own", instead);
    let mut escalation = escalation(reading, &mut of_one, mesh);
    let learning = routing(reading, &mut of_one);
    rules(reading, &mut of_one, &mut escalation);
    let feed_model = of_one.text("feed_model", Optional);
    if model.as_ref().is_some_and(|model| feed_model.as_ref().is_some_and(|of_feed| **of_feed != **model)) {
        reading.no_effect(&mut of_one, "model", "`feed_model` makes the posts, and nothing else is asked");
    }
    let temperature = of_one.within("temperature", 0.0..=2.0).unwrap_or(TEMPERATURE);
    let max_tokens = of_one.between("max_tokens", 1, u32::MAX).unwrap_or(MAX_TOKENS);
    // Blocks of later versions of the documentation, which the manager alone reads.
    for name in
        ["analysis_style", "omnipresent_mode", "triggers", "yields", "super_agent", "knowledge", "command_center"]
    {
        let why = "the manager makes a post of each output, and looks nothing up";
        reading.no_effect_but(&mut of_one, name, why, "what it has to know can stand in `prompt`");
    }
    of_one.finish(|_| None);
    let summarizer = feed_model.or(model).filter(|_| enabled).map(|model| Summarizer {
        model,
        temperature,
        max_tokens,
        domain,
        criteria,
        rules: rules_in_words,
        intervenes: can_intervene,
    });
    let settings = ManagerSettings {
        can_intervene,
        learning,
        targets: escalation.targets,
        max_errors_per_session: escalation.max_errors.unwrap_or(MAX_ERRORS),
        timeout_threshold: escalation.tells_timeouts.then(|| escalation.timeouts.unwrap_or(MAX_TIMEOUTS)),
    };
    Some(Manager {
        summarizer,
        escalation_agents: escalation.agents,
        escalation_channels: escalation.channels,
        settings: enabled.then_some(settings),
    })
}

/// Who is told, and when.
struct Escalation {
    /// The agents that are asked, with their places
    agents: Vec<SourceText>,
    /// The chat providers that are posted to, with theirs
    channels: Vec<SourceText>,
    targets: Vec<EscalationTarget>,
    max_errors: Option<u32>,
    timeouts: Option<u32>,
    /// Whether anybody is told of questions that nobody answers
    tells_timeouts: bool,
}

fn escalation<'r, 'd>(reading: &Reading<'r, 'd>, fields: &mut Fields<'r, 'd>, mesh: &mut Mesh) -> Escalation {
    let mut escalation = Escalation {
        agents: Vec::new(),
        channels: Vec::new(),
        targets: Vec::new(),
        max_errors: None,
        timeouts: None,
        tells_timeouts: true,
    };
    let Some(mut of_one) = reading.block(fields, "escalation") else { return escalation };
    for item in of_one.list("targets", Optional).unwrap_or_default() {
        let Some(mut target) = reading.fields_of(&of_one, item, "an escalation target".to_owned()) else { continue };
        let kind = target.text("type", Required);
        let known = TARGETS.map(|(kind, _)| kind);
        let own = kind.as_ref().and_then(|kind| TARGETS.iter().find(|(known, _)| *known == &**kind));
        if let (Some(kind), None) = (&kind, own) {
            let error = target.unknown_word("type", kind, &known);
            reading.reader.report(error);
        }
        if let Some((own, _)) = own {
            for (kind, fields) in TARGETS.iter().filter(|(kind, _)| kind != own) {
                for name in *fields {
                    reading.no_effect(&mut target, name, &format!("targets of the type `{kind}` have it"));
                }
            }
        }
        let needed = own.and_then(|(_, fields)| fields.first());
        let need = |name: &str| if needed.is_some_and(|needed| *needed == name) { Required } else { Optional };
        let entry_point = target.text("entry_point", Optional);
        // An entry point says which agent it is, too.
        let agent = target.text("agent", if entry_point.is_some() { Optional } else { need("agent") });
        mesh.named_entries.extend(entry_point.clone());
        let url = target.text("url", need("url"));
        if let Some(url) = &url {
            check_url(reading, &target, "url", url);
        }
        let method = target.word("method", &["POST", "PUT", "PATCH"]).unwrap_or("POST");
        let headers = text_values(reading, &mut target, "headers");
        let payload = target.map("payload_template", Optional).and(target.node("payload_template", Optional));
        let payload = payload.map(Node::to_value);
        let provider = target.text("provider", need("provider"));
        let is_known = target.word("provider", &PROVIDERS).is_some();
        let text = |text: Option<SourceText>| text.map(|text| text.to_string());
        let channel_id = text(target.text("channel_id", Optional));
        let message = text(target.text("message_template", Optional));
        for name in ["payload_template", "message_template"] {
            if let Some(node) = target.node(name, Optional) {
                unknown_variables(reading, &target, node);
            }
        }
        target.finish(|_| None);
        match kind.as_deref() {
            Some("human_agent") => escalation.agents.extend(agent.clone()),
            Some("channel") => escalation.channels.extend(provider.clone().filter(|_| is_known)),
            _ => {}
        }
        escalation.targets.extend(match (kind.as_deref(), agent, url, provider) {
            (Some("human_agent"), agent, ..) if agent.is_some() || entry_point.is_some() => {
                Some(EscalationTarget::Agent { agent: text(agent).unwrap_or_default(), entry_point: text(entry_point) })
            }
            (Some("webhook"), _, Some(url), _) => Some(EscalationTarget::Webhook {
                url: url.trim().to_owned(),
                method: method.to_owned(),
                headers: Hidden(headers),
                payload,
            }),
            (Some("channel"), .., Some(provider)) => {
                Some(EscalationTarget::Channel { provider: provider.to_string(), channel_id, message })
            }
            _ => None,
        });
    }
    if let Some(mut rules) = reading.block(&mut of_one, "auto_escalate") {
        for name in ["max_retries", "max_attempts"] {
            if rules.between(name, 0, u32::MAX).is_some() {
                let why = "an agent that breaks its contract is told of when its attempts are used up";
                reading.no_effect_but(&mut rules, name, why, "write `enforce_yields_retry` at the agents");
            }
        }
        escalation.max_errors = rules.between("max_errors_per_session", 1, u32::MAX);
        escalation.timeouts = rules.between("timeout_threshold", 1, u32::MAX);
        rules.finish(|_| None);
    }
    of_one.finish(|_| None);
    escalation
}

/// Warns of variables in the texts of an escalation target that there are none of.
fn unknown_variables<'r, 'd>(reading: &Reading<'r, 'd>, target: &Fields<'r, 'd>, node: &'d Node) {
    match &node.kind {
        Kind::Text(text) => {
            let template = Template::parse(&text.value);
            let names = template.references().filter_map(Path::root);
            for name in names.filter(|name| !EscalationTarget::VARIABLES.contains(name)) {
                let help = match closest(name, EscalationTarget::VARIABLES) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("they are `{}`", EscalationTarget::VARIABLES.join("`, `")),
                };
                let message = format!("there is no variable `{name}` in escalations: it is replaced by the empty text");
                reading.reader.report(reading.warning(target, message, node.place).help(help));
            }
        }
        Kind::List(items) => items.iter().for_each(|item| unknown_variables(reading, target, item)),
        Kind::Map(entries) => entries.iter().for_each(|entry| unknown_variables(reading, target, &entry.value)),
        _ => {}
    }
}

/// Gives escalation targets that name an entry point alone the agent behind it. An entry point that is not there is
/// reported with all others that are named.
pub(super) fn agents_of_entry_points(mesh: &mut Mesh) {
    let Some(settings) = mesh.manager.as_mut().and_then(|manager| manager.settings.as_mut()) else { return };
    for target in &mut settings.targets {
        if let EscalationTarget::Agent { agent, entry_point: Some(name) } = target
            && agent.is_empty()
            && let Some(entry) = mesh.entry_points.iter().find(|entry| *entry.name.value == **name)
        {
            *agent = entry.target.value.to_string();
        }
    }
}

/// How routes are learnt; none where they are those of the file.
fn routing<'r, 'd>(reading: &Reading<'r, 'd>, fields: &mut Fields<'r, 'd>) -> Option<LearningSettings> {
    let mut of_one = reading.block(fields, "routing")?;
    let is_learning = of_one.word("mode", &["static", "learning"]) == Some("learning");
    let memory_size = of_one.between("memory_size", 1, 1000);
    let confidence = of_one.within("confidence_threshold", 0.0..=1.0);
    of_one.word("fallback", &["all"]);
    let decay_days = of_one.between("decay_days", 1, 365);
    let given = [
        ("memory_size", memory_size.is_some()),
        ("confidence_threshold", confidence.is_some()),
        ("decay_days", decay_days.is_some()),
    ];
    for (name, is_given) in given {
        if is_given && !is_learning {
            reading.no_effect_but(&mut of_one, name, "the routes are those of the file", "write `mode: learning`");
        }
    }
    of_one.finish(|_| None);
    is_learning.then_some(LearningSettings {
        memory_size: memory_size.unwrap_or(MEMORY_SIZE),
        confidence: confidence.unwrap_or(CONFIDENCE),
        decay_days: decay_days.unwrap_or(DECAY_DAYS),
    })
}

/// Rules from which nothing follows.
struct IdleRules {
    name: &'static str,
    counts: &'static [&'static str],
    flags: &'static [&'static str],
    why: &'static str,
    instead: &'static str,
}

const IDLE: [IdleRules; 2] = [
    IdleRules {
        name: "human_input_rules",
        counts: &["max_concurrent_requests", "max_agent_requests"],
        flags: &["enable_request_queuing"],
        why: "every question is put at once, however many are open",
        instead: "take it out; `operator_ids` of a seat say who is asked, and `human_timeout_seconds` how long",
    },
    IdleRules {
        name: "workflow_pause_rules",
        counts: &["max_pause_duration_minutes", "max_concurrent_paused_workflows"],
        flags: &["pause_monitoring_enabled"],
        why: "a workflow waits for a person as long as the seat says",
        instead: "take it out; write `human_timeout_seconds` and `fallback_response` at the seats",
    },
];

/// The rules about people, time-outs and pauses. Of most the documentation has names and numbers and does not say what follows from
/// them, so nothing does. When time-outs are told is clear.
fn rules<'r, 'd>(reading: &Reading<'r, 'd>, fields: &mut Fields<'r, 'd>, escalation: &mut Escalation) {
    for IdleRules { name, counts, flags, why, instead } in IDLE {
        reading.no_effect_but(fields, name, why, instead);
        let Some(mut of_one) = reading.block(fields, name) else { continue };
        for name in counts {
            of_one.between(name, 1, u32::MAX);
        }
        for name in flags {
            of_one.flag(name, Optional);
        }
        of_one.finish(|_| None);
    }
    if let Some(mut of_one) = reading.block(fields, "timeout_rules") {
        let most = of_one.between("max_timeouts_before_escalation", 1, u32::MAX);
        // What `auto_escalate` says is nearer.
        escalation.timeouts = escalation.timeouts.or(most);
        escalation.tells_timeouts = of_one.flag("timeout_escalation_enabled", Optional).is_none_or(|flag| flag.value);
        of_one.flag("escalation_notify_managers", Optional);
        reading.no_effect(&mut of_one, "escalation_notify_managers", "the targets of `escalation` are told");
        of_one.finish(|_| None);
    }
    let instead = "take it out; route answers by conditions in `can_call` of the seat, and name who is told of failures in `escalation`";
    reading.no_effect_but(fields, "human_response_rules", "answers of people are passed on at once", instead);
    let Some(mut of_one) = reading.block(fields, "human_response_rules") else { return };
    for name in ["approval", "escalation", "timeout"] {
        let Some(mut scenario) = reading.block(&mut of_one, name) else { continue };
        scenario.flag("requires_manager_review", Optional);
        scenario.flag("auto_escalate", Optional);
        scenario.finish(|_| None);
    }
    of_one.finish(|_| None);
}
