//! What all calls of a run may use together.

use serde_json::json;

use crate::desk::{Desk, GRAPH, calls, error, told};

fn capped(budget: &str) -> Desk {
    let desk =
        Desk::new(&GRAPH.replace("start: work", &format!("start: work\nsettings: {{ budget: {{ {budget} }} }}")));
    desk.plugin("probe", "probe", &[], json!({ "tool": ["*"] }), "tool = ['*']");
    desk.plugin("second", "other", &[], json!({}), "");
    desk
}

#[tokio::test]
async fn attack_11_a_run_ends_calls_when_its_budget_is_used_up() {
    let (_, model) = capped("fuel: 30000000").run(calls("probe", json!({ "do": "loop" }))).await;
    assert!(told(&model).contains("out-of-fuel: all of 30.0 M fuel is used up"), "{}", told(&model));

    let twice = json!([
        { "tool_calls": [{ "name": "probe", "arguments": { "do": "say", "text": "one" } }] },
        { "tool_calls": [{ "name": "probe", "arguments": { "do": "say", "text": "two" } }] },
        { "content": "done" },
    ]);
    let (_, model) = capped("calls: 1").run(twice).await;
    assert_eq!(told(&model), "error: run-budget: the run has used up the 1 that its graph allows it as `budget.calls`");
}

#[tokio::test]
async fn calls_of_plugins_by_plugins_draw_on_the_same_budget() {
    let nested = json!({ "do": "tool", "tool": "other", "arguments": { "do": "say", "text": "x" } });
    let (_, model) = capped("calls: 1").run(calls("probe", nested.clone())).await;
    assert_eq!(told(&model), "x", "the outer call is not over when the inner one begins");
    let twice = json!([
        { "tool_calls": [{ "name": "probe", "arguments": nested }] },
        { "tool_calls": [{ "name": "probe", "arguments": nested }] },
        { "content": "done" },
    ]);
    let (_, model) = capped("calls: 2").run(twice).await;
    assert!(told(&model).contains("run-budget"), "{}", told(&model));
}

#[tokio::test]
async fn models_are_asked_only_as_often_as_the_run_may() {
    let (report, model) = capped("model_requests: 1").run(calls("probe", json!({ "do": "say", "text": "x" }))).await;
    let told = format!("{:?}", report.state);
    let expected = "run-budget: the run has used up the 1 that its graph allows it as `budget.model_requests`";
    assert!(told.contains(expected) || error(&report).contains(expected), "{told}");
    assert_eq!(model.requests().len(), 1);
}
