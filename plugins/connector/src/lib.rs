//! What the connectors that ship with hotcell share.
//!
//! A connector has work done by another system. The host asks it step by step (`begin`, `poll`, `receive`, `cancel`), keeps what each step
//! gave, and waits in between, so nothing sleeps here and nothing is begun twice. A connector implements [`Connector`] and calls
//! [`connector!`]; retries, quarantine and the form of results are the same for all.

mod a_job;
mod failure;
pub mod mcp;
mod quarantine;
pub mod rpc;
mod web;

pub use a_job::{Job, Settings, Step, text_of, words};
pub use failure::Failure;
pub use web::{Answer, segment};

use hotcell_plugin::{Error, Json, json};

/// The error type of a connector that cannot do what it is there for.
const FAILED: &str = "ConnectorError";
/// How often in a row a request is sent again that may be.
const RETRIES: u64 = 2;
/// How long is waited before that where the other system does not say.
const PAUSE_MS: u64 = 1000;

/// Another system that work is handed to.
pub trait Connector {
    /// Begins a job.
    ///
    /// # Errors
    /// Why it was not begun.
    fn begin(job: &Job) -> Result<Step, Failure>;

    /// Looks how far a job is, whose last step gave this state.
    ///
    /// # Errors
    /// Why it came to nothing.
    fn poll(_job: &Job, _state: &Json) -> Result<Step, Failure> {
        Err(Failure::new("there is nothing to ask for"))
    }

    /// Calls a job off; nobody minds if that fails.
    fn cancel(_job: &Job, _state: &Json) {}
}

/// The tool `begin`.
pub fn begin<C: Connector>(job: &str, settings: Json, arguments: Json, callback: Option<Json>) -> Result<Json, Error> {
    let job = Job::new(job, settings, arguments, callback);
    if let Some(failed) = quarantine::check(&job)? {
        return Ok(failed);
    }
    let input = job.input.clone();
    settle(&job, C::begin(&job), &json!({ "begin": input, "callback": job.callback }), 0)
}

/// The tool `poll`.
pub fn poll<C: Connector>(job: &str, settings: Json, state: Json) -> Result<Json, Error> {
    let tries = state["tries"].as_u64().unwrap_or(0);
    match state.get("begin") {
        // Nothing was begun so far.
        Some(input) => {
            let callback = state.get("callback").filter(|callback| !callback.is_null());
            let job =
                Job { input: input.clone(), callback: callback.cloned(), ..Job::new(job, settings, json!({}), None) };
            settle(&job, C::begin(&job), &json!({ "begin": input, "callback": job.callback }), tries)
        }
        None => {
            let job = Job::new(job, settings, json!({}), None);
            let own = state.get("own").cloned().unwrap_or_default();
            settle(&job, C::poll(&job, &own), &json!({ "own": own }), tries)
        }
    }
}

/// The tool `receive`.
pub fn receive(job: &str, settings: Json, body: Json) -> Result<Json, Error> {
    let job = Job::new(job, settings, json!({}), None);
    settle(&job, Ok(Step::Done(body)), &Json::Null, RETRIES)
}

/// The tool `cancel`.
pub fn cancel<C: Connector>(job: &str, settings: Json, state: Json, reason: &str) -> Result<Json, Error> {
    let job = Job::new(job, settings, json!({}), None);
    if reason == "timeout" {
        quarantine::note(&job, "it took too long")?;
    }
    if let Some(own) = state.get("own") {
        C::cancel(&job, own);
    }
    Ok(json!({ "done": {} }))
}

/// The tool `release`.
pub fn release() -> Result<Json, Error> {
    quarantine::release()?;
    Ok(json!({ "done": {} }))
}

/// What the host is told of a step. `same` is the state with which it would be taken again.
fn settle(job: &Job, step: Result<Step, Failure>, same: &Json, tries: u64) -> Result<Json, Error> {
    let failure = match step {
        Ok(Step::Done(value)) => match refused(&value) {
            None => {
                quarantine::release()?;
                return Ok(json!({ "done": as_object(value) }));
            }
            Some(message) => Failure::new(message),
        },
        Ok(Step::Again { state, after_ms }) => {
            return Ok(json!({ "again": { "state": { "own": state }, "after_ms": after_ms } }));
        }
        Ok(Step::Accepted(state)) => return Ok(json!({ "accepted": { "state": { "own": state } } })),
        Err(failure) => failure,
    };
    if let (Some(after), true) = (failure.retry, tries < RETRIES) {
        let mut state = same.clone();
        state["tries"] = json!(tries + 1);
        return Ok(json!({ "again": { "state": state, "after_ms": after.unwrap_or(PAUSE_MS) } }));
    }
    if failure.counts {
        quarantine::note(job, &failure.message)?;
    }
    Ok(json!({ "failed": { "error_type": failure.error_type, "message": failure.message } }))
}

/// What a result says that is the report of a failure: `success` is `false` and there is an `error`. Everything else is a result.
fn refused(value: &Json) -> Option<String> {
    let error = value.get("error").filter(|error| !error.is_null())?;
    (value.get("success") == Some(&Json::Bool(false))).then(|| format!("it failed there: {}", text_of(error)))
}

/// A result as an object.
fn as_object(value: Json) -> Json {
    match value {
        Json::Object(_) => value,
        Json::String(text) => json!({ "text": text }),
        Json::Null => json!({}),
        other => json!({ "result": other }),
    }
}

/// Makes the tools of a connector.
#[macro_export]
macro_rules! connector {
    ($connector:ident, $([$($server:literal),+],)? { $($secret:ident: $why:literal),* $(,)? }) => {
        mod tools {
            use hotcell_plugin::{Error, Json, plugin, tool};

            use super::$connector;

            plugin! {
                tools: [begin, poll, receive, cancel, release],
                capabilities: { $(http: [$($server),+],)? kv: true, secret: { $($secret: $why),* } },
            }

            /// Begins a job.
            #[tool]
            fn begin(job: &str, settings: Json, arguments: Json, callback: Option<Json>) -> Result<Json, Error> {
                $crate::begin::<$connector>(job, settings, arguments, callback)
            }

            /// Looks how far a job is.
            #[tool]
            fn poll(job: &str, settings: Json, state: Json) -> Result<Json, Error> {
                $crate::poll::<$connector>(job, settings, state)
            }

            /// Takes the result that the other system sent.
            #[tool]
            fn receive(job: &str, settings: Json, body: Json) -> Result<Json, Error> {
                $crate::receive(job, settings, body)
            }

            /// Calls a job off.
            #[tool]
            fn cancel(job: &str, settings: Json, state: Json, reason: &str) -> Result<Json, Error> {
                $crate::cancel::<$connector>(job, settings, state, reason)
            }

            /// Lets it work again after it was shut off.
            #[tool]
            fn release() -> Result<Json, Error> {
                $crate::release()
            }
        }
    };
}
