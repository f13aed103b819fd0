//! Compiling in processes of their own, which end where compiling takes too much. This program starts itself to compile, so
//! it has a `main` of its own.
#![expect(clippy::print_stdout, reason = "a test program tells what passed")]

use std::process::ExitCode;

use hotcell_budget::Bytes;
use hotcell_cells::{Cells, CellsOptions, CompileLimits, ScriptCall, StateView, Terms, compile_in_processes};

type TestResult = Result<(), Box<dyn std::error::Error>>;
type Test = fn() -> TestResult;

/// A WASI command of `functions` functions, each with loops in each other around changes of variables.
fn nested(functions: usize, loops: usize, locals: usize) -> Result<Vec<u8>, wat::Error> {
    let changes: String = (0..locals)
        .map(|local| {
            let other = (local + 1) % locals;
            format!("(local.set {local} (i32.add (local.get {local}) (local.get {other})))")
        })
        .collect();
    let function = format!(
        "(func (local {}) {} {changes} {})",
        "i32 ".repeat(locals),
        "(loop ".repeat(loops),
        "(br_if 0 (local.get 0)))".repeat(loops)
    );
    wat::parse_str(format!(
        "(module (memory (export \"memory\") 1) (func (export \"_start\")) {})",
        function.repeat(functions)
    ))
}

fn cells(limits: CompileLimits) -> Result<Cells, Box<dyn std::error::Error>> {
    Ok(Cells::new(CellsOptions { compilation: limits, max_concurrent_calls: 4, ..CellsOptions::default() })?)
}

fn refused(limits: CompileLimits, wasm: &[u8], expected: &str) -> TestResult {
    let message = match cells(limits)?.load("dear.wasm", wasm) {
        Ok(_) => "it was loaded".to_owned(),
        Err(error) => error.to_string(),
    };
    let right = message.starts_with("cannot load `dear.wasm`: ") && message.contains(expected);
    if right && message.lines().count() == 1 { Ok(()) } else { Err(format!("not `{expected}`: {message}").into()) }
}

/// A WASI command with a function in which each of many jumps goes to any of many places, with other values of its variables.
fn jumping(jumps: usize, places: usize) -> Result<Vec<u8>, wat::Error> {
    let targets: String = (0..places).map(|place| format!("{place} ")).collect();
    let jump = |number: usize| {
        format!(
            "(if (local.get 0) (then (local.set {number} (i32.const {number})) (br_table {targets} (local.get 1))))"
        )
    };
    let all: String = (0..jumps).map(jump).collect();
    let uses: String =
        (0..jumps).map(|number| format!("(local.set 0 (i32.xor (local.get 0) (local.get {number})))")).collect();
    wat::parse_str(format!(
        "(module (memory (export \"memory\") 1) (func (export \"_start\"))
            (func (export \"f\") (param i32) (result i32) (local {}) {} {all} {} {uses} (local.get 0)))",
        "i32 ".repeat(jumps),
        "(block ".repeat(places),
        ")".repeat(places)
    ))
}

fn what_takes_too_long_is_ended_and_named() -> TestResult {
    // Enough memory that only time can end it.
    let limits = CompileLimits { seconds: 1, memory: Bytes(64 << 30) };
    refused(limits, &jumping(250, 800)?, "of processor time, which is too much for its size")
}

fn what_takes_too_much_memory_is_ended_and_named() -> TestResult {
    let limits = CompileLimits { memory: Bytes(16 << 20), ..CompileLimits::default() };
    refused(limits, &nested(4, 100, 150)?, "of memory, which is too much for its size")
}

fn what_the_compiler_refuses_is_said_as_if_it_were_here() -> TestResult {
    let invalid =
        wat::parse_str("(module (memory (export \"memory\") 1) (func (export \"_start\") (drop (i32.const 1))))")?;
    let broken: Vec<u8> = invalid.iter().map(|byte| if *byte == 0x1a { 0x45 } else { *byte }).collect();
    refused(CompileLimits::default(), &broken, "type mismatch")
}

fn what_is_compiled_elsewhere_runs_here() -> TestResult {
    struct Nothing;
    impl StateView for Nothing {
        fn get(&self, _: &str) -> Option<String> {
            None
        }

        fn all(&self) -> std::sync::Arc<str> {
            "{}".into()
        }
    }
    let cells = cells(CompileLimits::default())?;
    let cell = cells.load("fine.wasm", &nested(3, 4, 10)?)?;
    let call = ScriptCall {
        file_name: "fine.wasm".to_owned(),
        source: None,
        state: std::sync::Arc::new(Nothing),
        terms: Terms::new("fine.wasm"),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let report = runtime.block_on(cells.run_script(&cell, call));
    if report.result.as_deref() == Ok("") { Ok(()) } else { Err(format!("{report:?}").into()) }
}

fn main() -> ExitCode {
    compile_in_processes();
    let tests: [(&str, Test); 4] = [
        ("what_is_compiled_elsewhere_runs_here", what_is_compiled_elsewhere_runs_here),
        ("what_the_compiler_refuses_is_said_as_if_it_were_here", what_the_compiler_refuses_is_said_as_if_it_were_here),
        ("what_takes_too_long_is_ended_and_named", what_takes_too_long_is_ended_and_named),
        ("what_takes_too_much_memory_is_ended_and_named", what_takes_too_much_memory_is_ended_and_named),
    ];
    let mut failed = 0;
    for (name, test) in tests {
        match test() {
            Ok(()) => println!("test {name} ... ok"),
            Err(error) => {
                failed += 1;
                println!("test {name} ... FAILED: {error}");
            }
        }
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
