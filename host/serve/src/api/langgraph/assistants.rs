//! Assistants: agents.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use hotcell_runtime::Agent;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::page::SortOrder;
use crate::api::params::Query;
use crate::api::{agents, extract, page};
use crate::problem::Problem;
use crate::state::Server;
use crate::view::{AgentSchemas, AgentView, Object, object, time};

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .routes(routes!(search))
        .routes(routes!(count))
        .routes(routes!(get))
        .routes(routes!(versions))
        .routes(routes!(graph))
        .routes(routes!(schemas))
}

/// An agent, as clients of LangGraph see it.
#[derive(Serialize, ToSchema)]
struct Assistant {
    /// The agent
    assistant_id: String,
    /// The same
    graph_id: String,
    /// Its own name
    name: String,
    /// What it does
    description: Option<String>,
    /// When the server loaded it
    #[schema(format = DateTime)]
    created_at: String,
    /// When the server loaded it
    #[schema(format = DateTime)]
    updated_at: String,
    /// Its language, its revision, and prompts to begin with
    #[schema(value_type = Object)]
    metadata: Object,
    /// Nothing can be set
    #[schema(value_type = Object)]
    config: Object,
    /// Nothing can be set
    #[schema(value_type = Object)]
    context: Object,
    /// The server has one of each agent: 1
    version: u32,
}

impl Assistant {
    fn of(server: &Server, id: &str, agent: &Agent) -> Self {
        let AgentView { agent_id, name, description, metadata, .. } = AgentView::of(id, agent, server.agents());
        let loaded = time(server.started());
        Assistant {
            assistant_id: agent_id.clone(),
            graph_id: agent_id,
            name,
            description,
            created_at: loaded.clone(),
            updated_at: loaded,
            metadata,
            config: Object::new(),
            context: Object::new(),
            version: 1,
        }
    }
}

/// Which assistants are wanted.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct AssistantSearch {
    /// The one of this agent
    graph_id: Option<String>,
    /// Those with this in their name or id
    name: Option<String>,
    /// Those with all of this metadata
    #[schema(value_type = Option<Object>)]
    metadata: Option<Object>,
    /// What they are ordered by; their ids if it is left out
    sort_by: Option<SortBy>,
    /// In which order; the first one first if it is left out
    sort_order: Option<SortOrder>,
    /// How many at most
    #[schema(minimum = 1, maximum = 1000, default = 10)]
    #[serde(default, deserialize_with = "extract::whole")]
    limit: Option<usize>,
    /// How many are left out before the first one
    #[schema(minimum = 0, maximum = 10000, default = 0)]
    #[serde(default, deserialize_with = "extract::whole")]
    offset: Option<usize>,
}

/// What assistants are ordered by.
#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = SortAssistantsBy)]
enum SortBy {
    /// Their ids
    AssistantId,
    /// The same
    GraphId,
    /// Their names
    Name,
}

/// The agents that are meant, by their ids.
fn matching(
    server: &Server,
    graph_id: Option<&str>,
    name: Option<String>,
    metadata: Option<Object>,
) -> Vec<(String, Arc<Agent>)> {
    let fits = agents::fitting(name, metadata.unwrap_or_default());
    let is_meant = |id: &str| graph_id.is_none_or(|wanted| wanted == id);
    let mut all = server.agents().all();
    all.retain(|(id, agent)| is_meant(id) && fits(&AgentView::of(id, agent, server.agents())));
    all
}

/// List assistants: agents, for clients of LangGraph
#[utoipa::path(
    post, path = "/assistants/search", tag = "LangGraph", security(("key" = ["run", "operate"])),
    request_body = AssistantSearch, responses((status = 200, body = Vec<Assistant>))
)]
async fn search(
    State(server): State<Server>,
    extract::Json(wanted): extract::Json<AssistantSearch>,
) -> Result<Json<Vec<Assistant>>, Problem> {
    let (limit, offset) = page::bounds(wanted.limit, wanted.offset)?;
    let AssistantSearch { graph_id, name, metadata, sort_by, sort_order, .. } = wanted;
    let mut found = matching(&server, graph_id.as_deref(), name, metadata);
    if let Some(SortBy::Name) = sort_by {
        found.sort_by(|(_, one), (_, other)| one.graph.name.cmp(&other.graph.name));
    }
    if sort_order == Some(SortOrder::Desc) {
        found.reverse();
    }
    let page = found.iter().skip(offset).take(limit);
    Ok(Json(page.map(|(id, agent)| Assistant::of(&server, id, agent)).collect()))
}

/// Which assistants are counted.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct AssistantCount {
    /// The one of this agent
    graph_id: Option<String>,
    /// Those with this in their name or id
    name: Option<String>,
    /// Those with all of this metadata
    #[schema(value_type = Option<Object>)]
    metadata: Option<Object>,
}

/// Count assistants
#[utoipa::path(
    post, path = "/assistants/count", tag = "LangGraph", security(("key" = ["run", "operate"])),
    request_body = AssistantCount, responses((status = 200, body = u64, content_type = "application/json"))
)]
async fn count(
    State(server): State<Server>,
    extract::Json(wanted): extract::Json<AssistantCount>,
) -> Result<Json<u64>, Problem> {
    let AssistantCount { graph_id, name, metadata } = wanted;
    Ok(Json(matching(&server, graph_id.as_deref(), name, metadata).len() as u64))
}

/// Which versions of an assistant are wanted.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct VersionsWanted {
    /// Those with all of this metadata
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

