//! Going on with runs that rest.

use axum::Json;
use axum::extract::{Path, State};
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::extract;
use crate::problem::Problem;
use crate::runs::Again;
use crate::state::Server;
use crate::view::RunView;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(resume)).routes(routes!(retry))
}

/// Nothing is to be said about it.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct GoOn {}

/// Go on with a run that was interrupted or paused, or that waits
///
/// It goes on with what it was loaded from when it began.
#[utoipa::path(
    post, path = "/runs/{run_id}/resume", tag = "Runs", security(("key" = ["run", "operate"])),
    params(("run_id" = String, Path, description = "The run")),
    request_body = GoOn, responses((status = 200, body = RunView))
)]
async fn resume(
    State(server): State<Server>,
    Path(run): Path<String>,
    extract::Json(GoOn {}): extract::Json<GoOn>,
) -> Result<Json<RunView>, Problem> {
    go_on(&server, &run, Again::Resume).await
}

/// Go on with a run that failed, from where it failed
///
/// It goes on with what it was loaded from when it began.
#[utoipa::path(
    post, path = "/runs/{run_id}/retry", tag = "Runs", security(("key" = ["run", "operate"])),
    params(("run_id" = String, Path, description = "The run")),
    request_body = GoOn, responses((status = 200, body = RunView))
)]
async fn retry(
    State(server): State<Server>,
    Path(run): Path<String>,
    extract::Json(GoOn {}): extract::Json<GoOn>,
) -> Result<Json<RunView>, Problem> {
    go_on(&server, &run, Again::Retry).await
}

async fn go_on(server: &Server, run: &str, again: Again) -> Result<Json<RunView>, Problem> {
    server.runs().go_on(run, again).await?;
    let record = server.runs().find(run).await?;
    Ok(Json(RunView::of_record(&record, server.agents())))
}
