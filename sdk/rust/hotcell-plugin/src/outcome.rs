//! What functions of plugins may return. Each trait has one implementation, for `Result`, so that a function with
//! another type is refused with a sentence instead of a page.

use crate::{Error, Json, Outcome, Reply, Value, Verdict};

/// What a tool or a script returns.
#[diagnostic::on_unimplemented(
    message = "a tool or a script returns `Result<T, Error>` with a `T` that has a JSON form, not `{Self}`",
    label = "not a result of that kind"
)]
pub trait Returned {
    /// The form of the result.
    const RETURNS: &'static crate::schema::Schema;

    /// The result as JSON.
    ///
    /// # Errors
    /// The function's own error, or that its value cannot be said in JSON.
    fn finish(self) -> Result<Json, Error>;
}

impl<T: Value, E: Into<Error>> Returned for Result<T, E> {
    const RETURNS: &'static crate::schema::Schema = T::SCHEMA;

    fn finish(self) -> Result<Json, Error> {
        self.map_err(Into::into)?.encode()
    }
}

/// What a node type returns.
#[diagnostic::on_unimplemented(
    message = "a node type returns `Result<Outcome<T>, Error>` with a `T` that has a JSON form, not `{Self}`",
    label = "not a result of that kind"
)]
pub trait ReturnedByNode {
    /// The form of the outputs.
    const OUTPUTS: &'static crate::schema::Schema;

    /// The outcome with its outputs as JSON.
    ///
    /// # Errors
    /// The function's own error, or that its outputs cannot be said in JSON.
    fn finish(self) -> Result<Outcome<Json>, Error>;
}

impl<T: Value, E: Into<Error>> ReturnedByNode for Result<Outcome<T>, E> {
    const OUTPUTS: &'static crate::schema::Schema = T::SCHEMA;

    fn finish(self) -> Result<Outcome<Json>, Error> {
        let Outcome { outputs, branch, metadata } = self.map_err(Into::into)?;
        Ok(Outcome { outputs: outputs.encode()?, branch, metadata })
    }
}

/// What a hook returns.
#[diagnostic::on_unimplemented(
    message = "a hook returns `Result<Verdict, Error>`, not `{Self}`",
    label = "not a result of that kind"
)]
pub trait ReturnedByHook {
    /// The verdict.
    ///
    /// # Errors
    /// The function's own error.
    fn finish(self) -> Result<Verdict, Error>;
}

impl<E: Into<Error>> ReturnedByHook for Result<Verdict, E> {
    fn finish(self) -> Result<Verdict, Error> {
        self.map_err(Into::into)
    }
}

/// What a connector returns.
#[diagnostic::on_unimplemented(
    message = "a connector returns `Result<Reply<T>, Error>` with a `T` that has a JSON form, not `{Self}`",
    label = "not a result of that kind"
)]
pub trait ReturnedByConnector {
    /// The reply with its answer as JSON.
    ///
    /// # Errors
    /// The function's own error, or that its answer cannot be said in JSON.
    fn finish(self) -> Result<Reply<Json>, Error>;
}

impl<T: Value, E: Into<Error>> ReturnedByConnector for Result<Reply<T>, E> {
    fn finish(self) -> Result<Reply<Json>, Error> {
        match self.map_err(Into::into)? {
            Reply::Done(answer) => Ok(Reply::Done(answer.encode()?)),
            Reply::Accepted => Ok(Reply::Accepted),
        }
    }
}
