//! What streams of tasks tell: the task as it is, then what it makes, and the state in which it rests.

use axum::response::sse::Event;
use axum::response::{IntoResponse, Response};
use hotcell_runtime::{NumberedEntry, RunId, RunRecord, RunStatus};
use serde_json::{Value, json};

use super::asked::Asked;
use super::error::A2aError;
use super::operations::Sent;
use super::task::{self, Shown};
use super::version::Version;
use crate::api::event_stream::{Telling, sse};
use crate::api::turn::{self, Came, Part};
use crate::leash::Leash;
use crate::problem::Problem;
use crate::state::Server;

/// What events are wrapped in.
#[derive(Clone, Debug)]
pub(super) enum Wrapped {
    /// Replies of JSON-RPC to the request of this id
    Rpc(Value),
    /// Nothing
    Bare,
}

/// Tells what becomes of a task.
struct Updates {
    server: Server,
    version: Version,
    wrapped: Wrapped,
    /// The task as it was at the beginning
    task: Option<Value>,
}

impl Updates {
    /// How far the last turn of the task has come.
    async fn part(&self, run: &RunRecord) -> Result<Part, Problem> {
        let entries = self.server.runs().store().history(&run.id).await?.whole()?;
        Ok(Part::of(&entries, turn::last_turn(&entries)))
    }

    fn event(&self, value: Value) -> Event {
        let value = self.version.written(value);
        let data = match &self.wrapped {
            Wrapped::Rpc(id) => json!({ "jsonrpc": "2.0", "id": id, "result": value }),
            Wrapped::Bare => value,
        };
        Event::default().data(data.to_string())
    }
}

impl Telling for Updates {
    fn begin(&mut self) -> Vec<Event> {
        self.task.take().map(|task| self.event(json!({ "task": task }))).into_iter().collect()
    }

    fn entry(&mut self, _entry: &NumberedEntry) -> Vec<Event> {
        Vec::new()
    }

    fn live(&mut self, _happened: &str) -> Vec<Event> {
        Vec::new()
    }

    async fn waits(&mut self, run: &RunRecord) -> Result<bool, Problem> {
        // For a time, or another system; or it was answered before whoever listens was told that it asks.
        let goes_on = matches!(run.status, RunStatus::Waiting | RunStatus::Running);
        Ok(goes_on && self.part(run).await?.came == Came::Working)
    }

    async fn end(&mut self, run: &RunRecord) -> Result<Vec<Event>, Problem> {
        let part = self.part(run).await?;
        let updates = task::updates(run, &part);
        Ok(updates.into_iter().map(|update| self.event(update)).collect())
    }

    fn problem(&self, problem: &Problem) -> Event {
        let error = A2aError::of(problem);
        match &self.wrapped {
            Wrapped::Rpc(id) => {
                Event::default().data(json!({ "jsonrpc": "2.0", "id": id, "error": error.in_rpc() }).to_string())
            }
            Wrapped::Bare => Event::default().event("error").data(json!(error.in_http()).to_string()),
        }
    }
}

/// A stream of what becomes of a message.
pub(super) async fn of_message(asked: &Asked, sent: Sent, wrapped: Wrapped) -> Result<Response, A2aError> {
    let (run, after) = (sent.started.begun.run, sent.started.after);
    stream(asked, &run, after, sent.shown, wrapped).await
}

/// A stream of what becomes of a task from now on.
pub(super) async fn of_task(asked: &Asked, run: &RunRecord, wrapped: Wrapped) -> Result<Response, A2aError> {
    stream(asked, &run.id, 0, Shown::default(), wrapped).await
}

async fn stream(asked: &Asked, run: &RunId, after: u64, shown: Shown, wrapped: Wrapped) -> Result<Response, A2aError> {
    let server = &asked.server;
    let record = server.runs().find(run.as_str()).await?;
    let task = task::read(server, &record, shown).await?;
    let updates = Updates { server: server.clone(), version: asked.version, wrapped, task: Some(task) };
    let leash = Leash::new(server, run, false);
    Ok(sse(server, run, after, None, leash, updates).into_response())
}
