//! What the scripts and tools of the benchmarks do, whatever they are called through.

use serde_json::{Value, json};

/// The upper-case form of a text and its length, as JSON text.
pub fn answer(text: &str) -> String {
    json!({ "upper": text.to_uppercase(), "length": text.len() }).to_string()
}

/// The same as a tool: `arguments` is the JSON text of an object with a `text`.
///
/// # Errors
///
/// Says in words what is wrong with the arguments.
pub fn call(arguments: &str) -> Result<String, String> {
    let arguments: Value =
        serde_json::from_str(arguments).map_err(|error| format!("the arguments are no JSON: {error}"))?;
    let text = arguments["text"].as_str().ok_or("`text` has to be a text")?;
    Ok(answer(text))
}

/// What an agent of a mesh does: one more than the `n` that it is given, none counts as 0, as JSON text.
///
/// # Errors
///
/// Says in words what is wrong with the arguments.
pub fn count(arguments: &str) -> Result<String, String> {
    let arguments: Value =
        serde_json::from_str(arguments).map_err(|error| format!("the arguments are no JSON: {error}"))?;
    let n = arguments["n"].as_u64().unwrap_or_default();
    Ok(json!({ "n": n + 1 }).to_string())
}
