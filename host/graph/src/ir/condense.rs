//! What a model is told of a conversation in fewer words.

use super::{ConverseAction, Expression};
use crate::value::Key;

/// Has a model sum up what is long before another one reads it. The conversation itself stays as it is, and what was summed up is
/// not summed up again.
#[derive(Clone, Debug)]
pub struct Condense {
    /// What is summed up
    pub what: Condensed,
    /// Whom the summaries are asked of: its settings, and what is done about a refusal
    pub by: Box<ConverseAction>,
    /// What that model is told to do
    pub instructions: String,
    /// The text in which a summary is told. It sees the summary as [`Condense::SUMMARY`]
    pub told: Expression,
    /// The state key that keeps the summaries
    pub key: Key,
}

/// What is summed up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condensed {
    /// Each message with more characters
    Messages {
        /// The most characters that stay as they are
        longest: usize,
    },
    /// Everything before the last messages, once the conversation is longer
    Conversation {
        /// The most messages
        most_messages: Option<usize>,
        /// The most characters
        most_characters: Option<usize>,
        /// How many of the last messages stay. The answer of a tool stays with its call
        kept: usize,
    },
}

impl Condense {
    /// The name of a summary in the text in which it is told.
    pub const SUMMARY: &'static str = "summary";
}
