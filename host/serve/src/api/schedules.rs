//! Schedules: times at which runs are begun.

use std::time::SystemTime;

use axum::Json;
use axum::extract::{Path, State};
use hotcell_runtime::plugins::Misfire;
use http::StatusCode;
use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::extract;
use super::params::Query;
use crate::input::run_input;
use crate::once;
use crate::problem::{Problem, shown};
use crate::runs::IfBusy;
use crate::schedule::definition::{Body, Definition};
use crate::schedule::runs::{begin_all, firings_of, next_of};
use crate::schedule::store::Firing;
use crate::schedule::times::instant;
use crate::state::Server;
use crate::store::time as time_of;
use crate::view::{Object, time};

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(list, create)).routes(routes!(get, change, remove))
}

/// Schedules that may be made over HTTP.
const MOST: usize = 1000;
/// Bytes that all of them may have: they are kept in memory, and listed together.
const MOST_BYTES: usize = 32 << 20;
/// Firings that are shown of a schedule.
const SHOWN: usize = 20;
/// How late a run may begin where nobody says otherwise.
const GRACE: u64 = 3600;

/// Which of the times are made good that were missed.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = Misfire)]
enum MisfireView {
    /// The last one
    Last,
    /// Each of them, one after the other
    All,
    /// None
    Skip,
}

impl From<MisfireView> for Misfire {
    fn from(view: MisfireView) -> Self {
        match view {
            MisfireView::Last => Misfire::Last,
            MisfireView::All => Misfire::All,
            MisfireView::Skip => Misfire::Skip,
        }
    }
}

impl From<Misfire> for MisfireView {
    fn from(misfire: Misfire) -> Self {
        match misfire {
            Misfire::Last => MisfireView::Last,
            Misfire::All => MisfireView::All,
            Misfire::Skip => MisfireView::Skip,
        }
    }
}

/// A schedule.
#[derive(Serialize, ToSchema)]
#[schema(as = Schedule)]
pub(super) struct ScheduleView {
    /// What it is called
    schedule_id: String,
    /// The agent
    agent_id: String,
    /// Where it was made: `http`, or `file` for one of the `hotcell.toml` of the agent's folder, which only the file changes
    origin: &'static str,
    /// When it comes: a cron expression of five fields
    cron: String,
    /// In which time zone
    zone: String,
    /// What its runs are given
    input: Option<Value>,
    /// The thread of its runs
    thread_id: Option<String>,
    /// What is kept with its runs
    #[schema(value_type = Object)]
    metadata: Object,
    /// Which of the times are made good that were missed
    misfire: MisfireView,
    /// How late a run may begin
    grace_seconds: u64,
    /// What is done if the thread is busy
    multitask_strategy: IfBusy,
    /// Whether it begins runs
    enabled: bool,
    /// Until when it counts
    #[schema(format = DateTime)]
    ends_at: Option<String>,
    /// When it comes next
    #[schema(format = DateTime)]
    next_at: Option<String>,
    /// What came of its last times, the newest first
    firings: Vec<FiringView>,
    /// When it was made
    #[schema(format = DateTime)]
    created_at: String,
    /// When it was changed last
    #[schema(format = DateTime)]
    updated_at: String,
}

/// A time of a schedule, and what came of it.
#[derive(Serialize, ToSchema)]
#[schema(as = Firing)]
struct FiringView {
    /// The time
    #[schema(format = DateTime)]
    due: String,
    /// When it was tried first
    #[schema(format = DateTime)]
    at: String,
    /// The run that was begun
    run_id: Option<String>,
    /// Why none was begun
    reason: Option<String>,
}

