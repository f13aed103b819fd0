//! The settings of the mesh: whether others would load, and changes of its agents.
//!
//! A change is a new revision of the mesh: what is under way ends as it began, and the file stays as it is. It is kept as long as the
//! file says what it said then.

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::response::Response;
use hotcell_runtime::Agent;
use hotcell_runtime::diagnostic::{Diagnostic, Severity, SourceFile, render};
use hotcell_runtime::leafmesh::{fields_of_type, variables_of, written};
use http::StatusCode;
use http::header::CONTENT_TYPE;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::meshes::Mesh;
use super::reply::{Refused, documented};
use super::served::Served;
use super::{feed, schedule};
use crate::api::extract::{Json, read};
use crate::problem::{Problem, shown};
use crate::state::Server;
use crate::whereabouts::without_whereabouts;

/// The fact that holds the settings as they were changed, with the text of the file of which they were made.
const CHANGED: &str = "config";
/// What the names of variables end with that are not to be read.
const UNSET: &str = "__not_read_here";
/// The shortest value of a variable that is looked for in messages.
const SHORTEST: usize = 4;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(validate)).routes(routes!(patch, put))
}

/// Messages as others may see them: without the values of variables, and without the places of files.
fn messages(server: &Server, mesh: &Mesh, text: &str, diagnostics: &[Diagnostic], severity: Severity) -> Vec<String> {
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
            let message = variables.iter().fold(message, |message, (name, value)| message.replace(value, name));
            without_whereabouts(&message.replace(UNSET, ""), &mesh.agent.file)
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
async fn validate(State(server): State<Server>, Served(mesh): Served, request: Request) -> Result<Response, Refused> {
    let mesh = &mesh;
    let kind = request.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default().to_owned();
    let settings = server.settings();
    let bytes = read(request, settings.largest_body, settings.body_within).await?;
    let text = String::from_utf8(bytes).map_err(|_| Problem::new(StatusCode::BAD_REQUEST, "the body is not UTF-8"))?;
    if !kind.to_ascii_lowercase().contains("yaml") {
        match serde_json::from_str(&text) {
            Ok(Value::Object(_)) => {}
            Ok(_) => return Err(Problem::unprocessable("the body has to be an object").into()),
            Err(error) => {
                let detail =
                    format!("the body is not valid JSON: {error}; YAML needs `Content-Type: application/yaml`");
                return Err(Problem::new(StatusCode::BAD_REQUEST, detail).into());
            }
        }
    }
    let text = without_moved(&server, mesh, text)?;
    let diagnostics = match server.runs().host().load_text_async(&mesh.agent, text.clone()).await {
        Ok(agent) if agent.mesh().is_some() => agent.warnings,
        Ok(_) => vec![Diagnostic::error("it is not a mesh")],
        Err(failure) => failure.diagnostics,
    };
    let errors = messages(&server, mesh, &text, &diagnostics, Severity::Error);
    let warnings = messages(&server, mesh, &text, &diagnostics, Severity::Warning);
    let body = json!({ "valid": errors.is_empty(), "errors": errors, "warnings": warnings });
    Ok(documented(StatusCode::OK, body))
}

/// A configuration that reads no variables but where the file has them.
fn without_moved(server: &Server, mesh: &Mesh, text: String) -> Result<String, Problem> {
    let in_file = value_of(mesh, text_of(server, &mesh.in_file)?).unwrap_or_default();
    let Ok(mut given) = value_of(mesh, text.clone()) else { return Ok(text) };
    let mut is_moved = false;
    moved_variables(&mut given, Some(&in_file), "", &mut |text, _| {
        *text = unset(text);
        is_moved = true;
    });
    Ok(if is_moved { given.to_string() } else { text })
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
    Served(mesh): Served,
    Path(name): Path<String>,
    Json(given): Json<Map<String, Value>>,
) -> Result<Response, Refused> {
    change(&server, &mesh, &name, given, Change::Merge).await
}

/// Replace an agent of the mesh
#[utoipa::path(
    put, path = "/api/yaml/agents/{name}", tag = "Mesh", security(("key" = ["administer"])), request_body = Value,
    params(("name" = String, Path, description = "The agent")), responses((status = 200, body = Value))
)]
async fn put(
    State(server): State<Server>,
    Served(mesh): Served,
    Path(name): Path<String>,
    Json(given): Json<Map<String, Value>>,
) -> Result<Response, Refused> {
    change(&server, &mesh, &name, given, Change::Replace).await
}

/// Settings that were changed.
#[derive(Serialize, Deserialize)]
struct Changed {
    /// What the file said then
    of: String,
    text: String,
}

