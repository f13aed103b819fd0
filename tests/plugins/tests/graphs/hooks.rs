//! Hooks around what a run does: they see it, change what the point allows, refuse it; and one that fails guards on.

use serde_json::json;

use crate::desk::{Desk, GRAPH, calls, error, output, told};

/// A desk with a guard that listens at `point` and does there what `action` says.
fn guarded(point: &str, action: &str) -> Desk {
    let desk = Desk::new(GRAPH);
    desk.plugin("probe", "probe", &[], json!({}), "");
    desk.plugin("second", "other", &[point], json!({}), "");
    desk.settings(&format!("[plugins.second.config]\n{point} = '{action}'"));
    desk
}

#[tokio::test]
async fn a_hook_changes_what_its_point_allows() {
    let say = || calls("probe", json!({ "do": "say", "text": "secret" }));
    let (_, model) = guarded("before-tool-call", r#"{"arguments":{"text":"redacted"}}"#).run(say()).await;
    assert_eq!(told(&model), "redacted");
    let (_, model) = guarded("after-tool-call", r#"{"result":"kept back"}"#).run(say()).await;
    assert_eq!(told(&model), "kept back");
    let (_, model) =
        guarded("before-model-call", r#"{"messages":[{"content":"changed"}]}"#).run(json!([{ "content": "x" }])).await;
    assert_eq!(model.requests()[0].messages[0].content, "changed");
    let (report, _) =
        guarded("after-model-call", r#"{"reply":{"text":"better"}}"#).run(json!([{ "content": "x" }])).await;
    assert_eq!(output(&report), "better");
    let (report, _) =
        guarded("after-node", r#"{"writes":{"answer":"written"}}"#).run(json!([{ "content": "x" }])).await;
    assert_eq!(output(&report), "written");
}

/// A guard that plugins could go around by calling each other would guard nothing.
#[tokio::test]
async fn a_hook_is_told_of_what_plugins_call_themselves() {
    let guarded = |point: &str| {
        let desk = Desk::new(GRAPH);
        let asks = json!({ "llm": true, "tool": ["other"] });
        desk.plugin("probe", "probe", &[], asks, "llm = true\ntool = ['other']");
        desk.plugin("second", "other", &[], json!({}), "");
        desk.plugin("third", "more", &[point], json!({}), "");
        desk
    };
    let told_of = |report: &hotcell_runtime::RunReport| {
        report.account.iter().find(|(who, _)| *who == "third").map_or(0, |(_, used)| used.calls)
    };
    for point in ["before-tool-call", "after-tool-call"] {
        let arguments = json!({ "do": "tool", "tool": "other", "arguments": { "do": "say", "text": "hello" } });
        let (report, model) = guarded(point).run(calls("probe", arguments)).await;
        assert_eq!((told(&model).as_str(), told_of(&report)), ("hello", 2), "{point}");
    }
    for point in ["before-model-call", "after-model-call"] {
        let replies = json!([
            { "tool_calls": [{ "name": "probe", "arguments": { "do": "model", "text": "what now?" } }] },
            { "content": "this" },
            { "content": "done" },
        ]);
        let (report, _) = guarded(point).run(replies).await;
        assert_eq!((output(&report).as_str(), told_of(&report)), ("done", 3), "{point}");
    }
    // What it makes of a call is what is done.
    let desk = guarded("after-tool-call");
    desk.settings("[plugins.third.config]\nafter-tool-call = '{\"result\":\"kept back\"}'");
    let arguments = json!({ "do": "tool", "tool": "other", "arguments": { "do": "say", "text": "hello" } });
    let (_, model) = desk.run(calls("probe", arguments)).await;
    assert_eq!(told(&model), "kept back");
}

#[tokio::test]
async fn a_hook_refuses_and_the_run_says_which_one_and_why() {
    for point in ["before-run", "before-node", "before-model-call", "after-model-call", "after-node"] {
        let (report, model) = guarded(point, "refuse").run(json!([{ "content": "x" }])).await;
        // A failed node would not end the run of this graph.
        let reason = format!("refused at `{point}`: `second`: not at {point}");
        assert!(error(&report).contains(&reason), "{point}: {}", error(&report));
        let asked = usize::from(matches!(point, "after-model-call" | "after-node"));
        assert_eq!(model.requests().len(), asked, "{point}");
    }
    let (_, model) = guarded("before-tool-call", "refuse").run(calls("probe", json!({ "do": "say" }))).await;
    assert_eq!(told(&model), "error: refused at `before-tool-call`: `second`: not at before-tool-call");
}

#[tokio::test]
async fn a_hook_that_fails_refuses_unless_it_is_optional() {
    for (action, expected) in [("trap", "trapped"), ("loop", "out-of-fuel"), ("no json", "the hook `second` failed")] {
        let desk = guarded("before-tool-call", action);
        let say = || calls("probe", json!({ "do": "say", "text": "hi" }));
        let (_, model) = desk.run(say()).await;
        let refused = told(&model);
        assert!(refused.starts_with("error: refused at `before-tool-call`") && refused.contains(expected), "{refused}");
        desk.settings("[hooks]\noptional = ['second']");
        let (_, model) = desk.run(say()).await;
        assert_eq!(told(&model), "hi");
    }
}

#[tokio::test]
async fn hooks_are_told_in_the_order_of_the_settings() {
    for (order, expected) in
        [("['second', 'probe']", "probe"), ("['probe', 'second']", "second"), ("['probe']", "probe")]
    {
        let desk = Desk::new(GRAPH);
        desk.plugin("probe", "probe", &["after-model-call"], json!({}), "");
        desk.plugin("second", "other", &["after-model-call"], json!({}), "");
        for name in ["probe", "second"] {
            desk.settings(&format!(
                "[plugins.{name}.config]\nafter-model-call = '{{\"reply\":{{\"text\":\"{name}\"}}}}'"
            ));
        }
        desk.settings(&format!("[hooks]\norder = {order}"));
        let (report, _) = desk.run(json!([{ "content": "x" }])).await;
        assert_eq!(output(&report), expected, "{order}");
    }
}

#[tokio::test]
async fn a_hook_that_nobody_decided_on_keeps_the_graph_from_running() {
    let desk = Desk::new(GRAPH);
    desk.plugin("probe", "probe", &[], json!({}), "");
    desk.plugin("second", "other", &["before-run"], json!({ "llm": true }), "");
    let text = desk.refusal();
    assert!(text.contains("hotcell plugin grant second") && text.contains("would not be guarded"), "{text}");
}

/// A hook sees what nobody granted it to see, so one that came with a folder waits, also if it asks for nothing else.
#[tokio::test]
async fn a_hook_of_the_folder_waits_for_a_decision() {
    let desk = guarded("before-run", "refuse");
    assert!(error(&desk.run(json!([])).await.0).contains("refused at `before-run`"));
    std::fs::remove_file(desk.path("hotcell.lock")).unwrap();
    let text = desk.refusal();
    assert!(text.contains("see prompts and state of runs") && text.contains("as a hook at `before-run`"), "{text}");
    assert!(text.contains("hotcell plugin grant second"), "{text}");
}