impl ScheduleView {
    async fn of(server: &Server, definition: &Definition) -> Result<Self, Problem> {
        let Definition { id, body, in_file, created, updated, .. } = definition.clone();
        let firing = |Firing { due, at, run, reason }: Firing| FiringView {
            due: due.to_string(),
            at: time(at),
            run_id: run,
            reason,
        };
        let firings = firings_of(server, &id, SHOWN).await?.into_iter().map(firing).collect();
        Ok(ScheduleView {
            next_at: next_of(server, definition)?.map(time),
            firings,
            origin: if in_file.is_some() { "file" } else { "http" },
            schedule_id: id,
            agent_id: body.agent_id,
            cron: body.cron,
            zone: body.zone,
            input: body.input,
            thread_id: body.thread_id,
            metadata: body.metadata,
            misfire: body.misfire.into(),
            grace_seconds: body.grace_seconds,
            multitask_strategy: body.if_busy,
            enabled: body.enabled,
            ends_at: body.until.map(|until| time(time_of(until))),
            created_at: time(created),
            updated_at: time(updated),
        })
    }
}

/// Schedules.
#[derive(Serialize, ToSchema)]
struct ScheduleList {
    /// The schedules, in the order of their ids
    items: Vec<ScheduleView>,
}

/// List schedules
#[utoipa::path(
    get, path = "/schedules", tag = "Schedules", security(("key" = ["operate"])),
    params(("agent_id" = Option<String>, Query, description = "Only schedules of this agent")),
    responses((status = 200, body = ScheduleList))
)]
async fn list(State(server): State<Server>, mut query: Query) -> Result<Json<ScheduleList>, Problem> {
    let agent = query.text("agent_id");
    query.end()?;
    let all = server.schedules().all().into_iter();
    let wanted = all.filter(|one| agent.as_ref().is_none_or(|agent| *agent == one.body.agent_id));
    let mut items = Vec::new();
    for one in wanted {
        items.push(ScheduleView::of(&server, &one).await?);
    }
    Ok(Json(ScheduleList { items }))
}

/// A schedule of an id.
pub(super) fn find(server: &Server, id: &str) -> Result<Definition, Problem> {
    let found = server.schedules().all().into_iter().find(|one| one.id == id);
    found.ok_or_else(|| {
        let detail = format!("there is no schedule `{}`; `GET /schedules` lists them", shown(id));
        Problem::not_found(detail).kind("unknown-schedule", "There is no such schedule")
    })
}

/// A schedule of an id that was made over HTTP.
pub(super) fn find_made(server: &Server, id: &str) -> Result<Definition, Problem> {
    let definition = find(server, id)?;
    match definition.in_file {
        None => Ok(definition),
        Some(_) => {
            let detail = "the schedule is one of the `hotcell.toml` of the agent's folder: change it there";
            Err(Problem::conflict(detail).kind("schedule-in-file", "The schedule is in a file"))
        }
    }
}

/// Look at a schedule
#[utoipa::path(
    get, path = "/schedules/{schedule_id}", tag = "Schedules", security(("key" = ["operate"])),
    params(("schedule_id" = String, Path, description = "The schedule")),
    responses((status = 200, body = ScheduleView))
)]
async fn get(State(server): State<Server>, Path(id): Path<String>) -> Result<Json<ScheduleView>, Problem> {
    Ok(Json(ScheduleView::of(&server, &find(&server, &id)?).await?))
}

/// A schedule that is to be made.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ScheduleCreate {
    /// The agent
    agent_id: String,
    /// When it comes: minute, hour, day of the month, month and day of the week, such as `0 9 * * 1-5`
    cron: String,
    /// In which time zone, such as `Europe/Berlin`; UTC if none is given
    zone: Option<String>,
    /// What its runs are given: a text, or an object with values by their names
    input: Option<Value>,
    /// The thread of its runs
    thread_id: Option<String>,
    /// Whatever is to be kept with its runs
    #[schema(value_type = Option<Object>)]
    metadata: Option<Object>,
    /// Which of the times are made good that were missed; the last one if nothing is said
    misfire: Option<MisfireView>,
    /// How late a run may begin; an hour if nothing is said
    #[schema(minimum = 0, maximum = 31622400)]
    #[serde(default, deserialize_with = "extract::whole")]
    grace_seconds: Option<usize>,
    /// What is done if the thread is busy
    multitask_strategy: Option<IfBusy>,
    /// Whether it begins runs; it does if nothing is said
    enabled: Option<bool>,
    /// Until when it counts
    #[schema(format = DateTime)]
    ends_at: Option<String>,
}

