//! How a text is posted: one request after the other.

use hotcell_plugin::{Json, Value};

use crate::message::text_at;

/// What is posted.
pub(crate) struct Work<'a> {
    pub(crate) settings: Json,
    pub(crate) to: To,
    pub(crate) text: &'a str,
    pub(crate) key: &'a str,
    pub(crate) kept: Vec<String>,
    pub(crate) replies: Vec<Reply>,
}

/// A chat.
#[derive(Debug, PartialEq, Value)]
pub(crate) struct To {
    /// The chat, room or channel.
    pub(crate) chat: String,
    /// The thread in it.
    pub(crate) thread: Option<String>,
    /// What the message had as its `address` that is answered.
    #[value(default)]
    pub(crate) address: Json,
}

/// What a request got.
#[derive(Debug, PartialEq, Value)]
pub(crate) struct Reply {
    /// The status.
    pub(crate) status: u16,
    /// The body.
    pub(crate) body: String,
}

/// What is to be done next, or what came of it.
#[derive(Debug, PartialEq, Value)]
#[value(tag = "step", rename_all = "lowercase")]
pub(crate) enum Step {
    /// A request is to be sent.
    Request {
        /// The method.
        method: String,
        /// Which of the provider's servers: `api`, `login` or `service`.
        to: String,
        /// The segments of the path.
        path: Vec<Part>,
        /// The headers.
        headers: Vec<Header>,
        /// The body as JSON.
        json: Option<Json>,
        /// The body as a form.
        form: Vec<Header>,
        /// What of the reply is kept, and is a secret.
        keep: Option<Keep>,
    },
    /// The text was posted.
    Posted {
        /// The chat, as answers name it.
        chat: String,
        /// The message.
        message: Option<String>,
        /// The thread in which answers are written.
        thread: Option<String>,
    },
    /// It could not be posted.
    Failed {
        /// Why.
        reason: String,
        /// Whether it would fail again.
        last: bool,
    },
}

/// A text with a secret behind it.
#[derive(Debug, PartialEq, Value)]
pub(crate) struct Part {
    /// The text.
    pub(crate) text: String,
    /// The name of the secret.
    pub(crate) secret: Option<String>,
}

/// A header, or a field of a form.
#[derive(Debug, PartialEq, Value)]
pub(crate) struct Header {
    /// Its name.
    pub(crate) name: String,
    /// Its value.
    pub(crate) value: Part,
}

/// What of a reply is kept.
#[derive(Debug, PartialEq, Value)]
pub(crate) struct Keep {
    /// What it is called.
    pub(crate) name: String,
    /// Where in the JSON of the reply it is.
    pub(crate) at: String,
    /// Where the reply says for how many seconds it is good.
    pub(crate) seconds: String,
}

impl Part {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Part { text: text.into(), secret: None }
    }

    pub(crate) fn secret(before: &str, name: &str) -> Self {
        Part { text: before.to_owned(), secret: Some(name.to_owned()) }
    }
}

impl Header {
    pub(crate) fn new(name: &str, value: Part) -> Self {
        Header { name: name.to_owned(), value }
    }
}

impl Step {
    /// A post of JSON to the provider's own server, with the token of the bot.
    pub(crate) fn post(path: Vec<Part>, authorization: Option<Part>, json: Json) -> Self {
        Step::Request {
            method: "POST".to_owned(),
            to: "api".to_owned(),
            path,
            headers: authorization.map(|value| Header::new("authorization", value)).into_iter().collect(),
            json: Some(json),
            form: Vec::new(),
            keep: None,
        }
    }

    pub(crate) fn failed(reason: impl Into<String>, last: bool) -> Self {
        Step::Failed { reason: reason.into(), last }
    }
}

impl Reply {
    /// The body as JSON; null where it is none.
    pub(crate) fn json(&self) -> Json {
        hotcell_plugin::serde_json::from_str(&self.body).unwrap_or_default()
    }

    /// Whether the status says that it was taken.
    pub(crate) fn is_taken(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// A failure with what the reply says of it.
    pub(crate) fn failure(&self, who: &str, at: &[&str]) -> Step {
        let json = self.json();
        let said = at.iter().find_map(|at| text_at(&json, at)).map(|said| format!(": {}", cut(&said, 200)));
        let reason = format!("{who} answered with the status {}{}", self.status, said.unwrap_or_default());
        Step::failed(reason, self.status < 500 && self.status != 429)
    }
}

/// The beginning of a text.
fn cut(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}

/// A text in pieces of so many UTF-16 units at most, which is what providers count; pieces end at line breaks or spaces where
/// there are some.
pub(crate) fn pieces(text: &str, most: usize) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let mut units = 0;
        let fits = rest.char_indices().find(|(_, letter)| {
            units += letter.len_utf16();
            units > most
        });
        let Some((end, _)) = fits else {
            pieces.push(rest.to_owned());
            break;
        };
        let piece = &rest[..end];
        let late = |at: &usize| *at > piece.len() / 2;
        let at = piece.rfind('\n').filter(late).or_else(|| piece.rfind(' ').filter(late)).unwrap_or(end);
        pieces.push(rest[..at].trim_end().to_owned());
        rest = rest[at..].trim_start();
    }
    pieces
}

/// Posts a text piece by piece: `request` makes the request of a piece, `read` says what came of one. What is given is the
/// place of the first one.
pub(crate) fn in_pieces(
    work: &Work<'_>,
    replies: &[Reply],
    most: usize,
    request: impl Fn(&str, usize) -> Step,
    read: impl Fn(&Reply) -> Step,
) -> Step {
    let pieces = pieces(work.text, most);
    let mut first = None;
    for reply in replies {
        match read(reply) {
            posted @ Step::Posted { .. } => first = first.or(Some(posted)),
            other => return other,
        }
    }
    match (pieces.get(replies.len()), first) {
        (Some(piece), _) => request(piece, replies.len()),
        (None, Some(first)) => first,
        (None, None) => Step::failed("there is no text", true),
    }
}
