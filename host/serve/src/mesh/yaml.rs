//! The settings of the mesh: whether others would load, and changes of its agents.
//!
//! A change is a new revision of the mesh: what is under way ends as it began, and the file stays as it is. It is kept as long as the
//! file says what it said then.

use axum::extract::{Path, Request, State};
use axum::response::Response;
use hotcell_runtime::diagnostic::{Diagnostic, Severity, SourceFile, render};
use hotcell_runtime::leafmesh::{variables_of, written};
use http::StatusCode;
use http::header::CONTENT_TYPE;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::meshes::Mesh;
use super::reply::{Refused, documented};
use crate::api::extract::{Json, read};
use crate::problem::{Problem, shown};
use crate::state::Server;

/// The fact that holds the settings as they were changed, and the one that says of which file.
const CHANGED: &str = "config";
const CHANGED_OF: &str = "config_of";
/// Fields that belong to one type of agent, and go when the type is changed.
const OF_TYPE: [(&str, &[&str]); 4] = [
    (
        "llm",
        &[
            "model",
            "prompt",
            "temperature",
            "max_tokens",
            "max_completion_tokens",
            "reasoning",
            "reasoning_budget",
            "thinking",
            "thinking_budget",
            "tools",
            "tool_categories",
            "context_parts",
            "tool_choice",
            "response_format",
        ],
    ),
    ("human", &["webhook_config", "human_interface", "human_timeout_seconds", "channels", "is_human_powered"]),
    ("external", &["framework", "connector_config"]),
    ("programmatic", &["integration"]),
];
/// The shortest value of a variable that is looked for in messages.
const SHORTEST: usize = 4;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(validate)).routes(routes!(patch, put))
}

/// Messages as others may see them: without the values of variables.
fn messages(server: &Server, text: &str, diagnostics: &[Diagnostic], severity: Severity) -> Vec<String> {
    let variables: Vec<(String, String)> = variables_of(text)
        .into_iter()
        .filter_map(|name| Some((format!("${{{name}}}"), server.variable(&name)?)))
        .filter(|(_, value)| value.len() >= SHORTEST)
        .collect();
    let wanted = diagnostics.iter().filter(|diagnostic| diagnostic.severity == severity);
    wanted
        .map(|diagnostic| {
            let place = diagnostic.node.as_ref().map_or_else(String::new, |node| format!("`{node}`: "));
            let help = diagnostic.help.as_ref().map_or_else(String::new, |help| format!("; {help}"));
            let message = format!("{place}{}{help}", diagnostic.message);
            variables.iter().fold(message, |message, (name, value)| message.replace(value, name))
        })
        .collect()
}

/// Say whether a configuration would load
///
/// It is a JSON object, or YAML with `Content-Type: application/yaml`. The mesh that is served is not touched.
#[utoipa::path(
    post, path = "/api/yaml/validate", tag = "Mesh", security(("key" = ["operate"])), request_body = Value,
    responses((status = 200, body = Value, description = "`valid`, `errors` and `warnings`"))
)]
async fn validate(State(server): State<Server>, request: Request) -> Result<Response, Refused> {
    let mesh = &server.meshes().only()?;
    let kind = request.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default().to_owned();
    let settings = server.settings();
    let bytes = read(request, settings.largest_body, settings.body_within).await?;
    let text = String::from_utf8(bytes).map_err(|_| Problem::new(StatusCode::BAD_REQUEST, "the body is not UTF-8"))?;
    if !kind.to_ascii_lowercase().contains("yaml") {
        match serde_json::from_str(&text) {
            Ok(Value::Object(_)) => {}
            Ok(_) => return Err(Problem::unprocessable("the body has to be an object").into()),
            Err(error) => {
                let detail = format!("the body is no JSON: {error}; YAML needs `Content-Type: application/yaml`");
                return Err(Problem::new(StatusCode::BAD_REQUEST, detail).into());
            }
        }
    }
    let diagnostics = match server.runs().host().load_text_async(&mesh.agent, text.clone()).await {
        Ok(agent) if agent.mesh().is_some() => agent.warnings,
        Ok(_) => vec![Diagnostic::error("it is no mesh")],
        Err(failure) => failure.diagnostics,
    };
    let errors = messages(&server, &text, &diagnostics, Severity::Error);
    let warnings = messages(&server, &text, &diagnostics, Severity::Warning);
    let body = json!({ "valid": errors.is_empty(), "errors": errors, "warnings": warnings });
    Ok(documented(StatusCode::OK, body))
}

/// How an agent is changed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    /// Merged with what it says, nested blocks one level deep; null removes
    Merge,
    /// In the place of what it says
    Replace,
}

