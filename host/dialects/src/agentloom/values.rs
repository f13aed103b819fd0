//! What values of fields have to be, wherever they stand: numbers, times, expressions, and fields that are refused.

use std::time::Duration;

use hotcell_graph::closest;
use hotcell_graph::diagnostic::Diagnostic;
use hotcell_graph::python::PythonExpression;

use crate::document::Need::Optional;
use crate::document::{Fields, Kind, Node, Owner, Reader, SourceText};

/// How often a step may be tried again.
pub(super) const MOST_RETRIES: u32 = 1000;
/// The longest time that is meant: more than anybody waits.
const LONGEST: f64 = 1e9;

/// Reports a field that the language has and hotcell does not.
pub(super) fn refuse(fields: &mut Fields<'_, '_>, name: &'static str, help: &str) {
    let Some(entry) = fields.entry(name, Optional) else { return };
    let reader = fields.reader();
    let message = format!("`{name}` of {} is not supported", fields.owner().what);
    reader.report(fields.error(message, &reader.span(entry.key_place)).help(help));
}

/// A number that is not negative.
pub(super) fn number(fields: &mut Fields<'_, '_>, name: &'static str) -> Option<f64> {
    let number = fields.number(name, Optional)?;
    if number.value >= 0.0 && number.value <= LONGEST {
        return Some(number.value);
    }
    let error = fields.error(format!("`{name}` must be from 0 to {LONGEST}, not {}", number.value), &number.span);
    fields.reader().report(error);
    None
}

/// An amount of money.
pub(super) fn amount(fields: &mut Fields<'_, '_>, name: &'static str) -> Option<f64> {
    number(fields, name)
}

/// A time in seconds, more than nothing.
pub(super) fn seconds(fields: &mut Fields<'_, '_>, name: &'static str) -> Option<Duration> {
    time(fields, name, 1.0)
}

/// A time in milliseconds, more than nothing.
pub(super) fn milliseconds(fields: &mut Fields<'_, '_>, name: &'static str) -> Option<Duration> {
    time(fields, name, 1e-3)
}

fn time(fields: &mut Fields<'_, '_>, name: &'static str, unit: f64) -> Option<Duration> {
    let given = fields.number(name, Optional)?;
    let seconds = given.value * unit;
    if seconds > 0.0 && seconds <= LONGEST {
        return Some(Duration::from_secs_f64(seconds));
    }
    let error = fields
        .error(format!("`{name}` must be more than 0, and no longer than years, not {}", given.value), &given.span);
    fields.reader().report(error);
    None
}

/// Whether a value is a text.
pub(super) fn is_text(node: &Node) -> bool {
    matches!(node.kind, Kind::Text(_))
}

/// An expression; what is wrong is reported at its place.
pub(super) fn expression(
    reader: &Reader<'_>,
    what: &str,
    text: &SourceText,
    names: &[(&str, &str)],
    owner: &Owner,
) -> Option<PythonExpression> {
    match PythonExpression::parse(text, names) {
        Ok(expression) => Some(expression),
        Err(problem) => {
            let mut error = Diagnostic::error(format!("the {what} `{}`: {problem}", text.trim()));
            error.node = owner.node.as_deref().map(str::to_owned);
            reader.report(error.at(&text.span_of(problem.range)));
            None
        }
    }
}

/// The nearest of some names, as help.
pub(super) fn did_you_mean<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Option<String> {
    closest(name, known).map(|near| format!("did you mean `{near}`?"))
}
