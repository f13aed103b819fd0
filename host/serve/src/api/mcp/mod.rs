//! The Model Context Protocol at `/mcp`: agents as tools. `/mcp/{agent_id}` has one of them.
//!
//! The protocol is that of `hotcell mcp` (`hotcell_mcp`). Who may call is decided by the API key, as everywhere; whoever shows none
//! is told where clients of the protocol look for how to get in ([`resource`]).

mod catalog;
mod resource;
mod runs;

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use hotcell_runtime::mcp::{Identity, McpService, SessionOwner};
use http::header::CONTENT_TYPE;
use http_body_util::{BodyExt as _, Limited};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) use self::resource::challenge;

use self::catalog::{Only, Tools};
use super::extract;
use crate::access::Caller;
use crate::guard::Documented;
use crate::problem::{Problem, shortened};
use crate::state::Server;

/// Bytes of what is said of a request that is wrong.
const LONGEST: usize = 1024;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .routes(routes!(post, get, delete))
        .routes(routes!(post_one, get_one, delete_one))
        .merge(resource::routes())
}

/// What answers requests of the protocol. It is a part of the routes of a server.
pub(crate) fn service(server: &Server) -> McpService {
    let identity = Identity { name: "hotcell".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() };
    McpService::new(Arc::new(Tools(server.clone())), identity, server.closing().clone())
}

/// Send a message of the Model Context Protocol
///
/// All agents are tools (Streamable HTTP, revisions 2024-11-05 to 2026-07-28). With the role `answer`, whoever sits at the client is
/// asked what a run asks.
#[utoipa::path(
    post, path = "/mcp", tag = "MCP", security(("key" = ["run"])),
    request_body(content = Object, content_type = "application/json"),
    responses(
        (status = 200, content((Object = "application/json"), (String = "text/event-stream"))),
        (status = 202, description = "The message was taken, and has no answer"),
        (status = 400, content((Object = "application/json"), (Problem = "application/problem+json")), description = "What is wrong with the message (JSON-RPC)"),
        (status = 404, content((Object = "application/json"), (Problem = "application/problem+json")), description = "There is no such method (JSON-RPC)"),
    )
)]
async fn post(
    State(server): State<Server>,
    Extension(mcp): Extension<Arc<McpService>>,
    request: Request,
) -> Result<Response, Problem> {
    respond(&server, &mcp, request, None).await
}

/// Listen to messages of a session of the Model Context Protocol
#[utoipa::path(
    get, path = "/mcp", tag = "MCP", security(("key" = ["run"])),
    responses((status = 200, content_type = "text/event-stream", body = String))
)]
async fn get(
    State(server): State<Server>,
    Extension(mcp): Extension<Arc<McpService>>,
    request: Request,
) -> Result<Response, Problem> {
    respond(&server, &mcp, request, None).await
}

/// End a session of the Model Context Protocol
#[utoipa::path(
    delete, path = "/mcp", tag = "MCP", security(("key" = ["run"])),
    responses((status = 202, description = "It is ended"))
)]
async fn delete(
    State(server): State<Server>,
    Extension(mcp): Extension<Arc<McpService>>,
    request: Request,
) -> Result<Response, Problem> {
    respond(&server, &mcp, request, None).await
}

/// Send a message of the Model Context Protocol to one agent
///
/// As `POST /mcp`, with this agent as the only tool.
#[utoipa::path(
    post, path = "/mcp/{agent_id}", tag = "MCP", security(("key" = ["run"])),
    params(("agent_id" = String, Path, description = "Its id, or a name that no other agent has")),
    request_body(content = Object, content_type = "application/json"),
    responses(
        (status = 200, content((Object = "application/json"), (String = "text/event-stream"))),
        (status = 202, description = "The message was taken, and has no answer"),
        (status = 400, content((Object = "application/json"), (Problem = "application/problem+json")), description = "What is wrong with the message (JSON-RPC)"),
        (status = 404, content((Object = "application/json"), (Problem = "application/problem+json")), description = "There is no such agent, or no such method (JSON-RPC)"),
    )
)]
async fn post_one(
    State(server): State<Server>,
    Extension(mcp): Extension<Arc<McpService>>,
    Path(agent): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    respond(&server, &mcp, request, Some(agent)).await
}

/// Listen to messages of a session of the Model Context Protocol with one agent
#[utoipa::path(
    get, path = "/mcp/{agent_id}", tag = "MCP", security(("key" = ["run"])),
    params(("agent_id" = String, Path, description = "Its id, or a name that no other agent has")),
    responses((status = 200, content_type = "text/event-stream", body = String))
)]
async fn get_one(
    State(server): State<Server>,
    Extension(mcp): Extension<Arc<McpService>>,
    Path(agent): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    respond(&server, &mcp, request, Some(agent)).await
}

/// End a session of the Model Context Protocol with one agent
#[utoipa::path(
    delete, path = "/mcp/{agent_id}", tag = "MCP", security(("key" = ["run"])),
    params(("agent_id" = String, Path, description = "Its id, or a name that no other agent has")),
    responses((status = 202, description = "It is ended"))
)]
async fn delete_one(
    State(server): State<Server>,
    Extension(mcp): Extension<Arc<McpService>>,
    Path(agent): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    respond(&server, &mcp, request, Some(agent)).await
}

/// Hands a request on with what is known here: whose it is, what they may do, and which agent they want.
async fn respond(
    server: &Server,
    mcp: &McpService,
    mut request: Request,
    only: Option<String>,
) -> Result<Response, Problem> {
    if let Some(agent) = only {
        let (id, _) = server.agents().find(&agent)?;
        let only = Only(id.to_string());
        request.extensions_mut().insert(only);
    }
    let caller = request.extensions().get::<Caller>().cloned().unwrap_or(Caller::Unknown);
    request.extensions_mut().insert(SessionOwner(caller.id().to_owned()));
    let (parts, body) = request.into_parts();
    let settings = server.settings();
    let body = extract::read(Request::new(body), settings.largest_body, settings.body_within).await?;
    extract::check_members(&body)?;
    let mut response = mcp.respond(Request::from_parts(parts, Body::from(body))).await;
    let is_json = response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == "application/json");
    if is_json && !response.status().is_success() {
        // An error of the protocol, in its own form.
        response.extensions_mut().insert(Documented);
    } else if matches!(response.status().as_u16(), 400 | 404 | 406 | 415 | 422) {
        return Err(said(response).await);
    }
    Ok(response)
}

/// What is wrong with a request, where that is said in plain text.
async fn said(response: Response) -> Problem {
    let status = response.status();
    let body = Limited::new(response.into_body(), LONGEST).collect().await;
    let text = body.map(|body| String::from_utf8_lossy(&body.to_bytes()).into_owned()).unwrap_or_default();
    // Some begin with the name of the status.
    let text = status.canonical_reason().and_then(|name| text.strip_prefix(name)?.strip_prefix(": ")).unwrap_or(&text);
    let text = text.trim();
    let text = if text.is_empty() { "the message cannot be read" } else { text };
    Problem::new(status, shortened(text, LONGEST))
}
