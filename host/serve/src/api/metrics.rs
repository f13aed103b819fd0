//! What was counted, for Prometheus.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use hotcell_telemetry::PROMETHEUS_MEDIA_TYPE;
use http::header::CONTENT_TYPE;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::gauges;
use crate::state::Server;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(metrics))
}

/// What was counted and measured, in the text format of Prometheus
#[utoipa::path(
    get, path = "/metrics", tag = "Server", security(("key" = ["operate"])),
    responses((status = 200, content_type = "text/plain", body = String))
)]
async fn metrics(State(server): State<Server>) -> Response {
    gauges::refresh(&server).await;
    ([(CONTENT_TYPE, PROMETHEUS_MEDIA_TYPE)], server.telemetry().prometheus()).into_response()
}
