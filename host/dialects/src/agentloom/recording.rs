//! Replies that are ready: the file that the provider `mock` takes them from.

use std::sync::Arc;
use std::time::Duration;

use hotcell_graph::ir::{RecordedReply, Recording};
use hotcell_graph::value::parse_json;
use hotcell_graph::{Key, List, Object, Value};

use super::files::{Files, RELATIVE};
use crate::document::{Fields, SourceText};

/// The longest that a reply takes that is ready.
const LONGEST_MS: f64 = 600_000.0;

/// Reads the file; what is wrong is reported.
pub(super) fn read(
    fields: &Fields<'_, '_>,
    path: &SourceText,
    latency: Option<&str>,
    latency_ms: f64,
    files: &Files<'_>,
) -> Option<Arc<Recording>> {
    let text = files.text(path).map_err(|reason| reason.to_string());
    let is_read = text.is_ok();
    let parsed = text.and_then(|text| parse_json(&text).map_err(|error| format!("it is not JSON: {error}")));
    let found = parsed.and_then(|value| replies(&value, latency == Some("replay"), latency_ms));
    match found {
        Ok(replies) => Some(Arc::new(Recording { source: path.to_string(), replies })),
        Err(problem) => {
            let error = fields.error(format!("the replies in `{}` cannot be used: {problem}", &**path), &path.span);
            fields.reader().report(if is_read { error } else { error.help(RELATIVE) });
            None
        }
    }
}

fn replies(file: &Value, takes_own_time: bool, latency_ms: f64) -> Result<Vec<(Key, Vec<RecordedReply>)>, String> {
    let object = file.as_object().ok_or_else(|| "it is not an object with the ids of steps as its keys".to_owned())?;
    let mut found = Vec::with_capacity(object.len());
    for (name, value) in object.iter().filter(|(name, _)| !name.starts_with('_')) {
        let one;
        let turns = match value {
            Value::List(turns) => turns,
            other => {
                one = List::from_iter([other.clone()]);
                &one
            }
        };
        let turns = turns.iter().enumerate().map(|(place, turn)| {
            reply(turn, takes_own_time, latency_ms)
                .map_err(|problem| format!("reply {} for `{name}` {problem}", place + 1))
        });
        found.push((name.clone(), turns.collect::<Result<_, _>>()?));
    }
    Ok(found)
}

fn reply(value: &Value, takes_own_time: bool, latency_ms: f64) -> Result<RecordedReply, String> {
    let object = value.as_object().ok_or_else(|| format!("is {}, not an object", value.a_kind()))?;
    let number = |of: &Object, key: &str| match of.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Number(number)) if number.to_f64() >= 0.0 => Ok(Some(number.to_f64())),
        Some(_) => Err(format!("has a `{key}` that is not a number of at least 0")),
    };
    let content = match object.get("content") {
        None | Some(Value::Null) => String::new(),
        Some(Value::Text(text)) => text.to_string(),
        Some(other) => return Err(format!("has {} as `content`", other.a_kind())),
    };
    let usage = object.get("usage").and_then(Value::as_object).cloned().unwrap_or_default();
    let tokens = |key: &str| number(&usage, key).map(|tokens| tokens.unwrap_or_default() as u64);
    let mut tool_calls = Vec::new();
    for call in object.get("tool_calls").and_then(Value::as_list).into_iter().flat_map(List::iter) {
        let named = call.as_object().filter(|call| call.get("name").and_then(Value::as_text).is_some());
        tool_calls.push(named.cloned().ok_or_else(|| "has a call without a `name`".to_owned())?);
    }
    let latency = if takes_own_time { number(object, "latency_ms")?.unwrap_or_default() } else { latency_ms };
    Ok(RecordedReply {
        content,
        tool_calls,
        input_tokens: tokens("prompt_tokens")?,
        output_tokens: tokens("completion_tokens")?,
        cost_usd: number(object, "cost_usd")?,
        latency: Duration::from_secs_f64(latency.min(LONGEST_MS) / 1e3),
    })
}
