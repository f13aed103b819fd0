//! What the functions of agents do: a server that the sealed component of a case asks, and that keeps who was called with what.
//! It is told of the calls of tools, too, before they do what they do.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hotcell_graph::value::parse_json;
use hotcell_loopback::{WebAnswer, WebRequest, WebServer};
use hotcell_runtime::{Clock as _, ManualClock};
use indexmap::IndexMap;
use serde_json::{Value, json};

use super::case::Behaviour;
use super::saved::at;
use crate::observed::ToolInvocation;

/// A run of an agent.
#[derive(Clone, Debug)]
pub(super) struct Ran {
    pub(super) agent: String,
    pub(super) input: Value,
    pub(super) at: Instant,
}

/// What was called.
#[derive(Debug, Default)]
pub(super) struct Diary {
    pub(super) runs: Vec<Ran>,
    pub(super) tool_calls: Vec<ToolInvocation>,
    under_way: HashMap<String, usize>,
    /// The most runs of each agent at once
    pub(super) most: HashMap<String, usize>,
    /// Requests that no component of a case makes
    pub(super) problems: Vec<String>,
}

/// The server.
pub(super) struct Functions {
    server: WebServer,
    diary: Arc<Mutex<Diary>>,
}

impl Functions {
    pub(super) fn start(behaviours: IndexMap<String, Behaviour>, clock: ManualClock) -> io::Result<Self> {
        let diary: Arc<Mutex<Diary>> = Arc::default();
        let kept = diary.clone();
        let server = WebServer::start_late(move |request| {
            let answered = take(request, &behaviours, &kept);
            let (kept, clock) = (kept.clone(), clock.clone());
            async move {
                let (delay, answer, agent) = answered?;
                let _under_way = agent.map(|agent| UnderWay { agent, diary: kept });
                if !delay.is_zero() {
                    clock.pause(delay).await;
                }
                Some(WebAnswer { status: 200, body: answer.to_string(), is_json: true, headers: Vec::new() })
            }
        })?;
        Ok(Functions { server, diary })
    }

    pub(super) fn port(&self) -> u16 {
        self.server.port()
    }

    pub(super) fn diary(&self) -> MutexGuard<'_, Diary> {
        lock(&self.diary)
    }
}

fn lock(diary: &Mutex<Diary>) -> MutexGuard<'_, Diary> {
    diary.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A run of an agent that has begun and not ended.
struct UnderWay {
    agent: String,
    diary: Arc<Mutex<Diary>>,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        if let Some(runs) = lock(&self.diary).under_way.get_mut(&self.agent) {
            *runs -= 1;
        }
    }
}

/// Takes note of a call: how late what is answered, and the agent whose run it is.
fn take(
    request: &WebRequest,
    behaviours: &IndexMap<String, Behaviour>,
    diary: &Mutex<Diary>,
) -> Option<(Duration, Value, Option<String>)> {
    let mut diary = lock(diary);
    let body = String::from_utf8_lossy(&request.body);
    if let Some(tool) = request.path.strip_prefix("/tools/") {
        let arguments = parse_json(&body).unwrap_or_default();
        diary.tool_calls.push(ToolInvocation { name: tool.to_owned(), arguments });
        return Some((Duration::ZERO, json!({}), None));
    }
    let agent = request.path.strip_prefix("/agents/");
    let Some((agent, behaviour)) = agent.and_then(|agent| Some((agent, behaviours.get(agent)?))) else {
        diary.problems.push(format!("nobody asks for `{}`", request.path));
        return None;
    };
    let input: Value = serde_json::from_str(&body).unwrap_or_default();
    let before = diary.runs.iter().filter(|ran| ran.agent == agent).count();
    diary.runs.push(Ran { agent: agent.to_owned(), input: input.clone(), at: Instant::now() });
    let under_way = diary.under_way.entry(agent.to_owned()).or_default();
    *under_way += 1;
    let most = *under_way;
    let before_most = diary.most.entry(agent.to_owned()).or_default();
    *before_most = most.max(*before_most);
    let delay = match behaviour {
        Behaviour::Slow { ms, .. } => Duration::from_millis(*ms),
        _ => Duration::ZERO,
    };
    Some((delay, answer(behaviour, &input, before), Some(agent.to_owned())))
}

/// What an agent gives in a run before which there were so many.
fn answer(behaviour: &Behaviour, input: &Value, before: usize) -> Value {
    let output = match behaviour {
        Behaviour::Echo {} => input.clone(),
        Behaviour::Constant { value } | Behaviour::Slow { value, .. } => value.clone(),
        Behaviour::Sequence { values } => values.get(before).or(values.last()).cloned().unwrap_or_default(),
        Behaviour::Fail { message } => return json!({ "error": message }),
        Behaviour::FailFirst { times, message, .. } if (before as u64) < *times => return json!({ "error": message }),
        Behaviour::FailFirst { value, .. } => value.clone(),
        Behaviour::Pick { fields } => {
            fields.iter().map(|(name, path)| (name.clone(), at(input, path).cloned().unwrap_or_default())).collect()
        }
    };
    json!({ "output": output })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Behaviour, answer};

    #[test]
    fn behaviours() {
        let input = json!({"a": {"b": [1, 2]}});
        for (behaviour, before, expected) in [
            (json!({"behaviour": "echo"}), 0, json!({"output": input})),
            (json!({"behaviour": "constant", "value": {"x": 1}}), 5, json!({"output": {"x": 1}})),
            (json!({"behaviour": "sequence", "values": [{"x": 1}, {"x": 2}]}), 0, json!({"output": {"x": 1}})),
            (json!({"behaviour": "sequence", "values": [{"x": 1}, {"x": 2}]}), 7, json!({"output": {"x": 2}})),
            (json!({"behaviour": "fail", "message": "no"}), 0, json!({"error": "no"})),
            (json!({"behaviour": "fail_first", "times": 2, "message": "no", "value": {}}), 1, json!({"error": "no"})),
            (json!({"behaviour": "fail_first", "times": 2, "message": "no", "value": {}}), 2, json!({"output": {}})),
            (json!({"behaviour": "slow", "ms": 9, "value": {"x": 1}}), 0, json!({"output": {"x": 1}})),
            (
                json!({"behaviour": "pick", "fields": {"y": "a.b.1", "z": "a.c"}}),
                0,
                json!({"output": {"y": 2, "z": Value::Null}}),
            ),
        ] {
            let behaviour: Behaviour = serde_json::from_value(behaviour).expect("a behaviour");
            assert_eq!(answer(&behaviour, &input, before), expected, "{behaviour:?}");
        }
    }
}
