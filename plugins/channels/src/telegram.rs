//! Telegram: updates of the Bot API, and `sendMessage`.

use hotcell_plugin::{Json, json};

use crate::message::{Message, Received, is_set, items, need, parse, text_at};
use crate::step::{Part, Reply, Step, Work, in_pieces};

/// Characters of one message.
const LONGEST: usize = 4096;

pub(crate) fn receive(body: &str, settings: &Json) -> Result<Received, String> {
    let update = parse(body)?;
    let id = need(&update, "/update_id")?;
    let Some(message) = update.pointer("/message") else {
        return Ok(Received::ignored("it is no new message of a chat"));
    };
    let chat = need(message, "/chat/id")?;
    let is_direct = text_at(message, "/chat/type").as_deref() == Some("private");
    let (text, marks) = match text_at(message, "/text") {
        Some(text) => (text, items(message, "/entities")),
        None => (text_at(message, "/caption").unwrap_or_default(), items(message, "/caption_entities")),
    };
    let name = text_at(settings, "/bot_username").map(|name| name.trim_start_matches('@').to_lowercase());
    let is_us = |called: &str| {
        let called = called.to_lowercase();
        // Names of bots end like that, and of no others.
        name.as_ref().map_or(called.ends_with("bot"), |name| *name == called)
    };
    let units: Vec<u16> = text.encode_utf16().collect();
    let (mut is_addressed, mut without) = (false, None);
    for mark in marks {
        let number = |at: &str| mark.pointer(at).and_then(Json::as_u64).and_then(|number| usize::try_from(number).ok());
        let (Some(offset), Some(length)) = (number("/offset"), number("/length")) else { continue };
        let Some(end) = offset.checked_add(length) else { continue };
        let Some(words) = units.get(offset..end).map(String::from_utf16_lossy) else { continue };
        let kind = text_at(mark, "/type").unwrap_or_default();
        let (named, of_us) = match kind.as_str() {
            "mention" => (true, words.strip_prefix('@').is_some_and(is_us)),
            "bot_command" => (false, words.split_once('@').is_none_or(|(_, whose)| is_us(whose))),
            "text_mention" => (true, is_set(mark, "/user/is_bot")),
            _ => continue,
        };
        is_addressed |= of_us;
        if of_us && named && without.is_none() {
            let rest = [&units[..offset], &units[end..]].concat();
            without = Some(String::from_utf16_lossy(&rest));
        }
    }
    let replies_to = text_at(message, "/reply_to_message/message_id");
    is_addressed |= is_set(message, "/reply_to_message/from/is_bot");
    let topic = match is_set(message, "/is_topic_message") {
        true => message.pointer("/message_thread_id").cloned().unwrap_or_default(),
        false => Json::Null,
    };
    Ok(Received::message(Message {
        ids: vec![id],
        chat,
        replies_to,
        answers_chat: true,
        sender: text_at(message, "/from/id").unwrap_or_default(),
        text: without.unwrap_or(text).trim().to_owned(),
        is_bot: is_set(message, "/from/is_bot"),
        is_direct,
        is_addressed,
        address: json!({ "topic": topic }),
        ..Message::default()
    }))
}

pub(crate) fn post(work: &Work<'_>) -> Step {
    in_pieces(
        work,
        &work.replies,
        LONGEST,
        |piece, _| {
            // Without `parse_mode` a text is a text.
            let mut body = json!({
                "chat_id": work.to.chat, "text": piece, "link_preview_options": { "is_disabled": true },
            });
            if let Some(topic) = work.to.address.pointer("/topic").filter(|topic| topic.is_number()) {
                body["message_thread_id"] = topic.clone();
            }
            Step::post(vec![Part::secret("bot", "bot_token"), Part::text("sendMessage")], None, body)
        },
        |reply| read(work, reply),
    )
}

fn read(work: &Work<'_>, reply: &Reply) -> Step {
    let json = reply.json();
    match reply.is_taken() && is_set(&json, "/ok") {
        true => Step::Posted {
            chat: text_at(&json, "/result/chat/id").unwrap_or_else(|| work.to.chat.clone()),
            message: text_at(&json, "/result/message_id"),
            thread: None,
        },
        false if reply.is_taken() => {
            let why = text_at(&json, "/description")
                .unwrap_or_else(|| "the reply is not one that its API describes".to_owned());
            Step::failed(format!("Telegram did not take it: {}", why.chars().take(200).collect::<String>()), true)
        }
        false => reply.failure("Telegram", &["/description"]),
    }
}
