//! The contract as guests see it: state, settings, tools, questions.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::{call_tool, cells, error, load, run, run_with, script, state, terms, tools, tools_described};
use hotcell_budget::{Budget, Fuel};
use hotcell_cells::{CellError, ScriptKind, StateView, Terms, ToolCall};

const GET_IMPORT: &str = r#"(import "hotcell:plugin/state@0.2.0" "get" (func $get (param i32 i32 i32)))"#;
const ALL_IMPORT: &str = r#"(import "hotcell:plugin/state@0.2.0" "all" (func $all (param i32)))"#;

/// Gives the value at `order.id`, or fails with `none`.
const GET: &str = r#"(data (i32.const 2000) "order.id") (data (i32.const 2020) "none")
    (func $run (result i32)
        (call $get (i32.const 2000) (i32.const 8) (i32.const 64))
        (if (i32.eqz (i32.load8_u (i32.const 64)))
            (then (return (call $fail (i32.const 2020) (i32.const 4)))))
        (call $ok (i32.load (i32.const 68)) (i32.load (i32.const 72))))"#;

#[tokio::test]
async fn a_script_reads_one_value_and_nothing_else_is_made() {
    struct OneKey(AtomicUsize);

    impl StateView for OneKey {
        fn get(&self, path: &str) -> Option<String> {
            self.0.fetch_add(1, Ordering::Relaxed);
            (path == "order.id").then(|| "42".to_owned())
        }

        fn all(&self) -> Arc<str> {
            panic!("nobody asked for the whole state")
        }
    }

    let cells = cells();
    let cell = load(&cells, &script(GET_IMPORT, GET));
    assert_eq!(cell.script_kind(), Some(ScriptKind::Plugin));
    let view = Arc::new(OneKey(AtomicUsize::new(0)));
    let report = run_with(&cells, &cell, view.clone(), terms(Budget::default())).await;
    assert_eq!((report.result.as_deref(), view.0.load(Ordering::Relaxed)), (Ok("42"), 1));

    let report = run(&cells, &cell, Budget::default()).await;
    assert!(matches!(error(&report), CellError::Guest { message, .. } if message == "none"));
}

