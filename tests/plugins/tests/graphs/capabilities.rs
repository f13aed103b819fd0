//! What a plugin reaches of a run, where it was granted.

use hotcell_loopback::Site;
use serde_json::json;

use crate::desk::{Desk, GRAPH, calls, output, told};

const ALL: &str = "kv = true\nllm = true\nask = true\ntool = ['other']\n\
                   secret = [{ name = 'KEY', servers = ['https://x.org'] }]";

fn desk(grants: &str) -> Desk {
    let desk = Desk::new(GRAPH);
    let asks = json!({ "kv": true, "llm": true, "ask": true, "tool": ["other"], "secret": [{ "name": "KEY" }] });
    desk.plugin("probe", "probe", &[], asks, grants);
    desk.plugin("second", "other", &[], json!({}), "");
    desk
}

/// A tool may rely on its parameters, whoever calls it.
#[tokio::test]
async fn a_tool_that_a_plugin_calls_is_given_what_fits_its_parameters() {
    let desk = Desk::new(GRAPH);
    desk.plugin("probe", "probe", &[], json!({ "tool": ["other"] }), "tool = ['other']");
    let parameters = json!({ "type": "object", "properties": { "text": { "enum": ["a"] } } });
    desk.plugin_like("second", "other", &[], json!({}), "", |told| told["tools"][0]["parameters"] = parameters);
    for (arguments, expected) in [
        (json!({ "do": "say", "text": "a" }), "a"),
        (json!({ "do": "say", "text": "b" }), "the arguments of `other` cannot be used: \"b\" is not"),
        (json!("text"), "the arguments of `other` cannot be used: they have to be an object"),
    ] {
        let nested = json!({ "do": "tool", "tool": "other", "arguments": arguments });
        let (_, model) = desk.run(calls("probe", nested)).await;
        assert!(told(&model).contains(expected), "{}", told(&model));
    }
}

#[tokio::test]
async fn a_tool_calls_another_tool_and_both_are_on_the_bill() {
    let arguments = json!({ "do": "tool", "tool": "other", "arguments": { "do": "say", "text": "hello" } });
    let (report, model) = desk(ALL).run(calls("probe", arguments)).await;
    assert_eq!((told(&model).as_str(), output(&report).as_str()), ("hello", "done"));
    let used: Vec<(&str, u64)> = report.account.iter().map(|(who, usage)| (who, usage.calls)).collect();
    assert_eq!(used, [("probe", 1), ("second", 1), ("test:small", 0)]);
}

#[tokio::test]
async fn a_tool_asks_the_model_of_the_run() {
    let replies = json!([
        { "tool_calls": [{ "name": "probe", "arguments": { "do": "model", "text": "what now?" } }] },
        { "content": "this" },
        { "content": "done" },
    ]);
    let (report, model) = desk(ALL).run(replies).await;
    let told: serde_json::Value = serde_json::from_str(&told(&model)).unwrap();
    assert_eq!((&told["text"], &told["model"]), (&json!("this"), &json!("test:small")));
    let model = report.account.iter().find(|(who, _)| *who == "test:small").unwrap().1;
    assert_eq!(model.model_requests, 3);
}

#[tokio::test]
async fn what_is_not_granted_is_denied_with_its_name() {
    let cases = [
        (json!({ "do": "model", "text": "x" }), "`llm`, the model of the run is not granted"),
        (json!({ "do": "tool", "tool": "other", "arguments": {} }), "`tool` `other` is not granted"),
        (json!({ "do": "ask", "text": "x" }), "`ask`, questions to a person is not granted"),
        (json!({ "do": "remember", "text": "x" }), "`kv`, a store of its own is not granted"),
        (json!({ "do": "secret", "name": "KEY" }), "`secret` `KEY` is not granted"),
    ];
    for (arguments, expected) in cases {
        let desk = desk("clock = 'coarse'");
        let (_, model) = desk.run(calls("probe", arguments)).await;
        let told = told(&model);
        assert!(told.starts_with("error: ") && told.contains(expected), "`{expected}` is not in `{told}`");
        assert!(told.contains("to grant it, write into `hotcell.toml`"), "{told}");
    }
}

