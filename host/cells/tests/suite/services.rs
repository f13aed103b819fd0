//! What a guest reaches of the host beyond WASI, each only where it was granted: store, secrets, model, other tools.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::support::{again, cells, cells_with, error, grants, load, terms, tools};
use async_trait::async_trait;
use hotcell_budget::{Budget, Fuel, Usage};
use hotcell_cells::{
    CellError, Cells, CellsOptions, KeyValueStore, LogLevel, RecordTerms, Report, Secrets, ServiceError, ServiceReply,
    Services, Terms, ToolCall,
};

/// Gives back what a function with the result `result<json, error>` gave: the text, or the text of the error.
const HAND_ON: &str = r#"
    (func $hand_on (param $at i32) (result i32)
        (if (i32.eqz (i32.load8_u (local.get $at)))
            (then (return (call $ok (i32.load offset=4 (local.get $at)) (i32.load offset=8 (local.get $at))))))
        (call $fail (i32.load offset=8 (local.get $at)) (i32.load offset=12 (local.get $at))))"#;

async fn call(cells: &Cells, bytes: &[u8], terms: Terms) -> Report<String> {
    let cell = load(cells, bytes);
    let (tool, arguments) = ("tool".to_owned(), r#"{"k":1}"#.to_owned());
    let is_outermost = terms.depth == 0;
    let terms = Terms { record: Some(RecordTerms::default()), ..terms };
    let report = cells.call_tool(&cell, ToolCall { tool, arguments, answers: Vec::new(), terms }).await;
    if is_outermost {
        again(cells, &cell, &report).await;
    }
    report
}

fn denials(report: &Report<String>) -> Vec<String> {
    report.denials.iter().map(|denial| denial.capability.grant_line().unwrap_or_default()).collect()
}

/// A run whose model answers with its request and whose tools answer with their name and depth.
struct Run;

#[async_trait]
impl Services for Run {
    async fn complete(&self, request: &str) -> ServiceReply {
        tokio::task::yield_now().await;
        let usage = Usage { calls: 1, ..Usage::default() };
        ServiceReply { result: Ok(format!("model:{request}")), usage: vec![("model".to_owned(), usage)] }
    }

    async fn call_tool(&self, name: &str, arguments: &str, depth: u32) -> ServiceReply {
        let result = match name {
            "busy" => Err(ServiceError::Unavailable("not now".to_owned())),
            name => Ok(format!("{name}:{arguments}:{depth}")),
        };
        let usage = Usage { fuel: Fuel(5), calls: 1, ..Usage::default() };
        ServiceReply { result, usage: vec![(name.to_owned(), usage)] }
    }
}

fn asks_model() -> Vec<u8> {
    tools(
        r#"(import "hotcell:plugin/llm@0.2.0" "complete" (func $complete (param i32 i32 i32)))"#,
        &format!(
            "{HAND_ON} (func $call (param i32 i32 i32 i32) (result i32)
                (call $complete (local.get 2) (local.get 3) (i32.const 64)) (call $hand_on (i32.const 64)))"
        ),
    )
}

fn calls_tool(name: &str) -> Vec<u8> {
    tools(
        r#"(import "hotcell:plugin/other-tools@0.2.0" "call" (func $other (param i32 i32 i32 i32 i32)))"#,
        &format!(
            "{HAND_ON} (data (i32.const 2000) \"{name}\") (func $call (param i32 i32 i32 i32) (result i32)
                (call $other (i32.const 2000) (i32.const {}) (local.get 2) (local.get 3) (i32.const 64))
                (call $hand_on (i32.const 64)))",
            name.len()
        ),
    )
}

#[tokio::test]
async fn the_model_answers_where_it_is_granted_and_its_cost_is_told() {
    let cells = cells();
    let with = |text: &str| Terms { grants: grants(text), services: Some(Arc::new(Run)), ..terms(Budget::default()) };
    let report = call(&cells, &asks_model(), with("llm = true")).await;
    assert_eq!(report.result.as_deref(), Ok("model:{\"k\":1}"));
    assert_eq!(
        report.nested.iter().map(|(name, usage)| (name.as_str(), usage.calls)).collect::<Vec<_>>(),
        [("model", 1)]
    );

    let report = call(&cells, &asks_model(), with("tool = ['*']")).await;
    assert_eq!(error(&report).to_string(), "`llm`, the model of the run is not granted");
    assert_eq!((denials(&report), report.nested.len()), (vec!["llm = true".to_owned()], 0));

    let nowhere = Terms { grants: grants("llm = true"), ..terms(Budget::default()) };
    let report = call(&cells, &asks_model(), nowhere).await;
    assert!(error(&report).to_string().contains("neither models nor tools are within reach"), "{report:?}");
}

