//! Teams: activities of the Bot Framework.

use hotcell_plugin::json;

use crate::message::{Message, Received, is_set, items, need, parse, text_at};
use crate::step::{Header, Keep, Part, Reply, Step, Work, in_pieces};

/// Characters of one message: 28 KB of what it is in JSON are allowed.
const LONGEST: usize = 7000;
/// What the token is kept as.
const TOKEN: &str = "access_token";
/// What stands between a channel and the first message of a thread in it.
const THREAD: &str = ";messageid=";

pub(crate) fn receive(body: &str) -> Result<Received, String> {
    let activity = parse(body)?;
    let kind = need(&activity, "/type")?;
    if kind != "message" {
        return Ok(Received::ignored(format!("activities of the type `{kind}` are not messages")));
    }
    let conversation = need(&activity, "/conversation/id")?;
    let (chat, thread) = match conversation.split_once(THREAD) {
        Some((chat, thread)) => (chat.to_owned(), Some(thread.to_owned())),
        None => (conversation.clone(), None),
    };
    let id = need(&activity, "/id")?;
    let us = text_at(&activity, "/recipient/id").unwrap_or_default();
    let kind = text_at(&activity, "/conversation/conversationType");
    let is_direct = match kind.as_deref() {
        Some(kind) => kind == "personal",
        None => !is_set(&activity, "/conversation/isGroup"),
    };
    let mut text = text_at(&activity, "/text").unwrap_or_default();
    let mut is_addressed = false;
    for mention in items(&activity, "/entities") {
        if text_at(mention, "/type").as_deref() == Some("mention")
            && text_at(mention, "/mentioned/id").is_some_and(|named| named == us)
        {
            is_addressed = true;
            if let Some(words) = text_at(mention, "/text").filter(|words| !words.is_empty()) {
                text = text.replace(&words, "");
            }
        }
    }
    let sender = need(&activity, "/from/id")?;
    Ok(Received::message(Message {
        ids: vec![format!("{conversation} {id}")],
        in_thread: thread.as_ref().is_some_and(|thread| *thread != id),
        also: text_at(&activity, "/channelData/channel/id").into_iter().chain([conversation.clone()]).collect(),
        chat,
        thread,
        replies_to: text_at(&activity, "/replyToId"),
        answers_chat: is_direct,
        is_bot: text_at(&activity, "/from/role").as_deref() == Some("bot") || sender == us,
        sender,
        text: text.replace("&nbsp;", " ").trim().to_owned(),
        is_direct,
        is_addressed,
        address: json!({ "service_url": text_at(&activity, "/serviceUrl") }),
    }))
}

pub(crate) fn post(work: &Work<'_>) -> Step {
    let has_token = work.kept.iter().any(|name| name == TOKEN);
    let replies = match (has_token, work.replies.split_first()) {
        (true, _) => &work.replies[..],
        (false, None) => return login(work),
        (false, Some((reply, _))) if !reply.is_taken() => {
            return reply.failure("the login of Teams", &["/error_description", "/error"]);
        }
        (false, Some(_)) => return Step::failed("the login of Teams gave no token", true),
    };
    let conversation = match &work.to.thread {
        Some(thread) => format!("{}{THREAD}{thread}", work.to.chat),
        None => work.to.chat.clone(),
    };
    in_pieces(
        work,
        replies,
        LONGEST,
        |piece, _| Step::Request {
            method: "POST".to_owned(),
            to: "service".to_owned(),
            path: ["v3", "conversations", conversation.as_str(), "activities"].map(Part::text).into(),
            headers: vec![Header::new("authorization", Part::secret("Bearer ", TOKEN))],
            json: Some(json!({ "type": "message", "textFormat": "plain", "text": piece })),
            form: Vec::new(),
            keep: None,
        },
        |reply| read(work, reply),
    )
}

/// Asks for a token with the id and the password of the app.
fn login(work: &Work<'_>) -> Step {
    let tenant = text_at(&work.settings, "/tenant_id").filter(|tenant| !tenant.is_empty());
    let tenant = tenant.unwrap_or_else(|| "botframework.com".to_owned());
    let fields = [
        ("grant_type", Part::text("client_credentials")),
        ("client_id", Part::secret("", "bot_token")),
        ("client_secret", Part::secret("", "signing_secret")),
        ("scope", Part::text("https://api.botframework.com/.default")),
    ];
    Step::Request {
        method: "POST".to_owned(),
        to: "login".to_owned(),
        path: [tenant.as_str(), "oauth2", "v2.0", "token"].map(Part::text).into(),
        headers: Vec::new(),
        json: None,
        form: fields.map(|(name, value)| Header::new(name, value)).into(),
        keep: Some(Keep { name: TOKEN.to_owned(), at: "/access_token".to_owned(), seconds: "/expires_in".to_owned() }),
    }
}

fn read(work: &Work<'_>, reply: &Reply) -> Step {
    if !reply.is_taken() {
        return reply.failure("Teams", &["/error/message", "/message"]);
    }
    let message = text_at(&reply.json(), "/id");
    let thread = work.to.thread.clone().or_else(|| message.clone());
    Step::Posted { chat: work.to.chat.clone(), message, thread }
}
