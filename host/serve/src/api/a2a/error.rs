//! Errors as the protocol has them.

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::header::RETRY_AFTER;
use http::{HeaderValue, StatusCode};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::guard::Documented;
use crate::problem::Problem;

/// What kind of error it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    TaskNotFound,
    TaskNotCancelable,
    UnsupportedOperation,
    ContentTypeNotSupported,
    ExtendedAgentCardNotConfigured,
    VersionNotSupported,
    InvalidParams,
    InvalidRequest,
    MethodNotFound,
    Parse,
    Internal,
}

impl Kind {
    /// The code in JSON-RPC, the status in HTTP, and the reason.
    fn told(self) -> (i32, u16, &'static str) {
        match self {
            Kind::TaskNotFound => (-32001, 404, "TASK_NOT_FOUND"),
            Kind::TaskNotCancelable => (-32002, 400, "TASK_NOT_CANCELABLE"),
            Kind::UnsupportedOperation => (-32004, 400, "UNSUPPORTED_OPERATION"),
            Kind::ContentTypeNotSupported => (-32005, 400, "CONTENT_TYPE_NOT_SUPPORTED"),
            Kind::ExtendedAgentCardNotConfigured => (-32007, 400, "EXTENDED_AGENT_CARD_NOT_CONFIGURED"),
            Kind::VersionNotSupported => (-32009, 400, "VERSION_NOT_SUPPORTED"),
            Kind::InvalidParams => (-32602, 400, "INVALID_PARAMS"),
            Kind::InvalidRequest => (-32600, 400, "INVALID_REQUEST"),
            Kind::MethodNotFound => (-32601, 404, "METHOD_NOT_FOUND"),
            Kind::Parse => (-32700, 400, "INVALID_JSON"),
            Kind::Internal => (-32603, 500, "INTERNAL_ERROR"),
        }
    }
}

/// Why a request was not answered.
#[derive(Debug)]
pub(crate) struct A2aError {
    kind: Kind,
    /// The HTTP status, where it is another one than that of the kind
    status: u16,
    message: String,
    /// After how many seconds it may be tried again, if that helps
    retry_after: Option<u64>,
}

/// An error as HTTP with JSON has it.
#[derive(Serialize, ToSchema)]
pub(crate) struct A2aErrorReply {
    error: A2aErrorBody,
}

/// What happened.
#[derive(Serialize, ToSchema)]
struct A2aErrorBody {
    /// The HTTP status
    code: u16,
    /// The word for it
    status: &'static str,
    /// What happened, and what to do about it
    message: String,
    /// The reason, as `google.rpc.ErrorInfo`
    #[schema(value_type = Vec<Object>)]
    details: Value,
}

impl A2aError {
    pub(super) fn new(kind: Kind, message: impl Into<String>) -> Self {
        A2aError { kind, status: kind.told().1, message: message.into(), retry_after: None }
    }

    /// A problem, in the protocol's words.
    pub(crate) fn of(problem: &Problem) -> Self {
        let kind = match problem.status {
            400 | 422 => Kind::InvalidParams,
            404 if problem.short_kind() == "unknown-agent" => Kind::InvalidRequest,
            404 => Kind::TaskNotFound,
            405 => Kind::MethodNotFound,
            409 => Kind::UnsupportedOperation,
            500.. => Kind::Internal,
            _ => Kind::InvalidRequest,
        };
        let status = if problem.status == 422 { 400 } else { problem.status };
        A2aError { kind, status, message: problem.detail.clone(), retry_after: problem.retry_after() }
    }

    pub(super) fn invalid(message: impl Into<String>) -> Self {
        A2aError::new(Kind::InvalidParams, message)
    }

    /// The error of a JSON-RPC reply.
    pub(super) fn in_rpc(&self) -> Value {
        json!({ "code": self.kind.told().0, "message": self.message, "data": self.details() })
    }

    /// The body of an HTTP reply.
    pub(crate) fn in_http(&self) -> A2aErrorReply {
        let status = match self.status {
            401 => "UNAUTHENTICATED",
            403 => "PERMISSION_DENIED",
            404 => "NOT_FOUND",
            409 => "ABORTED",
            429 => "RESOURCE_EXHAUSTED",
            503 => "UNAVAILABLE",
            500.. => "INTERNAL",
            _ => match self.kind {
                Kind::InvalidParams | Kind::InvalidRequest | Kind::Parse | Kind::ContentTypeNotSupported => {
                    "INVALID_ARGUMENT"
                }
                _ => "FAILED_PRECONDITION",
            },
        };
        let (message, details) = (self.message.clone(), self.details());
        A2aErrorReply { error: A2aErrorBody { code: self.status, status, message, details } }
    }

    /// The HTTP status.
    pub(crate) fn status(&self) -> u16 {
        self.status
    }

    fn details(&self) -> Value {
        json!([{
            "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": self.kind.told().2, "domain": "a2a-protocol.org",
        }])
    }
}

impl<P: Into<Problem>> From<P> for A2aError {
    fn from(problem: P) -> Self {
        A2aError::of(&problem.into())
    }
}

impl IntoResponse for A2aError {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, Json(self.in_http())).into_response();
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response.extensions_mut().insert(Documented);
        response
    }
}
