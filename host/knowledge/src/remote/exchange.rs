//! One question and its answer over HTTP, with the attempts that are worth making.

use std::{fmt, time::Duration};

use reqwest::{
    StatusCode,
    header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, RETRY_AFTER},
};
use serde::{Serialize, de::DeserializeOwned};
use thiserror::Error;
use url::Url;

use crate::untrusted::shown;

/// The most that a server is waited for because it asks for it.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// The language in which an embedding server is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// `POST {base}/embeddings`, as OpenAI and all that is compatible with it.
    OpenAi,
    /// `POST {base}/api/embed`, as Ollama.
    Ollama,
}

/// Where a model is and how it is asked.
#[derive(Clone)]
pub struct Endpoint {
    /// The model's full name, as it is written into knowledge bases and messages.
    pub name: String,
    /// The model's name at its server.
    pub model: String,
    /// The address before the path of the protocol, for example `https://api.openai.com/v1`.
    pub base_url: String,
    /// The key, if the server wants one. It is never shown.
    pub key: Option<String>,
    /// How long one attempt may take.
    pub timeout: Duration,
    /// How often the question is put at most, counting the first.
    pub attempts: u32,
    /// The wait before the second attempt; it doubles with each further one.
    pub first_wait: Duration,
    /// The most bytes of an answer.
    pub max_reply: usize,
}

impl Endpoint {
    /// An endpoint without a key, with 60 seconds for an attempt, 4 attempts, half a second before the second, and 64
    /// MiB for an answer.
    #[must_use]
    pub fn new(name: impl Into<String>, model: impl Into<String>, base_url: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            model: model.into(),
            base_url: base_url.into(),
            key: None,
            timeout: Duration::from_secs(60),
            attempts: 4,
            first_wait: Duration::from_millis(500),
            max_reply: 64 << 20,
        }
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Endpoint")
            .field("name", &self.name)
            .field("model", &self.model)
            .field("base_url", &self.base_url)
            .field("key", &self.key.as_ref().map(|_| "(..)"))
            .finish_non_exhaustive()
    }
}

/// Why a server gave no answer that can be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RemoteError {
    /// The address cannot be used.
    #[error("`{url}` is not a valid address of a server: {reason}; correct its base URL")]
    InvalidUrl {
        /// The address.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The key cannot be sent.
    #[error("the key has characters that cannot be sent; check the variable that holds it")]
    InvalidKey,
    /// There was no answer in time.
    #[error("`{url}` did not answer within {after:?}; check that the server runs, or allow it more time")]
    TimedOut {
        /// The address.
        url: String,
        /// How long one attempt was waited for.
        after: Duration,
    },
    /// The server cannot be reached, or the connection ended early.
    #[error("`{url}` cannot be reached: {reason}; check that the server runs and that its URL is right")]
    Unreachable {
        /// The address.
        url: String,
        /// Why not.
        reason: String,
    },
    /// The server answered with a status that is no success.
    #[error("`{url}` answered with status {status}: {message}")]
    Status {
        /// The address.
        url: String,
        /// The status.
        status: u16,
        /// What the server wrote.
        message: String,
    },
    /// The answer is larger than is accepted.
    #[error("`{url}` answered with more than {limit} bytes; use smaller batches or another model")]
    TooLarge {
        /// The address.
        url: String,
        /// The most bytes accepted.
        limit: usize,
    },
    /// The answer is not what the protocol says.
    #[error("the answer of `{url}` cannot be read: {reason}; check that its base URL is that of the right protocol")]
    Malformed {
        /// The address.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl RemoteError {
    /// Whether the same question may be answered a little later.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::TimedOut { .. } | Self::Unreachable { .. } => true,
            Self::Status { status, .. } => matches!(status, 408 | 429) || *status >= 500,
            _ => false,
        }
    }
}

/// A checked endpoint with its client.
#[derive(Clone)]
pub(super) struct Exchange {
    client: reqwest::Client,
    endpoint: Endpoint,
    url: Url,
    authorization: Option<HeaderValue>,
}

