//! Crons: schedules.

use axum::Json;
use axum::extract::{Path, State};
use hotcell_runtime::plugins::Misfire;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::body::is_something;
use crate::api::schedules::{check_room, delete, find, find_made, given, keep, moment, new_id};
use crate::api::{extract, page};
use crate::problem::Problem;
use crate::runs::IfBusy;
use crate::schedule::definition::{Body, Definition};
use crate::schedule::runs::next_of;
use crate::state::Server;
use crate::store::time as time_of;
use crate::view::{Object, object, time};

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .routes(routes!(create))
        .routes(routes!(create_for_thread))
        .routes(routes!(search))
        .routes(routes!(count))
        .routes(routes!(change, remove))
}

/// How late a run may begin.
const GRACE: u64 = 3600;

/// A schedule, as clients of LangGraph see it.
#[derive(Serialize, ToSchema)]
struct Cron {
    /// The schedule
    cron_id: String,
    /// The agent
    assistant_id: String,
    /// The thread of its runs; none for a new one each time
    thread_id: Option<String>,
    /// Runs are kept
    on_run_completed: Option<String>,
    /// Until when it counts
    #[schema(format = DateTime)]
    end_time: Option<String>,
    /// When it comes
    schedule: String,
    /// In which time zone
    timezone: Option<String>,
    /// When it was made
    #[schema(format = DateTime)]
    created_at: String,
    /// When it was changed last
    #[schema(format = DateTime)]
    updated_at: String,
    /// What its runs are given
    #[schema(value_type = Object)]
    payload: Object,
    /// Nobody is known
    user_id: Option<String>,
    /// When it comes next
    #[schema(format = DateTime)]
    next_run_date: Option<String>,
    /// What is kept with its runs
    #[schema(value_type = Object)]
    metadata: Object,
    /// Whether it begins runs
    enabled: bool,
}

impl Cron {
    fn of(server: &Server, definition: &Definition) -> Result<Self, Problem> {
        let Definition { id, body, created, updated, .. } = definition.clone();
        let payload = json!({ "input": body.input, "schedule": body.cron, "assistant_id": body.agent_id });
        Ok(Cron {
            next_run_date: next_of(server, definition)?.map(time),
            cron_id: id,
            assistant_id: body.agent_id,
            thread_id: body.thread_id,
            on_run_completed: None,
            end_time: body.until.map(|until| time(time_of(until))),
            schedule: body.cron,
            timezone: Some(body.zone),
            created_at: time(created),
            updated_at: time(updated),
            payload: object(payload),
            user_id: None,
            metadata: body.metadata,
            enabled: body.enabled,
        })
    }
}

/// What clients can say of a cron and is not done here.
struct NotDone {
    config: Option<Value>,
    context: Option<Value>,
    interrupt_before: Option<Value>,
    interrupt_after: Option<Value>,
    webhook: Option<String>,
    on_run_completed: Option<String>,
    stream_subgraphs: Option<bool>,
}

impl NotDone {
    fn check(&self) -> Result<(), Problem> {
        let says = |value: &Option<Value>| value.as_ref().is_some_and(is_something);
        let said = [
            ("config", says(&self.config)),
            ("context", says(&self.context)),
            ("interrupt_before", says(&self.interrupt_before)),
            ("interrupt_after", says(&self.interrupt_after)),
            ("webhook", self.webhook.is_some()),
            ("on_run_completed", self.on_run_completed.as_deref().is_some_and(|what| what != "keep")),
            ("stream_subgraphs", self.stream_subgraphs == Some(true)),
        ];
        match said.iter().find(|(_, is_said)| *is_said) {
            None => Ok(()),
            Some((name, _)) => Err(Problem::unprocessable(format!("`{name}` is not supported"))),
        }
    }
}

/// A cron that is to be made.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct CronCreate {
    /// The agent
    assistant_id: String,
    /// When it comes: a cron expression of five fields
    schedule: String,
    /// In which time zone; UTC if none is given
    timezone: Option<String>,
    /// What its runs are given
    input: Option<Value>,
    /// What is kept with its runs
    #[schema(value_type = Option<Object>)]
    metadata: Option<Object>,
    /// Until when it counts
    end_time: Option<String>,
    /// Whether it begins runs
    enabled: Option<bool>,
    /// What is done if the thread is busy
    multitask_strategy: Option<IfBusy>,
    /// Nobody listens
    #[serde(rename = "stream_mode")]
    #[schema(value_type = Option<Object>)]
    _stream_mode: Option<Value>,
    /// Streams can always be resumed
    #[serde(rename = "stream_resumable")]
    _stream_resumable: Option<bool>,
    /// Everything is committed as it happens
    #[serde(rename = "durability")]
    _durability: Option<String>,
    /// Everything is committed as it happens
    #[serde(rename = "checkpoint_during")]
    _checkpoint_during: Option<bool>,
    #[schema(value_type = Option<Object>)]
    config: Option<Value>,
    #[schema(value_type = Option<Object>)]
    context: Option<Value>,
    #[schema(value_type = Option<Object>)]
    interrupt_before: Option<Value>,
    #[schema(value_type = Option<Object>)]
    interrupt_after: Option<Value>,
    webhook: Option<String>,
    on_run_completed: Option<String>,
    stream_subgraphs: Option<bool>,
}

