//! The component that knows how providers write: it reads their posts, and says which requests post a text. It has no
//! capability, and no secret is handed to it.

use hotcell_runtime::leafmesh::{ChannelSettings, channels_tool};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::super::meshes::Mesh;
use super::provider::Provider;

/// What a provider posted.
#[derive(Debug, Deserialize)]
pub(super) struct Received {
    pub(super) reply: Value,
    pub(super) messages: Vec<Message>,
    /// Why there are no messages
    pub(super) ignored: Option<String>,
    /// Why the post cannot be read
    pub(super) malformed: Option<String>,
}

/// A message.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Message {
    /// What it is known by: one that has one of them in common with another is the same
    pub(super) ids: Vec<String>,
    pub(super) chat: String,
    /// What else the chat is called
    pub(super) also: Vec<String>,
    /// Where an answer to it is written, if that is not the chat
    pub(super) thread: Option<String>,
    /// Whether it was written in that thread
    pub(super) in_thread: bool,
    /// The message that it replies to
    pub(super) replies_to: Option<String>,
    /// Whether it answers a question that was asked anywhere in the chat
    pub(super) answers_chat: bool,
    pub(super) sender: String,
    pub(super) text: String,
    pub(super) is_bot: bool,
    pub(super) is_direct: bool,
    pub(super) is_addressed: bool,
    /// What else an answer to it needs to find its way
    pub(super) address: Value,
}

/// Where a text is posted to.
#[derive(Clone, Debug, Serialize)]
pub(in crate::mesh) struct To {
    pub(in crate::mesh) chat: String,
    pub(in crate::mesh) thread: Option<String>,
    pub(in crate::mesh) address: Value,
}

/// What a request got.
#[derive(Debug, Serialize)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) body: String,
}

/// What is to be done next, or what came of it.
#[derive(Debug, Deserialize)]
#[serde(tag = "step", rename_all = "lowercase")]
pub(super) enum Step {
    Request(Outgoing),
    Posted { chat: String, message: Option<String>, thread: Option<String> },
    Failed { reason: String, last: bool },
}

/// A request, in which secrets are named.
#[derive(Debug, Deserialize)]
pub(super) struct Outgoing {
    pub(super) method: String,
    pub(super) to: String,
    pub(super) path: Vec<Part>,
    pub(super) headers: Vec<Field>,
    pub(super) json: Option<Value>,
    pub(super) form: Vec<Field>,
    pub(super) keep: Option<Keep>,
}

/// A text with a secret behind it.
#[derive(Debug, Deserialize)]
pub(super) struct Part {
    pub(super) text: String,
    pub(super) secret: Option<String>,
}

/// A header, or a field of a form.
#[derive(Debug, Deserialize)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) value: Part,
}

/// What of a reply is kept, by pointers into its JSON.
#[derive(Debug, Deserialize)]
pub(super) struct Keep {
    pub(super) name: String,
    pub(super) at: String,
    pub(super) seconds: String,
}

/// What of the settings of a channel is no secret.
fn open_settings(channel: &ChannelSettings) -> Value {
    let mut settings: Map<String, Value> =
        channel.more.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    settings.insert("post_channel".to_owned(), json!(channel.post_channel));
    settings.into()
}

/// Reads what a provider posted.
///
/// # Errors
/// When the component fails.
pub(super) async fn receive(
    mesh: &Mesh,
    provider: Provider,
    channel: &ChannelSettings,
    body: &str,
) -> Result<Received, String> {
    let arguments = json!({ "provider": provider.word(), "body": body, "settings": open_settings(channel) });
    call(mesh, "receive", &arguments).await
}

/// A text that is posted.
pub(super) struct Posting<'a> {
    pub(super) channel: &'a ChannelSettings,
    pub(super) to: &'a To,
    pub(super) text: &'a str,
    pub(super) key: &'a str,
}

/// Says what is to be done next to post a text.
///
/// # Errors
/// When the component fails.
pub(super) async fn post(
    mesh: &Mesh,
    provider: Provider,
    posting: &Posting<'_>,
    kept: &[String],
    replies: &[Reply],
) -> Result<Step, String> {
    let arguments = json!({
        "provider": provider.word(), "settings": open_settings(posting.channel), "to": posting.to, "text": posting.text,
        "key": posting.key, "kept": kept, "replies": replies,
    });
    call(mesh, "post", &arguments).await
}

async fn call<T: for<'de> Deserialize<'de>>(mesh: &Mesh, tool: &str, arguments: &Value) -> Result<T, String> {
    let answer = mesh.agent.call_component(&channels_tool(tool), &arguments.to_string()).await;
    let answer = answer.map_err(|error| error.to_string())?;
    serde_json::from_str(&answer).map_err(|error| format!("what `{tool}` gave cannot be read: {error}"))
}
