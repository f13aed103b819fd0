//! How many calls of agents by others a session has had since something came in from outside: an agent that is run again by hand
//! counts as one more.

use hotcell_graph::Value as GraphValue;
use hotcell_runtime::leafmesh::state::{CALLS_BEFORE, START};
use hotcell_runtime::{Entry, Fact, JournalError, RunRecord};
use serde_json::Value;

use super::Mesh;
use super::store::Session;
use crate::input::kept_of;
use crate::problem::Problem;
use crate::state::Server;

/// By what a run came in which an agent is run again by hand. It counts on from those before it.
pub(super) const RERUN: &str = "rerun";
/// What begins because of the work of a session, and not because something came in.
const WITHIN: [&str; 2] = [RERUN, "escalation"];
/// Runs whose entries are counted. The oldest of them says what was before it.
const RUNS: u32 = 100;

/// How many calls of agents there were in a session since something came in from outside.
pub(super) async fn so_far(server: &Server, mesh: &Mesh, session: &Session) -> Result<u32, Problem> {
    let (mut calls, mut before) = (0_u32, 0);
    for run in server.store().runs_of_session(session.number, RUNS)? {
        let record = match server.runs().store().find(run.run.as_str()).await {
            Ok(record) => record,
            // It was deleted, and those before it are older still.
            Err(JournalError::NoSuchRun(_)) => break,
            Err(error) => return Err(error.into()),
        };
        let entries = server.runs().store().history(&run.run).await?.whole()?;
        calls = calls.saturating_add(within(&entries, |name| mesh.settings.agent(name).is_some()));
        before = told(&record);
        let kept = kept_of(&record);
        if !kept.get("kind").and_then(Value::as_str).is_some_and(|kind| WITHIN.contains(&kind)) {
            break;
        }
    }
    Ok(calls.saturating_add(before))
}

/// How many calls a run was told that there were before it.
fn told(run: &RunRecord) -> u32 {
    let state = run.header.given.get("state").and_then(GraphValue::as_object);
    let before = state.and_then(|state| state.get(CALLS_BEFORE)).and_then(|before| Value::from(before).as_u64());
    before.map_or(0, |before| u32::try_from(before).unwrap_or(u32::MAX))
}

/// How many calls of agents there are among the entries of a run. That the run begins with an agent is none.
fn within(entries: &[Entry], is_agent: impl Fn(&str) -> bool) -> u32 {
    let mut calls = 0;
    for entry in entries.iter().filter(|entry| entry.place.around().is_none()) {
        if let Fact::Completed(completed) = &entry.fact
            && completed.node != START
        {
            calls += completed.next.iter().flatten().filter(|next| is_agent(next)).count();
        }
    }
    u32::try_from(calls).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hotcell_runtime::{Completed, EntryPath};

    use super::*;

    fn leads(place: EntryPath, node: &str, next: &[&str]) -> Entry {
        let completed = Completed {
            node: node.to_owned(),
            writes: Vec::new(),
            next: Some(next.iter().map(|&name| name.to_owned()).collect()),
            output: None,
            failure: None,
            failure_kind: None,
            handled: false,
            elapsed: Duration::ZERO,
            account: Default::default(),
        };
        Entry { place, fact: Fact::Completed(completed) }
    }

    #[test]
    fn what_agents_call_counts_and_where_a_run_begins_does_not() {
        let turn = EntryPath::of_turn;
        let entries = [
            leads(turn(1), START, &["desk"]),
            leads(turn(2), "desk", &["press", "shop", "(desk is posted)"]),
            leads(turn(3), "(desk is posted)", &["shop"]),
            leads(turn(2).within(0), "desk", &["press"]),
            leads(turn(4), "press", &[]),
        ];
        let is_agent = |name: &str| ["desk", "press", "shop"].contains(&name);
        assert_eq!(within(&entries, is_agent), 3);
        let again = [leads(turn(1), START, &["(again)"]), leads(turn(2), "(again)", &["press"])];
        assert_eq!(within(&again, is_agent), 1);
    }
}
