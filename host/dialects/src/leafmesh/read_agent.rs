//! Reading an agent: what all of them have.

use std::time::Duration;

use hotcell_graph::Object;
use hotcell_graph::diagnostic::Diagnostic;

use super::cron::Cron;
use super::read_condition::condition;
use super::reading::{MOST_SECONDS, Reading, vault_name};
use super::schema::{Agent, AgentType, Body, Communication, Edge, WaitFor};
use super::settings::{BudgetSettings, WakeUp};
use super::shapes::Declared;
use super::unused::Has;
use super::wait::Wait;
use super::{read_connector, read_human, read_knowledge, read_llm, read_memory, read_operation, unused};
use crate::document::Need::{Optional, Required};
use crate::document::{Entry, Fields, Kind, Node, Owner, SourceText};

/// How long the names of agents may be.
const MAX_NAME: usize = 128;
/// How many copies of an agent one call may run.
const MOST_INSTANCES: u32 = 50;
/// In how many sessions an agent with `parallel` works at a time where nothing is said.
const MAX_CONCURRENT: u32 = 5;
/// How long an agent waits for others where nothing is said, in seconds.
const WAIT: u32 = 60;
/// Fields that only some types of agents have, with those that have them.
const OF_TYPES: [(AgentType, &[&str]); 4] = [
    (AgentType::Llm, read_llm::FIELDS),
    (AgentType::Human, read_human::FIELDS),
    (AgentType::Programmatic, &["integration", "connector_config", "external_policy", "request_form"]),
    (AgentType::External, &["framework", "connector_config", "external_policy", "request_form"]),
];
/// How many earlier messages an agent is told where nothing is said, and how many at most.
const HISTORY: u32 = 20;
const MOST_HISTORY: u32 = 200;
pub(super) const TYPES: [&str; 4] = ["llm", "human", "programmatic", "external"];
/// How agents answer each other; the last word is an older one for the second.
pub(super) const COMMUNICATION: [&str; 3] = ["dual", "chain", "execute"];

/// Fields of agents of a type, as files call it, that some other type does not have.
pub fn fields_of_type(name: &str) -> &'static [&'static str] {
    OF_TYPES.iter().find(|(kind, _)| kind.word() == name).map_or(&[], |(_, fields)| fields)
}

/// Reads an agent; none if it is no mapping.
pub(super) fn agent<'r, 'd>(reading: &Reading<'r, 'd>, entry: &'d Entry) -> Option<Agent> {
    let reader = reading.reader;
    let name = &entry.key;
    let owner = Owner { what: format!("the agent `{name}`"), node: Some(name.clone()), place: entry.key_place };
    let mut fields = reader.fields(&entry.value, owner)?;
    check_name(reading, &mut fields, entry);
    let agent_type = agent_type(&mut fields);
    refuse_foreign(reading, &mut fields, &entry.value, agent_type);
    let description = fields.text("description", Optional).map(|text| text.to_string());
    let communication = communication(reading, &mut fields);
    let parallel = fields.flag("parallel", Optional).is_some_and(|flag| flag.value);
    let most = fields.between("max_concurrent", 1, u32::MAX).unwrap_or(MAX_CONCURRENT);
    let at_once = parallel.then_some(most);
    if !parallel {
        reading.no_effect(&mut fields, "max_concurrent", "`parallel` is off");
    }
    let instances = fields.between("instances", 1, MOST_INSTANCES).unwrap_or(1);
    let hands_on_each = fields.word("instances_handoff", &["last", "each"]) == Some("each") && instances > 1;
    let budget = budgets(reading, &mut fields, entry, agent_type);
    let wake_ups = wake_ups(reading, &mut fields);
    let previous_name = identity(reading, &mut fields);
    let structures = &reading.structures;
    let yields = Declared { block: "`yields`", structures: &[] }.fields(&mut fields, "yields");
    let inputs = Declared { block: "`inputs`", structures }.fields(&mut fields, "inputs");
    let edges = edges(reading, &mut fields);
    let narration = fields.text("narration", Optional).map(|text| text.trim().to_owned());
    if !reading.has_manager {
        reading.no_effect(&mut fields, "narration", "no `manager` is enabled");
    }
    let wait = wait_for(reading, &mut fields);
    for name in ["auto_store_response", "auto_store_yields"] {
        if fields.flag(name, Optional).is_some_and(|flag| !flag.value) {
            reading.no_effect(&mut fields, name, "the outputs of agents are in the journal of the run");
        }
    }
    let is_strict = fields.flag("enforce_yields", Optional).is_some_and(|flag| flag.value);
    let retries = fields.between("enforce_yields_retry", 0, u32::MAX).unwrap_or(0);
    let memory = read_memory::memory(reading, &mut fields);
    let knowledge = read_knowledge::knowledge(reading, &mut fields, agent_type);
    let history = history(reading, &mut fields, agent_type);
    let overrides = overrides(reading, &mut fields);
    read_operation::listeners(reading, &mut fields);
    let has = Has {
        kind: agent_type,
        wakes_up: fields.is_written("wake_up"),
        waits: fields.is_written("wait_for"),
        copies: instances > 1,
        contract: is_strict,
        yields: !yields.is_empty(),
        memory: memory.is_some(),
        history: history.is_some(),
        budget: budget.as_ref(),
    };
    unused::alone(reading, &mut fields, &has);
    unused::dead(reading, &mut fields, &entry.value);
    let body = match agent_type {
        AgentType::Llm => Body::Llm(Box::new(read_llm::llm(reading, &mut fields, &yields, knowledge.as_ref()))),
        AgentType::Human => Body::Human(Box::new(read_human::human(reading, &mut fields))),
        AgentType::Programmatic => {
            Body::Programmatic { integration: read_connector::connector(reading, &mut fields, agent_type) }
        }
        AgentType::External => Body::External(read_connector::connector(reading, &mut fields, agent_type)),
    };
    fields.finish_open();
    let span = reader.span(entry.key_place);
    let closed = vault_name(&entry.value).map(|secret| {
        let warning = Diagnostic::warning(format!("there is no vault here: the agent cannot run without `{secret}`"));
        reader.report(warning.at(&span).node(&**name).help("take the value from the environment: `${NAME}`"));
        format!("there is no `{secret}`: hotcell has no vault")
    });
    Some(Agent {
        name: name.clone(),
        span,
        previous_name,
        description,
        communication,
        instances,
        hands_on_each,
        at_once,
        yields,
        inputs,
        edges,
        wake_ups,
        wait,
        is_strict,
        retries,
        narration: narration.filter(|text| !text.is_empty()),
        memory,
        knowledge,
        budget,
        history,
        overrides,
        body,
        closed,
    })
}

