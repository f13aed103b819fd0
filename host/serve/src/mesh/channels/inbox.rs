//! What becomes of messages: the answer to a question, new work, or nothing. A message is kept before the provider is told that it
//! arrived, and what becomes of it before that is done; so a server that ends in between does it once.

use std::sync::Arc;
use std::time::Duration;

use hotcell_runtime::Question;
use hotcell_runtime::leafmesh::{AgentSettings, ChannelSettings};
use http::StatusCode;
use serde_json::{Map, json};

use super::super::begin::{At, Task, begin};
use super::super::meshes::Mesh;
use super::super::people::{self, Answer};
use super::super::reply::Refused;
use super::super::request::new_session;
use super::super::session::{Ask, Status, of_request_id, standing};
use super::super::store::SessionKey;
use super::adapter::Message;
use super::provider::Provider;
use super::store::{Asked, Becomes, Chat, Ear, Taken};
use crate::answerer::Answerer;
use crate::problem::Problem;
use crate::state::Server;

/// How long is waited until what could not be begun is tried again.
const AGAIN: Duration = Duration::from_secs(5);

/// Takes a message, if it is for the mesh. The error is why it is not.
pub(super) async fn take(
    server: &Server,
    mesh: &Arc<Mesh>,
    (agent, provider, channel): (&AgentSettings, Provider, &ChannelSettings),
    message: &Message,
) -> Result<Result<(), &'static str>, Problem> {
    let seat = mesh.own(&agent.name);
    let ear = Ear { seat: &seat, provider };
    if let Err(reason) = is_for_us(server, ear, agent, channel, message).await? {
        return Ok(Err(reason));
    }
    let Some(number) = server.store().take_message(ear, message, server.clock().now())? else {
        return Ok(Err("it came before"));
    };
    work_on(server, mesh, number);
    Ok(Ok(()))
}

async fn is_for_us(
    server: &Server,
    ear: Ear<'_>,
    agent: &AgentSettings,
    channel: &ChannelSettings,
    message: &Message,
) -> Result<Result<(), &'static str>, Problem> {
    if message.is_bot {
        return Ok(Err("a program wrote it"));
    }
    if message.text.trim().is_empty() {
        return Ok(Err("it has no text"));
    }
    if message.ids.is_empty() || message.chat.is_empty() {
        return Ok(Err("it cannot be told from others"));
    }
    if channel.operators_only && operator(channel, &message.sender).is_none() {
        return Ok(Err("nobody else than the `operators` is heard"));
    }
    let asked = question(server, ear, message).await?;
    let names = || std::iter::once(&message.chat).chain(&message.also);
    let is_heard = channel.listen_channels.is_empty() || names().any(|name| channel.listen_channels.contains(name));
    if !is_heard && asked.is_none() {
        return Ok(Err("its chat is not one of `listen_channels`"));
    }
    if asked.is_some() {
        let operators = agent.human.as_ref().map(|human| &human.operator_ids[..]).unwrap_or_default();
        let speaker = speaker(channel, &message.sender);
        let by = Answerer::vouched().named(Some(&speaker)).where_asked(operators);
        if by.check(&Question::default(), server.runs().groups()).is_err() {
            return Ok(Err("somebody else is asked"));
        }
    }
    let knows_thread = || match &message.thread {
        Some(thread) if message.in_thread => {
            server.store().chat(ear, &message.chat, thread).map(|known| known.is_some())
        }
        _ => Ok(false),
    };
    if !message.is_direct && !message.is_addressed && asked.is_none() && !knows_thread()? {
        return Ok(Err("it names nobody in a room that others share"));
    }
    Ok(Ok(()))
}

/// What a person is called here, if the channel says.
fn operator<'c>(channel: &'c ChannelSettings, sender: &str) -> Option<&'c str> {
    channel.operators.iter().find(|(_, theirs)| theirs == sender).map(|(ours, _)| ours.as_str())
}

/// Who speaks: what the person is called here, or at the provider.
fn speaker(channel: &ChannelSettings, sender: &str) -> String {
    operator(channel, sender).unwrap_or(sender).to_owned()
}

