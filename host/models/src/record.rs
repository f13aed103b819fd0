//! Recordings: real exchanges, one JSON line each, and what makes two requests the same.

use std::{
    fs::{File, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::{Api, Model, ModelError, ModelName, OnText, Reply, Request, Server, untrusted::shown};

/// One line of a recording.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Exchange {
    /// What the request is found by.
    pub(crate) digest: String,
    /// The request, for people who read the file; replaying looks at the digest only.
    pub(crate) request: Value,
    /// What came of it.
    #[serde(flatten)]
    pub(crate) outcome: Outcome,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    Reply(Reply),
    Error(ModelError),
}

/// What identifies a request: all that decides the reply. The time it may take does not, and neither does the
/// provider's own state, which follows from the replies before it.
pub(crate) fn request_key(request: &Request) -> Value {
    let messages: Vec<Value> = request
        .messages
        .iter()
        .map(|message| {
            json!({
                "role": message.role,
                "content": message.content,
                "tool_calls": message.tool_calls,
                "tool_call_id": message.tool_call_id,
            })
        })
        .collect();
    let mut key = json!({
        "model": request.model,
        "messages": messages,
        "tools": request.tools,
        "temperature": request.temperature,
        "top_p": request.top_p,
        "max_tokens": request.max_tokens,
        "output_schema": request.output_schema,
    });
    // Not there where they say nothing, so that recordings from before they existed are still found.
    if !request.more.is_empty() {
        key["more"] = Value::Object(request.more.clone());
    }
    if request.api == Api::Responses {
        key["api"] = json!("responses");
    }
    if let Some(reasoning) = request.reasoning {
        key["reasoning"] = json!({ "budget": reasoning.budget });
    }
    if let Some(server) = &request.server {
        // What was granted is no part of what was asked.
        key["server"] = match server {
            Server::PrivateAddress(url) => json!(Server::Address(url.clone())),
            Server::ProviderAt { provider, address, .. } => {
                json!(Server::ProviderAt { provider: provider.clone(), address: address.clone(), is_private: false })
            }
            other => json!(other),
        };
    }
    key
}

/// The SHA-256 of a request's key, in hexadecimal.
pub(crate) fn digest_of(key: &Value) -> String {
    let digest = Sha256::digest(key.to_string().as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn recording_error(path: &Path, reason: impl Into<String>) -> ModelError {
    ModelError::Recording { path: shown(&path.display().to_string()), reason: reason.into() }
}

/// Passes every request on to another model and appends the exchange to a file that [`crate::Replay`] reads.
///
/// Failures are recorded as well, so that a replayed run takes the same turns. The file holds the whole
/// conversation in plain text and is readable by its owner only.
pub struct Recorder {
    model: Arc<dyn Model>,
    path: PathBuf,
    file: Mutex<File>,
}

impl Recorder {
    /// Records what `model` is asked and answers into the file at `path`, after what is in it already.
    ///
    /// # Errors
    ///
    /// When the file cannot be opened for writing.
    pub fn wrap(model: Arc<dyn Model>, path: impl Into<PathBuf>) -> Result<Self, ModelError> {
        let path = path.into();
        let mut options = OpenOptions::new();
        options.create(true).append(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options
            .open(&path)
            .map_err(|error| recording_error(&path, format!("cannot be opened for writing: {error}")))?;
        Ok(Self { model, path, file: Mutex::new(file) })
    }

    fn append(&self, exchange: &Exchange) -> Result<(), ModelError> {
        let failed = |error: &dyn std::fmt::Display| recording_error(&self.path, format!("cannot be written: {error}"));
        let mut line = serde_json::to_vec(exchange).map_err(|error| failed(&error))?;
        line.push(b'\n');
        // One write for the whole line, so that a line is there or is not.
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(&line).and_then(|()| file.flush()).map_err(|error| failed(&error))
    }
}

#[async_trait]
impl Model for Recorder {
    async fn complete(&self, request: Request, on_text: Option<OnText<'_>>) -> Result<Reply, ModelError> {
        let key = request_key(&request);
        let result = self.model.complete(request, on_text).await;
        let outcome = match &result {
            Ok(reply) => Outcome::Reply(reply.clone()),
            Err(error) => Outcome::Error(error.clone()),
        };
        self.append(&Exchange { digest: digest_of(&key), request: key, outcome })?;
        result
    }

    fn count_tokens(&self, model: &ModelName, text: &str) -> Option<usize> {
        self.model.count_tokens(model, text)
    }
}
