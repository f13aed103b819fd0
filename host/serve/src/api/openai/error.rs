//! Errors in OpenAI's form.

use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::problem::Problem;

/// Why a request was not answered, in OpenAI's form.
#[derive(Serialize, ToSchema)]
pub(crate) struct OpenAiError {
    error: ErrorBody,
}

/// What happened.
#[derive(Serialize, ToSchema)]
struct ErrorBody {
    /// What happened, and what to do about it
    message: String,
    /// What kind of error it is
    #[serde(rename = "type")]
    kind: &'static str,
    /// The parameter that is the reason, if it is one
    param: Option<String>,
    /// What exactly the reason is
    code: Option<String>,
}

/// The status and the error that a problem is told as.
pub(crate) fn spoken(problem: &Problem) -> (u16, OpenAiError) {
    // What is well formed and cannot be done is no status of its own there.
    let status = match (problem.status, problem.short_kind()) {
        (422, "run-failed") => 422,
        (422, _) => 400,
        (status, _) => status,
    };
    let kind = match status {
        401 => "authentication_error",
        403 => "permission_error",
        429 => "rate_limit_error",
        500.. => "server_error",
        _ => "invalid_request_error",
    };
    let code = match problem.short_kind() {
        "unknown-agent" => "model_not_found".to_owned(),
        other => other.replace('-', "_"),
    };
    let param = problem.more.get("param").and_then(Value::as_str).map(str::to_owned);
    let error = ErrorBody { message: problem.detail.clone(), kind, param, code: Some(code) };
    (status, OpenAiError { error })
}

/// The same in a stream.
pub(super) fn in_stream(problem: &Problem) -> String {
    let (_, error) = spoken(problem);
    json!(error).to_string()
}
