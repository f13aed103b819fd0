//! Calls of entry points: one reply, or a stream of events.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::stream;
use hotcell_runtime::leafmesh::AgentKind;
use hotcell_runtime::{Entry, Fact, RunId, RunStatus};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Mesh;
use super::begin::{At, Started, Task, admit, begin, check_system};
use super::outcome::Come;
use super::reply::{Refused, documented};
use super::served::Served;
use super::tenant::Tenant;
use crate::api::extract::Json;
use crate::happenings::{Happenings, Heard};
use crate::leash::Leash;
use crate::problem::Problem;
use crate::state::Server;

/// Events that a client may be behind.
const BEHIND: usize = 256;
/// How often a stream without events shows that it lives.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .routes(routes!(request))
        .routes(routes!(mesh_call))
        .routes(routes!(stream))
        .routes(routes!(entry_points))
}

/// A call of an entry point.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct MeshRequest {
    /// The entry point
    entry_point: String,
    /// What its agent is given
    #[serde(default)]
    data: Map<String, Value>,
    /// The session; a new one if it is left out
    session_id: Option<String>,
}

/// A name for a session that has none.
pub(super) fn new_session() -> String {
    let bits: u128 = rand::random();
    format!("{bits:032x}")
}

/// Call an entry point of the mesh
///
/// The reply comes when everything is over that was begun, when a person is asked, or, from a `dual` agent, as soon as that agent is done.
#[utoipa::path(
    post, path = "/api/mesh/request", tag = "Mesh", security(("key" = ["run"])), request_body = MeshRequest,
    responses((status = 200, body = Value, description = "`status`, `output` and `outputs`"))
)]
async fn request(
    State(server): State<Server>,
    Served(mesh): Served,
    tenant: Tenant,
    Json(given): Json<MeshRequest>,
) -> Result<Response, Refused> {
    let mesh = &mesh;
    let (started, is_dual) = call(&server, mesh, tenant, given, false).await?;
    Ok(documented(StatusCode::OK, reply(&server, mesh, &started, is_dual).await?))
}

/// Call an entry point of the mesh, as examples of the language do
///
/// The same as `/api/mesh/request`.
#[utoipa::path(
    post, path = "/api/mesh/call", tag = "Mesh", security(("key" = ["run"])), request_body = MeshRequest,
    responses((status = 200, body = Value, description = "`status`, `output` and `outputs`"))
)]
async fn mesh_call(
    at: State<Server>,
    mesh: Served,
    tenant: Tenant,
    given: Json<MeshRequest>,
) -> Result<Response, Refused> {
    request(at, mesh, tenant, given).await
}

/// Begins what a request asks for. Says whether whoever asked is answered as soon as the first agent is done.
async fn call(
    server: &Server,
    mesh: &Mesh,
    tenant: Tenant,
    given: MeshRequest,
    listens: bool,
) -> Result<(Started, bool), Refused> {
    check_system(server, mesh)?;
    let key = tenant.session(mesh, &given.session_id.unwrap_or_else(new_session))?;
    let data = Value::Object(given.data);
    admit(mesh, &given.entry_point, &data)?;
    let is_dual = is_dual(mesh, &given.entry_point);
    let _session = mesh.doing.sessions.lock(&key).await;
    let at = At::Entry { name: given.entry_point, data };
    let started = begin(server, mesh, Task { key, kind: "request", at, is_beside: false, once: None }, listens).await?;
    Ok((started, is_dual))
}

/// Whether the agent of an entry point answers before the work is done that follows it.
pub(super) fn is_dual(mesh: &Mesh, entry: &str) -> bool {
    let target = mesh.settings.entry_point(entry).and_then(|entry| mesh.settings.agent(&entry.target));
    target.is_some_and(|agent| agent.answers_first)
}

