//! A model that says what it was told to say.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;

use crate::{Model, ModelError, OnText, Reply, Request};

/// A model inside the process that gives fixed replies in order and keeps the requests, for unit tests.
#[derive(Debug, Default)]
pub struct Scripted {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    replies: VecDeque<Result<Reply, ModelError>>,
    requests: Vec<Request>,
}

impl Scripted {
    /// A model that gives `replies`, each once, in this order.
    #[must_use]
    pub fn new(replies: impl IntoIterator<Item = Result<Reply, ModelError>>) -> Self {
        let replies = replies.into_iter().collect();
        Self { state: Mutex::new(State { replies, requests: Vec::new() }) }
    }

    /// A model that gives these texts.
    #[must_use]
    pub fn texts<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        Self::new(texts.into_iter().map(|text| Ok(Reply::text(text))))
    }

    /// The requests so far, in order.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        self.state().requests.clone()
    }

    /// How many replies nobody has asked for yet.
    #[must_use]
    pub fn unserved(&self) -> usize {
        self.state().replies.len()
    }

    /// No holder leaves the state half changed, so a panic elsewhere does not spoil it.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Model for Scripted {
    async fn complete(&self, request: Request, on_text: Option<OnText<'_>>) -> Result<Reply, ModelError> {
        let reply = {
            let mut state = self.state();
            state.requests.push(request);
            let number = state.requests.len();
            state.replies.pop_front().unwrap_or(Err(ModelError::ScriptEnded { number }))
        }?;
        if let (Some(on_text), false) = (on_text, reply.content.is_empty()) {
            on_text(&reply.content);
        }
        Ok(reply)
    }
}
