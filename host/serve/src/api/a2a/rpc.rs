//! The protocol as JSON-RPC.

use axum::Extension;
use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::asked::{Asked, params};
use super::error::{A2aError, Kind};
use super::push;
use super::streams::{Wrapped, of_message, of_task};
use super::version::Version;
use crate::access::Asker;
use crate::api::extract;
use crate::problem::{Problem, shown};
use crate::state::Server;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(call))
}

/// The operations, and what the versions call them.
const METHODS: [(&str, &str, Method); 11] = [
    ("SendMessage", "message/send", Method::Send),
    ("SendStreamingMessage", "message/stream", Method::Stream),
    ("GetTask", "tasks/get", Method::Get),
    ("ListTasks", "", Method::List),
    ("CancelTask", "tasks/cancel", Method::Cancel),
    ("SubscribeToTask", "tasks/resubscribe", Method::Subscribe),
    ("CreateTaskPushNotificationConfig", "tasks/pushNotificationConfig/set", Method::SetPush),
    ("GetTaskPushNotificationConfig", "tasks/pushNotificationConfig/get", Method::GetPush),
    ("ListTaskPushNotificationConfigs", "tasks/pushNotificationConfig/list", Method::ListPush),
    ("DeleteTaskPushNotificationConfig", "tasks/pushNotificationConfig/delete", Method::DeletePush),
    ("GetExtendedAgentCard", "agent/getAuthenticatedExtendedCard", Method::ExtendedCard),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    Send,
    Stream,
    Get,
    List,
    Cancel,
    Subscribe,
    SetPush,
    GetPush,
    ListPush,
    DeletePush,
    ExtendedCard,
}

impl Method {
    fn named(name: &str, version: Version) -> Result<Self, A2aError> {
        let known = METHODS.iter().find(|(one, legacy, _)| [one, legacy].contains(&&name) && !name.is_empty());
        match (known, version) {
            (Some((one, _, method)), Version::One) if *one == name => Ok(*method),
            (Some((_, legacy, method)), Version::Legacy) if *legacy == name => Ok(*method),
            (Some(_), _) => {
                let detail = format!(
                    "the method `{name}` is of another version of the protocol than the request, which says it with `A2A-Version` and \
                     means 0.3 without it"
                );
                Err(A2aError::new(Kind::VersionNotSupported, detail))
            }
            (None, _) => Err(A2aError::new(Kind::MethodNotFound, format!("there is no method `{}`", shown(name)))),
        }
    }
}

/// Ask an agent for something, as JSON-RPC
///
/// The version is what `A2A-Version` says, or 0.3. Methods that stream answer with server-sent events.
#[utoipa::path(
    post, path = "/a2a/{agent}", tag = super::TAG, security(("key" = ["run"])), request_body = Value,
    params(("agent" = String, Path, description = "The agent")),
    responses((status = 200, content((Object = "application/json"), (String = "text/event-stream"))))
)]
async fn call(
    State(server): State<Server>,
    Path(agent): Path<String>,
    Extension(caller): Extension<Asker>,
    version: Result<Version, A2aError>,
    body: Result<extract::Json<Value>, Problem>,
) -> Response {
    let body = match body {
        Ok(extract::Json(body)) => body,
        // What is no JSON has no id, either.
        Err(problem) if problem.status == 400 => {
            return failed(&Value::Null, &A2aError::new(Kind::Parse, problem.detail));
        }
        Err(problem) if problem.status == 422 => {
            return failed(&Value::Null, &A2aError::new(Kind::InvalidRequest, problem.detail));
        }
        Err(problem) => return problem.into_response(),
    };
    // What is no id is not sent back as one.
    let id = body.get("id").filter(|id| id.is_string() || id.is_number()).cloned().unwrap_or_default();
    let answered = async {
        let (method, given) = read(body)?;
        let version = version?;
        let method = Method::named(&method, version)?;
        let (_, agent) = server.agents().find(&agent)?;
        let asked = Asked { server: server.clone(), caller, version, agent };
        answer(&asked, method, given, &id).await
    };
    match answered.await {
        Ok(response) => response,
        Err(error) => failed(&id, &error),
    }
}

/// The method and the parameters of a request.
fn read(body: Value) -> Result<(String, Value), A2aError> {
    let wrong = |detail: &str| A2aError::new(Kind::InvalidRequest, detail);
    let Value::Object(mut body) = body else { return Err(wrong("a request is an object")) };
    if body.get("jsonrpc") != Some(&"2.0".into()) {
        return Err(wrong("`jsonrpc` has to be `2.0`"));
    }
    match body.get("id") {
        Some(Value::String(_) | Value::Number(_)) => {}
        Some(_) => return Err(wrong("`id` has to be a text or a number")),
        None => return Err(wrong("`id` is missing: notifications are not supported")),
    }
    let Some(Value::String(method)) = body.remove("method") else { return Err(wrong("`method` has to be a text")) };
    let given = body.remove("params").unwrap_or_else(|| json!({}));
    if let Some(name) = body.keys().find(|name| !matches!(&***name, "jsonrpc" | "id")) {
        return Err(wrong(&format!("a request has no `{}`", shown(name))));
    }
    Ok((method, given))
}

async fn answer(asked: &Asked, method: Method, given: Value, id: &Value) -> Result<Response, A2aError> {
    let result = match method {
        Method::Send => {
            let sent = asked.send(given).await?;
            let task = asked.outcome(&sent).await?;
            if asked.version == Version::One { json!({ "task": task }) } else { task }
        }
        Method::Stream => {
            let sent = asked.send(given).await?;
            return of_message(asked, sent, Wrapped::Rpc(id.clone())).await;
        }
        Method::Subscribe => {
            let run = asked.followed(params(given)?).await?;
            return of_task(asked, &run, Wrapped::Rpc(id.clone())).await;
        }
        Method::Get => asked.get(params(given)?).await?,
        Method::List => asked.list(params(given)?).await?,
        Method::Cancel => asked.cancel(params(given)?).await?,
        Method::SetPush => push::set(asked, given).await?,
        Method::GetPush => push::get(asked, given).await?,
        Method::ListPush => push::list(asked, given).await?,
        Method::DeletePush => push::delete(asked, given).await?,
        Method::ExtendedCard => return Err(no_extended_card()),
    };
    Ok(Json(json!({ "jsonrpc": "2.0", "id": id, "result": result })).into_response())
}

pub(super) fn no_extended_card() -> A2aError {
    A2aError::new(
        Kind::ExtendedAgentCardNotConfigured,
        "an agent has one card, and no further one for those who have a key",
    )
}

fn failed(id: &Value, error: &A2aError) -> Response {
    Json(json!({ "jsonrpc": "2.0", "id": id, "error": error.in_rpc() })).into_response()
}
