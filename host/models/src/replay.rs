//! A model that answers from a recording.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use async_trait::async_trait;

use crate::{
    Model, ModelError, OnText, Reply, Request,
    record::{Exchange, Outcome, digest_of, recording_error, request_key},
    untrusted::shown,
};

/// How many characters of a request's last message an error shows.
const SHOWN_CHARACTERS: usize = 60;

/// Answers each request as it was answered when the recording was made, without any network.
///
/// Requests are found by what they say, not by their order, so branches that run side by side may come in any
/// order. A request that was recorded several times gets its replies in the recorded order.
#[derive(Debug)]
pub struct Replay {
    path: PathBuf,
    exchanges: Mutex<HashMap<String, Recorded>>,
}

#[derive(Debug, Default)]
struct Recorded {
    outcomes: Vec<Outcome>,
    replayed: usize,
}

impl Replay {
    /// Reads the recording at `path`.
    ///
    /// # Errors
    ///
    /// When the file cannot be read or a line of it is no exchange.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ModelError> {
        let path = path.as_ref();
        let text = hotcell_files::read_text(path, hotcell_files::MAX_RECORDING)
            .map_err(|error| recording_error(path, format!("cannot be read: {error}")))?;
        let mut exchanges: HashMap<String, Recorded> = HashMap::new();
        for (index, line) in text.lines().enumerate() {
            if line.trim().is_empty() {
                continue;
            }
            let exchange: Exchange = serde_json::from_str(line)
                .map_err(|error| recording_error(path, format!("holds no exchange in line {}: {error}", index + 1)))?;
            exchanges.entry(exchange.digest).or_default().outcomes.push(exchange.outcome);
        }
        Ok(Self { path: path.to_owned(), exchanges: Mutex::new(exchanges) })
    }

    fn next(&self, request: &Request) -> Result<Outcome, ModelError> {
        let digest = digest_of(&request_key(request));
        // No holder leaves the table half changed, so a panic elsewhere does not spoil it.
        let mut exchanges = self.exchanges.lock().unwrap_or_else(PoisonError::into_inner);
        let not_recorded = |recorded| ModelError::NotRecorded {
            path: shown(&self.path.display().to_string()),
            request: in_short(request),
            recorded,
        };
        let recorded = exchanges.get_mut(&digest).ok_or_else(|| not_recorded(0))?;
        let outcome = recorded.outcomes.get(recorded.replayed).cloned();
        let outcome = outcome.ok_or_else(|| not_recorded(recorded.outcomes.len()))?;
        recorded.replayed += 1;
        Ok(outcome)
    }
}

fn in_short(request: &Request) -> String {
    let last = request.messages.last().map_or("", |message| message.content.as_str());
    let mut beginning: String = last.chars().take(SHOWN_CHARACTERS).collect();
    if beginning.len() < last.len() {
        beginning.push('…');
    }
    let count = request.messages.len();
    let messages = if count == 1 { "message" } else { "messages" };
    format!("model `{}`, {count} {messages}, the last one `{}`", request.model, shown(&beginning))
}

#[async_trait]
impl Model for Replay {
    async fn complete(&self, request: Request, on_text: Option<OnText<'_>>) -> Result<Reply, ModelError> {
        match self.next(&request)? {
            Outcome::Error(error) => Err(error),
            Outcome::Reply(reply) => {
                if let (Some(on_text), false) = (on_text, reply.content.is_empty()) {
                    on_text(&reply.content);
                }
                Ok(reply)
            }
        }
    }
}
