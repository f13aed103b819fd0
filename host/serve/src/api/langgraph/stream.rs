//! What streams for clients of LangGraph tell.

use std::collections::HashMap;

use axum::response::sse::Event;
use hotcell_graph::Value as GraphValue;
use hotcell_runtime::{EntryPage, Fact, NumberedEntry, RunRecord, RunStatus, StateFold};
use serde::Deserialize;
use serde_json::{Value, json};

use super::interrupts::{self, Interrupt};
use crate::api::stream::Telling;
use crate::problem::{Problem, shown};
use crate::state::Server;
use crate::view::{Object, StatusView, object};

/// Entries that are read at once.
const AT_ONCE: usize = 256;

/// What a stream tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Mode {
    /// The state after each node
    Values,
    /// What each node wrote
    Updates,
    /// Each message of a model, as far as it has come
    Messages,
    /// Each piece of a message of a model
    MessagesTuple,
}

impl Mode {
    pub(super) fn named(name: &str) -> Result<Self, Problem> {
        let known = serde_json::from_value(Value::String(name.to_owned()));
        known.map_err(|_| {
            Problem::unprocessable(format!(
                "`stream_mode` is `values`, `updates`, `messages` or `messages-tuple`; `{}` is not supported",
                shown(name)
            ))
        })
    }
}

/// One mode or several.
#[derive(Deserialize)]
#[serde(try_from = "Value")]
pub(super) struct Modes(Vec<Mode>);

impl Modes {
    pub(super) fn all(&self) -> Vec<Mode> {
        self.0.clone()
    }
}

impl TryFrom<Value> for Modes {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        let one = |name: &Value| {
            let name = name.as_str().ok_or("`stream_mode` is a name or a list of names")?;
            Mode::named(name).map_err(|problem| problem.detail)
        };
        match &value {
            Value::Array(names) if !names.is_empty() => names.iter().map(one).collect::<Result<_, _>>().map(Modes),
            name => Ok(Modes(vec![one(name)?])),
        }
    }
}

/// A message of a model as far as it has come.
struct Message {
    id: String,
    text: String,
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
        if modes.contains(&Mode::Values) && after > 0 {
            read_until(server, record, after, &mut fold).await?;
        }
        Ok(Shape {
            server: server.clone(),
            record: record.clone(),
            modes,
            fold,
            told: None,
            messages: HashMap::new(),
            begun: 0,
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

    fn message(&mut self, node: &str, text: &str) -> Vec<Event> {
        let run = &self.record.id;
        let begun = &mut self.begun;
        let is_new = !self.messages.contains_key(node);
        let message = self.messages.entry(node.to_owned()).or_insert_with(|| {
            *begun += 1;
            Message { id: format!("{run}:{node}:{begun}"), text: String::new() }
        });
        message.text.push_str(text);
        let about = json!({ "langgraph_node": node, "run_id": run.as_str(), "thread_id": self.record.thread() });
        let mut events = Vec::new();
        if self.modes.contains(&Mode::MessagesTuple) {
            let piece = json!({ "type": "AIMessageChunk", "id": message.id, "content": text });
            events.push(event("messages", &json!([piece, about])));
        }
        if self.modes.contains(&Mode::Messages) {
            if is_new {
                let by_id = Object::from_iter([(message.id.clone(), json!({ "metadata": about }))]);
                events.push(event("messages/metadata", &Value::Object(by_id)));
            }
            let so_far = json!({ "type": "ai", "id": message.id, "content": message.text });
            events.push(event("messages/partial", &json!([so_far])));
        }
        events
    }
}

/// Follows the entries of a run until one of them.
async fn read_until(server: &Server, record: &RunRecord, until: u64, fold: &mut StateFold) -> Result<(), Problem> {
    let mut after = 0;
    while after < until {
        let EntryPage { entries, .. } = server.runs().store().entries(&record.id, after, AT_ONCE).await?;
        let Some(last) = entries.last() else { break };
        after = last.number;
        for numbered in entries.iter().filter(|numbered| numbered.number <= until) {
            fold.follow(&numbered.entry).map_err(|error| Problem::internal(&error))?;
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
                if self.tells(Mode::Values) {
                    events.extend(self.values(values_of(&self.fold)));
                }
            }
            Fact::Started(_) if self.tells(Mode::Values) => events.extend(self.values(values_of(&self.fold))),
            _ => {}
        }
        // The last one of an entry has its id: a client that saw it has seen all of the entry.
        if let Some(last) = events.pop() {
            events.push(last.id(self.id_of(numbered)));
        }
        events
    }

    fn live(&mut self, text: &str) -> Vec<Event> {
        if !self.tells(Mode::Messages) && !self.tells(Mode::MessagesTuple) {
            return Vec::new();
        }
        let Ok(Value::Object(happened)) = serde_json::from_str(text) else { return Vec::new() };
        let text_of = |name: &str| happened.get(name).and_then(Value::as_str).unwrap_or_default();
        match text_of("event") {
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
