//! WhatsApp: webhooks of the Cloud API, and messages of a phone number.

use hotcell_plugin::{Json, json};

use crate::message::{Message, Received, items, need, parse, text_at};
use crate::step::{Part, Reply, Step, Work, in_pieces};

/// Characters of one message.
const LONGEST: usize = 4096;
/// The version of the Graph API where `api_version` says none.
const VERSION: &str = "v21.0";

pub(crate) fn receive(body: &str, settings: &Json) -> Result<Received, String> {
    let post = parse(body)?;
    let own = text_at(settings, "/post_channel").filter(|own| !own.is_empty());
    let (mut messages, mut why) = (Vec::new(), "it has no message");
    for change in items(&post, "/entry").iter().flat_map(|entry| items(entry, "/changes")) {
        let Some(value) = change.pointer("/value") else { continue };
        if !items(value, "/statuses").is_empty() {
            why = "it reports on messages that were sent";
        }
        let number = text_at(value, "/metadata/phone_number_id");
        for message in items(value, "/messages") {
            if let (Some(own), Some(number)) = (&own, &number)
                && own != number
            {
                why = "it was sent to another phone number of the account";
                continue;
            }
            match text_of(message) {
                Some(text) => messages.push(Message {
                    ids: vec![need(message, "/id")?],
                    chat: need(message, "/from")?,
                    also: number.iter().cloned().collect(),
                    replies_to: text_at(message, "/context/id"),
                    answers_chat: true,
                    sender: need(message, "/from")?,
                    text,
                    is_direct: true,
                    is_addressed: true,
                    ..Message::default()
                }),
                None => why = "the message has no text",
            }
        }
    }
    let ignored = messages.is_empty().then(|| why.to_owned());
    Ok(Received { reply: json!({}), messages, ignored, malformed: None })
}

/// What a message says, if that is a text.
fn text_of(message: &Json) -> Option<String> {
    let places = match text_at(message, "/type")?.as_str() {
        "text" => &["/text/body"][..],
        "button" => &["/button/text"],
        "interactive" => &["/interactive/button_reply/title", "/interactive/list_reply/title"],
        "image" => &["/image/caption"],
        "video" => &["/video/caption"],
        "document" => &["/document/caption"],
        _ => &[],
    };
    let text = places.iter().find_map(|place| text_at(message, place))?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

pub(crate) fn post(work: &Work<'_>) -> Step {
    let version = text_at(&work.settings, "/api_version").unwrap_or_else(|| VERSION.to_owned());
    let Some(number) = text_at(&work.settings, "/post_channel").filter(|number| !number.is_empty()) else {
        return Step::failed(
            "`post_channel` is missing: the number (phone number ID) that messages are sent from",
            true,
        );
    };
    in_pieces(
        work,
        &work.replies,
        LONGEST,
        |piece, _| {
            let path = [version.as_str(), &number, "messages"].map(Part::text).into();
            let body = json!({
                "messaging_product": "whatsapp", "recipient_type": "individual", "to": work.to.chat, "type": "text",
                "text": { "preview_url": false, "body": piece },
            });
            Step::post(path, Some(Part::secret("Bearer ", "bot_token")), body)
        },
        |reply| read(work, reply),
    )
}

fn read(work: &Work<'_>, reply: &Reply) -> Step {
    let json = reply.json();
    if !reply.is_taken() || json.pointer("/error").is_some() {
        return reply.failure("WhatsApp", &["/error/error_data/details", "/error/message"]);
    }
    let chat = text_at(&json, "/contacts/0/wa_id").unwrap_or_else(|| work.to.chat.clone());
    Step::Posted { chat, message: text_at(&json, "/messages/0/id"), thread: None }
}
