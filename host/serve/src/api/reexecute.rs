//! Executing the recorded calls of a run again.

use axum::Json;
use axum::extract::{Path, State};
use hotcell_runtime::{Again, CallReexecuted, EntryPath, ReexecuteError, call_json, tally_json};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{extract, page};
use crate::problem::Problem;
use crate::state::Server;

/// Bytes of the longest place.
const LONGEST: usize = 1024;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(reexecute))
}

/// Which calls are to be executed again.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Reexecute {
    /// The place of one call, such as `7`, or of everything within it; all calls without it
    #[schema(max_length = 1024)]
    place: Option<String>,
    /// How many calls are listed at most; all of them count
    #[schema(minimum = 1, maximum = 1000, default = 10)]
    #[serde(default, deserialize_with = "extract::whole")]
    limit: Option<usize>,
}

/// What came of it.
#[derive(Serialize, ToSchema)]
struct Reexecuted {
    /// The calls, in the order in which they were recorded: `place`, `number`, `name`, `call`, and a `result` that is `same`, `different`,
    /// `other_fuel`, `asks_more`, `left_out` or `unusable`, with what belongs to it
    #[schema(value_type = Vec<Object>)]
    calls: Vec<Value>,
    /// How many calls came to what: `calls`, `same`, `different`, `asks_more`, `left_out`, `unusable`, and the fuel that was recorded and used
    /// now
    #[schema(value_type = Object)]
    summary: Value,
}

/// Execute the recorded calls of a run again, and compare output and fuel
///
/// Each call runs in a fresh cell, with the component and script that ran it. What it took from the host comes from the recording: no
/// network, store, model or clock is used. It counts as a run that is begun, and its fuel as that of one.
#[utoipa::path(
    post, path = "/runs/{run_id}/reexecute", tag = "Runs", security(("key" = ["operate"])),
    params(("run_id" = String, Path, description = "The run")),
    request_body = Reexecute, responses((status = 200, body = Reexecuted))
)]
async fn reexecute(
    State(server): State<Server>,
    Path(run): Path<String>,
    extract::Json(wanted): extract::Json<Reexecute>,
) -> Result<Json<Reexecuted>, Problem> {
    let run = server.runs().find(&run).await?.id;
    let (limit, _) = page::bounds(wanted.limit, None)?;
    if wanted.place.as_ref().is_some_and(|place| place.len() > LONGEST) {
        return Err(Problem::unprocessable(format!("`place` has more than {LONGEST} bytes")));
    }
    let place = wanted.place.map(EntryPath::from);
    if server.runs().is_draining() {
        return Err(Problem::unavailable("the server is shutting down; nothing was executed"));
    }
    server.quotas().may_begin(server.clock().now())?;
    let Some(_place) = server.reexecuting().take() else {
        let detail = "the server executes the calls of other runs again; ask again later";
        return Err(Problem::unavailable(detail).kind("too-many-runs", "The server is busy"));
    };
    let (host, quotas, now) = (server.runs().host(), server.quotas(), server.clock().now());
    quotas.begin(now)?;
    let mut calls = Vec::new();
    let mut told = |call: CallReexecuted| {
        if let Again::Same { fuel } | Again::Different { fuel: (_, fuel), .. } = &call.again {
            quotas.count_fuel(*fuel, now);
        }
        if calls.len() < limit {
            calls.push(call_json(&run, &call));
        }
    };
    let tally = host.reexecute(&mut host.finder(), &run, place.as_ref(), &mut told).await;
    let tally = tally.map_err(|error| match error {
        ReexecuteError::Journal(error) => error.into(),
        ReexecuteError::NothingRecorded(_) => {
            let detail = format!("run `{run}` has no recorded calls: it called no cell, or nothing was recorded");
            Problem::conflict(detail).kind("nothing-recorded", "Nothing is recorded")
        }
        ReexecuteError::NoSuchPlace { .. } => Problem::unprocessable(format!("run `{run}` has nothing at that place")),
        ReexecuteError::NoCall { .. } => {
            Problem::unprocessable("what the run did at that place is not a sealed call, or was not recorded")
        }
    })?;
    Ok(Json(Reexecuted { calls, summary: tally_json(&tally) }))
}
