//! Entries of runs as clients are shown them.

use hotcell_runtime::{Fact, NumberedEntry, Question, RunId};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::time;
use crate::object::Object;

/// An entry of a run: a fact that was committed.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Entry)]
pub(crate) struct EntryView {
    /// Which entry of the run it is, from 1
    pub(crate) seq: u64,
    /// Its name among all entries of all runs; what `Last-Event-ID` takes
    pub(crate) event_id: String,
    /// The run
    pub(crate) run_id: String,
    /// When it was written
    #[schema(format = DateTime)]
    pub(crate) at: String,
    /// What it is about: a turn of a node, such as `7`, or a part of it; empty for the run itself
    pub(crate) place: String,
    /// What it says: `started`, `resumed`, `retried`, `forked`, `withheld`, `revised`, `completed`, `effect`, `failed`, `attempt`, `timer_set`,
    /// `timer_fired`, `asked`, `answered`, `expired`, `waiting`, `pause_asked`, `paused`, `cancelled`, `stopped` or `ended`
    pub(crate) kind: &'static str,
    /// What belongs to that kind of fact
    #[schema(value_type = Object)]
    pub(crate) data: Value,
}

impl EntryView {
    pub(crate) fn of(run: &RunId, numbered: &NumberedEntry) -> Self {
        let (kind, data) = fact(numbered);
        EntryView {
            seq: numbered.number,
            event_id: format!("{run}:{}", numbered.number),
            run_id: run.to_string(),
            at: time(numbered.at),
            place: numbered.entry.place.to_string(),
            kind,
            data,
        }
    }
}

fn fact(numbered: &NumberedEntry) -> (&'static str, Value) {
    let place = &numbered.entry.place;
    match &numbered.entry.fact {
        Fact::Started(header) => {
            let given = |name: &str| header.given.get(name).map(Value::from);
            let (input, variables, state) = (given("input"), given("variables"), given("state"));
            (
                "started",
                json!({
                    "graph": header.graph, "revision": header.digest, "thread_id": header.thread(), "input": input,
                    "variables": variables, "state": state,
                }),
            )
        }
        Fact::Resumed => ("resumed", json!({})),
        Fact::Retried => ("retried", json!({})),
        Fact::Forked => ("forked", json!({})),
        Fact::Withheld { effect } => ("withheld", json!({ "effect": effect })),
        Fact::Revised { digest } => ("revised", json!({ "revision": digest })),
        Fact::Completed(completed) => {
            let writes: Object =
                completed.writes.iter().map(|write| (write.key.to_string(), Value::from(&write.value))).collect();
            (
                "completed",
                json!({
                    "node": completed.node, "writes": writes, "next": completed.next, "output": completed.output,
                    "failure": completed.failure, "failure_kind": completed.failure_kind, "handled": completed.handled,
                    "elapsed_ms": completed.elapsed.as_secs_f64() * 1e3, "usage": completed.account.total(),
                    "used_by": completed.account,
                }),
            )
        }
        Fact::Effect { number, kind, subject, answer, account } => {
            // The session of a callback lets whoever has it answer.
            let answer = if kind == "callback" { Value::Null } else { Value::from(answer) };
            let subject = if kind == "callback" { "" } else { subject.as_str() };
            (
                "effect",
                json!({
                    "number": number, "effect": kind, "subject": subject, "answer": answer, "usage": account.total(),
                    "used_by": account,
                }),
            )
        }
        Fact::Failed { number, error, account } => {
            ("failed", json!({ "number": number, "error": error, "usage": account.total(), "used_by": account }))
        }
        Fact::Attempt { attempt, error, account } => {
            ("attempt", json!({ "attempt": attempt, "error": error, "usage": account.total(), "used_by": account }))
        }
        Fact::TimerSet { node, at } => ("timer_set", json!({ "node": node, "until": time(*at) })),
        Fact::TimerFired { node } => ("timer_fired", json!({ "node": node })),
        Fact::Asked { number, question } => {
            let question = Question { id: format!("{place}:{number}"), ..question.clone() };
            ("asked", json!({ "question": question }))
        }
        Fact::Answered { number, text } => {
            ("answered", json!({ "question_id": format!("{place}:{number}"), "answer": text }))
        }
        Fact::Expired { number } => ("expired", json!({ "question_id": format!("{place}:{number}") })),
        Fact::Waiting => ("waiting", json!({})),
        Fact::PauseAsked => ("pause_asked", json!({})),
        Fact::Paused => ("paused", json!({})),
        Fact::Cancelled => ("cancelled", json!({})),
        Fact::Stopped { reason } => ("stopped", json!({ "reason": reason })),
        Fact::Ended { result: Ok(output), .. } => ("ended", json!({ "output": output })),
        Fact::Ended { result: Err(error), node } => ("ended", json!({ "error": error, "node": node })),
    }
}