#[tokio::test]
async fn other_tools_are_called_by_name_one_level_deeper() {
    let cells = cells();
    let with = |text: &str, depth: u32| Terms {
        grants: grants(text),
        services: Some(Arc::new(Run)),
        depth,
        ..terms(Budget::default())
    };
    let report = call(&cells, &calls_tool("search"), with("tool = ['search']", 2)).await;
    assert_eq!(report.result.as_deref(), Ok("search:{\"k\":1}:3"));
    assert_eq!(report.nested[0].1.fuel, Fuel(5));
    let report = call(&cells, &calls_tool("search"), with("tool = ['*']", 0)).await;
    assert_eq!(report.result.as_deref(), Ok("search:{\"k\":1}:1"));
    let report = call(&cells, &calls_tool("delete"), with("tool = ['search']", 0)).await;
    assert_eq!(denials(&report), ["tool = [\"delete\"]"]);
    let report = call(&cells, &calls_tool("busy"), with("tool = ['busy']", 0)).await;
    assert!(matches!(error(&report), CellError::Guest { message, .. } if message == "not now"), "{report:?}");
}

/// Names of megabytes that were denied would be kept of every call, in the memory of the host, in results and in the journal.
#[tokio::test]
async fn of_names_that_nobody_can_grant_their_length_is_kept() {
    let cells = cells();
    let tool = tools(
        r#"(import "hotcell:plugin/other-tools@0.2.0" "call" (func $other (param i32 i32 i32 i32 i32)))"#,
        &format!(
            "{HAND_ON} (func $call (param i32 i32 i32 i32) (result i32)
                (drop (memory.grow (i32.const 40)))
                (memory.fill (i32.const 131072) (i32.const 97) (i32.const 2000000))
                (call $other (i32.const 131072) (i32.const 2000000) (local.get 2) (local.get 3) (i32.const 64))
                (call $hand_on (i32.const 64)))"
        ),
    );
    let report = call(&cells, &tool, terms(Budget::default())).await;
    assert_eq!(denials(&report), ["tool = [\"(2000000 bytes)\"]"]);
}

