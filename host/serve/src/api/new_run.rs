//! A run that is to begin, and what comes of it.

use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use hotcell_graph::Value as GraphValue;
use hotcell_runtime::{OpenQuestion, Outcome, RunId, RunStatus};
use http::HeaderValue;
use http::header::CONTENT_LOCATION;
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::in_thread;
use crate::access::Asker;
use crate::input::{run_input, with_webhook};
use crate::live::{Begun, Live};
use crate::problem::Problem;
use crate::runs::IfBusy;
use crate::state::Server;
use crate::view::{Object, RunResult, RunView, Standing, object};

/// What becomes of a run when whoever began it, and waits for it, goes away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum OnDisconnect {
    /// It goes on
    #[default]
    Continue,
    /// It is cancelled
    Cancel,
}

/// What to do about a thread that is not there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum IfNotExists {
    /// Refuse the run
    #[default]
    Reject,
    /// Make the thread
    Create,
}

/// A run that is to begin.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RunCreate {
    /// The agent, by its id or a name that no other agent has. It can be left out where one agent is served
    pub(super) agent_id: Option<String>,
    /// The thread that it belongs to: it goes on with the state of the run before it there
    pub(super) thread_id: Option<String>,
    /// A text, or an object with values by their names
    #[serde(default)]
    pub(super) input: Option<Value>,
    /// One message of the role `user`, in place of a text
    #[serde(default)]
    #[schema(value_type = Option<Vec<Object>>, max_items = 1)]
    pub(super) messages: Option<Vec<Value>>,
    /// Whatever is to be kept with it
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub(super) metadata: Option<Object>,
    /// What to do about a thread that is not there
    #[serde(default)]
    pub(super) if_not_exists: Option<IfNotExists>,
    /// What to do if the thread is busy
    #[serde(default, rename = "multitask_strategy")]
    pub(super) if_busy: Option<IfBusy>,
    /// What becomes of it when the connection breaks over which it is waited for
    #[serde(default)]
    pub(super) on_disconnect: Option<OnDisconnect>,
    /// Where it is told that it asks something, and how it ended; a server to which `--webhook-to` lets clients have it posted
    #[schema(max_length = 2048)]
    pub(super) webhook: Option<String>,
}

/// Begins a run; whoever `listens` is told everything that happens in it.
pub(super) async fn begin(server: &Server, caller: &Asker, wanted: RunCreate, listens: bool) -> Result<Begun, Problem> {
    if wanted.thread_id.is_some() && wanted.if_busy == Some(IfBusy::Rollback) {
        caller.may_remove_runs()?;
    }
    let agents = server.agents();
    let (_, agent) = match &wanted.agent_id {
        Some(name) => agents.find(name)?,
        None => {
            let mut all = agents.all().into_iter();
            match (all.next(), all.next()) {
                (Some(only), None) => only,
                _ => return Err(Problem::unprocessable("say which agent is meant, with `agent_id`")),
            }
        }
    };
    if let Some(url) = &wanted.webhook {
        server.webhooks().check(url)?;
    }
    let makes_it = wanted.if_not_exists == Some(IfNotExists::Create);
    let metadata = wanted.metadata.unwrap_or_default();
    let given = run_input(&agent, wanted.input, wanted.messages, wanted.thread_id, metadata)?;
    let given = with_webhook(given, wanted.webhook);
    in_thread::start(server, &agent, given, makes_it, wanted.if_busy.unwrap_or_default(), listens).await
}

/// Says where a run is that was begun by the request.
pub(super) fn located(run: &RunId, response: impl IntoResponse) -> Response {
    located_at(&format!("/runs/{run}"), response)
}

/// Says at which address a run is that was begun by the request.
pub(super) fn located_at(address: &str, response: impl IntoResponse) -> Response {
    let mut response = response.into_response();
    if let Ok(value) = HeaderValue::try_from(address) {
        response.headers_mut().insert(CONTENT_LOCATION, value);
    }
    response
}

/// Waits until a run rests, and gives what came of it.
pub(super) async fn result(server: &Server, run: &RunId, live: Option<Arc<Live>>) -> Result<RunResult, Problem> {
    if let Some(live) = &live {
        live.done.cancelled().await;
    }
    if let Some(result) = live.as_ref().and_then(|live| at_hand(server, run, live)) {
        return Ok(result);
    }
    let report = live.and_then(|live| live.report());
    // What this process brought to its end need not be looked at to see that it rests.
    if !report.as_ref().is_some_and(|report| status_of(&report.outcome).is_final()) {
        server.runs().rest(run).await?;
    }
    let record = server.runs().find(run.as_str()).await?;
    let view = RunView::of_record(&record, server.agents());
    // The state that this process has just come to need not be made of the entries again.
    let report = report.filter(|report| status_of(&report.outcome) == record.status);
    let values = GraphValue::Object(match report {
        Some(report) => report.state.to_object(),
        None => server.runs().state_of(&record).await?,
    });
    let (mut output, mut error) = (None, None);
    match record.status {
        RunStatus::Completed => output = record.outcome,
        RunStatus::Failed | RunStatus::Stopped => error = record.outcome,
        _ => {}
    }
    let questions: Vec<OpenQuestion> = match record.status {
        RunStatus::Waiting => server.runs().questions(run).await?,
        _ => Vec::new(),
    };
    let questions = questions.into_iter().map(|open| open.question).collect();
    let withheld = match &view.fork {
        Some(_) => server.runs().withheld(run).await?,
        None => Vec::new(),
    };
    Ok(RunResult { run: view, values: object((&values).into()), output, error, questions, withheld })
}

/// What came of a run that began and ended here: it is as the journal has it, and need not be read.
fn at_hand(server: &Server, run: &RunId, live: &Live) -> Option<RunResult> {
    let (begun, report) = live.beginning_and_end()?;
    let (output, error) = match &report.outcome {
        Outcome::Completed { output } => (Some(output.clone()), None),
        Outcome::Failed { error, .. } => (None, Some(error.clone())),
        Outcome::Stopped { reason } => (None, Some(reason.clone())),
        Outcome::Waiting { .. } | Outcome::Interrupted | Outcome::Paused | Outcome::Cancelled => return None,
    };
    let (created, updated) = report.times?;
    let standing = Standing {
        run,
        thread: begun.thread.as_deref(),
        source: &begun.source,
        created,
        updated,
        status: status_of(&report.outcome),
        outcome: output.as_deref().or(error.as_deref()),
    };
    // It is no fork.
    let view = RunView { metadata: Some(begun.metadata.clone()), ..RunView::of(&standing, server.agents()) };
    // A run of an agent that is not there any more is shown to nobody.
    view.agent_id.as_ref()?;
    let values = object((&GraphValue::Object(report.state.to_object())).into());
    Some(RunResult { run: view, values, output, error, questions: Vec::new(), withheld: Vec::new() })
}

/// How a run stands that gave control back like this.
pub(super) fn status_of(outcome: &Outcome) -> RunStatus {
    match outcome {
        Outcome::Completed { .. } => RunStatus::Completed,
        Outcome::Failed { .. } => RunStatus::Failed,
        Outcome::Waiting { .. } => RunStatus::Waiting,
        Outcome::Stopped { .. } => RunStatus::Stopped,
        Outcome::Interrupted => RunStatus::Interrupted,
        Outcome::Paused => RunStatus::Paused,
        Outcome::Cancelled => RunStatus::Cancelled,
    }
}
