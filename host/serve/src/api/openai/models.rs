//! Agents as models.

use std::time::UNIX_EPOCH;

use axum::Json;
use axum::extract::{Path, State};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::problem::Problem;
use crate::state::Server;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(get))
}

/// An agent as a model.
#[derive(Serialize, ToSchema)]
struct OpenAiModel {
    /// What requests name it by: the id of the agent
    id: String,
    /// `model`
    object: &'static str,
    /// When it was loaded, in seconds since 1970
    created: u64,
    /// `hotcell`
    owned_by: &'static str,
}

/// Agents as models.
#[derive(Serialize, ToSchema)]
struct OpenAiModels {
    /// `list`
    object: &'static str,
    /// The agents that take a text
    data: Vec<OpenAiModel>,
}

fn model(server: &Server, id: &str) -> OpenAiModel {
    let created = server.started().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    OpenAiModel { id: id.to_owned(), object: "model", created, owned_by: "hotcell" }
}

/// List the agents that take a text, as models
#[utoipa::path(
    get, path = "/v1/models", tag = super::TAG, security(("key" = ["run", "operate"])),
    responses((status = 200, body = OpenAiModels))
)]
async fn list(State(server): State<Server>) -> Json<OpenAiModels> {
    let agents = server.agents();
    let takes_text = agents.all().into_iter().filter(|(_, agent)| agent.graph.takes_text() || agent.graph.is_open);
    let data = takes_text.map(|(id, _)| model(&server, &id)).collect();
    Json(OpenAiModels { object: "list", data })
}

/// Look at an agent as a model
#[utoipa::path(
    get, path = "/v1/models/{model}", tag = super::TAG, security(("key" = ["run", "operate"])),
    params(("model" = String, Path, description = "The agent")),
    responses((status = 200, body = OpenAiModel))
)]
async fn get(State(server): State<Server>, Path(name): Path<String>) -> Result<Json<OpenAiModel>, Problem> {
    let (id, _) = server.agents().find(&name)?;
    Ok(Json(model(&server, &id)))
}
