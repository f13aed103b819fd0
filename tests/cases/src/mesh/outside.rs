//! Scripted outside servers: which entry answers a request, and whether the requests are those expected.

use std::io;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use hotcell_graph::value::parse_json;
use hotcell_loopback::{WebAnswer, WebRequest, WebServer};
use hotcell_runtime::{Clock as _, ManualClock};
use serde_json::Value;

use super::case::{Exchange, Reply};
use super::saved::Saved;
use crate::case_file::RequestOrder;
use crate::http::{pairs, parsed, segments, shown};
use crate::matcher;
use crate::mismatch::Mismatch;
use crate::pairing::pair;

/// What stands for the `id` of a request of JSON-RPC in the reply to it.
const RPC_ID: &str = "RPC_ID";

/// The servers of a case, which are one.
pub(super) struct Outside {
    server: WebServer,
    script: Arc<OnceLock<Vec<Exchange>>>,
    unanswered: Arc<Mutex<Vec<WebRequest>>>,
}

impl Outside {
    /// Starts it; what it answers is said later, because that needs to know its port.
    pub(super) fn start(saved: Arc<Saved>, clock: ManualClock) -> io::Result<Self> {
        let script: Arc<OnceLock<Vec<Exchange>>> = Arc::default();
        let unanswered: Arc<Mutex<Vec<WebRequest>>> = Arc::default();
        let (known, left) = (script.clone(), unanswered.clone());
        let served: Mutex<Vec<usize>> = Mutex::default();
        let server = WebServer::start_late(move |request| {
            let reply = known.get().and_then(|script| reply(script, request, &saved, &served));
            if reply.is_none() {
                left.lock().unwrap_or_else(PoisonError::into_inner).push(request.clone());
            }
            let clock = clock.clone();
            async move {
                let (delay, answer) = reply?;
                if !delay.is_zero() {
                    clock.pause(delay).await;
                }
                Some(answer)
            }
        })?;
        Ok(Outside { server, script, unanswered })
    }

    pub(super) fn port(&self) -> u16 {
        self.server.port()
    }

    /// Says what is answered; it counts once.
    pub(super) fn set(&self, script: Vec<Exchange>) {
        let _ = self.script.set(script);
    }

    pub(super) fn requests(&self) -> Vec<WebRequest> {
        self.server.requests()
    }

