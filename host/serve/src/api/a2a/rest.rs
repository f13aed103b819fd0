//! Version 1.0 of the protocol as HTTP with JSON.

use axum::extract::{FromRequestParts, Path, State};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use http::request::Parts;
use serde_json::{Value, json};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::asked::Asked;
use super::error::{A2aError, Kind};
use super::operations::{ListParams, TaskParams};
use super::push;
use super::rpc::no_extended_card;
use super::streams::{Wrapped, of_message, of_task};
use super::version::Version;
use crate::access::Asker;
use crate::api::extract;
use crate::api::params::Query;
use crate::problem::{Problem, shown};
use crate::state::Server;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .routes(routes!(send))
        .routes(routes!(stream))
        .routes(routes!(list))
        .routes(routes!(get, act))
        .routes(routes!(list_push, set_push))
        .routes(routes!(get_push, delete_push))
        .routes(routes!(extended_card))
}

/// A request in version 1.0.
struct One;

impl FromRequestParts<Server> for One {
    type Rejection = A2aError;

    async fn from_request_parts(parts: &mut Parts, server: &Server) -> Result<Self, A2aError> {
        match Version::from_request_parts(parts, server).await? {
            Version::One => Ok(One),
            Version::Legacy => {
                let detail = "HTTP with JSON is served in version 1.0, as `A2A-Version: 1.0` says; version 0.3 is served as JSON-RPC";
                Err(A2aError::new(Kind::VersionNotSupported, detail))
            }
        }
    }
}

fn asked(server: Server, caller: Asker, agent: &str) -> Result<Asked, A2aError> {
    let (_, agent) = server.agents().find(agent)?;
    Ok(Asked { server, caller, version: Version::One, agent })
}

/// Send a message to an agent, and wait for what comes of it
#[utoipa::path(
    post, path = "/a2a/{agent}/message:send", tag = super::TAG, security(("key" = ["run"])), request_body = Object,
    params(("agent" = String, Path, description = "The agent")), responses((status = 200, body = Object))
)]
async fn send(
    State(server): State<Server>,
    Path(agent): Path<String>,
    Extension(caller): Extension<Asker>,
    _: One,
    extract::Json(body): extract::Json<Value>,
) -> Result<Response, A2aError> {
    let asked = asked(server, caller, &agent)?;
    let sent = asked.send(body).await?;
    Ok(Json(json!({ "task": asked.outcome(&sent).await? })).into_response())
}

/// Send a message to an agent, and follow what comes of it
#[utoipa::path(
    post, path = "/a2a/{agent}/message:stream", tag = super::TAG, security(("key" = ["run"])), request_body = Object,
    params(("agent" = String, Path, description = "The agent")),
    responses((status = 200, content_type = "text/event-stream", body = String))
)]
async fn stream(
    State(server): State<Server>,
    Path(agent): Path<String>,
    Extension(caller): Extension<Asker>,
    _: One,
    extract::Json(body): extract::Json<Value>,
) -> Result<Response, A2aError> {
    let asked = asked(server, caller, &agent)?;
    let sent = asked.send(body).await?;
    of_message(&asked, sent, Wrapped::Bare).await
}

/// List tasks of an agent, the newest first
#[utoipa::path(
    get, path = "/a2a/{agent}/tasks", tag = super::TAG, security(("key" = ["run"])),
    params(
        ("agent" = String, Path, description = "The agent"),
        ("contextId" = Option<String>, Query, description = "Only tasks of this context"),
        ("status" = Option<String>, Query, description = "Only tasks in this state"),
        ("pageSize" = Option<u32>, Query, minimum = 1, maximum = 100, description = "How many at most"),
        ("pageToken" = Option<String>, Query, description = "Where the page begins: `nextPageToken` of the page before"),
        ("historyLength" = Option<u32>, Query, minimum = 0, maximum = 1000, description = "How many messages of each at most"),
        ("includeArtifacts" = Option<bool>, Query, description = "Whether to show what they made"),
    ),
    responses((status = 200, body = Object))
)]
async fn list(
    State(server): State<Server>,
    Path(agent): Path<String>,
    Extension(caller): Extension<Asker>,
    _: One,
    mut query: Query,
) -> Result<Json<Value>, A2aError> {
    let asked = asked(server, caller, &agent)?;
    let mut wanted = ListParams {
        context_id: query.text("contextId").unwrap_or_default(),
        status: query.text("status").unwrap_or_default(),
        page_token: query.text("pageToken").unwrap_or_default(),
        page_size: number(&mut query, "pageSize")?,
        history_length: number(&mut query, "historyLength")?,
        ..ListParams::default()
    };
    wanted.include_artifacts = match query.text("includeArtifacts").as_deref() {
        None | Some("" | "false" | "False") => false,
        Some("true" | "True") => true,
        Some(other) => {
            let detail = format!("`includeArtifacts` is `true` or `false`, and not `{}`", shown(other));
            return Err(A2aError::invalid(detail));
        }
    };
    query.end()?;
    Ok(Json(asked.list(wanted).await?))
}

fn number(query: &mut Query, name: &str) -> Result<Option<u32>, Problem> {
    Ok(query.number(name, 0, i32::MAX as u64)?.and_then(|number| u32::try_from(number).ok()))
}