/// The open question that a message answers.
async fn question(server: &Server, ear: Ear<'_>, message: &Message) -> Result<Option<Asked>, Problem> {
    let all = server.store().asked_in(ear, &message.chat)?;
    let is_reply = |asked: &Asked| message.replies_to.as_ref().is_some_and(|reply| *reply == asked.message);
    let in_thread = |asked: &Asked| {
        let thread = message.thread.as_ref().filter(|_| message.in_thread);
        thread.is_some_and(|thread| *thread == asked.thread || *thread == asked.message)
    };
    let in_chat = |_: &Asked| message.answers_chat && !message.in_thread;
    let fitting = all.iter().filter(|asked| is_reply(asked));
    let fitting = fitting.chain(all.iter().filter(|asked| in_thread(asked)));
    let fitting: Vec<&Asked> = fitting.chain(all.iter().filter(|asked| in_chat(asked))).collect();
    for asked in fitting {
        if is_open(server, &asked.request).await? {
            return Ok(Some(asked.clone()));
        }
        server.store().forget_asked(&asked.request)?;
    }
    Ok(None)
}

async fn is_open(server: &Server, request: &str) -> Result<bool, Problem> {
    let Some((run, question)) = of_request_id(request) else { return Ok(false) };
    match server.runs().find(run.as_str()).await {
        Ok(record) if record.status.is_final() => Ok(false),
        Ok(_) => Ok(server.runs().questions(&run).await?.iter().any(|open| open.question.id == question)),
        Err(problem) if problem.status == StatusCode::NOT_FOUND.as_u16() => Ok(false),
        Err(problem) => Err(problem),
    }
}

/// Goes on with what a server that ended left.
pub(super) fn take_up(server: &Server, mesh: &Arc<Mesh>) -> Result<(), Problem> {
    for taken in server.store().taken_messages(None)?.iter().filter(|taken| mesh.of_own(&taken.seat).is_some()) {
        work_on(server, mesh, taken.number);
    }
    Ok(())
}

/// Does what becomes of a message, while others are served.
fn work_on(server: &Server, mesh: &Arc<Mesh>, number: i64) {
    let (server, mesh, working) = (server.clone(), mesh.clone(), server.clock().working());
    server.clone().meshes().tasks.spawn(async move {
        let _working = working;
        let work = async {
            loop {
                match work(&server, &mesh, number).await {
                    Ok(()) => return,
                    Err(refused) if refused.status() >= 500 || refused.status() == 429 => {
                        server.clock().pause(AGAIN).await
                    }
                    Err(refused) => {
                        let reason = refused.reason();
                        tracing::warn!(target: "hotcell::serve", reason, "a message of a channel is left");
                        if let Err(error) = server.store().done_with_message(number) {
                            tracing::error!(target: "hotcell::serve", %error, "that a message is left cannot be kept");
                        }
                        return;
                    }
                }
            }
        };
        server.closing().run_until_cancelled(work).await;
    });
}

async fn work(server: &Server, mesh: &Arc<Mesh>, number: i64) -> Result<(), Refused> {
    let Some(first) = server.store().taken_messages(Some(number))?.pop() else { return Ok(()) };
    let chat = serde_json::from_str(&first.message).map(|message: Message| message.chat).unwrap_or_default();
    // Messages of a chat are acted on one after the other.
    let _chat = mesh.doing.chats.lock(&format!("{} {} {chat}", first.seat, first.provider)).await;
    let Some(taken) = server.store().taken_messages(Some(number))?.pop() else { return Ok(()) };
    let message: Message = serde_json::from_str(&taken.message)
        .map_err(|error| Problem::unprocessable(format!("a message that was kept cannot be read: {error}")))?;
    let seat = mesh.of_own(&taken.seat).unwrap_or(&taken.seat);
    let gone = || Problem::not_found(format!("`{seat}` has no channel `{}` any more", taken.provider));
    let provider = Provider::named(&taken.provider).ok_or_else(gone)?;
    let (_, channel) = provider.of(&mesh.settings, seat).ok_or_else(gone)?;
    let ear = Ear { seat: &taken.seat, provider };
    let (becomes, is_again) = match taken.becomes.clone() {
        Some(becomes) => (becomes, true),
        None => (decide(server, mesh, ear, &message).await?, false),
    };
    if !is_again {
        server.store().decide_message(number, &becomes)?;
    }
    match &becomes {
        Becomes::Answer(request) => answer(server, mesh, &channel, &message, request).await?,
        Becomes::Task(session) => match task(server, mesh, &taken, (ear, &channel), &message, session).await {
            // Somebody else has begun something in it.
            Err(refused) if refused.status() == StatusCode::CONFLICT.as_u16() => {
                let session = new_session();
                server.store().decide_message(number, &Becomes::Task(session.clone()))?;
                task(server, mesh, &taken, (ear, &channel), &message, &session).await?;
            }
            done => done?,
        },
    }
    server.store().done_with_message(number)?;
    Ok(())
}