/// Whether everybody who goes on after an agent is a person.
fn are_people(mesh: &Mesh, next: &[String]) -> bool {
    next.iter().all(|name| mesh.settings.agent(name).is_some_and(|agent| agent.kind == AgentKind::Human))
}

/// Whether an entry is the moment at which whoever called an entry point is answered, and with which status.
fn answered_at(mesh: &Mesh, entry: &Entry, is_dual: bool) -> Option<&'static str> {
    match &entry.fact {
        Fact::Asked { question, .. } if question.is_for_users() => Some("waiting_human"),
        Fact::Completed(completed) if is_dual && entry.place.around().is_none() && completed.failure.is_none() => {
            let next = completed.next.as_deref().unwrap_or_default();
            let is_agent = mesh.settings.agent(&completed.node).is_some();
            (is_agent && !next.is_empty() && !are_people(mesh, next)).then_some("accepted")
        }
        _ => None,
    }
}

/// What is said of a run that rests.
pub(super) fn word(status: RunStatus) -> &'static str {
    match status {
        RunStatus::Completed => "completed",
        RunStatus::Failed => "error",
        RunStatus::Stopped => "stopped",
        RunStatus::Waiting => "waiting_human",
        RunStatus::Cancelled => "cancelled",
        RunStatus::Paused => "paused",
        RunStatus::Running | RunStatus::Interrupted => "accepted",
    }
}

/// Waits for what whoever called an entry point is answered with.
pub(super) async fn reply(server: &Server, mesh: &Mesh, started: &Started, is_dual: bool) -> Result<Value, Problem> {
    let (run, session) = (&started.begun.run, &started.session.key.id);
    let (mut come, mut follower) = (Come::default(), server.runs().follow(run.clone(), 0));
    while let Some(entries) = follower.next().await? {
        let mut status = None;
        for numbered in &entries {
            come.add(&numbered.entry);
            status = status.or_else(|| answered_at(mesh, &numbered.entry, is_dual));
        }
        if let Some(status) = status {
            let is_over = entries.iter().any(|numbered| matches!(numbered.entry.fact, Fact::Ended { .. }));
            if !is_over {
                return Ok(come.reply(session, run.as_str(), status));
            }
        }
    }
    Ok(come.reply(session, run.as_str(), rests_as(server, run).await?))
}

/// What is said of a run that rests: one that waits for the callbacks of connectors, or for whoever runs the server, goes on without anybody
/// here.
async fn rests_as(server: &Server, run: &RunId) -> Result<&'static str, Problem> {
    let record = server.runs().find(run.as_str()).await?;
    if record.status == RunStatus::Waiting {
        let questions = server.runs().questions(run).await?;
        if !questions.iter().any(|open| open.question.is_for_users()) {
            return Ok("accepted");
        }
    }
    Ok(word(record.status))
}

/// Call an entry point and follow what happens
///
/// Server-sent events: `start`, `token` with pieces of models' texts, `agent` with what agents do, and in the end `result` or `error`.
/// Whoever leaves the stream cancels what it began.
#[utoipa::path(
    post, path = "/api/mesh/stream", tag = "Mesh", security(("key" = ["run"])), request_body = MeshRequest,
    responses((status = 200, content_type = "text/event-stream", description = "The events"))
)]
async fn stream(
    State(server): State<Server>,
    Served(mesh): Served,
    tenant: Tenant,
    Json(given): Json<MeshRequest>,
) -> Result<Response, Refused> {
    let (started, _) = call(&server, &mesh, tenant, given, true).await?;
    let (events, receiver) = mpsc::channel(BEHIND);
    let leash = Leash::new(&server, &started.begun.run, true);
    tokio::spawn(tell(server.clone(), mesh, started, events, leash));
    let events =
        stream::unfold(receiver, async |mut receiver| Some((Ok::<_, Infallible>(receiver.recv().await?), receiver)));
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(SIGN_OF_LIFE)).into_response())
}

