//! `hotcell runs list`

use std::time::{Duration, SystemTime};

use hotcell_runtime::{RunPage, RunQuery, RunStatus, RunSummary};
use serde_json::json;

use super::{Context, HostArguments, print, wait};
use crate::command::quoted;
use crate::events;
use crate::exit::{Exit, Failure};
use crate::narration::short;
use crate::screen::STRONG;
use crate::table::{Align, Table};
use crate::untrusted::one_line;
use crate::when::{ago, exact};

/// How much of a result is shown, in characters.
const SHOWN: usize = 60;

pub(super) fn perform(context: &Context, query: &RunQuery, as_json: bool) -> Result<Exit, Failure> {
    let host = context.host(HostArguments::default())?;
    let page = wait(host.journal().list(query))?;
    if page.runs.is_empty() && !as_json {
        let filtered = RunQuery { limit: query.limit, ..RunQuery::default() };
        let any = wait(host.journal().list(&RunQuery { limit: 1, ..filtered }))?;
        context.screen.line(match any.runs.is_empty() {
            true => "no runs yet; start one with `hotcell run PATH`",
            false => "no matching runs",
        });
        return Ok(Exit::Done);
    }
    present(context, &page, as_json)
}

/// Shows a page of runs.
pub(super) fn present(context: &Context, page: &RunPage, as_json: bool) -> Result<Exit, Failure> {
    if as_json {
        for record in &page.runs {
            events::line(&json!({
                "run": record.id,
                "graph": record.graph,
                "source": record.source,
                "thread": record.thread,
                "status": record.status,
                "created": exact(record.created),
                "updated": exact(record.updated),
                "outcome": record.outcome,
            }))?;
        }
        tell_next(context, page.next.as_deref());
        return Ok(Exit::Done);
    }
    let now = SystemTime::now();
    let mut table = Table::new([
        ("RUN", Align::Left),
        ("STATUS", Align::Left),
        ("GRAPH", Align::Left),
        ("STARTED", Align::Left),
        ("TIME", Align::Right),
        ("OUTCOME", Align::Left),
    ]);
    for record in &page.runs {
        table.row([
            record.id.to_string(),
            record.status.to_string(),
            one_line(&record.graph, SHOWN),
            ago(record.created, now),
            short(lasted(record, now)),
            record.outcome.as_deref().map_or(String::new(), first_line),
        ]);
    }
    table.fit_terminal();
    let colour = context.colours_output();
    let heading = |text: &str| if colour { format!("{STRONG}{text}{STRONG:#}") } else { text.to_owned() };
    print(&table.lines(0, heading).join("\n"))?;
    tell_next(context, page.next.as_deref());
    Ok(Exit::Done)
}

/// How long a run took, or has taken so far.
fn lasted(record: &RunSummary, now: SystemTime) -> Duration {
    let until = if record.status == RunStatus::Running { now } else { record.updated };
    until.duration_since(record.created).unwrap_or_default()
}

/// Says how to get the next page.
fn tell_next(context: &Context, next: Option<&str>) {
    if let Some(next) = next {
        context.screen.line(&format!("more runs: add `--after {}`", quoted(next)));
    }
}

fn first_line(outcome: &str) -> String {
    let line = outcome.trim().lines().next().unwrap_or_default();
    match line.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", one_line(&line[..end], SHOWN)),
        None => one_line(line, SHOWN),
    }
}
