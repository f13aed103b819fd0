//! The tenant of whoever asks: what it may use, and what it has used.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::problem::Problem;
use crate::quota::MonthView;
use crate::state::Server;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(tenant))
}

/// A tenant. Limits that are null are none.
#[derive(Serialize, ToSchema)]
#[schema(as = Tenant)]
struct TenantView {
    /// Its name; none on a server without tenants
    name: Option<String>,
    /// Runs that are worked on
    runs: usize,
    /// How many of them there may be at a time
    max_runs: usize,
    /// How many runs may begin in a minute
    runs_per_minute: Option<u32>,
    /// How many requests a second all its keys together may make
    requests_per_second: Option<u32>,
    /// Bytes that are kept; none if they are not limited
    stored_bytes: Option<u64>,
    /// How many bytes may be kept
    max_stored_bytes: Option<u64>,
    /// What its runs have used in this month; none if that is not limited
    month: Option<MonthView>,
}

/// Get what the tenant of the key may use and has used
#[utoipa::path(
    get, path = "/tenant", tag = "Server", security(("key" = ["operate", "administer"])),
    responses((status = 200, body = TenantView))
)]
async fn tenant(State(server): State<Server>) -> Result<Json<TenantView>, Problem> {
    let (runs, quotas) = (server.runs(), server.quotas());
    let quota = quotas.quota();
    Ok(Json(TenantView {
        name: server.tenant().map(|name| name.as_str().to_owned()),
        runs: runs.working(),
        max_runs: runs.places(),
        runs_per_minute: quota.runs_per_minute,
        requests_per_second: quota.requests_per_second,
        stored_bytes: quotas.stored()?,
        max_stored_bytes: quota.stored.as_ref().map(|(limit, _)| *limit),
        month: quotas.counts().then(|| quotas.this_month(server.clock().now())).transpose()?,
    }))
}
