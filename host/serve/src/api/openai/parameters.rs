//! Parameters of requests that change nothing here. What a client asks for by them and agents do not do is refused by name; what says
//! what is so anyway is taken.

use serde_json::Value;

use crate::problem::{Problem, shown};
use crate::view::Object;

/// What may be said with a parameter.
pub(super) enum Says {
    /// Nothing: null, or something empty
    Nothing(&'static str),
    /// One of these, as JSON
    Only(&'static [&'static str]),
    /// Anything: it is about something that has no part in this
    Anything,
}

/// Parameters of chat completions.
pub(super) const CHAT: &[(&str, Says)] = &[
    ("audio", Says::Nothing("")),
    ("frequency_penalty", Says::Only(&["0"])),
    ("function_call", Says::Only(&["\"none\"", "\"auto\""])),
    ("functions", Says::Nothing(TOOLS)),
    ("logit_bias", Says::Nothing("")),
    ("logprobs", Says::Only(&["false"])),
    ("max_completion_tokens", Says::Nothing(LIMITS)),
    ("max_tokens", Says::Nothing(LIMITS)),
    ("modalities", Says::Only(&["[\"text\"]"])),
    ("n", Says::Only(&["1"])),
    ("parallel_tool_calls", Says::Anything),
    ("prediction", Says::Nothing("")),
    ("presence_penalty", Says::Only(&["0"])),
    ("prompt_cache_key", Says::Anything),
    ("prompt_cache_retention", Says::Anything),
    ("reasoning_effort", Says::Nothing(MODEL)),
    ("response_format", Says::Only(&["{\"type\":\"text\"}"])),
    ("safety_identifier", Says::Anything),
    ("seed", Says::Nothing(MODEL)),
    ("service_tier", Says::Only(&["\"auto\"", "\"default\""])),
    ("stop", Says::Nothing(MODEL)),
    ("store", Says::Only(&["false"])),
    ("temperature", Says::Only(&["1"])),
    ("tool_choice", Says::Only(&["\"none\"", "\"auto\""])),
    ("tools", Says::Nothing(TOOLS)),
    ("top_logprobs", Says::Only(&["0"])),
    ("top_p", Says::Only(&["1"])),
    ("user", Says::Anything),
    ("verbosity", Says::Nothing(MODEL)),
    ("web_search_options", Says::Nothing(TOOLS)),
];

/// Parameters of responses.
pub(super) const RESPONSES: &[(&str, Says)] = &[
    ("conversation", Says::Nothing("`previous_response_id` goes on with a conversation")),
    ("include", Says::Nothing("")),
    ("instructions", Says::Nothing(INSTRUCTIONS)),
    ("max_output_tokens", Says::Nothing(LIMITS)),
    ("max_tool_calls", Says::Nothing(LIMITS)),
    ("parallel_tool_calls", Says::Anything),
    ("prompt", Says::Nothing(INSTRUCTIONS)),
    ("prompt_cache_key", Says::Anything),
    ("prompt_cache_retention", Says::Anything),
    ("reasoning", Says::Nothing(MODEL)),
    ("safety_identifier", Says::Anything),
    ("service_tier", Says::Only(&["\"auto\"", "\"default\""])),
    ("store", Says::Only(&["true"])),
    ("stream_options", Says::Only(&["{\"include_obfuscation\":false}"])),
    ("temperature", Says::Only(&["1"])),
    ("text", Says::Only(&["{\"format\":{\"type\":\"text\"}}"])),
    ("tool_choice", Says::Only(&["\"none\"", "\"auto\""])),
    ("tools", Says::Nothing(TOOLS)),
    ("top_logprobs", Says::Only(&["0"])),
    ("top_p", Says::Only(&["1"])),
    ("truncation", Says::Only(&["\"disabled\""])),
    ("user", Says::Anything),
];

const TOOLS: &str = "an agent has its own tools";
const LIMITS: &str = "an agent has its own limits";
const MODEL: &str = "an agent says itself how its models are asked";
pub(super) const INSTRUCTIONS: &str = "an agent has its own instructions";

/// Refuses what is said with parameters and not done here.
pub(super) fn check(said: &Object, known: &[(&str, Says)]) -> Result<(), Problem> {
    for (name, value) in said {
        let Some((_, says)) = known.iter().find(|(known, _)| known == name) else {
            return Err(refused(name, format!("there is no parameter `{}`", shown(name))));
        };
        if is_nothing(value) {
            continue;
        }
        match says {
            Says::Anything => {}
            Says::Only(values) if values.iter().any(|only| is_same(only, value)) => {}
            Says::Only(values) => {
                let values = values.join(" or ");
                return Err(refused(name, format!("`{name}` is not supported with any value but {values}")));
            }
            Says::Nothing("") => return Err(refused(name, format!("`{name}` is not supported"))),
            Says::Nothing(instead) => return Err(refused(name, format!("`{name}` is not supported: {instead}"))),
        }
    }
    Ok(())
}

/// What is not supported, by the name of a parameter.
pub(super) fn refused(name: &str, detail: String) -> Problem {
    Problem::unprocessable(detail)
        .kind("unsupported-parameter", "The parameter is not supported")
        .with("param", shown(name))
}

/// A value of a parameter that cannot be used.
pub(super) fn wrong(name: &str, detail: impl Into<String>) -> Problem {
    Problem::unprocessable(detail).kind("invalid-parameter", "The parameter cannot be used").with("param", name)
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(members) => members.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}

/// Whether a value is what is written; `1.0` is `1`.
fn is_same(only: &str, value: &Value) -> bool {
    let only: Value = serde_json::from_str(only).unwrap_or_default();
    match (only.as_f64(), value.as_f64()) {
        (Some(only), Some(value)) => only == value,
        _ => only == *value,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::view::object;

    #[test]
    fn what_a_table_takes_can_be_read_and_has_its_place_in_the_order() {
        for table in [CHAT, RESPONSES] {
            assert!(table.is_sorted_by_key(|(name, _)| *name));
            for (name, says) in table {
                let Says::Only(values) = says else { continue };
                for value in *values {
                    let value: Value = serde_json::from_str(value).expect("JSON");
                    check(&object(json!({ *name: value })), table).expect("taken");
                }
            }
        }
    }

    #[test]
    fn what_is_not_done_is_refused_by_name_and_what_says_nothing_is_taken() {
        let said = |value: Value| check(&object(value), CHAT);
        for value in [json!({ "n": 2 }), json!({ "n": "1" }), json!({ "temperature": 0.7 }), json!({ "tools": [{}] })] {
            let name = value.as_object().and_then(|object| object.keys().next().cloned()).expect("a name");
            let problem = said(value).expect_err("refused");
            assert!(problem.detail.contains(&name) && problem.more["param"] == name, "{problem:?}");
        }
        assert!(said(json!({ "anything": null })).is_err());
        said(json!({ "n": 1.0, "tools": [], "stop": null, "logit_bias": {}, "user": "x" })).expect("taken");
    }
}
