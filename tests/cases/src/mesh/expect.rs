//! What has to have happened at the end of a case, and what answers have to be like.

use hotcell_graph::Value;
use serde_json::Value as Json;

use super::case::MeshExpect;
use super::client::{Answered, StreamEvent};
use super::functions::Ran;
use super::saved::Saved;
use super::step::{ExpectEvent, ExpectReply};
use crate::matcher;
use crate::mismatch::{Mismatch, shown, shown_list};

/// What was seen of the agents of a mesh and heard from it.
pub(super) struct Seen<'a> {
    /// All runs, in the order in which they began
    pub(super) runs: &'a [Ran],
    /// Agents whose runs can be seen
    pub(super) visible: &'a [String],
    /// How many runs of an agent were under way at once
    pub(super) most: &'a dyn Fn(&str) -> usize,
    /// What the mesh said
    pub(super) events: &'a [Json],
    /// Warnings of loading
    pub(super) warnings: &'a str,
}

/// Every difference.
pub(super) fn check(expect: &MeshExpect, seen: &Seen<'_>, saved: &Saved) -> Vec<Mismatch> {
    let mut mismatches = Vec::new();
    let count = |agent: &str| seen.runs.iter().filter(|ran| ran.agent == agent).count();
    for (agent, expected) in &expect.runs {
        let got = count(agent);
        if got != *expected {
            mismatches.push(Mismatch::new(format!("expect.runs.{agent}"), expected.to_string(), ran(got, agent, seen)));
        }
    }
    if expect.runs_exact
        && let Some(other) = seen.runs.iter().find(|ran| !expect.runs.contains_key(&ran.agent))
    {
        mismatches.push(Mismatch::new("expect.runs_exact", "no other agent runs", format!("`{}` ran", other.agent)));
    }
    for (index, wanted) in expect.inputs.iter().enumerate() {
        let place = format!("expect.inputs[{index}]");
        let Some(found) = seen.runs.iter().filter(|ran| ran.agent == wanted.agent).nth(wanted.nth.max(1) - 1) else {
            let expected = format!("run {} of `{}`", wanted.nth, wanted.agent);
            mismatches.push(Mismatch::new(place, expected, ran(count(&wanted.agent), &wanted.agent, seen)));
            continue;
        };
        let (input, got) = (Value::from(&saved.fill(&wanted.input)), Value::from(&found.input));
        mismatches.extend(matcher::subset(&format!("{place}.input"), &input, Some(&got)));
        if let Some(key) = wanted.excludes.iter().find(|key| found.input.get(key.as_str()).is_some()) {
            mismatches.push(Mismatch::new(format!("{place}.excludes"), format!("no `{key}`"), shown(&got)));
        }
    }
    let mut began = seen.runs.iter();
    if let Some(missing) = expect.order.iter().position(|agent| !began.any(|ran| ran.agent == *agent)) {
        let got: Vec<&String> = seen.runs.iter().map(|ran| &ran.agent).collect();
        let place = format!("expect.order[{missing}]");
        mismatches.push(Mismatch::new(place, shown_list(&expect.order), shown_list(&got)));
    }
    for (agent, expected) in &expect.max_concurrent {
        let got = (seen.most)(agent);
        if got != *expected {
            mismatches.push(Mismatch::new(
                format!("expect.max_concurrent.{agent}"),
                expected.to_string(),
                got.to_string(),
            ));
        }
    }
    mismatches.extend(events(expect, seen.events, saved));
    let warnings = seen.warnings.to_lowercase();
    if let Some(said) = expect.warnings_exclude.iter().find(|part| warnings.contains(&part.to_lowercase())) {
        mismatches.push(Mismatch::new("expect.warnings_exclude", format!("no `{said}`"), seen.warnings));
    }
    mismatches
}

/// How often an agent ran, or why that cannot be seen.
fn ran(count: usize, agent: &str, seen: &Seen<'_>) -> String {
    if !seen.visible.iter().any(|visible| visible == agent) {
        return "it has neither a function nor a model of its own, so that its runs cannot be seen".to_owned();
    }
    let order: Vec<&String> = seen.runs.iter().map(|ran| &ran.agent).collect();
    format!("{count}; agents ran in this order: {}", shown_list(&order))
}

