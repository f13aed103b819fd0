//! Responses: turns of runs that a client names, so that it sends only what is new.

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::conversation::Conversation;
use super::events::Events;
use super::parameters::{RESPONSES, check, refused, wrong};
use super::response::{Found, ResponseId, follows};
use crate::access::Asker;
use crate::answerer::Answerer;
use crate::api::event_stream::sse;
use crate::api::extract;
use crate::api::new_run::located;
use crate::api::turn::{self, Beginning, Came, Part, Started};
use crate::leash::Leash;
use crate::problem::Problem;
use crate::state::Server;
use crate::view::Object;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(create)).routes(routes!(get, delete)).routes(routes!(cancel))
}

/// What is said to an agent. Parameters that agents do not know are refused by name.
#[derive(Deserialize, ToSchema)]
struct ResponseRequest {
    /// The agent, by its id or a name that no other agent has; it can be left out with `previous_response_id`
    model: Option<String>,
    /// A text, or messages of the roles `user` and `assistant`
    #[schema(value_type = Object)]
    input: Value,
    /// The response after which this goes on: it answers its question, or goes on from the state that its run came to
    previous_response_id: Option<String>,
    /// Whether to tell what happens as server-sent events
    stream: Option<bool>,
    /// Whether to answer at once; `GET /v1/responses/{response_id}` says what came of it
    background: Option<bool>,
    /// Whatever is to be kept with the run
    #[schema(value_type = Option<Object>)]
    metadata: Option<Object>,
    #[serde(flatten)]
    #[schema(ignore)]
    rest: Object,
}

/// Say something to an agent
///
/// It begins a run, which goes on after `previous_response_id` if that is given, or answers the question that the run of that response
/// asks. A question of the run is the text of the response.
#[utoipa::path(
    post, path = "/v1/responses", tag = super::TAG, security(("key" = ["run"])), request_body = ResponseRequest,
    responses((status = 200, content((Object = "application/json"), (String = "text/event-stream"))))
)]
async fn create(
    State(server): State<Server>,
    Extension(caller): Extension<Asker>,
    extract::Json(wanted): extract::Json<ResponseRequest>,
) -> Result<Response, Problem> {
    check(&wanted.rest, RESPONSES)?;
    let (streams, is_background) = (wanted.stream == Some(true), wanted.background == Some(true));
    if streams && is_background {
        return Err(refused("background", "`background` is not supported together with `stream`".to_owned()));
    }
    let previous = match &wanted.previous_response_id {
        Some(id) => Some(Found::find(&server, id).await?),
        None => None,
    };
    let of_previous = previous.as_ref().and_then(|previous| server.agents().id_of(&previous.run.header.source));
    let model = wanted.model.or_else(|| of_previous.clone());
    let model = model.ok_or_else(|| wrong("model", "say which agent is meant, with `model`"))?;
    let (id, agent) = server.agents().find(&model)?;
    if of_previous.as_ref().is_some_and(|previous| *previous != id) {
        let detail =
            "the response `previous_response_id` is of another agent; go on with that one, or begin without it";
        return Err(wrong("previous_response_id", detail));
    }
    let messages = match wanted.input {
        Value::String(text) => vec![json!({ "role": "user", "content": text })],
        Value::Array(items) => items,
        _ => return Err(wrong("input", "`input` has to be a text or a list of messages")),
    };
    let conversation = Conversation::read(&caller, &agent, &messages, "input")?;
    let metadata = wanted.metadata.unwrap_or_default();
    // With a response before it, that is the conversation.
    let (conversation, started) = match &previous {
        Some(_) if conversation.has_replies() => {
            let detail = "`input` may have no messages of the assistant together with `previous_response_id`";
            return Err(wrong("input", detail));
        }
        Some(previous) => {
            let input = Value::String(conversation.said);
            (None, go_on(&server, &caller, previous, input, metadata, streams).await?)
        }
        None => {
            let started = conversation.go_on(&server, &caller, &agent, metadata, streams).await?;
            (Some(conversation), started)
        }
    };
    let Started { begun, after } = started;
    let (run, response) = (begun.run.clone(), ResponseId::new(&begun.run, after));
    if streams {
        let events = Events::new(&server, response, &id, conversation);
        let leash = Leash::new(&server, &run, false);
        return Ok(located(&run, sse(&server, &run, after, begun.events, leash, events)));
    }
    if !is_background {
        Part::wait(&server, &run, &begun.live, after).await?;
    }
    let record = server.runs().find(run.as_str()).await?;
    let found = Found::of(&server, response, record).await?;
    let found = found.ok_or_else(|| Problem::internal(&"a response has no turn"))?;
    if let Some(conversation) = &conversation {
        conversation.replied(&server, &run, &found.part.came)?;
    }
    if found.part.came == Came::Working && !is_background {
        return Err(turn::no_reply(&found.run, &found.part.came));
    }
    let mut view = found.view(&server, None);
    view["background"] = is_background.into();
    Ok(located(&run, Json(view).into_response()))
}