impl CronCreate {
    fn not_done(&mut self) -> NotDone {
        NotDone {
            config: self.config.take(),
            context: self.context.take(),
            interrupt_before: self.interrupt_before.take(),
            interrupt_after: self.interrupt_after.take(),
            webhook: self.webhook.take(),
            on_run_completed: self.on_run_completed.take(),
            stream_subgraphs: self.stream_subgraphs,
        }
    }
}

async fn make(server: &Server, mut wanted: CronCreate, thread: Option<String>) -> Result<Json<Cron>, Problem> {
    wanted.not_done().check()?;
    let _changing = server.schedules().changing.lock().await;
    check_room(server)?;
    let (agent_id, _) = server.agents().find(&wanted.assistant_id)?;
    let body = Body {
        agent_id,
        cron: wanted.schedule,
        zone: wanted.timezone.unwrap_or_else(|| "UTC".to_owned()),
        input: wanted.input,
        thread_id: thread,
        metadata: wanted.metadata.unwrap_or_default(),
        misfire: Misfire::default(),
        grace_seconds: GRACE,
        if_busy: wanted.multitask_strategy.unwrap_or_default(),
        enabled: wanted.enabled.unwrap_or(true),
        until: wanted.end_time.as_deref().map(|text| moment("end_time", text)).transpose()?,
    };
    let definition = keep(server, &new_id(), body, None).await?;
    Ok(Json(Cron::of(server, &definition)?))
}

/// Make a cron: a schedule, for clients of LangGraph
#[utoipa::path(
    post, path = "/runs/crons", tag = "LangGraph", security(("key" = ["operate"])),
    request_body = CronCreate, responses((status = 200, body = Cron))
)]
async fn create(
    State(server): State<Server>,
    extract::Json(wanted): extract::Json<CronCreate>,
) -> Result<Json<Cron>, Problem> {
    make(&server, wanted, None).await
}

/// Make a cron whose runs belong to a thread
#[utoipa::path(
    post, path = "/threads/{thread_id}/runs/crons", tag = "LangGraph", security(("key" = ["operate"])),
    params(("thread_id" = String, Path, description = "The thread")),
    request_body = CronCreate, responses((status = 200, body = Cron))
)]
async fn create_for_thread(
    State(server): State<Server>,
    Path(thread): Path<String>,
    extract::Json(wanted): extract::Json<CronCreate>,
) -> Result<Json<Cron>, Problem> {
    make(&server, wanted, Some(thread)).await
}

/// Which crons are wanted.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct CronSearch {
    /// Those of this agent
    assistant_id: Option<String>,
    /// Those of this thread
    thread_id: Option<String>,
    /// Those that begin runs, or those that do not
    enabled: Option<bool>,
    /// Those with all of this metadata
    #[schema(value_type = Option<Object>)]
    metadata: Option<Object>,
    /// How many at most
    #[schema(minimum = 1, maximum = 1000, default = 10)]
    #[serde(default, deserialize_with = "extract::whole")]
    limit: Option<usize>,
    /// How many are left out before the first one
    #[schema(minimum = 0, maximum = 10000, default = 0)]
    #[serde(default, deserialize_with = "extract::whole")]
    offset: Option<usize>,
}

impl CronSearch {
    fn fits(&self, definition: &Definition) -> bool {
        let body = &definition.body;
        let metadata = self.metadata.iter().flatten();
        self.assistant_id.as_ref().is_none_or(|agent| *agent == body.agent_id)
            && self.thread_id.as_ref().is_none_or(|thread| Some(thread) == body.thread_id.as_ref())
            && self.enabled.is_none_or(|enabled| enabled == body.enabled)
            && metadata.into_iter().all(|(name, value)| body.metadata.get(name) == Some(value))
    }
}

