//! Changing the state of a thread, and copying one.

use axum::Json;
use axum::extract::{Path, State};
use hotcell_runtime::{RunId, value};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::body::is_something;
use super::history::{Checkpoint, checkpoint};
use crate::api::extract;
use crate::api::in_thread;
use crate::api::thread_view::{ThreadView, view};
use crate::once;
use crate::problem::Problem;
use crate::state::Server;
use crate::view::Object;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(copy)).routes(routes!(update))
}

/// Copy a thread with the run that it has come to
///
/// A copy goes on by itself: what is said in it is not said in the thread.
#[utoipa::path(
    post, path = "/threads/{thread_id}/copy", tag = "Threads", security(("key" = ["run"])),
    params(("thread_id" = String, Path, description = "The thread")),
    responses((status = 200, body = ThreadView))
)]
async fn copy(State(server): State<Server>, Path(id): Path<String>) -> Result<Json<ThreadView>, Problem> {
    let thread = in_thread::find(&server, &id)?;
    let last = in_thread::last_run(&server, &thread).await?;
    let new = once::take_name().unwrap_or_else(RunId::random).to_string();
    if server.store().create_thread(&new, &thread.metadata)?.is_none() && !once::is_repeat() {
        return Err(Problem::internal(&"a new name of a thread was taken"));
    }
    if let (Some(source), Some(last)) = (&thread.agent, last) {
        server.runs().copy(&last.id, &id, &new, &hotcell_graph::Object::default()).await?;
        server.store().bind_thread(&new, source)?;
    }
    Ok(Json(view(&server, in_thread::find(&server, &new)?).await?))
}

/// A change of the state of a thread.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct StateUpdate {
    /// Values by their keys, as if the last node of the last run had written them, too
    #[schema(value_type = Option<Object>)]
    values: Option<Value>,
    /// Not supported
    as_node: Option<String>,
    /// Not supported
    #[schema(value_type = Option<Object>)]
    checkpoint: Option<Value>,
    /// Not supported
    checkpoint_id: Option<String>,
}

/// Where a state is.
#[derive(Serialize, ToSchema)]
struct StateUpdated {
    /// Its place in the history of the thread
    checkpoint: Checkpoint,
}

/// Change the state of a thread whose last run has ended
///
/// The next run of the thread goes on with it. What was is kept: the changed state is that of a copy of the last run.
#[utoipa::path(
    post, path = "/threads/{thread_id}/state", tag = "Threads", security(("key" = ["run"])),
    params(("thread_id" = String, Path, description = "The thread")),
    request_body = StateUpdate, responses((status = 200, body = StateUpdated))
)]
async fn update(
    State(server): State<Server>,
    Path(id): Path<String>,
    extract::Json(update): extract::Json<StateUpdate>,
) -> Result<Json<StateUpdated>, Problem> {
    let elsewhere = "`POST /runs/{run_id}/fork` goes on from any entry with a changed state";
    let not_done = [
        ("as_node", update.as_node.is_some()),
        ("checkpoint", update.checkpoint.as_ref().is_some_and(is_something)),
        ("checkpoint_id", update.checkpoint_id.is_some()),
    ];
    if let Some((name, _)) = not_done.iter().find(|(_, is_said)| *is_said) {
        return Err(Problem::unprocessable(format!("`{name}` is not supported: {elsewhere}")));
    }
    let values: Object = match update.values {
        Some(Value::Object(values)) if !values.is_empty() => values,
        None | Some(Value::Null | Value::Object(_)) => return Err(Problem::unprocessable("`values` says nothing")),
        Some(_) => {
            return Err(Problem::unprocessable("`values` has to be an object: a list of changes is not supported"));
        }
    };
    let thread = in_thread::find(&server, &id)?;
    let Some(last) = in_thread::last_run(&server, &thread).await? else {
        return Err(Problem::conflict(format!(
            "thread `{id}` has no run yet; give the values as input of its first one"
        )));
    };
    if !last.status.is_final() {
        let detail = format!("run `{}` of thread `{id}` has not ended; {elsewhere}", last.id);
        return Err(Problem::conflict(detail).kind("run-not-ended", "A run of the thread has not ended"));
    }
    let value::Value::Object(set) = value::Value::from(&Value::Object(values)) else {
        return Err(Problem::unprocessable("`values` has to be an object"));
    };
    let run = server.runs().copy(&last.id, &id, &id, &set).await?;
    let entries = server.runs().store().last_entry(&run.id).await?;
    Ok(Json(StateUpdated { checkpoint: checkpoint(&id, &run, entries) }))
}
