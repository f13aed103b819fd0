//! What streams for clients of LangGraph tell.

use std::collections::HashMap;

use axum::response::sse::Event;
use hotcell_graph::Value as GraphValue;
use hotcell_runtime::{EntryPage, Fact, NumberedEntry, RunRecord, RunStatus, StateFold};
use serde_json::{Value, json};

use super::interrupts::{self, Interrupt};
use super::modes::Mode;
use super::steps::Steps;
use crate::api::event_stream::Telling;
use crate::problem::Problem;
use crate::state::Server;
use crate::view::{Object, StatusView, object};

/// Entries that are read at once.
const AT_ONCE: usize = 256;

/// Bytes of a message that is told as a whole with each of its pieces. Of a longer one so many further pieces are told together that
/// telling it costs in proportion to its length, and not to the square of it.
const TOLD_EACH_TIME: usize = 16 << 10;
/// Which part of a longer message is told anew at least.
const PART: usize = 64;

/// A message of a model as far as it has come.
#[derive(Default)]
struct Message {
    id: String,
    text: String,
    /// Bytes that were told
    told: usize,
}

impl Message {
    fn new(id: String) -> Self {
        Message { id, ..Message::default() }
    }

    /// Adds a piece. True if the message is to be told as far as it has come.
    fn grow(&mut self, piece: &str) -> bool {
        self.text.push_str(piece);
        let is_told = self.text.len() <= TOLD_EACH_TIME || self.text.len() - self.told >= self.told / PART;
        if is_told {
            self.told = self.text.len();
        }
        is_told
    }
}

/// Tells of a run in the events of LangGraph.
pub(crate) struct Shape {
    server: Server,
    record: RunRecord,
    modes: Vec<Mode>,
    fold: StateFold,
    /// What was told last of the state
    told: Option<Object>,
    /// Messages by the node that asks the model
    messages: HashMap<String, Message>,
    /// How many messages have begun
    begun: usize,
    /// The turns of its nodes
    steps: Steps,
    has_begun: bool,
}

impl Shape {
    /// Tells what comes after an entry of a run.
    pub(super) async fn new(
        server: &Server,
        record: &RunRecord,
        after: u64,
        modes: Vec<Mode>,
    ) -> Result<Self, Problem> {
        let mut fold = server.runs().fold_of(record).await?;
        let mut steps = Steps::new(record);
        if after > 0 && modes.iter().any(|mode| mode.tells_state()) {
            read_until(server, record, after, &mut fold, &mut steps).await?;
        }
        Ok(Shape {
            server: server.clone(),
            record: record.clone(),
            modes,
            fold,
            told: None,
            messages: HashMap::new(),
            begun: 0,
            steps,
            has_begun: false,
        })
    }

    fn tells(&self, mode: Mode) -> bool {
        self.modes.contains(&mode)
    }

    fn id_of(&self, numbered: &NumberedEntry) -> String {
        format!("{}:{}", self.record.id, numbered.number)
    }

    /// The state, unless it was told just so.
    fn values(&mut self, values: Object) -> Option<Event> {
        if self.told.as_ref() == Some(&values) {
            return None;
        }
        let told = event("values", &Value::Object(values.clone()));
        self.told = Some(values);
        Some(told)
    }

    /// The state after an entry, in each of the ways in which it is told.
    fn state(&mut self, numbered: &NumberedEntry, next: &[String]) -> Vec<Event> {
        let mut events = Vec::new();
        if !self.modes.iter().any(|mode| mode.tells_state()) {
            return events;
        }
        let values = values_of(&self.fold);
        let checkpoint = match self.tells(Mode::Checkpoints) || self.tells(Mode::Debug) {
            true => self.steps.checkpoint(numbered.number, &values, next),
            false => {
                self.steps.took(numbered.number);
                Value::Null
            }
        };
        if self.tells(Mode::Values) {
            events.extend(self.values(values));
        }
        if self.tells(Mode::Checkpoints) {
            events.push(event("checkpoints", &checkpoint));
        }
        if self.tells(Mode::Debug) {
            events.push(event("debug", &self.steps.debug("checkpoint", numbered.at, checkpoint)));
        }
        events
    }

