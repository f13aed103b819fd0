//! Comparing what came of a case with what had to come of it.

use hotcell_cells::{CellError, ConnectorReply, GuestErrorKind, NodeOutcome, Verdict};
use serde_json::Value;

use crate::case::{Expectation, ExpectedVerdict};

/// What stands for the output of a connector that answers later.
const ACCEPTED: &str = "accepted";

/// What a call gave, whatever was called.
#[derive(Debug)]
pub(crate) enum Gave {
    /// JSON text
    Text(String),
    Outcome(NodeOutcome),
    Verdict(Verdict),
    Reply(ConnectorReply),
}

/// What is different from what had to be, in words; nothing where it fits.
pub(crate) fn difference(expected: &Expectation, gave: &Result<Gave, CellError>) -> Option<String> {
    match (expected, gave) {
        (Expectation::Output(output), Ok(Gave::Text(text) | Gave::Reply(ConnectorReply::Done(text)))) => {
            same_json("the output", output, text)
        }
        (Expectation::Error { kind, message }, Err(CellError::Guest { kind: found, message: text, .. })) => {
            let found = name_of(*found);
            let kind_fits = kind.as_deref().is_none_or(|kind| kind == found);
            (!kind_fits || !text.contains(message.as_str())).then(|| {
                let kind = kind.as_deref().unwrap_or("any");
                format!("expected an error of kind {kind} with `{message}`, got {found}: {text}")
            })
        }
        (Expectation::Error { kind: None, message }, Err(error)) => {
            let text = error.to_string();
            (!text.contains(message.as_str())).then(|| format!("expected an error with `{message}`, got: {text}"))
        }
        (Expectation::Question(question), Err(CellError::Suspended { question: asked })) => {
            (asked != question).then(|| format!("expected the question `{question}`, got `{asked}`"))
        }
        (Expectation::Limit(limit), Err(CellError::Limit { limit: reached, detail })) => {
            (reached.name() != limit).then(|| format!("expected the limit `{limit}`, got `{reached}`: {detail}"))
        }
        (Expectation::Verdict(expected), Ok(Gave::Verdict(verdict))) => verdicts(expected, verdict),
        (Expectation::Outcome { outputs, branch }, Ok(Gave::Outcome(outcome))) => {
            if *branch != outcome.branch {
                return Some(format!("expected the branch {branch:?}, got {:?}", outcome.branch));
            }
            same_json("the outputs", outputs, &outcome.outputs)
        }
        (Expectation::Output(output), Ok(Gave::Reply(ConnectorReply::Accepted))) if output == ACCEPTED => None,
        (expected, Ok(gave)) => Some(format!("expected {}, got {}", in_words(expected), shown(gave))),
        (expected, Err(error)) => Some(format!("expected {}, but the call failed: {error}", in_words(expected))),
    }
}

fn verdicts(expected: &ExpectedVerdict, verdict: &Verdict) -> Option<String> {
    match (expected, verdict) {
        (ExpectedVerdict::Proceed, Verdict::Proceed) => None,
        (ExpectedVerdict::Change(event), Verdict::Change(text)) => same_json("the changed event", event, text),
        (ExpectedVerdict::Refuse(part), Verdict::Refuse(reason)) if reason.contains(part.as_str()) => None,
        (expected, verdict) => Some(format!("expected the verdict {expected:?}, got {verdict:?}")),
    }
}

/// Compares a JSON text with a value. The order of keys does not matter.
fn same_json(what: &str, expected: &Value, text: &str) -> Option<String> {
    match serde_json::from_str::<Value>(text) {
        Ok(found) if found == *expected => None,
        Ok(found) => Some(format!("{what} is different\n    expected  {expected}\n    got       {found}")),
        Err(error) => Some(format!("{what} is not valid JSON ({error}): {text}")),
    }
}

fn name_of(kind: GuestErrorKind) -> &'static str {
    match kind {
        GuestErrorKind::InvalidInput => "invalid-input",
        GuestErrorKind::Denied => "denied",
        GuestErrorKind::Unavailable => "unavailable",
        GuestErrorKind::Other => "other",
    }
}

fn in_words(expected: &Expectation) -> String {
    match expected {
        Expectation::Output(output) => format!("the output {output}"),
        Expectation::Error { kind, message } => {
            format!("an error of kind {} with `{message}`", kind.as_deref().unwrap_or("any"))
        }
        Expectation::Question(question) => format!("the question `{question}`"),
        Expectation::Verdict(verdict) => format!("the verdict {verdict:?}"),
        Expectation::Outcome { outputs, branch } => format!("the outputs {outputs} and the branch {branch:?}"),
        Expectation::Limit(limit) => format!("the limit `{limit}`"),
    }
}

fn shown(gave: &Gave) -> String {
    match gave {
        Gave::Text(text) => text.clone(),
        Gave::Outcome(outcome) => format!("the outputs {} and the branch {:?}", outcome.outputs, outcome.branch),
        Gave::Verdict(verdict) => format!("the verdict {verdict:?}"),
        Gave::Reply(ConnectorReply::Done(text)) => text.clone(),
        Gave::Reply(ConnectorReply::Accepted) => format!("`{ACCEPTED}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(expected: &str, gave: Result<Gave, CellError>) -> String {
        let expected: Expectation = serde_json::from_str(expected).unwrap();
        difference(&expected, &gave).unwrap_or_default()
    }

    #[test]
    fn what_fits_has_no_difference_and_what_does_not_has_one() {
        let text = |text: &str| Ok(Gave::Text(text.to_owned()));
        assert_eq!(compare(r#"{ "output": { "a": 1, "b": [2] } }"#, text(r#"{"b":[2],"a":1}"#)), "");
        assert!(compare(r#"{ "output": 1 }"#, text("2")).contains("expected  1\n    got       2"));
        assert!(compare(r#"{ "output": 1 }"#, text("no")).contains("is not valid JSON"));
        assert!(compare(r#"{ "question": "?" }"#, text("2")).contains("expected the question `?`, got 2"));
        let error = || {
            let (kind, message) = (GuestErrorKind::Denied, "no entry".to_owned());
            Err(CellError::Guest { kind, message, metadata: Vec::new() })
        };
        assert_eq!(compare(r#"{ "error": { "kind": "denied", "message": "entry" } }"#, error()), "");
        assert_eq!(compare(r#"{ "error": {} }"#, error()), "");
        assert!(compare(r#"{ "error": { "kind": "other" } }"#, error()).contains("got denied: no entry"));
        assert!(compare(r#"{ "output": 1 }"#, error()).contains("but the call failed: no entry"));
        let verdict = Ok(Gave::Verdict(Verdict::Refuse("too secret".to_owned())));
        assert_eq!(compare(r#"{ "verdict": { "refuse": "secret" } }"#, verdict), "");
        assert!(
            !compare(r#"{ "verdict": "proceed" }"#, Ok(Gave::Verdict(Verdict::Change("{}".to_owned())))).is_empty()
        );
    }
}
