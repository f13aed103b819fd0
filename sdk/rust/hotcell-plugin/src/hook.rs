//! Hooks: functions that are told of what a run is about to do or has done, and may change or refuse it.
//!
//! Every event is an object with at least `node`, the name of the node. What else there is depends on the point:
//!
//! | point | besides `node` |
//! | --- | --- |
//! | `before-model-call` | `messages`: a list of `{"role", "content"}` |
//! | `after-model-call` | `messages`, and `reply`: `{"text", "tool_calls"}` |
//! | `before-tool-call` | `tool`: the name, `arguments`: an object |
//! | `after-tool-call` | `tool`, `arguments`, and `result`: any value |
//!
//! A hook that changes an event gives the whole object back, with the changes in it; only what the point allows may
//! differ. A parameter of a type of your own reads the event by name; give that type `#[value(open)]`, so that
//! names which it does not know are passed over.

use crate::{Error, Failure, Json, Mismatch, Value};

/// What becomes of the event.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// It goes on as it is.
    Proceed,
    /// It goes on with this object in the place of the event's own.
    Change(Json),
    /// It does not go on; the reason is shown to whoever runs the graph.
    Refuse(Failure),
}

impl Verdict {
    /// The event does not go on, for this reason.
    pub fn refuse(reason: impl Into<String>) -> Self {
        Self::Refuse(Failure::new(reason))
    }
}

/// An event with the parts that the points have in common; the whole of it is in [`Event::json`].
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Everything that came.
    pub json: Json,
}

impl Event {
    /// The name of the node, empty where the event has none.
    pub fn node(&self) -> &str {
        self.text("node")
    }

    /// The name of the tool, empty where the event has none.
    pub fn tool(&self) -> &str {
        self.text("tool")
    }

    /// The messages to a model, empty where the event has none.
    pub fn messages(&self) -> &[Json] {
        self.json.get("messages").and_then(Json::as_array).map_or(&[], Vec::as_slice)
    }

    fn text(&self, name: &str) -> &str {
        self.json.get(name).and_then(Json::as_str).unwrap_or_default()
    }
}

impl Value for Event {
    const SCHEMA: &'static crate::schema::Schema = &crate::schema::Schema::Map(&crate::schema::Schema::Any);

    fn decode(json: Json) -> Result<Self, Mismatch> {
        if json.is_object() { Ok(Self { json }) } else { Err(Mismatch::form(Self::SCHEMA, &json)) }
    }

    fn encode(self) -> Result<Json, Error> {
        Ok(self.json)
    }
}