    /// A node begins.
    fn task(&self, node: &str, place: &str) -> Vec<Event> {
        let mut events = Vec::new();
        if self.tells(Mode::Tasks) {
            events.push(event("tasks", &self.steps.begins(node, place, values_of(&self.fold))));
        }
        if self.tells(Mode::Debug) {
            let payload = self.steps.begins(node, place, values_of(&self.fold));
            events.push(event("debug", &self.steps.debug("task", self.server.clock().now(), payload)));
        }
        if self.tells(Mode::Events) {
            let input = Value::Object(values_of(&self.fold));
            events.push(event("events", &self.steps.node("on_chain_start", node, place, "input", input)));
        }
        events
    }

    fn message(&mut self, node: &str, text: &str) -> Vec<Event> {
        let run = &self.record.id;
        let begun = &mut self.begun;
        let is_new = !self.messages.contains_key(node);
        let message = self.messages.entry(node.to_owned()).or_insert_with(|| {
            *begun += 1;
            Message::new(format!("{run}:{node}:{begun}"))
        });
        let is_told = message.grow(text);
        let about = json!({ "langgraph_node": node, "run_id": run.as_str(), "thread_id": self.record.thread() });
        let mut events = Vec::new();
        if self.modes.contains(&Mode::MessagesTuple) {
            let piece = json!({ "type": "AIMessageChunk", "id": message.id, "content": text });
            events.push(event("messages", &json!([piece, about])));
        }
        if self.modes.contains(&Mode::Events) {
            events.push(event("events", &self.steps.said(node, &message.id, text)));
        }
        if self.modes.contains(&Mode::Messages) {
            if is_new {
                let by_id = Object::from_iter([(message.id.clone(), json!({ "metadata": about }))]);
                events.push(event("messages/metadata", &Value::Object(by_id)));
            }
            if is_told {
                let so_far = json!({ "type": "ai", "id": message.id, "content": message.text });
                events.push(event("messages/partial", &json!([so_far])));
            }
        }
        events
    }
}

/// Follows the entries of a run until one of them.
async fn read_until(
    server: &Server,
    record: &RunRecord,
    until: u64,
    fold: &mut StateFold,
    steps: &mut Steps,
) -> Result<(), Problem> {
    let mut after = 0;
    while after < until {
        let EntryPage { entries, .. } = server.runs().store().entries(&record.id, after, AT_ONCE).await?;
        let Some(last) = entries.last() else { break };
        after = last.number;
        for numbered in entries.iter().filter(|numbered| numbered.number <= until) {
            let is_turn = fold.follow(&numbered.entry).map_err(|error| Problem::internal(&error))?;
            if is_turn || matches!(numbered.entry.fact, Fact::Started(_)) {
                steps.took(numbered.number);
            }
        }
    }
    Ok(())
}

pub(super) fn values_of(fold: &StateFold) -> Object {
    object((&GraphValue::Object(fold.state().to_object())).into())
}

fn event(name: &str, data: &Value) -> Event {
    Event::default().event(name).data(data.to_string())
}

impl Telling for Shape {
    fn begin(&mut self) -> Vec<Event> {
        if std::mem::replace(&mut self.has_begun, true) {
            return Vec::new();
        }
        vec![event("metadata", &json!({ "run_id": self.record.id.as_str(), "attempt": 1 }))]
    }