/// A time of RFC 3339, in microseconds; one without a zone is in UTC.
pub(super) fn moment(name: &str, text: &str) -> Result<i64, Problem> {
    // Clients in Python leave out the zone of a time that has none.
    let time = text
        .parse::<Timestamp>()
        .or_else(|_| format!("{text}Z").parse::<Timestamp>())
        .map_err(|_| Problem::unprocessable(format!("`{name}` has to be a time such as `2027-01-31T12:00:00Z`")))?;
    Ok(time.as_microsecond())
}

/// Keeps a schedule, if its agent can be given what it says, and goes by it from now on.
pub(super) async fn keep(server: &Server, id: &str, body: Body, before: Option<&Body>) -> Result<Definition, Problem> {
    let times = body.times()?;
    let (_, agent) = server.agents().find(&body.agent_id)?;
    run_input(&agent, body.input.clone(), None, body.thread_id.clone(), body.metadata.clone())?;
    if let Some(thread) = &body.thread_id {
        super::in_thread::check_id(thread)?;
    }
    let bytes = |body: &Body| serde_json::to_vec(body).map_or(0, |json| json.len());
    let grows = before.is_none_or(|before| bytes(&body) > bytes(before));
    if grows && server.store().schedule_bytes(id)?.saturating_add(bytes(&body)) > MOST_BYTES {
        let detail =
            format!("all schedules together may have at most {MOST_BYTES} bytes; delete one, or shorten its `input`");
        return Err(Problem::conflict(detail).with("limit", MOST_BYTES));
    }
    // What was missed at other times, or while it was not to begin anything, is not made good.
    let is_new = before
        .is_none_or(|before| (&before.cron, &before.zone, before.enabled) != (&body.cron, &body.zone, body.enabled));
    let since = is_new.then(|| instant(server.clock().now()));
    server.store().keep_schedule(id, &body, since)?;
    begin_all(server);
    let now = SystemTime::now();
    Ok(Definition { id: id.to_owned(), body, times, in_file: None, created: now, updated: now })
}

/// Refuses more schedules than there may be.
pub(super) fn check_room(server: &Server) -> Result<(), Problem> {
    match server.store().schedules()?.len() >= MOST {
        true => Err(Problem::conflict(format!("there are {MOST} schedules, which is the limit; delete one"))
            .with("limit", MOST)),
        false => Ok(()),
    }
}

/// A new id: that of the request at hand, if it has one, so that what is asked for again is not made again.
pub(super) fn new_id() -> String {
    if let Some(name) = once::take_name() {
        return name.to_string();
    }
    let random: [u8; 8] = rand::random();
    random.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Make a schedule
///
/// Each of its times begins one run, whatever happens to the server. A key that made it may be revoked: the schedule stays.
#[utoipa::path(
    post, path = "/schedules", tag = "Schedules", security(("key" = ["operate"])),
    request_body = ScheduleCreate, responses((status = 201, body = ScheduleView))
)]
async fn create(
    State(server): State<Server>,
    extract::Json(wanted): extract::Json<ScheduleCreate>,
) -> Result<(StatusCode, Json<ScheduleView>), Problem> {
    let _changing = server.schedules().changing.lock().await;
    check_room(&server)?;
    let (agent_id, _) = server.agents().find(&wanted.agent_id)?;
    let body = Body {
        agent_id,
        cron: wanted.cron,
        zone: wanted.zone.unwrap_or_else(|| "UTC".to_owned()),
        input: wanted.input,
        thread_id: wanted.thread_id,
        metadata: wanted.metadata.unwrap_or_default(),
        misfire: wanted.misfire.map(Misfire::from).unwrap_or_default(),
        grace_seconds: wanted.grace_seconds.map_or(GRACE, |seconds| seconds as u64),
        if_busy: wanted.multitask_strategy.unwrap_or_default(),
        enabled: wanted.enabled.unwrap_or(true),
        until: wanted.ends_at.as_deref().map(|text| moment("ends_at", text)).transpose()?,
    };
    let definition = keep(&server, &new_id(), body, None).await?;
    Ok((StatusCode::CREATED, Json(ScheduleView::of(&server, &definition).await?)))
}

