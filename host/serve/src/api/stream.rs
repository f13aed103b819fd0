//! Runs as streams of server-sent events.
//!
//! Each entry of the run is an event with an id, as soon as it is committed. A client that comes back with the last id that it saw
//! (`Last-Event-ID`, which browsers send by themselves) gets what comes after it: it misses nothing, and gets nothing twice.
//! What is not committed (a node that begins, a piece of a model's text) is told in between without an id, to those who listen
//! at that moment; a client that does not keep up gets less of that, and costs nobody anything.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::future::BoxFuture;
use futures::{FutureExt as _, Stream, stream};
use hotcell_runtime::{JournalError, NumberedEntry, RunId};
use http::{HeaderMap, StatusCode};
use tokio::sync::broadcast::{self, error::RecvError, error::TryRecvError};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::extract;
use super::params::{Query, bad};
use super::runs::{OnDisconnect, RunCreate, begin, located};
use crate::follow::Follower;
use crate::leash::Leash;
use crate::live::Begun;
use crate::problem::{Problem, shown};
use crate::state::Server;
use crate::view::{EntryView, RunView};

/// How often a stream without events shows that it lives.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);

/// How long a stream may go on when the server closes.
const LAST_WORDS: Duration = Duration::from_secs(1);

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(create_and_stream)).routes(routes!(join))
}

/// Begin a run and follow it
///
/// See `GET /runs/{run_id}/stream`.
#[utoipa::path(
    post, path = "/runs/stream", tag = "Runs", security(("key" = ["run"])),
    request_body = RunCreate, responses((status = 200, content_type = "text/event-stream", body = String))
)]
async fn create_and_stream(
    State(server): State<Server>,
    extract::Json(wanted): extract::Json<RunCreate>,
) -> Result<Response, Problem> {
    let on_disconnect = wanted.on_disconnect;
    let Begun { run, events, .. } = begin(&server, wanted, true).await?;
    let leash = Leash::new(&server, &run, on_disconnect == Some(OnDisconnect::Cancel));
    Ok(located(&run, sse(&server, &run, 0, events, leash)))
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
    let run = record.id;
    let seen = match (last_event(&headers, &run)?, after) {
        (Some(_), Some(_)) => return Err(bad("give `Last-Event-ID` or `after`, not both")),
        (seen, after) => seen.or(after),
    };
    if let Some(seen) = seen
        && record.status.is_final()
        && server.runs().store().entries(&run, seen, 1).await?.entries.is_empty()
    {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let live = server.runs().live(&run).map(|live| live.events());
    Ok(sse(&server, &run, seen.unwrap_or(0), live, Leash::new(&server, &run, false)).into_response())
}

/// The number of the last event that a client saw.
fn last_event(headers: &HeaderMap, run: &RunId) -> Result<Option<u64>, Problem> {
    let Some(id) = headers.get("last-event-id") else { return Ok(None) };
    let id = id.to_str().unwrap_or_default();
    let number = match id.rsplit_once(':') {
        Some((of, number)) if of == run.as_str() => number,
        Some(_) => return Err(bad(format!("the event `{}` is not one of run `{run}`", shown(id)))),
        None => id,
    };
    number.parse().map(Some).map_err(|_| bad(format!("there is no event `{}`", shown(id))))
}

/// A step of somebody who follows a run, which goes on while other things happen.
type Step = BoxFuture<'static, (Follower, Result<Option<Vec<NumberedEntry>>, JournalError>)>;

/// A client that follows a run.
struct Streaming {
    server: Server,
    run: RunId,
    /// None when everything was read
    step: Option<Step>,
    /// None when nothing more will happen
    live: Option<broadcast::Receiver<Arc<str>>>,
    ready: VecDeque<Event>,
    leash: Leash,
}

fn step(mut follower: Follower) -> Step {
    async move {
        let read = follower.next().await;
        (follower, read)
    }
    .boxed()
}

pub(super) fn sse(
    server: &Server,
    run: &RunId,
    after: u64,
    live: Option<broadcast::Receiver<Arc<str>>>,
    leash: Leash,
) -> Sse<impl Stream<Item = Result<Event, Infallible>> + use<>> {
    let streaming = Streaming {
        server: server.clone(),
        run: run.clone(),
        step: Some(step(server.runs().follow(run.clone(), after))),
        live,
        ready: VecDeque::new(),
        leash,
    };
    // Runs of this server rest when it closes, and whoever follows one is told how it ended. What other processes work on would
    // keep it open.
    let closing = server.closing().clone();
    let closed = async move {
        closing.cancelled().await;
        tokio::time::sleep(LAST_WORDS).await;
    };
    let events = stream::unfold(streaming, async |mut streaming| {
        let event = streaming.next().await?;
        Some((Ok(event), streaming))
    });
    let events = futures::StreamExt::take_until(events, Box::pin(closed));
    Sse::new(events).keep_alive(KeepAlive::new().interval(SIGN_OF_LIFE))
}

impl Streaming {
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            let step = self.step.as_mut()?;
            tokio::select! {
                // What is committed comes before what happens after it.
                biased;
                (follower, read) = step => self.read(follower, read).await,
                happened = happened(&mut self.live) => match happened {
                    Some(text) => return Some(live_event(text)),
                    None => self.live = None,
                },
            }
        }
    }

    async fn read(&mut self, follower: Follower, read: Result<Option<Vec<NumberedEntry>>, JournalError>) {
        self.step = None;
        let problem = match read {
            Ok(Some(entries)) => {
                self.ready.extend(entries.iter().map(|entry| {
                    let view = EntryView::of(&self.run, entry);
                    let text = serde_json::to_string(&view).unwrap_or_default();
                    Event::default().event("entry").id(view.event_id).data(text)
                }));
                self.step = Some(self::step(follower));
                return;
            }
            Ok(None) => {
                self.leash.let_go();
                // What happened before the run rested was told before that, and nobody may have looked yet.
                self.ready.extend(happened_so_far(&mut self.live).map(live_event));
                match self.server.runs().find(self.run.as_str()).await {
                    Ok(record) => {
                        let view = RunView::of_record(&record, self.server.agents());
                        let text = serde_json::to_string(&view).unwrap_or_default();
                        self.ready.push_back(Event::default().event("end").data(text));
                        return;
                    }
                    Err(problem) => problem,
                }
            }
            Err(error) => error.into(),
        };
        let text = serde_json::to_string(&problem).unwrap_or_default();
        self.ready.push_back(Event::default().event("error").data(text));
    }
}

/// What happens next and is not committed. None when nothing more will.
async fn happened(live: &mut Option<broadcast::Receiver<Arc<str>>>) -> Option<Arc<str>> {
    match live {
        Some(live) => loop {
            match live.recv().await {
                Ok(text) => return Some(text),
                // The client was too slow for it.
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return None,
            }
        },
        None => std::future::pending().await,
    }
}

/// What has happened, is not committed, and was not told yet: no more than is kept.
fn happened_so_far(live: &mut Option<broadcast::Receiver<Arc<str>>>) -> impl Iterator<Item = Arc<str>> {
    std::iter::from_fn(|| {
        let live = live.as_mut()?;
        loop {
            match live.try_recv() {
                Ok(text) => return Some(text),
                Err(TryRecvError::Lagged(_)) => {}
                Err(TryRecvError::Empty | TryRecvError::Closed) => return None,
            }
        }
    })
}

fn live_event(text: Arc<str>) -> Event {
    Event::default().event("live").data(text)
}
