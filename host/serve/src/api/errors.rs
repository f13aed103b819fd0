//! Errors in the form of the protocol whose address was asked: everything that refuses a request gives a [`Problem`], and here it is
//! written as the clients of that protocol read it.

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, StatusCode};
use serde::Serialize;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;
use utoipa::{PartialSchema as _, ToSchema};

use super::a2a::{self, A2aError, A2aErrorReply};
use super::openai::{self, OpenAiError};
use crate::problem::{MEDIA_TYPE, Problem};
use crate::step::Next;

const JSON: &str = "application/json";

/// Says to clients of OpenAI whether a request may be sent again by itself.
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// The media type and the name of the schema of the errors of routes with this tag.
pub(super) fn described(tag: &str) -> (&'static str, String) {
    match tag {
        openai::TAG => (JSON, OpenAiError::name().into_owned()),
        a2a::TAG => (JSON, A2aErrorReply::name().into_owned()),
        _ => (MEDIA_TYPE, Problem::name().into_owned()),
    }
}

/// The schemas of errors.
pub(super) fn schemas() -> Vec<(String, RefOr<Schema>)> {
    let mut schemas = vec![
        (Problem::name().into_owned(), Problem::schema()),
        (OpenAiError::name().into_owned(), OpenAiError::schema()),
        (A2aErrorReply::name().into_owned(), A2aErrorReply::schema()),
    ];
    OpenAiError::schemas(&mut schemas);
    A2aErrorReply::schemas(&mut schemas);
    schemas
}

/// Writes a problem in the form of the protocol whose address was asked.
pub(crate) async fn speak(request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let (is_openai, is_a2a) = (path.starts_with(openai::PREFIX), path.starts_with(a2a::PREFIX) || path == a2a::CARD);
    let mut response = next.run(request).await;
    let Some(problem) = response.extensions_mut().remove::<Problem>() else { return response };
    if is_openai {
        let (status, error) = openai::spoken(&problem);
        // What failed with the same request would be begun again.
        let again = if matches!(status, 429 | 503) { "true" } else { "false" };
        response.headers_mut().insert(SHOULD_RETRY, HeaderValue::from_static(again));
        rewrite(&mut response, status, &error);
    } else if is_a2a {
        let error = A2aError::of(&problem);
        rewrite(&mut response, error.status(), &error.in_http());
    }
    response
}

fn rewrite(response: &mut Response, status: u16, error: &impl Serialize) {
    if let Ok(status) = StatusCode::from_u16(status) {
        *response.status_mut() = status;
    }
    *response.body_mut() = Body::from(serde_json::to_vec(error).unwrap_or_default());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
    headers.remove(CONTENT_LENGTH);
}