    fn entry(&mut self, numbered: &NumberedEntry) -> Vec<Event> {
        let mut events = Vec::new();
        let is_turn = match self.fold.follow(&numbered.entry) {
            Ok(is_turn) => is_turn,
            Err(error) => return vec![self.problem(&Problem::internal(&error))],
        };
        match &numbered.entry.fact {
            Fact::Completed(completed) if is_turn => {
                if self.tells(Mode::Updates) {
                    let writes: Object = completed
                        .writes
                        .iter()
                        .map(|write| (write.key.to_string(), Value::from(&write.value)))
                        .collect();
                    let update = Object::from_iter([(completed.node.clone(), Value::Object(writes))]);
                    events.push(event("updates", &Value::Object(update)));
                }
                let place = numbered.entry.place.to_string();
                if self.tells(Mode::Tasks) {
                    events.push(event("tasks", &self.steps.done(&place, completed)));
                }
                if self.tells(Mode::Debug) {
                    let payload = self.steps.done(&place, completed);
                    events.push(event("debug", &self.steps.debug("task_result", numbered.at, payload)));
                }
                if self.tells(Mode::Events) {
                    let output = self.steps.done(&place, completed)["result"].take();
                    events.push(event(
                        "events",
                        &self.steps.node("on_chain_end", &completed.node, &place, "output", output),
                    ));
                }
                events.extend(self.state(numbered, completed.next.as_deref().unwrap_or_default()));
            }
            Fact::Started(_) => {
                if self.tells(Mode::Events) {
                    let input = Value::Object(values_of(&self.fold));
                    events.push(event("events", &self.steps.graph("on_chain_start", "input", input)));
                }
                events.extend(self.state(numbered, &[]));
            }
            _ => {}
        }
        // The last one of an entry has its id: a client that saw it has seen all of the entry.
        if let Some(last) = events.pop() {
            events.push(last.id(self.id_of(numbered)));
        }
        events
    }

    fn live(&mut self, text: &str) -> Vec<Event> {
        if !self.modes.iter().any(|mode| mode.tells_live()) {
            return Vec::new();
        }
        let Ok(Value::Object(happened)) = serde_json::from_str(text) else { return Vec::new() };
        let text_of = |name: &str| happened.get(name).and_then(Value::as_str).unwrap_or_default();
        match text_of("event") {
            "node_started" => self.task(text_of("node"), text_of("place")),
            "model_text" => self.message(text_of("node"), text_of("text")),
            "model_answered" => match self.messages.remove(text_of("node")) {
                Some(whole) if self.tells(Mode::Messages) => {
                    let whole = json!({ "type": "ai", "id": whole.id, "content": whole.text });
                    vec![event("messages/complete", &json!([whole]))]
                }
                _ => Vec::new(),
            },
            _ => Vec::new(),
        }
    }

    async fn end(&mut self, record: &RunRecord) -> Result<Vec<Event>, Problem> {
        let mut events = Vec::new();
        // Where branches ran side by side, what they came to may be something else than their writes one after the other.
        let state = object((&GraphValue::Object(self.server.runs().state_of(record).await?)).into());
        let open = interrupts::open(&self.server, record).await?;
        let open: Vec<Interrupt> = open.iter().map(|open| Interrupt::of(&open.question)).collect();
        if !open.is_empty() && self.tells(Mode::Updates) {
            events.push(event("updates", &json!({ "__interrupt__": open })));
        }
        if self.tells(Mode::Values) {
            let mut values = state;
            if !open.is_empty() {
                values.insert("__interrupt__".to_owned(), json!(open));
            }
            if let (RunStatus::Completed, Some(output)) = (record.status, &record.outcome) {
                values.insert("__output__".to_owned(), output.as_str().into());
            }
            events.extend(self.values(values));
        }
        if self.tells(Mode::Events) && record.status == RunStatus::Completed {
            let output = Value::Object(values_of(&self.fold));
            events.push(event("events", &self.steps.graph("on_chain_end", "output", output)));
        }
        if matches!(record.status, RunStatus::Failed | RunStatus::Stopped) {
            let message = record.outcome.as_deref().unwrap_or_default();
            events.push(event("error", &json!({ "error": record.status.as_str(), "message": message })));
        }
        events.push(event("end", &json!({ "run_id": record.id.as_str(), "status": StatusView::of(record.status) })));
        Ok(events)
    }

    fn problem(&self, problem: &Problem) -> Event {
        event("error", &json!({ "error": problem.title, "message": problem.detail }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_is_told_in_proportion_to_its_length() {
        let mut message = Message::new("m".to_owned());
        assert!((0..TOLD_EACH_TIME).all(|_| message.grow("x")), "a short one is told with each piece");
        let told = (0..1 << 20).filter(|_| message.grow("x")).count();
        assert!(told < 500, "{told}");
        assert!(
            message.told > message.text.len() / 2 && message.grow(&"x".repeat(1 << 20)),
            "what comes in large pieces is told"
        );
    }
}
