//! What is told of a run: that it asks something, and how it ended.

use hotcell_runtime::{
    Entry, Fact, JournalError, NumberedEntry, RunId, RunRecord, RunStatus, RunSummary, open_questions,
};
use serde_json::{Value, json};

use super::store::Watched;
use crate::problem::Problem;
use crate::state::Server;
use crate::view::{InboxItem, RunView, time};

/// Entries that are read at a time.
const PAGE: usize = 500;

/// Keeps what is to be told of a run since it was told of last.
pub(super) async fn tell(server: &Server, run: &RunId) -> Result<(), Problem> {
    let store = server.store();
    let watched = store.watched(run.as_str())?;
    if watched.is_empty() {
        return Ok(());
    }
    match server.runs().store().find(run.as_str()).await {
        Ok(record) if record.id == *run => {}
        // It is about to begin, or was not begun.
        Ok(_) | Err(JournalError::NoSuchRun(_)) => return Ok(()),
        Err(error) => return Err(error.into()),
    }
    for Watched { url, entry } in watched {
        let (bodies, last, status) = told(server, run, entry).await?;
        // One that goes on after it failed has an end that was told, and another one.
        let is_over = status.is_final() && bodies.iter().any(|body| is_end(body));
        if !store.to_post(run.as_str(), &url, &bodies, (last, is_over), server.clock().now())? {
            tracing::error!(target: "hotcell::serve", %run, "too many posts wait to be taken; what happens is not told any more");
        }
    }
    Ok(())
}

/// What is told of the entries after that one, the number of the last of them, and how the run stands.
async fn told(server: &Server, run: &RunId, after: u64) -> Result<(Vec<String>, u64, RunStatus), Problem> {
    let journal = server.runs().store();
    let mut entries: Vec<NumberedEntry> = Vec::new();
    let mut last = after;
    loop {
        let page = journal.entries(run, last, PAGE).await?.entries;
        let Some(end) = page.last() else { break };
        last = end.number;
        entries.extend(page.into_iter().filter(|entry| is_told(&entry.entry.fact)));
    }
    // After its entries: a run with an end has ended then.
    let record = &journal.find(run.as_str()).await?;
    let asks = entries.iter().any(|entry| matches!(entry.entry.fact, Fact::Asked { .. }));
    let open = if asks { open_questions(&journal.history(run).await?.whole()?) } else { Vec::new() };
    let mut bodies = Vec::new();
    for NumberedEntry { at, entry: Entry { place, fact }, .. } in entries {
        let (kind, data) = match fact {
            Fact::Asked { number, .. } => {
                let id = format!("{place}:{number}");
                // What was answered meanwhile, and what another system is to answer, is no question to anybody.
                let Some(open) = open.iter().find(|open| open.question.id == id) else { continue };
                if open.question.callback().is_some() {
                    continue;
                }
                let attachments = server.runs().attachments().shown_in(&open.question)?;
                let (agents, groups) = (server.agents(), server.runs().groups());
                let item = InboxItem::of(&summary(record), open.clone(), attachments, agents, groups);
                ("question.opened", json!(item))
            }
            _ => ("run.ended", json!(RunView::of_record(record, server.agents()))),
        };
        bodies.push(json!({ "type": kind, "timestamp": time(at), "data": data }).to_string());
    }
    // A cancellation that nobody received yet is no entry, and ends the run all the same.
    if record.status == RunStatus::Cancelled && !bodies.iter().any(|body| is_end(body)) {
        let data = json!(RunView::of_record(record, server.agents()));
        bodies.push(json!({ "type": "run.ended", "timestamp": time(record.updated), "data": data }).to_string());
    }
    Ok((bodies, last, record.status))
}

fn is_end(body: &str) -> bool {
    serde_json::from_str::<Value>(body).is_ok_and(|body| body["type"] == "run.ended")
}

fn is_told(fact: &Fact) -> bool {
    matches!(fact, Fact::Asked { .. } | Fact::Ended { .. } | Fact::Stopped { .. } | Fact::Cancelled)
}

fn summary(record: &RunRecord) -> RunSummary {
    RunSummary {
        id: record.id.clone(),
        graph: record.header.graph.clone(),
        source: record.header.source.clone(),
        thread: record.thread().map(str::to_owned),
        status: record.status,
        created: record.created,
        updated: record.updated,
        outcome: record.outcome.clone(),
    }
}
