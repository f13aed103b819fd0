//! Several runs in one request, as clients of LangGraph ask for them.

use axum::extract::State;
use axum::{Extension, Json};
use hotcell_runtime::{HostError, RunId, RunQuery, RunStatus};
use http::StatusCode;
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::body::AssistantRun;
use super::runs::{AssistantRunView, begin, run_of};
use crate::access::Asker;
use crate::api::cancel::Ending;
use crate::api::params::{MOST, Query};
use crate::api::{agents, extract};
use crate::input::run_input;
use crate::once;
use crate::problem::Problem;
use crate::state::Server;
use crate::view::{Object, RunView};

/// Runs that one request may begin.
const MOST_BEGUN: usize = once::PARTS;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(batch)).routes(routes!(cancel))
}

/// Whether a run can be begun, as far as that is known before.
fn check(server: &Server, wanted: &AssistantRun) -> Result<(), Problem> {
    wanted.check()?;
    if wanted.resumes() {
        return Err(Problem::unprocessable(
            "`command.resume` needs a thread: only its last run can wait for an answer",
        ));
    }
    if let Some(url) = &wanted.webhook {
        server.webhooks().check(url)?;
    }
    let (_, agent) = server.agents().find(&wanted.assistant_id)?;
    let given = run_input(&agent, wanted.input.clone(), None, None, Object::new())?;
    Ok(given.check(&agent.graph).map_err(HostError::from)?)
}

/// Begin several runs without a thread
///
/// None is begun if one of them is refused. If there is no place for all, `begun` of the error names those that were begun.
#[utoipa::path(
    post, path = "/runs/batch", tag = "LangGraph", security(("key" = ["run"])),
    request_body = Vec<AssistantRun>, responses((status = 200, body = Vec<AssistantRunView>))
)]
async fn batch(
    State(server): State<Server>,
    Extension(caller): Extension<Asker>,
    extract::JsonList(all): extract::JsonList<AssistantRun>,
) -> Result<Json<Vec<AssistantRunView>>, Problem> {
    if !(1..=MOST_BEGUN).contains(&all.len()) {
        let detail = format!("a request begins from 1 to {MOST_BEGUN} runs, and not {}", all.len());
        return Err(Problem::unprocessable(detail));
    }
    for wanted in &all {
        check(&server, wanted)?;
    }
    let mut begun: Vec<RunId> = Vec::with_capacity(all.len());
    for (number, wanted) in all.into_iter().enumerate() {
        match once::part(number, begin(&server, &caller, None, wanted, false)).await {
            Ok(started) => begun.push(started.begun.run),
            Err(problem) => {
                let names: Vec<&str> = begun.iter().map(RunId::as_str).collect();
                return Err(problem.with("begun", names));
            }
        }
    }
    let mut views = Vec::with_capacity(begun.len());
    for run in begun {
        let record = server.runs().find(run.as_str()).await?;
        views.push(AssistantRunView::of(RunView::of_record(&record, server.agents())));
    }
    Ok(Json(views))
}

/// Which runs are cancelled.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RunsCancel {
    /// The thread of the runs
    thread_id: Option<String>,
    /// The runs; those that have ended are left as they are
    #[schema(min_items = 1, max_items = 1000)]
    run_ids: Option<Vec<String>>,
    /// In place of `run_ids`: all runs that stand so
    status: Option<CancelStatus>,
}

/// How runs stand that are cancelled.
#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum CancelStatus {
    /// Nobody works on them at the moment; they go on by themselves
    Pending,
    /// They are worked on
    Running,
    /// Both
    All,
}

impl CancelStatus {
    fn statuses(self) -> Vec<RunStatus> {
        match self {
            CancelStatus::Pending => vec![RunStatus::Interrupted],
            CancelStatus::Running => vec![RunStatus::Running],
            CancelStatus::All => vec![RunStatus::Interrupted, RunStatus::Running],
        }
    }
}

/// End several runs for good
///
/// Either those that are named, or all that stand in a certain way. `rollback` removes them, too, which needs the role `operate`.
#[utoipa::path(
    post, path = "/runs/cancel", tag = "LangGraph", security(("key" = ["run", "operate"])),
    params(
        ("wait" = Option<bool>, Query, description = "`true` to answer when nobody works on them any more"),
        ("action" = Option<String>, Query, description = "`interrupt` keeps them, `rollback` removes them"),
    ),
    request_body = RunsCancel, responses((status = 204, description = "They are cancelled"))
)]
async fn cancel(
    State(server): State<Server>,
    Extension(caller): Extension<Asker>,
    query: Query,
    extract::Json(wanted): extract::Json<RunsCancel>,
) -> Result<StatusCode, Problem> {
    let ending = Ending::of(query, &caller)?;
    let runs = match wanted {
        RunsCancel { thread_id, run_ids: Some(ids), status: None } => named(&server, thread_id.as_deref(), ids).await?,
        RunsCancel { thread_id, run_ids: None, status: Some(status) } => standing(&server, thread_id, status).await?,
        _ => return Err(Problem::unprocessable("give either `run_ids` or `status`")),
    };
    for run in runs {
        match ending.end(&server, &run).await {
            Err(problem) if problem.is_ended() || problem.status == 404 => {}
            ended => drop(ended?),
        }
    }
    Ok(StatusCode::NO_CONTENT)
}

async fn named(server: &Server, thread: Option<&str>, ids: Vec<String>) -> Result<Vec<RunId>, Problem> {
    if !(1..=MOST).contains(&ids.len()) {
        return Err(Problem::unprocessable(format!("`run_ids` has from 1 to {MOST} ids")));
    }
    let mut runs = Vec::with_capacity(ids.len());
    for id in ids {
        let run = match thread {
            Some(thread) => run_of(server, thread, &id).await?,
            None => server.runs().find(&id).await?,
        };
        runs.push(run.id);
    }
    Ok(runs)
}

async fn standing(server: &Server, thread: Option<String>, status: CancelStatus) -> Result<Vec<RunId>, Problem> {
    let (statuses, sources) = (status.statuses(), agents::sources(server, None)?);
    let mut query = RunQuery { statuses, sources, thread, limit: MOST, ..RunQuery::default() };
    let mut runs = Vec::new();
    loop {
        let page = server.runs().store().list(&query).await?;
        runs.extend(page.runs.into_iter().map(|run| run.id));
        query.after = page.next;
        if query.after.is_none() {
            return Ok(runs);
        }
    }
}
