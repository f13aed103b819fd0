//! What a server makes known by itself, and who is told.

use async_trait::async_trait;
use serde_json::Value;

use super::tools::ToolInfo;
use crate::exchange::{Elicited, LogLevel};

/// How far a call has come.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// What is done, in a unit that the server chooses
    pub done: f64,
    /// What there is to do in all, in the same unit, if that is known
    pub total: Option<f64>,
    /// What is being done
    pub message: Option<String>,
}

/// Is told what servers make known, and asks people for them.
///
/// All but [`ClientEvents::elicit`] are called on the connection's own path and have to be quick. Texts of servers
/// are cut and cleaned before they come here.
#[async_trait]
pub trait ClientEvents: Send + Sync {
    /// A tool that is being called asks a person. `schema` is the JSON schema of the answer, an object with fields
    /// of simple types. Dropped when the call ends before there is an answer.
    async fn elicit(&self, server: &str, message: &str, schema: &Value) -> Elicited;

    /// A server wrote a line of its log.
    fn log(&self, _server: &str, _level: LogLevel, _text: &str) {}

    /// A server has other tools than before.
    fn tools_changed(&self, _server: &str, _tools: &[ToolInfo]) {}

    /// The call of a tool has come further. It does not get more time by that.
    fn progress(&self, _server: &str, _tool: &str, _progress: &Progress) {}
}

/// Nobody is there: every question is declined.
#[derive(Clone, Copy, Debug)]
pub struct Unattended;

#[async_trait]
impl ClientEvents for Unattended {
    async fn elicit(&self, _server: &str, _message: &str, _schema: &Value) -> Elicited {
        Elicited::Decline
    }
}
