//! The mesh as a whole: whether it takes work, who is in it, and what posts to it are signed with.

use axum::Json;
use axum::extract::{Extension, Path, State};
use axum::response::Response;
use hotcell_http::Peer;
use hotcell_runtime::leafmesh::{AgentSettings, registry as words};
use http::StatusCode;
use serde_json::{Value, json};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::meshes::Mesh;
use super::reply::{Refused, documented};
use super::secret;
use super::served::Served;
use crate::api::params::Query;
use crate::problem::{Problem, shown as shown_text};
use crate::state::Server;
use crate::store::StoreError;

/// The fact that says whether the system is stopped.
const STATE: &str = "state";
const STOPPED: &str = "stopped";
const RUNNING: &str = "running";

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .routes(routes!(status))
        .routes(routes!(stop))
        .routes(routes!(resume))
        .routes(routes!(agents))
        .routes(routes!(release))
        .routes(routes!(webhook_secret))
        .routes(routes!(registry))
}

/// Whether no work is taken.
pub(super) fn is_stopped(server: &Server, mesh: &Mesh) -> Result<bool, StoreError> {
    Ok(server.store().mesh_fact(&mesh.own(STATE))?.as_deref() == Some(STOPPED))
}

fn view(server: &Server, mesh: &Mesh) -> Result<Response, Refused> {
    let state = if is_stopped(server, mesh)? { STOPPED } else { RUNNING };
    Ok(documented(StatusCode::OK, json!({ "state": state })))
}

/// Say whether the mesh takes work
#[utoipa::path(
    get, path = "/api/system/status", tag = "Mesh", security(("key" = ["run", "answer", "operate", "administer"])),
    responses((status = 200, body = Value))
)]
async fn status(State(server): State<Server>, Served(mesh): Served) -> Result<Response, Refused> {
    view(&server, &mesh)
}

/// Stop the mesh
///
/// What is under way is cancelled, and nothing is taken until it is resumed, also by a server that is started later.
#[utoipa::path(
    post, path = "/api/system/stop", tag = "Mesh", security(("key" = ["operate"])), responses((status = 200, body = Value))
)]
async fn stop(State(server): State<Server>, Served(mesh): Served) -> Result<Response, Refused> {
    server.store().remember(&mesh.own(STATE), STOPPED)?;
    for open in server.store().open_runs(None)? {
        let of = server.store().run_of_mesh(&open.run)?;
        if of.is_none_or(|(session, _)| session.key.scope != mesh.scope) {
            continue;
        }
        // One that has just ended needs it no more.
        if let Err(problem) = server.runs().cancel(&open.run).await {
            tracing::debug!(target: "hotcell::serve", run = %open.run, reason = problem.detail, "it is not cancelled");
        }
    }
    view(&server, &mesh)
}

/// Let the mesh take work again
#[utoipa::path(
    post, path = "/api/system/resume", tag = "Mesh", security(("key" = ["operate"])), responses((status = 200, body = Value))
)]
async fn resume(State(server): State<Server>, Served(mesh): Served) -> Result<Response, Refused> {
    server.store().remember(&mesh.own(STATE), RUNNING)?;
    view(&server, &mesh)
}

/// What is shown of an agent. Keys, tokens and headers are not.
fn shown(agent: &AgentSettings) -> Value {
    json!({
        "name": agent.name, "agent_type": agent.kind.word(), "description": agent.description, "model": agent.model,
        "connector": agent.connector, "communication_type": if agent.answers_first { "dual" } else { "chain" },
    })
}

/// List the agents of the mesh
#[utoipa::path(
    get, path = "/api/agents/", tag = "Mesh", security(("key" = ["run", "answer", "operate", "administer"])),
    responses((status = 200, body = Value))
)]
async fn agents(Served(mesh): Served) -> Result<Json<Value>, Problem> {
    let agents: Vec<Value> = mesh.settings.agents.iter().map(shown).collect();
    Ok(Json(json!({ "agents": agents })))
}

/// Let an agent work again that was shut off
///
/// An agent whose connector fails again and again is shut off: it fails without asking anybody, until somebody releases it.
#[utoipa::path(
    post, path = "/api/agents/{name}/release", tag = "Mesh", security(("key" = ["operate"])),
    params(("name" = String, Path, description = "The agent")), responses((status = 200, body = Value))
)]
async fn release(Served(mesh): Served, Path(name): Path<String>) -> Result<Json<Value>, Problem> {
    let agent = mesh.settings.agent(&name);
    let agent = agent.ok_or_else(|| Problem::not_found(format!("there is no agent `{}`", shown_text(&name))))?;
    if let Some(tool) = &agent.release {
        let released = mesh.agent.call_component(tool, "{}").await;
        released.map_err(|error| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
    }
    Ok(Json(json!({ "name": name, "status": "released" })))
}

/// Show the words that fields of a mesh take
///
/// By category, with the settings of connectors and the names of time zones.
#[utoipa::path(
    get, path = "/api/registry", tag = "Mesh", security(("key" = ["run", "answer", "operate", "administer"])),
    params(("category" = Option<String>, Query, description = "Only this category")),
    responses((status = 200, body = Value))
)]
async fn registry(Served(_): Served, mut query: Query) -> Result<Json<Value>, Problem> {
    let category = query.text("category");
    query.end()?;
    let mut registry = words();
    registry["timezones"] = jiff::tz::db().available().map(|zone| zone.as_str().to_owned()).collect();
    let Some(category) = category else { return Ok(Json(registry)) };
    match registry.get(&category) {
        Some(items) => Ok(Json(json!({ "category": category, "items": items }))),
        None => {
            let known: Vec<&str> = registry.as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
            let detail = format!("there is no category `{}`; there are: {}", shown_text(&category), known.join(", "));
            Err(Problem::not_found(detail))
        }
    }
}

/// Show what posts to the mesh are signed with
///
/// Only this machine is told.
#[utoipa::path(
    get, path = "/api/webhook/secret", tag = "Mesh", security(("key" = ["administer"])), responses((status = 200, body = Value))
)]
async fn webhook_secret(
    State(server): State<Server>,
    Served(_): Served,
    Extension(peer): Extension<Peer>,
) -> Result<Json<Value>, Problem> {
    if !peer.address().is_loopback() {
        return Err(Problem::new(StatusCode::FORBIDDEN, "the secret is told to this machine alone"));
    }
    let secret = secret(&server)?;
    Ok(Json(json!({ "secret": secret, "webhook_secret": secret })))
}
