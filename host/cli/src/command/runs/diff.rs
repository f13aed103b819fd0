//! `hotcell runs diff`: how two runs differ, by place.

use hotcell_runtime::{ComparedRun, PlaceDiff, RunDiff, Spent};
use serde_json::Value;

use super::{Context, HostArguments, print, wait};
use crate::events;
use crate::exit::{Exit, Failure};
use crate::narration::counted;
use crate::screen::STRONG;
use crate::table::{Align, Table};
use crate::untrusted::one_line;

/// Characters that are shown of a value.
const SHOWN: usize = 80;
/// Places that are listed.
const LISTED: usize = 50;

pub(super) fn perform(context: &Context, a: &str, b: &str, as_json: bool) -> Result<Exit, Failure> {
    let host = context.host(HostArguments::default())?;
    let (a, b) = (wait(host.journal().find(a))?, wait(host.journal().find(b))?);
    let compared = super::super::on_threads(host.compare(&a, &b))?;
    context.screen.worked();
    let diff = compared?;
    let exit = if diff.places.is_empty() && diff.state.is_empty() { Exit::Done } else { Exit::Failed };
    if as_json {
        let diff = serde_json::to_value(&diff).map_err(|error| Failure::failed(error.to_string()))?;
        events::line(&diff)?;
        return Ok(exit);
    }
    let colour = context.colours_output();
    let strong = |text: &str| if colour { format!("{STRONG}{text}{STRONG:#}") } else { text.to_owned() };
    let mut text = totals(&diff, &strong);
    match &diff.first {
        None => text.extend([String::new(), "the runs are the same at every place".to_owned()]),
        Some(first) => {
            text.extend([String::new(), format!("first difference: {}", place(first))]);
            text.push(format!("  a: {}", value(first.a.as_ref())));
            text.push(format!("  b: {}", value(first.b.as_ref())));
        }
    }
    text.extend(places(&diff, &strong));
    text.extend(state(&diff, &strong));
    print(&text.join("\n"))?;
    Ok(exit)
}

fn totals(diff: &RunDiff, strong: &dyn Fn(&str) -> String) -> Vec<String> {
    let mut table = Table::new([
        ("RUN", Align::Left),
        ("STATUS", Align::Left),
        ("ENTRIES", Align::Right),
        ("FUEL", Align::Right),
        ("TOKENS IN", Align::Right),
        ("TOKENS OUT", Align::Right),
        ("COST", Align::Right),
    ]);
    for ComparedRun { run_id, standing, entries, used, .. } in [&diff.a, &diff.b] {
        let Spent { fuel, input_tokens, output_tokens, cost_usd, .. } = used;
        table.row([
            run_id.clone(),
            (*standing).to_owned(),
            entries.to_string(),
            fuel.to_string(),
            input_tokens.to_string(),
            output_tokens.to_string(),
            format!("${cost_usd:.6}"),
        ]);
    }
    table.lines(0, strong)
}

fn places(diff: &RunDiff, strong: &dyn Fn(&str) -> String) -> Vec<String> {
    if diff.places.is_empty() {
        return Vec::new();
    }
    let mut table = Table::new([
        ("PLACE", Align::Left),
        ("NODE", Align::Left),
        ("WHAT", Align::Left),
        ("A", Align::Left),
        ("B", Align::Left),
    ]);
    for found in diff.places.iter().take(LISTED) {
        let PlaceDiff { place, what, node, a, b } = found;
        let place = if place.is_empty() { "run".to_owned() } else { place.clone() };
        table.row([place, node.clone().unwrap_or_default(), what.clone(), value(a.as_ref()), value(b.as_ref())]);
    }
    table.fit(140);
    let mut text = vec![String::new()];
    text.extend(table.lines(0, strong));
    let left = diff.places.len().saturating_sub(LISTED);
    if left > 0 || diff.more {
        let more = if diff.more { "more than " } else { "" };
        text.push(format!("… and {more}{}; `--json` lists them", counted(left as u64, "further place")));
    }
    text
}

fn state(diff: &RunDiff, strong: &dyn Fn(&str) -> String) -> Vec<String> {
    if diff.state.is_empty() {
        return Vec::new();
    }
    let mut table = Table::new([("STATE", Align::Left), ("A", Align::Left), ("B", Align::Left)]);
    for differs in diff.state.iter().take(LISTED) {
        table.row([differs.key.clone(), value(differs.a.as_ref()), value(differs.b.as_ref())]);
    }
    table.fit(140);
    [String::new()].into_iter().chain(table.lines(0, strong)).collect()
}

fn place(diff: &PlaceDiff) -> String {
    let place = if diff.place.is_empty() { "the run" } else { &diff.place };
    match &diff.node {
        Some(node) => format!("{} at {place} (`{}`)", diff.what, one_line(node, SHOWN)),
        None => format!("{} at {place}", diff.what),
    }
}

fn value(value: Option<&Value>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| one_line(&value.to_string(), SHOWN))
}
