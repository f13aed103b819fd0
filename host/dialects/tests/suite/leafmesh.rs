//! Meshes: what a person sees for bad ones (`leafmesh/refused/*.yaml` with the snapshots beside them; files called `warning_*`
//! give a graph all the same), and the shared vectors for conditions and for what agents wait for.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hotcell_dialects::leafmesh::{self, AgentKind, EscalationTarget, HumanInterface, Loaded};
use hotcell_dialects::{Dialect, recognise};
use hotcell_graph::Value;
use hotcell_graph::diagnostic::{Severity, SourceFile, render};
use hotcell_graph::ir::{Action, CallTarget};
use hotcell_graph::python::ObjectCondition;
use hotcell_graph::value::parse_json;

use crate::shown::{files_in, snapshots_in};
use crate::surroundings::Fake;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/leafmesh")
}

fn load(name: &str, text: &str) -> Loaded {
    leafmesh::load(&Arc::new(SourceFile { name: name.into(), text: text.into() }), &Fake)
}

#[test]
fn every_kind_of_bad_mesh_is_explained() {
    let folder = folder().join("refused");
    let paths = files_in(&folder);
    assert!(paths.len() > 10, "the inputs are not there");
    snapshots_in(&folder).bind(|| {
        for path in paths {
            let name = path.file_stem().unwrap().to_str().unwrap();
            let text = std::fs::read_to_string(&path).unwrap();
            assert_eq!(recognise(&format!("{name}.yaml"), &text), Some(Dialect::LeafMesh), "{name}");
            let loaded = load(&format!("{name}.yaml"), &text);
            let errors = loaded.diagnostics.iter().filter(|one| one.severity == Severity::Error).count();
            assert_eq!(errors == 0, name.starts_with("warning_"), "{name} has {errors} errors");
            assert_eq!(loaded.graph.is_some(), errors == 0, "{name}");
            insta::assert_snapshot!(name, render(&loaded.diagnostics, false));
        }
    });
}

/// Who writes a field that is none is told how many there are, and to look there.
#[test]
fn the_documentation_lists_every_field_of_meshes_and_agents() {
    use serde_json::{Map, Value, json};
    let documentation = include_str!("../../../../docs/leafmesh.md");
    let (_, rest) = documentation.split_once("\n## Fields\n").expect("the section");
    let (of_mesh, rest) = rest.split_once("\n### Fields of agents\n").expect("the section of agents");
    let of_agent = rest.split("\n## ").next().unwrap();
    // Names stand between backquotes, in one paragraph and in the rows of a table.
    let fields = |text: &'static str, start: &str| -> Map<String, Value> {
        let lines = text.lines().filter(|line| line.starts_with(start));
        let names = lines.flat_map(|line| line.split('`').skip(1).step_by(2));
        names.map(|name| (name.to_owned(), Value::Null)).collect()
    };
    let (mut mesh, mut agent) = (fields(of_mesh, "A file has"), fields(of_agent, "| "));
    let counts = [mesh.len(), agent.len()];
    for (field, value) in [("agent_type", "llm"), ("model", "gpt-4o"), ("prompt", "Help"), ("zzqqxx", "")] {
        agent.insert(field.to_owned(), value.into());
    }
    mesh.insert("agents".to_owned(), json!({ "a": agent }));
    mesh.insert("entry_points".to_owned(), json!([{ "name": "e", "target": "a" }]));
    mesh.insert("zzqqxx".to_owned(), "".into());
    let shown = render(&load("mesh.json", &Value::Object(mesh).to_string()).diagnostics, false);
    let mut unknown: Vec<&str> = shown.lines().filter(|line| line.contains("is not a field of")).collect();
    unknown.sort_unstable();
    let expected = ["error: `zzqqxx` is not a field of the mesh", "warning: `zzqqxx` is not a field of the agent `a`"];
    assert_eq!(unknown, expected, "{shown}");
    for count in counts {
        let count = format!("it has {count} fields, which the documentation of the language lists");
        assert!(shown.contains(&count), "{count} is not in\n{shown}");
    }
}

