//! What streams of responses tell.

use axum::response::sse::Event;
use hotcell_runtime::{NumberedEntry, RunId, RunRecord};
use serde_json::{Value, json};

use super::conversation::Conversation;
use super::error::in_stream;
use super::response::{Found, ResponseId, frame, message, message_id, text_part};
use crate::api::event_stream::Telling;
use crate::api::turn::{self, Came, Thoughts};
use crate::problem::Problem;
use crate::state::Server;
use crate::view::Object;

/// Tells of a turn in the events of the Responses API: what models say while it is worked on is an item of reasoning, the reply a
/// message.
pub(super) struct Events {
    server: Server,
    id: ResponseId,
    /// The response as it begins
    frame: Value,
    conversation: Option<Conversation>,
    told: u64,
    thoughts: Thoughts,
    /// What models have said, if they have said something
    thought: Option<String>,
}

impl Events {
    pub(super) fn new(server: &Server, id: ResponseId, agent: &str, conversation: Option<Conversation>) -> Self {
        let frame = frame(&id, agent, server.clock().now(), Object::new());
        let (server, thoughts) = (server.clone(), Thoughts::default());
        Events { server, id, frame, conversation, told: 0, thoughts, thought: None }
    }

    fn event(&mut self, kind: &str, mut data: Value) -> Event {
        data["type"] = kind.into();
        data["sequence_number"] = self.told.into();
        self.told += 1;
        Event::default().event(kind).data(data.to_string())
    }

    fn thoughts_id(&self) -> String {
        format!("rs_{}_{}", self.id.run, self.id.after)
    }

    /// The item with what models said.
    fn thoughts_item(&self, text: Option<&str>, status: &str) -> Value {
        let content: Vec<Value> = text.iter().map(|text| json!({ "type": "reasoning_text", "text": text })).collect();
        json!({ "id": self.thoughts_id(), "type": "reasoning", "summary": [], "content": content, "status": status })
    }

    /// Ends the item with what models said.
    fn thought(&mut self) -> (Vec<Event>, Option<Value>) {
        let Some(text) = self.thought.take() else { return (Vec::new(), None) };
        let item = self.thoughts_item(Some(&text), "completed");
        let done = json!({ "item_id": self.thoughts_id(), "output_index": 0, "content_index": 0, "text": text });
        let events = vec![
            self.event("response.reasoning_text.done", done),
            self.event("response.output_item.done", json!({ "output_index": 0, "item": item })),
        ];
        (events, Some(item))
    }

    /// The item with the reply.
    fn reply(&mut self, index: u64, text: &str) -> Vec<Event> {
        let at = json!({ "item_id": message_id(&self.id), "output_index": index, "content_index": 0 });
        let with = |name: &str, value: Value| {
            let mut with = at.clone();
            with[name] = value;
            with
        };
        let whole = message(&self.id, text);
        let mut begun = whole.clone();
        begun["status"] = "in_progress".into();
        begun["content"] = json!([]);
        let (mut delta, mut done) = (with("delta", text.into()), with("text", text.into()));
        delta["logprobs"] = json!([]);
        done["logprobs"] = json!([]);
        vec![
            self.event("response.output_item.added", json!({ "output_index": index, "item": begun })),
            self.event("response.content_part.added", with("part", text_part(""))),
            self.event("response.output_text.delta", delta),
            self.event("response.output_text.done", done),
            self.event("response.content_part.done", with("part", text_part(text))),
            self.event("response.output_item.done", json!({ "output_index": index, "item": whole })),
        ]
    }
}

impl Telling for Events {
    fn begin(&mut self) -> Vec<Event> {
        let response = json!({ "response": self.frame });
        vec![self.event("response.created", response.clone()), self.event("response.in_progress", response)]
    }

    fn entry(&mut self, _entry: &NumberedEntry) -> Vec<Event> {
        Vec::new()
    }

    fn live(&mut self, happened: &str) -> Vec<Event> {
        let Some(piece) = self.thoughts.piece(happened) else { return Vec::new() };
        let mut events = Vec::new();
        if self.thought.is_none() {
            let item = self.thoughts_item(None, "in_progress");
            events.push(self.event("response.output_item.added", json!({ "output_index": 0, "item": item })));
        }
        self.thought.get_or_insert_default().push_str(&piece);
        let delta = json!({ "item_id": self.thoughts_id(), "output_index": 0, "content_index": 0, "delta": piece });
        events.push(self.event("response.reasoning_text.delta", delta));
        events
    }

    async fn end(&mut self, record: &RunRecord) -> Result<Vec<Event>, Problem> {
        let found = Found::of(&self.server, self.id.clone(), record.clone()).await?;
        let found = found.ok_or_else(|| Problem::internal(&"a response has no turn"))?;
        if found.part.came == Came::Working {
            return Err(turn::no_reply(record, &found.part.came));
        }
        if let Some(conversation) = &self.conversation {
            conversation.replied(&self.server, &RunId::from(self.id.run.clone()), &found.part.came)?;
        }
        let (mut events, thoughts) = self.thought();
        if let Some(text) = found.text() {
            events.extend(self.reply(u64::from(thoughts.is_some()), &text));
        }
        let kind = match found.part.came {
            Came::Asks(_) | Came::Said(_) | Came::Working => "response.completed",
            // There is no event of its own for one that was ended.
            Came::Failed(_) | Came::Cancelled => "response.failed",
        };
        let response = found.view(&self.server, thoughts);
        events.push(self.event(kind, json!({ "response": response })));
        Ok(events)
    }

    fn problem(&self, problem: &Problem) -> Event {
        let error: Value = serde_json::from_str(&in_stream(problem)).unwrap_or_default();
        let error = &error["error"];
        let data = json!({
            "type": "error", "code": error["code"], "message": error["message"], "param": error["param"], "sequence_number": self.told,
        });
        Event::default().event("error").data(data.to_string())
    }
}
