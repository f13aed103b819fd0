//! Tasks, as version 1.0 writes them: runs, read from their entries.

use hotcell_runtime::{Entry, Fact, RunRecord, RunStatus, for_models};
use serde_json::{Value, json};

use crate::api::turn::{self, Came, Part};
use crate::input::{kept_of, metadata_of};
use crate::problem::Problem;
use crate::state::Server;
use crate::view::time;

/// The member of what is kept with a run that has the message which began it.
pub(super) const KEPT: &str = "a2a";

/// What of a task is shown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shown {
    /// How many messages of its history at most; none for all
    pub(super) history: Option<u32>,
    /// Whether what it made is shown
    pub(super) artifacts: bool,
}

impl Default for Shown {
    fn default() -> Self {
        Shown { history: None, artifacts: true }
    }
}

/// The context that a run belongs to: its thread, or itself if it has none.
pub(super) fn context_of(run: &RunRecord) -> &str {
    run.thread().unwrap_or(run.id.as_str())
}

/// A run as a task.
pub(super) async fn read(server: &Server, run: &RunRecord, shown: Shown) -> Result<Value, Problem> {
    Ok(match brief(run, &shown) {
        Some(task) => task,
        None => task(run, &server.runs().store().history(&run.id).await?.whole()?, shown),
    })
}

/// A run with these entries as a task.
pub(super) fn task(run: &RunRecord, entries: &[Entry], wanted: Shown) -> Value {
    let part = Part::of(entries, turn::last_turn(entries));
    let mut history = history(run, entries);
    if let Some(most) = wanted.history {
        let left_out = history.len().saturating_sub(usize::try_from(most).unwrap_or(usize::MAX));
        history.drain(..left_out);
    }
    shown(run, &part, history, wanted.artifacts)
}

fn shown(run: &RunRecord, part: &Part, history: Vec<Value>, artifacts: bool) -> Value {
    let mut task = json!({ "id": run.id.as_str(), "contextId": context_of(run), "status": status(run, part) });
    if let (Some(artifact), true) = (artifact(run, part), artifacts) {
        task["artifacts"] = json!([artifact]);
    }
    if !history.is_empty() {
        task["history"] = history.into();
    }
    let metadata = metadata_of(run);
    if !metadata.is_empty() {
        task["metadata"] = Value::Object(metadata);
    }
    task
}

/// A run as a task, from what the index of the journal has of it. None where its history is wanted, and for a run that waits, of which
/// the index does not say for what.
fn brief(run: &RunRecord, wanted: &Shown) -> Option<Value> {
    if wanted.history != Some(0) {
        return None;
    }
    let outcome = || run.outcome.clone().unwrap_or_default();
    let came = match run.status {
        RunStatus::Waiting => return None,
        RunStatus::Running | RunStatus::Interrupted | RunStatus::Paused => Came::Working,
        RunStatus::Completed => Came::Said(outcome()),
        RunStatus::Failed | RunStatus::Stopped => Came::Failed(for_models(&outcome())),
        RunStatus::Cancelled => Came::Cancelled,
    };
    let part = Part { came, until: 0, input_tokens: 0, output_tokens: 0 };
    Some(shown(run, &part, Vec::new(), wanted.artifacts))
}

/// The state of a task whose last turn came to this.
pub(super) fn state(came: &Came) -> &'static str {
    match came {
        Came::Working => "TASK_STATE_WORKING",
        Came::Asks(_) => "TASK_STATE_INPUT_REQUIRED",
        Came::Said(_) => "TASK_STATE_COMPLETED",
        Came::Failed(_) => "TASK_STATE_FAILED",
        Came::Cancelled => "TASK_STATE_CANCELED",
    }
}

/// Whether this says which state is wanted.
pub(super) fn is_state(state: &str) -> bool {
    !matches!(state, "" | "TASK_STATE_UNSPECIFIED")
}

/// How a run may stand whose task is in a state; empty if none does.
pub(super) fn statuses(state: &str) -> Option<Vec<RunStatus>> {
    Some(match state {
        // One that waits asks a person, or waits for something else: its entries say which.
        "TASK_STATE_WORKING" => {
            vec![RunStatus::Running, RunStatus::Interrupted, RunStatus::Paused, RunStatus::Waiting]
        }
        "TASK_STATE_INPUT_REQUIRED" => vec![RunStatus::Waiting],
        "TASK_STATE_COMPLETED" => vec![RunStatus::Completed],
        "TASK_STATE_FAILED" => vec![RunStatus::Failed, RunStatus::Stopped],
        "TASK_STATE_CANCELED" => vec![RunStatus::Cancelled],
        "TASK_STATE_SUBMITTED" | "TASK_STATE_REJECTED" | "TASK_STATE_AUTH_REQUIRED" => Vec::new(),
        _ => return None,
    })
}

