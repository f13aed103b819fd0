//! What goes wrong in a plugin, as the contract says it.

use std::fmt;

/// Why something did not work.
///
/// `?` turns every [`std::error::Error`] into [`Error::Other`] with the texts of its whole chain; what the caller can
/// mend is better said with [`Error::invalid_input`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The caller gave something that cannot be used; the same call will fail again.
    InvalidInput(Failure),
    /// A capability was not granted; the message names it.
    Denied(Failure),
    /// Something outside is not to be had at the moment; a later call may work.
    Unavailable(Failure),
    /// Anything else.
    Other(Failure),
}

/// What went wrong, in words for the person who runs the graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failure {
    /// What happened and, where it is known, what to do. The host cuts off long texts.
    pub message: String,
    /// Further facts by name; empty is fine.
    pub metadata: Vec<(String, String)>,
}

impl Failure {
    /// A failure with a message and no further facts.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), metadata: Vec::new() }
    }
}

impl Error {
    /// The caller gave something that cannot be used.
    pub fn invalid_input(message: impl Into<String>) -> Self {
        Self::InvalidInput(Failure::new(message))
    }

    /// A capability was not granted.
    pub fn denied(message: impl Into<String>) -> Self {
        Self::Denied(Failure::new(message))
    }

    /// Something outside is not to be had at the moment.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::Unavailable(Failure::new(message))
    }

    /// Anything else.
    pub fn other(message: impl Into<String>) -> Self {
        Self::Other(Failure::new(message))
    }

    /// The same error with one more fact.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.failure_mut().metadata.push((name.into(), value.into()));
        self
    }

    /// The message.
    pub fn message(&self) -> &str {
        &self.failure().message
    }

    /// The name of the kind, as in the contract: `invalid-input`, `denied`, `unavailable` or `other`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::InvalidInput(_) => "invalid-input",
            Self::Denied(_) => "denied",
            Self::Unavailable(_) => "unavailable",
            Self::Other(_) => "other",
        }
    }

    /// The message and the further facts.
    pub fn failure(&self) -> &Failure {
        match self {
            Self::InvalidInput(failure) | Self::Denied(failure) | Self::Unavailable(failure) | Self::Other(failure) => {
                failure
            }
        }
    }

    fn failure_mut(&mut self) -> &mut Failure {
        match self {
            Self::InvalidInput(failure) | Self::Denied(failure) | Self::Unavailable(failure) | Self::Other(failure) => {
                failure
            }
        }
    }
}

// Not a `std::error::Error` itself: that would forbid the conversion below.
impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.kind(), self.message())
    }
}

impl<E: std::error::Error> From<E> for Error {
    fn from(error: E) -> Self {
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            message.push_str(": ");
            message.push_str(&cause.to_string());
            source = cause.source();
        }
        Self::other(message)
    }
}

#[cfg(test)]
mod tests {
    use super::Error;

    #[test]
    fn any_error_becomes_other_with_its_message() {
        let parse = || -> Result<u32, Error> { Ok("x".parse::<u32>()?) };
        assert_eq!(parse().map_err(|error| error.to_string()), Err("other: invalid digit found in string".to_owned()));
    }

    #[test]
    fn facts_are_kept_in_order() {
        let error = Error::unavailable("the server is busy").with("status", "503").with("after", "10");
        assert_eq!(error.failure().metadata.len(), 2);
        assert_eq!(error.kind(), "unavailable");
    }
}
