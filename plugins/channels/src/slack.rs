//! Slack: the Events API, slash commands, and `chat.postMessage`.

use hotcell_plugin::{Json, json};

use crate::message::{Message, Received, items, need, parse, text_at};
use crate::step::{Part, Reply, Step, Work, in_pieces};

/// Characters of one message; Slack cuts longer ones at 40,000 and asks for no more than 4,000.
const LONGEST: usize = 4000;
/// Kinds of messages beside the plain one that a person writes.
const WRITTEN: [&str; 3] = ["thread_broadcast", "file_share", "me_message"];
/// Reasons of failures that may pass.
const PASSING: [&str; 6] =
    ["ratelimited", "rate_limited", "internal_error", "fatal_error", "service_unavailable", "request_timeout"];

pub(crate) fn receive(body: &str) -> Result<Received, String> {
    if !body.trim_start().starts_with('{') {
        return command(body);
    }
    let post = parse(body)?;
    match text_at(&post, "/type").as_deref() {
        Some("url_verification") => {
            let challenge = need(&post, "/challenge")?;
            Ok(Received::answered(json!({ "challenge": challenge }), "it is the check of the address"))
        }
        Some("event_callback") => event(&post),
        Some(other) => Ok(Received::ignored(format!("posts of the type `{other}` say nothing to anybody here"))),
        None => Err("the body has no `type`".to_owned()),
    }
}

fn event(post: &Json) -> Result<Received, String> {
    let event = post.pointer("/event").ok_or("the body has no `event`")?;
    let kind = need(event, "/type")?;
    let is_mention = kind == "app_mention";
    if !is_mention && kind != "message" {
        return Ok(Received::ignored(format!("events of the type `{kind}` are not messages")));
    }
    if let Some(subtype) = text_at(event, "/subtype").filter(|subtype| !WRITTEN.contains(&subtype.as_str())) {
        return Ok(Received::ignored(format!("messages of the kind `{subtype}` were not just written by a person")));
    }
    let id = need(post, "/event_id")?;
    let (chat, ts) = (need(event, "/channel")?, need(event, "/ts")?);
    let is_bot = text_at(event, "/bot_id").is_some() || event.pointer("/bot_profile").is_some();
    let sender = text_at(event, "/user").or_else(|| text_at(event, "/bot_id")).unwrap_or_default();
    let written = text_at(event, "/text").unwrap_or_default();
    let us: Vec<String> = items(post, "/authorizations").iter().filter_map(|one| text_at(one, "/user_id")).collect();
    let is_direct = text_at(event, "/channel_type").map_or(chat.starts_with('D'), |kind| kind == "im");
    // Where nobody says who we are, whoever is named first is meant.
    let names_us = (us.is_empty() && written.trim_start().starts_with("<@"))
        || us.iter().any(|us| written.contains(&format!("<@{us}>")) || written.contains(&format!("<@{us}|")));
    let thread = text_at(event, "/thread_ts");
    let mut ids = vec![id];
    if !is_direct {
        // What names us may come twice, as a message and as a mention.
        ids.push(format!("{chat} {ts} {written}"));
    }
    let in_thread = thread.as_ref().is_some_and(|thread| *thread != ts);
    Ok(Received::message(Message {
        ids,
        thread: thread.or_else(|| (!is_direct).then(|| ts.clone())),
        in_thread,
        answers_chat: is_direct,
        sender: sender.clone(),
        text: plain(&written, &us, is_mention || names_us),
        is_bot: is_bot || us.contains(&sender),
        is_direct,
        is_addressed: is_mention || names_us,
        chat,
        ..Message::default()
    }))
}

