//! What both directions have in common: answers to questions, and how serious a log line is.

#![expect(deprecated, reason = "the library warns of logs, which all supported revisions have")]

use rmcp::model::LoggingLevel;
use serde_json::Value;

/// What a person did with a question.
#[derive(Clone, Debug, PartialEq)]
pub enum Elicited {
    /// Answered; the value is a JSON object that fits the schema of the question
    Accept(Value),
    /// Said no
    Decline,
    /// Did not decide: closed the question, or was not there
    Cancel,
}

impl Elicited {
    /// Whether it was answered, whatever the answer is.
    pub fn is_accepted(&self) -> bool {
        matches!(self, Elicited::Accept(_))
    }
}

/// How serious a log line is, from the least to the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// For whoever looks for an error
    Debug,
    /// How it goes
    Info,
    /// Usual, but worth noticing
    Notice,
    /// Something may be wrong
    Warning,
    /// Something is wrong
    Error,
    /// A part has failed
    Critical,
    /// Somebody has to act now
    Alert,
    /// Nothing works
    Emergency,
}

impl From<LoggingLevel> for LogLevel {
    fn from(level: LoggingLevel) -> Self {
        match level {
            LoggingLevel::Debug => LogLevel::Debug,
            LoggingLevel::Info => LogLevel::Info,
            LoggingLevel::Notice => LogLevel::Notice,
            LoggingLevel::Warning => LogLevel::Warning,
            LoggingLevel::Error => LogLevel::Error,
            LoggingLevel::Critical => LogLevel::Critical,
            LoggingLevel::Alert => LogLevel::Alert,
            LoggingLevel::Emergency => LogLevel::Emergency,
        }
    }
}

impl From<LogLevel> for LoggingLevel {
    fn from(level: LogLevel) -> Self {
        match level {
            LogLevel::Debug => LoggingLevel::Debug,
            LogLevel::Info => LoggingLevel::Info,
            LogLevel::Notice => LoggingLevel::Notice,
            LogLevel::Warning => LoggingLevel::Warning,
            LogLevel::Error => LoggingLevel::Error,
            LogLevel::Critical => LoggingLevel::Critical,
            LogLevel::Alert => LoggingLevel::Alert,
            LogLevel::Emergency => LoggingLevel::Emergency,
        }
    }
}
