//! Reading the blocks about how a mesh is operated: where its code is, what is watched, and what it listens to.

use std::time::Duration;

use hotcell_graph::Key;

use super::functions::CodeFolder;
use super::reading::{LONGEST, Reading, did_you_mean, is_on};
use super::watching::Healing;
use crate::document::Need::{Optional, Required};
use crate::document::{Fields, Kind, Owner};

/// Blocks about the documented system that nothing here corresponds to, with the reason.
const OF_OPERATORS: [(&str, &str); 3] = [
    ("kanban", "hotcell has no board"),
    ("runtime", "a run has the limits of hotcell"),
    ("connectors", "what is recorded of calls is for the operator to say"),
];
/// The kinds of message brokers.
const BROKERS: [&str; 5] = ["kafka", "sqs", "mqtt", "redis_streams", "imap"];
/// The most messages that a listener takes at once.
const LARGEST_BATCH: u32 = 1000;
/// From when on an agent counts as ill where nothing is said.
const CONSECUTIVE_FAILURES: u32 = 5;
const ERROR_RATE: f64 = 0.3;
const COOLDOWN: Duration = Duration::from_secs(600);

/// Blocks that change nothing.
pub(super) fn of_operators<'r, 'd>(reading: &Reading<'r, 'd>, fields: &mut Fields<'r, 'd>) {
    for (name, why) in OF_OPERATORS {
        if fields.map(name, Optional).is_some() {
            reading.no_effect(fields, name, why);
        }
    }
    let Some((entries, _)) = fields.map("evolution_api", Optional) else { return };
    // One that is switched off asks for nothing.
    let enabled = entries.iter().find(|entry| &*entry.key == "enabled").map(|entry| &entry.value);
    if enabled.is_none_or(is_on) {
        reading.not_yet(fields, "evolution_api");
    }
}

/// `auto_discover`: where the functions of agents are.
pub(super) fn code_folder<'r, 'd>(reading: &Reading<'r, 'd>, fields: &mut Fields<'r, 'd>) -> CodeFolder {
    let mut folder = CodeFolder::default();
    let Some(mut of_one) = reading.block(fields, "auto_discover") else { return folder };
    if let Some(directory) = of_one.text("directory", Optional)
        && let Some(entry) = of_one.entry("directory", Optional)
    {
        match package(&directory) {
            Some(package) => folder.package = package,
            None => {
                let why = ": functions are looked for below the configuration, in folders whose names can be imported";
                reading.later_because(&of_one, entry, why);
            }
        }
    }
    if let Some(pattern) = of_one.text("pattern", Optional)
        && let Some(entry) = of_one.entry("pattern", Optional)
    {
        match names(&pattern) {
            Some(names) => folder.names = names,
            None => reading.later_because(&of_one, entry, ": a pattern has one `*` and ends with `.py`"),
        }
    }
    if of_one.flag("recursive", Optional).is_some_and(|flag| flag.value) {
        reading.no_effect(&mut of_one, "recursive", "functions are looked for in the folder itself");
    }
    of_one.finish(|_| None);
    folder
}

