//! What each behaviour does with its arguments.

use std::thread;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::{Error, Json, ask, failure};

/// Entries that `lookup` knows.
const ENTRIES: [(&str, &str); 7] = [
    ("oslo", "4C rain"),
    ("paris", "21C sun"),
    ("lima", "18C fog"),
    ("acct-7", "balance 42.50"),
    ("acct-9", "balance 0.00"),
    ("kb-refund", "Refunds take 5 days"),
    ("kb-hours", "Open 9 to 17"),
];

/// The result of a call, as JSON text. `constant` is the configured value of a tool that always gives the same.
pub(crate) fn perform(behaviour: &str, arguments: &str, constant: Option<String>) -> Result<Json, Error> {
    let fields: Map<String, Value> = serde_json::from_str(arguments)
        .map_err(|error| Error::InvalidInput(failure(format!("the arguments are no JSON object: {error}"))))?;
    match behaviour {
        "add" => add(number(&fields, "a")?, number(&fields, "b")?),
        // The text as it came: a parsed copy could spell its numbers differently.
        "echo" => Ok(arguments.to_owned()),
        "upper" => Ok(json_text(&text(&fields, "text")?.to_uppercase())),
        "lookup" => Ok(json_text(&look_up(text(&fields, "key")?))),
        "fail" => Err(Error::Other(failure(format!("tool failed: {}", text(&fields, "reason")?)))),
        "slow" => sleep(&fields),
        "ask" => Ok(json_text(&ask::ask(text(&fields, "question")?)?)),
        "concat" => Ok(json_text(&format!("{}{}", text(&fields, "a")?, text(&fields, "b")?))),
        "constant" => constant
            .ok_or_else(|| Error::InvalidInput(failure("a constant tool has no `value.NAME` configured".to_owned()))),
        other => Err(Error::InvalidInput(failure(format!("there is no behaviour `{other}`")))),
    }
}

fn add(left: &Value, right: &Value) -> Result<Json, Error> {
    if let (Some(left), Some(right)) = (integer(left), integer(right))
        && let Some(sum) = left.checked_add(right)
    {
        return Ok(sum.to_string());
    }
    let sum = left.as_f64().unwrap_or(f64::NAN) + right.as_f64().unwrap_or(f64::NAN);
    match serde_json::Number::from_f64(sum) {
        Some(sum) => Ok(sum.to_string()),
        None => Err(Error::InvalidInput(failure("the sum is beyond all numbers of JSON".to_owned()))),
    }
}

fn integer(value: &Value) -> Option<i128> {
    value.as_i64().map(i128::from).or_else(|| value.as_u64().map(i128::from))
}

fn look_up(key: &str) -> String {
    match ENTRIES.iter().find(|(name, _)| *name == key) {
        Some((_, entry)) => (*entry).to_owned(),
        None => format!("no entry for {key}"),
    }
}

fn sleep(fields: &Map<String, Value>) -> Result<Json, Error> {
    let milliseconds = number(fields, "ms")?
        .as_u64()
        .ok_or_else(|| Error::InvalidInput(failure("`ms` has to be an integer that is not negative".to_owned())))?;
    thread::sleep(Duration::from_millis(milliseconds));
    Ok(json_text(&format!("slept {milliseconds}")))
}

fn text<'a>(fields: &'a Map<String, Value>, name: &str) -> Result<&'a str, Error> {
    fields
        .get(name)
        .and_then(Value::as_str)
        .ok_or_else(|| Error::InvalidInput(failure(format!("`{name}` has to be a text"))))
}

fn number<'a>(fields: &'a Map<String, Value>, name: &str) -> Result<&'a Value, Error> {
    fields
        .get(name)
        .filter(|value| value.is_number())
        .ok_or_else(|| Error::InvalidInput(failure(format!("`{name}` has to be a number"))))
}

fn json_text(text: &str) -> Json {
    Value::from(text).to_string()
}