impl Exchange {
    /// An exchange with `path` under the endpoint's base URL.
    pub(super) fn new(client: reqwest::Client, endpoint: Endpoint, path: &str) -> Result<Self, RemoteError> {
        let text = format!("{}/{path}", endpoint.base_url.trim_end_matches('/'));
        let refuse = |reason: &str| RemoteError::InvalidUrl { url: shown(&endpoint.base_url), reason: reason.into() };
        let url = Url::parse(&text).map_err(|error| refuse(&error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
            return Err(refuse("it must begin with `http://` or `https://` and name a host"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(refuse("it must not hold a user or password; give the key by itself"));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(refuse("it must end with the path"));
        }
        let authorization = match &endpoint.key {
            None => None,
            Some(key) => {
                let value = HeaderValue::from_str(&format!("Bearer {key}"));
                let mut value = value.map_err(|_| RemoteError::InvalidKey)?;
                value.set_sensitive(true);
                Some(value)
            }
        };
        Ok(Self { client, endpoint, url, authorization })
    }

    pub(super) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    pub(super) fn malformed(&self, reason: impl Into<String>) -> RemoteError {
        RemoteError::Malformed { url: self.url.to_string(), reason: reason.into() }
    }

    /// Puts a question until it is answered or the attempts are used up.
    pub(super) async fn ask<A: DeserializeOwned>(&self, question: &impl Serialize) -> Result<A, RemoteError> {
        let body = serde_json::to_vec(question).map_err(|error| self.malformed(error.to_string()))?;
        let mut wait = self.endpoint.first_wait;
        let mut attempt = 1;
        let answer = loop {
            let (error, asked_for) = match self.attempt(body.clone()).await {
                Ok(answer) => break answer,
                Err(failure) => failure,
            };
            if attempt >= self.endpoint.attempts || !error.is_transient() {
                return Err(error);
            }
            let pause = asked_for.unwrap_or(wait).min(LONGEST_WAIT);
            tracing::debug!(model = %self.endpoint.name, attempt, ?pause, %error, "asking again");
            tokio::time::sleep(pause).await;
            wait = wait.saturating_mul(2);
            attempt += 1;
        };
        serde_json::from_slice(&answer).map_err(|error| self.malformed(error.to_string()))
    }

    /// Asks once. With an error comes how long the server asks to be left alone.
    async fn attempt(&self, body: Vec<u8>) -> Result<Vec<u8>, (RemoteError, Option<Duration>)> {
        let plain = |error: reqwest::Error| (self.failure(error), None);
        let mut request = self.client.post(self.url.clone()).timeout(self.endpoint.timeout);
        request = request.header(CONTENT_TYPE, "application/json").body(body);
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization.clone());
        }
        let mut response = request.send().await.map_err(plain)?;
        let status = response.status();
        let wait = retry_after(&response);
        let limit = self.endpoint.max_reply;
        let mut answer = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(plain)? {
            if answer.len() + piece.len() > limit {
                // What a failure says may be cut; an answer may not.
                if status == StatusCode::OK {
                    return Err((RemoteError::TooLarge { url: self.url.to_string(), limit }, None));
                }
                break;
            }
            answer.extend_from_slice(&piece);
        }
        if status == StatusCode::OK {
            return Ok(answer);
        }
        let mut message = String::from_utf8_lossy(&answer[..answer.len().min(4096)]).into_owned();
        if let Some(key) = self.endpoint.key.as_deref().filter(|key| !key.is_empty()) {
            message = message.replace(key, "[key]");
        }
        let message = if message.trim().is_empty() { "it said nothing".to_owned() } else { shown(&message) };
        Err((RemoteError::Status { url: self.url.to_string(), status: status.as_u16(), message }, wait))
    }

    fn failure(&self, error: reqwest::Error) -> RemoteError {
        let url = self.url.to_string();
        if error.is_timeout() {
            return RemoteError::TimedOut { url, after: self.endpoint.timeout };
        }
        let error = error.without_url();
        let mut reason = error.to_string();
        let mut cause = std::error::Error::source(&error);
        while let Some(deeper) = cause {
            reason = deeper.to_string();
            cause = deeper.source();
        }
        RemoteError::Unreachable { url, reason: shown(&reason) }
    }
}

/// The wait that an answer asks for in seconds; dates are not looked at.
fn retry_after(response: &reqwest::Response) -> Option<Duration> {
    let seconds = response.headers().get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}
