//! Why an agent at another address cannot be called, and why a call of it has no result.

use std::time::Duration;

use hotcell_budget::Overdrawn;
use hotcell_cells::{Denial, FetchError, SendError, TlsError};
use hotcell_graph::Key;
use thiserror::Error;

use crate::address::AddressError;
use crate::permissions::Revoked;

/// Why an agent at an address cannot be called from here.
#[derive(Debug, Error)]
pub(crate) enum NotReachable {
    /// It is not at the address of a web server
    #[error(transparent)]
    Address(#[from] AddressError),
    /// Its server is not granted
    #[error("the agent `{name}` may not be reached from here: {denial}")]
    Denied {
        /// What the graph calls it
        name: Key,
        /// What would have to be granted
        denial: Box<Denial>,
    },
    /// The graph that sends, asks and ends has a node without a place
    #[error("its graph cannot be made")]
    NoGraph,
}

/// Why a call has no result.
#[derive(Debug, Error)]
pub(super) enum RemoteError {
    #[error(transparent)]
    Revoked(#[from] Revoked),
    #[error(transparent)]
    Overdrawn(#[from] Overdrawn),
    /// What the graph sends is not what this takes
    #[error(transparent)]
    Inputs(serde_json::Error),
    #[error("no agent describes itself there: {}", listed(.0))]
    NoCard(Vec<ExchangeError>),
    #[error("the description of the agent at `{card}` {cause}")]
    Card {
        card: String,
        #[source]
        cause: CardError,
    },
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    #[error(transparent)]
    Answer(#[from] AnswerError),
    #[error("it was not done after {} s", .0.as_secs())]
    NotDone(Duration),
    #[error(transparent)]
    Task(#[from] TaskError),
}

/// Why a request has no answer that counts.
#[derive(Debug, Error)]
pub(super) enum ExchangeError {
    #[error(transparent)]
    Place(#[from] url::ParseError),
    #[error(transparent)]
    Fetch(#[from] FetchError),
    #[error(transparent)]
    Send(#[from] SendError),
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error("`{url}` redirects to `{place}`; name that address instead")]
    SendsOn { url: String, place: String },
    #[error("`{url}` answered with the status {status}")]
    Status { url: String, status: u16 },
}

/// What is wrong with an agent's description of itself.
#[derive(Debug, Error)]
pub(super) enum CardError {
    #[error("cannot be read: {0}")]
    Form(#[source] serde_json::Error),
    #[error("offers `{0}` but not JSON-RPC, which is required")]
    NoJsonRpc(String),
    #[error("names the address `{url}`: {cause}")]
    Address {
        url: String,
        #[source]
        cause: url::ParseError,
    },
    #[error("is that of version 1 of the protocol; versions 0.2 and 0.3 are supported")]
    TooNew,
    #[error("leads to `{endpoint}`, another server, to which the {what} do not go")]
    AnotherServer { endpoint: String, what: &'static str },
}

/// What is wrong with an answer over JSON-RPC.
#[derive(Debug, Error)]
pub(super) enum AnswerError {
    #[error("`{endpoint}` did not answer in JSON: {cause}")]
    NoJson {
        endpoint: String,
        #[source]
        cause: serde_json::Error,
    },
    #[error("`{endpoint}` refused `{method}`: {message} ({code})")]
    Refused { endpoint: String, method: &'static str, message: String, code: String },
    #[error("`{endpoint}` answered `{method}` with neither a message nor a task")]
    Neither { endpoint: String, method: &'static str },
    #[error("`{endpoint}` answered `{method}` with neither a message nor a task: {cause}")]
    Form {
        endpoint: String,
        method: &'static str,
        #[source]
        cause: serde_json::Error,
    },
}

/// Why what an agent gave is no result.
#[derive(Debug, Error)]
pub(super) enum TaskError {
    #[error("it requires somebody to sign in first, which is not supported: {0}")]
    SignIn(String),
    #[error("its task is {state}{}", after_colon(.said))]
    State { state: String, said: String },
    #[error("it answered with a `{0}`, and only texts and data are taken")]
    Part(String),
}

fn listed(reasons: &[ExchangeError]) -> String {
    reasons.iter().map(ExchangeError::to_string).collect::<Vec<_>>().join("; ")
}

fn after_colon(said: &str) -> String {
    if said.is_empty() { String::new() } else { format!(": {said}") }
}