async fn decide(server: &Server, mesh: &Mesh, ear: Ear<'_>, message: &Message) -> Result<Becomes, Problem> {
    if let Some(asked) = question(server, ear, message).await? {
        return Ok(Becomes::Answer(asked.request));
    }
    // The conversation goes on in its session, if that is free.
    let thread = message.thread.as_deref().unwrap_or_default();
    if let Some(known) = server.store().chat(ear, &message.chat, thread)? {
        let key = SessionKey { scope: mesh.scope.clone(), tenant: String::new(), id: known.session };
        if let Some(session) = server.store().session(&key)?
            && !matches!(standing(server, &session).await?.status, Status::Busy | Status::Paused)
        {
            return Ok(Becomes::Task(key.id));
        }
    }
    Ok(Becomes::Task(new_session()))
}

async fn answer(
    server: &Server,
    mesh: &Mesh,
    channel: &ChannelSettings,
    message: &Message,
    request: &str,
) -> Result<(), Refused> {
    let found = of_request_id(request);
    let session = match &found {
        Some((run, _)) => server.store().run_of_mesh(run)?.map(|(session, _)| session),
        None => None,
    };
    let Some(session) = session else { return Ok(()) };
    let _session = mesh.doing.sessions.lock(&session.key).await;
    let asks = standing(server, &session).await?.asks;
    let Some(ask) = asks.iter().find(|ask: &&Ask| ask.request_id() == request) else {
        // It was answered, by this message before the server ended or by somebody else at the same moment.
        return Ok(());
    };
    let mut data = Map::new();
    data.insert("message".to_owned(), json!(message.text));
    data.insert("operator_id".to_owned(), json!(speaker(channel, &message.sender)));
    // The provider has shown who writes.
    let by = Answerer::vouched();
    let given = Answer { data, by, is_signed: true, may_be_unsigned: true, bearer: None };
    people::answer(server, mesh, &session.key, ask, given).await.map(drop)?;
    server.store().forget_asked(request)?;
    Ok(())
}

async fn task(
    server: &Server,
    mesh: &Arc<Mesh>,
    taken: &Taken,
    (ear, channel): (Ear<'_>, &ChannelSettings),
    message: &Message,
    session: &str,
) -> Result<(), Refused> {
    let key = SessionKey { scope: mesh.scope.clone(), tenant: String::new(), id: session.to_owned() };
    let id = message.ids.first().map(String::as_str).unwrap_or_default();
    let _session = mesh.doing.sessions.lock(&key).await;
    if let Some(known) = server.store().session(&key)?
        && server.store().began_with_message(known.number, id)?
    {
        return Ok(());
    }
    let conversation = Chat {
        chat: message.chat.clone(),
        thread: message.thread.clone().unwrap_or_default(),
        session: session.to_owned(),
        address: message.address.clone(),
    };
    server.store().note_chat(ear, &conversation, server.clock().now())?;
    // What a stranger wrote is data: it names no entry point, no agent and no session.
    let input = json!({
        "message": message.text, "operator_id": speaker(channel, &message.sender),
        "channel": {
            "provider": taken.provider, "chat": message.chat, "thread": message.thread, "sender": message.sender,
            "message_id": id,
        },
    });
    let at = At::Agent { name: mesh.of_own(&taken.seat).unwrap_or(&taken.seat).to_owned(), input };
    let task = Task { key, kind: "channel", at, is_beside: false, once: Some(id.to_owned()) };
    begin(server, mesh, task, false).await.map(drop)
}
