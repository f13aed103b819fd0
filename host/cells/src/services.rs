//! What a guest may reach of the run it works for. The embedder implements it; this crate asks the policy first.

use std::sync::Arc;

use async_trait::async_trait;
use hotcell_budget::Usage;

use crate::contract::LogLevel;

/// One line that a guest logged, safe to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// How much it matters.
    pub level: LogLevel,
    /// The line, escaped and cut to the limit.
    pub message: String,
    /// For a report of progress: the steps that are done, and of how many, if that is known.
    pub progress: Option<(u64, Option<u64>)>,
}

/// The model and the tools of a run. A method is only called for what was granted.
#[async_trait]
pub trait Services: Send + Sync {
    /// Asks the model: `request` and the reply are the JSON objects that `llm.complete` of the contract describes.
    async fn complete(&self, request: &str) -> ServiceReply;

    /// Calls a tool of another plugin. `depth` is how many calls of plugins the new one is nested in.
    async fn call_tool(&self, name: &str, arguments: &str, depth: u32) -> ServiceReply;
}

/// What a service gave and what it used, successful or not.
#[derive(Debug)]
pub struct ServiceReply {
    /// JSON, or why there is none.
    pub result: Result<String, ServiceError>,
    /// Which plugins worked for it, and what they used.
    pub usage: Vec<(String, Usage)>,
}

/// Why a service gave no answer. The guest is told the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServiceError {
    /// The request cannot be used.
    InvalidInput(String),
    /// It is not within reach of this run.
    Denied(String),
    /// A later call may work.
    Unavailable(String),
    /// Anything else.
    Other(String),
}

/// A small store that belongs to one plugin and outlives its calls. Errors are texts for the guest.
pub trait KeyValueStore: Send + Sync {
    /// The value under a key.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn get(&self, key: &str) -> Result<Option<Vec<u8>>, ServiceError>;

    /// Puts a value under a key; it is kept once this returns.
    ///
    /// # Errors
    /// When the plugin's share is used up, or the store cannot be written.
    fn set(&self, key: &str, value: &[u8]) -> Result<(), ServiceError>;

    /// Removes what is under a key.
    ///
    /// # Errors
    /// When the store cannot be written.
    fn delete(&self, key: &str) -> Result<(), ServiceError>;

    /// The keys that begin with `prefix`, in order, `limit` at most.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn keys(&self, prefix: &str, limit: usize) -> Result<Vec<String>, ServiceError>;
}

/// An HTTP request of a guest, with placeholders where secrets will be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpExchange {
    /// The method, in capitals
    pub method: String,
    /// The whole URL
    pub url: String,
    /// The headers, in their order
    pub headers: Vec<(String, String)>,
    /// The body
    pub body: Vec<u8>,
}

/// The reply to an HTTP request, with no value of a secret in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpReply {
    /// The status code
    pub status: u16,
    /// The headers, in their order
    pub headers: Vec<(String, String)>,
    /// The body
    pub body: Vec<u8>,
}

/// Answers HTTP in the place of the network, for tests. It is asked after the policy and the budget: what is not granted stays
/// denied.
pub trait HttpTape: Send + Sync {
    /// The reply to a request, or why there is none.
    fn reply(&self, exchange: &HttpExchange) -> Result<HttpReply, String>;
}

/// Is told each line a guest logs, as it logs it, on the thread that runs the guest.
pub type LogListener = Arc<dyn Fn(&LogLine) + Send + Sync>;
