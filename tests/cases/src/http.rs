//! The scripted web server of a case: which entry answers a request, and whether the requests are those expected.

use std::collections::BTreeMap;

use hotcell_graph::Value;
use hotcell_graph::value::parse_json;
use hotcell_loopback::{WebAnswer, WebRequest};
use indexmap::IndexMap;

use crate::case_file::HttpExchange;
use crate::matcher;
use crate::mismatch::Mismatch;

/// The answer of the first entry whose conditions hold.
pub fn answer(entries: &[HttpExchange], request: &WebRequest) -> Option<WebAnswer> {
    let entry = entries.iter().find(|entry| differences("", entry, request).is_empty())?;
    let reply = entry.reply.as_ref();
    let json = reply.and_then(|reply| reply.json.as_ref());
    let text = reply.and_then(|reply| reply.text.clone()).unwrap_or_default();
    Some(WebAnswer {
        status: reply.and_then(|reply| reply.status).unwrap_or(200),
        body: json.map_or(text, |json| json.0.to_json()),
        is_json: json.is_some(),
        headers: Vec::new(),
    })
}

/// Compares requests with what is expected of them, position by position and exactly as many.
pub fn compare(place: &str, expected: &[HttpExchange], got: &[WebRequest]) -> Vec<Mismatch> {
    if expected.len() != got.len() {
        let lines: Vec<String> = got.iter().map(shown).collect();
        let got = format!("{}\n{}", got.len(), lines.join("\n"));
        return vec![Mismatch::new(place, format!("{} requests", expected.len()), got.trim_end())];
    }
    let pairs = expected.iter().zip(got).enumerate();
    pairs.flat_map(|(index, (expected, got))| differences(&format!("{place}[{index}]"), expected, got)).collect()
}

/// A request in one line.
pub fn shown(request: &WebRequest) -> String {
    let query = if request.query.is_empty() { String::new() } else { format!("?{}", request.query) };
    let body = String::from_utf8_lossy(&request.body);
    format!("{} {}{query} {body}", request.method, request.path).trim_end().to_owned()
}

fn differences(place: &str, expected: &HttpExchange, got: &WebRequest) -> Vec<Mismatch> {
    let mut mismatches = Vec::new();
    let mut differ = |key: &str, same: bool, expected: &dyn std::fmt::Debug| {
        if !same {
            mismatches.push(Mismatch::new(format!("{place}.{key}"), format!("{expected:?}"), shown(got)));
        }
    };
    if let Some(method) = &expected.method {
        differ("method", method.eq_ignore_ascii_case(&got.method), method);
    }
    if let Some(path) = &expected.path {
        differ("path", segments(path) == segments(&got.path), path);
    }
    if let Some(query) = &expected.query {
        differ("query", pairs(query) == parsed(&got.query), query);
    }
    for (name, value) in expected.headers.iter().flatten() {
        let there = got.headers.iter().any(|(known, is)| known.eq_ignore_ascii_case(name) && is == value);
        differ("headers", there, &(name, value));
    }
    let body = String::from_utf8_lossy(&got.body);
    if let Some(json) = &expected.json {
        let same = parse_json(&body).is_ok_and(|body| {
            // A subset both ways is the same value.
            let subset = |left: &Value, right: &Value| matcher::subset("", left, Some(right)).is_empty();
            subset(&json.0, &body) && subset(&body, &json.0)
        });
        differ("json", same, &json.0.to_json());
    }
    if let Some(form) = &expected.form {
        differ("form", pairs(form) == parsed(&body), form);
    }
    if let Some(text) = &expected.text {
        differ("text", *text == body, text);
    }
    mismatches
}

/// The segments of a path, decoded.
pub(crate) fn segments(path: &str) -> Vec<String> {
    path.split('/').map(decoded).collect()
}

fn decoded(segment: &str) -> String {
    // Read as the value of a query, in which a plus is a space too.
    let value = segment.replace('&', "%26").replace('=', "%3D");
    url::form_urlencoded::parse(format!("x={value}").as_bytes()).map(|(_, value)| value.into_owned()).collect()
}

pub(crate) fn pairs(expected: &IndexMap<String, String>) -> BTreeMap<String, String> {
    expected.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
}

pub(crate) fn parsed(query: &str) -> BTreeMap<String, String> {
    url::form_urlencoded::parse(query.as_bytes()).into_owned().collect()
}

#[cfg(test)]
mod tests {
    use super::segments;

    #[test]
    fn paths_are_compared_segment_by_segment() {
        for (left, right, same) in [
            ("/a b/c", "/a%20b/c", true),
            ("/a+b", "/a%20b", true),
            ("/a%2Fb", "/a/b", false),
            ("/a%2Fb", "/a%2fb", true),
            ("/x=1&y", "/x%3D1%26y", true),
        ] {
            assert_eq!(segments(left) == segments(right), same, "{left} {right}");
        }
    }
}
