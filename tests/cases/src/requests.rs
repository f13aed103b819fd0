//! The comparison of model requests with what a case expects of them.

use hotcell_graph::Value;
use hotcell_loopback::{ModelRequest, RequestMessage};

use crate::case_file::{Json, Message, RequestMatcher, RequestOrder, ToolCall};
use crate::matcher;
use crate::mismatch::{Mismatch, shown, shown_list, shown_or_missing};
use crate::pairing::pair;

/// Compares the requests with the matchers, position by position or in any order. There may be more requests.
pub fn compare(
    place: &str,
    expected: &[RequestMatcher],
    order: Option<RequestOrder>,
    requests: &[ModelRequest],
) -> Vec<Mismatch> {
    match order {
        None => in_order(place, expected, requests),
        Some(RequestOrder::Any) => in_any_order(place, expected, requests),
    }
}

fn in_order(place: &str, expected: &[RequestMatcher], requests: &[ModelRequest]) -> Vec<Mismatch> {
    if expected.len() > requests.len() {
        let expected = format!("at least {} requests", expected.len());
        return vec![Mismatch::new(place, expected, all_requests(requests))];
    }
    expected
        .iter()
        .zip(requests)
        .enumerate()
        .flat_map(|(index, (matcher, request))| compare_request(&format!("{place}[{index}]"), matcher, request))
        .collect()
}

fn in_any_order(place: &str, expected: &[RequestMatcher], requests: &[ModelRequest]) -> Vec<Mismatch> {
    let matches =
        |matcher: usize, request: usize| compare_request("", &expected[matcher], &requests[request]).is_empty();
    let pairs = pair(expected.len(), requests.len(), matches);
    let unmatched = pairs.iter().enumerate().filter(|(_, request)| request.is_none());
    unmatched
        .map(|(index, _)| {
            let place = format!("{place}[{index}]");
            // The request that is wrong in the fewest ways is most likely the one that was meant. One that is not
            // wrong at all belongs to another matcher.
            let nearest = requests
                .iter()
                .map(|request| compare_request(&place, &expected[index], request))
                .filter(|mismatches| !mismatches.is_empty())
                .min_by_key(Vec::len)
                .unwrap_or_default();
            let nearest: String = nearest.iter().map(Mismatch::to_string).collect();
            let got = match nearest.trim_end() {
                "" => format!("none of its own among\n{}", all_requests(requests)),
                nearest => {
                    format!("the nearest request differs:\n{nearest}\nall requests:\n{}", all_requests(requests))
                }
            };
            Mismatch::new(&place, "some request that matches (in any order, each its own)", got)
        })
        .collect()
}

fn compare_request(place: &str, matcher: &RequestMatcher, request: &ModelRequest) -> Vec<Mismatch> {
    let mut mismatches = Vec::new();
    if let Some(expected) = &matcher.messages {
        mismatches.extend(all_messages(&format!("{place}.messages"), expected, &request.messages));
    }
    if let Some(expected) = &matcher.messages_include {
        mismatches.extend(some_messages(&format!("{place}.messages_include"), expected, &request.messages));
    }
    for excluded in matcher.excludes.iter().flatten() {
        if request.messages.iter().any(|message| occurs(excluded, message)) {
            let expected = format!("no message with {}", Value::from(excluded.as_str()).to_json());
            mismatches.push(Mismatch::new(format!("{place}.excludes"), expected, messages(&request.messages)));
        }
    }
    if let Some(expected) = &matcher.tools {
        mismatches.extend(tools(&format!("{place}.tools"), expected, request));
    }
    if let Some(expected) = &matcher.model
        && *expected != request.model
    {
        mismatches.push(Mismatch::new(format!("{place}.model"), expected, &request.model));
    }
    let number = |number: Option<f64>| number.map(|number| Value::from(&serde_json::Value::from(number)));
    let max_tokens = request.max_tokens.map(|tokens| Value::from(&serde_json::Value::from(tokens)));
    for (key, expected, got) in [
        ("temperature", &matcher.temperature, number(request.temperature)),
        ("top_p", &matcher.top_p, number(request.top_p)),
        ("max_tokens", &matcher.max_tokens, max_tokens),
    ] {
        if let Some(expected) = expected {
            mismatches.extend(setting(&format!("{place}.{key}"), expected, got.as_ref()));
        }
    }
    mismatches
}

/// A setting of a request; `null` is expected where it is not sent.
fn setting(place: &str, expected: &Json, got: Option<&Value>) -> Vec<Mismatch> {
    match (&expected.0, got) {
        (Value::Null, None) => Vec::new(),
        (Value::Null, Some(_)) => vec![Mismatch::new(place, "not sent (`null`)", shown_or_missing(got))],
        (expected, got) => matcher::subset(place, expected, got),
    }
}

fn tools(place: &str, expected: &[String], request: &ModelRequest) -> Vec<Mismatch> {
    let sorted = |mut names: Vec<String>| {
        names.sort();
        names
    };
    let offered = request.tool_names().into_iter().map(str::to_owned).collect();
    let (expected, offered) = (sorted(expected.to_vec()), sorted(offered));
    if expected == offered {
        return Vec::new();
    }
    vec![Mismatch::new(place, format!("exactly {}", shown_list(&expected)), shown_list(&offered))]
}

