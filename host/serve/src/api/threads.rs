//! Threads: conversations that runs belong to.

use axum::Json;
use axum::extract::{Path, State};
use hotcell_runtime::{RunId, RunQuery};
use http::StatusCode;
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::in_thread::{check_id, find, last_run, no_thread};
use super::langgraph::{AssistantRunView, ThreadState, no_subgraphs, thread_state};
use super::params::Query;
use super::thread_view::{ThreadView, view};
use super::{extract, page};
use crate::input::check_metadata;
use crate::once;
use crate::problem::Problem;
use crate::spending;
use crate::state::Server;
use crate::thread_store::Thread;
use crate::view::{Object, RunView, StatusView};

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .routes(routes!(create))
        .routes(routes!(get, change, delete))
        .routes(routes!(state))
        .routes(routes!(runs))
}

/// A thread that is to be made.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ThreadCreate {
    /// Its id: letters, digits, `-`, `_`, `.` and `:`; a random one if it is left out
    #[schema(max_length = 128, pattern = "^[A-Za-z0-9_.:-]{1,128}$")]
    thread_id: Option<String>,
    /// What is to be kept with it
    #[schema(value_type = Option<Object>)]
    metadata: Option<Object>,
    /// What to do if it is there
    if_exists: Option<IfExists>,
}

/// What to do about a thread that is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum IfExists {
    /// Refuse
    #[default]
    Raise,
    /// Give it as it is
    DoNothing,
}

/// A thread with the state that it has come to.
pub(super) async fn whole_view(server: &Server, thread: Thread) -> Result<ThreadView, Problem> {
    let state = thread_state(server, thread.clone()).await;
    let mut view = view(server, thread).await?;
    match state {
        Ok(state) => {
            view.interrupts = Some(state.asked());
            view.values = Some(state.into_values());
        }
        // Its agent is not served any more.
        Err(problem) if problem.status == 404 => {}
        Err(problem) => return Err(problem),
    }
    Ok(view)
}

/// Make a thread
#[utoipa::path(
    post, path = "/threads", tag = "Threads", security(("key" = ["run"])),
    request_body = ThreadCreate, responses((status = 200, body = ThreadView))
)]
async fn create(
    State(server): State<Server>,
    extract::Json(wanted): extract::Json<ThreadCreate>,
) -> Result<Json<ThreadView>, Problem> {
    let name = once::take_name().unwrap_or_else(RunId::random);
    let id = wanted.thread_id.unwrap_or_else(|| name.to_string());
    check_id(&id)?;
    let metadata = wanted.metadata.unwrap_or_default();
    check_metadata(&metadata)?;
    let thread = match server.store().create_thread(&id, &metadata)? {
        Some(thread) => thread,
        None if wanted.if_exists == Some(IfExists::DoNothing) || once::is_repeat() => find(&server, &id)?,
        None => {
            let detail = format!("thread `{id}` is there already; `\"if_exists\": \"do_nothing\"` gives it as it is");
            return Err(Problem::conflict(detail).kind("thread-exists", "The thread is there already"));
        }
    };
    Ok(Json(view(&server, thread).await?))
}

/// Look at a thread
#[utoipa::path(
    get, path = "/threads/{thread_id}", tag = "Threads", security(("key" = ["run", "operate"])),
    params(("thread_id" = String, Path, description = "The thread")),
    responses((status = 200, body = ThreadView))
)]
async fn get(State(server): State<Server>, Path(id): Path<String>) -> Result<Json<ThreadView>, Problem> {
    let thread = find(&server, &id)?;
    Ok(Json(whole_view(&server, thread).await?))
}

/// What is to be changed of a thread.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ThreadPatch {
    /// What is to be kept with it, over what is kept with it now
    #[schema(value_type = Object)]
    metadata: Object,
}

/// Add to the metadata of a thread
#[utoipa::path(
    patch, path = "/threads/{thread_id}", tag = "Threads", security(("key" = ["run"])),
    params(("thread_id" = String, Path, description = "The thread")),
    request_body = ThreadPatch, responses((status = 200, body = ThreadView))
)]
async fn change(
    State(server): State<Server>,
    Path(id): Path<String>,
    extract::Json(patch): extract::Json<ThreadPatch>,
) -> Result<Json<ThreadView>, Problem> {
    let changed = server.store().change_thread(&id, &patch.metadata, check_metadata)?;
    let thread = changed.ok_or_else(|| no_thread(&id))??;
    Ok(Json(view(&server, thread).await?))
}

