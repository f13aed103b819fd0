//! What a tool may do while it is being called: tell how far it is, write a log, and ask a person.
//!
//! It speaks through a channel to the one who handles the call, so that it can be used from any task, and so that
//! everything it said is sent before the answer is.

use std::sync::Arc;

use serde_json::Value;
use thiserror::Error;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::asked::GoingOn;
use super::client::Client;
use crate::exchange::{Elicited, LogLevel};

/// How many reports of one call may wait to be sent; those beyond are dropped.
const WAITING_NOTES: usize = 256;

/// What is going on with one call. Clones are about the same call.
#[derive(Clone, Debug)]
pub struct CallContext {
    notes: mpsc::Sender<Note>,
    cancel: CancellationToken,
    about: Arc<About>,
}

/// What is known of a call when it begins.
#[derive(Debug, Default)]
pub(super) struct About {
    pub(super) client: Client,
    /// Whether a question can be put while the call goes on
    pub(super) can_ask: bool,
    /// Whether the call may end with questions
    pub(super) can_answer_later: bool,
    pub(super) going_on: GoingOn,
    /// Cancelled when the client is gone for good
    pub(super) gone: CancellationToken,
}

/// Why a question has no answer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ElicitError {
    /// Nobody can be asked there.
    #[error("the MCP client cannot ask a person; use one that supports elicitation")]
    Unsupported,
    /// The schema is not of the kind that clients can make a form of.
    #[error("the question cannot be put as a form: {0}")]
    Schema(String),
    /// The client did not answer as it should, or the call is over.
    #[error("the MCP client gave no answer: {0}")]
    Failed(String),
}

/// What a call has to say.
#[derive(Debug)]
pub(super) enum Note {
    Progress { done: f64, total: Option<f64>, message: Option<String> },
    Log { level: LogLevel, text: String },
    Ask { message: String, schema: Value, answer: oneshot::Sender<Result<Elicited, ElicitError>> },
}

impl CallContext {
    pub(super) fn new(cancel: CancellationToken, about: About) -> (Self, mpsc::Receiver<Note>) {
        let (notes, receiver) = mpsc::channel(WAITING_NOTES);
        (CallContext { notes, cancel, about: Arc::new(about) }, receiver)
    }

    /// Tells how far the call has come, in a unit of the tool's own. What is not more than before is not sent, and
    /// a client that did not ask for progress gets none.
    pub fn progress(&self, done: f64, total: Option<f64>, message: Option<String>) {
        // A report that finds no room is followed by newer ones.
        let _ = self.notes.try_send(Note::Progress { done, total, message });
    }

    /// Writes a line to the client's log.
    pub fn log(&self, level: LogLevel, text: impl Into<String>) {
        if self.notes.try_send(Note::Log { level, text: text.into() }).is_err() {
            tracing::debug!("a line of a log was dropped: the MCP client does not keep up");
        }
    }

    /// Cancelled when the client does not want the answer any more.
    pub fn cancelled(&self) -> &CancellationToken {
        &self.cancel
    }

    /// Whether the client does not want the answer because it is gone, and not because somebody said so.
    pub fn has_left(&self) -> bool {
        self.about.gone.is_cancelled()
    }

    /// Who calls.
    pub fn client(&self) -> &Client {
        &self.about.client
    }

    /// Whether there is somebody to ask while the call goes on.
    pub fn can_ask(&self) -> bool {
        self.about.can_ask
    }

    /// Whether there is somebody to ask by [`Answer::Asks`](super::Answer::Asks): the client calls again with the answers.
    pub fn can_answer_later(&self) -> bool {
        self.about.can_answer_later
    }

    /// What the client sends to go on with a call that asked something.
    pub fn going_on(&self) -> &GoingOn {
        &self.about.going_on
    }

    /// Asks the person at the client, and waits as long as that takes. `schema` is a JSON schema of an object whose
    /// fields are texts, numbers, booleans or choices.
    ///
    /// # Errors
    /// The client cannot ask, the schema is not of that kind, or the call has ended.
    pub async fn elicit(&self, message: impl Into<String>, schema: Value) -> Result<Elicited, ElicitError> {
        if !self.can_ask() {
            return Err(ElicitError::Unsupported);
        }
        let over = || ElicitError::Failed("the call is over".to_owned());
        let (answer, answered) = oneshot::channel();
        let question = Note::Ask { message: message.into(), schema, answer };
        self.notes.send(question).await.map_err(|_| over())?;
        answered.await.map_err(|_| over())?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn nobody_is_asked_where_nobody_can_be() {
        let (context, _notes) = CallContext::new(CancellationToken::new(), About::default());
        assert_eq!(context.elicit("?", Value::Null).await, Err(ElicitError::Unsupported));
    }

    #[tokio::test]
    async fn a_question_ends_with_its_call() {
        let (context, notes) = CallContext::new(CancellationToken::new(), About { can_ask: true, ..About::default() });
        drop(notes);
        assert!(matches!(context.elicit("?", Value::Null).await, Err(ElicitError::Failed(_))));
    }

    #[test]
    fn reports_never_wait() {
        let (context, mut notes) =
            CallContext::new(CancellationToken::new(), About { can_ask: true, ..About::default() });
        for number in 0..10_000 {
            context.progress(f64::from(number), None, None);
            context.log(LogLevel::Info, "line");
        }
        let mut waiting = 0;
        while notes.try_recv().is_ok() {
            waiting += 1;
        }
        assert_eq!(waiting, WAITING_NOTES);
    }
}
