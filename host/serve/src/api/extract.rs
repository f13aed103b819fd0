//! Reading requests: bodies with limits on their size and on the time they take, and what is wrong with them.

use std::time::Duration;

use axum::extract::{FromRequest, Request};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, StatusCode};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use serde::de::{DeserializeOwned, Error as _, IgnoredAny};
use serde::{Deserialize as _, Deserializer};
use serde_json::Value;

use super::distinct::Distinct;
use crate::problem::Problem;
use crate::state::Server;

/// The body of a request, which is JSON.
pub(crate) struct Json<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Server> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, server: &Server) -> Result<Self, Problem> {
        let bytes = json(request, server).await?;
        let is_list = bytes.trim_ascii_start().first() == Some(&b'[');
        if is_list && serde_json::from_slice::<IgnoredAny>(&bytes).is_ok() {
            // It would be taken for the members of an object, in their order.
            return Err(Problem::unprocessable("the body has to be an object, and is a list"));
        }
        parsed(&bytes).map(Json)
    }
}

/// The body of a request, which is a list in JSON.
pub(crate) struct JsonList<T>(pub(crate) Vec<T>);

impl<T: DeserializeOwned> FromRequest<Server> for JsonList<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, server: &Server) -> Result<Self, Problem> {
        let items: Vec<Value> = parsed(&json(request, server).await?)?;
        if !items.iter().all(Value::is_object) {
            return Err(Problem::unprocessable("the body has to be a list of objects"));
        }
        let item = |item| serde_json::from_value(item).map_err(unusable);
        items.into_iter().map(item).collect::<Result<_, _>>().map(JsonList)
    }
}

/// The bytes of a body that is said to be JSON.
async fn json(request: Request, server: &Server) -> Result<Vec<u8>, Problem> {
    if !is_json(request.headers()) {
        let detail = "the body has to be JSON, with the header `Content-Type: application/json`";
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail));
    }
    let settings = server.settings();
    let bytes = read(request, settings.largest_body, settings.body_within).await?;
    check_members(&bytes)?;
    Ok(bytes)
}

/// Refuses a body in which an object has a member twice. What is no JSON is told by whoever reads it.
pub(crate) fn check_members(body: &[u8]) -> Result<(), Problem> {
    match serde_json::from_slice::<Distinct>(body) {
        Err(error) if error.is_data() => {
            Err(Problem::new(StatusCode::BAD_REQUEST, format!("the body cannot be used: {error}")))
        }
        _ => Ok(()),
    }
}

fn parsed<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(bytes).map_err(|error| {
        // What comes after the first thing that does not fit has to be JSON, too.
        match error.is_data() && serde_json::from_slice::<IgnoredAny>(bytes).is_ok() {
            true => unusable(error),
            false => Problem::new(StatusCode::BAD_REQUEST, format!("the body cannot be used: {error}")),
        }
    })
}

fn unusable(error: serde_json::Error) -> Problem {
    Problem::unprocessable(format!("the body cannot be used: {error}"))
}

/// A whole number, however it is written: in JSON, `1.0` is one, too.
pub(super) fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<usize>, D::Error> {
    let Some(number) = Option::<f64>::deserialize(deserializer)? else { return Ok(None) };
    // Everything that is too large is refused afterwards.
    match number >= 0.0 && number.fract() == 0.0 {
        true => Ok(Some(number as usize)),
        false => Err(D::Error::custom(format!("{number} is not a whole number from 0"))),
    }
}

/// The same where there has to be one.
pub(super) fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    whole(deserializer)?.map(|number| number as u64).ok_or_else(|| D::Error::custom("a whole number is missing"))
}

/// Whether a body is said to be JSON. What a page elsewhere can send without being asked first never is.
fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind == "application/json" || (kind.starts_with("application/") && kind.ends_with("+json"))
}

/// The body of a request, of so many bytes at most and in so much time.
pub(crate) async fn read(request: Request, largest: usize, within: Duration) -> Result<Vec<u8>, Problem> {
    let body = Limited::new(request.into_body(), largest).collect();
    match tokio::time::timeout(within, body).await {
        Ok(Ok(body)) => Ok(body.to_bytes().into()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            let detail = format!("the body has more than {largest} bytes");
            Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail).with("limit", largest))
        }
        Ok(Err(_)) => Err(Problem::new(StatusCode::BAD_REQUEST, "the body did not arrive whole")),
        Err(_) => Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time")),
    }
}
