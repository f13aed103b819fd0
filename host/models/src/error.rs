//! What can go wrong between a question and its reply.

use std::borrow::Cow;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Why there is no reply.
///
/// The texts are shown to people and, in some graph languages, looked at by the graph; what a provider wrote is
/// capped and escaped in them and they never contain a key.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ModelError {
    /// The provider answered with an HTTP status that is not success.
    #[error("{}", status_text(*.status, .message))]
    Status {
        /// The status.
        status: u16,
        /// What the provider wrote, or nothing.
        message: String,
    },
    /// The provider reported a failure inside an answer that had begun as a success.
    #[error("the provider reported an error: {message}")]
    Reported {
        /// What the provider wrote.
        message: String,
    },
    /// The exchange took longer than it may.
    #[error("the model request timed out after {after:?}")]
    TimedOut {
        /// The limit that was reached.
        after: Duration,
    },
    /// Nobody listens at the provider's address.
    #[error("Connection refused by the server of provider `{provider}`; check that it runs and that its URL is right")]
    ConnectionRefused {
        /// The provider.
        provider: String,
    },
    /// The connection ended before the reply did.
    #[error("Connection reset by the server of provider `{provider}` before the reply was complete")]
    ConnectionReset {
        /// The provider.
        provider: String,
    },
    /// The provider's server cannot be reached for another reason.
    #[error("the server of provider `{provider}` cannot be reached: {reason}")]
    Unreachable {
        /// The provider.
        provider: String,
        /// Why not.
        reason: String,
    },
    /// The provider answered with something that is no reply.
    #[error("the reply of the provider cannot be read: {reason}")]
    Malformed {
        /// What is wrong with it.
        reason: String,
    },
    /// The provider answered with more than is accepted.
    #[error("the reply of the provider is larger than {limit} bytes and was abandoned")]
    TooLarge {
        /// The most bytes accepted.
        limit: u64,
    },
    /// The provider cannot be asked without a key.
    #[error("provider `{provider}` needs a key; set `{variable}`")]
    MissingKey {
        /// The provider.
        provider: String,
        /// The environment variable that holds its key.
        variable: String,
    },
    /// A model name begins with a provider that does not exist.
    #[error("there is no provider `{provider}`; known are {}", listed(.known))]
    UnknownProvider {
        /// The provider named.
        provider: String,
        /// Those that exist.
        known: Vec<String>,
    },
    /// A model name has no provider and none is the default.
    #[error("`{model}` does not name a provider; write `provider:{model}` with one of {}, or set `HOTCELL_MODEL_URL` to a server that has it", listed(.known))]
    NoProvider {
        /// The model named.
        model: String,
        /// The providers that exist.
        known: Vec<String>,
    },
    /// Nothing names a model, and none is the default.
    #[error("no model is chosen; name one in the graph (`model: provider:name`) or set `HOTCELL_MODEL`")]
    NoModel,
    /// A text is not the name of a model.
    #[error("`{name}` is not the name of a model: {reason}")]
    InvalidName {
        /// The text.
        name: String,
        /// Why it is none.
        reason: String,
    },
    /// A base URL cannot be used.
    #[error("the URL of provider `{provider}` cannot be used: {reason}")]
    InvalidUrl {
        /// The provider.
        provider: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The request cannot be put in the provider's terms.
    #[error("the request cannot be sent to provider `{provider}`: {reason}")]
    InvalidRequest {
        /// The provider.
        provider: String,
        /// Why not.
        reason: String,
    },
    /// A recording cannot be read or written.
    #[error("the recording `{path}` {reason}")]
    Recording {
        /// The file.
        path: String,
        /// What went wrong.
        reason: String,
    },
    /// A recording has no reply to this request.
    #[error("the recording `{path}` has {}: {request}; record it again", times(*.recorded))]
    NotRecorded {
        /// The file.
        path: String,
        /// The request, in short.
        request: String,
        /// How often the request is in the recording; all of these were replayed.
        recorded: usize,
    },
    /// A scripted model has no reply left.
    #[error("the scripted model has no reply left for its request number {number}")]
    ScriptEnded {
        /// Which request, counted from 1.
        number: usize,
    },
}

impl ModelError {
    /// Whether the same request may succeed a little later.
    ///
    /// That is so for time-outs, lost and refused connections, the status 429, and for any failure in which the
    /// provider's own words say one of these things: gateways pass such troubles on under statuses that mean
    /// something else. Without such words a status like 500 is final.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::TimedOut { .. } | Self::ConnectionRefused { .. } | Self::ConnectionReset { .. } => true,
            Self::Status { status: 429, .. } => true,
            Self::Status { message, .. } | Self::Reported { message } => says_transient(message),
            Self::Unreachable { reason, .. } => says_transient(reason),
            _ => false,
        }
    }
}