/// The value is what the tool is given, and it gives it back as the name of a fact.
#[tokio::test]
async fn attack_31_55_no_value_of_a_secret_is_the_name_of_a_fact() {
    let tool = tools(
        "",
        "(func $call (param i32 i32 i32 i32) (result i32)
            (drop (call $fail (i32.const 1024) (i32.const 2)))
            (i32.store (i32.const 32) (i32.const 2000)) (i32.store (i32.const 36) (i32.const 1))
            (i32.store (i32.const 2000) (local.get 2)) (i32.store (i32.const 2004) (local.get 3))
            (i32.store (i32.const 2008) (i32.const 1024)) (i32.store (i32.const 2012) (i32.const 2))
            (i32.const 16))",
    );
    let terms = Terms {
        grants: grants("secret = [{ name = 'KEY', servers = ['https://x.org'] }]"),
        secrets: Secrets::new([("KEY".to_owned(), r#"{"k":1}"#.to_owned())]),
        ..terms(Budget::default())
    };
    let report = call(&cells(), &tool, terms).await;
    let CellError::Guest { metadata, .. } = error(&report) else { panic!("{report:?}") };
    assert_eq!(metadata[..], [("(secret KEY)".to_owned(), "{}".to_owned())]);
}

/// A plugin that calls itself through the host, as deep as it may.
#[tokio::test]
async fn attack_12_plugins_that_call_each_other_end_at_the_depth_limit() {
    struct Loop(Cells, Vec<u8>);

    #[async_trait]
    impl Services for Loop {
        async fn complete(&self, _: &str) -> ServiceReply {
            unreachable!("nobody asks")
        }

        async fn call_tool(&self, _: &str, _: &str, depth: u32) -> ServiceReply {
            let services = Arc::new(Loop(self.0.clone(), self.1.clone()));
            let terms =
                Terms { grants: grants("tool = ['a']"), services: Some(services), depth, ..terms(Budget::default()) };
            let report = Box::pin(call(&self.0, &self.1, terms)).await;
            let usage = vec![("a".to_owned(), report.usage)];
            ServiceReply { result: report.result.map_err(|error| ServiceError::Other(error.to_string())), usage }
        }
    }

    let cells = cells_with(CellsOptions { max_concurrent_calls: 1, ..CellsOptions::default() });
    let first = Loop(cells.clone(), calls_tool("a")).call_tool("a", "{}", 0).await;
    let Err(ServiceError::Other(message)) = first.result else { panic!("{first:?}") };
    let deep = "too-deep: `test.wasm` is called from 8 plugins above it, and 8 may nest";
    // Where all places are taken by the callers themselves, the call fails as well; it never waits for them.
    assert!(message == deep || message == "too many plugins call each other at the moment", "{message}");

    let cells = crate::support::cells();
    let first = Loop(cells.clone(), calls_tool("a")).call_tool("a", "{}", 0).await;
    assert!(matches!(&first.result, Err(ServiceError::Other(message)) if message == deep), "{first:?}");
}

#[derive(Default)]
struct Memory(Mutex<BTreeMap<String, Vec<u8>>>);

impl KeyValueStore for Memory {
    fn get(&self, key: &str) -> Result<Option<Vec<u8>>, ServiceError> {
        Ok(self.0.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned())
    }

    fn set(&self, key: &str, value: &[u8]) -> Result<(), ServiceError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key.to_owned(), value.to_vec());
        Ok(())
    }

    fn delete(&self, _: &str) -> Result<(), ServiceError> {
        Err(ServiceError::Other("not here".to_owned()))
    }

    fn keys(&self, _: &str, _: usize) -> Result<Vec<String>, ServiceError> {
        Ok(Vec::new())
    }
}

/// Sets `k` to its arguments, and answers with what `k` held before, or `null`.
fn remembers() -> Vec<u8> {
    tools(
        r#"(import "hotcell:plugin/kv@0.2.0" "get" (func $get (param i32 i32 i32)))
           (import "hotcell:plugin/kv@0.2.0" "set" (func $set (param i32 i32 i32 i32 i32)))"#,
        r#"(data (i32.const 2000) "k") (data (i32.const 2010) "null")
        (func $call (param i32 i32 i32 i32) (result i32)
            (call $get (i32.const 2000) (i32.const 1) (i32.const 64))
            (call $set (i32.const 2000) (i32.const 1) (local.get 2) (local.get 3) (i32.const 96))
            (if (i32.load8_u (i32.const 96))
                (then (return (call $fail (i32.load (i32.const 104)) (i32.load (i32.const 108))))))
            (if (i32.eqz (i32.load8_u (i32.const 68)))
                (then (return (call $ok (i32.const 2010) (i32.const 4)))))
            (call $ok (i32.load (i32.const 72)) (i32.load (i32.const 76))))"#,
    )
}

#[tokio::test]
async fn a_store_outlives_the_call_that_wrote_it() {
    let cells = cells();
    let store = Arc::new(Memory::default());
    let with = |text: &str| Terms { grants: grants(text), kv: Some(store.clone()), ..terms(Budget::default()) };
    let results = [
        call(&cells, &remembers(), with("kv = true")).await.result,
        call(&cells, &remembers(), with("kv = true")).await.result,
    ];
    assert_eq!(results, [Ok("null".to_owned()), Ok("{\"k\":1}".to_owned())]);
    let report = call(&cells, &remembers(), with("")).await;
    assert_eq!(error(&report).to_string(), "`kv`, a store of its own is not granted");
    assert_eq!(denials(&report), ["kv = true"]);
}

/// Logs the placeholder of the secret `KEY`, and answers with it.
fn tells_secret(name: &str) -> Vec<u8> {
    tools(
        r#"(import "hotcell:plugin/secrets@0.2.0" "placeholder" (func $placeholder (param i32 i32 i32)))"#,
        &format!(
            "{HAND_ON} (data (i32.const 2000) \"{name}\") (func $call (param i32 i32 i32 i32) (result i32)
                (call $placeholder (i32.const 2000) (i32.const {}) (i32.const 64)) (call $hand_on (i32.const 64)))",
            name.len()
        ),
    )
}

