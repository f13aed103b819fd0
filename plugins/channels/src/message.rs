//! What a post of a provider has in it.

use hotcell_plugin::{Json, Value, json};

/// What a provider posted.
#[derive(Debug, Default, PartialEq, Value)]
pub(crate) struct Received {
    /// What the post is answered with; nothing where it is not that what is described.
    pub(crate) reply: Json,
    /// The messages in it.
    pub(crate) messages: Vec<Message>,
    /// Why there are none.
    pub(crate) ignored: Option<String>,
    /// Why the post cannot be read.
    pub(crate) malformed: Option<String>,
}

impl Received {
    /// A post that is answered with this JSON, and is no message.
    pub(crate) fn answered(reply: Json, why: &str) -> Self {
        Received { reply, ignored: Some(why.to_owned()), ..Received::default() }
    }

    /// A post that is no message.
    pub(crate) fn ignored(why: impl Into<String>) -> Self {
        Received { reply: json!({}), ignored: Some(why.into()), ..Received::default() }
    }

    /// A post that cannot be read.
    pub(crate) fn malformed(why: String) -> Self {
        Received { malformed: Some(why), ..Received::default() }
    }

    /// A post with one message.
    pub(crate) fn message(message: Message) -> Self {
        Received { reply: json!({}), messages: vec![message], ..Received::default() }
    }
}

/// A message.
#[derive(Clone, Debug, Default, PartialEq, Value)]
pub(crate) struct Message {
    /// What it is known by. A message that has one of them in common with an earlier one is the same.
    pub(crate) ids: Vec<String>,
    /// The chat, room or channel.
    pub(crate) chat: String,
    /// What else the chat is called in `listen_channels`.
    pub(crate) also: Vec<String>,
    /// The thread in which an answer to it is written; nothing where it is the chat.
    pub(crate) thread: Option<String>,
    /// Whether it was written in that thread.
    pub(crate) in_thread: bool,
    /// The message that it replies to.
    pub(crate) replies_to: Option<String>,
    /// Whether it answers a question that was asked anywhere in the chat.
    pub(crate) answers_chat: bool,
    /// Who wrote it.
    pub(crate) sender: String,
    /// What it says.
    pub(crate) text: String,
    /// Whether a program wrote it.
    pub(crate) is_bot: bool,
    /// Whether nobody else reads it.
    pub(crate) is_direct: bool,
    /// Whether it names whom it is for: a mention, or a command.
    pub(crate) is_addressed: bool,
    /// What else an answer to it needs to find its way.
    pub(crate) address: Json,
}

/// A JSON body.
pub(crate) fn parse(body: &str) -> Result<Json, String> {
    let found: Json = hotcell_plugin::serde_json::from_str(body)
        .map_err(|error| format!("the body cannot be read as JSON: {error}"))?;
    match found.is_object() {
        true => Ok(found),
        false => Err("the body has to be an object".to_owned()),
    }
}

/// A text at a place. An identifier may also be a number.
pub(crate) fn text_at(of: &Json, pointer: &str) -> Option<String> {
    match of.pointer(pointer)? {
        Json::String(text) => Some(text.clone()),
        Json::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// The same, which has to be there.
pub(crate) fn need(of: &Json, pointer: &str) -> Result<String, String> {
    text_at(of, pointer).filter(|text| !text.is_empty()).ok_or_else(|| format!("the body has no text at `{pointer}`"))
}

/// Whether something at a place is true.
pub(crate) fn is_set(of: &Json, pointer: &str) -> bool {
    of.pointer(pointer) == Some(&Json::Bool(true))
}

/// The items of a list at a place.
pub(crate) fn items<'j>(of: &'j Json, pointer: &str) -> &'j [Json] {
    of.pointer(pointer).and_then(Json::as_array).map(Vec::as_slice).unwrap_or_default()
}
