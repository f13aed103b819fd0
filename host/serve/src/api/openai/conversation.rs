//! Conversations of clients that keep none of ours in mind: each request has all that was said so far.
//!
//! The run to which a conversation belongs is found by what was said in it. When something is replied, a digest of the conversation up
//! to and including the reply is kept beside the run that said it, together with who asked and which agent. So the next request,
//! which begins with the same words, finds it. The digest has the caller in it: nobody goes on with what somebody else was told. Two
//! conversations of one caller that are the same word by word are the same to whoever reads them, and either run will do; each
//! question takes one answer.

use std::sync::Arc;

use hotcell_runtime::{Agent, RunId};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::parameters::{INSTRUCTIONS, refused, wrong};
use crate::access::Asker;
use crate::answerer::Answerer;
use crate::api::turn::{self, Beginning, Came, Started};
use crate::problem::Problem;
use crate::state::Server;
use crate::view::Object;

/// Members of messages that are about nothing in this: what an assistant thought, and what items are called.
const IGNORED: &[&str] = &["id", "status", "reasoning", "reasoning_content", "phase"];

/// What was said so far.
pub(super) struct Conversation {
    /// Everything up to what the assistant said last, if it said something
    before: Option<Sha256>,
    /// Everything
    whole: Sha256,
    /// What the person said since then
    pub(super) said: String,
}

impl Conversation {
    /// Reads the messages of a request, in the member `name`.
    pub(super) fn read(caller: &Asker, agent: &Agent, messages: &[Value], name: &'static str) -> Result<Self, Problem> {
        let mut whole = Sha256::new();
        add(&mut whole, caller.id());
        add(&mut whole, agent.source());
        let (mut before, mut said) = (None, Vec::new());
        for (number, message) in messages.iter().enumerate() {
            let place = format!("{name}[{number}]");
            let Some(Message { role, text }) = Message::read(message, &place, name)? else { continue };
            match role {
                Role::User => said.push(text),
                // A client that gave up on a reply may say so with an empty one.
                Role::Assistant if text.trim().is_empty() => {}
                Role::Assistant => {
                    add_said(&mut whole, &said);
                    said.clear();
                    add(&mut whole, "assistant");
                    add(&mut whole, text.trim());
                    before = Some(whole.clone());
                }
            }
        }
        if said.is_empty() {
            return Err(wrong(name, format!("`{name}` has to end with a message of the role `user`")));
        }
        add_said(&mut whole, &said);
        Ok(Conversation { before, whole, said: said.join("\n\n") })
    }

    /// Whether the assistant said something in it.
    pub(super) fn has_replies(&self) -> bool {
        self.before.is_some()
    }

    /// Begins a run with what was said, or answers the question that was the last reply.
    pub(super) async fn go_on(
        &self,
        server: &Server,
        caller: &Asker,
        agent: &Arc<Agent>,
        metadata: Object,
        listens: bool,
    ) -> Result<Started, Problem> {
        let beginning = Beginning { input: self.said.as_str().into(), metadata, kept: Object::new(), listens };
        let Some(before) = &self.before else { return turn::begin(server, agent, beginning, None).await };
        let replies = server.store().chat_replies(&before.clone().finalize())?;
        let mut closed = None;
        for reply in replies {
            let run = match server.runs().find(&reply.run).await {
                Ok(run) => run,
                // It was removed since.
                Err(problem) if problem.status == 404 => continue,
                Err(problem) => return Err(problem),
            };
            let Some(question) = &reply.question else {
                return turn::begin_after(server, agent, beginning, &run).await;
            };
            match turn::answer(server, Answerer::of(caller).typed(), &run, question, &self.said, listens).await {
                Err(problem) if problem.status == 409 => closed = Some(problem),
                answered => return answered,
            }
        }
        Err(closed.unwrap_or_else(|| {
            let detail = "this server did not say the last message of the assistant in this conversation, or not to this key; begin a \
                          new conversation";
            Problem::conflict(detail).kind("unknown-conversation", "The conversation is not known")
        }))
    }

    /// Keeps that a run replied this, so that the conversation can go on.
    pub(super) fn replied(&self, server: &Server, run: &RunId, came: &Came) -> Result<(), Problem> {
        let (text, question) = match came {
            Came::Said(text) => (text.clone(), None),
            Came::Asks(open) => {
                let Some(first) = open.first() else { return Ok(()) };
                (turn::question_text(first), Some(first.question.id.as_str()))
            }
            _ => return Ok(()),
        };
        let mut whole = self.whole.clone();
        add(&mut whole, "assistant");
        add(&mut whole, text.trim());
        Ok(server.store().keep_chat_reply(&whole.finalize(), run, question)?)
    }
}

/// What a person said, as one: a message may not have been replied to.
fn add_said(digest: &mut Sha256, said: &[String]) {
    add(digest, "user");
    add(digest, said.join("\n\n").trim());
}

/// Adds a text so that its end is known.
fn add(digest: &mut Sha256, text: &str) {
    digest.update((text.len() as u64).to_le_bytes());
    digest.update(text.as_bytes());
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    User,
    Assistant,
}

struct Message {
    role: Role,
    text: String,
}

impl Message {
    /// Reads a message; none for an item that says nothing to anybody.
    fn read(message: &Value, place: &str, name: &'static str) -> Result<Option<Self>, Problem> {
        let wrong = |detail: String| wrong(name, detail);
        let members = message.as_object().ok_or_else(|| wrong(format!("`{place}` has to be an object")))?;
        match members.get("type").map(Value::as_str) {
            None | Some(Some("message")) => {}
            Some(Some("reasoning")) => return Ok(None),
            Some(_) => return Err(wrong(format!("`{place}` is not a message; other items are not supported"))),
        }
        let role = match members.get("role").and_then(Value::as_str) {
            Some("user") => Role::User,
            Some("assistant") => Role::Assistant,
            Some("system" | "developer") => {
                let detail = format!("`{place}` has a role that is not supported: {INSTRUCTIONS}");
                return Err(refused(name, detail));
            }
            _ => return Err(wrong(format!("the role of `{place}` has to be `user` or `assistant`"))),
        };
        for (member, value) in members {
            let is_empty = value.is_null() || value.as_array().is_some_and(Vec::is_empty);
            let is_known = matches!(&**member, "type" | "role" | "content") || IGNORED.contains(&&**member);
            if !is_known && !is_empty {
                let detail = format!("`{place}.{}` is not supported", crate::problem::shown(member));
                return Err(refused(name, detail));
            }
        }
        let text = match members.get("content") {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Array(parts)) => parts.iter().map(part).collect::<Option<String>>().ok_or_else(|| {
                let detail = format!("`{place}.content` has a part that is not text; others are not supported");
                refused(name, detail)
            })?,
            None | Some(Value::Null) if role == Role::Assistant => String::new(),
            _ => return Err(wrong(format!("`{place}.content` has to be a text or a list of parts"))),
        };
        Ok(Some(Message { role, text }))
    }
}

fn part(part: &Value) -> Option<&str> {
    let is_text = matches!(part.get("type")?.as_str()?, "text" | "input_text" | "output_text");
    part.get("text")?.as_str().filter(|_| is_text)
}
