//! Whether the server lives, whether it takes work, and what it answers.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::problem::Problem;
use crate::state::Server;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(health)).routes(routes!(ready)).routes(routes!(openapi))
}

/// How the server is.
#[derive(Serialize, ToSchema)]
struct Health {
    /// `ok`
    status: &'static str,
}

/// Whether the server lives
#[utoipa::path(get, path = "/health", tag = "Server", security(()), responses((status = 200, body = Health)))]
async fn health() -> Json<Health> {
    Json(Health { status: "ok" })
}

/// Whether the server takes work: it does from the time when it has taken up what was left, until it is told to stop
#[utoipa::path(get, path = "/ready", tag = "Server", security(()), responses((status = 200, body = Health)))]
async fn ready(State(server): State<Server>) -> Result<Json<Health>, Problem> {
    match server.is_ready() {
        true => Ok(Json(Health { status: "ok" })),
        false => Err(Problem::unavailable("the server is starting or shutting down")),
    }
}

/// What the server answers
#[utoipa::path(get, path = "/openapi.json", tag = "Server", security(()), responses((status = 200, body = Object)))]
async fn openapi(State(server): State<Server>) -> Json<OpenApi> {
    Json(server.document().clone())
}