/// Change an agent of the mesh
///
/// What is given is merged with what the agent says, nested blocks one level deep; null removes a field. With another `agent_type` the
/// fields of the old one go. If the result would not load, nothing is changed.
#[utoipa::path(
    patch, path = "/api/yaml/agents/{name}", tag = "Mesh", security(("key" = ["administer"])), request_body = Value,
    params(("name" = String, Path, description = "The agent")), responses((status = 200, body = Value))
)]
async fn patch(
    State(server): State<Server>,
    Path(name): Path<String>,
    Json(given): Json<Map<String, Value>>,
) -> Result<Response, Refused> {
    change(&server, &name, given, Change::Merge).await
}

/// Replace an agent of the mesh
#[utoipa::path(
    put, path = "/api/yaml/agents/{name}", tag = "Mesh", security(("key" = ["administer"])), request_body = Value,
    params(("name" = String, Path, description = "The agent")), responses((status = 200, body = Value))
)]
async fn put(
    State(server): State<Server>,
    Path(name): Path<String>,
    Json(given): Json<Map<String, Value>>,
) -> Result<Response, Refused> {
    change(&server, &name, given, Change::Replace).await
}

/// The text of the mesh's file, or what was made of it.
fn current(server: &Server, mesh: &Mesh) -> Result<String, Problem> {
    if let Some(text) = server.store().mesh_fact(CHANGED)?
        && server.store().mesh_fact(CHANGED_OF)?.as_deref() == Some(&*in_file(server, mesh)?)
    {
        return Ok(text);
    }
    in_file(server, mesh)
}

fn in_file(server: &Server, mesh: &Mesh) -> Result<String, Problem> {
    server.runs().host().text_of(&mesh.agent).map_err(|failure| Problem::internal(&render(&failure.diagnostics, false)))
}

async fn change(server: &Server, name: &str, given: Map<String, Value>, change: Change) -> Result<Response, Refused> {
    let mesh = &server.meshes().only()?;
    let _changing = mesh.doing.changing.lock().await;
    let text = current(server, mesh)?;
    let file = Arc::new(SourceFile { name: mesh.agent.file.display().to_string(), text });
    let mut config = match written(&file) {
        Ok(value) => Value::from(&value),
        Err(diagnostics) => return Err(Problem::internal(&render(&diagnostics, false)).into()),
    };
    let agent = config.get_mut("agents").and_then(|agents| agents.get_mut(name)).and_then(Value::as_object_mut);
    let agent = agent.ok_or_else(|| Problem::not_found(format!("there is no agent `{}`", shown(name))))?;
    match change {
        Change::Merge => merge(agent, given),
        Change::Replace => *agent = given,
    }
    let changed = Value::Object(agent.clone());
    let text = config.to_string();
    let loaded = server.runs().host().load_text_async(&mesh.agent, text.clone()).await;
    let agent = loaded.map_err(|failure| {
        let errors = messages(server, &text, &failure.diagnostics, Severity::Error);
        let detail = format!("the mesh would not load with that, and nothing was changed: {}", errors.join("; "));
        Problem::unprocessable(detail).with("errors", json!(errors))
    })?;
    server.store().remember(CHANGED_OF, &in_file(server, mesh)?)?;
    server.store().remember(CHANGED, &text)?;
    server.meshes().exchange(mesh, agent);
    Ok(documented(StatusCode::OK, json!({ "name": name, "config": changed })))
}

fn merge(agent: &mut Map<String, Value>, given: Map<String, Value>) {
    let before = agent.get("agent_type").and_then(Value::as_str).unwrap_or("llm").to_owned();
    let after = given.get("agent_type").and_then(Value::as_str).unwrap_or(&before).to_owned();
    if before != after {
        let of_before = OF_TYPE.iter().find(|(kind, _)| *kind == before).map(|(_, fields)| *fields).unwrap_or_default();
        agent.retain(|name, _| !of_before.contains(&name.as_str()));
    }
    for (name, value) in given {
        match (agent.get_mut(&name), value) {
            (_, Value::Null) => {
                agent.remove(&name);
            }
            (Some(Value::Object(block)), Value::Object(given)) => {
                for (name, value) in given {
                    match value {
                        Value::Null => {
                            block.remove(&name);
                        }
                        value => {
                            block.insert(name, value);
                        }
                    }
                }
            }
            (_, value) => {
                agent.insert(name, value);
            }
        }
    }
}

/// Serves the mesh as it was changed before the server ended, if its file says what it said then.
pub(super) async fn restore(server: &Server, mesh: &Mesh) -> Result<(), Problem> {
    let text = current(server, mesh)?;
    if server.store().mesh_fact(CHANGED)?.as_deref() != Some(&*text) {
        return Ok(());
    }
    match server.runs().host().load_text_async(&mesh.agent, text).await {
        Ok(agent) => server.meshes().exchange(mesh, agent),
        Err(failure) => {
            let reason = render(&failure.diagnostics, false);
            tracing::error!(target: "hotcell::serve", reason, "changes of the mesh do not load any more; its file counts");
        }
    }
    Ok(())
}
