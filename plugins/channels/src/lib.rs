//! Chat providers: reads what they post, and says which requests post a text to them.
//!
//! Everything here is a pure function. The plugin asks for no capability: it neither connects to anything nor sees a secret. Whoever
//! calls it has verified the post, sends the requests, and puts secrets in where a request names them.
//! `post` is called again with the replies so far until it says that the text was posted, or why not.

mod discord;
mod message;
mod slack;
mod step;
mod teams;
mod telegram;
mod whatsapp;

use hotcell_plugin::{Error, Json, Value, plugin, tool};

use message::Received;
use step::{Reply, Step, To, Work};

plugin! { tools: [receive, post] }

/// A provider.
#[derive(Clone, Copy, Debug, PartialEq, Value)]
#[value(rename_all = "lowercase")]
enum Provider {
    Slack,
    Telegram,
    Discord,
    Whatsapp,
    Teams,
}

/// Reads what a provider posted: how it is answered, and the messages in it.
#[tool(read_only)]
fn receive(
    /// Who posted it.
    provider: Provider,
    /// The body of the post.
    body: &str,
    /// The settings of the channel, without its secrets.
    settings: Json,
) -> Result<Received, Error> {
    let read = match provider {
        Provider::Slack => slack::receive(body),
        Provider::Telegram => telegram::receive(body, &settings),
        Provider::Discord => discord::receive(body),
        Provider::Whatsapp => whatsapp::receive(body, &settings),
        Provider::Teams => teams::receive(body),
    };
    Ok(read.unwrap_or_else(Received::malformed))
}

/// Says how a text is posted: the next request, or what came of those before.
#[tool(read_only)]
fn post(
    /// Where to.
    provider: Provider,
    /// The settings of the channel, without its secrets.
    settings: Json,
    /// The chat.
    to: To,
    /// The text.
    text: &str,
    /// Identifies the text: the same one is posted with the same key.
    key: &str,
    /// The names of what was kept of earlier replies and is still good.
    kept: Option<Vec<String>>,
    /// The replies to the requests so far.
    replies: Option<Vec<Reply>>,
) -> Result<Step, Error> {
    let (kept, replies) = (kept.unwrap_or_default(), replies.unwrap_or_default());
    let work = Work { settings, to, text, key, kept, replies };
    Ok(match provider {
        Provider::Slack => slack::post(&work),
        Provider::Telegram => telegram::post(&work),
        Provider::Discord => discord::post(&work),
        Provider::Whatsapp => whatsapp::post(&work),
        Provider::Teams => teams::post(&work),
    })
}

#[cfg(test)]
mod tests;
