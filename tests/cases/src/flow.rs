//! What a case of the dialect `agent-spec` expects beside what all cases do.

use hotcell_graph::{Object, Value};

use crate::case_file::Expect;
use crate::matcher;
use crate::mismatch::{Mismatch, shown};
use crate::observed::FlowObserved;
use crate::{http, requests};

/// Every difference.
pub fn check(expect: &Expect, observed: &FlowObserved) -> Vec<Mismatch> {
    let mut mismatches = Vec::new();
    if let Some(output) = &expect.output {
        mismatches.extend(outputs(&output.0, &observed.outputs));
    }
    if let Some(branch) = &expect.branch
        && Some(branch) != observed.branch.as_ref()
    {
        let got = observed.branch.as_deref().unwrap_or("(none)");
        mismatches.push(Mismatch::new("expect.branch", branch, got));
    }
    if let Some(messages) = &expect.messages {
        mismatches.extend(requests::some_messages("expect.messages", messages, &observed.messages));
    }
    for excluded in expect.messages_exclude.iter().flatten() {
        if observed.messages.iter().any(|message| requests::occurs(excluded, message)) {
            let expected = format!("no message with {}", Value::from(excluded.as_str()).to_json());
            let got = requests::messages(&observed.messages);
            mismatches.push(Mismatch::new("expect.messages_exclude", expected, got));
        }
    }
    if let Some(expected) = &expect.http_requests {
        mismatches.extend(http::compare("expect.http_requests", expected, &observed.web));
    }
    if let Some(request) = observed.unanswered.first() {
        mismatches.push(Mismatch::new("http", "an entry for each request", http::shown(request)));
    }
    mismatches
}

/// Outputs are compared exactly: every name, and texts with their white space. One that is `null` may be missing.
fn outputs(expected: &Value, got: &Value) -> Vec<Mismatch> {
    let place = "expect.output";
    let (Value::Object(wanted), Value::Object(there)) = (expected, got) else {
        return matcher::subset(place, expected, Some(got));
    };
    let known = |object: &Object| -> Object {
        object
            .iter()
            .filter(|(_, value)| **value != Value::Null)
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    };
    let (wanted, there) = (known(wanted), known(there));
    let mut mismatches = matcher::subset(place, &Value::Object(wanted.clone()), Some(&Value::Object(there.clone())));
    for (name, value) in there.iter().filter(|(name, _)| wanted.get(name).is_none()) {
        mismatches.push(Mismatch::new(format!("{place}.{name}"), "(no such output)", shown(value)));
    }
    mismatches
}
