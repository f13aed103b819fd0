//! Questions and reports that are posted to channels, and where: in the conversation of the session, or in the channel that the
//! settings name.

use hotcell_runtime::leafmesh::{ChannelSettings, HumanSettings};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::super::meshes::Mesh;
use super::super::session::Ask;
use super::super::store::Session;
use super::adapter::To;
use super::provider::Provider;
use super::send::{Posted, Text, post};
use super::store::{Asked, Chat, Ear};
use crate::post::Failed;
use crate::state::Server;
use crate::store::StoreError;

/// What a person is told where an earlier post of a question may have arrived.
const REPEATED: &str =
    "You may have got this question before: it is not known whether an earlier message with it arrived.";

/// Posts a question to the channels of a seat, in their order, until one has taken it. The one in which the session talks to the
/// person already comes first. If it `is_repeated`, an earlier post of it may have arrived, and the person is told so.
///
/// # Errors
/// Why none has taken it.
pub(in crate::mesh) async fn ask(
    server: &Server,
    mesh: &Mesh,
    session: &Session,
    ask: &Ask,
    human: &HumanSettings,
    mut is_repeated: bool,
) -> Result<(), Failed> {
    let now = server.store().provider_of_session(&mesh.own(ask.seat()), &session.key.id).map_err(unkept)?;
    let mut channels: Vec<&ChannelSettings> = human.channels.iter().collect();
    channels.sort_by_key(|channel| Some(&channel.provider) != now.as_ref());
    let (mut reasons, mut is_final, mut is_uncertain) = (Vec::new(), true, false);
    for channel in channels {
        match ask_at(server, mesh, session, ask, (channel, is_repeated)).await {
            Ok(()) => return Ok(()),
            Err(failed) => {
                reasons.push(format!("{}: {}", channel.provider, failed.reason));
                is_final &= failed.is_final;
                is_uncertain |= failed.is_uncertain;
                is_repeated |= failed.is_uncertain;
            }
        }
    }
    Err(Failed { reason: reasons.join("; "), is_final, is_uncertain })
}

fn unkept(error: StoreError) -> Failed {
    Failed::for_now(error.to_string())
}

/// A question as it is posted. Providers take note of no post that comes twice, or not for long: so the person is told.
fn words(text: &str, is_repeated: bool) -> String {
    match is_repeated {
        true => format!("{text}\n({REPEATED})"),
        false => text.to_owned(),
    }
}

/// A key that says nothing of what it is made of.
fn key(of: &str) -> String {
    Sha256::digest(of).iter().map(|byte| format!("{byte:02x}")).collect()
}

async fn ask_at(
    server: &Server,
    mesh: &Mesh,
    session: &Session,
    ask: &Ask,
    (channel, is_repeated): (&ChannelSettings, bool),
) -> Result<(), Failed> {
    let no_channel = || Failed::for_good("there is no such channel");
    let provider = Provider::named(&channel.provider).ok_or_else(no_channel)?;
    let (seat, request) = (mesh.own(ask.seat()), ask.request_id());
    let ear = Ear { seat: &seat, provider };
    let known = server.store().newest_chat(ear, Some(&session.key.id)).map_err(unkept)?;
    let goes_on = known.is_some();
    let to = match known {
        Some(known) => of_chat(known),
        None => of_settings(server, ear, channel, channel.post_channel.as_deref())?,
    };
    let key = key(&request);
    let words = words(&ask.open.question.text, is_repeated);
    let text = Text { seat: ask.seat(), channel, to: &to, text: &words, key: &key };
    let Posted { chat, message, thread } = post(server, mesh, &text).await?;
    let thread = thread.unwrap_or_default();
    let note = || {
        let now = server.clock().now();
        if !goes_on {
            let session = session.key.id.clone();
            let chat = Chat { chat: chat.clone(), thread: thread.clone(), session, address: to.address.clone() };
            server.store().note_chat(ear, &chat, now)?;
        }
        let message = message.unwrap_or_default();
        server.store().note_asked(ear, &Asked { request, chat: chat.clone(), thread: thread.clone(), message }, now)
    };
    if let Err(error) = note() {
        // It was posted, and is not posted again.
        tracing::error!(target: "hotcell::serve", %error, "where a question was posted cannot be kept");
    }
    Ok(())
}

fn of_chat(known: Chat) -> To {
    let thread = Some(known.thread).filter(|thread| !thread.is_empty());
    To { chat: known.chat, thread, address: known.address }
}

/// Where a text goes that belongs to no conversation.
fn of_settings(server: &Server, ear: Ear<'_>, channel: &ChannelSettings, named: Option<&str>) -> Result<To, Failed> {
    // For WhatsApp it is the number that messages are sent from.
    let named =
        named.filter(|named| ear.provider != Provider::Whatsapp || channel.post_channel.as_deref() != Some(named));
    let last = match ear.provider {
        // Conversations of Teams are known by what came from there.
        Provider::Teams => server.store().newest_chat(ear, None).map_err(unkept)?,
        _ => None,
    };
    match (named, last) {
        (Some(named), last) => {
            // `19:...;messageid=...` is a thread of a channel.
            let address = match &channel.service_url {
                Some(_) => Value::Null,
                None => last.map(|last| last.address).unwrap_or_default(),
            };
            Ok(To { chat: named.to_owned(), thread: None, address })
        }
        (None, Some(last)) => Ok(of_chat(last)),
        (None, None) => {
            let what = match ear.provider {
                Provider::Whatsapp => "nobody has written in this session, so there is no number to write to",
                _ => "nobody has written in this session, and there is no `post_channel`",
            };
            Err(Failed::for_good(what))
        }
    }
}

/// Posts a report to a channel, with the settings of the first agent that has one of that provider.
///
/// # Errors
/// Why it was not posted.
pub(in crate::mesh) async fn report(
    server: &Server,
    mesh: &Mesh,
    (provider, channel_id): (&str, Option<&str>),
    text: &str,
    about: &str,
) -> Result<(), String> {
    let has_one = mesh.settings.agents.iter().find_map(|agent| {
        let channels = &agent.human.as_ref()?.channels;
        Some((agent, channels.iter().find(|channel| channel.provider == provider)?))
    });
    let (agent, channel) = has_one.ok_or_else(|| format!("no agent has a channel `{provider}`"))?;
    let provider = Provider::named(provider).ok_or_else(|| format!("`{provider}` is not a channel"))?;
    let seat = mesh.own(&agent.name);
    let ear = Ear { seat: &seat, provider };
    let named = channel_id.or(channel.post_channel.as_deref()).map(str::trim).filter(|named| !named.is_empty());
    let to = of_settings(server, ear, channel, named).map_err(|failed| failed.reason)?;
    let key = key(&format!("{about} {} {}", provider.word(), to.chat));
    let text = Text { seat: &agent.name, channel, to: &to, text, key: &key };
    post(server, mesh, &text).await.map(drop).map_err(|failed| failed.reason)
}