fn events(expect: &MeshExpect, said: &[Json], saved: &Saved) -> Vec<Mismatch> {
    let lines = || {
        let lines: Vec<String> = said.iter().map(Json::to_string).collect();
        if lines.is_empty() { "no events".to_owned() } else { lines.join("\n") }
    };
    let mut rest = said.iter();
    let missing = expect.events.iter().position(|wanted| {
        let wanted = Value::from(&saved.fill(wanted));
        !rest.any(|event| matcher::subset("", &wanted, Some(&Value::from(event))).is_empty())
    });
    let missing = missing
        .map(|index| Mismatch::new(format!("expect.events[{index}]"), expect.events[index].to_string(), lines()));
    let excluded = expect.events_exclude.iter().find(|kind| said.iter().any(|event| event["type"] == **kind));
    let excluded = excluded.map(|kind| Mismatch::new("expect.events_exclude", format!("no `{kind}`"), lines()));
    missing.into_iter().chain(excluded).collect()
}

/// Every difference between a reply and what is expected of it.
pub(super) fn check_reply(place: &str, expect: &ExpectReply, got: &Answered, saved: &Saved) -> Vec<Mismatch> {
    let mut mismatches = Vec::new();
    if !expect.status.contains(&got.status) {
        let expected: Vec<String> = expect.status.iter().map(u16::to_string).collect();
        mismatches.push(Mismatch::new(format!("{place}.status"), expected.join(" or "), got.shown()));
    }
    if let Some(json) = &expect.json {
        let json = Value::from(&saved.fill(json));
        match got.json() {
            Some(body) => {
                mismatches.extend(matcher::subset(&format!("{place}.json"), &json, Some(&Value::from(&body))));
            }
            None => mismatches.push(Mismatch::new(format!("{place}.json"), shown(&json), got.shown())),
        }
    }
    if let Some(text) = &expect.text {
        let text = Value::from(&saved.fill(text));
        mismatches.extend(matcher::text(&format!("{place}.text"), &text, Some(&got.body)));
    }
    for (name, value) in &expect.headers {
        let there = got.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        let value = Value::from(&saved.fill(value));
        let there = there.map(|(_, value)| value.as_str());
        mismatches.extend(matcher::text(&format!("{place}.headers.{name}"), &value, there));
    }
    mismatches
}