#[tokio::test]
async fn a_script_reads_the_whole_state_and_pays_for_its_size() {
    let cells = cells();
    let parts = "(func $run (result i32)
        (call $all (i32.const 64)) (call $ok (i32.load (i32.const 64)) (i32.load (i32.const 68))))";
    let cell = load(&cells, &script(ALL_IMPORT, parts));
    let small = run_with(&cells, &cell, state([("a", "1")]), terms(Budget::default())).await;
    assert_eq!(small.result.as_deref(), Ok(r#"{"a":1}"#));
    let long = format!("\"{}\"", "x".repeat(500_000));
    let large = run_with(&cells, &cell, state([("a", &long)]), terms(Budget::default())).await;
    assert_eq!(large.result.as_ref().map(String::len), Ok(500_008));
    assert!(large.usage.fuel > small.usage.fuel + Fuel(50_000));
}

#[tokio::test]
async fn attack_75_a_panic_of_the_host_is_a_failure_of_one_call() {
    struct Broken;

    impl StateView for Broken {
        fn get(&self, _: &str) -> Option<String> {
            panic!("the state is broken")
        }

        fn all(&self) -> Arc<str> {
            "{}".into()
        }
    }

    let cells = cells();
    let cell = load(&cells, &script(GET_IMPORT, GET));
    for _ in 0..40 {
        let report = run_with(&cells, &cell, Arc::new(Broken), terms(Budget::default())).await;
        assert_eq!(report.result, Err(CellError::Host { message: "the state is broken".to_owned() }));
    }
    let report = run_with(&cells, &cell, state([("order.id", "7")]), terms(Budget::default())).await;
    assert_eq!(report.result.as_deref(), Ok("7"));
}

#[tokio::test]
async fn a_plugin_finds_the_settings_of_its_operator() {
    let cells = cells();
    let imports = r#"(import "hotcell:plugin/config@0.2.0" "get" (func $get (param i32 i32 i32)))"#;
    let cell = load(&cells, &script(imports, GET));
    let config = BTreeMap::from([("order.id".to_owned(), "\"set\"".to_owned())]);
    let terms = Terms { config: Arc::new(config), ..terms(Budget::default()) };
    assert_eq!(run_with(&cells, &cell, state([]), terms).await.result.as_deref(), Ok("\"set\""));
    let report = run(&cells, &cell, Budget::default()).await;
    assert!(matches!(error(&report), CellError::Guest { .. }));
}

#[tokio::test]
async fn a_tool_is_described_without_being_run_and_called_by_name() {
    let cells = cells();
    // Gives its arguments back; running it before it is called would trap.
    let parts = "(func $call (param i32 i32 i32 i32) (result i32) (call $ok (local.get 2) (local.get 3)))";
    let cell = load(&cells, &tools("", parts));
    assert_eq!(cell.script_kind(), None);
    let names: Vec<&str> = cell
        .description()
        .map(|description| &description.tools)
        .into_iter()
        .flatten()
        .map(|tool| tool.name.as_str())
        .collect();
    assert_eq!(names, ["tool"]);
    let report = call_tool(&cells, &cell, r#"{"a":[1]}"#, &[]).await;
    assert_eq!(report.result.as_deref(), Ok(r#"{"a":[1]}"#));

    let call = ToolCall {
        tool: "other".to_owned(),
        arguments: "{}".to_owned(),
        answers: Vec::new(),
        terms: terms(Budget::default()),
    };
    let report = cells.call_tool(&cell, call).await;
    assert_eq!(error(&report).to_string(), "`test.wasm` has no tool `other`");
    let report = run(&cells, &cell, Budget::default()).await;
    assert_eq!(error(&report).to_string(), "`test.wasm` is not a script: it only has tools");
}

#[tokio::test]
async fn tools_without_a_good_description_are_not_loaded() {
    let cells = cells();
    let parts = "(func $call (param i32 i32 i32 i32) (result i32) (call $ok (local.get 2) (local.get 3)))";
    for (description, expected) in [
        (None, "it has no custom section `hotcell:description`"),
        (Some("not json"), "not of the documented form"),
        (Some(r#"{"contract":"0.9.0","name":"x","tools":[]}"#), "version `0.9.0`"),
    ] {
        let message = match cells.load("plugins/x.wasm", &tools_described("", parts, description)) {
            Ok(_) => "loaded".to_owned(),
            Err(error) => error.to_string(),
        };
        assert!(message.starts_with("cannot load `plugins/x.wasm`: ") && message.contains(expected), "{message}");
    }
}

/// Asks twice and gives both answers, one after the other.
const ASK: &str = r#"(data (i32.const 2000) "first?second?")
    (func $answered (param $at i32) (if (i32.load8_u (local.get $at)) (then (unreachable))))
    (func $call (param i32 i32 i32 i32) (result i32) (local $length i32)
        (call $ask (i32.const 2000) (i32.const 6) (i32.const 64)) (call $answered (i32.const 64))
        (call $ask (i32.const 2006) (i32.const 7) (i32.const 96)) (call $answered (i32.const 96))
        (local.set $length (i32.load (i32.const 72)))
        (memory.copy (i32.const 4096) (i32.load (i32.const 68)) (local.get $length))
        (memory.copy (i32.add (i32.const 4096) (local.get $length)) (i32.load (i32.const 100)) (i32.load (i32.const 104)))
        (call $ok (i32.const 4096) (i32.add (local.get $length) (i32.load (i32.const 104)))))"#;
const ASK_IMPORT: &str = r#"(import "hotcell:plugin/ask@0.2.0" "ask" (func $ask (param i32 i32 i32)))"#;

#[tokio::test]
async fn a_question_suspends_the_call_until_it_is_answered() {
    let cells = cells();
    let cell = load(&cells, &tools(ASK_IMPORT, ASK));
    let suspended = |question: &str| Err(CellError::Suspended { question: question.to_owned() });
    assert_eq!(call_tool(&cells, &cell, "{}", &[]).await.result, suspended("first?"));
    assert_eq!(call_tool(&cells, &cell, "{}", &["1"]).await.result, suspended("second?"));
    assert_eq!(call_tool(&cells, &cell, "{}", &["1", "2"]).await.result.as_deref(), Ok("12"));

    let call = ToolCall {
        tool: "tool".to_owned(),
        arguments: "{}".to_owned(),
        answers: Vec::new(),
        terms: terms(Budget::default()),
    };
    let report = cells.call_tool(&cell, call).await;
    let denials: Vec<String> = report.denials.iter().map(ToString::to_string).collect();
    assert!(matches!(error(&report), CellError::Trap { .. }), "{report:?}");
    assert!(denials.len() == 1 && denials[0].ends_with("[grants.\"test.wasm\"]\nask = true"), "{denials:?}");
}