fn check_name<'d>(reading: &Reading<'_, 'd>, fields: &mut Fields<'_, 'd>, entry: &Entry) {
    let name = &*entry.key;
    let fits = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.len() <= MAX_NAME
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if !fits {
        let message = format!("`{name}` cannot be the name of an agent");
        let error = fields.error(message, &reading.reader.span(entry.key_place));
        let help =
            format!("names begin with a letter or `_`, and have letters, digits, `_` and `-`, at most {MAX_NAME}");
        reading.reader.report(error.help(help));
    }
    if let Some(inner) = fields.text("name", Optional)
        && &*inner != name
    {
        let error = fields.error(format!("the agent `{name}` says that its name is `{}`", &*inner), &inner.span);
        reading.reader.report(error.help(format!("write `name: {name}`, or leave it out")));
    }
}

fn agent_type(fields: &mut Fields<'_, '_>) -> AgentType {
    match fields.word("agent_type", &TYPES) {
        Some("human") => AgentType::Human,
        Some("programmatic") => AgentType::Programmatic,
        Some("external") => AgentType::External,
        Some("llm") => AgentType::Llm,
        // One of an unknown type is held to the fields of none.
        _ => AgentType::Llm,
    }
}

/// Reports fields of other types of agents, and takes note of them.
fn refuse_foreign(reading: &Reading<'_, '_>, fields: &mut Fields<'_, '_>, node: &Node, own: AgentType) {
    let Kind::Map(entries) = &node.kind else { return };
    let is_known = node.get("agent_type").is_none_or(|entry| entry.value.as_text() == Some(own.word()));
    for (name, owners) in foreign(own) {
        fields.ignore(name);
        let Some(entry) = entries.iter().find(|entry| &*entry.key == name) else { continue };
        if !is_known || entry.value.kind == Kind::Null {
            continue;
        }
        let message =
            format!("`{name}` is a field of {} agents, and this one is `{}`", owners.join(" and "), own.word());
        let error = fields.error(message, &reading.reader.span(entry.key_place));
        reading.reader.report(error.help("take it out, or give the agent another `agent_type`"));
    }
}

/// The fields that agents of this type do not have, with the types that do.
fn foreign(own: AgentType) -> Vec<(&'static str, Vec<&'static str>)> {
    let has = |kind: AgentType, name: &str| OF_TYPES.iter().any(|(of, names)| *of == kind && names.contains(&name));
    let mut found: Vec<(&'static str, Vec<&'static str>)> = Vec::new();
    for (kind, names) in OF_TYPES {
        for name in names.iter().filter(|name| !has(own, name)) {
            match found.iter_mut().find(|(known, _)| known == name) {
                Some((_, owners)) => owners.push(kind.word()),
                None => found.push((name, vec![kind.word()])),
            }
        }
    }
    found
}

