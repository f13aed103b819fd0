//! What this host offers, as a server.
//!
//! A [`Catalog`] says what there is and does it. Everything of the protocol is done here: sessions, progress,
//! cancellation, questions to whoever sits at the client, and who may reach the server at all.

mod asked;
mod attended;
mod client;
mod context;
mod handler;
mod http;
mod question;
mod service;
mod stdio;

use std::pin::Pin;

use serde_json::{Map, Value};
use thiserror::Error;
use tokio::sync::watch;

pub use self::asked::{Asked, Asks, GoingOn};
pub use self::attended::CLIENT_BACK_WITHIN;
pub use self::client::{Client, SessionOwner};
pub use self::context::{CallContext, ElicitError};
pub use self::http::{HttpServer, HttpSettings, serve_http};
pub use self::service::McpService;
pub use self::stdio::{serve_pipe, serve_stdio};

/// Who serves, as clients show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The name of the program
    pub name: String,
    /// Its version
    pub version: String,
}

/// A tool that is listed.
#[derive(Clone, Debug, PartialEq)]
pub struct OfferedTool {
    /// Its name, of letters, digits, `_`, `-` and `.`, at most 128 of them
    pub name: String,
    /// Its name for people
    pub title: Option<String>,
    /// What it does, for models
    pub description: String,
    /// The JSON schema of its arguments
    pub input_schema: Map<String, Value>,
    /// The JSON schema of its structured answers, if it gives any
    pub output_schema: Option<Map<String, Value>>,
    /// Whether a call changes nothing, as far as that is known; clients may ask a person before others
    pub read_only: bool,
    /// Whether it reaches something beyond this machine
    pub open_world: bool,
}

/// A piece of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Text
    Text(String),
    /// An image
    Image {
        /// As `image/png`
        mime_type: String,
        /// In base64
        data: String,
    },
    /// A sound
    Audio {
        /// As `audio/wav`
        mime_type: String,
        /// In base64
        data: String,
    },
    /// A document
    Document {
        /// Its address
        uri: String,
        /// As `text/markdown`
        mime_type: String,
        /// What is in it
        text: String,
    },
}

/// What a tool answers.
#[derive(Clone, Debug, PartialEq)]
pub struct Called {
    /// For a model or a person
    pub content: Vec<Content>,
    /// For a program; must fit the tool's output schema, if it has one
    pub structured: Option<Value>,
    /// Whether the tool failed; the content then says why
    pub is_error: bool,
}

impl Called {
    /// An answer of text alone.
    pub fn text(text: impl Into<String>) -> Self {
        Called { content: vec![Content::Text(text.into())], structured: None, is_error: false }
    }

    /// The answer of a tool that failed, which a model can read and act on.
    pub fn failed(reason: impl Into<String>) -> Self {
        Called { is_error: true, ..Called::text(reason) }
    }
}

/// What comes of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The tool is done
    Done(Called),
    /// It has to be known something first. Only a client that [can answer later](CallContext::can_answer_later) may be told this
    Asks(Asks),
}

impl From<Called> for Answer {
    fn from(called: Called) -> Self {
        Answer::Done(called)
    }
}

/// Why a call came to nothing. A tool that ran and failed gives [`Called::failed`] instead.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CatalogError {
    /// The arguments are not those that the tool takes.
    #[error("{0}")]
    InvalidArguments(String),
    /// What the client sent to go on with a call was not given out for it, or was changed.
    #[error("{0}")]
    InvalidState(String),
    /// This program cannot do it now.
    #[error("{0}")]
    Unavailable(String),
}

/// What comes of a call of a tool.
pub type Calling<'a> = Pin<Box<dyn Future<Output = Result<Answer, CatalogError>> + Send + 'a>>;

/// The tools that a server lists and calls.
pub trait Catalog: Send + Sync + 'static {
    /// All tools that this client may see. Asked for often: whenever a client lists them and whenever one is called.
    fn tools(&self, client: &Client) -> Vec<OfferedTool>;

    /// Calls a tool of [`Catalog::tools`]. When the client cancels the call, ends its session, or is gone for
    /// [`CLIENT_BACK_WITHIN`], the context says so; a call that goes on for another 10 seconds after that is dropped.
    ///
    /// # Errors
    /// The arguments are wrong, or the tool cannot be called at all.
    fn call<'a>(&'a self, name: &'a str, arguments: Map<String, Value>, context: CallContext) -> Calling<'a>;

    /// Changes its value whenever the tools change; clients are then told. `None` if they never do.
    fn changes(&self) -> Option<watch::Receiver<u64>> {
        None
    }
}
