//! What is recorded of a run with plugins: every call, where it was made, those of plugins by plugins and of hooks included.

use hotcell_runtime::{Again, CallReexecuted, RunInput};
use serde_json::json;

use crate::desk::{Desk, GRAPH, calls};

/// The calls of the only run, as place, name and what was called.
async fn recorded(desk: &Desk, replies: serde_json::Value) -> Vec<(String, String, Again)> {
    let model = hotcell_loopback::Loopback::start(hotcell_loopback::Script::from_json(&replies).unwrap()).unwrap();
    let host = desk.host(&model);
    let given = RunInput { input: Some("go".to_owned()), ..RunInput::default() };
    let report = desk.start(&host, given, std::sync::Arc::new(hotcell_runtime::Nobody)).await.unwrap();
    let mut all = Vec::new();
    let mut told = |call: CallReexecuted| {
        let called = format!("{} of {}", call.called.unwrap_or_default(), call.name);
        all.push((call.place.to_string(), called, call.again));
    };
    host.reexecute(&mut host.finder(), &report.run, None, &mut told).await.unwrap();
    all
}

#[tokio::test]
async fn calls_of_tools_by_tools_and_of_hooks_are_recorded_where_they_were_made() {
    let desk = Desk::new(GRAPH);
    desk.plugin("probe", "probe", &["before-tool-call", "after-run"], json!({ "tool": ["other"] }), "tool = ['other']");
    desk.plugin("helper", "other", &[], json!({}), "");
    let all = recorded(
        &desk,
        calls("probe", json!({ "do": "tool", "tool": "other", "arguments": { "do": "say", "text": "hi" } })),
    )
    .await;
    let shown: Vec<(&str, &str)> = all.iter().map(|(place, called, _)| (place.as_str(), called.as_str())).collect();
    let expected = [
        ("1.loop", "hook `before-tool-call` of probe"),
        ("1.loop.2", "hook `before-tool-call` of probe"),
        ("1.loop.2", "tool `other` of helper"),
        ("1.loop.2", "tool `probe` of probe"),
        ("", "hook `after-run` of probe"),
    ];
    assert_eq!(shown, expected);
    assert!(all.iter().all(|(_, _, again)| matches!(again, Again::Same { .. })), "{all:?}");
}

/// If it waited for a place among all calls, while the one of which it is told holds one, it might wait until that ends.
#[tokio::test]
async fn a_hook_that_a_call_of_a_plugin_waits_for_is_within_that_call() {
    let desk = Desk::new(GRAPH);
    desk.plugin("probe", "probe", &[], json!({ "tool": ["other"] }), "tool = ['other']");
    desk.plugin("helper", "other", &[], json!({}), "");
    desk.plugin("guard", "more", &["before-tool-call"], json!({}), "");
    let arguments = json!({ "do": "tool", "tool": "other", "arguments": { "do": "say", "text": "hi" } });
    let replies = hotcell_loopback::Script::from_json(&calls("probe", arguments)).unwrap();
    let model = hotcell_loopback::Loopback::start(replies).unwrap();
    let host = desk.host(&model);
    let given = RunInput { input: Some("go".to_owned()), ..RunInput::default() };
    let report = desk.start(&host, given, std::sync::Arc::new(hotcell_runtime::Nobody)).await.unwrap();
    let recorded = host.journal().calls(&report.run, 0, 10).await.unwrap();
    let depths: Vec<(&str, u64)> = recorded
        .iter()
        .map(|call| {
            let recording: serde_json::Value = serde_json::from_slice(call.body.as_ref().unwrap()).unwrap();
            (call.name.as_str(), recording["depth"].as_u64().unwrap_or_default())
        })
        .collect();
    assert_eq!(depths, [("guard", 0), ("guard", 1), ("helper", 1), ("probe", 0)]);
}