#[test]
fn servers_of_one_name_are_one_server() {
    let told = |second: serde_json::Value| {
        let agent = |server: serde_json::Value| serde_json::json!({"agent_type": "llm", "model": "gpt-4o", "prompt": "Help", "mcp": [server]});
        let first = serde_json::json!({"name": "crm", "transport": "http", "url": "https://one.example.com/mcp"});
        let mesh = serde_json::json!({
            "agents": {"a": agent(first), "b": agent(second)}, "entry_points": [{"name": "e", "target": "a"}],
        });
        render(&load("mesh.json", &mesh.to_string()).diagnostics, false)
    };
    let problem = "the MCP server `crm` has other settings than that of the agent `a`";
    for (url, name, is_refused) in [
        ("https://one.example.com/mcp", "crm", false),
        ("https://two.example.com/mcp", "crm", true),
        ("https://two.example.com/mcp", "other", false),
    ] {
        let told = told(serde_json::json!({"name": name, "transport": "http", "url": url}));
        assert_eq!(told.contains(problem), is_refused, "{told}");
    }
}

fn vectors(name: &str) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(folder().join(name)).unwrap();
    let vectors: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
    assert!(vectors.len() >= 20, "{name} has few vectors");
    vectors
}

/// What always holds is no condition; a mesh with it has an edge without one.
#[test]
fn conditions_hold_where_the_vectors_say() {
    for vector in vectors("conditions.json") {
        let source = match &vector["condition"] {
            serde_json::Value::String(text) => text.as_str(),
            _ => "",
        };
        let mesh = serde_json::json!({"agents": {
            "a": {"agent_type": "programmatic", "can_call": [{"agent": "b", "condition": vector["condition"]}]},
            "b": {"agent_type": "programmatic", "communication_type": "chain"},
        }, "entry_points": [{"name": "e", "target": "a"}]});
        let loaded = load("mesh.json", &mesh.to_string());
        let is_refused = vector.get("load_error").is_some_and(|refused| refused == true);
        assert_eq!(loaded.graph.is_none(), is_refused, "{source}: {:?}", loaded.diagnostics);
        let Some(graph) = loaded.graph else { continue };
        let edges = graph.node(graph.find("a").unwrap()).next.clone();
        let is_free = matches!(&edges, hotcell_graph::ir::Next::Open(edges) if edges[0].condition.is_none());
        let Ok(condition) = ObjectCondition::parse(source, "calling_agent_response") else {
            assert!(is_free, "{source}");
            continue;
        };
        let Value::Object(output) = parse_json(&vector["output"].to_string()).unwrap() else { panic!("{source}") };
        let held = condition.holds(&output);
        let fires = is_free || held == Ok(true);
        assert_eq!(fires, vector["fires"] == true, "{source}: {held:?}");
        let reason = vector["reason"].as_str().unwrap_or_default();
        assert_eq!(held.is_err(), !is_free && reason != "ok", "{source}: {held:?}, {reason}");
    }
}

#[test]
fn what_agents_wait_for_is_read_where_the_vectors_say() {
    for vector in vectors("wait_for.json") {
        let mesh = serde_json::json!({"agents": {
            "a": {"agent_type": "programmatic", "can_call": ["t"]},
            "b": {"agent_type": "programmatic", "can_call": ["t"]},
            "c": {"agent_type": "programmatic", "can_call": ["t"]},
            "d": {"agent_type": "programmatic", "can_call": ["t"]},
            "t": {"agent_type": "programmatic", "communication_type": "chain", "wait_for": vector["wait_for"]},
        }, "entry_points": [{"name": "e", "target": "a"}]});
        let loaded = load("mesh.json", &mesh.to_string());
        let is_refused = vector["expect"] == "load_error";
        assert_eq!(loaded.graph.is_none(), is_refused, "{}: {:?}", vector["wait_for"], loaded.diagnostics);
    }
}

/// A field that hotcell reads and does not run is never silent: a check says so.
#[test]
fn every_field_that_is_not_run_is_named_by_a_check() {
    let loaded =
        load("mesh.yaml", &std::fs::read_to_string(folder().join("refused/warning_not_run_yet.yaml")).unwrap());
    let told: Vec<&str> = loaded.diagnostics.iter().map(|one| one.message.as_str()).collect();
    for field in ["playbook", "skills", "framework", "listen_events"] {
        let named = format!("not run by hotcell yet: `{field}`");
        assert!(told.iter().any(|message| message.starts_with(&named)), "{field}: {told:?}");
    }
}