/// List crons
#[utoipa::path(
    post, path = "/runs/crons/search", tag = "LangGraph", security(("key" = ["operate"])),
    request_body = CronSearch, responses((status = 200, body = Vec<Cron>))
)]
async fn search(
    State(server): State<Server>,
    extract::Json(wanted): extract::Json<CronSearch>,
) -> Result<Json<Vec<Cron>>, Problem> {
    let (limit, offset) = page::bounds(wanted.limit, wanted.offset)?;
    let all = server.schedules().all().into_iter().filter(|one| wanted.fits(one));
    Ok(Json(all.skip(offset).take(limit).map(|one| Cron::of(&server, &one)).collect::<Result<_, _>>()?))
}

/// Count crons
#[utoipa::path(
    post, path = "/runs/crons/count", tag = "LangGraph", security(("key" = ["operate"])),
    request_body = CronSearch, responses((status = 200, body = u64, content_type = "application/json"))
)]
async fn count(
    State(server): State<Server>,
    extract::Json(wanted): extract::Json<CronSearch>,
) -> Result<Json<u64>, Problem> {
    page::bounds(wanted.limit, wanted.offset)?;
    Ok(Json(server.schedules().all().iter().filter(|one| wanted.fits(one)).count() as u64))
}

/// What of a cron is changed.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct CronChange {
    /// When it comes
    schedule: Option<String>,
    /// In which time zone
    timezone: Option<String>,
    /// What its runs are given; null for nothing
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<Value>)]
    input: Option<Option<Value>>,
    /// What is kept with its runs
    #[schema(value_type = Option<Object>)]
    metadata: Option<Object>,
    /// Until when it counts; null for ever
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    end_time: Option<Option<String>>,
    /// Whether it begins runs
    enabled: Option<bool>,
    /// Nobody listens
    #[serde(rename = "stream_mode")]
    #[schema(value_type = Option<Object>)]
    _stream_mode: Option<Value>,
    /// Streams can always be resumed
    #[serde(rename = "stream_resumable")]
    _stream_resumable: Option<bool>,
    /// Everything is committed as it happens
    #[serde(rename = "durability")]
    _durability: Option<String>,
    #[schema(value_type = Option<Object>)]
    config: Option<Value>,
    #[schema(value_type = Option<Object>)]
    context: Option<Value>,
    #[schema(value_type = Option<Object>)]
    interrupt_before: Option<Value>,
    #[schema(value_type = Option<Object>)]
    interrupt_after: Option<Value>,
    webhook: Option<String>,
    on_run_completed: Option<String>,
    stream_subgraphs: Option<bool>,
}

/// Change a cron
#[utoipa::path(
    patch, path = "/runs/crons/{cron_id}", tag = "LangGraph", security(("key" = ["operate"])),
    params(("cron_id" = String, Path, description = "The cron")),
    request_body = CronChange, responses((status = 200, body = Cron))
)]
async fn change(
    State(server): State<Server>,
    Path(id): Path<String>,
    extract::Json(wanted): extract::Json<CronChange>,
) -> Result<Json<Cron>, Problem> {
    NotDone {
        config: wanted.config,
        context: wanted.context,
        interrupt_before: wanted.interrupt_before,
        interrupt_after: wanted.interrupt_after,
        webhook: wanted.webhook,
        on_run_completed: wanted.on_run_completed,
        stream_subgraphs: wanted.stream_subgraphs,
    }
    .check()?;
    let _changing = server.schedules().changing.lock().await;
    let before = find_made(&server, &id)?.body;
    let mut body = before.clone();
    body.cron = wanted.schedule.unwrap_or(body.cron);
    body.zone = wanted.timezone.unwrap_or(body.zone);
    body.input = wanted.input.unwrap_or(body.input);
    body.metadata = wanted.metadata.unwrap_or(body.metadata);
    body.enabled = wanted.enabled.unwrap_or(body.enabled);
    if let Some(ends) = wanted.end_time {
        body.until = ends.as_deref().map(|text| moment("end_time", text)).transpose()?;
    }
    keep(&server, &id, body, Some(&before)).await?;
    Ok(Json(Cron::of(&server, &find(&server, &id)?)?))
}

/// Delete a cron
#[utoipa::path(
    delete, path = "/runs/crons/{cron_id}", tag = "LangGraph", security(("key" = ["operate"])),
    params(("cron_id" = String, Path, description = "The cron")),
    responses((status = 200, body = Object, description = "An empty object"))
)]
async fn remove(State(server): State<Server>, Path(id): Path<String>) -> Result<Json<Object>, Problem> {
    delete(&server, &id).await?;
    Ok(Json(Object::new()))
}