fn event(name: &str, data: &Value) -> Event {
    Event::default().event(name).data(data.to_string())
}

/// Tells a client what happens in a run until it rests, or the client is gone.
async fn tell(server: Server, mesh: Arc<Mesh>, mut started: Started, events: mpsc::Sender<Event>, mut leash: Leash) {
    let run = started.begun.run.clone();
    let session = started.session.key.id.clone();
    let told = tokio::select! {
        told = follow(&server, &mesh, &run, &session, started.begun.events.take(), &events) => told,
        () = events.closed() => return,
    };
    leash.let_go();
    let last = match told {
        Ok(result) => event("result", &result),
        Err(problem) => event("error", &serde_json::to_value(&problem).unwrap_or_default()),
    };
    let _ = events.send(last).await;
}

async fn follow(
    server: &Server,
    mesh: &Mesh,
    run: &RunId,
    session: &str,
    heard: Option<Heard>,
    events: &mpsc::Sender<Event>,
) -> Result<Value, Problem> {
    let send = async |name: &str, data: Value| {
        let _ = events.send(event(name, &data)).await;
    };
    send("start", json!({ "session_id": session, "run_id": run.as_str() })).await;
    let (mut come, mut follower) = (Come::default(), server.runs().follow(run.clone(), 0));
    let mut happenings = Happenings::new(heard, 0);
    let tell = async |happened: &str| {
        if let Some((name, data)) = shown(mesh, happened) {
            send(name, data).await;
        }
    };
    loop {
        let entries = {
            let next = follower.next();
            tokio::pin!(next);
            loop {
                tokio::select! {
                    happened = happenings.next() => tell(&happened).await,
                    entries = &mut next => break entries?,
                }
            }
        };
        let Some(entries) = entries else { break };
        if entries.is_empty() {
            for begun in happenings.caught_up() {
                tell(&begun).await;
            }
        }
        for numbered in &entries {
            for happened in happenings.before(&numbered.entry) {
                tell(&happened).await;
            }
            come.add(&numbered.entry);
            if let Fact::Completed(completed) = &numbered.entry.fact
                && numbered.entry.place.around().is_none()
                && mesh.settings.agent(&completed.node).is_some()
            {
                let status = if completed.failure.is_some() { "failed" } else { "completed" };
                send("agent", json!({ "name": completed.node, "status": status })).await;
            }
        }
    }
    for happened in happenings.rest() {
        tell(&happened).await;
    }
    Ok(come.reply(session, run.as_str(), rests_as(server, run).await?))
}

/// What is told of something that happened.
fn shown(mesh: &Mesh, text: &str) -> Option<(&'static str, Value)> {
    let happened: Value = serde_json::from_str(text).ok()?;
    let agent = happened["node"].as_str().filter(|name| mesh.settings.agent(name).is_some())?.to_owned();
    let mut innermost = &happened;
    while let Some(within) = innermost.get("within").filter(|within| within.is_object()) {
        innermost = within;
    }
    match innermost["event"].as_str()? {
        "model_text" => Some(("token", json!({ "agent": agent, "delta": innermost["text"] }))),
        "node_started" if std::ptr::eq(innermost, &happened) => {
            Some(("agent", json!({ "name": agent, "status": "started" })))
        }
        _ => None,
    }
}

/// List the entry points of the mesh
#[utoipa::path(
    get, path = "/api/mesh/entry_points", tag = "Mesh", security(("key" = ["run", "answer", "operate", "administer"])),
    responses((status = 200, body = Value))
)]
async fn entry_points(Served(mesh): Served) -> Result<axum::Json<Value>, Problem> {
    let entries: Vec<Value> = mesh
        .settings
        .entry_points
        .iter()
        .map(|entry| {
            json!({
                "name": entry.name, "target": entry.target, "description": entry.description, "condition": entry.condition,
            })
        })
        .collect();
    Ok(axum::Json(json!({ "entry_points": entries })))
}
