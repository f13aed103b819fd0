//! The comparison of what was observed with what a case expects.

use hotcell_graph::Value;

use crate::case_file::{CaseFile, Expect, Interrupt, Status, ToolCall};
use crate::flow;
use crate::matcher;
use crate::mismatch::{Mismatch, shown, shown_list};
use crate::observed::{Observed, Pause, ToolInvocation};
use crate::pairing::pair;
use crate::requests;

/// Every difference. Keys that belong to other dialects are not looked at here: whoever plays a case has refused
/// them already.
pub fn check(case: &CaseFile, observed: &Observed) -> Vec<Mismatch> {
    let expect = &case.expect;
    let mut mismatches = Vec::new();
    mismatches.extend(status(expect, observed));
    if let Some(flow) = &observed.flow {
        mismatches.extend(flow::check(expect, flow));
    } else if let Some(output) = &expect.output {
        mismatches.extend(matcher::text("expect.output", &output.0, observed.output.as_deref()));
    }
    if let Some(state) = &expect.state {
        mismatches.extend(matcher::subset("expect.state", &state.0, Some(&observed.state)));
    }
    if let Some(detail) = &expect.detail
        && Some(detail) != observed.detail.as_ref()
    {
        let got = observed.detail.as_deref().unwrap_or("(none)");
        mismatches.push(Mismatch::new("expect.detail", detail, got));
    }
    for (name, status) in expect.nodes.iter().flatten() {
        let got = observed.nodes.iter().find(|(known, _)| known == name).map_or("(no such node)", |(_, got)| got);
        if got != status {
            mismatches.push(Mismatch::new(format!("expect.nodes.{name}"), status, got));
        }
    }
    if let Some(visited) = &expect.visited
        && *visited != observed.visited
    {
        mismatches.push(Mismatch::new("expect.visited", shown_list(visited), shown_list(&observed.visited)));
    }
    if let Some(interrupts) = &expect.interrupts {
        mismatches.extend(pauses(interrupts, &observed.interrupts));
    }
    if let Some(fragments) = &expect.error_contains {
        mismatches.extend(contains_all("expect.error_contains", fragments, observed.error.as_deref()));
    }
    if let Some(fragments) = &expect.warnings_contain {
        mismatches.extend(contains_all("expect.warnings_contain", fragments, Some(&observed.warnings)));
    }
    mismatches.extend(exchange(expect, observed));
    if let Some(calls) = &expect.tool_calls {
        mismatches.extend(tool_calls(calls, &observed.tool_calls));
    }
    if observed.canary_connections > 0 {
        let got = format!("{} connections", observed.canary_connections);
        mismatches.push(Mismatch::new("canary", "nothing connects to the listener", got));
    }
    mismatches
}

fn status(expect: &Expect, observed: &Observed) -> Vec<Mismatch> {
    let mut mismatches = Vec::new();
    if !expect.status.0.contains(&observed.status) {
        let expected: Vec<&str> = expect.status.0.iter().map(|status| status.as_str()).collect();
        let got = match (&observed.error, &observed.output) {
            (Some(error), _) => format!("{}: {error}", observed.status.as_str()),
            (None, Some(output)) => {
                format!("{} with the output {}", observed.status.as_str(), shown(&Value::from(output.as_str())))
            }
            (None, None) => observed.status.as_str().to_owned(),
        };
        mismatches.push(Mismatch::new("expect.status", expected.join(" or "), got));
    }
    if observed.status == Status::Rejected {
        let asked = &observed.exchange.requests;
        if !asked.is_empty() {
            let expected = "no model is called where a case is rejected";
            mismatches.push(Mismatch::new("expect.status", expected, requests::all_requests(asked)));
        }
        if !observed.tool_calls.is_empty() {
            let expected = "no tool is called where a case is rejected";
            mismatches.push(Mismatch::new("expect.status", expected, invocations(&observed.tool_calls)));
        }
    }
    mismatches
}