fn communication(reading: &Reading<'_, '_>, fields: &mut Fields<'_, '_>) -> Communication {
    let word = fields.word("communication_type", &COMMUNICATION);
    if word == Some("execute") {
        let message = format!("`communication_type: execute` of {} is read as `chain`", fields.owner().what);
        let place =
            fields.entry("communication_type", Optional).map_or(fields.owner().place, |entry| entry.value.place);
        reading.reader.report(reading.warning(fields, message, place).help("write `chain`"));
    }
    if matches!(word, Some("chain" | "execute")) { Communication::Chain } else { Communication::Dual }
}

fn budgets<'r, 'd>(
    reading: &Reading<'r, 'd>,
    fields: &mut Fields<'r, 'd>,
    entry: &'d Entry,
    own: AgentType,
) -> Option<BudgetSettings> {
    /// Connectors that do not say what a call cost.
    const SILENT: [&str; 6] = ["custom", "n8n", "zapier", "mcp", "a2a", "composio"];
    let connector = ["framework", "integration"].iter().find_map(|name| entry.value.get(name)?.value.as_text());
    let tokens = fields.between("monthly_token_budget", 1, u32::MAX);
    let cost_usd = reading.positive(fields, "monthly_cost_budget");
    let escalates = fields.word("budget_on_exhaust", &["graceful", "escalate"]) == Some("escalate");
    for name in ["monthly_token_budget", "monthly_cost_budget"] {
        let Some(entry) = fields.entry(name, Optional) else { continue };
        let silent = connector.filter(|connector| SILENT.contains(connector));
        match silent {
            Some(connector) if own == AgentType::External => {
                let message = format!("`{name}` cannot be kept: `{connector}` does not say what a call cost");
                let error = fields.error(message, &reading.reader.span(entry.key_place));
                reading.reader.report(error.help("take it out"));
            }
            _ if own == AgentType::External => reading.later(fields, entry),
            _ if own != AgentType::Llm => reading.no_effect(fields, name, "the agent asks no model"),
            _ => {}
        }
    }
    (tokens.is_some() || cost_usd.is_some()).then_some(BudgetSettings { tokens, cost_usd, escalates })
}

fn wake_ups<'r, 'd>(reading: &Reading<'r, 'd>, fields: &mut Fields<'r, 'd>) -> Vec<WakeUp> {
    let usual_zone = zone(reading, fields).unwrap_or_else(|| "UTC".to_owned());
    let usual_input = given(fields, "wake_up_input");
    let mut wake_ups = Vec::new();
    let Some(entry) = fields.entry("wake_up", Optional) else { return wake_ups };
    let items = match &entry.value.kind {
        Kind::List(items) => items.iter().collect(),
        _ => vec![&entry.value],
    };
    for item in items {
        let (mut own_zone, mut input) = (None, usual_input.clone());
        let text = match &item.kind {
            Kind::Map(_) => {
                let what = "an entry of `wake_up`".to_owned();
                let Some(mut of_one) = reading.fields_of(fields, item, what) else { continue };
                let text = of_one.text("cron", Required);
                for (name, value) in given(&mut of_one, "input").iter() {
                    input.insert(name.clone(), value.clone());
                }
                own_zone = zone(reading, &mut of_one);
                of_one.finish(|_| None);
                text
            }
            _ => reading.reader.text(item, || "`wake_up`".to_owned(), fields.owner()),
        };
        let Some(text) = text else { continue };
        let zone = own_zone.unwrap_or_else(|| usual_zone.clone());
        match Cron::parse(&text) {
            Ok(cron) => wake_ups.push(WakeUp { cron, zone, input }),
            Err(problem) => {
                let error = fields.error(format!("`wake_up: {}` never runs: {problem}", &*text), &text.span);
                let help = "write minute, hour, day of the month, month and day of the week: `0 9 * * MON-FRI`";
                reading.reader.report(error.help(help));
            }
        }
    }
    wake_ups
}

/// A mapping that is handed on as it is.
fn given(fields: &mut Fields<'_, '_>, name: &'static str) -> Object {
    let (entries, _) = fields.map(name, Optional).unwrap_or_default();
    entries.iter().map(|entry| (entry.key.clone(), entry.value.to_value())).collect()
}

fn zone(reading: &Reading<'_, '_>, fields: &mut Fields<'_, '_>) -> Option<String> {
    let zone = fields.text("timezone", Optional)?;
    if !reading.surroundings.has_time_zone(&zone) {
        let error = fields.error(format!("there is no time zone `{}`", &*zone), &zone.span);
        reading.reader.report(error.help("write its name in the time zone database, such as `Europe/Berlin` or `UTC`"));
    }
    Some(zone.to_string())
}