pub(super) fn status(run: &RunRecord, part: &Part) -> Value {
    let mut status = json!({ "state": state(&part.came), "timestamp": time(run.updated) });
    let text = match &part.came {
        Came::Asks(open) => open.first().map(turn::question_text),
        Came::Failed(error) => Some(error.clone()),
        _ => None,
    };
    if let Some(text) = text {
        // A task ends once, and asks at different entries.
        let id = match part.came {
            Came::Failed(_) => format!("{}-failed", run.id),
            _ => format!("{}-{}", run.id, part.until),
        };
        status["message"] = message(run, &id, "ROLE_AGENT", json!({ "text": text }));
    }
    status
}

/// What a task has made, if it has.
pub(super) fn artifact(run: &RunRecord, part: &Part) -> Option<Value> {
    let Came::Said(text) = &part.came else { return None };
    let parts = json!([{ "text": text, "mediaType": "text/plain" }]);
    Some(json!({ "artifactId": format!("{}-output", run.id), "name": "output", "parts": parts }))
}

/// What is told of a task that came to this.
pub(super) fn updates(run: &RunRecord, part: &Part) -> Vec<Value> {
    let (id, context) = (run.id.as_str(), context_of(run));
    let mut updates = Vec::new();
    if let Some(artifact) = artifact(run, part) {
        updates.push(json!({
            "artifactUpdate": { "taskId": id, "contextId": context, "artifact": artifact, "append": false, "lastChunk": true },
        }));
    }
    updates.push(json!({ "statusUpdate": { "taskId": id, "contextId": context, "status": status(run, part) } }));
    updates
}

fn message(run: &RunRecord, id: &str, role: &str, part: Value) -> Value {
    json!({ "messageId": id, "taskId": run.id.as_str(), "contextId": context_of(run), "role": role, "parts": [part] })
}

/// What was said: what began the run, and each question with its answer.
fn history(run: &RunRecord, entries: &[Entry]) -> Vec<Value> {
    let kept = kept_of(run).remove(KEPT).unwrap_or_default();
    let id = kept["message_id"].as_str().map_or_else(|| format!("{}-0", run.id), str::to_owned);
    let mut parts: Vec<Value> = run.header.input().map(|text| json!({ "text": text })).into_iter().collect();
    parts.extend(kept.get("data").map(|data| json!({ "data": data })));
    let mut said = Vec::new();
    if !parts.is_empty() {
        let mut first = message(run, &id, "ROLE_USER", Value::Null);
        first["parts"] = parts.into();
        said.push(first);
    }
    for (entry, number) in entries.iter().zip(1u64..) {
        let Fact::Answered { number: question, text } = &entry.fact else { continue };
        let asked = entries.iter().find_map(|asked| match &asked.fact {
            Fact::Asked { number, question: asked_text } if number == question && asked.place == entry.place => {
                // What another system answered was not said, and neither was what whoever runs the server decided.
                asked_text.is_for_users().then(|| asked_text.text.clone())
            }
            _ => None,
        });
        let Some(asked) = asked else { continue };
        said.push(message(run, &format!("{}-{number}-asked", run.id), "ROLE_AGENT", json!({ "text": asked })));
        said.push(message(run, &format!("{}-{number}", run.id), "ROLE_USER", json!({ "text": text })));
    }
    said
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use hotcell_graph::Object;
    use hotcell_runtime::{Entry, Fact, RunHeader, RunId, RunRecord, RunStatus};

    use super::{Shown, brief, task};

    #[test]
    fn a_task_that_has_ended_is_shown_without_its_entries_as_it_is_with_them() {
        for (status, result) in [(RunStatus::Completed, Ok("a cup")), (RunStatus::Failed, Err("too hot"))] {
            let header = RunHeader {
                graph: "tea".to_owned(),
                source: "tea".to_owned(),
                digest: String::new(),
                kept: false,
                given: Object::default(),
            };
            let result = result.map(str::to_owned).map_err(str::to_owned);
            let run = RunRecord {
                id: RunId::from("a".to_owned()),
                header: header.clone(),
                revision: None,
                status,
                created: SystemTime::UNIX_EPOCH,
                updated: SystemTime::UNIX_EPOCH,
                outcome: Some(result.clone().unwrap_or_else(|error| error)),
            };
            let end = Fact::Ended { result, node: None };
            let entries = [Entry::of_run(Fact::Started(header)), Entry::of_run(end)];
            for artifacts in [true, false] {
                let wanted = Shown { history: Some(0), artifacts };
                assert_eq!(brief(&run, &wanted), Some(task(&run, &entries, wanted)));
            }
            assert_eq!(brief(&run, &Shown::default()), None, "its history is in its entries");
        }
    }
}