/// Refuses to remove a thread a run of which has not ended.
pub(super) async fn has_ended(server: &Server, thread: &Thread) -> Result<(), Problem> {
    match last_run(server, thread).await?.filter(|last| !last.status.is_final()) {
        None => Ok(()),
        Some(last) => {
            let detail = format!("run `{}` of thread `{}` has not ended; cancel it first", last.id, thread.id);
            Err(Problem::conflict(detail).kind("run-not-ended", "A run of the thread has not ended"))
        }
    }
}

/// Removes a thread and its runs. None is begun in it meanwhile.
pub(super) async fn remove(server: &Server, id: &str) -> Result<(), Problem> {
    let _alone = server.runs().hold_thread(id).await;
    let thread = find(server, id)?;
    has_ended(server, &thread).await?;
    if let Some(source) = thread.agent {
        let query = RunQuery { thread: Some(thread.id), sources: Some(vec![source]), ..RunQuery::default() };
        // What they have used is used.
        spending::count_all(server, query.clone()).await?;
        server.runs().store().prune(&query).await?;
    }
    server.store().delete_thread(id)?;
    Ok(())
}

/// Remove a thread and its runs
#[utoipa::path(
    delete, path = "/threads/{thread_id}", tag = "Threads", security(("key" = ["operate"])),
    params(("thread_id" = String, Path, description = "The thread")),
    responses((status = 204, description = "It is removed"))
)]
async fn delete(State(server): State<Server>, Path(id): Path<String>) -> Result<StatusCode, Problem> {
    remove(&server, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Show the state of a thread: what its last run came to
#[utoipa::path(
    get, path = "/threads/{thread_id}/state", tag = "Threads", security(("key" = ["run", "operate"])),
    params(
        ("thread_id" = String, Path, description = "The thread"),
        ("subgraphs" = Option<bool>, Query, description = "States of graphs within nodes are not shown: `false`"),
    ),
    responses((status = 200, body = ThreadState))
)]
async fn state(
    State(server): State<Server>,
    Path(id): Path<String>,
    mut query: Query,
) -> Result<Json<ThreadState>, Problem> {
    no_subgraphs(query.flag("subgraphs")?)?;
    query.end()?;
    Ok(Json(thread_state(&server, find(&server, &id)?).await?))
}

/// List the runs of a thread, the newest first
#[utoipa::path(
    get, path = "/threads/{thread_id}/runs", tag = "Threads", security(("key" = ["run", "operate"])),
    params(
        ("thread_id" = String, Path, description = "The thread"),
        ("limit" = Option<u64>, Query, minimum = 1, maximum = 1000, description = "How many at most"),
        ("offset" = Option<u64>, Query, minimum = 0, maximum = 10000, description = "How many are left out before the first one"),
        ("status" = Option<StatusView>, Query, description = "Only runs that stand so"),
    ),
    responses((status = 200, body = Vec<AssistantRunView>))
)]
async fn runs(
    State(server): State<Server>,
    Path(id): Path<String>,
    mut query: Query,
) -> Result<Json<Vec<AssistantRunView>>, Problem> {
    let limit = query.limit(10)?;
    let offset = query.number("offset", 0, page::FURTHEST as u64)?.unwrap_or(0) as usize;
    let statuses = super::runs::statuses(&mut query)?;
    query.end()?;
    let Some(source) = find(&server, &id)?.agent else { return Ok(Json(Vec::new())) };
    let limit = limit + offset;
    let query = RunQuery { thread: Some(id), sources: Some(vec![source]), limit, statuses, ..RunQuery::default() };
    let page = server.runs().store().list(&query).await?;
    let views = page.runs.iter().skip(offset).map(|run| RunView::of_summary(run, server.agents()));
    Ok(Json(views.map(AssistantRunView::of).collect()))
}
