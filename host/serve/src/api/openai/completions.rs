//! Chat completions: a conversation, and what an agent says to it.

use std::time::UNIX_EPOCH;

use axum::extract::State;
use axum::response::sse::Event;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use hotcell_runtime::{NumberedEntry, RunId, RunRecord};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::conversation::Conversation;
use super::error::in_stream;
use super::parameters::{CHAT, check, wrong};
use crate::access::Asker;
use crate::api::event_stream::{Telling, sse};
use crate::api::extract;
use crate::api::new_run::located;
use crate::api::turn::{self, Came, Part, Started, Thoughts};
use crate::leash::Leash;
use crate::problem::Problem;
use crate::state::Server;
use crate::view::Object;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(create))
}

/// A conversation that is to go on. Parameters that agents do not know are refused by name.
#[derive(Deserialize, ToSchema)]
struct ChatRequest {
    /// The agent, by its id or a name that no other agent has
    model: String,
    /// All that was said so far, in messages of the roles `user` and `assistant`
    #[schema(value_type = Vec<Object>, min_items = 1)]
    messages: Vec<Value>,
    /// Whether to tell what is said as server-sent events
    stream: Option<bool>,
    /// What else a stream tells
    stream_options: Option<StreamOptions>,
    /// Whatever is to be kept with the run
    #[schema(value_type = Option<Object>)]
    metadata: Option<Object>,
    #[serde(flatten)]
    #[schema(ignore)]
    rest: Object,
}

/// What else a stream tells.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct StreamOptions {
    /// Whether the last piece has the tokens that were used
    include_usage: Option<bool>,
    /// Pieces are never padded: `false`
    include_obfuscation: Option<bool>,
}

/// What was said.
#[derive(Serialize, ToSchema)]
struct ChatCompletion {
    /// The run and where in it this begins
    id: String,
    /// `chat.completion`
    object: &'static str,
    /// When, in seconds since 1970
    created: u64,
    /// The agent
    model: String,
    /// One choice
    #[schema(value_type = Vec<Object>)]
    choices: Value,
    /// Tokens of models that were used for it
    usage: ChatUsage,
}

/// Tokens of models.
#[derive(Serialize, ToSchema)]
struct ChatUsage {
    prompt_tokens: u64,
    completion_tokens: u64,
    total_tokens: u64,
}

impl ChatUsage {
    fn of(part: &Part) -> Self {
        let (prompt_tokens, completion_tokens) = (part.input_tokens, part.output_tokens);
        ChatUsage { prompt_tokens, completion_tokens, total_tokens: prompt_tokens.saturating_add(completion_tokens) }
    }
}

/// What was replied, if it is a reply.
fn text(run: &RunRecord, came: &Came) -> Result<String, Problem> {
    match came {
        Came::Said(text) => Ok(text.clone()),
        Came::Asks(open) => Ok(open.first().map(turn::question_text).unwrap_or_default()),
        other => Err(turn::no_reply(run, other)),
    }
}

/// Go on with a conversation
///
/// The last message begins a run of the agent, which goes on from what the conversation came to before, or answers the question that the
/// last message of the assistant is. Everything that was said before has to be sent along, as it was. With `stream`, pieces of what
/// models say meanwhile come as `reasoning_content`; the reply is `content`.
#[utoipa::path(
    post, path = "/v1/chat/completions", tag = super::TAG, security(("key" = ["run"])), request_body = ChatRequest,
    responses((status = 200, content((ChatCompletion = "application/json"), (String = "text/event-stream"))))
)]
async fn create(
    State(server): State<Server>,
    Extension(caller): Extension<Asker>,
    extract::Json(wanted): extract::Json<ChatRequest>,
) -> Result<Response, Problem> {
    check(&wanted.rest, CHAT)?;
    let streams = wanted.stream == Some(true);
    let options = match wanted.stream_options {
        Some(_) if !streams => return Err(wrong("stream_options", "`stream_options` needs `stream`")),
        Some(StreamOptions { include_obfuscation: Some(true), .. }) => {
            return Err(wrong("stream_options", "`stream_options.include_obfuscation` is not supported"));
        }
        options => options.unwrap_or_default(),
    };
    let (model, agent) = server.agents().find(&wanted.model)?;
    let conversation = Conversation::read(&caller, &agent, &wanted.messages, "messages")?;
    let metadata = wanted.metadata.unwrap_or_default();
    let Started { begun, after } = conversation.go_on(&server, &caller, &agent, metadata, streams).await?;
    let run = begun.run.clone();
    let created = server.clock().now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let id = format!("chatcmpl-{run}-{after}");
    if streams {
        let chunks = Chunks {
            server: server.clone(),
            id,
            model,
            created,
            run: run.clone(),
            after,
            conversation,
            includes_usage: options.include_usage == Some(true),
            thoughts: Thoughts::default(),
        };
        let leash = Leash::new(&server, &run, false);
        return Ok(located(&run, sse(&server, &run, after, begun.events, leash, chunks)));
    }
    let part = Part::wait(&server, &run, &begun.live, after).await?;
    let record = server.runs().find(run.as_str()).await?;
    let text = text(&record, &part.came)?;
    conversation.replied(&server, &run, &part.came)?;
    let message = json!({ "role": "assistant", "content": text, "refusal": null });
    let choices = json!([{ "index": 0, "message": message, "logprobs": null, "finish_reason": "stop" }]);
    let usage = ChatUsage::of(&part);
    let completion = ChatCompletion { id, object: "chat.completion", created, model, choices, usage };
    Ok(located(&run, Json(completion).into_response()))
}

/// Tells what is said in pieces.
struct Chunks {
    server: Server,
    id: String,
    model: String,
    created: u64,
    run: RunId,
    after: u64,
    conversation: Conversation,
    includes_usage: bool,
    thoughts: Thoughts,
}

impl Chunks {
    fn chunk(&self, choices: Value, usage: Option<ChatUsage>) -> Event {
        let mut chunk = json!({
            "id": self.id, "object": "chat.completion.chunk", "created": self.created, "model": self.model, "choices": choices,
        });
        if self.includes_usage {
            chunk["usage"] = json!(usage);
        }
        Event::default().data(chunk.to_string())
    }

    fn delta(&self, delta: Value, finish_reason: Option<&str>) -> Event {
        self.chunk(json!([{ "index": 0, "delta": delta, "logprobs": null, "finish_reason": finish_reason }]), None)
    }
}

impl Telling for Chunks {
    fn begin(&mut self) -> Vec<Event> {
        vec![self.delta(json!({ "role": "assistant", "content": "" }), None)]
    }

    fn entry(&mut self, _entry: &NumberedEntry) -> Vec<Event> {
        Vec::new()
    }

    fn live(&mut self, happened: &str) -> Vec<Event> {
        let piece = self.thoughts.piece(happened);
        piece.map(|piece| self.delta(json!({ "reasoning_content": piece }), None)).into_iter().collect()
    }

    async fn end(&mut self, record: &RunRecord) -> Result<Vec<Event>, Problem> {
        let part = Part::read(&self.server, &self.run, self.after).await?;
        let text = text(record, &part.came)?;
        self.conversation.replied(&self.server, &self.run, &part.came)?;
        let mut events = vec![self.delta(json!({ "content": text }), None), self.delta(json!({}), Some("stop"))];
        if self.includes_usage {
            events.push(self.chunk(json!([]), Some(ChatUsage::of(&part))));
        }
        events.push(Event::default().data("[DONE]"));
        Ok(events)
    }

    fn problem(&self, problem: &Problem) -> Event {
        Event::default().data(in_stream(problem))
    }
}