/// A folder below that of the configuration as a package; none if it is no such folder.
fn package(directory: &str) -> Option<String> {
    if directory.starts_with('/') {
        return None;
    }
    let parts: Vec<&str> = directory.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    let is_name = |part: &&str| {
        part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    parts.iter().all(is_name).then(|| parts.join("."))
}

/// How the names of modules begin and end that a pattern of files names.
fn names(pattern: &str) -> Option<(String, String)> {
    let (begin, end) = pattern.strip_suffix(".py")?.split_once('*')?;
    let is_plain = |part: &str| !part.contains(['*', '?', '[', '/']);
    (is_plain(begin) && is_plain(end)).then(|| (begin.to_owned(), end.to_owned()))
}

/// `self_healing`: from when on an agent counts as ill. Nothing changes a mesh by itself, so what would act is refused.
pub(super) fn healing<'r, 'd>(reading: &Reading<'r, 'd>, fields: &mut Fields<'r, 'd>) -> Option<Healing> {
    let mut of_one = reading.block(fields, "self_healing")?;
    let enabled = of_one.flag("enabled", Optional).is_none_or(|flag| flag.value);
    let acts = of_one.flag("actions_enabled", Optional).is_some_and(|flag| flag.value);
    if enabled
        && acts
        && let Some(entry) = of_one.entry("actions_enabled", Optional)
    {
        let why = ": hotcell tells of agents that are ill, and replaces none by itself";
        reading.later_because(&of_one, entry, why);
    }
    let consecutive_failures = of_one.between("consecutive_failures", 1, u32::MAX).unwrap_or(CONSECUTIVE_FAILURES);
    let error_rate = of_one.within("error_rate", 0.0..=1.0).unwrap_or(ERROR_RATE);
    let cooldown = reading.seconds(&mut of_one, "cooldown_s", LONGEST).unwrap_or(COOLDOWN);
    reading.positive(&mut of_one, "latency_factor");
    of_one.within("min_quality_score", 0.0..=1.0);
    reading.positive(&mut of_one, "monitoring_interval_s");
    for name in ["max_actions_per_hour", "max_backups_per_agent"] {
        of_one.between(name, 0, u32::MAX);
        reading.no_effect(&mut of_one, name, "nothing acts by itself");
    }
    for name in ["latency_factor", "min_quality_score"] {
        reading.no_effect(&mut of_one, name, "failures are watched, and nothing else");
    }
    reading.no_effect(&mut of_one, "monitoring_interval_s", "each run of an agent is looked at when it is over");
    of_one.finish(|_| None);
    enabled.then_some(Healing { consecutive_failures, error_rate, cooldown })
}

/// `brokers`: their names. What listens to them is refused where it says so.
pub(super) fn brokers<'r, 'd>(reading: &Reading<'r, 'd>, fields: &mut Fields<'r, 'd>) -> Vec<Key> {
    let Some((entries, _)) = fields.map("brokers", Optional) else { return Vec::new() };
    reading.no_effect(fields, "brokers", "hotcell is not a client of message brokers");
    for entry in entries {
        let owner = Owner { what: format!("the broker `{}`", entry.key), node: None, place: entry.value.place };
        let Some(mut of_one) = reading.reader.fields(&entry.value, owner) else { continue };
        // What else it says is for whoever connects to it.
        if of_one.entry("type", Required).is_some() {
            of_one.word("type", &BROKERS);
        }
    }
    entries.iter().map(|entry| entry.key.clone()).collect()
}

/// `listen_events` of an agent.
pub(super) fn listeners<'r, 'd>(reading: &Reading<'r, 'd>, fields: &mut Fields<'r, 'd>) {
    let Some(items) = fields.list("listen_events", Optional) else { return };
    for item in items {
        let what = "an entry of `listen_events`".to_owned();
        let Some(mut of_one) = reading.fields_of(fields, item, what) else { continue };
        if let Some(broker) = of_one.text("broker", Required)
            && !reading.brokers.contains(&broker.value)
        {
            let message = format!("`listen_events` names the broker `{}`, which does not exist", &*broker);
            let error = of_one.error(message, &broker.span);
            let help = did_you_mean(&broker, &reading.brokers);
            reading.reader.report(error.help(help.unwrap_or_else(|| "declare it in `brokers` of the mesh".to_owned())));
        }
        of_one.between("batch_size", 1, LARGEST_BATCH);
        of_one.between("qos", 0, 2);
    }
    if let Some(entry) = fields.entry("listen_events", Optional)
        && matches!(&entry.value.kind, Kind::List(items) if !items.is_empty())
    {
        let why = ": hotcell is not a client of message brokers; whatever reads them can post each message to \
                   `/webhook/ENTRY_POINT`";
        reading.later_because(fields, entry, why);
    }
}

#[cfg(test)]
mod tests {
    use super::{names, package};

    #[test]
    fn folders_below_the_configuration_are_packages() {
        for (directory, found) in [
            ("agency", Some("agency")),
            ("./src/agents/", Some("src.agents")),
            (".", Some("")),
            ("../agency", None),
            ("/app/agency", None),
            ("my-agents", None),
            ("a.b", None),
        ] {
            assert_eq!(package(directory).as_deref(), found, "{directory}");
        }
    }

    #[test]
    fn a_pattern_says_how_names_begin_and_end() {
        for (pattern, found) in [
            ("*.py", Some(("", ""))),
            ("*_agent.py", Some(("", "_agent"))),
            ("agent_*.py", Some(("agent_", ""))),
            ("**/*.py", None),
            ("*.txt", None),
            ("agent.py", None),
        ] {
            let names = names(pattern);
            assert_eq!(names.as_ref().map(|(begin, end)| (begin.as_str(), end.as_str())), found, "{pattern}");
        }
    }
}