/// How long a request to the model that is asked there may take.
fn model_time(target: &CallTarget) -> Option<Duration> {
    if let CallTarget::Loop(of_model) = target {
        return of_model.agent.retry.time;
    }
    target.graph()?.nodes().find_map(|(_, node)| match &node.action {
        Action::Call(call) => model_time(&call.target),
        _ => None,
    })
}

#[test]
fn requests_to_models_have_the_time_that_is_said_nearest() {
    for (own, of_mesh, expected) in [
        ("", "", None),
        ("", "timeouts: {llm_hard_timeout_s: 90}", Some(90)),
        ("llm_hard_timeout_s: 20", "timeouts: {llm_hard_timeout_s: 90}", Some(20)),
    ] {
        let text = format!(
            "agents:\n  a:\n    model: gpt-4o\n    prompt: Hi.\n    {own}\n{of_mesh}\nentry_points: [{{name: e, target: a}}]\n"
        );
        let loaded = load("mesh.yaml", &text);
        assert!(loaded.diagnostics.is_empty(), "{}", render(&loaded.diagnostics, false));
        let graph = loaded.graph.expect("a graph");
        let Action::Call(call) = &graph.node(graph.find("a").expect("the agent")).action else { panic!("{text}") };
        assert_eq!(model_time(&call.target), expected.map(Duration::from_secs), "{text}");
    }
}

#[test]
fn a_server_of_ones_own_has_the_time_of_the_file_or_the_variable() {
    for (timeout, expected) in [("timeout: 5", 5), ("", 7)] {
        let text = format!(
            "agents:\n  a: {{model: own, prompt: Hi.}}\nmesh:\n  local:\n    endpoint: http://localhost:8000/v1\n    {timeout}\n\
             entry_points: [{{name: e, target: a}}]\n"
        );
        let loaded = load("mesh.yaml", &text);
        assert!(loaded.diagnostics.is_empty(), "{}", render(&loaded.diagnostics, false));
        let graph = loaded.graph.expect("a graph");
        let Action::Call(call) = &graph.node(graph.find("a").expect("the agent")).action else { panic!("{text}") };
        assert_eq!(model_time(&call.target), Some(Duration::from_secs(expected)), "{text}");
    }
}

/// Nobody has to know how a mesh is lowered to see why it is no flow.
#[test]
fn what_a_flow_cannot_say_is_named_by_agents() {
    let text = r#"
manager: {model: gpt-4o-mini}
agents:
  intake: {agent_type: programmatic, communication_type: chain, can_call: [policy, {agent: desk, condition: "score > 3"}]}
  policy: {agent_type: programmatic, communication_type: chain, can_call: [sum]}
  desk: {agent_type: human, human_interface: default, communication_type: chain, can_call: [sum]}
  sum: {agent_type: programmatic, communication_type: chain, wait_for: "policy AND desk?", wake_up: "0 9 * * *"}
entry_points: [{name: in, target: intake}, {name: again, target: policy}]
"#;
    let loaded = load("mesh.yaml", text);
    let told = |graph, settings| leafmesh::no_flow(graph, settings)[1..].to_vec();
    let (Some(graph), Some(settings)) = (&loaded.graph, &loaded.settings) else {
        panic!("{}", render(&loaded.diagnostics, false))
    };
    assert_eq!(
        told(graph, settings),
        [
            "agents call others by a condition (`can_call`): `intake`",
            "agents call several others side by side (`can_call`): `intake`",
            "agents wait for several others (`wait_for`): `sum`",
            "agents are people, who are asked in a session and may answer days later: `desk`",
            "agents wake up by themselves (`wake_up`): `sum`",
            "it has several entry points: `in`, `again`",
            "a manager looks at what agents give (`manager`)",
        ]
    );
}

