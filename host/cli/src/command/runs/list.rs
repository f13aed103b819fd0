//! `hotcell runs list`

use std::time::SystemTime;

use serde_json::json;

use super::{Context, HostArguments, print, standing};
use crate::events;
use crate::exit::{Exit, Failure};
use crate::narration::short;
use crate::screen::STRONG;
use crate::table::{Align, Table};
use crate::untrusted::one_line;
use crate::when::{ago, exact};

/// How much of a result is shown, in characters.
const SHOWN: usize = 60;

pub(super) fn perform(context: &Context, as_json: bool) -> Result<Exit, Failure> {
    let host = context.host(HostArguments::default())?;
    let journal = host.journal();
    let runs = journal.list()?;
    if as_json {
        for record in &runs {
            events::line(&json!({
                "run": record.id,
                "graph": record.header.graph,
                "source": record.header.source,
                "status": standing(&**journal, record),
                "created": exact(record.created),
                "updated": exact(record.updated),
                "outcome": record.outcome,
            }))?;
        }
        return Ok(Exit::Done);
    }
    if runs.is_empty() {
        context.screen.line("there are no runs yet; `hotcell run PATH` makes one");
        return Ok(Exit::Done);
    }
    let now = SystemTime::now();
    let mut table = Table::new([
        ("RUN", Align::Left),
        ("STATUS", Align::Left),
        ("GRAPH", Align::Left),
        ("STARTED", Align::Left),
        ("LASTED", Align::Right),
        ("OUTCOME", Align::Left),
    ]);
    for record in &runs {
        table.row([
            record.id.to_string(),
            standing(&**journal, record).to_owned(),
            one_line(&record.header.graph, SHOWN),
            ago(record.created, now),
            short(record.updated.duration_since(record.created).unwrap_or_default()),
            record.outcome.as_deref().map_or(String::new(), first_line),
        ]);
    }
    let colour = context.colours_output();
    let heading = |text: &str| if colour { format!("{STRONG}{text}{STRONG:#}") } else { text.to_owned() };
    print(&table.lines(0, heading).join("\n"))?;
    Ok(Exit::Done)
}

fn first_line(outcome: &str) -> String {
    let line = outcome.trim().lines().next().unwrap_or_default();
    match line.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", one_line(&line[..end], SHOWN)),
        None => one_line(line, SHOWN),
    }
}
