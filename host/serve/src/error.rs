//! Why a server cannot be set up or serve.

use std::net::SocketAddr;

use hotcell_runtime::JournalError;
use thiserror::Error;

use crate::agents::LoadError;
use crate::store::StoreError;

/// Why a server cannot be set up or serve.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ServeError {
    /// Whoever can reach the address could use everything
    #[error(
        "{0} can be reached from other machines, and without API keys, anyone who reaches it may do anything; create a key with \
         `hotcell serve key add`, or listen on a loopback address such as 127.0.0.1"
    )]
    Open(SocketAddr),
    /// Two agents cannot be told apart
    #[error("{0}")]
    Agents(String),
    /// The file beside the journal cannot be used
    #[error("{0}")]
    Store(String),
    /// The journal cannot be read
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The tenants cannot be served together
    #[error("{0}")]
    Tenants(String),
    /// Somebody who is said to issue tokens cannot
    #[error("{0}")]
    Oidc(String),
    /// Webhooks cannot be posted as they are set up
    #[error("{0}")]
    Webhook(String),
    /// A route says nothing of who may use it
    #[error("{0}")]
    Route(String),
}

impl From<LoadError> for ServeError {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::Clash(text) => ServeError::Agents(text),
            LoadError::Store(error) => error.into(),
            error @ LoadError::Sent { .. } => ServeError::Store(error.to_string()),
        }
    }
}

impl From<StoreError> for ServeError {
    fn from(error: StoreError) -> Self {
        ServeError::Store(error.to_string())
    }
}