/// What was made of the mesh's file, if it says what it said then.
fn changed(server: &Server, mesh: &Mesh, file: &str) -> Result<Option<String>, Problem> {
    let kept =
        server.store().mesh_fact(&mesh.own(CHANGED))?.and_then(|text| serde_json::from_str::<Changed>(&text).ok());
    Ok(kept.filter(|kept| kept.of == file).map(|kept| kept.text))
}

/// The text of a mesh's file.
fn text_of(server: &Server, mesh: &Agent) -> Result<String, Problem> {
    server.runs().host().text_of(mesh).map_err(|failure| Problem::internal(&render(&failure.diagnostics, false)))
}

/// What a configuration says, as a value.
fn value_of(mesh: &Mesh, text: String) -> Result<Value, Vec<Diagnostic>> {
    let file = Arc::new(SourceFile { name: mesh.agent.file.display().to_string(), text });
    written(&file).map(|value| Value::from(&value))
}

/// Does something with each text with a variable that is not at the same place in what the file says.
///
/// Whoever may change agents may not read the environment by that: a variable goes where the file says, and nowhere else.
fn moved_variables(given: &mut Value, file: Option<&Value>, place: &str, moved: &mut dyn FnMut(&mut String, &str)) {
    let same = file == Some(&*given);
    match given {
        Value::String(text) if text.contains("${") && !same => moved(text, place),
        Value::Array(items) => items.iter_mut().enumerate().for_each(|(number, item)| {
            moved_variables(item, file.and_then(|file| file.get(number)), &format!("{place}[{number}]"), moved);
        }),
        Value::Object(entries) => entries.iter_mut().for_each(|(name, value)| {
            moved_variables(value, file.and_then(|file| file.get(name)), &format!("{place}.{name}"), moved);
        }),
        _ => {}
    }
}

/// The same text with variables that nobody sets in place of its own: their defaults count.
fn unset(text: &str) -> String {
    let mut parts = text.split("${");
    let mut changed = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find([':', '}']).unwrap_or(part.len());
        let (name, rest) = part.split_at(end);
        let ending = if name == "vault" { "" } else { UNSET };
        changed.push_str(&format!("${{{name}{ending}{rest}"));
    }
    changed
}

async fn change(
    server: &Server,
    mesh: &Mesh,
    name: &str,
    given: Map<String, Value>,
    change: Change,
) -> Result<Response, Refused> {
    let changed = apply(server, mesh, name, |config| {
        let agent = agent_of(config, name)?;
        match change {
            Change::Merge => merge(agent, given),
            Change::Replace => *agent = given,
        }
        Ok(name.to_owned())
    });
    let (name, config) = changed.await?;
    Ok(documented(StatusCode::OK, json!({ "name": name, "config": config })))
}

/// What a configuration says of an agent.
pub(super) fn agent_of<'c>(config: &'c mut Value, name: &str) -> Result<&'c mut Map<String, Value>, Problem> {
    let agent = config.get_mut("agents").and_then(|agents| agents.get_mut(name)).and_then(Value::as_object_mut);
    agent.ok_or_else(|| Problem::not_found(format!("there is no agent `{}`", shown(name))))
}

/// Changes the mesh by what an edit makes of its configuration, which gives the name that the agent has then: that, and what is said of
/// it. If the result would not load, nothing is changed.
pub(super) async fn apply(
    server: &Server,
    mesh: &Mesh,
    name: &str,
    edit: impl FnOnce(&mut Value) -> Result<String, Problem>,
) -> Result<(String, Value), Refused> {
    let _changing = mesh.doing.changing.lock().await;
    // Somebody else may have changed it until then.
    let now = server.meshes().of_scope(&mesh.scope);
    let mesh = &now.ok_or_else(|| Problem::not_found("the mesh is served no more"))?;
    let file = text_of(server, &mesh.in_file)?;
    let unread = |diagnostics: Vec<Diagnostic>| Problem::internal(&render(&diagnostics, false));
    let in_file = value_of(mesh, file.clone()).map_err(unread)?;
    let current = changed(server, mesh, &file)?.unwrap_or_else(|| file.clone());
    let mut config = value_of(mesh, current).map_err(unread)?;
    let before = agent_of(&mut config, name)?.get("previous_name").and_then(Value::as_str).map(str::to_owned);
    let name_now = edit(&mut config)?;
    let changed = Value::Object(agent_of(&mut config, &name_now)?.clone());
    let mut moved = Vec::new();
    // One that got another name since is in the file by the name that it had.
    let of_file = in_file.get("agents").and_then(|agents| agents.get(name).or_else(|| agents.get(before?)));
    moved_variables(&mut changed.clone(), of_file, &name_now, &mut |_, place| moved.push(place.to_owned()));
    if !moved.is_empty() {
        let detail = format!(
            "only the file may say where variables go, and nothing was changed; write the value, or change the file: {}",
            moved.join(", ")
        );
        return Err(Problem::unprocessable(detail).kind("variable", "A variable is not where the file has it").into());
    }
    let text = config.to_string();
    let loaded = server.runs().host().load_text_async(&mesh.agent, text.clone()).await;
    let agent = loaded.map_err(|failure| {
        let errors = messages(server, mesh, &text, &failure.diagnostics, Severity::Error);
        let detail = format!("the mesh would not load with that, and nothing was changed: {}", errors.join("; "));
        Problem::unprocessable(detail).with("errors", json!(errors))
    })?;
    let kept = serde_json::to_string(&Changed { of: file, text }).map_err(|error| Problem::internal(&error))?;
    server.store().remember(&mesh.own(CHANGED), &kept)?;
    server.meshes().exchange(mesh, Arc::new(agent), mesh.in_file.clone());
    feed::take_over(server)?;
    schedule::begin_all(server);
    Ok((name_now, changed))
}

