//! Replies of models that a source has ready, in the place of a model.

use std::sync::Arc;
use std::time::Duration;

use crate::value::{Key, Object};

/// Replies that are ready, by the names of those who ask.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    /// Where they come from, for errors
    pub source: String,
    /// One list for each name; the n-th request gets the n-th
    pub replies: Vec<(Key, Vec<RecordedReply>)>,
}

/// A reply that is ready.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedReply {
    /// The text
    pub content: String,
    /// The calls, each an object with `id`, `name` and `arguments`
    pub tool_calls: Vec<Object>,
    /// Tokens of the request
    pub input_tokens: u64,
    /// Tokens of the reply
    pub output_tokens: u64,
    /// What it cost, in USD; none means what the tokens of the model cost
    pub cost_usd: Option<f64>,
    /// How long it takes
    pub latency: Duration,
}

/// Where in a recording the replies to somebody are.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedModel {
    /// The recording
    pub recording: Arc<Recording>,
    /// Who asks
    pub name: Key,
}

impl RecordedModel {
    /// The reply to the request with this number, counted from 0.
    ///
    /// # Errors
    /// When there is none; says what is missing where.
    pub fn reply(&self, number: usize) -> Result<&RecordedReply, String> {
        let Recording { source, replies } = &*self.recording;
        let found = replies.iter().find(|(name, _)| *name == self.name);
        let (_, replies) = found.ok_or_else(|| format!("`{source}` has no replies for `{}`", self.name))?;
        replies.get(number).ok_or_else(|| {
            let (there, wanted) = (replies.len(), number + 1);
            format!("`{source}` has {there} replies for `{}`, and this is request number {wanted}", self.name)
        })
    }
}
