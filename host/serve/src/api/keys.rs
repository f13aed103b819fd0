//! The API keys of the tenant of whoever asks. They are made by whoever runs the server (`hotcell serve key add`), and can be taken
//! back over HTTP, too.

use axum::Json;
use axum::extract::{Path, State};
use http::StatusCode;
use serde::Serialize;
use std::time::SystemTime;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::key::ApiKey;
use crate::problem::{Problem, shown};
use crate::state::Server;
use crate::view::time;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(revoke))
}

/// A key, without what proves that somebody has it.
#[derive(Serialize, ToSchema)]
#[schema(as = Key)]
struct KeyView {
    /// What it is told apart by
    key_id: String,
    /// What it is for
    name: String,
    /// What it allows
    roles: Vec<&'static str>,
    /// When it was made
    #[schema(format = DateTime)]
    created_at: String,
    /// Until when it counts; none for ever
    #[schema(format = DateTime)]
    expires_at: Option<String>,
    /// Whether it counts
    valid: bool,
}

/// List the API keys of the tenant, the oldest first
#[utoipa::path(
    get, path = "/keys", tag = "Server", security(("key" = ["administer"])), responses((status = 200, body = [KeyView]))
)]
async fn list(State(server): State<Server>) -> Result<Json<Vec<KeyView>>, Problem> {
    let now = SystemTime::now();
    let view = |key: ApiKey| KeyView {
        valid: key.is_valid(now),
        roles: key.roles.iter().map(|role| role.as_str()).collect(),
        created_at: time(key.created),
        expires_at: key.expires.map(time),
        key_id: key.id,
        name: key.name,
    };
    Ok(Json(server.access().keys_of(server.tenant())?.into_iter().map(view).collect()))
}

/// Revoke an API key of the tenant: it counts for nothing from the next request on
#[utoipa::path(
    delete, path = "/keys/{key_id}", tag = "Server", security(("key" = ["administer"])),
    params(("key_id" = String, Path, description = "The key's id")),
    responses((status = 204, description = "It is revoked"))
)]
async fn revoke(State(server): State<Server>, Path(id): Path<String>) -> Result<StatusCode, Problem> {
    match server.access().revoke(server.tenant(), &id)? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(Problem::not_found(format!("there is no key `{}` that is valid", shown(&id)))),
    }
}
