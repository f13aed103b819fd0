//! Agent cards: what an agent does, and where and how it is talked to.

use axum::Json;
use axum::extract::{Path, State};
use hotcell_runtime::Agent;
use serde_json::{Value, json};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::problem::Problem;
use crate::state::Server;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(only)).routes(routes!(of_agent))
}

/// Show the card of the only agent
///
/// Where several agents are served, each has a card of its own.
#[utoipa::path(
    get, path = "/.well-known/agent-card.json", tag = super::TAG, security(("key" = ["run", "operate"])),
    responses((status = 200, body = Object))
)]
async fn only(State(server): State<Server>) -> Result<Json<Value>, Problem> {
    match &server.agents().all()[..] {
        [(id, agent)] => Ok(Json(card(&server, id, agent))),
        _ => Err(Problem::not_found(
            "several agents are served, each with a card of its own: `/a2a/AGENT/.well-known/agent-card.json`; `/v1/models` lists them",
        )),
    }
}

/// Show the card of an agent
#[utoipa::path(
    get, path = "/a2a/{agent}/.well-known/agent-card.json", tag = super::TAG, security(("key" = ["run", "operate"])),
    params(("agent" = String, Path, description = "The agent")), responses((status = 200, body = Object))
)]
async fn of_agent(State(server): State<Server>, Path(agent): Path<String>) -> Result<Json<Value>, Problem> {
    let (id, agent) = server.agents().find(&agent)?;
    Ok(Json(card(&server, &id, &agent)))
}

/// The card of an agent. What version 1.0 reads is beside what version 0.3 reads.
pub(super) fn card(server: &Server, id: &str, agent: &Agent) -> Value {
    let url = format!("{}/a2a/{id}", server.base_url());
    let interface =
        |binding: &str, version: &str| json!({ "url": url, "protocolBinding": binding, "protocolVersion": version });
    let description = agent.graph.description.clone().unwrap_or_else(|| agent.graph.name.clone());
    let skill = json!({
        "id": id, "name": agent.graph.name, "description": description, "tags": [], "examples": agent.conversation_starters,
    });
    let mut card = json!({
        "name": agent.graph.name, "description": description, "version": agent.digest(),
        "supportedInterfaces": [
            interface("JSONRPC", "1.0"), interface("HTTP+JSON", "1.0"), interface("JSONRPC", "0.3"),
        ],
        "capabilities": {
            "streaming": true, "pushNotifications": true, "extendedAgentCard": false, "stateTransitionHistory": false,
        },
        "defaultInputModes": ["text/plain", "application/json"], "defaultOutputModes": ["text/plain"], "skills": [skill],
        "protocolVersion": "0.3.0", "url": url, "preferredTransport": "JSONRPC",
    });
    if server.access().is_closed().unwrap_or(true) {
        card["securitySchemes"] = json!({
            "key": { "type": "http", "scheme": "bearer", "httpAuthSecurityScheme": { "scheme": "bearer" } },
        });
        card["securityRequirements"] = json!([{ "schemes": { "key": { "list": [] } } }]);
        card["security"] = json!([{ "key": [] }]);
    }
    card
}