#[tokio::test]
async fn what_a_plugin_does_not_ask_for_is_denied_without_advice_that_cannot_be_followed() {
    let desk = Desk::new(GRAPH);
    desk.plugin("probe", "probe", &[], json!({ "llm": true }), "llm = true");
    desk.plugin("second", "other", &[], json!({}), "");
    let (_, model) = desk.run(calls("probe", json!({ "do": "remember", "text": "x" }))).await;
    let told = told(&model);
    assert!(told.contains("its description does not ask for it") && !told.contains("write into"), "{told}");
}

#[tokio::test]
async fn attack_55_57_a_tool_gets_a_placeholder_and_no_secret() {
    let (_, model) = desk(ALL).run(calls("probe", json!({ "do": "secret", "name": "KEY" }))).await;
    assert!(told(&model).starts_with("hotcell-secret-"), "{}", told(&model));
    let (_, model) = desk(ALL).run(calls("probe", json!({ "do": "say", "text": "value-of-the-key" }))).await;
    assert_eq!(told(&model), "(secret KEY)");
}

#[tokio::test]
async fn a_tool_of_an_unknown_name_is_out_of_reach_even_if_everything_is_granted() {
    let desk = Desk::new(GRAPH);
    desk.plugin("probe", "probe", &[], json!({ "tool": ["*"] }), "tool = ['*']");
    desk.plugin("second", "other", &[], json!({}), "");
    let arguments = json!({ "do": "tool", "tool": "third", "arguments": {} });
    let (_, model) = desk.run(calls("probe", arguments)).await;
    assert_eq!(told(&model), "error: there is no tool `third`");
}

#[tokio::test]
async fn attack_12_a_tool_that_calls_itself_ends_at_the_depth() {
    let desk = Desk::new(GRAPH);
    desk.plugin("probe", "probe", &[], json!({ "tool": ["*"] }), "tool = ['*']");
    desk.plugin("second", "other", &[], json!({}), "");
    let mut arguments = json!({ "do": "say", "text": "bottom" });
    for _ in 0..12 {
        arguments = json!({ "do": "tool", "tool": "probe", "arguments": arguments });
    }
    let (report, model) = desk.run(calls("probe", arguments)).await;
    assert!(told(&model).contains("8 may nest"), "{}", told(&model));
    assert_eq!(report.account.iter().find(|(who, _)| *who == "probe").unwrap().1.calls, 9);
}

/// A script that asks a server; the graph goes on if it fails.
pub(crate) const ASKING: &str = r#"name: asking
version: "1.0"
start: ask
nodes:
  ask: { type: script, script: scripts/ask.js, next: done, fallback: refused }
  done: { type: end, output: "{{said}}" }
  refused: { type: end, output: "{{ask_error}}" }
"#;

#[tokio::test]
async fn a_script_asks_servers_that_are_granted_to_it_and_a_refusal_says_how() {
    let site = Site::start(|path, _| Some(format!("{{\"path\":\"{path}\"}}"))).unwrap();
    let origin = site.origin();
    let script = format!(
        "const answer = await fetch('{origin}/here', {{ headers: {{ 'x-key': process.env.KEY ?? '' }} }});\n\
         console.log(JSON.stringify({{ said: (await answer.json()).path }}));"
    );
    let desk = Desk::new(ASKING);
    desk.write("scripts/ask.js", &script);
    let (report, _) = desk.run(json!([])).await;
    let refused = output(&report);
    let expected = format!("`http` for `GET {origin}` is not granted");
    assert!(refused.contains(&expected), "`{expected}` is not in `{refused}`");
    let lines = format!("[grants.\"scripts/ask.js\"]\nhttp = [\"{origin}\"]");
    assert!(refused.contains(&lines), "`{lines}` is not in `{refused}`");

    desk.settings(&lines);
    let (report, _) = desk.run(json!([])).await;
    assert_eq!(output(&report), "/here");
    let used = report.account.iter().find(|(who, _)| *who == "scripts/ask.js").unwrap().1;
    assert_eq!(used.http_requests, 1);
}
