//! Runs: beginning them, looking at them, ending them.

use axum::extract::{Path, State};
use axum::response::Response;
use axum::{Extension, Json};
use hotcell_runtime::{RunQuery, RunRecord, RunStatus};
use http::StatusCode;
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use serde_json::Value;
use utoipa::openapi::schema::{AnyOfBuilder, ObjectBuilder, Schema};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::langgraph::{self, AssistantRun};
use super::listed::Listed;
use super::new_run::{OnDisconnect, RunCreate, begin, located, result};
use super::params::Query;
use super::{agents, extract, page, reading};
use crate::access::Asker;
use crate::leash::Leash;
use crate::live::Begun;
use crate::problem::{Problem, shown};
use crate::state::Server;
use crate::view::{EntryView, Object, RunResult, RunView, StatusView};

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .routes(routes!(create, list))
        .routes(routes!(create_and_wait))
        .routes(routes!(search))
        .routes(routes!(get, delete))
        .routes(routes!(wait))
        .routes(routes!(entries))
}

/// A run that is to begin, as our own clients say it (`agent_id`) or as those of LangGraph do (`assistant_id`).
pub(super) enum AnyRun {
    Own(Box<RunCreate>),
    Assistant(Box<AssistantRun>),
}

impl<'de> Deserialize<'de> for AnyRun {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let body = Value::deserialize(deserializer)?;
        match body.get("assistant_id") {
            Some(_) => serde_json::from_value(body).map(Box::new).map(AnyRun::Assistant),
            None => serde_json::from_value(body).map(Box::new).map(AnyRun::Own),
        }
        .map_err(D::Error::custom)
    }
}

impl PartialSchema for AnyRun {
    fn schema() -> RefOr<Schema> {
        let own = Ref::from_schema_name(RunCreate::name());
        AnyOfBuilder::new().item(own).item(Ref::from_schema_name(AssistantRun::name())).into()
    }
}

impl ToSchema for AnyRun {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((RunCreate::name().into_owned(), RunCreate::schema()));
        schemas.push((AssistantRun::name().into_owned(), AssistantRun::schema()));
        RunCreate::schemas(schemas);
        AssistantRun::schemas(schemas);
    }
}

/// What came of a run, as whoever began it expects it.
#[derive(Serialize)]
#[serde(untagged)]
enum AnyResult {
    Own(Box<RunResult>),
    Values(Object),
}

impl PartialSchema for AnyResult {
    fn schema() -> RefOr<Schema> {
        let values = ObjectBuilder::new().description(Some("The state, for clients of LangGraph")).build();
        AnyOfBuilder::new().item(Ref::from_schema_name(RunResult::name())).item(values).into()
    }
}

impl ToSchema for AnyResult {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((RunResult::name().into_owned(), RunResult::schema()));
        RunResult::schemas(schemas);
    }
}

/// A run as it stands.
async fn view(server: &Server, run: &str) -> Result<RunView, Problem> {
    Ok(RunView::of_record(&server.runs().find(run).await?, server.agents()))
}

/// Begin a run
///
/// It is kept when this answers, and goes on by itself.
#[utoipa::path(
    post, path = "/runs", tag = "Runs", security(("key" = ["run"])),
    request_body = AnyRun, responses((status = 200, body = RunView))
)]
async fn create(
    State(server): State<Server>,
    Extension(caller): Extension<Asker>,
    extract::Json(wanted): extract::Json<AnyRun>,
) -> Result<Response, Problem> {
    let run = match wanted {
        AnyRun::Own(wanted) => begin(&server, &caller, *wanted, false).await?.run,
        AnyRun::Assistant(wanted) => {
            let run = langgraph::begin(&server, &caller, None, *wanted, false).await?.begun.run;
            let view = langgraph::AssistantRunView::of(view(&server, run.as_str()).await?);
            return Ok(located(&run, Json(view)));
        }
    };
    Ok(located(&run, Json(view(&server, run.as_str()).await?)))
}

