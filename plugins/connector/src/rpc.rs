//! JSON-RPC over HTTP.

use hotcell_plugin::{Json, json};

use crate::a_job::{Settings, text_of};
use crate::failure::Failure;

/// An error that the other side gave for a call.
#[derive(Clone, Debug, PartialEq)]
pub struct RpcError {
    /// Its number
    pub code: i64,
    /// In words
    pub message: String,
}

impl From<RpcError> for Failure {
    fn from(error: RpcError) -> Self {
        Failure::new(format!("{} ({})", error.message, error.code))
    }
}

/// Calls a method. The other side's own error is inside.
///
/// # Errors
/// Why there is no answer, or that it is none.
pub fn call(
    settings: &Settings,
    url: &str,
    headers: &[(&str, String)],
    (id, method, params): (&str, &str, Json),
) -> Result<Result<Json, RpcError>, Failure> {
    let body = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    let answer = settings.post_to(url, headers, &body)?.success()?.json()?;
    result_of(answer, id, method)
}

/// What an answer to a call says.
///
/// # Errors
/// That it is none.
pub fn result_of(mut answer: Json, id: &str, method: &str) -> Result<Result<Json, RpcError>, Failure> {
    if let Some(error) = answer.get("error").filter(|error| !error.is_null()) {
        let code = error["code"].as_i64().unwrap_or_default();
        return Ok(Err(RpcError { code, message: format!("it refused `{method}`: {}", text_of(error)) }));
    }
    if answer.get("id").is_some_and(|given| given != id) {
        return Err(Failure::new(format!("it answered another call than `{method}`")));
    }
    match answer.get_mut("result").map(Json::take) {
        Some(result) => Ok(Ok(result)),
        None => Err(Failure::new(format!("it answered `{method}` with neither a result nor an error"))),
    }
}