/// Events that have to come in this order, among others.
pub(super) fn check_stream(place: &str, expect: &[ExpectEvent], got: &[StreamEvent], saved: &Saved) -> Vec<Mismatch> {
    let mut rest = got.iter();
    let missing = expect.iter().position(|wanted| {
        let data = wanted.data.as_ref().map(|data| Value::from(&saved.fill(data)));
        !rest.any(|event| {
            let said = serde_json::from_str::<Json>(&event.data).unwrap_or_else(|_| event.data.as_str().into());
            let fits = |data: &Value| matcher::subset("", data, Some(&Value::from(&said))).is_empty();
            event.event == wanted.event && data.as_ref().is_none_or(fits)
        })
    });
    let lines: Vec<String> = got.iter().map(|event| format!("{}: {}", event.event, event.data)).collect();
    let missing = missing.map(|index| {
        let ExpectEvent { event, data } = &expect[index];
        let data = data.as_ref().map(Json::to_string).unwrap_or_default();
        Mismatch::new(format!("{place}.expect_events[{index}]"), format!("{event}: {data}"), lines.join("\n"))
    });
    missing.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use serde_json::{Value as Json, json};

    use super::{Answered, Ran, Saved, Seen, StreamEvent, check, check_reply, check_stream};

    fn places(expect: Json) -> Vec<String> {
        let ran = |agent: &str, input: Json| Ran { agent: agent.to_owned(), input, at: Instant::now() };
        let runs = [ran("a", json!({"n": 1})), ran("b", json!({})), ran("a", json!({"n": 2, "x": 3}))];
        let events = [json!({"type": "AGENT_ERROR", "agent": "a"}), json!({"type": "HUMAN_INPUT_TIMEOUT"})];
        let seen = Seen {
            runs: &runs,
            visible: &["a".to_owned(), "b".to_owned()],
            most: &|agent| if agent == "a" { 2 } else { 1 },
            events: &events,
            warnings: "mesh.yaml:3:1: warning: Unknown field `x`",
        };
        let expect = serde_json::from_value(expect).expect("an expectation");
        check(&expect, &seen, &Saved::default()).into_iter().map(|mismatch| mismatch.place).collect()
    }

    #[test]
    fn each_key_of_an_expectation() {
        let cases: [(Json, &[&str]); 17] = [
            (json!({}), &[]),
            (json!({"runs": {"a": 2, "c": 0}}), &[]),
            (json!({"runs": {"a": 1, "c": 1}}), &["expect.runs.a", "expect.runs.c"]),
            (json!({"runs": {"a": 2, "b": 1}, "runs_exact": true}), &[]),
            (json!({"runs": {"a": 2}, "runs_exact": true}), &["expect.runs_exact"]),
            (json!({"inputs": [{"agent": "a", "input": {"n": 1}}, {"agent": "a", "nth": 2, "input": {"n": 2}}]}), &[]),
            (
                json!({"inputs": [{"agent": "a", "nth": 2, "input": {}, "excludes": ["x"]}]}),
                &["expect.inputs[0].excludes"],
            ),
            (json!({"inputs": [{"agent": "a", "nth": 3, "input": {}}]}), &["expect.inputs[0]"]),
            (json!({"inputs": [{"agent": "b", "input": {"n": 1}}]}), &["expect.inputs[0].input.n"]),
            (json!({"order": ["a", "b", "a"]}), &[]),
            (json!({"order": ["b", "b"]}), &["expect.order[1]"]),
            (json!({"max_concurrent": {"a": 2, "b": 2}}), &["expect.max_concurrent.b"]),
            (json!({"events": [{"type": "AGENT_ERROR", "agent": "a"}, {"type": "HUMAN_INPUT_TIMEOUT"}]}), &[]),
            (json!({"events": [{"type": "HUMAN_INPUT_TIMEOUT"}, {"type": "AGENT_ERROR"}]}), &["expect.events[1]"]),
            (json!({"events_exclude": ["MANAGER_INTERVENTION"]}), &[]),
            (json!({"events_exclude": ["AGENT_ERROR"]}), &["expect.events_exclude"]),
            (json!({"warnings_exclude": ["unknown FIELD"]}), &["expect.warnings_exclude"]),
        ];
        for (expect, expected) in cases {
            assert_eq!(places(expect.clone()), expected, "{expect}");
        }
    }

    #[test]
    fn replies_and_streams() {
        let saved = Saved::default();
        saved.note_session(&json!({"session_id": "s1"}));
        let got = Answered {
            status: 409,
            headers: vec![("content-type".to_owned(), "application/json".to_owned())],
            body: r#"{"status": "busy", "session": "s1"}"#.to_owned(),
        };
        let places = |expect: Json| -> Vec<String> {
            let expect = serde_json::from_value(expect).expect("an expectation");
            check_reply("e", &expect, &got, &saved).into_iter().map(|mismatch| mismatch.place).collect()
        };
        let fits = json!({"status": [200, 409], "json": {"session": "{SESSION}"}, "text": {"contains": "busy"},
            "headers": {"Content-Type": {"contains": "json"}, "x": {"absent": true}}});
        assert_eq!(places(fits), Vec::<String>::new());
        let other = json!({"status": 200, "json": {"status": "ok"}, "headers": {"x": "y"}});
        assert_eq!(places(other), ["e.status", "e.json.status", "e.headers.x"]);

        let event = |event: &str, data: &str| StreamEvent { event: event.to_owned(), data: data.to_owned() };
        let got = [event("start", "{}"), event("token", "Hi"), event("result", r#"{"status": "completed"}"#)];
        let count = |expect: Json| {
            let expect: Vec<_> = serde_json::from_value(expect).expect("events");
            check_stream("s", &expect, &got, &saved).len()
        };
        let result = json!({"event": "result", "data": {"status": "completed"}});
        assert_eq!(count(json!([{"event": "start"}, {"event": "token", "data": "Hi"}, result])), 0);
        assert_eq!(count(json!([{"event": "token"}, {"event": "start"}])), 1);
        assert_eq!(count(json!([{"event": "result", "data": {"status": "error"}}])), 1);
    }
}