fn exchange(expect: &Expect, observed: &Observed) -> Vec<Mismatch> {
    let exchange = &observed.exchange;
    let mut mismatches = Vec::new();
    if !exchange.unexpected.is_empty() {
        let got = format!("none was left for\n{}", requests::all_requests(&exchange.unexpected));
        mismatches.push(Mismatch::new("model", "a reply for each request", got));
    }
    match expect.model_calls {
        Some(calls) if calls != exchange.requests.len() => {
            let got = format!("{}\n{}", exchange.requests.len(), requests::all_requests(&exchange.requests));
            mismatches.push(Mismatch::new("expect.model_calls", calls.to_string(), got));
        }
        Some(_) => {}
        // What was refused has not begun, so there is no end at which replies could be left.
        None if observed.status == Status::Rejected => {}
        None if exchange.unserved.is_empty() => {}
        None => {
            let left: Vec<String> = exchange.unserved.iter().map(ToString::to_string).collect();
            let got = format!("{} left\n{}", left.len(), left.join("\n"));
            mismatches.push(Mismatch::new("model", "every reply is used", got));
        }
    }
    for problem in &exchange.problems {
        mismatches.push(Mismatch::new("model", "requests that can be answered", problem));
    }
    if let Some(matchers) = &expect.model_requests {
        let place = "expect.model_requests";
        mismatches.extend(requests::compare(place, matchers, expect.model_requests_order, &exchange.requests));
    }
    mismatches
}

/// Whether all fragments occur, without regard to case.
fn contains_all(place: &str, fragments: &[String], text: Option<&str>) -> Vec<Mismatch> {
    let lower = text.unwrap_or_default().to_lowercase();
    let missing: Vec<&String> = fragments.iter().filter(|fragment| !lower.contains(&fragment.to_lowercase())).collect();
    if missing.is_empty() && text.is_some() {
        return Vec::new();
    }
    let missing = if text.is_some() { missing } else { fragments.iter().collect() };
    let got = match text {
        None => "(there is no error)".to_owned(),
        Some("") => "(nothing)".to_owned(),
        Some(text) => text.to_owned(),
    };
    vec![Mismatch::new(place, shown_list(&missing), got)]
}

fn pauses(expected: &[Interrupt], got: &[Pause]) -> Vec<Mismatch> {
    let place = "expect.interrupts";
    if expected.len() != got.len() {
        let lines: Vec<String> = got
            .iter()
            .map(|pause| format!("{}: {}", pause.node, Value::from(pause.value.as_str()).to_json()))
            .collect();
        let got = format!("{} pauses\n{}", got.len(), lines.join("\n"));
        return vec![Mismatch::new(place, format!("{} pauses", expected.len()), got.trim_end())];
    }
    let mut mismatches = Vec::new();
    for (index, (expected, got)) in expected.iter().zip(got).enumerate() {
        let place = format!("{place}[{index}]");
        if let Some(node) = &expected.node
            && *node != got.node
        {
            mismatches.push(Mismatch::new(format!("{place}.node"), node, &got.node));
        }
        if let Some(value) = &expected.value {
            mismatches.extend(matcher::text(&format!("{place}.value"), &value.0, Some(&got.value)));
        }
        if let Some(options) = &expected.options
            && *options != got.options
        {
            mismatches.push(Mismatch::new(format!("{place}.options"), shown_list(options), shown_list(&got.options)));
        }
        let tool = got.call.as_ref().map(|call| call.tool.as_str());
        if expected.tool.is_some() && expected.tool.as_deref() != tool {
            let wanted = expected.tool.as_deref().unwrap_or_default();
            mismatches.push(Mismatch::new(format!("{place}.tool"), wanted, tool.unwrap_or("(no call of a tool)")));
        }
        if let Some(arguments) = &expected.arguments {
            let got = got.call.as_ref().map(|call| &call.arguments);
            mismatches.extend(matcher::subset(&format!("{place}.arguments"), &arguments.0, got));
        }
    }
    mismatches
}

