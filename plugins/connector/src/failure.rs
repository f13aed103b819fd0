//! Why a job came to nothing.

use hotcell_plugin::Error;

use crate::FAILED;

/// Why a job came to nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What kind of failure it is
    pub error_type: String,
    /// In words
    pub message: String,
    /// Whether the same step may be taken again, after so many milliseconds if that was said
    pub retry: Option<Option<u64>>,
    /// Whether it counts among those after which nothing is sent any more
    pub counts: bool,
}

impl Failure {
    /// One after which nothing is tried again.
    pub fn new(message: impl Into<String>) -> Self {
        Failure { error_type: FAILED.to_owned(), message: message.into(), retry: None, counts: true }
    }

    /// The other system wants to know something from somebody before it goes on.
    pub fn input_required(prompt: &str) -> Self {
        let message = match prompt {
            "" => "it waits for an answer, which nobody gives here".to_owned(),
            prompt => format!("it waits for an answer, which nobody gives here: {prompt}"),
        };
        Failure { error_type: "InputRequired".to_owned(), counts: false, ..Failure::new(message) }
    }

    /// The same, which may help if it is tried again.
    #[must_use]
    pub fn again(self, after_ms: Option<u64>) -> Self {
        Failure { retry: Some(after_ms), ..self }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::new(error.message())
    }
}