#[tokio::test]
async fn attack_54_57_a_guest_gets_placeholders_of_granted_secrets_and_no_value() {
    let cells = cells();
    let values = [("KEY", "value-of-the-key"), ("OTHER", "value-of-the-other")];
    let with = |text: &str| Terms {
        grants: grants(text),
        secrets: Secrets::new(values.map(|(name, value)| (name.to_owned(), value.to_owned()))),
        ..terms(Budget::default())
    };
    let granted = "secret = [{ name = 'KEY', servers = ['https://x.org'] }, { name = 'UNSET', servers = [] }]";
    let report = call(&cells, &tells_secret("KEY"), with(granted)).await;
    assert!(report.result.as_ref().is_ok_and(|text| text.starts_with("hotcell-secret-")), "{report:?}");
    let again = call(&cells, &tells_secret("KEY"), with(granted)).await;
    assert_ne!(report.result, again.result, "a placeholder means nothing to another call");
    for (name, expected) in [("OTHER", "`secret` `OTHER` is not granted"), ("UNSET", "the operator has not set it")] {
        let report = call(&cells, &tells_secret(name), with(granted)).await;
        assert!(error(&report).to_string().contains(expected), "{report:?}");
    }
}

#[tokio::test]
async fn attack_31_55_a_secret_that_a_guest_got_hold_of_is_taken_out_of_all_it_says() {
    let cells = cells();
    let parts = r#"(data (i32.const 2000) "it is value-of-the-key!")
        (func $call (param i32 i32 i32 i32) (result i32)
            (call $log (i32.const 2) (i32.const 2000) (i32.const 23))
            (if (result i32) (i32.eq (local.get 3) (i32.const 7))
                (then (call $fail (i32.const 2000) (i32.const 23)))
                (else (call $ok (i32.const 2000) (i32.const 23)))))"#;
    let imports = r#"(import "hotcell:plugin/log@0.2.0" "log" (func $log (param i32 i32 i32)))"#;
    let cell = load(&cells, &tools(imports, parts));
    let terms = Terms {
        grants: grants("secret = [{ name = 'KEY', servers = ['https://x.org'] }]"),
        secrets: Secrets::new([("KEY".to_owned(), "value-of-the-key".to_owned())]),
        ..terms(Budget::default())
    };
    for arguments in ["{}", r#"{"k":1}"#] {
        let call = ToolCall {
            tool: "tool".to_owned(),
            arguments: arguments.to_owned(),
            answers: Vec::new(),
            terms: terms.clone(),
        };
        let report = cells.call_tool(&cell, call).await;
        let said = match &report.result {
            Ok(text) => text.clone(),
            Err(error) => error.to_string(),
        };
        assert_eq!((said.as_str(), report.logs[0].message.as_str()), ("it is (secret KEY)!", "it is (secret KEY)!"));
    }
}

#[tokio::test]
async fn progress_is_told_while_the_guest_works() {
    let cells = cells();
    let imports = r#"(import "hotcell:plugin/progress@0.2.0" "report"
        (func $report (param i64 i32 i64 i32 i32)))"#;
    let parts = r#"(data (i32.const 2000) "pages") (func $call (param i32 i32 i32 i32) (result i32)
        (call $report (i64.const 3) (i32.const 1) (i64.const 10) (i32.const 2000) (i32.const 5))
        (call $ok (i32.const 1024) (i32.const 2)))"#;
    let heard = Arc::new(Mutex::new(Vec::new()));
    let ears = heard.clone();
    let terms = Terms {
        listener: Some(Arc::new(move |line| {
            ears.lock().unwrap_or_else(PoisonError::into_inner).push((line.level, line.message.clone(), line.progress));
        })),
        ..terms(Budget::default())
    };
    let report = call(&cells, &tools(imports, parts), terms).await;
    let heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
    assert_eq!(*heard, [(LogLevel::Info, "pages".to_owned(), Some((3, Some(10))))]);
    assert_eq!((report.result.as_deref(), report.logs.len(), report.usage.log_lines), (Ok("{}"), 1, 1));
}