/// Show a task, or follow it as `TASK:subscribe`
#[utoipa::path(
    get, path = "/a2a/{agent}/tasks/{task}", tag = super::TAG, security(("key" = ["run"])),
    params(
        ("agent" = String, Path, description = "The agent"),
        ("task" = String, Path, description = "The task, or `TASK:subscribe`"),
        ("historyLength" = Option<u32>, Query, minimum = 0, maximum = 1000, description = "How many messages at most"),
    ),
    responses((status = 200, content((Object = "application/json"), (String = "text/event-stream"))))
)]
async fn get(
    State(server): State<Server>,
    Path((agent, task)): Path<(String, String)>,
    Extension(caller): Extension<Asker>,
    _: One,
    mut query: Query,
) -> Result<Response, A2aError> {
    let asked = asked(server, caller, &agent)?;
    let history = number(&mut query, "historyLength")?;
    query.end()?;
    if let Some(task) = task.strip_suffix(":subscribe") {
        let run = asked.followed(TaskParams::of(task, None)).await?;
        return of_task(&asked, &run, Wrapped::Bare).await;
    }
    Ok(Json(asked.get(TaskParams::of(&task, history)).await?).into_response())
}

/// End a task for good as `TASK:cancel`, or follow it as `TASK:subscribe`
#[utoipa::path(
    post, path = "/a2a/{agent}/tasks/{task}", tag = super::TAG, security(("key" = ["run"])),
    params(
        ("agent" = String, Path, description = "The agent"),
        ("task" = String, Path, description = "`TASK:cancel` or `TASK:subscribe`"),
    ),
    responses((status = 200, content((Object = "application/json"), (String = "text/event-stream"))))
)]
async fn act(
    State(server): State<Server>,
    Path((agent, task)): Path<(String, String)>,
    Extension(caller): Extension<Asker>,
    _: One,
) -> Result<Response, A2aError> {
    let asked = asked(server, caller, &agent)?;
    match task.rsplit_once(':') {
        Some((task, "cancel")) => Ok(Json(asked.cancel(TaskParams::of(task, None)).await?).into_response()),
        Some((task, "subscribe")) => {
            let run = asked.followed(TaskParams::of(task, None)).await?;
            of_task(&asked, &run, Wrapped::Bare).await
        }
        _ => Err(A2aError::new(Kind::MethodNotFound, "a task can be asked to `:cancel` or to `:subscribe`")),
    }
}

/// Have an address told what becomes of a task
#[utoipa::path(
    post, path = "/a2a/{agent}/tasks/{task}/pushNotificationConfigs", tag = super::TAG, security(("key" = ["run"])),
    params(("agent" = String, Path, description = "The agent"), ("task" = String, Path, description = "The task")),
    request_body = Object, responses((status = 200, body = Object))
)]
async fn set_push(
    State(server): State<Server>,
    Path((agent, task)): Path<(String, String)>,
    Extension(caller): Extension<Asker>,
    _: One,
    extract::Json(mut body): extract::Json<Value>,
) -> Result<Json<Value>, A2aError> {
    let asked = asked(server, caller, &agent)?;
    if let Some(body) = body.as_object_mut() {
        body.insert("taskId".to_owned(), task.into());
    }
    Ok(Json(push::set(&asked, body).await?))
}

/// List the addresses that are told what becomes of a task
#[utoipa::path(
    get, path = "/a2a/{agent}/tasks/{task}/pushNotificationConfigs", tag = super::TAG, security(("key" = ["run"])),
    params(("agent" = String, Path, description = "The agent"), ("task" = String, Path, description = "The task")),
    responses((status = 200, body = Object))
)]
async fn list_push(
    State(server): State<Server>,
    Path((agent, task)): Path<(String, String)>,
    Extension(caller): Extension<Asker>,
    _: One,
    query: Query,
) -> Result<Json<Value>, A2aError> {
    query.end()?;
    Ok(Json(push::list(&asked(server, caller, &agent)?, json!({ "taskId": task })).await?))
}

/// Show an address that is told what becomes of a task
#[utoipa::path(
    get, path = "/a2a/{agent}/tasks/{task}/pushNotificationConfigs/{config}", tag = super::TAG, security(("key" = ["run"])),
    params(
        ("agent" = String, Path, description = "The agent"),
        ("task" = String, Path, description = "The task"),
        ("config" = String, Path, description = "The address, by its id"),
    ),
    responses((status = 200, body = Object))
)]
async fn get_push(
    State(server): State<Server>,
    Path((agent, task, config)): Path<(String, String, String)>,
    Extension(caller): Extension<Asker>,
    _: One,
) -> Result<Json<Value>, A2aError> {
    let asked = asked(server, caller, &agent)?;
    Ok(Json(push::get(&asked, json!({ "taskId": task, "id": config })).await?))
}

/// Tell an address no more of what becomes of a task
#[utoipa::path(
    delete, path = "/a2a/{agent}/tasks/{task}/pushNotificationConfigs/{config}", tag = super::TAG, security(("key" = ["run"])),
    params(
        ("agent" = String, Path, description = "The agent"),
        ("task" = String, Path, description = "The task"),
        ("config" = String, Path, description = "The address, by its id"),
    ),
    responses((status = 200, body = Object))
)]
async fn delete_push(
    State(server): State<Server>,
    Path((agent, task, config)): Path<(String, String, String)>,
    Extension(caller): Extension<Asker>,
    _: One,
) -> Result<Json<Value>, A2aError> {
    let asked = asked(server, caller, &agent)?;
    push::delete(&asked, json!({ "taskId": task, "id": config })).await?;
    Ok(Json(json!({})))
}

/// Show a card for those who have a key: there is none
#[utoipa::path(
    get, path = "/a2a/{agent}/extendedAgentCard", tag = super::TAG, security(("key" = ["run"])),
    params(("agent" = String, Path, description = "The agent")), responses((status = 400, body = super::A2aErrorReply))
)]
async fn extended_card() -> A2aError {
    no_extended_card()
}
