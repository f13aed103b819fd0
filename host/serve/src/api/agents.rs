//! Agents.

use axum::Json;
use axum::extract::{Path, State};
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{extract, page};
use crate::problem::Problem;
use crate::state::Server;
use crate::view::{AgentSchemas, AgentView, Object};

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(search)).routes(routes!(get)).routes(routes!(schemas))
}

/// Which agents are wanted.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct AgentSearch {
    /// Those with this in their name or id
    name: Option<String>,
    /// Those with all of this metadata
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    metadata: Option<Object>,
    /// How many at most
    #[schema(minimum = 1, maximum = 1000, default = 10)]
    #[serde(default, deserialize_with = "extract::whole")]
    limit: Option<usize>,
    /// How many are left out before the first one
    #[schema(minimum = 0, maximum = 10000, default = 0)]
    #[serde(default, deserialize_with = "extract::whole")]
    offset: Option<usize>,
}

/// Where the agents were loaded from whose runs are wanted: one, or all that are served. Runs of others lie in the journal, too.
pub(super) fn sources(server: &Server, agent: Option<&str>) -> Result<Option<Vec<String>>, Problem> {
    Ok(Some(match agent {
        Some(agent) => vec![server.agents().find(agent)?.1.source().to_owned()],
        None => server.agents().sources(),
    }))
}

/// Whether an agent has this in its name or id, and all of this metadata.
pub(super) fn fitting(name: Option<String>, metadata: Object) -> impl Fn(&AgentView) -> bool {
    let name = name.map(|name| name.to_lowercase());
    move |agent| {
        let is_named =
            |name: &String| [&agent.agent_id, &agent.name].iter().any(|own| own.to_lowercase().contains(name));
        name.as_ref().is_none_or(is_named)
            && metadata.iter().all(|(name, value)| agent.metadata.get(name) == Some(value))
    }
}

/// List agents
#[utoipa::path(
    post, path = "/agents/search", tag = "Agents", security(("key" = ["run", "operate"])),
    request_body = AgentSearch, responses((status = 200, body = Vec<AgentView>))
)]
async fn search(
    State(server): State<Server>,
    extract::Json(wanted): extract::Json<AgentSearch>,
) -> Result<Json<Vec<AgentView>>, Problem> {
    let (limit, offset) = page::bounds(wanted.limit, wanted.offset)?;
    let fits = fitting(wanted.name, wanted.metadata.unwrap_or_default());
    let agents = server.agents().all().into_iter();
    let agents = agents.map(|(id, agent)| AgentView::of(&id, &agent, server.agents())).filter(fits);
    Ok(Json(agents.skip(offset).take(limit).collect()))
}

/// Look at an agent
#[utoipa::path(
    get, path = "/agents/{agent_id}", tag = "Agents", security(("key" = ["run", "operate"])),
    params(("agent_id" = String, Path, description = "Its id, or a name that no other agent has")),
    responses((status = 200, body = AgentView))
)]
async fn get(State(server): State<Server>, Path(agent): Path<String>) -> Result<Json<AgentView>, Problem> {
    let (id, agent) = server.agents().find(&agent)?;
    Ok(Json(AgentView::of(&id, &agent, server.agents())))
}

/// Show what an agent takes and gives
#[utoipa::path(
    get, path = "/agents/{agent_id}/schemas", tag = "Agents", security(("key" = ["run", "operate"])),
    params(("agent_id" = String, Path, description = "Its id, or a name that no other agent has")),
    responses((status = 200, body = AgentSchemas))
)]
async fn schemas(State(server): State<Server>, Path(agent): Path<String>) -> Result<Json<AgentSchemas>, Problem> {
    let (id, agent) = server.agents().find(&agent)?;
    Ok(Json(AgentSchemas::of(&id, &agent)))
}
