//! Connectors: hand something to another system, and wait for its answer or have it sent later.

use crate::{Error, Json, Mismatch, Value};

/// What hands a request over.
pub type SendFunction = fn(Request<Json, Json>) -> Result<Reply<Json>, Error>;
/// What reads the answer that came by the callback.
pub type ReceiveFunction = fn(Request<Json, Json>, Json) -> Result<Json, Error>;

/// What is to be handed to the other system.
#[derive(Clone, Debug, PartialEq)]
pub struct Request<Input, Config> {
    /// What the graph hands over.
    pub input: Input,
    /// How the author of the graph set the connector up.
    pub config: Config,
    /// In callback mode: where the other system has to send its answer.
    pub callback: Option<Callback>,
    /// Further facts by name.
    pub metadata: Vec<(String, String)>,
}

/// Where an answer is expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Callback {
    /// The address to send it to.
    pub url: String,
    /// The text that has to come with it, so that it finds its run.
    pub session: String,
}

/// What came of handing over.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply<T> {
    /// The answer.
    Done(T),
    /// It was taken; the answer comes by the callback, perhaps days later.
    Accepted,
}

impl Request<Json, Json> {
    /// The same request with its input and its settings read.
    ///
    /// # Errors
    /// `invalid-input` where they do not fit.
    pub fn typed<Input: Value, Config: Value>(self) -> Result<Request<Input, Config>, Error> {
        let read = |mismatch: Mismatch, what| mismatch.into_error(what);
        Ok(Request {
            input: Input::decode(self.input).map_err(|mismatch| read(mismatch, "input"))?,
            config: Config::decode(self.config).map_err(|mismatch| read(mismatch, "setting"))?,
            callback: self.callback,
            metadata: self.metadata,
        })
    }
}

/// The types of a connector's request, for the code that the macros write.
#[diagnostic::on_unimplemented(
    message = "a connector takes a `Request<Input, Config>`, not `{Self}`",
    label = "not a request"
)]
pub trait Requested: Sized {
    /// The form of the settings.
    const CONFIG: &'static crate::schema::Schema;

    /// Reads the request.
    ///
    /// # Errors
    /// `invalid-input` where it does not fit.
    fn read(request: Request<Json, Json>) -> Result<Self, Error>;
}

impl<Input: Value, Config: Value> Requested for Request<Input, Config> {
    const CONFIG: &'static crate::schema::Schema = Config::SCHEMA;

    fn read(request: Request<Json, Json>) -> Result<Self, Error> {
        request.typed()
    }
}