/// Begin a run and wait for what comes of it
///
/// It answers when the run has ended, or waits for a person.
#[utoipa::path(
    post, path = "/runs/wait", tag = "Runs", security(("key" = ["run"])),
    request_body = AnyRun, responses((status = 200, body = AnyResult))
)]
async fn create_and_wait(
    State(server): State<Server>,
    Extension(caller): Extension<Asker>,
    extract::Json(wanted): extract::Json<AnyRun>,
) -> Result<Response, Problem> {
    let (begun, on_disconnect, is_assistant) = match wanted {
        AnyRun::Own(wanted) => {
            let on_disconnect = wanted.on_disconnect.unwrap_or_default();
            (begin(&server, &caller, *wanted, false).await?, on_disconnect, false)
        }
        AnyRun::Assistant(wanted) => {
            let started = langgraph::begin(&server, &caller, None, *wanted, false).await?;
            (started.begun, started.on_disconnect, true)
        }
    };
    let Begun { run, live, .. } = begun;
    let mut leash = Leash::new(&server, &run, on_disconnect == OnDisconnect::Cancel);
    let result = result(&server, &run, Some(live)).await;
    leash.let_go();
    let result = match is_assistant {
        true => AnyResult::Values(langgraph::values(result?)),
        false => AnyResult::Own(Box::new(result?)),
    };
    Ok(located(&run, Json(result)))
}

/// A page of runs.
#[derive(Serialize, ToSchema)]
struct RunPage {
    /// The runs, the newest first
    runs: Vec<RunView>,
    /// Where the next page begins, for `after`; none if there are no more
    next: Option<String>,
}

/// What a run stands like that is wanted; empty for any.
pub(super) fn statuses(query: &mut Query) -> Result<Vec<RunStatus>, Problem> {
    let Some(status) = query.text("status") else { return Ok(Vec::new()) };
    let known = serde_json::from_value::<StatusView>(Value::String(status.clone()));
    let known = known.map_err(|_| super::params::bad(format!("there is no status `{}`", shown(&status))))?;
    Ok(known.statuses())
}

/// What a run stands like that is wanted, in hotcell's own words.
fn standings(words: &str) -> Result<Vec<RunStatus>, Problem> {
    let known = |word: &str| {
        RunStatus::from_word(word).ok_or_else(|| {
            let all = RunStatus::ALL.map(RunStatus::as_str).join(", ");
            super::params::bad(format!("`standing` cannot be `{}`; it is one of {all}", shown(word)))
        })
    };
    words.split(',').map(known).collect()
}

/// List runs, the newest first
#[utoipa::path(
    get, path = "/runs", tag = "Runs", security(("key" = ["run", "operate"])),
    params(
        ("agent_id" = Option<String>, Query, description = "Only runs of this agent"),
        ("thread_id" = Option<String>, Query, description = "Only runs of this thread"),
        ("status" = Option<StatusView>, Query, description = "Only runs that stand so"),
        ("standing" = Option<String>, Query, description = "Only runs that stand so, in hotcell's own words; several with commas between them"),
        ("text" = Option<String>, Query, description = "Only runs with these words in their input, their result or the name of their agent"),
        ("limit" = Option<u64>, Query, minimum = 1, maximum = 1000, description = "How many at most"),
        ("after" = Option<String>, Query, description = "Where the page begins: `next` of the page before"),
    ),
    responses((status = 200, body = RunPage))
)]
async fn list(State(server): State<Server>, mut query: Query) -> Result<Json<RunPage>, Problem> {
    let sources = agents::sources(&server, query.text("agent_id").as_deref())?;
    let mut wanted = RunQuery { limit: query.limit(50)?, sources, ..RunQuery::default() };
    wanted.statuses = statuses(&mut query)?;
    if let Some(words) = query.text("standing") {
        let standing = standings(&words)?;
        wanted.statuses = match wanted.statuses.is_empty() {
            true => standing,
            false => standing.into_iter().filter(|status| wanted.statuses.contains(status)).collect(),
        };
        if wanted.statuses.is_empty() {
            return Ok(Json(RunPage { runs: Vec::new(), next: None }));
        }
    }
    wanted.thread = query.text("thread_id");
    wanted.text = query.text("text");
    wanted.after = query.text("after");
    query.end()?;
    let page = server.runs().store().list(&wanted).await?;
    let runs = page.runs.iter().map(|run| RunView::of_summary(run, server.agents())).collect();
    Ok(Json(RunPage { runs, next: page.next }))
}

/// Which runs are wanted.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RunSearch {
    /// Only runs of this agent
    agent_id: Option<String>,
    /// Only runs of this thread
    thread_id: Option<String>,
    /// Only runs that stand so
    status: Option<StatusView>,
    /// How many at most
    #[schema(minimum = 1, maximum = 1000, default = 10)]
    #[serde(default, deserialize_with = "extract::whole")]
    limit: Option<usize>,
    /// How many are left out before the first one; `GET /runs` goes from page to page for less
    #[schema(minimum = 0, maximum = 10000, default = 0)]
    #[serde(default, deserialize_with = "extract::whole")]
    offset: Option<usize>,
}

