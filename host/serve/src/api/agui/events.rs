//! What AG-UI is told of a run.

use axum::response::sse::Event;
use hotcell_runtime::{Fact, NumberedEntry, OpenQuestion, RunId, RunRecord};
use serde_json::{Value, json};

use crate::api::event_stream::Telling;
use crate::api::turn::{self, Came, Part, Thoughts};
use crate::problem::Problem;
use crate::state::Server;
use crate::view::{response_schema, time};

/// The version of the protocol.
const VERSION: &str = "1.0";

/// Tells of a turn of a run.
pub(super) struct Events {
    server: Server,
    run: RunId,
    after: u64,
    /// What the client calls the thread and the run
    thread_id: String,
    run_id: String,
    thoughts: Thoughts,
    /// Whether models have begun to say something
    thinks: bool,
}

impl Events {
    pub(super) fn new(server: &Server, run: &RunId, after: u64, thread_id: String, run_id: String) -> Self {
        let (server, thoughts) = (server.clone(), Thoughts::default());
        Events { server, run: run.clone(), after, thread_id, run_id, thoughts, thinks: false }
    }

    fn event(&self, data: Value) -> Event {
        Event::default().data(data.to_string())
    }

    fn message_id(&self) -> String {
        format!("{}-{}", self.run, self.after)
    }

    fn reasoning(&self, kind: &str) -> Event {
        let mut data = json!({ "type": kind, "messageId": format!("{}-reasoning", self.message_id()) });
        if kind == "REASONING_MESSAGE_START" {
            data["role"] = "reasoning".into();
        }
        self.event(data)
    }

    /// The reply, as a message.
    fn reply(&self, text: &str) -> Vec<Event> {
        let id = self.message_id();
        let mut events =
            vec![self.event(json!({ "type": "TEXT_MESSAGE_START", "messageId": id, "role": "assistant" }))];
        // A piece is never empty.
        if !text.is_empty() {
            events.push(self.event(json!({ "type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": text })));
        }
        events.push(self.event(json!({ "type": "TEXT_MESSAGE_END", "messageId": id })));
        events
    }

    fn finished(&self, part: &Part, outcome: Value, result: Option<&str>) -> Event {
        let mut data = json!({
            "type": "RUN_FINISHED", "threadId": self.thread_id, "runId": self.run_id, "outcome": outcome, "usage": usage(part),
        });
        if let Some(result) = result {
            data["result"] = result.into();
        }
        self.event(data)
    }

    fn failed(&self, message: &str, code: &str) -> Event {
        self.event(json!({ "type": "RUN_ERROR", "message": message, "code": code }))
    }
}

fn usage(part: &Part) -> Value {
    json!([{
        "inputTokens": part.input_tokens, "outputTokens": part.output_tokens,
        "totalTokens": part.input_tokens.saturating_add(part.output_tokens),
    }])
}

fn interrupt(run: &RunId, open: &OpenQuestion) -> Value {
    let question = &open.question;
    let mut interrupt = json!({
        "id": format!("{run}:{}", question.id),
        "reason": if question.call.is_some() { "tool_call" } else { "question" },
        "message": question.text,
        "responseSchema": response_schema(question),
        "metadata": { "run_id": run.as_str(), "node": question.node },
    });
    if let Some(expires) = question.expires {
        interrupt["expiresAt"] = time(expires).into();
    }
    for (name, value) in [("default", json!(question.default)), ("call", json!(question.call))] {
        if !value.is_null() {
            interrupt["metadata"][name] = value;
        }
    }
    interrupt
}

impl Telling for Events {
    fn begin(&mut self) -> Vec<Event> {
        vec![self.event(json!({
            "type": "RUN_STARTED", "threadId": self.thread_id, "runId": self.run_id, "protocolVersion": VERSION,
        }))]
    }

    fn entry(&mut self, numbered: &NumberedEntry) -> Vec<Event> {
        let entry = &numbered.entry;
        match &entry.fact {
            // A step of the run itself: that it began is known when it is done.
            Fact::Completed(completed) if entry.place.around().is_none() => {
                let step = |kind: &str| self.event(json!({ "type": kind, "stepName": completed.node }));
                vec![step("STEP_STARTED"), step("STEP_FINISHED")]
            }
            _ => Vec::new(),
        }
    }

    fn live(&mut self, happened: &str) -> Vec<Event> {
        let Some(piece) = self.thoughts.piece(happened).filter(|piece| !piece.is_empty()) else { return Vec::new() };
        let mut events = Vec::new();
        if !std::mem::replace(&mut self.thinks, true) {
            events.extend([self.reasoning("REASONING_START"), self.reasoning("REASONING_MESSAGE_START")]);
        }
        let id = format!("{}-reasoning", self.message_id());
        events.push(self.event(json!({ "type": "REASONING_MESSAGE_CONTENT", "messageId": id, "delta": piece })));
        events
    }

    async fn end(&mut self, record: &RunRecord) -> Result<Vec<Event>, Problem> {
        let part = Part::read(&self.server, &self.run, self.after).await?;
        let mut events = Vec::new();
        if std::mem::replace(&mut self.thinks, false) {
            events.extend([self.reasoning("REASONING_MESSAGE_END"), self.reasoning("REASONING_END")]);
        }
        match &part.came {
            Came::Said(text) => {
                events.extend(self.reply(text));
                events.push(self.finished(&part, json!({ "type": "success" }), Some(text)));
            }
            Came::Asks(open) => {
                let interrupts: Vec<Value> = open.iter().map(|open| interrupt(&self.run, open)).collect();
                let outcome = json!({ "type": "interrupt", "interrupts": interrupts });
                events.push(self.finished(&part, outcome, None));
            }
            Came::Cancelled => events.push(self.finished(&part, json!({ "type": "cancelled" }), None)),
            Came::Failed(error) => events.push(self.failed(error, "run-failed")),
            Came::Working => return Err(turn::no_reply(record, &part.came)),
        }
        Ok(events)
    }

    fn problem(&self, problem: &Problem) -> Event {
        self.failed(&problem.detail, problem.short_kind())
    }
}
