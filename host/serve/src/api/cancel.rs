//! Ending runs for good.

use axum::extract::{Path, State};
use axum::{Extension, Json};
use hotcell_runtime::{RunId, RunRecord};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::params::{Query, bad};
use crate::access::Asker;
use crate::problem::{Problem, shown};
use crate::state::Server;
use crate::view::RunView;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(cancel))
}

/// How runs are ended.
#[derive(Clone, Copy)]
pub(super) struct Ending {
    /// Whether it is waited for until nobody works on them any more
    pub(super) waits: bool,
    /// Whether they are removed, too
    pub(super) removes: bool,
}

impl Ending {
    /// What a query says of it. Somebody who may not remove runs is refused.
    pub(super) fn of(mut query: Query, caller: &Asker) -> Result<Self, Problem> {
        let waits = query.flag("wait")?;
        let removes = match query.text("action").as_deref() {
            None | Some("interrupt") => false,
            Some("rollback") => true,
            Some(other) => {
                return Err(bad(format!("`action` is `interrupt` or `rollback`, and not `{}`", shown(other))));
            }
        };
        query.end()?;
        if removes {
            caller.may_remove_runs()?;
        }
        Ok(Ending { waits, removes })
    }

    /// Ends a run for good. Gives it as it stands then, or stood before it was removed.
    pub(super) async fn end(self, server: &Server, run: &RunId) -> Result<RunRecord, Problem> {
        let cancelled = server.runs().cancel(run).await?;
        if !self.waits && !self.removes {
            return Ok(cancelled);
        }
        server.runs().rest(run).await?;
        let record = server.runs().find(run.as_str()).await?;
        if self.removes {
            server.runs().delete(&record).await?;
        }
        Ok(record)
    }
}

/// End a run for good
///
/// What it does at this moment is stopped. `rollback` removes it, too, which needs the role `operate`.
#[utoipa::path(
    post, path = "/runs/{run_id}/cancel", tag = "Runs", security(("key" = ["run", "operate"])),
    params(
        ("run_id" = String, Path, description = "The run"),
        ("wait" = Option<bool>, Query, description = "`true` to answer when nobody works on it any more"),
        ("action" = Option<String>, Query, description = "`interrupt` keeps it, `rollback` removes it"),
    ),
    responses((status = 200, body = RunView))
)]
async fn cancel(
    State(server): State<Server>,
    Extension(caller): Extension<Asker>,
    Path(run): Path<String>,
    query: Query,
) -> Result<Json<RunView>, Problem> {
    let ending = Ending::of(query, &caller)?;
    let run = server.runs().find(&run).await?.id;
    let record = ending.end(&server, &run).await?;
    Ok(Json(RunView::of_record(&record, server.agents())))
}
