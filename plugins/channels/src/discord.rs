//! Discord: interactions, and messages of a channel.

use hotcell_plugin::{Json, json};

use crate::message::{Message, Received, items, need, parse, text_at};
use crate::step::{Part, Reply, Step, Work, in_pieces};

/// Characters of one message.
const LONGEST: usize = 2000;
/// Characters of the longest nonce.
const NONCE: usize = 25;
/// Commands that answer a question that was asked in the channel; all others begin something new.
const ANSWERS: [&str; 2] = ["answer", "reply"];

pub(crate) fn receive(body: &str) -> Result<Received, String> {
    let interaction = parse(body)?;
    match interaction.pointer("/type").and_then(Json::as_u64) {
        Some(1) => Ok(Received::answered(json!({ "type": 1 }), "it is the check of the address")),
        Some(2 | 3 | 5) => command(&interaction),
        Some(4) => Ok(Received::answered(json!({ "type": 8, "data": { "choices": [] } }), "nothing is completed")),
        Some(other) => Ok(Received::ignored(format!("interactions of the type {other} are not known"))),
        None => Err("the body has no `type`".to_owned()),
    }
}

fn command(interaction: &Json) -> Result<Received, String> {
    let id = need(interaction, "/id")?;
    let name = text_at(interaction, "/data/name").unwrap_or_default();
    let mut words = Vec::new();
    options(items(interaction, "/data/options"), &mut words);
    // What was chosen in a menu, and what was written into the fields of a dialogue.
    words.extend(items(interaction, "/data/values").iter().filter_map(|value| text_at(value, "")));
    for row in items(interaction, "/data/components") {
        words.extend(items(row, "/components").iter().filter_map(|field| text_at(field, "/value")));
        words.extend(text_at(row, "/component/value"));
    }
    let text = match (words.is_empty(), name.is_empty()) {
        (false, _) => words.join(" "),
        (true, false) => format!("/{name}"),
        (true, true) => text_at(interaction, "/data/custom_id").unwrap_or_default(),
    };
    let channel = text_at(interaction, "/channel_id").or_else(|| text_at(interaction, "/channel/id"));
    let channel = channel.ok_or("the interaction has no `channel_id`")?;
    let is_thread = matches!(interaction.pointer("/channel/type").and_then(Json::as_u64), Some(10..=12));
    let parent = text_at(interaction, "/channel/parent_id").filter(|_| is_thread);
    let user =
        |at: &str| interaction.pointer(&format!("/member/user/{at}")).or(interaction.pointer(&format!("/user/{at}")));
    let is_direct = text_at(interaction, "/guild_id").is_none() && interaction.pointer("/member").is_none();
    // Buttons stand below the message that has them.
    let replies_to = text_at(interaction, "/message/id");
    Ok(Received {
        // The message comes later; a person sees until then that it is being worked on.
        reply: json!({ "type": 5 }),
        messages: vec![Message {
            ids: vec![id],
            thread: parent.as_ref().map(|_| channel.clone()),
            in_thread: parent.is_some(),
            also: parent.iter().map(|_| channel.clone()).collect(),
            chat: parent.unwrap_or(channel),
            replies_to,
            answers_chat: is_direct || ANSWERS.contains(&name.as_str()),
            sender: user("id").and_then(|id| text_at(id, "")).unwrap_or_default(),
            text: text.trim().to_owned(),
            is_bot: user("bot") == Some(&Json::Bool(true)),
            is_direct,
            is_addressed: true,
            ..Message::default()
        }],
        ..Received::default()
    })
}

/// What was written into the options of a command, also into those of a command within it.
fn options(list: &[Json], words: &mut Vec<String>) {
    for option in list {
        match option.pointer("/value") {
            Some(Json::Bool(flag)) => words.push(flag.to_string()),
            Some(_) => words.extend(text_at(option, "/value")),
            None => options(items(option, "/options"), words),
        }
    }
}

pub(crate) fn post(work: &Work<'_>) -> Step {
    // A thread is a channel.
    let channel = work.to.thread.as_ref().unwrap_or(&work.to.chat);
    in_pieces(
        work,
        &work.replies,
        LONGEST,
        |piece, number| {
            let path = ["api", "v10", "channels", channel.as_str(), "messages"].map(Part::text).into();
            // Nothing that somebody else wrote calls people; and what is sent twice is posted once.
            let key: String = work.key.chars().take(NONCE - 3).collect();
            let body = json!({
                "content": piece, "allowed_mentions": { "parse": [] }, "nonce": format!("{key}-{number}"),
                "enforce_nonce": true,
            });
            Step::post(path, Some(Part::secret("Bot ", "bot_token")), body)
        },
        |reply| read(work, reply),
    )
}

fn read(work: &Work<'_>, reply: &Reply) -> Step {
    if !reply.is_taken() {
        return reply.failure("Discord", &["/message"]);
    }
    let message = text_at(&reply.json(), "/id");
    // A thread that begins with a message has its number.
    let thread = work.to.thread.clone().or_else(|| message.clone());
    Step::Posted { chat: work.to.chat.clone(), message, thread }
}
