//! Arguments of calls of tools: read, and held against the parameters of the tool.

use hotcell_graph::ir::Arguments;
use hotcell_graph::json_schema::JsonSchema;
use hotcell_graph::value::{JsonError, parse_json};
use hotcell_graph::{Object, Value};
use hotcell_models::ToolSpec;
use thiserror::Error;

/// Most problems that are named of one call.
const MAX_PROBLEMS: usize = 5;

/// Why something cannot be the arguments of a call.
#[derive(Debug, Error)]
pub enum ArgumentsError {
    /// No JSON
    #[error("they are not JSON: {0}")]
    NotJson(#[from] JsonError),
    /// Another kind of value, which is named
    #[error("they have to be an object, not {0}")]
    NoObject(&'static str),
    /// What does not fit the parameters of the tool
    #[error("{}", .0.join("; "))]
    Misfit(Vec<String>),
}

/// The arguments of a call, which a model writes as a text. Nothing at all is no arguments.
pub(super) fn parse_arguments(arguments: &str) -> Result<Object, ArgumentsError> {
    let arguments = if arguments.trim().is_empty() { "{}" } else { arguments };
    match parse_json(arguments)? {
        Value::Object(arguments) => Ok(arguments),
        other => Err(ArgumentsError::NoObject(other.a_kind())),
    }
}

/// Arguments that a model wrote must be a JSON object that fits the tool's parameters.
pub(super) fn check_arguments(tool: &ToolSpec, arguments: &str) -> Result<(), ArgumentsError> {
    read_arguments(&tool.parameters, arguments).map(drop)
}

/// The arguments of a call that somebody wrote as a text, if they fit the parameters of the tool. Whoever hands them on writes them anew: of
/// a text with a key that occurs twice, the tool could read another one than was looked at.
///
/// # Errors
/// When they are no JSON object, or do not fit.
pub fn read_arguments(parameters: &serde_json::Value, arguments: &str) -> Result<Object, ArgumentsError> {
    fit(parameters, parse_arguments(arguments)?, Arguments::Checked)
}

/// What a tool is given of the inputs of a node, if it fits the tool's parameters.
pub(super) fn fit(
    parameters: &serde_json::Value,
    mut inputs: Object,
    given: Arguments,
) -> Result<Object, ArgumentsError> {
    if given == Arguments::AsTheyAre {
        return Ok(inputs);
    }
    // A tool whose own schema is broken is not the caller's fault: its arguments go through.
    let Ok(schema) = JsonSchema::compiled(parameters) else { return Ok(inputs) };
    let mut value = serde_json::Value::from(&Value::Object(inputs.clone()));
    let mut problems = schema.problems(&value, MAX_PROBLEMS);
    // Nothing is unexpected where nothing is wrong.
    if given == Arguments::LetIn && !problems.is_empty() {
        let unexpected = schema.unexpected(&value);
        if let Some(object) = value.as_object_mut().filter(|_| !unexpected.is_empty()) {
            for name in &unexpected {
                object.shift_remove(name);
                inputs.remove(name);
            }
            problems = schema.problems(&value, MAX_PROBLEMS);
        }
    }
    if problems.is_empty() { Ok(inputs) } else { Err(ArgumentsError::Misfit(problems)) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn given(parameters: serde_json::Value, inputs: serde_json::Value, given: Arguments) -> Result<String, String> {
        let inputs = parse_arguments(&inputs.to_string()).map_err(|error| error.to_string())?;
        fit(&parameters, inputs, given).map(|object| Value::Object(object).to_json()).map_err(|error| error.to_string())
    }

    #[test]
    fn of_a_key_that_occurs_twice_the_value_that_is_looked_at_is_handed_on() {
        let parameters = json!({ "properties": { "path": { "enum": ["/tmp"] } } });
        let read = |text: &str| read_arguments(&parameters, text).map(|read| Value::Object(read).to_json()).ok();
        assert_eq!(read(r#"{"path":"/etc","path":"/tmp"}"#).as_deref(), Some(r#"{"path":"/tmp"}"#));
        assert_eq!(read(r#"{"path":"/tmp","path":"/etc"}"#), None);
    }

    #[test]
    fn a_closed_tool_is_given_what_it_lets_in_and_an_open_one_everything() {
        let inputs = json!({ "expression": "1", "session_id": "s", "x_trace": "t" });
        let properties = json!({ "expression": { "type": "string" } });
        let closed = json!({ "type": "object", "properties": properties, "additionalProperties": false });
        let patterned = json!({
            "properties": properties, "patternProperties": { "^x_": {} }, "additionalProperties": false
        });
        let put_together = json!({ "allOf": [{ "properties": properties }], "unevaluatedProperties": false });
        let referred = json!({ "$ref": "#/$defs/closed", "$defs": { "closed": closed } });
        let let_in = |schema: &serde_json::Value| given(schema.clone(), inputs.clone(), Arguments::LetIn);
        assert_eq!(let_in(&closed).as_deref(), Ok(r#"{"expression":"1"}"#));
        assert_eq!(let_in(&patterned).as_deref(), Ok(r#"{"expression":"1","x_trace":"t"}"#));
        assert_eq!(let_in(&put_together).as_deref(), Ok(r#"{"expression":"1"}"#));
        assert_eq!(let_in(&referred).as_deref(), Ok(r#"{"expression":"1"}"#));
        let all = Ok(r#"{"expression":"1","session_id":"s","x_trace":"t"}"#);
        assert_eq!(let_in(&json!({ "properties": properties })).as_deref(), all);
        // A schema that is none says nothing.
        assert_eq!(let_in(&json!({ "type": 5 })).as_deref(), all);
        assert_eq!(given(closed.clone(), inputs.clone(), Arguments::AsTheyAre).as_deref(), all);
        let refused = given(closed, inputs, Arguments::Checked).expect_err("it is closed");
        assert!(refused.contains("session_id"), "{refused}");
    }

    #[test]
    fn what_is_let_in_has_to_fit() {
        let closed = json!({
            "properties": { "expression": { "type": "string" } }, "required": ["expression"], "additionalProperties": false
        });
        let problem = |inputs| given(closed.clone(), inputs, Arguments::LetIn).expect_err("it does not fit");
        assert!(problem(json!({ "expression": 1, "more": 2 })).contains("is not of type \"string\""));
        assert!(problem(json!({ "more": 2 })).contains("\"expression\" is a required property"));
    }
}
