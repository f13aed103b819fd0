//! Guests for the tests, written as WebAssembly text, and short ways to call them.
//!
//! A guest of the contract is a core module in the canonical ABI that `wit-component` wraps with the real `wit/`; a
//! command is a WASI preview 1 module as it is.
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use hotcell_budget::{Budget, Limit};
use hotcell_cells::{
    Cell, CellError, Cells, CellsOptions, Grants, RecordTerms, Recording, Report, ScriptCall, StateView, Terms,
    ToolCall,
};
use wasi_preview1_component_adapter_provider::WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER;
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};

/// What a test gives back.
pub(crate) type TestResult = Result<(), Box<dyn std::error::Error>>;

/// State as a flat list of keys with JSON values.
pub(crate) struct Flat(pub(crate) BTreeMap<String, String>);

impl StateView for Flat {
    fn get(&self, path: &str) -> Option<String> {
        self.0.get(path).cloned()
    }

    fn all(&self) -> Arc<str> {
        let fields: Vec<String> = self.0.iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
        format!("{{{}}}", fields.join(",")).into()
    }
}

/// State with these keys and JSON values.
pub(crate) fn state<const N: usize>(fields: [(&str, &str); N]) -> Arc<dyn StateView> {
    Arc::new(Flat(fields.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()))
}

/// Cells for few calls, without a cache.
pub(crate) fn cells() -> Cells {
    cells_with(CellsOptions::default())
}

/// Cells with these options.
pub(crate) fn cells_with(options: CellsOptions) -> Cells {
    let options = CellsOptions { max_concurrent_calls: options.max_concurrent_calls.min(16), ..options };
    Cells::new(options).unwrap_or_else(|error| panic!("{error}"))
}

/// WebAssembly from its text.
pub(crate) fn wasm(text: &str) -> Vec<u8> {
    wat::parse_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The memory, allocator and helpers that guests of the contract share. `$ok` returns a JSON text, `$fail` an error
/// of the kind `other`.
const PRELUDE: &str = r#"
    (global $top (mut i32) (i32.const 65536))
    (func $allocate (export "cabi_realloc") (param i32 i32 i32) (param $size i32) (result i32)
        (local $at i32)
        (local.set $at (global.get $top))
        (global.set $top (i32.and (i32.add (i32.add (local.get $at) (local.get $size)) (i32.const 7)) (i32.const -8)))
        (block $enough
            (br_if $enough (i32.le_u (global.get $top) (i32.mul (memory.size) (i32.const 65536))))
            (br_if $enough (i32.ge_s (i32.const 0) (i32.const 1)))
            (drop (memory.grow (i32.add (i32.div_u (local.get $size) (i32.const 65536)) (i32.const 1)))))
        (local.get $at))
    (func $ok (param $text i32) (param $length i32) (result i32)
        (i32.store (i32.const 16) (i32.const 0))
        (i32.store (i32.const 20) (local.get $text))
        (i32.store (i32.const 24) (local.get $length))
        (i32.const 16))
    (func $fail (param $text i32) (param $length i32) (result i32)
        (i32.store (i32.const 16) (i32.const 1))
        (i32.store (i32.const 20) (i32.const 3))
        (i32.store (i32.const 24) (local.get $text))
        (i32.store (i32.const 28) (local.get $length))
        (i32.store (i32.const 32) (i32.const 0))
        (i32.store (i32.const 36) (i32.const 0))
        (i32.const 16))
    (data (i32.const 1024) "{}")
"#;

/// A component of the world `script`. `imports` (which may be of WASI preview 1) are core imports, `parts` define `$run` and whatever it needs; data
/// goes between addresses 1,026 and 65,536.
pub(crate) fn script(imports: &str, parts: &str) -> Vec<u8> {
    let text = format!(
        "(module {imports} (memory (export \"memory\") 1) {PRELUDE} {parts}
            (export \"hotcell:plugin/run-script@0.2.0#run\" (func $run)))"
    );
    component("script", &text)
}

/// A component of the world `tools` with one tool `tool`. `parts` define `$call`, which takes the addresses and
/// lengths of name and arguments.
pub(crate) fn tools(imports: &str, parts: &str) -> Vec<u8> {
    let description = r#"{"contract":"0.2.0","name":"test","tools":[
        {"name":"tool","description":"A tool","parameters":{"type":"object"}}]}"#;
    tools_described(imports, parts, Some(description))
}

