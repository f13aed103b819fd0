//! A response: a turn of a run, as the Responses API shows it. Everything in it is read from the entries of the run.

use std::time::{SystemTime, UNIX_EPOCH};

use hotcell_runtime::{Entry, Fact, RunId, RunRecord};
use serde_json::{Value, json};

use crate::api::turn::{self, Came, Part};
use crate::input::{kept_of, metadata_of};
use crate::problem::{Problem, shown};
use crate::state::Server;
use crate::view::Object;

/// The member of what is kept with a run that names the response before it.
const PREVIOUS: &str = "previous_response_id";

/// The name of a response: a run, and how many entries it had before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ResponseId {
    pub(super) run: String,
    pub(super) after: u64,
}

impl ResponseId {
    pub(super) fn new(run: &RunId, after: u64) -> Self {
        ResponseId { run: run.to_string(), after }
    }

    pub(super) fn parse(id: &str) -> Result<Self, Problem> {
        let parsed = id.strip_prefix("resp_").and_then(|id| {
            let (run, after) = id.rsplit_once('_')?;
            let parsed = ResponseId { run: run.to_owned(), after: after.parse().ok()? };
            // One way to write it.
            (parsed.to_string() == format!("resp_{id}")).then_some(parsed)
        });
        parsed.ok_or_else(|| none(id))
    }
}

impl std::fmt::Display for ResponseId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "resp_{}_{}", self.run, self.after)
    }
}

fn none(id: &str) -> Problem {
    Problem::not_found(format!("there is no response `{}`", shown(id)))
        .kind("unknown-response", "There is no such response")
}

/// A response and the run it is a turn of.
pub(super) struct Found {
    pub(super) id: ResponseId,
    pub(super) run: RunRecord,
    pub(super) part: Part,
    /// The response before it
    previous: Option<String>,
}

impl Found {
    /// The response of a name.
    pub(super) async fn find(server: &Server, id: &str) -> Result<Self, Problem> {
        let parsed = ResponseId::parse(id)?;
        let run = server.runs().find(&parsed.run).await.map_err(|problem| match problem.status {
            404 => none(id),
            _ => problem,
        })?;
        Found::of(server, parsed, run).await?.ok_or_else(|| none(id))
    }

    /// What a run says of a response; none if no turn of it begins there.
    pub(super) async fn of(server: &Server, id: ResponseId, run: RunRecord) -> Result<Option<Self>, Problem> {
        let entries = server.runs().store().history(&run.id).await?.whole()?;
        if !begins_turn(&entries, id.after) {
            return Ok(None);
        }
        let before = usize::try_from(id.after).unwrap_or(usize::MAX);
        let previous = match id.after > 0 {
            true => {
                Some(ResponseId::new(&run.id, turn::last_turn(entries.get(..before).unwrap_or(&entries))).to_string())
            }
            false => kept_of(&run).get(PREVIOUS).and_then(Value::as_str).map(str::to_owned),
        };
        let part = Part::of(&entries, id.after);
        Ok(Some(Found { id, run, part, previous }))
    }

    /// The text of the reply, if there is one.
    pub(super) fn text(&self) -> Option<String> {
        match &self.part.came {
            Came::Said(text) => Some(text.clone()),
            Came::Asks(open) => Some(open.first().map(turn::question_text).unwrap_or_default()),
            _ => None,
        }
    }

    /// The response, with what came before the reply in it.
    pub(super) fn view(&self, server: &Server, thoughts: Option<Value>) -> Value {
        let agent = server.agents().id_of(&self.run.header.source);
        let mut output: Vec<Value> = thoughts.into_iter().collect();
        output.extend(self.text().map(|text| message(&self.id, &text)));
        let (status, error) = match &self.part.came {
            Came::Working => ("in_progress", Value::Null),
            Came::Asks(_) | Came::Said(_) => ("completed", Value::Null),
            Came::Failed(error) => ("failed", json!({ "code": "server_error", "message": error })),
            Came::Cancelled => ("cancelled", Value::Null),
        };
        let mut view = frame(&self.id, agent.as_deref().unwrap_or_default(), self.run.created, metadata_of(&self.run));
        view["status"] = status.into();
        view["error"] = error;
        view["output"] = output.into();
        view["previous_response_id"] = json!(self.previous);
        if self.part.came != Came::Working {
            view["usage"] = usage(&self.part);
        }
        view
    }
}

/// A response before anything came of it.
pub(super) fn frame(id: &ResponseId, agent: &str, created: SystemTime, metadata: Object) -> Value {
    json!({
        "id": id.to_string(), "object": "response", "created_at": seconds(created), "status": "in_progress", "background": false,
        "error": null, "incomplete_details": null, "instructions": null, "max_output_tokens": null, "max_tool_calls": null,
        "metadata": metadata, "model": agent, "output": [], "parallel_tool_calls": true, "previous_response_id": null,
        "reasoning": { "effort": null, "summary": null }, "service_tier": "default", "store": true, "temperature": 1,
        "text": { "format": { "type": "text" } }, "tool_choice": "auto", "tools": [], "top_logprobs": 0, "top_p": 1,
        "truncation": "disabled", "usage": null,
    })
}

/// The item with the reply.
pub(super) fn message(id: &ResponseId, text: &str) -> Value {
    json!({
        "id": message_id(id), "type": "message", "status": "completed", "role": "assistant", "content": [text_part(text)],
    })
}

pub(super) fn message_id(id: &ResponseId) -> String {
    format!("msg_{}_{}", id.run, id.after)
}

pub(super) fn text_part(text: &str) -> Value {
    json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": [] })
}

fn usage(part: &Part) -> Value {
    json!({
        "input_tokens": part.input_tokens, "input_tokens_details": { "cached_tokens": 0, "cache_write_tokens": 0 },
        "output_tokens": part.output_tokens, "output_tokens_details": { "reasoning_tokens": 0 },
        "total_tokens": part.input_tokens.saturating_add(part.output_tokens),
    })
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// What is kept with a run that follows a response.
pub(super) fn follows(id: &ResponseId) -> Object {
    Object::from_iter([(PREVIOUS.to_owned(), id.to_string().into())])
}

/// Whether a turn begins after so many entries: the run itself, or with an answer.
fn begins_turn(entries: &[Entry], after: u64) -> bool {
    let Some((before, rest)) = usize::try_from(after).ok().and_then(|after| entries.split_at_checked(after)) else {
        return false;
    };
    let is_answer = |entry: &Entry| matches!(entry.fact, Fact::Answered { .. });
    after == 0 || before.iter().any(|entry| entry.fact == Fact::Waiting) && rest.iter().any(is_answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_response_is_a_run_and_a_place_in_it_and_is_written_in_one_way() {
        let id = ResponseId { run: "abc_d".to_owned(), after: 7 };
        assert_eq!(ResponseId::parse(&id.to_string()).expect("parsed"), id);
        for wrong in ["", "resp_", "resp_abc", "abc_1", "resp_abc_", "resp_abc_01", "resp_abc_+1", "resp_abc_-1"] {
            assert_eq!(ResponseId::parse(wrong).expect_err(wrong).status, 404);
        }
    }
}
