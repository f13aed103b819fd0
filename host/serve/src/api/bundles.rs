//! Agents that are sent to the server.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, Request, State};
use hotcell_runtime::Agent;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::extract::read;
use super::params::Query;
use crate::agents::bundle::MAX_BUNDLE;
use crate::agents::sent::Sending;
use crate::problem::Problem;
use crate::state::Server;
use crate::view::AgentView;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(create)).routes(routes!(replace, remove))
}

/// The media types of bundles.
const MEDIA_TYPES: [&str; 4] =
    ["application/gzip", "application/x-gzip", "application/x-tar", "application/octet-stream"];

/// The bundle that a request brings.
async fn bundle(server: &Server, request: Request) -> Result<Vec<u8>, Problem> {
    let kind = request.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if !MEDIA_TYPES.contains(&kind.as_str()) {
        let detail = format!("the body has to be a tar archive; `Content-Type` is one of {}", MEDIA_TYPES.join(", "));
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail));
    }
    read(request, MAX_BUNDLE, server.settings().body_within).await
}

/// The agents of a bundle, as they are served now.
async fn served(server: &Server, id: &str) -> Json<Vec<AgentView>> {
    server.refresh().await;
    let below = format!("{id}.");
    let of_bundle = |(own, agent): &(String, Arc<Agent>)| {
        (own == id || own.starts_with(&below)) && server.agents().was_sent(agent.source())
    };
    let agents = server.agents().all().into_iter().filter(of_bundle);
    Json(agents.map(|(id, agent)| AgentView::of(&id, &agent, server.agents())).collect())
}

/// Send an agent to the server
///
/// The bundle is the agent's folder as a tar archive, plain or compressed with gzip. It is checked, and served from a folder of the
/// server from now on. What it brings grants nothing: a `hotcell.toml` in it counts when whoever runs the server trusts it, and plugins
/// wait until somebody decides (`POST /plugins/{name}/grants`).
#[utoipa::path(
    post, path = "/agents", tag = "Agents", security(("key" = ["administer"])),
    params(("agent_id" = String, Query, description = "What it is called: letters, digits, `_` and `-`")),
    request_body(content = Vec<u8>, content_type = "application/gzip"),
    responses((status = 201, body = Vec<AgentView>))
)]
async fn create(
    State(server): State<Server>,
    mut query: Query,
    request: Request,
) -> Result<(StatusCode, Json<Vec<AgentView>>), Problem> {
    let id = query.text("agent_id").ok_or_else(|| Problem::unprocessable("say what it is called, with `agent_id`"))?;
    query.end()?;
    let bundle = bundle(&server, request).await?;
    server.agents().take(&id, bundle, Sending::New).await?;
    Ok((StatusCode::CREATED, served(&server, &id).await))
}

/// Replace an agent that was sent to the server
///
/// What is under way of it ends as it began. What was granted in its folder is gone.
#[utoipa::path(
    put, path = "/agents/{agent_id}", tag = "Agents", security(("key" = ["administer"])),
    params(("agent_id" = String, Path, description = "The agent")),
    request_body(content = Vec<u8>, content_type = "application/gzip"),
    responses((status = 200, body = Vec<AgentView>))
)]
async fn replace(
    State(server): State<Server>,
    Path(id): Path<String>,
    request: Request,
) -> Result<Json<Vec<AgentView>>, Problem> {
    let bundle = bundle(&server, request).await?;
    server.agents().take(&id, bundle, Sending::InPlace).await?;
    Ok(served(&server, &id).await)
}

/// Remove an agent that was sent to the server
///
/// What is under way of it ends as it began.
#[utoipa::path(
    delete, path = "/agents/{agent_id}", tag = "Agents", security(("key" = ["administer"])),
    params(("agent_id" = String, Path, description = "The agent")),
    responses((status = 204, description = "It is removed"))
)]
async fn remove(State(server): State<Server>, Path(id): Path<String>) -> Result<StatusCode, Problem> {
    server.agents().remove(&id).await?;
    server.refresh().await;
    Ok(StatusCode::NO_CONTENT)
}