fn all_messages(place: &str, expected: &[Message], got: &[RequestMessage]) -> Vec<Mismatch> {
    if expected.len() != got.len() {
        return vec![Mismatch::new(place, format!("exactly {} messages", expected.len()), messages(got))];
    }
    expected
        .iter()
        .zip(got)
        .enumerate()
        .flat_map(|(index, (expected, got))| compare_message(&format!("{place}[{index}]"), expected, got))
        .collect()
}

/// Taking the first message that fits is right here: whatever comes later fits behind an earlier one as well.
pub(crate) fn some_messages(place: &str, expected: &[Message], got: &[RequestMessage]) -> Vec<Mismatch> {
    let mut rest = got;
    for (index, wanted) in expected.iter().enumerate() {
        let place = format!("{place}[{index}]");
        match rest.iter().position(|message| compare_message(&place, wanted, message).is_empty()) {
            Some(found) => rest = &rest[found + 1..],
            None => {
                let behind = if index == 0 { "" } else { " behind the messages before it" };
                let expected = format!("a message like {}{behind}", message_matcher(wanted));
                return vec![Mismatch::new(place, expected, messages(got))];
            }
        }
    }
    Vec::new()
}

fn compare_message(place: &str, expected: &Message, got: &RequestMessage) -> Vec<Mismatch> {
    let mut mismatches = Vec::new();
    if let Some(role) = &expected.role
        && *role != got.role
    {
        mismatches.push(Mismatch::new(format!("{place}.role"), role, &got.role));
    }
    if let Some(content) = &expected.content {
        mismatches.extend(matcher::text(&format!("{place}.content"), &content.0, Some(&got.content)));
    }
    let Some(calls) = &expected.tool_calls else { return mismatches };
    let place = format!("{place}.tool_calls");
    if calls.len() != got.tool_calls.len() {
        let got = shown(&Value::from(&got.to_json()));
        mismatches.push(Mismatch::new(place, format!("exactly {} calls", calls.len()), got));
        return mismatches;
    }
    for (index, (expected, got)) in calls.iter().zip(&got.tool_calls).enumerate() {
        let arguments = arguments(&got.arguments);
        mismatches.extend(compare_call(&format!("{place}[{index}]"), expected, &got.name, &arguments));
    }
    mismatches
}

/// Compares a call of a tool; `arguments` are JSON, or a text where they are not.
pub fn compare_call(place: &str, expected: &ToolCall, name: &str, arguments: &Value) -> Vec<Mismatch> {
    let mut mismatches = Vec::new();
    if expected.name != name {
        mismatches.push(Mismatch::new(format!("{place}.name"), &expected.name, name));
    }
    if let Some(expected) = &expected.arguments {
        mismatches.extend(matcher::subset(&format!("{place}.arguments"), &expected.0, Some(arguments)));
    }
    mismatches
}

/// Arguments as they were sent: JSON where they are JSON, otherwise the text.
pub fn arguments(text: &str) -> Value {
    hotcell_graph::value::parse_json(text).unwrap_or_else(|_| Value::from(text))
}

pub(crate) fn occurs(text: &str, message: &RequestMessage) -> bool {
    message.content.contains(text) || message.tool_calls.iter().any(|call| call.arguments.contains(text))
}

fn message_matcher(message: &Message) -> String {
    let mut parts = Vec::new();
    if let Some(role) = &message.role {
        parts.push(role.clone());
    }
    if let Some(content) = &message.content {
        parts.push(content.0.to_json());
    }
    for call in message.tool_calls.iter().flatten() {
        let arguments = call.arguments.as_ref().map_or_else(String::new, |arguments| arguments.0.to_json());
        parts.push(format!("{}({arguments})", call.name));
    }
    parts.join(": ")
}

/// Messages for a reader, one a line.
pub(crate) fn messages(messages: &[RequestMessage]) -> String {
    let lines: Vec<String> = messages
        .iter()
        .map(|message| {
            let mut line = format!("{}: {}", message.role, Value::from(message.content.as_str()).to_json());
            for call in &message.tool_calls {
                line += &format!(" {}({})", call.name, call.arguments);
            }
            line
        })
        .collect();
    match lines.len() {
        0 => "no messages".to_owned(),
        1 => lines.concat(),
        _ => format!("{} messages\n{}", lines.len(), lines.join("\n")),
    }
}

/// Requests for a reader.
pub fn all_requests(requests: &[ModelRequest]) -> String {
    let parts: Vec<String> = requests
        .iter()
        .enumerate()
        .map(|(index, request)| {
            let tools = shown_list(&request.tool_names());
            format!("request {index} (model {}, tools {tools}): {}", request.model, messages(&request.messages))
        })
        .collect();
    if parts.is_empty() { "no requests".to_owned() } else { parts.join("\n") }
}

#[cfg(test)]
mod tests {
    use hotcell_loopback::{ModelRequest, OfferedTool, RequestMessage, RequestToolCall};
    use serde_json::{Value, json};

