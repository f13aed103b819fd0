//! Following runs as streams of server-sent events, in which everything is told as it is.

use axum::Extension;
use axum::extract::{Path, State};
use axum::response::sse::Event;
use axum::response::{IntoResponse, Response};
use hotcell_runtime::{NumberedEntry, RunId, RunRecord};
use http::{HeaderMap, StatusCode};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::event_stream::{Seen, Telling, follow, seen, sse};
use super::extract;
use super::langgraph;
use super::new_run::{OnDisconnect, begin, located};
use super::params::Query;
use super::runs::AnyRun;
use crate::access::Asker;
use crate::leash::Leash;
use crate::live::Begun;
use crate::problem::Problem;
use crate::state::Server;
use crate::view::{EntryView, RunView};

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(create_and_stream)).routes(routes!(join))
}

/// Begin a run and follow it
///
/// See `GET /runs/{run_id}/stream`.
#[utoipa::path(
    post, path = "/runs/stream", tag = "Runs", security(("key" = ["run"])),
    request_body = AnyRun, responses((status = 200, content_type = "text/event-stream", body = String))
)]
async fn create_and_stream(
    State(server): State<Server>,
    Extension(caller): Extension<Asker>,
    extract::Json(wanted): extract::Json<AnyRun>,
) -> Result<Response, Problem> {
    let wanted = match wanted {
        AnyRun::Own(wanted) => wanted,
        AnyRun::Assistant(wanted) => {
            let started = langgraph::begin(&server, &caller, None, *wanted, true).await?;
            return langgraph::stream_of(&server, started).await;
        }
    };
    let on_disconnect = wanted.on_disconnect;
    let Begun { run, events, .. } = begin(&server, &caller, *wanted, true).await?;
    let leash = Leash::new(&server, &run, on_disconnect == Some(OnDisconnect::Cancel));
    let own = Own { server: server.clone(), run: run.clone() };
    Ok(located(&run, sse(&server, &run, 0, events, leash, own)))
}

/// Follow a run
///
/// Events of the kind `entry` are what was committed, each with an id; `live` is what happens meanwhile, without one; `end`, the
/// run as it stands, is the last one: it has ended, or waits for a person. With `Last-Event-ID`, what comes after that event.
/// There is nothing left (204) of a run that has ended and of which everything was seen.
#[utoipa::path(
    get, path = "/runs/{run_id}/stream", tag = "Runs", security(("key" = ["run", "operate"])),
    params(
        ("run_id" = String, Path, description = "The run"),
        ("Last-Event-ID" = Option<String>, Header, description = "The id of the last event that was seen"),
        ("after" = Option<u64>, Query, minimum = 0, description = "The number of the last entry that was seen"),
    ),
    responses(
        (status = 200, content_type = "text/event-stream", body = String),
        (status = 204, description = "The run has ended, and everything of it was seen"),
    )
)]
async fn join(
    State(server): State<Server>,
    Path(run): Path<String>,
    headers: HeaderMap,
    mut query: Query,
) -> Result<Response, Problem> {
    let after = query.number("after", 0, i64::MAX as u64)?;
    query.end()?;
    let record = server.runs().find(&run).await?;
    match seen(&server, &record, &headers, after).await? {
        Seen::All => Ok(StatusCode::NO_CONTENT.into_response()),
        Seen::Until(after) => {
            let own = Own { server: server.clone(), run: record.id.clone() };
            Ok(follow(&server, &record.id, after, false, own))
        }
    }
}

/// Everything, as it is.
struct Own {
    server: Server,
    run: RunId,
}

impl Telling for Own {
    fn begin(&mut self) -> Vec<Event> {
        Vec::new()
    }

    fn entry(&mut self, entry: &NumberedEntry) -> Vec<Event> {
        let view = EntryView::of(&self.run, entry);
        let text = serde_json::to_string(&view).unwrap_or_default();
        vec![Event::default().event("entry").id(view.event_id).data(text)]
    }

    fn live(&mut self, happened: &str) -> Vec<Event> {
        vec![Event::default().event("live").data(happened)]
    }

    async fn end(&mut self, run: &RunRecord) -> Result<Vec<Event>, Problem> {
        let view = RunView::of_record(run, self.server.agents());
        let text = serde_json::to_string(&view).unwrap_or_default();
        Ok(vec![Event::default().event("end").data(text)])
    }

    fn problem(&self, problem: &Problem) -> Event {
        Event::default().event("error").data(serde_json::to_string(problem).unwrap_or_default())
    }
}
