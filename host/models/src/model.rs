//! The trait that every kind of model implements.

use async_trait::async_trait;

use crate::{ModelError, ModelName, Reply, Request};

/// Called with each piece of a reply's text as it arrives.
pub type OnText<'a> = &'a mut (dyn FnMut(&str) + Send);

/// Something that answers requests as a language model does.
#[async_trait]
pub trait Model: Send + Sync {
    /// Asks once and waits for the whole reply.
    ///
    /// With `on_text` the reply is streamed where the model can stream, and `on_text` is called with each piece
    /// of its text as it arrives; the pieces joined are `Reply::content`. Dropping the future abandons the
    /// request and closes its connection.
    ///
    /// # Errors
    ///
    /// Whatever keeps the model from replying; nothing is tried twice. [`ModelError::is_transient`] tells
    /// whether asking again may help.
    async fn complete(&self, request: Request, on_text: Option<OnText<'_>>) -> Result<Reply, ModelError>;

    /// How many tokens a text has, as the model of that name counts them; none where that is not known.
    fn count_tokens(&self, model: &ModelName, text: &str) -> Option<usize> {
        let _ = (model, text);
        None
    }
}
