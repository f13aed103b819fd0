//! What a collector is told of runs.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use hotcell_serve::ServeSettings;
use hotcell_telemetry::{OtlpSettings, Telemetry};
use serde_json::json;

use crate::collector::{Collector, Message};
use crate::desk::{ASK, Desk, ECHO, SECRET, SLOW, ok, until};

/// Its words are in its traces only where that is wanted.
const TOOL: [(&str, &str); 3] = [
    (
        "helper/graph.yaml",
        "name: helper\nversion: \"1.0\"\nstart: ask\nnodes:\n  ask:\n    type: llm\n    prompt: \"private words {{initial_prompt}}\"\n    state_updates: { said: \"{{output}}\" }\n    next: work\n  work: { type: script, script: scripts/work.js, next: fails }\n  fails: { type: script, script: scripts/fails.js, next: done }\n  done: { type: end, output: \"{{said}}\" }\n",
    ),
    ("helper/scripts/work.js", "console.log(JSON.stringify({ worked: true }));\n"),
    ("helper/scripts/fails.js", "throw new Error('private reason');\n"),
];

/// An agent of an AgentLoom file.
const CLERK: (&str, &str) = ("clerk/agent.yaml", "name: clerk\nsystem_prompt: You answer.\n");

/// Telemetry that sends to a collector what these variables say.
fn sending(collector: &Collector, more: &[(&str, &str)]) -> impl FnOnce(&mut ServeSettings) {
    let given = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &*collector.url),
        ("OTEL_EXPORTER_OTLP_HEADERS", "api-key=k"),
        // What took too long would be sent again, and told twice.
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "60000"),
        ("OTEL_BSP_SCHEDULE_DELAY", "20"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "3600000"),
    ];
    let variables: HashMap<String, String> =
        given.iter().chain(more).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let settings = OtlpSettings::from_environment(&|name| variables.get(name).cloned()).expect("read").expect("sent");
    move |serve| serve.telemetry = Telemetry::sending(&settings).expect("it sends")
}

/// Waits until so many spans whose names begin like this were told: that of a run is the last one of what is told of it.
async fn are_told(collector: &Collector, name: &str, count: usize) {
    let told = || collector.spans().iter().filter(|span| span.text(5).starts_with(name)).count();
    until(&format!("{count} of `{name}` are told"), || told() >= count).await;
}

