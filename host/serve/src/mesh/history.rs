//! Sessions and what was said in them.

use std::collections::HashMap;

use axum::Json;
use axum::extract::{Path, State};
use hotcell_runtime::RunId;
use serde_json::{Value, json};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::end_sessions;
use super::meshes::Mesh;
use super::outcome::Come;
use super::served::Served;
use super::session::{Status, standing};
use super::store::{Session, SessionRun, Turn};
use super::tenant::Tenant;
use crate::api::params::Query;
use crate::problem::{Problem, shown};
use crate::state::Server;
use crate::view::time;

/// The most that is shown of what came in.
const TURNS: u32 = 10_000;
/// What is begun in a session without that anybody says anything.
const OWN_KINDS: [&str; 3] = ["rerun", "wake_up", "escalation"];
/// How many sessions are listed where nothing is said.
pub(super) const SESSIONS: usize = 1000;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(history))
}

/// The session of that name.
pub(super) fn find(server: &Server, mesh: &Mesh, tenant: Tenant, id: &str) -> Result<Session, Problem> {
    let key = tenant.session(mesh, id)?;
    end_sessions(server, mesh)?;
    server.store().session(&key)?.ok_or_else(|| {
        Problem::not_found(format!("there is no session `{}`", shown(id)))
            .kind("unknown-session", "There is no such session")
    })
}

fn view(session: &Session, status: Status) -> Value {
    json!({
        "session_id": session.key.id, "status": status.as_str(), "created_at": time(session.created),
        "updated_at": time(session.updated),
    })
}

/// List the sessions of the mesh
///
/// The newest ones, the oldest of them first. `status` is `active`, `busy`, `paused`, `stopped` or `completed`.
#[utoipa::path(
    get, path = "/api/sessions/", tag = "Mesh", security(("key" = ["run", "answer", "operate", "administer"])),
    params(("limit" = Option<u64>, Query, minimum = 1, maximum = 1000, description = "How many at most")),
    responses((status = 200, body = Value))
)]
async fn list(
    State(server): State<Server>,
    Served(mesh): Served,
    tenant: Tenant,
    mut query: Query,
) -> Result<Json<Value>, Problem> {
    let limit = query.limit(SESSIONS)?;
    query.end()?;
    end_sessions(&server, &mesh)?;
    let mut sessions = Vec::new();
    for session in server.store().sessions(&mesh.own(&tenant.0), limit, false)? {
        let status = standing(&server, &session).await?.status;
        sessions.push(view(&session, status));
    }
    Ok(Json(json!({ "sessions": sessions })))
}

/// Show what came into a session
///
/// The last of it, as much as `limits.max_session_history_bytes` of the mesh has room for.
#[utoipa::path(
    get, path = "/api/sessions/{session_id}/history", tag = "Mesh",
    security(("key" = ["run", "answer", "operate", "administer"])),
    params(("session_id" = String, Path, description = "The session")), responses((status = 200, body = Value))
)]
async fn history(
    State(server): State<Server>,
    Served(mesh): Served,
    tenant: Tenant,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    let session = find(&server, &mesh, tenant, &id)?;
    let status = standing(&server, &session).await?.status;
    let turn_of = |turn: &Turn| json!({ "at": time(turn.at), "kind": turn.kind, "name": turn.name, "data": turn.data });
    let mut body = view(&session, status);
    let turns = server.store().turns(session.number, TURNS, mesh.settings.max_history_bytes)?;
    body["turns"] = turns.iter().filter(|turn| !OWN_KINDS.contains(&turn.kind.as_str())).map(turn_of).collect();
    Ok(Json(body))
}

/// The conversation of a session as models see it: what came in, and what came of it. No more of it than the agents of the mesh are told.
pub(super) async fn messages(server: &Server, mesh: &Mesh, session: &Session) -> Result<Vec<Value>, Problem> {
    let most = mesh.settings.agents.iter().filter_map(|agent| agent.history).max().unwrap_or(0);
    if most == 0 {
        return Ok(Vec::new());
    }
    let turns = server.store().turns(session.number, most, mesh.settings.max_history_bytes)?;
    let outputs: HashMap<RunId, SessionRun> =
        server.store().runs_of_session(session.number, most)?.into_iter().map(|run| (run.run.clone(), run)).collect();
    let mut messages = Vec::new();
    for (place, turn) in turns.iter().enumerate() {
        messages.push(json!({ "role": "user", "content": text(&turn.data) }));
        let is_last = turns.get(place + 1).is_none_or(|next| next.run != turn.run);
        let Some(run) = outputs.get(&turn.run).filter(|_| is_last) else { continue };
        let output = match &run.ended {
            Some(_) => run.output.clone(),
            None => output(server, &run.run).await?,
        };
        if let Some(output) = output.filter(|output| !output.is_null()) {
            messages.push(json!({ "role": "assistant", "content": text(&output) }));
        }
    }
    let mut left = mesh.settings.max_history_bytes as usize;
    let fits = messages.iter().rev().take_while(|message| {
        let bytes = message["content"].as_str().unwrap_or_default().len();
        let fits = bytes <= left;
        left = left.saturating_sub(bytes);
        fits
    });
    let fitting = fits.count();
    Ok(messages.split_off(messages.len() - fitting))
}

/// What the last agent of a run gave so far.
pub(super) async fn output(server: &Server, run: &RunId) -> Result<Option<Value>, Problem> {
    let mut come = Come::default();
    server.runs().store().history(run).await?.whole()?.iter().for_each(|entry| come.add(entry));
    Ok(come.output().cloned())
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