/// What is for whoever serves a mesh, with the documented values where a file says nothing.
#[test]
fn what_a_server_needs_stands_beside_the_graph() {
    let text = r#"
name: desk
environment: production
api: {cors_origins: ["https://desk.example.org"]}
limits: {webhook_rate_limit_max: 3, webhook_replay_skew_s: 20}
scheduler: {misfire_grace_s: 90}
manager:
  model: gpt-4o-mini
  can_intervene: false
  escalation:
    targets:
      - {type: human_agent, agent: boss}
      - {type: webhook, url: "https://ops.example.org/x", method: PUT, headers: {X-Key: "${OPS}"}, payload_template: {t: "{{message}}"}}
      - {type: channel, provider: slack, channel_id: C1, message_template: "{{message}}"}
    auto_escalate: {max_errors_per_session: 2}
agents:
  boss:
    agent_type: human
    human_interface: webhook
    operator_ids: [ann]
    webhook_config:
      outbound_url: https://desk.example.org/ask
      outbound_headers: {Authorization: "${OPS}"}
      inbound_auth_token: "${OPS}"
      response_mapping: {verdict: decision}
      max_retries: 1
    channels: {slack: {bot_token: "${OPS}", post_channel: C2}, teams: {}}
  clock:
    agent_type: programmatic
    communication_type: chain
    wake_up: ["0 9 * * *", {cron: "@daily", timezone: UTC, input: {b: 2}}]
    wake_up_input: {a: 1, b: 1}
entry_points:
  - {name: in, target: boss, description: The desk, condition: "kind == 'x'"}
  - {name: out, target: clock, condition: always}
"#;
    let loaded = load("mesh.yaml", text);
    let settings = loaded.settings.unwrap_or_else(|| panic!("{}", render(&loaded.diagnostics, false)));
    let entries: Vec<_> = settings.entry_points.iter().map(|entry| (&*entry.name, &*entry.condition)).collect();
    assert_eq!(entries, [("in", "kind == 'x'"), ("out", "always")]);
    assert!(settings.is_production);
    assert_eq!(settings.cors_origins, ["https://desk.example.org"]);
    let limits = settings.webhooks;
    assert_eq!((limits.max_payload_bytes, limits.rate_limit_max), (1024 * 1024, 3));
    assert_eq!((limits.replay_skew.as_secs(), settings.misfire_grace.as_secs()), (20, 90));
    let manager = settings.manager.as_ref().unwrap();
    assert_eq!((manager.can_intervene, manager.max_errors_per_session, manager.timeout_threshold), (false, 2, Some(2)));
    assert_eq!(manager.targets.len(), 3);
    assert!(matches!(&manager.targets[1], EscalationTarget::Webhook { method, headers, .. }
        if method == "PUT" && headers.0.len() == 1));
    let boss = settings.agent("boss").unwrap();
    assert!(boss.answers_first && boss.kind == AgentKind::Human);
    let human = boss.human.as_ref().unwrap();
    assert_eq!((human.interface, &human.operator_ids[..]), (HumanInterface::Webhook, &["ann".to_owned()][..]));
    let webhook = human.webhook.as_ref().unwrap();
    assert_eq!((webhook.max_retries, webhook.retry_delay.as_secs(), webhook.outbound_timeout.as_secs()), (1, 5, 30));
    assert_eq!(webhook.response_mapping, [("verdict".to_owned(), "decision".to_owned())]);
    let channels: Vec<&str> = human.channels.iter().map(|channel| &*channel.provider).collect();
    assert_eq!(channels, ["slack", "teams"]);
    let clock = settings.agent("clock").unwrap();
    assert!(!clock.answers_first);
    let inputs: Vec<String> = clock.wake_ups.iter().map(|one| Value::Object(one.input.clone()).to_json()).collect();
    assert_eq!(inputs, [r#"{"a":1,"b":1}"#, r#"{"a":1,"b":2}"#]);
}

/// Tokens and headers stand in no log.
#[test]
fn settings_do_not_show_secrets() {
    let text = r#"
agents:
  boss:
    agent_type: human
    human_interface: webhook
    webhook_config: {outbound_url: "http://localhost/x", outbound_headers: {A: tell-no-1}, inbound_auth_token: tell-no-2}
    channels: {slack: {bot_token: tell-no-3}}
entry_points: [{name: in, target: boss}]
"#;
    let shown = format!("{:?}", load("mesh.yaml", text).settings.expect("it loads"));
    assert!(shown.contains("http://localhost/x") && !shown.contains("tell-no"), "{shown}");
}
