//! Threads as runs that begin need them: found, made, and bound to an agent.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use hotcell_runtime::{Agent, RunInput, RunQuery, RunSummary};

use crate::live::Begun;
use crate::problem::{Problem, shown};
use crate::runs::IfBusy;
use crate::state::Server;
use crate::thread_store::Thread;
use crate::view::Object;

/// Characters of the id of a thread.
const LONGEST: usize = 128;

pub(super) fn check_id(id: &str) -> Result<(), Problem> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    // In an address these two are no names: clients and gateways take them and the name before them out.
    let is_name = !matches!(id, "." | "..");
    match !id.is_empty() && id.len() <= LONGEST && id.chars().all(is_plain) && is_name {
        true => Ok(()),
        false => Err(Problem::unprocessable(format!(
            "`{}` is not a valid thread id: it has to have 1 to {LONGEST} letters, digits, `-`, `_`, `.` and `:`, and cannot be `.` or `..`",
            shown(id)
        ))),
    }
}

pub(super) fn no_thread(id: &str) -> Problem {
    Problem::not_found(format!("there is no thread `{}`; `POST /threads` makes one", shown(id)))
        .kind("unknown-thread", "There is no such thread")
}

/// The thread of an id.
pub(super) fn find(server: &Server, id: &str) -> Result<Thread, Problem> {
    server.store().thread(id)?.ok_or_else(|| no_thread(id))
}

/// Has a thread belong to an agent, before a run of that is begun in it.
pub(super) fn bind(server: &Server, thread: &str, source: &str, makes_it: bool) -> Result<(), Problem> {
    if makes_it {
        check_id(thread)?;
        server.store().create_thread(thread, &Object::new())?;
    }
    match server.store().bind_thread(thread, source)? {
        None => Err(no_thread(thread)),
        Some(bound) if bound == source => Ok(()),
        Some(bound) => {
            let agent = server.agents().id_of(&bound).unwrap_or_else(|| "another one".to_owned());
            let detail =
                format!("the runs of thread `{thread}` are of the agent `{agent}`; use another thread for this one");
            Err(Problem::conflict(detail).kind("thread-of-other-agent", "The thread belongs to another agent"))
        }
    }
}

/// Begins a run, in its thread if it names one.
pub(super) async fn start(
    server: &Server,
    agent: &Arc<Agent>,
    given: RunInput,
    makes_it: bool,
    if_busy: IfBusy,
    listens: bool,
) -> Result<Begun, Problem> {
    let Some(thread) = given.thread.clone() else {
        return server.runs().start(agent, given, if_busy, listens).await;
    };
    let removed = || server.store().removed_threads().load(Ordering::SeqCst);
    let before = removed();
    bind(server, &thread, agent.source(), makes_it)?;
    let begun = server.runs().start(agent, given, if_busy, listens).await?;
    // Somebody may have removed the thread before the run began: it is there for the run that is there.
    if removed() != before && server.runs().is_there(&begun.run).await? {
        bind(server, &thread, agent.source(), true)?;
    }
    Ok(begun)
}

/// The last run of a thread.
pub(super) async fn last_run(server: &Server, thread: &Thread) -> Result<Option<RunSummary>, Problem> {
    let Some(source) = &thread.agent else { return Ok(None) };
    let query = RunQuery {
        thread: Some(thread.id.clone()),
        sources: Some(vec![source.clone()]),
        limit: 1,
        ..RunQuery::default()
    };
    Ok(server.runs().store().list(&query).await?.runs.pop())
}

#[cfg(test)]
mod tests {
    use super::check_id;

    #[test]
    fn an_id_is_one_segment_of_an_address_wherever_it_passes() {
        for id in ["a", "...", "a..b", "x:1", "2026-01-01", "search"] {
            assert!(check_id(id).is_ok(), "{id}");
        }
        let long = "a".repeat(129);
        for id in ["", ".", "..", "a/b", "a b", "a%2e", "ä", long.as_str()] {
            assert!(check_id(id).is_err(), "{id}");
        }
    }
}
