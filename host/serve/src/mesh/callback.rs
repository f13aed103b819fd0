//! Results that other systems post: each belongs to a job of a connector, whose address says which.

use std::time::Duration;

use axum::extract::{Path, Request, State};
use axum::response::Response;
use hotcell_runtime::{CallbackError, RunId, callback_of};
use http::StatusCode;
use serde_json::{Map, Value, json};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::body::posted;
use super::reply::{Refused, documented};
use super::webhook::take_text;
use crate::api::extract::check_members;
use crate::problem::{Problem, shown};
use crate::state::Server;

/// How long a result waits for a run that does not wait for it yet: it may come before the request was answered that asked for it.
const READY_WITHIN: Duration = Duration::from_secs(10);
/// After how long it is looked although the run has written nothing: what was sent to it may be counted as written.
const LOOK: Duration = Duration::from_secs(1);

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(callback)).routes(routes!(nowhere))
}

fn unknown(agent: &str) -> Problem {
    Problem::not_found(format!("no result is waited for here by `{}`", shown(agent)))
        .kind("unknown-callback", "There is no such callback")
}

/// Post a result without the address that was given out
#[utoipa::path(
    post, path = "/callback/{agent}", tag = "Mesh", security(()),
    params(("agent" = String, Path, description = "The agent")),
    responses((status = 404, description = "No result is waited for", body = Problem, content_type = "application/problem+json"))
)]
async fn nowhere(Path(agent): Path<String>) -> Refused {
    unknown(&agent).into()
}

/// Post the result of a connector's job
///
/// `{"session_id", "result"}`, to the address that the other system was given. It is taken once (409), and not after the time-out (410).
#[utoipa::path(
    post, path = "/callback/{agent}/{token}", tag = "Mesh", security(()), request_body = Value,
    params(
        ("agent" = String, Path, description = "The agent"),
        ("token" = String, Path, description = "What the address was given out with"),
    ),
    responses((status = 200, body = Value))
)]
async fn callback(
    State(server): State<Server>,
    Path((agent, token)): Path<(String, String)>,
    request: Request,
) -> Result<Response, Refused> {
    server.ready().cancelled().await;
    let run: RunId = token.split_once('.').map(|(run, _)| run.to_owned()).ok_or_else(|| unknown(&agent))?.into();
    let (session, _) = server.store().run_of_mesh(&run)?.ok_or_else(|| unknown(&agent))?;
    // The address belongs to a run, whichever mesh it names.
    let mesh = &server.meshes().of_scope(&session.key.scope).ok_or_else(|| unknown(&agent))?;
    // Before the body is read: nobody sends much who does not know where to.
    let waits = async || -> Result<(u64, Option<String>), Problem> {
        let entries = server.runs().store().history(&run).await?.whole()?;
        Ok((entries.len() as u64, callback_of(&entries, &token)))
    };
    let (mut written, mut name) = waits().await?;
    let body = posted(&server, mesh, request).await?;
    check_members(&body)?;
    let refuse = |detail: String| Problem::new(StatusCode::BAD_REQUEST, detail);
    let mut body: Map<String, Value> = match serde_json::from_slice(&body) {
        Ok(Value::Object(body)) => body,
        Ok(_) => return Err(refuse("the body has to be an object".to_owned()).into()),
        Err(error) => return Err(refuse(format!("the body is not valid JSON: {error}")).into()),
    };
    let begun = tokio::time::Instant::now();
    let mut taken = Err(CallbackError::Early);
    while begun.elapsed() < READY_WITHIN {
        if let Some(name) = &name {
            if *name != agent {
                return Err(unknown(&agent).into());
            }
            let given = take_text(&mut body, "session_id")?;
            let given = given.ok_or_else(|| refuse("`session_id` is missing: it came with the address".to_owned()))?;
            if given != session.key.id {
                return Err(unknown(&agent).into());
            }
            let result = body.get("result").cloned();
            let result = result.ok_or_else(|| refuse("`result` is missing".to_owned()))?;
            taken = server.runs().answer_callback(&run, &token, &result.to_string()).await;
            break;
        }
        // Whether the token is one at all shows when its run waits.
        if !server.runs().is_live(&run) {
            return Err(unknown(&agent).into());
        }
        let grown = server.runs().store().grown(&run, written);
        let _ = tokio::time::timeout(LOOK, grown).await;
        (written, name) = waits().await?;
    }
    taken.map_err(|error| problem(error, &agent))?;
    server.meshes().tend(&**server.clock(), &mesh.scope, &run);
    Ok(documented(StatusCode::OK, json!({ "status": "delivered", "session_id": session.key.id })))
}

fn problem(error: CallbackError, agent: &str) -> Problem {
    match error {
        CallbackError::Unknown => unknown(agent),
        CallbackError::Early => {
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string()).with("retry_after", 10)
        }
        CallbackError::Answered => {
            Problem::conflict("the result was posted before").kind("already-answered", "The result is there")
        }
        CallbackError::Expired => Problem::new(StatusCode::GONE, "the result comes too late")
            .kind("request-expired", "The request has timed out"),
        CallbackError::Ended => Problem::new(StatusCode::GONE, "the work that waited for the result has ended")
            .kind("run-ended", "The run has ended"),
        CallbackError::Seal(error) => Problem::internal(&error),
        CallbackError::Journal(error) => error.into(),
    }
}
