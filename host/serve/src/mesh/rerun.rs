//! Running an agent of a session again.

use axum::extract::{Path, State};
use axum::response::Response;
use hotcell_graph::Object as GraphObject;
use hotcell_runtime::leafmesh::AgentSettings;
use hotcell_runtime::leafmesh::state::{BROUGHT, CAME, FROM, OUTPUT};
use hotcell_runtime::{Fact, RunId};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::begin::{At, Task, begin};
use super::calls::RERUN;
use super::history::find;
use super::reply::{Refused, documented};
use super::served::Served;
use super::store::Session;
use super::tenant::Tenant;
use crate::api::extract::Json;
use crate::problem::{Problem, shown};
use crate::state::Server;

/// Runs in which the input of an agent is looked for.
const RUNS: u32 = 100;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(rerun))
}

/// An agent that is to run again.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Rerun {
    /// What it is told about its earlier output
    feedback: Option<Value>,
    /// Why it runs again
    reason: Option<Value>,
    /// What it is given in place of what it was given last
    new_input: Option<Map<String, Value>>,
}

/// Run an agent of a session again
///
/// It is given what it was given last, or `new_input`, with `_rerun_context`. What it gives goes on as always.
#[utoipa::path(
    post, path = "/api/sessions/{session_id}/agents/{agent}/rerun", tag = "Mesh", security(("key" = ["operate"])),
    params(("session_id" = String, Path, description = "The session"), ("agent" = String, Path, description = "The agent")),
    request_body = Rerun, responses((status = 202, body = Value))
)]
async fn rerun(
    State(server): State<Server>,
    Served(mesh): Served,
    tenant: Tenant,
    Path((id, agent)): Path<(String, String)>,
    Json(given): Json<Rerun>,
) -> Result<Response, Refused> {
    let mesh = &mesh;
    let session = find(&server, mesh, tenant, &id)?;
    let Some(settings) = mesh.settings.agent(&agent) else {
        return Err(Problem::not_found(format!("there is no agent `{}`", shown(&agent))).into());
    };
    let (mut input, source) = match given.new_input {
        Some(input) => (input, "new_input"),
        None => {
            let stored = stored_input(&server, &session, settings).await?.ok_or_else(|| {
                Problem::conflict(format!("`{agent}` was given nothing in this session yet; say what with `new_input`"))
                    .kind("no-stored-input", "There is nothing to run it with")
            })?;
            (stored, "stored_original")
        }
    };
    let mut context = Map::new();
    for (name, value) in [("feedback", &given.feedback), ("reason", &given.reason)] {
        if let Some(value) = value {
            context.insert(name.to_owned(), value.clone());
        }
    }
    input.insert("_rerun_context".to_owned(), context.into());
    let _session = mesh.doing.sessions.lock(&session.key).await;
    let at = At::Agent { name: agent.clone(), input: input.into() };
    begin(&server, mesh, Task { key: session.key.clone(), kind: RERUN, at, is_beside: true, once: None }, false)
        .await?;
    let body = json!({
        "status": "dispatched", "agent": agent, "session_id": session.key.id, "input_source": source, "reason": given.reason,
    });
    Ok(documented(StatusCode::ACCEPTED, body))
}

/// What an agent was given last in a session.
async fn stored_input(
    server: &Server,
    session: &Session,
    agent: &AgentSettings,
) -> Result<Option<Map<String, Value>>, Problem> {
    for run in server.store().runs_of_session(session.number, RUNS)? {
        if let Some(input) = given(server, &run.run, agent).await? {
            return Ok(Some(input));
        }
    }
    Ok(None)
}

/// What an agent was given last in a run: what the agents before it gave, or what the run itself was given.
async fn given(server: &Server, run: &RunId, agent: &AgentSettings) -> Result<Option<Map<String, Value>>, Problem> {
    let entries = server.runs().store().history(run).await?.whole()?;
    let (mut arrived, mut worked_with): (Vec<&GraphObject>, Vec<&GraphObject>) = (Vec::new(), Vec::new());
    for entry in &entries {
        let Fact::Completed(completed) = &entry.fact else { continue };
        if entry.place.around().is_some() {
            continue;
        }
        if completed.node == agent.name {
            worked_with = std::mem::take(&mut arrived);
        }
        let next = completed.next.as_deref().unwrap_or_default();
        if next.contains(&agent.name) {
            let brought = completed.writes.iter().rev().find(|write| &*write.key == BROUGHT);
            arrived.extend(brought.and_then(|write| write.value.as_object()));
        }
    }
    // It may work with them, or wait for more.
    let arrived = if arrived.is_empty() { worked_with } else { arrived };
    let Some(&last) = arrived.last() else { return Ok(None) };
    let part = |of: &GraphObject, name: &str| of.get(name).map(Value::from);
    let mut input = match part(last, OUTPUT) {
        Some(Value::Object(output)) => output,
        _ => Map::new(),
    };
    let mut upstream = Map::new();
    let first = if agent.waits { 0 } else { arrived.len() - 1 };
    for &brought in &arrived[first..] {
        if let Some(Value::Object(came)) = part(brought, CAME) {
            upstream.extend(came);
        } else if let Some(Value::String(from)) = part(brought, FROM) {
            upstream.insert(from, part(brought, OUTPUT).unwrap_or_default());
        }
    }
    input.insert("from_agent".to_owned(), part(last, FROM).unwrap_or_else(|| "".into()));
    input.insert("upstream_yields".to_owned(), upstream.into());
    Ok(Some(input))
}