/// Merges what is given with what an agent says. With another `agent_type` the fields of the old one go.
pub(super) fn merge(agent: &mut Map<String, Value>, given: Map<String, Value>) {
    let before = agent.get("agent_type").and_then(Value::as_str).unwrap_or("llm").to_owned();
    let after = given.get("agent_type").and_then(Value::as_str).unwrap_or(&before).to_owned();
    if before != after {
        let kept = fields_of_type(&after);
        let gone = fields_of_type(&before);
        agent.retain(|name, _| !gone.contains(&name.as_str()) || kept.contains(&name.as_str()));
        // Which type it is says that, too.
        agent.remove("is_human_powered");
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

/// Serves the mesh as it is in files that were changed. What was changed of its agents over HTTP counts as long as the mesh's own
/// file says what it said then, whatever else was changed that it is loaded from.
pub(super) async fn follow(server: &Server, mesh: &Mesh, in_file: Arc<Agent>) -> Result<(), Problem> {
    let _changing = mesh.doing.changing.lock().await;
    let (agent, result) = match as_changed(server, mesh, &in_file).await {
        Ok(changed) => (changed.unwrap_or_else(|| in_file.clone()), Ok(())),
        Err(problem) => (in_file.clone(), Err(problem)),
    };
    // Once: nobody meets it without its changes in between.
    server.meshes().exchange(mesh, agent, in_file);
    result
}

/// Serves the mesh as it was changed before the server ended, if its file says what it said then.
pub(super) async fn restore(server: &Server, mesh: &Mesh) -> Result<(), Problem> {
    if let Some(agent) = as_changed(server, mesh, &mesh.in_file).await? {
        server.meshes().exchange(mesh, agent, mesh.in_file.clone());
    }
    Ok(())
}

/// The mesh as it was changed over HTTP, if its file says what it said then and the changes still load.
async fn as_changed(server: &Server, mesh: &Mesh, in_file: &Agent) -> Result<Option<Arc<Agent>>, Problem> {
    let Some(text) = changed(server, mesh, &text_of(server, in_file)?)? else { return Ok(None) };
    match server.runs().host().load_text_async(in_file, text).await {
        Ok(agent) => Ok(Some(Arc::new(agent))),
        Err(failure) => {
            let reason = render(&failure.diagnostics, false);
            tracing::error!(target: "hotcell::serve", reason, "changes of the mesh do not load any more; its file counts");
            Ok(None)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_read_where_the_file_has_it_and_nowhere_else() {
        let file = json!({ "a": { "key": "${KEY}", "list": ["${ONE:1}", "x"] }, "b": { "prompt": "hello" } });
        let found = |given: Value| {
            let mut found = Vec::new();
            moved_variables(&mut given.clone(), Some(&file), "it", &mut |_, place| found.push(place.to_owned()));
            found
        };
        assert!(found(file.clone()).is_empty());
        assert!(found(json!({ "a": { "key": "written out" }, "c": 1 })).is_empty());
        assert_eq!(found(json!({ "b": { "prompt": "say ${KEY}" } })), ["it.b.prompt"]);
        assert_eq!(
            found(json!({ "a": { "key": "x${KEY}", "list": ["x", "${ONE:1}"] } })),
            ["it.a.key", "it.a.list[1]"]
        );
        assert_eq!(
            unset("a ${KEY} ${X:de:f} ${vault:v} $1 ${"),
            "a ${KEY__not_read_here} ${X__not_read_here:de:f} ${vault:v} $1 ${__not_read_here"
        );
    }
}
