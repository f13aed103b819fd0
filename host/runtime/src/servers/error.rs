//! Why an MCP server, or a file that names some, cannot be used.

use std::path::PathBuf;
use std::sync::Arc;

use hotcell_cells::Denial;
use hotcell_files::FileError;
use hotcell_mcp::{FailedExchange, SettingsError};
use hotcell_plugins::NotPinned;
use thiserror::Error;

use crate::key_files::KeyFileError;

/// Why a server cannot be used.
#[derive(Clone, Debug, Error)]
pub(crate) enum ServerError {
    /// The agent's own file says no address of it
    #[error("the `url` of the MCP server `{server}` is not a valid address: {cause}")]
    Url {
        /// The server
        server: String,
        /// Why not
        #[source]
        cause: url::ParseError,
    },
    /// The agent's own file names a file for it that it may not have
    #[error("the MCP server `{server}`: {cause}")]
    KeyFile {
        /// The server
        server: String,
        /// Why not
        #[source]
        cause: Arc<KeyFileError>,
    },
    /// Its address is of something else
    #[error("the address of `{0}` is not one of a web server")]
    NoWebServer(String),
    /// It is not granted what it needs
    #[error("the MCP server `{server}` may not be used here: {denial}")]
    Denied {
        /// The server
        server: String,
        /// What would have to be granted
        denial: Denial,
    },
    /// It is a program
    #[error("the MCP server `{0}` is a program, and no programs are started here")]
    NotStarted(String),
    /// It cannot be connected to: in words without the keys that it is sent, which the error itself may repeat
    #[error("{words}")]
    Unreachable {
        /// Why not
        words: String,
        /// How the exchange with it failed, if that may be different another time
        exchange: Option<FailedExchange>,
    },
    /// What it says of its functions cannot be kept or read
    #[error(transparent)]
    Functions(Arc<serde_json::Error>),
}

impl From<serde_json::Error> for ServerError {
    fn from(error: serde_json::Error) -> Self {
        ServerError::Functions(Arc::new(error))
    }
}

/// Why a file that names servers cannot be used.
#[derive(Debug, Error)]
pub(crate) enum ServersFileError {
    /// It cannot be read
    #[error("cannot read `{file}`: {cause}", file = file.display())]
    Unreadable {
        /// The file
        file: PathBuf,
        /// Why not
        #[source]
        cause: UnreadServers,
    },
    /// What it says cannot be used
    #[error("`{file}`: {cause}", file = file.display())]
    Form {
        /// The file
        file: PathBuf,
        /// What is wrong
        #[source]
        cause: SettingsError,
    },
}

/// Why the text of a file that names servers is not read.
#[derive(Debug, Error)]
pub(crate) enum UnreadServers {
    /// It cannot be
    #[error(transparent)]
    File(#[from] FileError),
    /// It is not the one that is trusted
    #[error(transparent)]
    NotPinned(#[from] NotPinned),
}