/// What of a schedule is changed.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ScheduleChange {
    /// When it comes
    cron: Option<String>,
    /// In which time zone
    zone: Option<String>,
    /// What its runs are given; null for nothing
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<Value>)]
    input: Option<Option<Value>>,
    /// What is kept with its runs
    #[schema(value_type = Option<Object>)]
    metadata: Option<Object>,
    /// Which of the times are made good that were missed
    misfire: Option<MisfireView>,
    /// How late a run may begin
    #[schema(minimum = 0, maximum = 31622400)]
    #[serde(default, deserialize_with = "extract::whole")]
    grace_seconds: Option<usize>,
    /// What is done if the thread is busy
    multitask_strategy: Option<IfBusy>,
    /// Whether it begins runs
    enabled: Option<bool>,
    /// Until when it counts; null for ever
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>, format = DateTime)]
    ends_at: Option<Option<String>>,
}

/// A member that was given, also if it is null.
pub(super) fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::<T>::deserialize(deserializer).map(Some)
}

/// Change a schedule
///
/// One that comes at other times, or is enabled again, makes good nothing that came before.
#[utoipa::path(
    patch, path = "/schedules/{schedule_id}", tag = "Schedules", security(("key" = ["operate"])),
    params(("schedule_id" = String, Path, description = "The schedule")),
    request_body = ScheduleChange, responses((status = 200, body = ScheduleView))
)]
async fn change(
    State(server): State<Server>,
    Path(id): Path<String>,
    extract::Json(wanted): extract::Json<ScheduleChange>,
) -> Result<Json<ScheduleView>, Problem> {
    let _changing = server.schedules().changing.lock().await;
    let before = find_made(&server, &id)?.body;
    let mut body = before.clone();
    body.cron = wanted.cron.unwrap_or(body.cron);
    body.zone = wanted.zone.unwrap_or(body.zone);
    body.input = wanted.input.unwrap_or(body.input);
    body.metadata = wanted.metadata.unwrap_or(body.metadata);
    body.misfire = wanted.misfire.map_or(body.misfire, Misfire::from);
    body.grace_seconds = wanted.grace_seconds.map_or(body.grace_seconds, |seconds| seconds as u64);
    body.if_busy = wanted.multitask_strategy.unwrap_or(body.if_busy);
    body.enabled = wanted.enabled.unwrap_or(body.enabled);
    if let Some(ends) = wanted.ends_at {
        body.until = ends.as_deref().map(|text| moment("ends_at", text)).transpose()?;
    }
    keep(&server, &id, body, Some(&before)).await?;
    Ok(Json(ScheduleView::of(&server, &find(&server, &id)?).await?))
}

/// Delete a schedule
///
/// Runs that it began go on.
#[utoipa::path(
    delete, path = "/schedules/{schedule_id}", tag = "Schedules", security(("key" = ["operate"])),
    params(("schedule_id" = String, Path, description = "The schedule")),
    responses((status = 204, description = "It is deleted"))
)]
async fn remove(State(server): State<Server>, Path(id): Path<String>) -> Result<StatusCode, Problem> {
    delete(&server, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn delete(server: &Server, id: &str) -> Result<(), Problem> {
    let _changing = server.schedules().changing.lock().await;
    find_made(server, id)?;
    server.store().delete_schedule(id)?;
    begin_all(server);
    Ok(())
}
