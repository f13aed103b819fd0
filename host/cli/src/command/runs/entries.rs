//! `hotcell runs show --entries`: every entry of a run, by its number.

use hotcell_runtime::{Entry, EntryPath, Fact, NumberedEntry};

use super::{Context, HostArguments, print, wait};
use crate::exit::{Exit, Failure};
use crate::screen::STRONG;
use crate::table::{Align, Table};
use crate::untrusted::one_line;

/// Entries that are read at a time.
const PAGE: usize = 1000;
/// Characters that are shown of a text.
const SHOWN: usize = 100;

pub(super) fn perform(context: &Context, run: &str) -> Result<Exit, Failure> {
    let host = context.host(HostArguments::default())?;
    let record = wait(host.journal().find(run))?;
    let (mut after, mut entries) = (0, Vec::new());
    loop {
        let page = wait(host.journal().entries(&record.id, after, PAGE))?.entries;
        let Some(last) = page.last() else { break };
        after = last.number;
        entries.extend(page.into_iter().map(|NumberedEntry { number, entry, .. }| (number, entry)));
    }
    present(context, entries.into_iter())?;
    Ok(Exit::Done)
}

/// Lists entries with their numbers.
pub(super) fn present(context: &Context, entries: impl Iterator<Item = (u64, Entry)>) -> Result<(), Failure> {
    let mut table =
        Table::new([("ENTRY", Align::Right), ("PLACE", Align::Left), ("KIND", Align::Left), ("WHAT", Align::Left)]);
    for (number, entry) in entries {
        let (kind, what) = told(&entry.fact);
        table.row([number.to_string(), place(&entry.place), kind.to_owned(), one_line(&what, SHOWN)]);
    }
    let paint = |text: &str| match context.colours_output() {
        true => format!("{STRONG}{text}{STRONG:#}"),
        false => text.to_owned(),
    };
    print(&table.lines(0, paint).join("\n"))
}

fn place(place: &EntryPath) -> String {
    match place.as_str() {
        "" => "run".to_owned(),
        place => place.to_owned(),
    }
}

/// The kind of an entry and the most important of what it says.
fn told(fact: &Fact) -> (&'static str, String) {
    match fact {
        Fact::Started(header) => ("started", header.graph.clone()),
        Fact::Forked => ("forked", String::new()),
        Fact::Withheld { effect } => ("withheld", effect.clone()),
        Fact::Resumed => ("resumed", String::new()),
        Fact::Retried => ("retried", String::new()),
        Fact::Revised { digest } => ("revised", digest.chars().take(12).collect()),
        Fact::Completed(completed) => {
            let next = completed.next.as_deref().map(|next| next.join(", ")).unwrap_or_default();
            let arrow = if next.is_empty() { String::new() } else { format!(" -> {next}") };
            ("completed", format!("{}{arrow}", completed.node))
        }
        Fact::Effect { kind, subject, .. } => match kind.as_str() {
            "callback" => ("effect", kind.clone()),
            _ => ("effect", format!("{kind} {}", subject.split(' ').next().unwrap_or_default())),
        },
        Fact::Failed { error, .. } => ("failed", error.clone()),
        Fact::Attempt { error, .. } => ("attempt", error.clone()),
        Fact::TimerSet { node, .. } => ("timer set", node.clone()),
        Fact::TimerFired { node } => ("timer fired", node.clone()),
        Fact::Asked { question, .. } => ("asked", question.text.clone()),
        Fact::Answered { text, .. } => ("answered", text.clone()),
        Fact::Expired { .. } => ("expired", String::new()),
        Fact::Waiting => ("waiting", String::new()),
        Fact::PauseAsked => ("pause asked", String::new()),
        Fact::Paused => ("paused", String::new()),
        Fact::Cancelled => ("cancelled", String::new()),
        Fact::Stopped { reason } => ("stopped", reason.clone()),
        Fact::Ended { result: Ok(output), .. } => ("ended", output.clone()),
        Fact::Ended { result: Err(error), .. } => ("ended", error.clone()),
    }
}
