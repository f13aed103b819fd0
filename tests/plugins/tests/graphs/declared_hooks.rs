//! Hooks that a declarative agent names: every point that its language has, in the order of the file.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::declarative::talker;
use crate::desk::{Desk, Says, calls, error, output, state, told};

/// A desk whose agent has skills, a sub-agent and an interrupt, guarded by a hook that does at `point` what `action` says.
fn guarded(point: &str, action: &str) -> Desk {
    guarded_by(&[("second", point, action)])
}

fn guarded_by(hooks: &[(&str, &str, &str)]) -> Desk {
    let named: Vec<String> = hooks.iter().map(|(name, ..)| format!("{{import_path: my.hooks.{name}}}")).collect();
    let text = talker(&format!(
        "skills: [{{id: weather, skill_card_path: weather/card.json}}]\nsub_agents: [{{id: clerk, yaml_path: \
         clerk.yaml}}]\nhooks: [{}]",
        named.join(", ")
    ));
    let text = text.replace("edges: []", "  - {name: pause, type: interrupt, args: {}}\n        - {name: call, type: call_agent, args: {agent: {id: clerk}, input: \"messages[size(messages) - 1]\"}}\n      edges: [{source: work, target: pause}, {source: pause, target: call}]");
    let desk = Desk::of("agent.yaml", &text);
    desk.write("weather/card.json", r#"{"id": "weather", "files": []}"#);
    desk.write("weather/SKILL.md", "Look out.");
    let clerk = "manifest_version: 1\nagents:\n  clerk:\n    state: {fields: [{name: messages, type: list}]}\n    graph: {entry_point: \
                 say, nodes: [{name: say, type: set_state, args: {values: {messages: '{\"type\": \"ai\", \"content\": \"clerk: \" + \
                 messages[0].content}'}}}], edges: []}\n";
    desk.write("clerk.yaml", clerk);
    for (name, point, action) in hooks {
        desk.plugin(name, name, &[point], json!({}), "");
        desk.settings(&format!("[plugins.{name}.config]\n{point} = '{action}'"));
    }
    desk
}

fn load() -> Value {
    calls("load_skill_md", json!({ "skill_id": "weather" }))
}

#[tokio::test]
async fn hooks_change_what_their_point_allows() {
    let yes = || Arc::new(Says("yes"));
    let (report, model) = guarded("after-skill-load", r#"{"content":"Stay in."}"#).run_with(load(), yes()).await;
    assert_eq!((told(&model).as_str(), output(&report).as_str()), ("Stay in.", "clerk: yes"));
    for (point, change, expected) in [
        ("before-agent-call", r#"{"prompt":"maybe"}"#, "clerk: maybe"),
        ("after-agent-call", r#"{"output":"nobody"}"#, "nobody"),
        ("after-question", r#"{"answer":"no"}"#, "clerk: no"),
    ] {
        let (report, _) = guarded(point, change).run_with(json!([{ "content": "hm" }]), yes()).await;
        assert_eq!(output(&report), expected, "{point}");
    }
    let (report, _) = guarded("before-question", r#"{"question":"Really?"}"#).run(json!([{ "content": "hm" }])).await;
    let hotcell_runtime::Outcome::Waiting { questions } = &report.outcome else { panic!("{:?}", report.outcome) };
    assert_eq!(questions[0].text, "Really?");
    let (report, _) = guarded("after-model-call", r#"{"reply":{"text":"better"}}"#)
        .run_with(json!([{ "content": "hm" }]), yes())
        .await;
    assert_eq!(state(&report)["messages"][1]["content"], json!("better"));
}

#[tokio::test]
async fn hooks_refuse_skills_and_agents() {
    let yes = || Arc::new(Says("yes"));
    for point in ["before-skill-load", "after-skill-load"] {
        let (_, model) = guarded(point, "refuse").run_with(load(), yes()).await;
        assert_eq!(told(&model), format!("error: refused at `{point}`: `second`: not at {point}"));
    }
    let unload = || calls("unload_skill", json!({ "skill_id": "weather" }));
    let (_, model) = guarded("before-skill-unload", "refuse").run_with(unload(), yes()).await;
    assert!(told(&model).starts_with("error: refused at `before-skill-unload`"), "{}", told(&model));
    let (_, model) = guarded("after-skill-unload", "refuse").run_with(unload(), yes()).await;
    assert_eq!(told(&model), "skill `weather` is unloaded");
    for point in ["before-agent-call", "after-agent-call"] {
        let (report, _) = guarded(point, "refuse").run_with(json!([{ "content": "hm" }]), yes()).await;
        assert!(error(&report).contains(&format!("refused at `{point}`")), "{}", error(&report));
    }
}

#[tokio::test]
async fn a_hook_that_fails_or_hangs_refuses_unless_it_is_optional() {
    for (action, expected) in [("trap", "trapped"), ("loop", "out-of-fuel"), ("no json", "the hook `second` failed")] {
        let desk = guarded("before-skill-load", action);
        let (_, model) = desk.run_with(load(), Arc::new(Says("yes"))).await;
        assert!(told(&model).contains(expected), "{action}: {}", told(&model));
        desk.settings("[hooks]\noptional = ['second']");
        let (_, model) = desk.run_with(load(), Arc::new(Says("yes"))).await;
        assert_eq!(told(&model), "Look out.");
    }
}

#[tokio::test]
async fn hooks_are_told_in_the_order_of_the_file() {
    for (order, expected) in [(["second", "third"], "third"), (["third", "second"], "second")] {
        let actions = order.map(|name| format!(r#"{{"content":"{name}"}}"#));
        let hooks: Vec<(&str, &str, &str)> =
            order.iter().zip(&actions).map(|(name, action)| (*name, "after-skill-load", action.as_str())).collect();
        let (_, model) = guarded_by(&hooks).run_with(load(), Arc::new(Says("yes"))).await;
        assert_eq!(told(&model), expected);
    }
}

#[tokio::test]
async fn import_paths_mean_what_the_settings_say() {
    let desk = guarded("after-agent-call", r#"{"output":"second"}"#);
    std::fs::remove_file(desk.path("plugins/second.wasm")).unwrap();
    desk.plugin("third", "third", &["after-agent-call"], json!({}), "");
    let refused = desk.refusal();
    assert!(refused.contains("my.hooks.second"), "{refused}");
    desk.settings(
        "[plugins.third.config]\nafter-agent-call = '{\"output\":\"third\"}'\n[imports]\n\"my.hooks.second\" = 'third'",
    );
    let (report, _) = desk.run_with(json!([{ "content": "hm" }]), Arc::new(Says("yes"))).await;
    assert_eq!(output(&report), "third");
}

#[tokio::test]
async fn a_sub_agent_by_its_import_path_is_a_file_of_ours() {
    let clerk = |says: &str| {
        format!(
            "manifest_version: 1\nagents:\n  clerk:\n    state: {{fields: [{{name: messages, type: list}}]}}\n    graph: {{entry_point: say, \
             nodes: [{{name: say, type: set_state, args: {{values: {{messages: '{{\"type\": \"ai\", \"content\": \"{says}\"}}'}}}}}}], \
             edges: []}}\n"
        )
    };
    let text = talker("sub_agents: [{id: clerk, import_path: my.agents.clerk}]").replace(
        "edges: []",
        "  - {name: call, type: call_agent, args: {agent: {id: clerk}, input: '\"hm\"'}}\n      edges: [{source: work, target: call}]",
    );
    let desk = Desk::of("agent.yaml", &text);
    let refused = desk.refusal();
    assert!(refused.contains("my/agents/clerk.yaml") && refused.contains("agent.yaml:4:"), "{refused}");
    desk.write("my/agents/clerk.yaml", &clerk("beside the file"));
    let (report, _) = desk.run(json!([{ "content": "hm" }])).await;
    assert_eq!(output(&report), "beside the file");
    desk.write("others/desk.yaml", &clerk("as the settings say"));
    desk.settings("[imports]\n\"my.agents.clerk\" = 'others/desk.yaml'");
    let (report, _) = desk.run(json!([{ "content": "hm" }])).await;
    assert_eq!(output(&report), "as the settings say");
}