    /// Requests that no entry answers.
    pub(super) fn unanswered(&self) -> Vec<WebRequest> {
        self.unanswered.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// How late what is answered.
fn reply(
    script: &[Exchange],
    request: &WebRequest,
    saved: &Saved,
    served: &Mutex<Vec<usize>>,
) -> Option<(Duration, WebAnswer)> {
    let place = script.iter().position(|entry| differences("", entry, request, saved).is_empty())?;
    let entry = &script[place];
    let nth = {
        let mut served = served.lock().unwrap_or_else(PoisonError::into_inner);
        let nth = served.iter().filter(|before| **before == place).count();
        served.push(place);
        nth
    };
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    saved.keep(&entry.save, &body);
    let reply = entry.reply.get(nth).or(entry.reply.last()).cloned().unwrap_or_default();
    let Reply { status, json, text, headers, delay_ms } = reply;
    let fill = |value: &Value| saved.fill_with(value, RPC_ID, body["id"].clone());
    let is_json = json.is_some();
    let text = text.map(|text| saved.fill_text(&text)).unwrap_or_default();
    Some((
        Duration::from_millis(delay_ms),
        WebAnswer {
            status: status.unwrap_or(200),
            body: json.map_or(text, |json| fill(&json).to_string()),
            is_json,
            headers: headers.into_iter().map(|(name, value)| (name, saved.fill_text(&value))).collect(),
        },
    ))
}

/// What is expected of the requests, and whether all, in which order.
pub(super) fn compare(
    place: &str,
    expected: &[Exchange],
    order: Option<RequestOrder>,
    got: &[WebRequest],
    saved: &Saved,
) -> Vec<Mismatch> {
    if expected.len() != got.len() {
        return vec![Mismatch::new(place, format!("{} requests", expected.len()), lines(got))];
    }
    if order == Some(RequestOrder::Any) {
        let fits = |wanted: usize, request: usize| differences("", &expected[wanted], &got[request], saved).is_empty();
        let pairs = pair(expected.len(), got.len(), fits);
        let lonely = pairs.iter().enumerate().filter(|(_, found)| found.is_none());
        return lonely
            .map(|(index, _)| Mismatch::new(format!("{place}[{index}]"), expected[index].to_string(), lines(got)))
            .collect();
    }
    let pairs = expected.iter().zip(got).enumerate();
    pairs.flat_map(|(index, (expected, got))| differences(&format!("{place}[{index}]"), expected, got, saved)).collect()
}

/// Requests that have to come in this order, among others.
pub(super) fn include(place: &str, expected: &[Exchange], got: &[WebRequest], saved: &Saved) -> Vec<Mismatch> {
    let mut rest = got.iter();
    let missing =
        expected.iter().position(|expected| !rest.any(|request| differences("", expected, request, saved).is_empty()));
    missing
        .map(|index| Mismatch::new(format!("{place}[{index}]"), expected[index].to_string(), lines(got)))
        .into_iter()
        .collect()
}

/// Requests that must not come.
pub(super) fn exclude(place: &str, expected: &[Exchange], got: &[WebRequest], saved: &Saved) -> Vec<Mismatch> {
    let there = |(index, excluded): (usize, &Exchange)| {
        let request = got.iter().find(|request| differences("", excluded, request, saved).is_empty())?;
        Some(Mismatch::new(format!("{place}[{index}]"), "no such request", shown(request)))
    };
    expected.iter().enumerate().filter_map(there).collect()
}

/// Requests, one a line.
pub(super) fn lines(requests: &[WebRequest]) -> String {
    let lines: Vec<String> = requests.iter().map(shown).collect();
    format!("{} requests\n{}", requests.len(), lines.join("\n")).trim_end().to_owned()
}

fn differences(place: &str, expected: &Exchange, got: &WebRequest, saved: &Saved) -> Vec<Mismatch> {
    let mut mismatches = Vec::new();
    let mut differ = |key: &str, same: bool, expected: String| {
        if !same {
            mismatches.push(Mismatch::new(format!("{place}.{key}"), expected, shown(got)));
        }
    };
    if let Some(method) = &expected.method {
        differ("method", method.eq_ignore_ascii_case(&got.method), method.clone());
    }
    if let Some(path) = &expected.path {
        let path = saved.fill_text(path);
        differ("path", segments(&path) == segments(&got.path), path);
    }
    if let Some(query) = &expected.query {
        let query = query.iter().map(|(name, value)| (name.clone(), saved.fill_text(value))).collect();
        differ("query", pairs(&query) == parsed(&got.query), format!("{query:?}"));
    }
    for (name, value) in expected.headers.iter().flatten() {
        let there = got.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        let value = hotcell_graph::Value::from(&saved.fill(value));
        let found = matcher::text(&format!("{place}.headers.{name}"), &value, there.map(|(_, value)| value.as_str()));
        mismatches.extend(found);
    }
    let body = String::from_utf8_lossy(&got.body);
    if let Some(json) = &expected.json {
        let json = hotcell_graph::Value::from(&saved.fill(json));
        match parse_json(&body) {
            Ok(body) => mismatches.extend(matcher::subset(&format!("{place}.json"), &json, Some(&body))),
            Err(_) => mismatches.push(Mismatch::new(format!("{place}.json"), json.to_json(), shown(got))),
        }
    }
    if let Some(form) = &expected.form {
        let form = form.iter().map(|(name, value)| (name.clone(), saved.fill_text(value))).collect();
        if pairs(&form) != parsed(&body) {
            mismatches.push(Mismatch::new(format!("{place}.form"), format!("{form:?}"), shown(got)));
        }
    }
    if let Some(text) = &expected.text {
        let text = hotcell_graph::Value::from(&saved.fill(text));
        mismatches.extend(matcher::text(&format!("{place}.text"), &text, Some(&body)));
    }
    mismatches
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use hotcell_loopback::WebRequest;
    use serde_json::{Value, json};

    use super::{Saved, compare, exclude, include, reply};
    use crate::case_file::RequestOrder;
    use crate::mesh::case::Exchange;

    fn request(method: &str, path: &str, body: Value) -> WebRequest {
        WebRequest {
            method: method.to_owned(),
            path: path.to_owned(),
            query: String::new(),
            headers: vec![("x-key".to_owned(), "abc".to_owned())],
            body: body.to_string().into_bytes(),
        }
    }

    fn entries(entries: Value) -> Vec<Exchange> {
        serde_json::from_value(entries).expect("entries")
    }

    #[test]
    fn replies_come_one_after_the_other_and_know_what_was_kept() {
        let script = entries(json!([
            {"path": "/a", "json": {"n": {"absent": true}, "text": {"contains": "b"}}, "save": {"T": "text"},
             "reply": [{"json": {"id": "{RPC_ID}"}, "delay_ms": 40}, {"text": "{T}", "status": 202}]},
            {"method": "POST", "headers": {"X-Key": {"contains": "b"}}, "reply": {"status": 500}},
        ]));
        let (saved, served) = (Saved::default(), Mutex::default());
        let ask = |path: &str, body: Value| {
            reply(&script, &request("POST", path, body), &saved, &served)
                .map(|(delay, answer)| (delay.as_millis(), answer.status, answer.body))
        };
        let body = json!({"text": "abc", "id": 7});
        assert_eq!(ask("/a", body.clone()), Some((40, 200, r#"{"id":7}"#.to_owned())));
        assert_eq!(ask("/a", body.clone()), Some((0, 202, "abc".to_owned())));
        assert_eq!(ask("/a", body), Some((0, 202, "abc".to_owned())));
        assert_eq!(ask("/a", json!({"text": "b", "n": 1})), Some((0, 500, String::new())));
        let nobody = WebRequest { headers: Vec::new(), ..request("POST", "/b", json!({})) };
        assert!(reply(&script, &nobody, &saved, &served).is_none());
    }

    #[test]
    fn requests_are_held_against_what_is_expected() {
        let got = [request("POST", "/a", json!({"n": 1})), request("GET", "/b", json!({"n": 2}))];
        let saved = Saved::default();
        let exactly = |wanted: Value, order| compare("r", &entries(wanted), order, &got, &saved).len();
        assert_eq!(exactly(json!([{"path": "/a"}, {"json": {"n": 2}}]), None), 0);
        assert_eq!(exactly(json!([{"path": "/b"}, {"path": "/a"}]), None), 2);
        assert_eq!(exactly(json!([{"path": "/b"}, {"path": "/a"}]), Some(RequestOrder::Any)), 0);
        assert_eq!(exactly(json!([{"path": "/b"}, {"path": "/b"}]), Some(RequestOrder::Any)), 1);
        assert_eq!(exactly(json!([{"path": "/a"}]), None), 1);
        let include = |wanted: Value| include("r", &entries(wanted), &got, &saved).len();
        assert_eq!(include(json!([{"method": "get"}])), 0);
        assert_eq!(include(json!([{"path": "/b"}, {"path": "/a"}])), 1);
        let exclude = |wanted: Value| exclude("r", &entries(wanted), &got, &saved).len();
        assert_eq!(exclude(json!([{"path": "/c"}])), 0);
        assert_eq!(exclude(json!([{"path": "/a"}, {"headers": {"x-key": "abc"}}])), 2);
    }
}
