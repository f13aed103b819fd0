//! Requests over HTTP.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use hotcell_budget::{Account, BudgetScope};
use hotcell_graph::Value;

use super::PortError;

/// A request over HTTP.
#[derive(Clone, Debug, PartialEq)]
pub struct WebCall {
    /// The method
    pub method: String,
    /// The address
    pub url: String,
    /// What is added to the query, in order
    pub query: Vec<(String, String)>,
    /// The headers
    pub headers: Vec<(String, String)>,
    /// What is sent: as JSON, or as a form if the headers say so
    pub body: Option<Value>,
    /// How long it may take; none means as long as any
    pub time: Option<Duration>,
}

/// The answer of a server.
#[derive(Clone, Debug, PartialEq)]
pub struct WebReply {
    /// The status
    pub status: u16,
    /// The body as text
    pub body: String,
}

/// Why a request has no answer.
#[derive(Debug)]
pub struct WebFailure {
    /// The reason
    pub error: PortError,
    /// Whether it may be gone a moment later: nobody answered, or too late. What is not granted stays so
    pub may_pass: bool,
}

impl From<PortError> for WebFailure {
    /// A failure that lasts.
    fn from(error: PortError) -> Self {
        WebFailure { error, may_pass: false }
    }
}

/// What came of a request, and who used what for it.
#[derive(Debug)]
pub struct WebReport {
    /// The answer, or why there is none
    pub result: Result<WebReply, WebFailure>,
    /// Who used what for it
    pub account: Account,
}

/// Sends requests over HTTP, as far as that is granted.
#[async_trait]
pub trait Web: Send + Sync {
    /// Sends a request once; a redirect is an answer.
    async fn send(&self, call: WebCall, budget_scope: Arc<BudgetScope>) -> WebReport;
}