fn tool_calls(expected: &[ToolCall], got: &[ToolInvocation]) -> Vec<Mismatch> {
    let place = "expect.tool_calls";
    let matches = |call: usize, invocation: usize| {
        let invocation = &got[invocation];
        requests::compare_call("", &expected[call], &invocation.name, &invocation.arguments).is_empty()
    };
    let pairs = pair(expected.len(), got.len(), matches);
    if pairs.iter().all(Option::is_some) && expected.len() == got.len() {
        return Vec::new();
    }
    let wanted: Vec<String> = expected
        .iter()
        .map(|call| match &call.arguments {
            Some(arguments) => format!("{}({})", call.name, arguments.0.to_json()),
            None => format!("{}(anything)", call.name),
        })
        .collect();
    let wanted = if wanted.is_empty() { "no calls".to_owned() } else { wanted.join("\n") };
    vec![Mismatch::new(place, wanted, invocations(got))]
}

fn invocations(calls: &[ToolInvocation]) -> String {
    let lines: Vec<String> = calls.iter().map(|call| format!("{}({})", call.name, call.arguments.to_json())).collect();
    if lines.is_empty() { "no calls".to_owned() } else { lines.join("\n") }
}

#[cfg(test)]
mod tests {
    use hotcell_graph::value::parse_json;
    use hotcell_loopback::ModelRequest;
    use serde_json::{Value, json};

    use super::check;
    use crate::case_file::{CaseFile, Status};
    use crate::observed::{ModelExchange, Observed, Pause, ToolInvocation};

    fn request() -> ModelRequest {
        ModelRequest {
            model: "m".to_owned(),
            messages: Vec::new(),
            tools: Vec::new(),
            temperature: None,
            top_p: None,
            max_tokens: None,
            response_format: None,
            stream: false,
            body: Value::Null,
        }
    }

    fn invocation(name: &str, arguments: &str) -> ToolInvocation {
        ToolInvocation { name: name.to_owned(), arguments: parse_json(arguments).expect("JSON") }
    }

