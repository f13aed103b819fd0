//! From the tree of a file to a [`Workflow`].

use std::collections::HashMap;
use std::sync::Arc;

use hotcell_graph::Key;
use hotcell_graph::diagnostic::{Diagnostic, Span};
use hotcell_graph::ir::Redacted;

use super::files::Files;
use super::models;
use super::read_step;
use super::recording;
use super::schema::{Config, Workflow};
use super::values::{MOST_RETRIES, amount, number, refuse, seconds};
use crate::document::Need::{Optional, Required};
use crate::document::{Fields, Kind, Node, Owner, Reader};

/// How many steps may run at once.
const MOST_AT_ONCE: u32 = 1024;
/// Reads a workflow; what is wrong is reported. None if it is so much that nothing is left.
pub(super) fn workflow<'d>(reader: &Reader<'d>, node: &'d Node, files: &Files<'_>) -> Option<Workflow> {
    let owner = Owner { what: "a workflow".into(), node: None, place: node.place };
    let mut fields = reader.fields(node, owner)?;
    let name = fields.text("name", Required);
    version(&mut fields);
    let description = fields.text("description", Optional).map(|text| text.to_string());
    let config = config(&mut fields, files);
    let state = fields.map("state", Optional).map_or_else(Vec::new, |(entries, _)| {
        entries.iter().map(|entry| (Key::clone(&entry.key), entry.value.to_value())).collect()
    });
    let redacted = redacted(&mut fields);
    let steps = fields.list("steps", Required).unwrap_or_default();
    fields.finish(|_| None);

    let mut seen: HashMap<Arc<str>, Span> = HashMap::new();
    let mut found = Vec::with_capacity(steps.len());
    for item in steps {
        let Some(step) = read_step::step(reader, item, &config, files) else { continue };
        match seen.get(&step.id.value) {
            Some(first) => {
                let message = format!("two steps have the id `{}`", &*step.id);
                let error = Diagnostic::error(message).at(&step.id.span);
                reader.report(error.related(first, "first here").help("give one of them another id"));
            }
            None => {
                seen.insert(Arc::clone(&step.id.value), step.id.span.clone());
                found.push(step);
            }
        }
    }
    Some(Workflow { name: name?, description, config, state, redacted, steps: found })
}

/// The version of the file, which has no effect.
fn version(fields: &mut Fields<'_, '_>) {
    let Some(node) = fields.node("version", Optional) else { return };
    if !matches!(node.kind, Kind::Text(_) | Kind::Number(_)) {
        fields.reader().wrong_type(node, "`version`", "a text", fields.owner());
    }
}

/// The names under `state_schema` whose values are redacted.
fn redacted(fields: &mut Fields<'_, '_>) -> Redacted {
    let reader = fields.reader();
    let mut redacted = Redacted::default();
    let Some((entries, _)) = fields.map("state_schema", Optional) else { return redacted };
    for entry in entries {
        let what = format!("`{}` of `state_schema`", entry.key);
        let owner = Owner { what, node: None, place: entry.value.place };
        let Some(mut said) = reader.fields(&entry.value, owner) else { continue };
        if said.flag("redact", Optional).is_some_and(|redact| redact.value)
            && let Err(cause) = redacted.add(&entry.key)
        {
            let error =
                said.error(format!("`{}` is not a valid name: {cause}", entry.key), &reader.span(entry.key_place));
            reader.report(error.help("write the name of an entry of the state, with `*` and `?` for what may differ"));
        }
        said.finish(|_| None);
    }
    redacted
}

fn config(fields: &mut Fields<'_, '_>, files: &Files<'_>) -> Config {
    let reader = fields.reader();
    let mut config = Config::default();
    let Some(node) = fields.node("config", Optional) else { return config };
    let owner = Owner { what: "`config`".into(), node: None, place: node.place };
    let Some(mut fields) = reader.fields(node, owner) else { return config };
    let provider = fields.text("provider", Optional);
    config.provider = provider.as_ref().and_then(|name| models::provider(&fields, name));
    config.model = fields.text("model", Optional).map(|text| text.value);
    config.budget_usd = amount(&mut fields, "budget_usd");
    config.timeout = seconds(&mut fields, "timeout");
    config.max_retries = fields.between("max_retries", 0, MOST_RETRIES);
    config.concurrency = fields.between("max_concurrent_steps", 1, MOST_AT_ONCE);
    config.goes_on = fields.word("on_step_failure", &["skip_downstream", "continue"]) == Some("continue");
    config.strict_outputs = fields.flag("strict_outputs", Optional).is_some_and(|flag| flag.value);
    let responses = fields.text("responses_file", Optional);
    let latency = fields.word("latency_model", &["constant", "normal", "replay"]);
    let latency_ms = number(&mut fields, "latency_ms");
    // What is streamed is for whoever watches to say, and what prompts are kept for is not done here.
    fields.flag("stream", Optional);
    if fields.flag("capture_prompts", Optional).is_some_and(|flag| flag.value) {
        refuse(&mut fields, "capture_prompts", "record the requests with `hotcell run --record FILE`");
    }
    refuse(&mut fields, "sandbox", "tools run in cells here: what they may do is granted in `hotcell.toml`");
    match (config.provider == Some(models::MOCK), responses) {
        (true, Some(path)) => {
            config.recording = recording::read(&fields, &path, latency, latency_ms.unwrap_or(0.0), files);
        }
        (true, None) => {
            let span = provider.map_or_else(Span::none, |name| name.span.clone());
            let error =
                fields.error("the provider `mock` takes its replies from `responses_file`, which is missing", &span);
            reader.report(error.help("name a file with replies by the ids of steps: `responses_file: responses.json`"));
        }
        (false, Some(path)) => {
            let message = "`responses_file` is read by the provider `mock` alone";
            let warning = Diagnostic::warning(message).at(&path.span);
            reader.report(warning.help("write `provider: mock`, or take it out"));
        }
        (false, None) => {}
    }
    fields.finish(|_| None);
    config
}
