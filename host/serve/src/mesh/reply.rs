//! Replies whose form is documented: they are sent as they are, also where their status says that something is wrong.

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde_json::Value;

use crate::guard::Documented;
use crate::problem::Problem;

/// Why a request is not carried out.
#[derive(Debug)]
pub(super) enum Refused {
    Problem(Box<Problem>),
    /// A reply of a documented form
    Documented(StatusCode, Value),
}

impl Refused {
    /// The status that it is answered with.
    pub(super) fn status(&self) -> u16 {
        match self {
            Refused::Problem(problem) => problem.status,
            Refused::Documented(status, _) => status.as_u16(),
        }
    }

    /// Why, for a log.
    pub(super) fn reason(self) -> String {
        match self {
            Refused::Problem(problem) => problem.detail,
            Refused::Documented(_, body) => body.to_string(),
        }
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        match self {
            Refused::Problem(problem) => problem.into_response(),
            Refused::Documented(status, body) => documented(status, body),
        }
    }
}

impl<P: Into<Problem>> From<P> for Refused {
    fn from(problem: P) -> Self {
        Refused::Problem(Box::new(problem.into()))
    }
}

/// A post whose signature does not count.
pub(super) fn unsigned(reason: &str) -> Refused {
    Problem::new(StatusCode::UNAUTHORIZED, format!("the post is not accepted: {reason}"))
        .kind("signature", "The signature does not count")
        .into()
}

/// A reply with this status and body.
pub(super) fn documented(status: StatusCode, body: Value) -> Response {
    let mut response = (status, Json(body)).into_response();
    response.extensions_mut().insert(Documented);
    response
}