    /// A run that completed after one question, one model request and two calls of a tool.
    fn observed() -> Observed {
        Observed {
            status: Status::Completed,
            error: None,
            detail: Some("timeout".to_owned()),
            nodes: vec![("a".to_owned(), "success".to_owned())],
            warnings: "graph.yaml:3:1: warning: [Lost] nothing leads here".to_owned(),
            output: Some("done\n".to_owned()),
            state: parse_json(r#"{"n":3,"list":["a"]}"#).expect("JSON"),
            visited: vec!["a".to_owned(), "b".to_owned()],
            interrupts: vec![Pause {
                node: "a".to_owned(),
                value: "Go?".to_owned(),
                options: vec!["yes".to_owned()],
                call: None,
            }],
            tool_calls: vec![invocation("add", r#"{"a":1,"b":2}"#), invocation("add", r#"{"a":5,"b":2}"#)],
            exchange: ModelExchange { requests: vec![request()], ..ModelExchange::default() },
            canary_connections: 0,
            flow: None,
        }
    }

    fn differences(expect: Value, observed: &Observed) -> Vec<String> {
        let case = json!({
            "title": "t", "dialect": "loki", "covers": [], "entry": "graph.yaml", "why": "w", "expect": expect,
        });
        let case = CaseFile::parse(&case.to_string()).expect("a case");
        check(&case, observed).into_iter().map(|mismatch| mismatch.place).collect()
    }

    #[test]
    fn each_key_of_an_expectation() {
        let cases: Vec<(Value, &[&str])> = vec![
            (json!({"status": "completed"}), &[]),
            (json!({"status": ["rejected", "completed"]}), &[]),
            (json!({"status": "failed"}), &["expect.status"]),
            (json!({"status": ["rejected", "failed"]}), &["expect.status"]),
            (json!({"status": "completed", "output": "done"}), &[]),
            (json!({"status": "completed", "output": {"not_contains": "on"}}), &["expect.output"]),
            (json!({"status": "completed", "state": {"n": 3.0}}), &[]),
            (json!({"status": "completed", "state": {"list": []}}), &["expect.state.list"]),
            (json!({"status": "completed", "detail": "timeout", "nodes": {"a": "success"}}), &[]),
            (
                json!({"status": "completed", "detail": "x", "nodes": {"a": "failed", "b": "success"}}),
                &["expect.detail", "expect.nodes.a", "expect.nodes.b"],
            ),
            (json!({"status": "completed", "visited": ["a", "b"]}), &[]),
            (json!({"status": "completed", "visited": ["a"]}), &["expect.visited"]),
            (json!({"status": "completed", "visited": ["b", "a"]}), &["expect.visited"]),
            (json!({"status": "completed", "interrupts": [{}]}), &[]),
            (json!({"status": "completed", "interrupts": []}), &["expect.interrupts"]),
            (
                json!({"status": "completed", "interrupts": [{"node": "a", "value": {"contains": "Go"}, "options": ["yes"]}]}),
                &[],
            ),
            (
                json!({"status": "completed", "interrupts": [{"node": "b", "value": "Stop?", "options": []}]}),
                &["expect.interrupts[0].node", "expect.interrupts[0].value", "expect.interrupts[0].options"],
            ),
            (json!({"status": "completed", "error_contains": ["x"]}), &["expect.error_contains"]),
            (json!({"status": "completed", "error_contains": []}), &["expect.error_contains"]),
            (json!({"status": "completed", "warnings_contain": ["lost", "WARNING"]}), &[]),
            (json!({"status": "completed", "warnings_contain": ["lost", "found"]}), &["expect.warnings_contain"]),
            (json!({"status": "completed", "model_calls": 1}), &[]),
            (json!({"status": "completed", "model_calls": 0}), &["expect.model_calls"]),
            (json!({"status": "completed", "model_requests": [{}]}), &[]),
            (json!({"status": "completed", "model_requests": [{}, {}]}), &["expect.model_requests"]),
            (
                json!({"status": "completed", "tool_calls": [{"name": "add", "arguments": {"b": 2}}, {"name": "add", "arguments": {"a": 1}}]}),
                &[],
            ),
            (json!({"status": "completed", "tool_calls": [{"name": "add"}]}), &["expect.tool_calls"]),
            (
                json!({"status": "completed", "tool_calls": [{"name": "add"}, {"name": "add"}, {"name": "add"}]}),
                &["expect.tool_calls"],
            ),
            (
                json!({"status": "completed", "tool_calls": [{"name": "add"}, {"name": "upper"}]}),
                &["expect.tool_calls"],
            ),
        ];
        for (expect, places) in cases {
            assert_eq!(differences(expect.clone(), &observed()), places, "{expect}");
        }
    }

    #[test]
    fn errors_are_compared_without_case() {
        let failed = Observed { status: Status::Failed, error: Some("Node `Ask` FAILED".to_owned()), ..observed() };
        assert!(differences(json!({"status": "failed", "error_contains": ["ask", "failed"]}), &failed).is_empty());
        let found = differences(json!({"status": "failed", "error_contains": ["ask", "timed out"]}), &failed);
        assert_eq!(found, ["expect.error_contains"]);
    }

    #[test]
    fn replies_and_requests_have_to_meet() {
        let mut left = observed();
        left.exchange.unserved = vec![json!({"content": "unused"})];
        assert_eq!(differences(json!({"status": "completed"}), &left), ["model"]);
        assert!(differences(json!({"status": "completed", "model_calls": 1}), &left).is_empty());

        let mut asked_too_often = observed();
        asked_too_often.exchange.unexpected = vec![request()];
        assert_eq!(differences(json!({"status": "completed", "model_calls": 1}), &asked_too_often), ["model"]);

        let mut broken = observed();
        broken.exchange.problems = vec!["nothing answers GET /".to_owned()];
        assert_eq!(differences(json!({"status": "completed"}), &broken), ["model"]);
    }

    #[test]
    fn what_is_rejected_has_called_nothing() {
        let rejected = Observed { status: Status::Rejected, ..observed() };
        assert_eq!(differences(json!({"status": "rejected"}), &rejected), ["expect.status", "expect.status"]);
    }

    #[test]
    fn a_connection_to_the_canary_fails_any_case() {
        let reached = Observed { canary_connections: 1, ..observed() };
        assert_eq!(differences(json!({"status": "completed"}), &reached), ["canary"]);
    }
}