/// A slash command, which is a form.
fn command(body: &str) -> Result<Received, String> {
    let fields: Vec<(String, String)> = body
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| (decoded(name), decoded(value)))
        .collect();
    let field = |name: &str| fields.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
    if field("ssl_check").is_some() {
        return Ok(Received::ignored("it is the check of the certificate"));
    }
    if field("payload").is_some() {
        return Ok(Received::ignored("buttons and dialogues are not read"));
    }
    let Some(command) = field("command") else { return Err("the body is neither JSON nor a command".to_owned()) };
    let need = |name: &str| field(name).ok_or_else(|| format!("the command has no `{name}`"));
    let text = field("text").filter(|text| !text.trim().is_empty()).unwrap_or(command);
    let is_direct = field("channel_name").as_deref() == Some("directmessage");
    let received = Received::message(Message {
        ids: vec![need("trigger_id")?],
        chat: need("channel_id")?,
        answers_chat: is_direct,
        sender: need("user_id")?,
        text: text.trim().to_owned(),
        is_direct,
        is_addressed: true,
        ..Message::default()
    });
    // The command is shown in the channel, and nothing else.
    Ok(Received { reply: json!({ "response_type": "in_channel" }), ..received })
}

/// A text of a form.
fn decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.bytes());
    while let Some(byte) = rest.next() {
        let hex = |rest: &std::str::Bytes<'_>| {
            let digits: Vec<u8> = rest.clone().take(2).collect();
            u8::from_str_radix(std::str::from_utf8(&digits).ok().filter(|digits| digits.len() == 2)?, 16).ok()
        };
        match (byte, hex(&rest)) {
            (b'+', _) => bytes.push(b' '),
            (b'%', Some(value)) => {
                bytes.push(value);
                rest.nth(1);
            }
            _ => bytes.push(byte),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// What a person wrote, without the mention of us and without the signs that Slack puts around links.
fn plain(written: &str, us: &[String], is_mention: bool) -> String {
    let mut text = String::new();
    let mut rest = written;
    while let Some(begin) = rest.find('<') {
        let Some(length) = rest[begin..].find('>') else { break };
        text.push_str(&rest[..begin]);
        let inner = &rest[begin + 1..begin + length];
        rest = &rest[begin + length + 1..];
        let (target, label) = inner.split_once('|').unwrap_or((inner, ""));
        match target.strip_prefix('@') {
            // Who is mentioned first in an event about a mention of us.
            Some(user) if us.iter().any(|us| us == user) || (us.is_empty() && is_mention && text.trim().is_empty()) => {
                rest = rest.trim_start();
            }
            Some(_) => text.push_str(&format!("<{inner}>")),
            None if target.starts_with('#') && !label.is_empty() => text.push_str(&format!("#{label}")),
            None if target.starts_with('!') => text.push_str(if label.is_empty() { target } else { label }),
            None => text.push_str(target),
        }
    }
    text.push_str(rest);
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&").trim().to_owned()
}

pub(crate) fn post(work: &Work<'_>) -> Step {
    in_pieces(
        work,
        &work.replies,
        LONGEST,
        |piece, _| {
            // Nothing that somebody else wrote names a person, a room or everybody, and no address in it is fetched.
            let text = piece.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
            let mut body =
                json!({ "channel": work.to.chat, "text": text, "unfurl_links": false, "unfurl_media": false });
            if let Some(thread) = &work.to.thread {
                body["thread_ts"] = json!(thread);
            }
            let path = vec![Part::text("api"), Part::text("chat.postMessage")];
            Step::post(path, Some(Part::secret("Bearer ", "bot_token")), body)
        },
        |reply| read(work, reply),
    )
}

fn read(work: &Work<'_>, reply: &Reply) -> Step {
    let json = reply.json();
    match (reply.is_taken(), json.pointer("/ok")) {
        (true, Some(Json::Bool(true))) => {
            let message = text_at(&json, "/ts");
            Step::Posted {
                chat: text_at(&json, "/channel").unwrap_or_else(|| work.to.chat.clone()),
                thread: work.to.thread.clone().or_else(|| message.clone()),
                message,
            }
        }
        (true, Some(_)) => {
            let why = text_at(&json, "/error").unwrap_or_default();
            let last = !PASSING.contains(&why.as_str());
            Step::failed(format!("Slack did not take it: {}", why.chars().take(200).collect::<String>()), last)
        }
        (true, None) => Step::failed("Slack answered with something that is not a reply of its API", true),
        (false, _) => reply.failure("Slack", &["/error"]),
    }
}