fn named<'a>(spans: &'a [Message], name: &str) -> &'a Message {
    let found = spans.iter().find(|span| span.text(5) == name);
    found.unwrap_or_else(|| panic!("{name} of {:?}", spans.iter().map(|span| span.text(5)).collect::<Vec<_>>()))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_a_trace_without_what_was_said() {
    let collector = Collector::start().await;
    let mut desk = Desk::set_up(&TOOL, sending(&collector, &[])).await;
    desk.model.answers(1);
    let body = json!({ "agent_id": "helper", "input": format!("private words {SECRET}") });
    let run = ok(desk.post("/runs/wait", body)).await["run"]["run_id"].as_str().expect("a run").to_owned();
    are_told(&collector, "invoke_workflow", 1).await;
    desk.stop().await;
    let spans = collector.spans();
    let root = named(&spans, "invoke_workflow helper");
    assert!(root.bytes(4).is_empty() && root.bytes(1).len() == 16 && root.bytes(2).len() == 8);
    assert_eq!(root.attribute(9, "hotcell.run.id"), Some(run));
    assert_eq!(root.attribute(9, "gen_ai.operation.name").as_deref(), Some("invoke_workflow"));
    // The graph goes on after the node that failed.
    assert_eq!(root.attribute(9, "hotcell.run.status").as_deref(), Some("completed"));
    assert!(spans.iter().all(|span| span.bytes(1) == root.bytes(1)), "one trace");
    for (name, around) in [
        ("llm ask", "invoke_workflow helper"),
        ("chat small", "llm ask"),
        ("script work", "invoke_workflow helper"),
        ("cell scripts/work.js", "script work"),
        ("cell scripts/fails.js", "script fails"),
    ] {
        let (span, around) = (named(&spans, name), named(&spans, around));
        assert_eq!(span.bytes(4), around.bytes(2), "{name}");
        assert!(
            span.number(7) >= around.number(7).saturating_sub(1_000_000)
                && span.number(8) <= around.number(8) + 1_000_000,
            "{name}"
        );
    }
    let chat = named(&spans, "chat small");
    assert_eq!(chat.number(6), 3, "a request to somebody else");
    for (name, value) in [
        ("gen_ai.provider.name", "test"),
        ("gen_ai.request.model", "small"),
        ("gen_ai.usage.input_tokens", "1"),
        ("gen_ai.usage.output_tokens", "1"),
    ] {
        assert_eq!(chat.attribute(9, name).as_deref(), Some(value), "{name}");
    }
    assert_eq!(named(&spans, "script fails").attribute(9, "error.type").as_deref(), Some("node_failed"));
    let fuel = named(&spans, "cell scripts/work.js").attribute(9, "hotcell.cell.fuel").expect("fuel");
    assert!(fuel.parse::<u64>().expect("a number") > 0);
    // Metrics go with the end of the server.
    let metrics = collector.metrics();
    let duration = metrics.iter().find(|metric| metric.text(1) == "gen_ai.client.inference.duration");
    let point = &duration.expect("measured").at(&[9, 1])[0];
    assert_eq!((point.number(4), point.attribute(9, "gen_ai.request.model").as_deref()), (1, Some("small")));
    let tokens = metrics.iter().find(|metric| metric.text(1) == "gen_ai.client.inference.usage.input_tokens");
    assert_eq!(f64::from_bits(tokens.expect("counted").at(&[7, 1])[0].number(4)), 1.0);
    for (signal, headers, body) in collector.everything() {
        assert_eq!(headers["content-type"], "application/x-protobuf");
        assert_eq!(headers["api-key"], "k");
        let text = String::from_utf8_lossy(&body);
        for private in ["private", SECRET, "reply1"] {
            assert!(!text.contains(private), "{private} in {signal}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_said_is_told_where_that_is_wanted_and_names_are_a_choice() {
    let collector = Collector::start().await;
    let more = [
        ("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true"),
        ("HOTCELL_TELEMETRY_NAMES", "agentloom"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "20"),
    ];
    let desk = Desk::set_up(&[ECHO, CLERK, TOOL[0], TOOL[1], TOOL[2]], sending(&collector, &more)).await;
    desk.model.answers(1);
    ok(desk.post("/runs/wait", json!({ "agent_id": "echo", "input": "words" }))).await;
    ok(desk.post("/runs/wait", json!({ "agent_id": "helper", "input": "x" }))).await;
    desk.model.answers(1);
    ok(desk.post("/runs/wait", json!({ "agent_id": "clerk", "input": "x" }))).await;
    are_told(&collector, "workflow:", 3).await;
    let spans = collector.spans();
    let agent = named(&spans, "agent:clerk");
    assert_eq!(agent.bytes(4), named(&spans, "step:clerk").bytes(2));
    assert!(spans.iter().any(|span| span.text(5).starts_with("chat ") && span.bytes(4) == agent.bytes(2)));
    for (name, value) in [
        ("agent.name", "clerk"),
        ("agent.iterations", "1"),
        ("agent.tool_calls_count", "0"),
        ("agent.tokens_total", "2"),
        ("agent.output_valid", "1"),
    ] {
        assert_eq!(agent.attribute(9, name).as_deref(), Some(value), "{name}");
    }
    let output = named(&spans, "workflow:echo").attribute(9, "hotcell.run.output");
    assert_eq!(output.as_deref(), Some("you said words"));
    assert_eq!(named(&spans, "workflow:echo").attribute(9, "workflow.status").as_deref(), Some("completed"));
    let failed = named(&spans, "step:fails");
    assert_eq!(failed.attribute(9, "step.type").as_deref(), Some("script"));
    assert!(failed.at(&[15])[0].text(2).contains("private reason"));
    for name in ["agentloom_workflow_runs_total", "agentloom_agent_invocations_total", "agentloom_agent_iterations"] {
        until(name, || collector.metrics().iter().any(|metric| metric.text(1) == name)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_goes_on_after_a_restart_goes_on_with_its_trace() {
    let collector = Collector::start().await;
    let mut desk = Desk::set_up(&[ASK], sending(&collector, &[])).await;
    let run = desk.begin(json!({ "agent_id": "ask" })).await;
    desk.stands(&run, "waiting").await;
    are_told(&collector, "invoke_workflow", 1).await;
    desk.stop().await;
    let first = collector.spans();
    let root = named(&first, "invoke_workflow ask");
    assert_eq!(root.attribute(9, "hotcell.run.status").as_deref(), Some("waiting"));
    let desk = desk.again_set_up(sending(&collector, &[])).await;
    ok(desk.post(&format!("/runs/{run}/answers"), json!({ "answer": "Ada" }))).await;
    desk.stands(&run, "completed").await;
    are_told(&collector, "invoke_workflow", 2).await;
    let spans = collector.spans();
    assert!(spans.iter().all(|span| span.bytes(1) == root.bytes(1)), "it is one trace");
    let later: Vec<&Message> = spans.iter().filter(|span| span.text(5) == "invoke_workflow ask").skip(1).collect();
    assert_eq!(later.len(), 1);
    assert_eq!(later[0].bytes(4), root.bytes(2), "what comes later is within what came first");
    assert_eq!(later[0].attribute(9, "hotcell.run.resumed").as_deref(), Some("1"));
    let mut ids: Vec<Vec<u8>> = spans.iter().map(|span| span.bytes(2)).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), spans.len(), "no span is told twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_is_busy_is_asked_again_and_one_that_is_dead_costs_runs_nothing() {
    let collector = Collector::start().await;
    collector.refuse(1);
    let desk = Desk::set_up(&[ECHO], sending(&collector, &[])).await;
    ok(desk.post("/runs/wait", json!({ "agent_id": "echo", "input": "x" }))).await;
    until("it was asked again", || !collector.spans().is_empty()).await;
    drop(desk);

    // One that takes connections and never answers.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", silent.local_addr().expect("an address"));
    let dead = Collector::at(url);
    let small = [("OTEL_BSP_MAX_QUEUE_SIZE", "4"), ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "4")];
    let mut desk = Desk::set_up(&[ECHO, SLOW], sending(&dead, &small)).await;
    for _ in 0..20 {
        ok(desk.post("/runs/wait", json!({ "agent_id": "echo", "input": "x" }))).await;
    }
    let text = desk.get("/metrics").send().await.expect("a reply").text().await.expect("a text");
    let dropped = text.lines().find(|line| line.starts_with("hotcell_telemetry_spans_total{outcome=\"dropped\"}"));
    let dropped: u64 =
        dropped.and_then(|line| line.rsplit_once(' ')?.1.parse().ok()).unwrap_or_else(|| panic!("{text}"));
    // Two spans each: the run and its node. Four at most are on their way, and four wait.
    assert!((40 - 8..40).contains(&dropped), "{dropped}");
    let begun = Instant::now();
    desk.stop().await;
    assert!(begun.elapsed() < Duration::from_secs(60), "the end waits for nobody");
}