impl ModelError {
    /// What kind of error it is: the HTTP status, or a word. Nothing that anybody wrote is in it.
    #[must_use]
    pub fn kind(&self) -> Cow<'static, str> {
        let word = match self {
            Self::Status { status, .. } => return status.to_string().into(),
            Self::Reported { .. } => "reported",
            Self::TimedOut { .. } => "timeout",
            Self::ConnectionRefused { .. } => "connection_refused",
            Self::ConnectionReset { .. } => "connection_reset",
            Self::Unreachable { .. } => "unreachable",
            Self::Malformed { .. } => "malformed_reply",
            Self::TooLarge { .. } => "reply_too_large",
            Self::MissingKey { .. } => "missing_key",
            Self::UnknownProvider { .. } | Self::NoProvider { .. } | Self::NoModel | Self::InvalidName { .. } => {
                "unknown_model"
            }
            Self::InvalidUrl { .. } | Self::InvalidRequest { .. } => "invalid_request",
            Self::Recording { .. } | Self::NotRecorded { .. } | Self::ScriptEnded { .. } => "recording",
        };
        word.into()
    }

    /// Whether the provider, or the way to it, had a trouble that may be over a little later: beside what is transient,
    /// the statuses 408, 409 and 429 and all that say the fault is the server's.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        self.is_transient() || matches!(self, Self::Status { status: 408 | 409 | 429 | 500..=599, .. })
    }
}

/// Whether a text speaks of a trouble that passes.
#[must_use]
pub fn says_transient(text: &str) -> bool {
    const SIGNS: [&str; 6] =
        ["timed out", "rate limit", "429", "connection reset", "connection refused", "produced no output"];
    let text = text.to_lowercase();
    SIGNS.iter().any(|sign| text.contains(sign))
}

fn status_text(status: u16, message: &str) -> String {
    let name = http::StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
    let mut text = status.to_string();
    if let Some(name) = name {
        text = format!("{text} {name}");
    }
    if !message.is_empty() && name != Some(message) {
        text = format!("{text}: {message}");
    }
    text
}

fn listed(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

fn times(recorded: usize) -> String {
    match recorded {
        0 => "no reply to this request".to_owned(),
        1 => "only one reply to this request, which was replayed already".to_owned(),
        more => format!("only {more} replies to this request, which were replayed already"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(status: u16, message: &str) -> ModelError {
        ModelError::Status { status, message: message.to_owned() }
    }

    #[test]
    fn a_status_reads_as_people_know_it() {
        for (error, expected) in [
            (status(429, "slow down"), "429 Too Many Requests: slow down"),
            (status(500, ""), "500 Internal Server Error"),
            (status(400, "Bad Request"), "400 Bad Request"),
            (status(599, "odd"), "599: odd"),
        ] {
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn transient_by_type_and_by_the_providers_words() {
        let transient = [
            status(429, ""),
            status(502, "Connection reset by peer"),
            status(502, "upstream: Connection refused"),
            status(500, "The model produced no output"),
            status(503, "Rate limit reached for gpt"),
            status(400, "upstream answered 429"),
            ModelError::Reported { message: "request timed out".to_owned() },
            ModelError::TimedOut { after: Duration::from_secs(1) },
            ModelError::ConnectionRefused { provider: "x".to_owned() },
            ModelError::ConnectionReset { provider: "x".to_owned() },
        ];
        for error in transient {
            assert!(error.is_transient(), "{error}");
        }
        let lasting = [
            status(400, "unsupported parameter"),
            status(500, ""),
            status(502, "bad gateway"),
            status(503, "overloaded"),
            ModelError::Reported { message: "content refused".to_owned() },
            ModelError::TooLarge { limit: 429 },
            ModelError::Malformed { reason: "429".to_owned() },
            ModelError::MissingKey { provider: "x".to_owned(), variable: "429".to_owned() },
        ];
        for error in lasting {
            assert!(!error.is_transient(), "{error}");
        }
    }

    #[test]
    fn texts_hold_the_words_that_mark_a_trouble_as_passing() {
        for (error, words) in [
            (ModelError::TimedOut { after: Duration::from_secs(2) }, "timed out"),
            (ModelError::ConnectionRefused { provider: "p".to_owned() }, "Connection refused"),
            (ModelError::ConnectionReset { provider: "p".to_owned() }, "Connection reset"),
        ] {
            assert!(error.to_string().contains(words), "{error}");
        }
    }
}
