//! Fields that both a file and its nodes have.

use std::sync::Arc;
use std::time::Duration;

use hotcell_graph::closest;
use hotcell_graph::diagnostic::Diagnostic;
use hotcell_graph::ir::ModelReasoning;

use super::schema::Model;
use crate::document::Need::Optional;
use crate::document::{Entry, Fields, Reader, Spanned};

/// The fields that choose a model, of the file or of an `llm` node.
pub(super) fn model(fields: &mut Fields<'_, '_>) -> Model {
    Model {
        name: fields.text("model", Optional),
        temperature: fields.number("temperature", Optional).map(|number| number.value),
        top_p: fields.number("top_p", Optional).map(|number| number.value),
        reasoning: reasoning(fields),
    }
}

/// How much a model thinks, by the words of the language. Models that count tokens are given so many.
fn reasoning(fields: &mut Fields<'_, '_>) -> Option<ModelReasoning> {
    const EFFORTS: [(&str, Option<u32>); 8] = [
        ("none", None),
        ("off", None),
        ("minimal", Some(4096)),
        ("low", Some(4096)),
        ("medium", Some(16_384)),
        ("high", Some(32_768)),
        ("xhigh", Some(32_768)),
        ("max", Some(32_768)),
    ];
    let effort = fields.text("reasoning_effort", Optional)?;
    if let Some((_, budget)) = EFFORTS.iter().find(|(name, _)| *name == &*effort) {
        return budget.map(|budget| ModelReasoning { budget: Some(budget) });
    }
    let help = match closest(&effort, EFFORTS.map(|(name, _)| name)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "write `low`, `medium`, `high`, or `none`".to_owned(),
    };
    let error = fields.error(format!("`reasoning_effort` cannot be `{}`", &*effort), &effort.span);
    fields.reader().report(error.help(help));
    None
}

/// A whole number that must not be 0; `why` says what would happen otherwise.
pub(super) fn at_least_one(fields: &mut Fields<'_, '_>, name: &'static str, why: &str) -> Option<u32> {
    let count = fields.count(name, Optional)?;
    if count.value == 0 {
        let error = fields
            .error(format!("`{name}` must be at least 1: with `{name}: 0` {why}"), &count.span)
            .help(format!("use 1 or more, or leave `{name}` out for the default"));
        fields.reader().report(error);
        return None;
    }
    Some(count.value)
}

/// Seconds, with a fraction if need be.
pub(super) fn duration(fields: &mut Fields<'_, '_>, name: &'static str) -> Option<Duration> {
    let seconds = fields.number(name, Optional)?;
    // A century is longer than any run and fits every clock.
    const LONGEST: f64 = 100.0 * 366.0 * 86_400.0;
    if !(0.0..=LONGEST).contains(&seconds.value) {
        let error = fields
            .error(format!("`{name}` must be a number of seconds from 0 to {LONGEST}"), &seconds.span)
            .help(format!("leave `{name}` out for the default"));
        fields.reader().report(error);
        return None;
    }
    if seconds.value == 0.0 {
        let mut warning = Diagnostic::warning(format!("`{name}: 0` leaves no time at all")).at(&seconds.span);
        warning.node = fields.owner().node.as_deref().map(str::to_owned);
        fields.reader().report(warning.help("use a number of seconds above 0"));
    }
    Some(Duration::from_secs_f64(seconds.value))
}

/// The key of an entry with its place.
pub(super) fn key(reader: &Reader<'_>, entry: &Entry) -> Spanned<Arc<str>> {
    Spanned { value: Arc::clone(&entry.key), span: reader.span(entry.key_place) }
}