/// The same with this description, or none.
pub(crate) fn tools_described(imports: &str, parts: &str, description: Option<&str>) -> Vec<u8> {
    let text = format!(
        "(module {imports} (memory (export \"memory\") 1) {PRELUDE} {parts}
            (export \"hotcell:plugin/call-tool@0.2.0#call\" (func $call)))"
    );
    let mut bytes = component("tools", &text);
    if let Some(description) = description {
        append_custom_section(&mut bytes, "hotcell:description", description.as_bytes());
    }
    bytes
}

/// A component of any world with these core exports, each `NAME=FUNCTION`, and this description.
pub(crate) fn plugin(world: &str, imports: &str, parts: &str, exports: &[&str], description: &str) -> Vec<u8> {
    let exports: String = exports
        .iter()
        .filter_map(|export| export.split_once('='))
        .map(|(name, function)| format!("(export \"hotcell:plugin/{name}\" (func ${function}))"))
        .collect();
    let text = format!("(module {imports} (memory (export \"memory\") 1) {PRELUDE} {parts} {exports})");
    let mut bytes = component(world, &text);
    append_custom_section(&mut bytes, "hotcell:description", description.as_bytes());
    bytes
}

/// Appends a custom section to a component.
pub(crate) fn append_custom_section(bytes: &mut Vec<u8>, name: &str, content: &[u8]) {
    let number = |mut value: usize| {
        let mut out = Vec::new();
        loop {
            let low = (value & 0x7f) as u8;
            value >>= 7;
            out.push(if value == 0 { low } else { low | 0x80 });
            if value == 0 {
                return out;
            }
        }
    };
    let mut body = number(name.len());
    body.extend_from_slice(name.as_bytes());
    body.extend_from_slice(content);
    bytes.push(0);
    bytes.extend(number(body.len()));
    bytes.extend(body);
}

fn component(world: &str, text: &str) -> Vec<u8> {
    let build = || -> Result<Vec<u8>, Box<dyn std::error::Error>> {
        let mut module = wasm(text);
        let mut resolve = wit_parser::Resolve::default();
        let (package, _) = resolve.push_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit"))?;
        let world = resolve.select_world(&[package], Some(world))?;
        embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8)?;
        let mut encoder = ComponentEncoder::default().validate(true).module(&module)?;
        if text.contains("wasi_snapshot_preview1") {
            encoder = encoder.adapter("wasi_snapshot_preview1", WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER)?;
        }
        Ok(encoder.encode()?)
    };
    build().unwrap_or_else(|error| panic!("{error:#}\n{text}"))
}

/// A WASI preview 1 command. `parts` define `$start`; `imports` come first.
pub(crate) fn command(imports: &str, parts: &str) -> Vec<u8> {
    wasm(&format!("(module {imports} (memory (export \"memory\") 1) {parts} (export \"_start\" (func $start)))"))
}

/// Preview 1's `fd_write`, with `$write`, which writes a text to a file descriptor through the address 0.
pub(crate) const WRITE_IMPORT: &str =
    r#"(import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))"#;
/// The function that goes with [`WRITE_IMPORT`].
pub(crate) const WRITE: &str = r#"
    (func $write (param $fd i32) (param $text i32) (param $length i32)
        (i32.store (i32.const 0) (local.get $text))
        (i32.store (i32.const 4) (local.get $length))
        (drop (call $fd_write (local.get $fd) (i32.const 0) (i32.const 1) (i32.const 8))))
"#;

/// Loads a guest, which has to work.
pub(crate) fn load(cells: &Cells, bytes: &[u8]) -> Cell {
    cells.load("test.wasm", bytes).unwrap_or_else(|error| panic!("{error}"))
}

/// Terms with this budget.
pub(crate) fn terms(budget: Budget) -> Terms {
    Terms { budget, ..Terms::new("test.wasm") }
}

/// Runs a script under a budget, without state.
pub(crate) async fn run(cells: &Cells, cell: &Cell, budget: Budget) -> Report<String> {
    run_with(cells, cell, state([]), terms(budget)).await
}

/// Runs a script with state and terms.
pub(crate) async fn run_with(cells: &Cells, cell: &Cell, state: Arc<dyn StateView>, terms: Terms) -> Report<String> {
    let terms = Terms { record: Some(RecordTerms::default()), ..terms };
    let call = ScriptCall { file_name: "test.wasm".to_owned(), source: None, state, terms };
    let report = cells.run_script(cell, call).await;
    again(cells, cell, &report).await;
    report
}

/// Executes a recorded call again, which has to do the same to the byte and to the unit of fuel, and gives the recording.
/// Calls that end by a deadline, or that were given directories, cannot be executed again.
pub(crate) async fn again<T>(cells: &Cells, cell: &Cell, report: &Report<T>) -> Option<Recording> {
    let recording = Recording::read(report.recording.as_deref()?).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(recording.fuel, report.usage.fuel);
    if recording.gap.is_none() {
        let again = cells.reexecute(cell, None, &recording).await;
        assert_eq!((again.wanted, again.gave), (None, recording.gave.clone()), "{recording:?}");
        assert_eq!(again.fuel, recording.fuel, "{recording:?}");
    }
    Some(recording)
}

/// Calls the tool `tool`.
pub(crate) async fn call_tool(cells: &Cells, cell: &Cell, arguments: &str, answers: &[&str]) -> Report<String> {
    let call = ToolCall {
        tool: "tool".to_owned(),
        arguments: arguments.to_owned(),
        answers: answers.iter().map(|answer| (*answer).to_owned()).collect(),
        terms: Terms { grants: grants("ask = true"), record: Some(RecordTerms::default()), ..terms(Budget::default()) },
    };
    let report = cells.call_tool(cell, call).await;
    again(cells, cell, &report).await;
    report
}

/// Grants from their form in `hotcell.toml`.
pub(crate) fn grants(text: &str) -> Arc<Grants> {
    Arc::new(toml::from_str(text).unwrap_or_else(|error| panic!("{error}")))
}

/// Asserts that a call ended at this limit.
#[track_caller]
pub(crate) fn assert_limit(report: &Report<String>, limit: Limit) {
    match &report.result {
        Err(error) if error.limit() == Some(limit) => {}
        other => panic!("expected `{limit}`, got {other:?}"),
    }
}

/// The error of a call that has to fail.
#[track_caller]
pub(crate) fn error(report: &Report<String>) -> &CellError {
    match &report.result {
        Err(error) => error,
        Ok(output) => panic!("succeeded with `{output}`"),
    }
}