/// The name that the agent had before.
fn identity(reading: &Reading<'_, '_>, fields: &mut Fields<'_, '_>) -> Option<SourceText> {
    fields.text("id", Optional);
    let before = fields.text("previous_name", Optional)?;
    if fields.owner().node.as_deref() == Some(&*before) {
        let error = fields.error("`previous_name` is the name that the agent has", &before.span);
        reading.reader.report(error.help("take it out"));
    }
    Some(before)
}

fn edges<'r, 'd>(reading: &Reading<'r, 'd>, fields: &mut Fields<'r, 'd>) -> Vec<Edge> {
    let mut edges = Vec::new();
    for (place, item) in fields.list("can_call", Optional).unwrap_or_default().iter().enumerate() {
        if let Kind::Text(_) = item.kind {
            let target = reading.reader.text(item, String::new, fields.owner());
            edges.extend(target.map(|target| Edge { target, condition: None, has_condition: false }));
            continue;
        }
        let what = format!("entry {} of `can_call`", place + 1);
        let Some(mut of_one) = reading.fields_of(fields, item, what.clone()) else { continue };
        let target = of_one.text("agent", Required);
        let what = target.as_ref().map_or(what.clone(), |target| format!("{what} (to `{}`)", &**target));
        let condition = condition(reading, &mut of_one, &what);
        let has_condition = of_one.entry("condition", Optional).is_some();
        of_one.finish(|_| None);
        edges.extend(target.map(|target| Edge { target, condition, has_condition }));
    }
    edges
}

fn wait_for<'r, 'd>(reading: &Reading<'r, 'd>, fields: &mut Fields<'r, 'd>) -> Option<WaitFor> {
    let timeout = fields.between("wait_for_timeout", 1, MOST_SECONDS).unwrap_or(WAIT);
    let node = fields.node("wait_for", Optional)?;
    let texts: Vec<SourceText> = match &node.kind {
        Kind::List(_) => reading.reader.texts(node, "wait_for", fields.owner())?,
        _ => vec![reading.reader.text(node, || "`wait_for`".to_owned(), fields.owner())?],
    };
    if texts.iter().all(|text| text.trim().is_empty()) && !matches!(&node.kind, Kind::List(items) if !items.is_empty())
    {
        return None;
    }
    let mut parts = Vec::new();
    for text in &texts {
        match Wait::parse(text) {
            Ok(wait) => parts.push(wait),
            Err(problem) => {
                let column = text[..text.floor_char_boundary(problem.at.start)].chars().count() + 1;
                let message = format!("`wait_for` is broken at column {column}: {}", problem.message);
                let error = fields.error(message, &text.span_of(problem.at));
                reading.reader.report(error.help(
                    "write names with `AND`, `OR`, brackets, and `?` behind what is optional: `a AND (b OR c) AND d?`",
                ));
            }
        }
    }
    let expression = match parts.len() {
        0 => return None,
        1 => parts.swap_remove(0),
        _ => Wait::All(parts),
    };
    Some(WaitFor { expression, texts, timeout: Duration::from_secs(u64::from(timeout)) })
}

fn history<'r, 'd>(reading: &Reading<'r, 'd>, fields: &mut Fields<'r, 'd>, own: AgentType) -> Option<u32> {
    let is_on = fields.flag("receive_conversation_history", Optional).is_some_and(|flag| flag.value);
    let most = fields.between("history_limit", 0, MOST_HISTORY).unwrap_or(HISTORY);
    if is_on && own != AgentType::Llm {
        reading.no_effect(fields, "receive_conversation_history", "only models get the earlier conversation");
    }
    is_on.then_some(most)
}

fn overrides<'r, 'd>(reading: &Reading<'r, 'd>, fields: &mut Fields<'r, 'd>) -> Vec<(SourceText, Communication)> {
    let mut overrides = Vec::new();
    for item in fields.list("response_overrides", Optional).unwrap_or_default() {
        let what = "an entry of `response_overrides`".to_owned();
        let Some(mut of_one) = reading.fields_of(fields, item, what) else { continue };
        let caller = of_one.text("caller", Required);
        let kind = of_one.text("type", Required);
        let is_known = kind.as_ref().is_none_or(|kind| ["dual", "chain"].contains(&&**kind));
        if let (Some(kind), false) = (&kind, is_known) {
            let mut error = of_one.unknown_word("type", kind, &["dual", "chain"]);
            error.message = format!("`type` of an entry of `response_overrides` cannot be `{}`", &**kind);
            reading.reader.report(error);
        }
        of_one.finish(|_| None);
        if let (Some(caller), Some(kind)) = (caller, kind.filter(|_| is_known)) {
            let kind = if &*kind == "chain" { Communication::Chain } else { Communication::Dual };
            overrides.push((caller, kind));
        }
    }
    overrides
}