/// List the versions of an assistant: the one that the server has
#[utoipa::path(
    post, path = "/assistants/{assistant_id}/versions", tag = "LangGraph", security(("key" = ["run", "operate"])),
    params(("assistant_id" = String, Path, description = "The id of an agent, or a name that no other one has")),
    request_body = VersionsWanted, responses((status = 200, body = Vec<Assistant>))
)]
async fn versions(
    State(server): State<Server>,
    Path(id): Path<String>,
    extract::Json(wanted): extract::Json<VersionsWanted>,
) -> Result<Json<Vec<Assistant>>, Problem> {
    let (limit, offset) = page::bounds(wanted.limit, wanted.offset)?;
    let (id, _) = server.agents().find(&id)?;
    let found = matching(&server, Some(&id), None, wanted.metadata).into_iter();
    let page = found.skip(offset).take(limit);
    Ok(Json(page.map(|(id, agent)| Assistant::of(&server, &id, &agent)).collect()))
}

/// Look at an assistant
#[utoipa::path(
    get, path = "/assistants/{assistant_id}", tag = "LangGraph", security(("key" = ["run", "operate"])),
    params(("assistant_id" = String, Path, description = "The id of an agent, or a name that no other one has")),
    responses((status = 200, body = Assistant))
)]
async fn get(State(server): State<Server>, Path(id): Path<String>) -> Result<Json<Assistant>, Problem> {
    let (id, agent) = server.agents().find(&id)?;
    Ok(Json(Assistant::of(&server, &id, &agent)))
}

/// A graph, to be drawn.
#[derive(Serialize, ToSchema)]
struct Drawn {
    /// Each with an `id`, a `type` and what it is as `data`
    #[schema(value_type = Vec<Object>)]
    nodes: Vec<Value>,
    /// Each with a `source` and a `target`; `conditional` where the node decides
    #[schema(value_type = Vec<Object>)]
    edges: Vec<Value>,
}

/// Show the graph of an assistant
#[utoipa::path(
    get, path = "/assistants/{assistant_id}/graph", tag = "LangGraph", security(("key" = ["run", "operate"])),
    params(
        ("assistant_id" = String, Path, description = "The id of an agent, or a name that no other one has"),
        ("xray" = Option<bool>, Query, description = "Graphs within nodes are not drawn: `false`"),
    ),
    responses((status = 200, body = Drawn))
)]
async fn graph(State(server): State<Server>, Path(id): Path<String>, mut query: Query) -> Result<Json<Drawn>, Problem> {
    if query.text("xray").is_some_and(|xray| !matches!(xray.as_str(), "false" | "0")) {
        return Err(Problem::unprocessable("`xray` is not supported: graphs within nodes are not drawn"));
    }
    query.end()?;
    let (_, agent) = server.agents().find(&id)?;
    Ok(Json(drawn(&agent)))
}

const START: &str = "__start__";
const END: &str = "__end__";

fn drawn(agent: &Agent) -> Drawn {
    let graph = &agent.graph;
    let marker = |id: &str| json!({ "id": id, "type": "schema", "data": id });
    let mut nodes = vec![marker(START)];
    let mut edges = vec![json!({ "source": START, "target": graph.node(graph.start).id })];
    let mut ends = false;
    for (index, node) in graph.nodes() {
        nodes.push(json!({ "id": node.id, "type": "runnable", "data": { "id": [node.kind], "name": node.id } }));
        let targets: Vec<_> = graph.successors(index).into_iter().map(|target| &graph.node(target).id).collect();
        let is_choice = targets.len() > 1;
        for target in &targets {
            edges.push(json!({ "source": node.id, "target": target, "conditional": is_choice }));
        }
        if targets.is_empty() {
            ends = true;
            edges.push(json!({ "source": node.id, "target": END }));
        }
    }
    if ends {
        nodes.push(marker(END));
    }
    Drawn { nodes, edges }
}

/// What an assistant takes and gives, as JSON schemas.
#[derive(Serialize, ToSchema)]
struct AssistantSchemas {
    /// The agent
    graph_id: String,
    /// What `input` of a run has to be
    #[schema(value_type = Object)]
    input_schema: Object,
    /// What a run comes to
    #[schema(value_type = Object)]
    output_schema: Object,
    /// The same
    #[schema(value_type = Object)]
    state_schema: Object,
    /// Nothing can be set
    #[schema(value_type = Object)]
    config_schema: Object,
    /// Nothing can be set
    #[schema(value_type = Object)]
    context_schema: Object,
}

/// Show what an assistant takes and gives
#[utoipa::path(
    get, path = "/assistants/{assistant_id}/schemas", tag = "LangGraph", security(("key" = ["run", "operate"])),
    params(("assistant_id" = String, Path, description = "The id of an agent, or a name that no other one has")),
    responses((status = 200, body = AssistantSchemas))
)]
async fn schemas(State(server): State<Server>, Path(id): Path<String>) -> Result<Json<AssistantSchemas>, Problem> {
    let (id, agent) = server.agents().find(&id)?;
    let AgentSchemas { agent_id, input_schema, state_schema, .. } = AgentSchemas::of(&id, &agent);
    let nothing = object(json!({ "type": "object", "properties": {}, "additionalProperties": false }));
    Ok(Json(AssistantSchemas {
        graph_id: agent_id,
        input_schema,
        output_schema: state_schema.clone(),
        state_schema,
        config_schema: nothing.clone(),
        context_schema: nothing,
    }))
}