/// Find runs, the newest first
#[utoipa::path(
    post, path = "/runs/search", tag = "Runs", security(("key" = ["run", "operate"])),
    request_body = RunSearch, responses((status = 200, body = Vec<RunView>))
)]
async fn search(
    State(server): State<Server>,
    extract::Json(wanted): extract::Json<RunSearch>,
) -> Result<Json<Vec<RunView>>, Problem> {
    let (limit, offset) = page::bounds(wanted.limit, wanted.offset)?;
    let sources = agents::sources(&server, wanted.agent_id.as_deref())?;
    let mut query = RunQuery { limit: limit + offset, sources, thread: wanted.thread_id, ..RunQuery::default() };
    query.statuses = wanted.status.map(StatusView::statuses).unwrap_or_default();
    let page = server.runs().store().list(&query).await?;
    Ok(Json(page.runs.iter().skip(offset).map(|run| RunView::of_summary(run, server.agents())).collect()))
}

/// Look at a run
#[utoipa::path(
    get, path = "/runs/{run_id}", tag = "Runs", security(("key" = ["run", "operate"])),
    params(("run_id" = String, Path, description = "The run")),
    responses((status = 200, body = RunView))
)]
async fn get(State(server): State<Server>, Path(run): Path<String>) -> Result<Json<RunView>, Problem> {
    Ok(Json(view(&server, &run).await?))
}

/// Remove a run that has ended
#[utoipa::path(
    delete, path = "/runs/{run_id}", tag = "Runs", security(("key" = ["operate"])),
    params(("run_id" = String, Path, description = "The run")),
    responses((status = 204, description = "It is removed"))
)]
async fn delete(State(server): State<Server>, Path(run): Path<String>) -> Result<StatusCode, Problem> {
    let record: RunRecord = server.runs().find(&run).await?;
    server.runs().delete(&record).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Wait for what comes of a run
///
/// It answers when the run has ended, or waits for a person.
#[utoipa::path(
    get, path = "/runs/{run_id}/wait", tag = "Runs", security(("key" = ["run", "operate"])),
    params(("run_id" = String, Path, description = "The run")),
    responses((status = 200, body = RunResult))
)]
async fn wait(State(server): State<Server>, Path(run): Path<String>) -> Result<Json<RunResult>, Problem> {
    let run = server.runs().find(&run).await?.id;
    let live = server.runs().live(&run);
    Ok(Json(result(&server, &run, live).await?))
}

/// A page of the entries of a run.
#[derive(Serialize, ToSchema)]
struct EntryPage {
    /// The entries, in their order
    entries: Vec<EntryView>,
    /// The last of them, for `after` of the next page; none if there are no more at the moment
    next: Option<u64>,
    /// How the run stands
    status: StatusView,
}

/// List the entries of a run: everything that was committed of it
#[utoipa::path(
    get, path = "/runs/{run_id}/entries", tag = "Runs", security(("key" = ["run", "operate"])),
    params(
        ("run_id" = String, Path, description = "The run"),
        ("after" = Option<u64>, Query, minimum = 0, description = "Only entries after the one with this number"),
        ("limit" = Option<u64>, Query, minimum = 1, maximum = 1000, description = "How many at most"),
    ),
    responses((status = 200, body = EntryPage))
)]
async fn entries(
    State(server): State<Server>,
    Path(run): Path<String>,
    mut query: Query,
) -> Result<Json<EntryPage>, Problem> {
    let after = query.number("after", 0, i64::MAX as u64)?.unwrap_or(0);
    let limit = query.limit(100)?;
    query.end()?;
    let run = server.runs().find(&run).await?.id;
    let mut entries = Listed::new();
    let mut last = after;
    loop {
        let wanted = (limit - entries.len()).min(reading::AT_ONCE);
        let page = server.runs().store().entries(&run, last, wanted).await?;
        let is_whole = page.is_last;
        let mut is_full = false;
        for entry in &page.entries {
            // The next page begins with what has no room.
            if entries.push(EntryView::of(&run, entry)).is_err() {
                is_full = true;
                break;
            }
            last = entry.number;
        }
        if is_full || is_whole || entries.len() == limit {
            let next = (is_full || !is_whole).then_some(last);
            return Ok(Json(EntryPage { entries: entries.into_all(), next, status: StatusView::of(page.status) }));
        }
    }
}
