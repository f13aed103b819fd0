//! What a build needs of the world and does not do by itself.

use std::sync::Arc;

use async_trait::async_trait;
use thiserror::Error;

/// A format that only foreign code reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// Portable Document Format.
    Pdf,
    /// Web pages.
    Html,
}

impl std::fmt::Display for Format {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Pdf => "PDF",
            Self::Html => "HTML",
        })
    }
}

/// What was found at an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// What the server says that it is, for example `text/html; charset=utf-8`; empty if it does not say.
    pub content_type: String,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// Why something outside is not to be had, as whoever offers it says.
#[derive(Debug, Error)]
#[error(transparent)]
pub struct OutsideError(Box<dyn std::error::Error + Send + Sync>);

impl OutsideError {
    /// An error with its cause, or a text that says why.
    pub fn new(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self(cause.into())
    }
}

/// Gets what is at an address. Which addresses may be reached is decided behind it.
#[async_trait]
pub trait Fetch: Send + Sync {
    /// Gets what is at `url`.
    ///
    /// # Errors
    ///
    /// Why it could not be had.
    async fn get(&self, url: &str) -> Result<Fetched, OutsideError>;
}

/// Reads a document with a loader that the operator named.
#[async_trait]
pub trait Loader: Send + Sync {
    /// The text that the loader called `loader` makes of `path`.
    ///
    /// # Errors
    ///
    /// Why there is none.
    async fn load(&self, loader: &str, path: &str) -> Result<String, OutsideError>;
}

/// Turns documents that are no plain text into text, in a sealed cell.
#[async_trait]
pub trait Extract: Send + Sync {
    /// The text of a document.
    ///
    /// # Errors
    ///
    /// Why there is none.
    async fn text(&self, format: Format, bytes: Vec<u8>) -> Result<String, OutsideError>;
}

/// The world, as a build sees it.
#[derive(Clone)]
pub struct Outside {
    /// For `http://` and `https://` sources.
    pub fetch: Arc<dyn Fetch>,
    /// For `LOADER:PATH` sources.
    pub loader: Arc<dyn Loader>,
    /// For PDF and HTML.
    pub extract: Arc<dyn Extract>,
}

impl Outside {
    /// Nothing outside: a build that needs any of it fails. For documents that are files of plain text.
    #[must_use]
    pub fn nothing() -> Self {
        Self { fetch: Arc::new(Nothing), loader: Arc::new(Nothing), extract: Arc::new(Nothing) }
    }
}

/// Whoever has nothing.
struct Nothing;

#[async_trait]
impl Fetch for Nothing {
    async fn get(&self, _: &str) -> Result<Fetched, OutsideError> {
        Err(OutsideError::new("nothing is fetched here"))
    }
}

#[async_trait]
impl Loader for Nothing {
    async fn load(&self, _: &str, _: &str) -> Result<String, OutsideError> {
        Err(OutsideError::new("nothing is loaded here"))
    }
}

#[async_trait]
impl Extract for Nothing {
    async fn text(&self, _: Format, _: Vec<u8>) -> Result<String, OutsideError> {
        Err(OutsideError::new("nothing is extracted here"))
    }
}
