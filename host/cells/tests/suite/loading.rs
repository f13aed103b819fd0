//! What is refused before anything runs, and what the cache does.

use std::fs;
use std::sync::{Arc, Mutex, PoisonError};

use crate::support::{TestResult, cells, cells_with, command, load, run, script, tools, wasm};
use hotcell_budget::{Budget, Limit};
use hotcell_cells::{Cells, CellsOptions, CompileEvent, ScriptKind, precompile};

const ANSWER: &str = "(func $run (result i32) (call $ok (i32.const 1024) (i32.const 2)))";

fn refusal(cells: &Cells, bytes: &[u8]) -> String {
    match cells.load("plugins/x.wasm", bytes) {
        Ok(cell) => format!("loaded as {cell:?}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn attack_58_artefacts_are_never_taken_for_plugins() -> TestResult {
    let artefact = precompile(&script("", ANSWER))?;
    let message = refusal(&cells(), &artefact);
    assert!(message.contains("ahead-of-time compiled artefact; give the `.wasm`"), "{message}");
    Ok(())
}

/// What a plugin says about itself is read and never asked for: there is no function that could loop.
#[tokio::test]
async fn attack_03_a_plugin_is_surveyed_and_loaded_without_running_any_of_it() -> TestResult {
    let body = "(func $loop (loop $again (br $again))) (start $loop)
        (func $call (param i32 i32 i32 i32) (result i32) (unreachable))";
    let bytes = tools("", body);
    let survey = hotcell_cells::survey(&bytes)?;
    let cells = cells();
    let cell = load(&cells, &bytes);
    for description in [survey.description.as_ref(), cell.description()] {
        assert_eq!(description.map(|description| description.tools.len()), Some(1));
    }
    let report = crate::support::call_tool(&cells, &cell, "{}", &[]).await;
    crate::support::assert_limit(&report, Limit::OutOfFuel);
    Ok(())
}

#[test]
fn attack_18_webassembly_that_is_switched_off_is_refused() {
    let cells = cells();
    let cases = [
        ("memory64", "(module (memory i64 1) (func (export \"_start\")))"),
        ("threads", "(module (memory 1 1 shared) (func (export \"_start\")))"),
        ("gc", "(module (type (struct)) (func (export \"_start\")))"),
        ("exceptions", "(module (tag) (func (export \"_start\")))"),
        ("function references", "(module (type $f (func)) (func (export \"_start\") (local (ref null $f))))"),
        ("custom page sizes", "(module (memory 1 (pagesize 1)) (func (export \"_start\")))"),
        (
            "wide arithmetic",
            "(module (func (export \"_start\") (drop (drop (i64.mul_wide_u (i64.const 1) (i64.const 1))))))",
        ),
    ];
    for (feature, text) in cases {
        let message = refusal(&cells, &wasm(text));
        assert!(message.starts_with("cannot load `plugins/x.wasm`: "), "{feature}: {message}");
        assert!(!message.contains('\n') && !message.contains("loaded as"), "{feature}: {message}");
    }
}

#[test]
fn what_is_not_valid_is_refused_in_one_line() {
    let cells = cells();
    let cases = [
        wasm("(module (func (export \"_start\") (result i32) (i32.const 1)))"),
        wasm(
            "(module (memory 1) (func (export \"_start\")) (import \"wasi_snapshot_preview1\" \"no_such\" (func)))"
                .replace(
                    "(memory 1) (func (export \"_start\")) (import \"wasi_snapshot_preview1\" \"no_such\" (func))",
                    "(import \"wasi_snapshot_preview1\" \"no_such\" (func)) (memory 1) (func (export \"_start\"))",
                )
                .as_str(),
        ),
        wasm("(component)"),
        wasm("(component (import \"hotcell:plugin/state@0.2.0\" (instance (export \"no-such\" (func)))))"),
    ];
    for bytes in cases {
        let message = refusal(&cells, &bytes);
        assert!(message.starts_with("cannot load `plugins/x.wasm`: "), "{message}");
        assert!(!message.contains('\n'), "{message}");
    }
}

#[test]
fn attack_67_an_unknown_import_is_named() {
    let message = refusal(&cells(), &wasm("(component (import \"wasi:keyvalue/store@0.2.0\" (instance)))"));
    assert!(message.contains("imports `wasi:keyvalue/store@0.2.0`, which hotcell does not have"), "{message}");
}

/// Whoever makes a component of a core module believes such a section, and then the component is another than what was looked at.
#[test]
fn attack_67_a_core_module_does_not_say_what_component_is_made_of_it() -> TestResult {
    let cells = cells();
    let module =
        |section: &str| wasm(&format!("(module (memory (export \"memory\") 1) (func (export \"_start\")) {section})"));
    assert!(cells.load("plugins/x.wasm", &module("")).is_ok());
    assert!(cells.load("plugins/x.wasm", &module("(@custom \"other\" \"x\")")).is_ok());
    let real = wit_of_a_world()?;
    for section in [
        "(@custom \"component-type\" \"\")".to_owned(),
        "(@custom \"component-type:wit-bindgen:0.30.0:a:b:encoded world\" \"x\")".to_owned(),
        "(@custom \"component-type:x\" (before first) \"x\")".to_owned(),
        format!("(@custom \"component-type\" (after last) \"{real}\")"),
    ] {
        let message = refusal(&cells, &module(&section));
        assert!(message.contains("it is a core module with a section `component-type`"), "{section}: {message}");
    }
    Ok(())
}

/// An empty component, as text of a custom section: what such a section is made of.
fn wit_of_a_world() -> Result<String, wat::Error> {
    Ok(wat::parse_str("(component)")?.iter().map(|byte| format!("\\{byte:02x}")).collect())
}

#[test]
fn a_component_for_some_other_host_is_told_what_is_expected() {
    let text = "(component (core module $m (func (export \"f\"))) (core instance $i (instantiate $m))
        (func $f (canon lift (core func $i \"f\"))) (export \"other\" (func $f)))";
    let message = refusal(&cells(), &wasm(text));
    assert!(message.contains("it exports `other`; a script exports `run-script` of `hotcell:plugin`"), "{message}");
}

#[test]
fn a_contract_function_of_another_type_is_refused() {
    let text = |result: &str| {
        format!(
            "(component (core module $m (func (export \"f\") (result i32) (i32.const 0)))
            (core instance $i (instantiate $m))
            (func $f (result {result}) (canon lift (core func $i \"f\")))
            (instance $e (export \"run\" (func $f)))
            (export \"hotcell:plugin/run-script@0.2.0\" (instance $e)))"
        )
    };
    for result in ["u32", "(result)", "bool"] {
        let message = refusal(&cells(), &wasm(&text(result)));
        let expected = "`hotcell:plugin/run-script@0.2.0` has no function `run` of the contract's type";
        assert!(message.contains(expected), "{message}");
    }
}

/// Counts compilations.
#[derive(Clone, Default)]
struct Compiled(Arc<Mutex<Vec<CompileEvent>>>);

impl Compiled {
    fn options(&self) -> CellsOptions {
        let events = self.0.clone();
        CellsOptions {
            on_compile: Some(Arc::new(move |event: &CompileEvent| {
                events.lock().unwrap_or_else(PoisonError::into_inner).push(event.clone());
            })),
            ..CellsOptions::default()
        }
    }

    fn count(&self) -> usize {
        let events = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        events.iter().filter(|event| matches!(event, CompileEvent::Finished { .. })).count()
    }
}

#[tokio::test]
async fn a_component_is_compiled_once_and_then_taken_from_the_cache() -> TestResult {
    let folder = tempfile::tempdir()?;
    let compiled = Compiled::default();
    let fresh = || cells_with(CellsOptions { cache_dir: Some(folder.path().join("cache")), ..compiled.options() });
    for bytes in [script("", ANSWER), command("", "(func $start)")] {
        let before = compiled.count();
        for _ in 0..3 {
            let cells = fresh();
            assert_eq!(cells.warnings().iter().filter(|warning| warning.contains("cache")).count(), 0);
            let (one, two) = (load(&cells, &bytes), load(&cells, &bytes));
            assert_eq!(one.digest(), two.digest());
            assert!(run(&cells, &one, Budget::default()).await.result.is_ok());
        }
        assert_eq!(compiled.count(), before + 1);
    }
    Ok(())
}

#[tokio::test]
async fn attack_66_a_poisoned_entry_is_compiled_again() -> TestResult {
    let folder = tempfile::tempdir()?;
    let directory = folder.path().join("cache");
    let compiled = Compiled::default();
    let fresh = || cells_with(CellsOptions { cache_dir: Some(directory.clone()), ..compiled.options() });
    let bytes = script("", ANSWER);
    load(&fresh(), &bytes);
    let entries = || -> Result<Vec<_>, std::io::Error> {
        let paths: Vec<_> =
            fs::read_dir(&directory)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
        Ok(paths.into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "cwasm")).collect())
    };
    for (round, poison) in [&b"\x7fELF nonsense"[..], b"", &[0; 100_000]].into_iter().enumerate() {
        for path in entries()? {
            fs::write(&path, poison)?;
        }
        let cells = fresh();
        let cell = load(&cells, &bytes);
        assert_eq!(run(&cells, &cell, Budget::default()).await.result.as_deref(), Ok("{}"));
        assert_eq!(compiled.count(), round + 2);
    }
    Ok(())
}

#[cfg(unix)]
#[test]
fn attack_66_an_insecure_cache_is_not_used_and_a_warning_says_so() -> TestResult {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = tempfile::tempdir()?;
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755))?;
    let cells = cells_with(CellsOptions { cache_dir: Some(folder.path().to_owned()), ..CellsOptions::default() });
    let warnings = cells.warnings().join("\n");
    assert!(warnings.contains("others may enter it (mode 755); run `chmod 700"), "{warnings}");
    load(&cells, &script("", ANSWER));
    assert_eq!(fs::read_dir(folder.path())?.count(), 0);
    Ok(())
}

/// An interpreter that writes the script's name and text back and returns their common length as its code.
fn echo_interpreter() -> Vec<u8> {
    wasm(
        r#"(component
            (import "wasi:cli/environment@0.2.0" (instance))
            (core module $m
                (memory (export "memory") 1)
                (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024))
                (func (export "init"))
                (func (export "run") (param i32 i32 i32 i32) (result i32)
                    (i32.sub (local.get 1) (local.get 3))))
            (core instance $i (instantiate $m))
            (func $init (canon lift (core func $i "init")))
            (func $run (param "file-name" string) (param "source" string) (result u8)
                (canon lift (core func $i "run") (memory (core memory $i "memory")) (realloc (core func $i "realloc"))))
            (export "init" (func $init))
            (export "run" (func $run)))"#,
    )
}

#[tokio::test]
async fn a_carried_interpreter_runs_from_memory_and_from_the_cache() -> TestResult {
    let artefact = precompile(&echo_interpreter())?;
    let folder = tempfile::tempdir()?;
    let cached = CellsOptions { cache_dir: Some(folder.path().join("cache")), ..CellsOptions::default() };
    for options in [CellsOptions::default(), cached.clone(), cached] {
        let cells = cells_with(options);
        let cell = cells.load_carried("echo", "0123", || Ok(artefact.clone()))?;
        assert_eq!(cell.script_kind(), Some(ScriptKind::Interpreter));
        for (source, code) in [("test.wasm", 0), ("test.was", 1)] {
            let call = hotcell_cells::ScriptCall {
                file_name: "test.wasm".to_owned(),
                source: Some(source.into()),
                state: crate::support::state([]),
                terms: crate::support::terms(Budget::interpreter()),
            };
            let report = cells.run_script(&cell, call).await;
            match code {
                0 => assert_eq!(report.result.as_deref(), Ok("")),
                code => assert_eq!(report.result, Err(hotcell_cells::CellError::Exit { code, stderr: String::new() })),
            }
        }
    }
    Ok(())
}