/// Goes on after a response.
async fn go_on(
    server: &Server,
    caller: &Asker,
    previous: &Found,
    input: Value,
    metadata: Object,
    listens: bool,
) -> Result<Started, Problem> {
    let (_, agent) = server.agents().find(&server.agents().id_of(&previous.run.header.source).unwrap_or_default())?;
    match &previous.part.came {
        Came::Asks(open) => {
            let question = open.first().map(|open| open.question.id.as_str()).unwrap_or_default();
            let text = input.as_str().unwrap_or_default();
            turn::answer(server, Answerer::of(caller).typed(), &previous.run, question, text, listens).await
        }
        Came::Working => {
            let detail = format!("response `{}` is in progress; go on when it is completed", previous.id);
            Err(Problem::conflict(detail).kind("response-in-progress", "The response is in progress"))
        }
        Came::Said(_) | Came::Failed(_) | Came::Cancelled => {
            let kept = follows(&previous.id);
            let beginning = Beginning { input, metadata, kept, listens };
            turn::begin_after(server, &agent, beginning, &previous.run).await
        }
    }
}

/// Look at a response
#[utoipa::path(
    get, path = "/v1/responses/{response_id}", tag = super::TAG, security(("key" = ["run", "operate"])),
    params(("response_id" = String, Path, description = "The response")),
    responses((status = 200, body = Object))
)]
async fn get(
    State(server): State<Server>,
    Path(id): Path<String>,
    query: crate::api::params::Query,
) -> Result<Json<Value>, Problem> {
    query.end()?;
    Ok(Json(Found::find(&server, &id).await?.view(&server, None)))
}

/// Remove the run of a response, which has to have ended
#[utoipa::path(
    delete, path = "/v1/responses/{response_id}", tag = super::TAG, security(("key" = ["operate"])),
    params(("response_id" = String, Path, description = "The response")),
    responses((status = 200, body = Object))
)]
async fn delete(State(server): State<Server>, Path(id): Path<String>) -> Result<Json<Value>, Problem> {
    let found = Found::find(&server, &id).await?;
    server.runs().delete(&found.run).await?;
    Ok(Json(json!({ "id": id, "object": "response", "deleted": true })))
}

/// End the run of a response for good
#[utoipa::path(
    post, path = "/v1/responses/{response_id}/cancel", tag = super::TAG, security(("key" = ["run", "operate"])),
    params(("response_id" = String, Path, description = "The response")),
    responses((status = 200, body = Object))
)]
async fn cancel(State(server): State<Server>, Path(id): Path<String>) -> Result<Json<Value>, Problem> {
    let found = Found::find(&server, &id).await?;
    server.runs().cancel(&found.run.id).await?;
    server.runs().rest(&found.run.id).await?;
    Ok(Json(Found::find(&server, &id).await?.view(&server, None)))
}