    use super::{RequestMatcher, RequestOrder, compare};

    fn message(role: &str, content: &str) -> RequestMessage {
        RequestMessage {
            role: role.to_owned(),
            content: content.to_owned(),
            tool_calls: Vec::new(),
            tool_call_id: None,
        }
    }

    fn request() -> ModelRequest {
        let mut assistant = message("assistant", "");
        assistant.tool_calls = vec![RequestToolCall {
            id: "x1".to_owned(),
            name: "add".to_owned(),
            arguments: "{\"a\": 2, \"b\": 3}".to_owned(),
        }];
        let tool =
            |name: &str| OfferedTool { name: name.to_owned(), description: String::new(), parameters: Value::Null };
        ModelRequest {
            model: "test:large".to_owned(),
            messages: vec![message("system", "Be brief."), message("user", "2 + 3 "), assistant, message("tool", "5")],
            tools: vec![tool("upper"), tool("add")],
            temperature: Some(0.7),
            top_p: None,
            max_tokens: Some(100),
            response_format: None,
            stream: false,
            body: Value::Null,
        }
    }

    fn check(matcher: Value, place: Option<&str>) {
        let matchers: RequestMatcher = serde_json::from_str(&matcher.to_string()).expect("a request matcher");
        let found = compare("r", &[matchers], None, &[request()]);
        let found: Vec<&str> = found.iter().map(|mismatch| mismatch.place.as_str()).collect();
        assert_eq!(found, place.into_iter().collect::<Vec<_>>(), "{matcher}");
    }

    #[test]
    fn each_key_of_a_request_matcher() {
        let call =
            |name: &str, a: f64| json!({"role": "assistant", "tool_calls": [{"name": name, "arguments": {"a": a}}]});
        check(json!({}), None);
        check(json!({"model": "test:large"}), None);
        check(json!({"model": "large"}), Some("r[0].model"));
        check(json!({"temperature": 0.7, "max_tokens": 100.0, "top_p": null}), None);
        check(json!({"temperature": 0.6}), Some("r[0].temperature"));
        check(json!({"temperature": null}), Some("r[0].temperature"));
        check(json!({"top_p": 1}), Some("r[0].top_p"));
        check(json!({"max_tokens": 1}), Some("r[0].max_tokens"));
        check(json!({"tools": ["add", "upper"]}), None);
        check(json!({"tools": ["add"]}), Some("r[0].tools"));
        check(json!({"tools": ["add", "add", "upper"]}), Some("r[0].tools"));
        check(json!({"tools": []}), Some("r[0].tools"));
        check(json!({"excludes": ["secret", "2 + 4"]}), None);
        check(json!({"excludes": ["2 + 3"]}), Some("r[0].excludes"));
        check(
            json!({"messages": [{"role": "system"}, {"content": "2 + 3"}, {}, {"content": {"contains": "5"}}]}),
            None,
        );
        check(json!({"messages": [{}, {}, {}]}), Some("r[0].messages"));
        check(json!({"messages": [{}, {"role": "system"}, {}, {}]}), Some("r[0].messages[1].role"));
        check(json!({"messages": [{}, {}, {"content": ""}, {}]}), None);
        check(json!({"messages_include": [{"role": "system"}, {"role": "tool", "content": "5"}]}), None);
        check(json!({"messages_include": [{"role": "tool"}, {"role": "system"}]}), Some("r[0].messages_include[1]"));
        check(json!({"messages_include": [{"role": "user"}, {"role": "user"}]}), Some("r[0].messages_include[1]"));
        check(json!({"messages_include": [call("add", 2.0)]}), None);
        check(json!({"messages_include": [call("add", 3.0)]}), Some("r[0].messages_include[0]"));
        check(json!({"messages_include": [call("upper", 2.0)]}), Some("r[0].messages_include[0]"));
        check(json!({"messages": [{"tool_calls": []}, {}, {}, {}]}), None);
        check(json!({"messages": [{}, {}, {"tool_calls": []}, {}]}), Some("r[0].messages[2].tool_calls"));
    }

    #[test]
    fn fewer_matchers_than_requests_are_enough_but_not_more() {
        let matchers = vec![RequestMatcher::default(); 2];
        assert!(compare("r", &matchers[..1], None, &[request(), request()]).is_empty());
        assert_eq!(compare("r", &matchers, None, &[request()]).len(), 1);
        assert_eq!(compare("r", &matchers, Some(RequestOrder::Any), &[request()]).len(), 1);
    }

    #[test]
    fn any_order_gives_each_matcher_a_request_of_its_own() {
        let other = ModelRequest { model: "other".to_owned(), ..request() };
        let loose = RequestMatcher::default();
        let strict = RequestMatcher { model: Some("test:large".to_owned()), ..RequestMatcher::default() };
        let order = Some(RequestOrder::Any);
        assert!(compare("r", &[loose.clone(), strict.clone()], order, &[request(), other.clone()]).is_empty());
        let found = compare("r", &[strict.clone(), strict], order, &[request(), other]);
        assert_eq!(found.len(), 1);
        assert!(found[0].got.contains("the nearest request differs"), "{}", found[0].got);
    }
}
