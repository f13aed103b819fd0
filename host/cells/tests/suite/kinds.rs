//! Node types, hooks and connectors; and plugins that were made for older versions of the contract.

use crate::support::{TestResult, cells, error, grants, load, plugin, state, terms};
use hotcell_budget::Budget;
use hotcell_cells::{
    CellError, ConnectorCall, ConnectorReply, HookCall, NodeCall, NodeOutcome, ScriptKind, ToolCall, Verdict,
};

/// Answers with its inputs as outputs, by the branch `b`.
#[tokio::test]
async fn a_node_has_outputs_and_a_branch() {
    let parts = r#"(data (i32.const 2000) "b")
        (func $run (param i32 i32 i32 i32 i32 i32) (result i32)
            (i32.store8 (i32.const 16) (i32.const 0))
            (i32.store (i32.const 20) (local.get 4)) (i32.store (i32.const 24) (local.get 5))
            (i32.store8 (i32.const 28) (i32.const 1))
            (i32.store (i32.const 32) (i32.const 2000)) (i32.store (i32.const 36) (i32.const 1))
            (i32.store (i32.const 40) (i32.const 0)) (i32.store (i32.const 44) (i32.const 0))
            (i32.const 16))"#;
    let description = r#"{"contract":"0.2.0","name":"acme:geo","nodes":[{"type":"look","branches":["a","b"]}]}"#;
    let bytes = plugin("node", "", parts, &["run-node@0.2.0#run=run"], description);
    let cells = cells();
    let cell = load(&cells, &bytes);
    let call = |node_type: &str| NodeCall {
        node_type: node_type.to_owned(),
        fields: "{}".to_owned(),
        inputs: r#"{"x":1}"#.to_owned(),
        state: state([]),
        answers: Vec::new(),
        terms: terms(Budget::default()),
    };
    let outcome = NodeOutcome { outputs: r#"{"x":1}"#.to_owned(), branch: Some("b".to_owned()), metadata: Vec::new() };
    assert_eq!(cells.run_node(&cell, call("look")).await.result, Ok(outcome));
    let report = cells.run_node(&cell, call("other")).await;
    assert_eq!(
        report.result.map_err(|error| error.to_string()),
        Err("`test.wasm` has no node type `other`".to_owned())
    );
}

/// Proceeds, changes or refuses by the first letter of the event.
#[tokio::test]
async fn a_hook_decides() {
    let parts = r#"(data (i32.const 2000) "no\1b[2J")
        (func $on (param i32 i32 i32 i32) (result i32) (local $first i32)
            (local.set $first (i32.load8_u (local.get 2)))
            (i32.store8 (i32.const 16) (i32.const 0))
            (i32.store8 (i32.const 20) (i32.const 0))
            (if (i32.eq (local.get $first) (i32.const 123)) (then
                (i32.store8 (i32.const 20) (i32.const 1))
                (i32.store (i32.const 24) (local.get 2)) (i32.store (i32.const 28) (local.get 3))))
            (if (i32.eq (local.get $first) (i32.const 91)) (then
                (i32.store8 (i32.const 20) (i32.const 2))
                (i32.store (i32.const 24) (i32.const 2000)) (i32.store (i32.const 28) (i32.const 6))
                (i32.store (i32.const 32) (i32.const 0)) (i32.store (i32.const 36) (i32.const 0))))
            (i32.const 16))"#;
    let description = r#"{"contract":"0.2.0","name":"guard","hooks":[{"point":"before-node"}]}"#;
    let bytes = plugin("hooks", "", parts, &["hook@0.2.0#on=on"], description);
    let cells = cells();
    let cell = load(&cells, &bytes);
    let expected = [
        ("null", Verdict::Proceed),
        ("{}", Verdict::Change("{}".to_owned())),
        ("[]", Verdict::Refuse("no\\u{1b}[2J".to_owned())),
    ];
    for (event, verdict) in expected {
        let call =
            HookCall { point: "before-node".to_owned(), event: event.to_owned(), terms: terms(Budget::default()) };
        assert_eq!(cells.call_hook(&cell, call).await.result, Ok(verdict), "{event}");
    }
}

/// Accepts what comes with a callback, and answers everything else with its input.
#[tokio::test]
async fn a_connector_answers_now_or_later() {
    let parts = r#"
        (func $answer (param $text i32) (param $length i32) (result i32)
            (i32.store8 (i32.const 16) (i32.const 0)) (i32.store8 (i32.const 20) (i32.const 0))
            (i32.store (i32.const 24) (local.get $text)) (i32.store (i32.const 28) (local.get $length))
            (i32.const 16))
        (func $send (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32)
            (if (i32.eqz (local.get 4)) (then (return (call $answer (local.get 0) (local.get 1)))))
            (i32.store8 (i32.const 16) (i32.const 0)) (i32.store8 (i32.const 20) (i32.const 1))
            (i32.const 16))
        (func $receive (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32)
            (call $ok (local.get 11) (local.get 12)))"#;
    let description = r#"{"contract":"0.2.0","name":"hook","connector":{"modes":["sync","callback"]}}"#;
    let exports = ["connect@0.2.0#send=send", "connect@0.2.0#receive=receive"];
    let cells = cells();
    let cell = load(&cells, &plugin("connector", "", parts, &exports, description));
    let call = |callback: bool, body: Option<&str>| ConnectorCall {
        input: r#"{"in":1}"#.to_owned(),
        config: "{}".to_owned(),
        callback: callback.then(|| ("http://localhost:1/".to_owned(), "s".to_owned())),
        body: body.map(str::to_owned),
        terms: terms(Budget::default()),
    };
    let done = |text: &str| Ok(ConnectorReply::Done(text.to_owned()));
    assert_eq!(cells.call_connector(&cell, call(false, None)).await.result, done(r#"{"in":1}"#));
    assert_eq!(cells.call_connector(&cell, call(true, None)).await.result, Ok(ConnectorReply::Accepted));
    assert_eq!(cells.call_connector(&cell, call(true, Some("[2]"))).await.result, done("[2]"));
}

/// Compiled guests of every version of the contract that was ever released. They are never rebuilt.
#[tokio::test]
async fn plugins_of_older_versions_keep_working() -> TestResult {
    let golden = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden");
    let cells = cells();

    let script = load(&cells, &std::fs::read(golden.join("0.1.0/script.wasm"))?);
    assert_eq!(script.script_kind(), Some(ScriptKind::Plugin));
    let report =
        crate::support::run_with(&cells, &script, state([("text", "\"old\"")]), terms(Budget::default())).await;
    assert_eq!(report.result.as_deref(), Ok(r#"{"length":3,"upper":"OLD"}"#));

    let tools = load(&cells, &std::fs::read(golden.join("0.1.0/tools.wasm"))?);
    let config = [("behaviour.add", "add"), ("behaviour.ask", "ask")];
    let call = |tool: &str, arguments: &str, answers: &[&str]| ToolCall {
        tool: tool.to_owned(),
        arguments: arguments.to_owned(),
        answers: answers.iter().map(|answer| (*answer).to_owned()).collect(),
        terms: hotcell_cells::Terms {
            config: std::sync::Arc::new(config.map(|(key, value)| (key.to_owned(), value.to_owned())).into()),
            grants: grants("ask = true"),
            ..terms(Budget::default())
        },
    };
    let report = cells.call_tool(&tools, call("add", r#"{"a":2,"b":3}"#, &[])).await;
    assert_eq!(report.result.as_deref(), Ok("5"));
    assert_eq!(report.logs.len(), 1);
    let question = r#"{"question":"really?"}"#;
    let report = cells.call_tool(&tools, call("ask", question, &[])).await;
    assert_eq!(error(&report), &CellError::Suspended { question: "really?".to_owned() });
    let report = cells.call_tool(&tools, call("ask", question, &["yes"])).await;
    assert_eq!(report.result.as_deref(), Ok("\"yes\""));
    Ok(())
}
