//! What can go wrong, said so that whoever reads it knows which server it was and what to do about it.
//!
//! What a server wrote is cut and cleaned before it comes into an error. Values of headers and of environment
//! variables are never part of one.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use thiserror::Error;

/// Why a server of tools cannot be used, or why a call of one of its tools has no reply.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum McpError {
    /// Its settings cannot be used.
    #[error("the settings of the MCP server `{server}` cannot be used: {reason}")]
    Settings {
        /// The server
        server: String,
        /// What is wrong with them
        reason: String,
    },
    /// Its program cannot be started.
    #[error("the MCP server `{server}` cannot be started: `{command}`: {reason}; check that the program is installed")]
    Start {
        /// The server
        server: String,
        /// The program
        command: String,
        /// Why not
        reason: String,
    },
    /// It cannot be reached, or the connection was lost before the reply was complete.
    #[error("the MCP server `{server}` cannot be reached: {reason}")]
    Unreachable {
        /// The server
        server: String,
        /// Why not
        reason: String,
        /// The status of HTTP that it answered with, if it answered
        status: Option<u16>,
    },
    /// It wants to know who asks.
    #[error("the MCP server `{server}` wants authorization; set its `Authorization` header in `headers`")]
    Unauthorized {
        /// The server
        server: String,
    },
    /// It was not ready in time.
    #[error("the MCP server `{server}` was not ready after {after:?}{}", last_words(.stderr))]
    ConnectTimedOut {
        /// The server
        server: String,
        /// The limit that was reached
        after: Duration,
        /// The end of what it wrote to its error output
        stderr: String,
    },
    /// It answered the handshake with something that is none.
    #[error("the handshake with the MCP server `{server}` failed: {reason}")]
    Handshake {
        /// The server
        server: String,
        /// What happened
        reason: String,
    },
    /// Its list of tools cannot be accepted.
    #[error("the tools of the MCP server `{server}` are refused: {reason}")]
    ToolsRefused {
        /// The server
        server: String,
        /// Which rule is broken, and by which tool
        reason: String,
    },
    /// It has no such tool.
    #[error("the MCP server `{server}` has no tool `{tool}`")]
    NoTool {
        /// The server
        server: String,
        /// The tool asked for
        tool: String,
    },
    /// It has ended, or was ended because of what it did.
    #[error("the MCP server `{server}` has ended: {reason}{}", last_words(.stderr))]
    Ended {
        /// The server
        server: String,
        /// What happened
        reason: String,
        /// The end of what it wrote to its error output
        stderr: String,
    },
    /// A call took longer than it may. The server was told, and may still be at work.
    #[error("the tool `{tool}` of the MCP server `{server}` timed out after {after:?}")]
    CallTimedOut {
        /// The server
        server: String,
        /// The tool
        tool: String,
        /// The limit that was reached
        after: Duration,
    },
    /// A call was cancelled. The server was told, and may still be at work.
    #[error("the call of the tool `{tool}` of the MCP server `{server}` was cancelled")]
    Cancelled {
        /// The server
        server: String,
        /// The tool
        tool: String,
    },
    /// The server answered a call with an error of the protocol. A tool that merely failed gives a reply instead.
    #[error("the MCP server `{server}` refused the call of the tool `{tool}`: {message} (code {code})")]
    CallRefused {
        /// The server
        server: String,
        /// The tool
        tool: String,
        /// The code of the error
        code: i32,
        /// What the server wrote
        message: String,
    },
    /// The server answered a call with something that cannot be used.
    #[error("the reply of the tool `{tool}` of the MCP server `{server}` cannot be used: {reason}")]
    Unusable {
        /// The server
        server: String,
        /// The tool
        tool: String,
        /// What is wrong with it
        reason: String,
    },
}

/// How an exchange with a server failed that may go better another time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailedExchange {
    /// The server answered with this status of HTTP
    Status(u16),
    /// No answer came
    NoAnswer,
}

impl McpError {
    /// How the exchange failed; nothing where the server has answered, or where nothing changes by trying again.
    pub fn failed_exchange(&self) -> Option<FailedExchange> {
        match self {
            McpError::Unreachable { status: Some(status), .. } => Some(FailedExchange::Status(*status)),
            McpError::Unauthorized { .. } => Some(FailedExchange::Status(401)),
            McpError::Unreachable { status: None, .. }
            | McpError::Ended { .. }
            | McpError::ConnectTimedOut { .. }
            | McpError::CallTimedOut { .. } => Some(FailedExchange::NoAnswer),
            McpError::Settings { .. }
            | McpError::Start { .. }
            | McpError::Handshake { .. }
            | McpError::ToolsRefused { .. }
            | McpError::NoTool { .. }
            | McpError::Cancelled { .. }
            | McpError::CallRefused { .. }
            | McpError::Unusable { .. } => None,
        }
    }
}

fn last_words(stderr: &str) -> String {
    match stderr.trim() {
        "" => String::new(),
        words => format!("; the last it wrote to its error output:\n{words}"),
    }
}

/// Why a file that lists servers cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// It is no JSON, or not of the form `{"mcpServers": {...}}`.
    #[error("the list of MCP servers cannot be read: {reason}")]
    Form {
        /// What is wrong with it
        reason: String,
    },
    /// A field of a server is missing, unknown or of the wrong type.
    #[error("the MCP server `{server}`: `{field}` {reason}")]
    Field {
        /// The server
        server: String,
        /// The field, as `env.NAME` where it is inside another
        field: String,
        /// What is wrong with it
        reason: String,
    },
    /// A value refers to a variable that is not set.
    #[error("the MCP server `{server}`: `{field}` refers to `{variable}`, which is not set")]
    Variable {
        /// The server
        server: String,
        /// The field
        field: String,
        /// The variable
        variable: String,
    },
}

/// Why tools cannot be offered.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The address cannot be listened at.
    #[error("cannot listen at {address}: {source}; choose another address or port")]
    Listen {
        /// The address
        address: SocketAddr,
        /// Why not
        source: io::Error,
    },
    /// The address can be reached from outside and nothing says under which names.
    #[error("{address} can be reached from other machines; name the hosts under which it may be addressed (`--host`)")]
    HostsMissing {
        /// The address
        address: SocketAddr,
    },
    /// The client did not begin as the protocol says.
    #[error("the handshake with the MCP client failed: {reason}")]
    Handshake {
        /// What happened
        reason: String,
    },
    /// Serving ended because of an error in this program.
    #[error("serving MCP failed: {reason}")]
    Failed {
        /// What happened
        reason: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_server_and_carry_its_last_words() {
        let error = McpError::Ended {
            server: "files".to_owned(),
            reason: "it exited with code 3".to_owned(),
            stderr: "Traceback\nValueError\n".to_owned(),
        };
        let expected = "the MCP server `files` has ended: it exited with code 3; the last it wrote to its error \
                        output:\nTraceback\nValueError";
        assert_eq!(error.to_string(), expected);
        let silent =
            McpError::Ended { server: "files".to_owned(), reason: "gone".to_owned(), stderr: " \n".to_owned() };
        assert_eq!(silent.to_string(), "the MCP server `files` has ended: gone");
    }
}
