//! Posts from outside: new work, or the answer that a session waits for.

use std::net::IpAddr;
use std::time::Duration;

use axum::Extension;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use hotcell_http::Peer;
use http::{HeaderMap, StatusCode};
use serde_json::{Map, Value, json};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::begin::{At, Task, admit, begin, busy, check_system};
use super::body::posted;
use super::people::{self, Answer};
use super::reply::{Refused, documented, unsigned};
use super::request::{is_dual, new_session, reply};
use super::served::Served;
use super::session::{Status, standing};
use super::signature::{Rules, Signed, verify};
use super::tenant::Tenant;
use super::{Mesh, end_sessions, secret};
use crate::answerer::Answerer;
use crate::api::extract::check_members;
use crate::problem::{Problem, shown};
use crate::state::Server;

/// The variable that lets the older scheme of signatures count.
const ALLOW_OLDER: &str = "LEAFMESH_WEBHOOK_ALLOW_LEGACY_HMAC";

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(webhook))
}

/// What came, before anything is known of it.
pub(super) struct Came {
    pub(super) headers: HeaderMap,
    pub(super) sender: IpAddr,
    pub(super) body: Vec<u8>,
}

impl Came {
    /// What the signature says; a nonce is used up by this.
    pub(super) fn signed(&self, server: &Server, mesh: &Mesh) -> Result<bool, Refused> {
        let secret = secret(server)?;
        let now = server.clock().now();
        let skew = mesh.settings.webhooks.replay_skew;
        let is_older_allowed = server.variable(ALLOW_OLDER).is_some_and(|value| value == "true" || value == "1");
        let rules = Rules { secret: secret.as_bytes(), now, skew, is_older_allowed };
        match verify(&rules, &self.headers, &self.body) {
            Ok(Signed::Not) => Ok(false),
            Ok(Signed::Well(None)) => Ok(true),
            Ok(Signed::Well(Some(nonce))) => {
                // Beyond this age its timestamp is refused.
                match server.store().note_nonce(&nonce, now, now + 2 * skew + Duration::from_secs(1))? {
                    true => Ok(true),
                    false => Err(unsigned("the nonce was used before")),
                }
            }
            Err(reason) => Err(unsigned(reason)),
        }
    }

    /// The body, which has to be an object.
    pub(super) fn object(&self) -> Result<Map<String, Value>, Problem> {
        check_members(&self.body)?;
        match serde_json::from_slice(&self.body) {
            Ok(Value::Object(object)) => Ok(object),
            Ok(_) => Err(Problem::unprocessable("the body has to be an object")),
            Err(error) => Err(Problem::new(StatusCode::BAD_REQUEST, format!("the body is not valid JSON: {error}"))),
        }
    }

    /// What follows `Bearer` in the header `Authorization`.
    pub(super) fn bearer(&self) -> Option<&str> {
        let value = self.headers.get(http::header::AUTHORIZATION)?.to_str().ok()?;
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(token)
    }
}

/// A text that is taken out of an object.
pub(super) fn take_text(object: &mut Map<String, Value>, name: &str) -> Result<Option<String>, Problem> {
    match object.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(Problem::unprocessable(format!("`{name}` has to be a text"))),
    }
}

/// Whether this is no entry point, and all the same where answers of a person are said to arrive.
fn is_for_answers(mesh: &Mesh, name: &str) -> bool {
    let path = format!("/webhook/{name}");
    let webhooks = mesh.settings.agents.iter().filter_map(|agent| agent.human.as_ref()?.webhook.as_ref());
    webhooks.into_iter().any(|webhook| webhook.inbound_endpoint.as_ref() == Some(&path))
}

/// Send work to an entry point, or the answer that a session waits for
///
/// Of a session that waits for a person, the post is the answer, at whichever entry point it arrives; of one that works, it is
/// refused; of any other it is new work.
#[utoipa::path(
    post, path = "/webhook/{entry_point}", tag = "Mesh", security(()), request_body = Value,
    params(("entry_point" = String, Path, description = "The entry point")), responses((status = 200, body = Value))
)]
async fn webhook(
    State(server): State<Server>,
    Served(mesh): Served,
    Extension(peer): Extension<Peer>,
    tenant: Tenant,
    Path(entry): Path<String>,
    request: Request,
) -> Result<Response, Refused> {
    let mesh = &mesh;
    if mesh.settings.entry_point(&entry).is_none() && !is_for_answers(mesh, &entry) {
        return Err(Problem::not_found(format!("there is no entry point `{}`", shown(&entry))).into());
    }
    let limits = mesh.settings.webhooks;
    let now = server.clock().now();
    if !mesh.doing.senders.count(&entry, peer.address(), now, limits.rate_limit_max, limits.rate_limit_window) {
        let wait = limits.rate_limit_window.as_secs().max(1);
        let problem = Problem::new(StatusCode::TOO_MANY_REQUESTS, "too many posts to this entry point");
        return Err(problem.with("retry_after", wait).into());
    }
    let headers = request.headers().clone();
    let body = posted(&server, mesh, request).await?;
    let came = Came { headers, sender: peer.address(), body };
    let is_signed = came.signed(&server, mesh)?;
    let may_be_unsigned = !mesh.settings.is_production && came.sender.is_loopback();
    if !is_signed && !may_be_unsigned && came.bearer().is_none() {
        return Err(unsigned("it is not signed"));
    }
    let mut data = came.object()?;
    let (session, request_id) = (take_text(&mut data, "session_id")?, take_text(&mut data, "request_id")?);
    check_system(&server, mesh)?;
    let key = tenant.session(mesh, &session.unwrap_or_else(new_session))?;
    let lock = mesh.doing.sessions.lock(&key).await;
    end_sessions(&server, mesh)?;
    let known = server.store().session(&key)?;
    let standing = match &known {
        Some(session) => Some(standing(&server, session).await?),
        None => None,
    };
    let asks = standing.as_ref().map(|standing| &standing.asks[..]).unwrap_or_default();
    if request_id.is_some() || !asks.is_empty() {
        let by = Answerer::vouched();
        let answer = Answer { data, by, is_signed, may_be_unsigned, bearer: came.bearer() };
        let ask = match (&known, &request_id) {
            (Some(session), Some(id)) => people::of_id(&server, session, asks, id).await?,
            (None, Some(id)) => return Err(people::no_request(id).into()),
            (_, None) => asks[0].clone(),
        };
        let id = people::answer(&server, mesh, &key, &ask, answer).await?;
        return Ok(documented(StatusCode::OK, json!({ "status": "resumed", "session_id": key.id, "request_id": id })));
    }
    if !is_signed && !may_be_unsigned {
        return Err(unsigned("it is not signed"));
    }
    if standing.is_some_and(|standing| standing.status == Status::Busy) {
        return Err(busy(&key, Status::Busy));
    }
    let data = Value::Object(data);
    admit(mesh, &entry, &data)?;
    let dual = is_dual(mesh, &entry);
    let at = At::Entry { name: entry, data };
    let started = begin(&server, mesh, Task { key, kind: "webhook", at, is_beside: false, once: None }, false).await?;
    drop(lock);
    Ok(documented(StatusCode::OK, reply(&server, mesh, &started, dual).await?))
}
