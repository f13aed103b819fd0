//! What calls that were executed again came to, in words and as JSON lines.

use hotcell_runtime::{Again, CallReexecuted, RunId, Tally, call_json, tally_json};
use serde_json::json;

use super::{Context, print};
use crate::events;
use crate::exit::{Exit, Failure};
use crate::narration::counted;
use crate::screen::{ERROR, WARNING};
use crate::untrusted::one_line;

/// Bytes that are shown of what a guest or a file says.
const SHOWN: usize = 500;

/// Shows calls that were executed again.
pub(super) struct Shown<'a> {
    context: &'a Context,
    as_json: bool,
    /// Whether another use of fuel counts as a difference
    fuel_counts: bool,
    tally: Tally,
    /// What could not be written
    failure: Option<Failure>,
}

impl<'a> Shown<'a> {
    pub(super) fn new(context: &'a Context, as_json: bool, fuel_counts: bool) -> Self {
        Shown { context, as_json, fuel_counts, tally: Tally::default(), failure: None }
    }

    /// Shows one call, unless it did the same and nothing is to be said of that.
    pub(super) fn call(&mut self, run: &RunId, call: &CallReexecuted) {
        let again = match &call.again {
            Again::Different { output: None, fuel: (_, fuel) } if !self.fuel_counts => {
                self.tally.add(&call.again);
                (self.tally.different, self.tally.same) = (self.tally.different - 1, self.tally.same + 1);
                Again::Same { fuel: *fuel }
            }
            again => {
                self.tally.add(again);
                again.clone()
            }
        };
        let written = match self.as_json {
            true => events::line(&events::with(json!({ "event": "call" }), call_json(run, call))),
            false => self.in_words(call, &again).map_or(Ok(()), |line| print(&line)),
        };
        if let Err(failure) = written {
            self.failure.get_or_insert(failure);
        }
    }

    fn in_words(&self, call: &CallReexecuted, again: &Again) -> Option<String> {
        let (style, word, text) = match again {
            Again::Same { .. } => return None,
            Again::Different { output, fuel } => (ERROR, "different", difference(output.as_ref(), *fuel)),
            Again::Wants(wanted) => {
                (ERROR, "asks more", format!("it asks {wanted}, which the recording does not hold"))
            }
            Again::Left(gap) => (WARNING, "left out", format!("it cannot be executed again: {gap}")),
            Again::Unusable(reason) => (ERROR, "unusable", reason.to_string()),
        };
        let colours = self.context.colours_output();
        let word = if colours { format!("{style}{word:<9}{style:#}") } else { format!("{word:<9}") };
        Some(format!("{word}  {}: {}", who(call), one_line(&text, SHOWN)))
    }

    /// Says what all calls came to. The exit code is 0 if every call that can be executed again did the same, and there was one.
    pub(super) fn end(self) -> Result<Exit, Failure> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        let tally = self.tally;
        let failed = tally.different + tally.wants + tally.unusable > 0 || tally.same == 0;
        if self.as_json {
            events::line(&events::with(json!({ "event": "summary" }), tally_json(&tally)))?;
        } else {
            let parts = [
                (tally.same, "same"),
                (tally.different, "different"),
                (tally.wants, "asking for more than was recorded"),
                (tally.left, "not re-executable"),
                (tally.unusable, "unusable"),
            ];
            let parts = parts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"));
            let parts: Vec<String> = parts.collect();
            print(&format!("{}: {}{}", counted(tally.calls(), "call"), parts.join(", "), fuel_in_all(&tally)))?;
        }
        Ok(if failed { Exit::Failed } else { Exit::Done })
    }
}

fn who(call: &CallReexecuted) -> String {
    let place = call.place.as_str();
    let place = if place.is_empty() { "run" } else { place };
    let called = call.called.as_deref().unwrap_or("call");
    // A script is called by its own name.
    match called.contains(&format!("`{}`", call.name)) {
        true => one_line(&format!("{place} {called}"), SHOWN),
        false => one_line(&format!("{place} {called} of `{}`", call.name), SHOWN),
    }
}

/// What is different, in words.
fn difference(
    output: Option<&hotcell_runtime::Difference>,
    (before, after): (hotcell_budget::Fuel, hotcell_budget::Fuel),
) -> String {
    let mut text = Vec::new();
    if let Some(output) = output {
        let (at, before, after) = (output.at, &output.before, &output.after);
        text.push(format!("the output differs from byte {at} on: recorded `{before}`, now `{after}`"));
    }
    if before != after {
        text.push(format!("{} fuel was recorded, {} is used now", before.0, after.0));
    }
    text.join("; ")
}

/// How the fuel of all calls changed.
fn fuel_in_all(tally: &Tally) -> String {
    let (before, after) = (tally.fuel_before, tally.fuel_after);
    if before == 0 || before == after {
        return String::new();
    }
    let percent = (after as f64 - before as f64) / before as f64 * 100.0;
    format!("; fuel {before} before, {after} now ({percent:+.1} %)")
}
