//! Runs and their entries, made of what a server says of them. A server does not say where its files are.

use std::time::Duration;

use hotcell_budget::Account;
use hotcell_graph::{Key, Object};
use hotcell_runtime::{Completed, Entry, EntryPath, Fact, RunHeader, RunRecord, Write};
use serde::Deserialize as _;
use serde_json::Value;

use super::replies::{Run, RunEntry, question};

/// An entry; none for a kind that this hotcell does not know, and for one that lacks something.
pub(crate) fn entry(told: &RunEntry) -> Option<Entry> {
    Some(Entry { place: EntryPath::from(told.place.clone()), fact: fact(&told.kind, &told.data)? })
}

/// A run with what it was started with.
pub(crate) fn record(run: &Run, entries: &[Entry]) -> RunRecord {
    let started = entries.iter().find_map(|entry| match &entry.fact {
        Fact::Started(header) => Some(header.clone()),
        _ => None,
    });
    let agent = run.agent_id.clone().unwrap_or_default();
    let empty = || RunHeader {
        graph: agent.clone(),
        source: String::new(),
        digest: String::new(),
        kept: false,
        given: Object::default(),
    };
    let mut header = started.unwrap_or_else(empty);
    // What a run is loaded from has a name there.
    header.source = agent.clone();
    RunRecord {
        id: run.run_id.clone().into(),
        header,
        revision: None,
        status: run.standing,
        created: run.created_at,
        updated: run.updated_at,
        outcome: run.outcome.clone(),
    }
}

fn fact(kind: &str, data: &Value) -> Option<Fact> {
    let text = |name: &str| data[name].as_str().map(str::to_owned);
    let number = |name: &str| data[name].as_u64().and_then(|number| u32::try_from(number).ok());
    // The number of a question is the last part of its id.
    let asked = || text("question_id")?.rsplit_once(':')?.1.parse().ok();
    Some(match kind {
        "started" => Fact::Started(RunHeader {
            graph: text("graph")?,
            source: String::new(),
            digest: text("revision").unwrap_or_default(),
            kept: false,
            given: given(data),
        }),
        "resumed" => Fact::Resumed,
        "retried" => Fact::Retried,
        "forked" => Fact::Forked,
        "withheld" => Fact::Withheld { effect: text("effect")? },
        "revised" => Fact::Revised { digest: text("revision")? },
        "completed" => Fact::Completed(completed(data)?),
        "effect" => Fact::Effect {
            number: number("number")?,
            kind: text("effect")?,
            subject: text("subject").unwrap_or_default(),
            answer: (&data["answer"]).into(),
            account: account(data),
        },
        "failed" => Fact::Failed { number: number("number"), error: text("error")?, account: account(data) },
        "attempt" => Fact::Attempt { attempt: number("attempt")?, error: text("error")?, account: account(data) },
        "asked" => {
            let question = question(&data["question"])?;
            Fact::Asked { number: question.id.rsplit_once(':')?.1.parse().ok()?, question }
        }
        "answered" => Fact::Answered { number: asked()?, text: text("answer")? },
        "expired" => Fact::Expired { number: asked()? },
        "timer_fired" => Fact::TimerFired { node: text("node")? },
        "waiting" => Fact::Waiting,
        "pause_asked" => Fact::PauseAsked,
        "paused" => Fact::Paused,
        "cancelled" => Fact::Cancelled,
        "stopped" => Fact::Stopped { reason: text("reason")? },
        "ended" => match text("output") {
            Some(output) => Fact::Ended { result: Ok(output), node: None },
            None => Fact::Ended { result: Err(text("error")?), node: text("node") },
        },
        _ => return None,
    })
}

fn given(data: &Value) -> Object {
    let names = [("input", "input"), ("variables", "variables"), ("state", "state"), ("thread", "thread_id")];
    let some = names.into_iter().filter(|(_, told)| !data[*told].is_null());
    some.map(|(name, told)| (Key::from(name), hotcell_graph::Value::from(&data[told]))).collect()
}

fn completed(data: &Value) -> Option<Completed> {
    let text = |name: &str| data[name].as_str().map(str::to_owned);
    let writes = data["writes"].as_object().into_iter().flatten();
    let next = data["next"].as_array().map(|nodes| nodes.iter().filter_map(Value::as_str).map(str::to_owned).collect());
    Some(Completed {
        node: text("node")?,
        writes: writes.map(|(key, value)| Write { key: Key::from(key.as_str()), value: value.into() }).collect(),
        next,
        output: text("output"),
        failure: text("failure"),
        failure_kind: text("failure_kind"),
        handled: data["handled"].as_bool().unwrap_or_default(),
        elapsed: Duration::try_from_secs_f64(data["elapsed_ms"].as_f64().unwrap_or_default() / 1e3).unwrap_or_default(),
        account: account(data),
    })
}

/// Who used what.
fn account(data: &Value) -> Account {
    Account::deserialize(&data["used_by"]).unwrap_or_default()
}
