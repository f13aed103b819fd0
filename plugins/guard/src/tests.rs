use hotcell_plugin::testing::Surroundings;
use hotcell_plugin::{Error, Failure, Json, Verdict, json};

use super::PLUGIN;

fn on(settings: &[(&str, &str)], point: &str, event: Json) -> Result<Verdict, Error> {
    let surroundings = settings.iter().fold(Surroundings::new(), |all, (key, value)| all.config(key, value));
    surroundings.run(|| PLUGIN.on(point, event)).result
}

fn reason(verdict: Result<Verdict, Error>) -> String {
    match verdict {
        Ok(Verdict::Refuse(Failure { message, .. })) => message,
        other => format!("not refused: {other:?}"),
    }
}

#[test]
fn what_must_not_occur_is_refused() {
    let event = json!({"node": "a", "messages": [{"role": "user", "content": "my card 1234-5678"}]});
    let settings = [("refuse", r#"["password", "\\d{4}-\\d{4}"]"#)];
    assert_eq!(
        reason(on(&settings, "before-model-call", event)),
        r"the messages match the guard's pattern `\d{4}-\d{4}`"
    );
    let event = json!({"node": "a", "messages": [{"role": "user", "content": "hello"}]});
    assert_eq!(on(&settings, "before-model-call", event), Ok(Verdict::Proceed));
}

#[test]
fn what_matches_is_redacted_everywhere_in_the_part() {
    let settings = [("redact", "\\w+@\\w+\\.org\n[0-9]{6}"), ("replacement", "$0 gone")];
    let event = json!({"node": "a", "tool": "mail", "arguments": {"to": ["ann@x.org", 123_456], "text": "id 123456, bob@y.org"}});
    let changed =
        json!({"node": "a", "tool": "mail", "arguments": {"to": ["$0 gone", 123_456], "text": "id $0 gone, $0 gone"}});
    assert_eq!(on(&settings, "before-tool-call", event), Ok(Verdict::Change(changed)));
    let event = json!({"node": "a", "messages": [{"content": "ann@x.org"}], "reply": {"text": "to ann@x.org", "tool_calls": []}});
    let changed =
        json!({"node": "a", "messages": [{"content": "ann@x.org"}], "reply": {"text": "to $0 gone", "tool_calls": []}});
    assert_eq!(on(&settings, "after-model-call", event), Ok(Verdict::Change(changed)));
}

#[test]
fn who_says_something_is_no_matter() {
    let event = json!({"node": "a", "messages": [{"role": "user", "content": "hello"}]});
    assert_eq!(on(&[("refuse", "user"), ("redact", "user|role")], "before-model-call", event), Ok(Verdict::Proceed));
    let event = json!({"node": "a", "reply": {"text": "", "tool_calls": [{"name": "pay", "arguments": {"card": "1234-5678"}}]}});
    assert!(reason(on(&[("refuse", r"\d{4}-\d{4}")], "after-model-call", event)).contains("the reply match"));
}

#[test]
fn only_tools_on_the_list_are_called() {
    let settings = [("allow_tools", "search\nread")];
    let event = |tool: &str| json!({"node": "a", "tool": tool, "arguments": {}});
    assert_eq!(on(&settings, "before-tool-call", event("read")), Ok(Verdict::Proceed));
    assert!(reason(on(&settings, "before-tool-call", event("delete"))).contains("`delete` is not on"));
}

#[test]
fn a_guard_without_rules_or_with_bad_ones_lets_nothing_pass() {
    let event = json!({"node": "a", "messages": []});
    assert!(reason(on(&[], "before-model-call", event.clone())).contains("no rules"));
    let error = on(&[("redact", "(")], "before-model-call", event).map_err(|error| error.kind());
    assert_eq!(error, Err("other"));
}

#[test]
fn cases_hold() {
    let problems = hotcell_plugin::testing::run_cases(&PLUGIN, concat!(env!("CARGO_MANIFEST_DIR"), "/cases"));
    assert_eq!(problems, Ok(Vec::new()));
}
