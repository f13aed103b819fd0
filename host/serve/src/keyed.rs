//! Requests that are made again with the same `Idempotency-Key`: they are answered as they were the first time, and nothing is done twice.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use axum::body::{Body, HttpBody as _};
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_LENGTH, CONTENT_LOCATION, CONTENT_TYPE, LOCATION};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use http_body_util::BodyExt as _;
use sha2::{Digest as _, Sha256};

use crate::access::Caller;
use crate::api::extract::read;
use crate::mesh::meshes::{MESHES, NamedMesh};
use crate::once::{KEY, Keyed, LONGEST, REQUEST, takes_key};
use crate::problem::Problem;
use crate::replies::{Claim, Kept};
use crate::state::Server;
use crate::step::Next;

/// The header of a reply that was given before.
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
/// Bytes of the longest reply that is kept. What a longer one says is found out again, by the name.
const LARGEST: u64 = 256 << 10;

/// Carries a request out unless one with its key was.
pub(crate) async fn carry_out(server: Server, request: Request, next: Next) -> Response {
    if !request.headers().contains_key(KEY) || !takes_key(request.method(), request.uri().path()) {
        return next.run(request).await;
    }
    // What needs no key of the server has no caller whose keys could be told from those of others.
    let Some(caller) = request.extensions().get::<Caller>().cloned() else { return next.run(request).await };
    match keyed(&server, &caller, request, next).await {
        Ok(response) => response,
        Err(problem) => problem.into_response(),
    }
}

async fn keyed(server: &Server, caller: &Caller, request: Request, next: Next) -> Result<Response, Problem> {
    let key = digest(&[caller.id().as_bytes(), key(request.headers())?.as_bytes()]);
    let Some(_hold) = server.in_progress().begin(key) else {
        let detail =
            "a request with this `Idempotency-Key` is being carried out; wait for its reply, or ask again later";
        return Err(Problem::conflict(detail).kind("in-progress", "The request is being carried out"));
    };
    let (parts, body) = request.into_parts();
    let settings = server.settings();
    let body = read(Request::from_parts(parts.clone(), body), settings.largest_body, settings.body_within).await?;
    let mut address = parts.uri.path_and_query().map_or_else(String::new, ToString::to_string);
    if let Some(NamedMesh(name)) = parts.extensions.get() {
        address = format!("{MESHES}{name}{address}");
    }
    let same = digest(&[parts.method.as_str().as_bytes(), address.as_bytes(), &body]);
    let now = SystemTime::now();
    let (name, is_repeat) = match server.store().claim(&key, caller.id(), &same, now)? {
        Claim::New(name) => (name, false),
        Claim::Open(name) => (name, true),
        Claim::Done(kept) => return Ok(kept.into_response()),
        Claim::Other => {
            let detail = "another request was made with this `Idempotency-Key`; each request needs a key of its own";
            return Err(Problem::unprocessable(detail).kind("idempotency-key", "The key belongs to another request"));
        }
    };
    let used = Arc::new(Mutex::new(false));
    let keyed = Keyed { name: RefCell::new(Some(name)), is_repeat, used: used.clone() };
    let request = Request::from_parts(parts, Body::from(body));
    let response = REQUEST.scope(keyed, next.run(request)).await;
    let was_used = *used.lock().unwrap_or_else(PoisonError::into_inner);
    match response.status() {
        status if status.is_success() => keep(server, &key, response).await,
        // Nothing was done that another try could do twice.
        _ => {
            if !was_used {
                server.store().forget_claim(&key)?;
            }
            Ok(response)
        }
    }
}

/// Keeps a reply. One that goes on and on, or is too long, is not kept: it is made again from what was begun.
async fn keep(server: &Server, key: &[u8; 32], response: Response) -> Result<Response, Problem> {
    if response.body().size_hint().exact().is_none_or(|bytes| bytes > LARGEST) {
        return Ok(response);
    }
    let (parts, body) = response.into_parts();
    let body = body.collect().await.map_err(|error| Problem::internal(&error))?.to_bytes();
    let header = |name: &HeaderName| {
        let value = parts.headers.get(name)?.to_str().ok()?;
        Some((name.as_str().to_owned(), value.to_owned()))
    };
    let headers = [CONTENT_TYPE, CONTENT_LOCATION, LOCATION].iter().filter_map(header).collect();
    let kept = Kept { status: parts.status.as_u16(), headers, body: body.to_vec() };
    // It was carried out, whether or not that can be kept.
    if let Err(error) = server.store().answered(key, &kept) {
        tracing::error!(target: "hotcell::serve", %error, "a reply cannot be kept for its `Idempotency-Key`");
    }
    Ok(Response::from_parts(parts, Body::from(body)))
}

/// The key of a request.
fn key(headers: &HeaderMap) -> Result<&str, Problem> {
    let mut all = headers.get_all(KEY).iter();
    let text = match (all.next(), all.next()) {
        (Some(only), None) => only.to_str().ok(),
        _ => None,
    };
    let is_key = |text: &&str| (1..=LONGEST).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
    text.filter(is_key).ok_or_else(|| {
        let detail = format!("`Idempotency-Key` has to be given once, with 1 to {LONGEST} visible ASCII characters");
        Problem::new(StatusCode::BAD_REQUEST, detail)
    })
}

fn digest(parts: &[&[u8]]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    hasher.finalize().into()
}

impl IntoResponse for Kept {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::OK);
        let length = HeaderValue::from(self.body.len());
        let mut response = (status, self.body).into_response();
        let headers = response.headers_mut();
        headers.remove(CONTENT_TYPE);
        for (name, value) in self.headers {
            if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
                headers.insert(name, value);
            }
        }
        headers.insert(CONTENT_LENGTH, length);
        headers.insert(REPLAYED, HeaderValue::from_static("true"));
        response
    }
}
