//! Sessions and what was said in them.

use std::collections::HashMap;

use axum::Json;
use axum::extract::{Path, State};
use hotcell_runtime::RunId;
use serde_json::{Value, json};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::outcome::Come;
use super::session::{Status, standing};
use super::store::{Session, SessionRun, Turn};
use super::tenant::Tenant;
use crate::problem::{Problem, shown};
use crate::state::Server;
use crate::view::time;

/// The most that is shown of what came in.
const TURNS: u32 = 10_000;
/// The most of it of which the messages of a conversation are made.
const MESSAGES: u32 = 200;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(history))
}

/// The session of that name.
pub(super) fn find(server: &Server, tenant: Tenant, id: &str) -> Result<Session, Problem> {
    let key = tenant.session(id)?;
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
/// `status` is `active`, `busy`, `paused`, `stopped` or `completed`.
#[utoipa::path(
    get, path = "/api/sessions/", tag = "Mesh", security(("key" = ["run", "answer", "operate", "administer"])),
    responses((status = 200, body = Value))
)]
async fn list(State(server): State<Server>, tenant: Tenant) -> Result<Json<Value>, Problem> {
    server.meshes().only()?;
    let mut sessions = Vec::new();
    for session in server.store().sessions(&tenant.0)? {
        let status = standing(&server, &session).await?.status;
        sessions.push(view(&session, status));
    }
    Ok(Json(json!({ "sessions": sessions })))
}

/// Show what came into a session
#[utoipa::path(
    get, path = "/api/sessions/{session_id}/history", tag = "Mesh",
    security(("key" = ["run", "answer", "operate", "administer"])),
    params(("session_id" = String, Path, description = "The session")), responses((status = 200, body = Value))
)]
async fn history(State(server): State<Server>, tenant: Tenant, Path(id): Path<String>) -> Result<Json<Value>, Problem> {
    server.meshes().only()?;
    let session = find(&server, tenant, &id)?;
    let status = standing(&server, &session).await?.status;
    let turn = |turn: &Turn| json!({ "at": time(turn.at), "kind": turn.kind, "name": turn.name, "data": turn.data });
    let mut body = view(&session, status);
    body["turns"] = server.store().turns(session.number, TURNS)?.iter().map(turn).collect();
    Ok(Json(body))
}

/// The conversation of a session as models see it: what came in, and what came of it.
pub(super) async fn messages(server: &Server, session: &Session) -> Result<Vec<Value>, Problem> {
    let turns = server.store().turns(session.number, MESSAGES)?;
    let outputs: HashMap<RunId, SessionRun> = server
        .store()
        .runs_of_session(session.number, MESSAGES)?
        .into_iter()
        .map(|run| (run.run.clone(), run))
        .collect();
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
    Ok(messages)
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
