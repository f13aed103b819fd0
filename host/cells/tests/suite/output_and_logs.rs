//! What guests put out: results, standard output and error, logs, error texts.

use std::sync::Arc;

use crate::support::{
    WRITE, WRITE_IMPORT, assert_limit, cells, command, error, load, run, run_with, script, state, terms,
};
use hotcell_budget::{Budget, Bytes, Limit};
use hotcell_cells::{CellError, GuestErrorKind, LogLevel, PlaceFinder, Terms};

/// A command that writes `kib` KiB of the letter `x` to a file descriptor and `rest` bytes more, then does `then`.
fn writer(fd: u32, kib: u32, rest: u32, then: &str) -> Vec<u8> {
    let start = format!(
        "{WRITE}
        (func $start (local $left i32)
            (memory.fill (i32.const 4096) (i32.const 120) (i32.const 4096))
            (local.set $left (i32.const {kib}))
            (block $done (loop $next
                (br_if $done (i32.eqz (local.get $left)))
                (call $write (i32.const {fd}) (i32.const 4096) (i32.const 1024))
                (local.set $left (i32.sub (local.get $left) (i32.const 1)))
                (br $next)))
            (call $write (i32.const {fd}) (i32.const 4096) (i32.const {rest}))
            {then})"
    );
    command(WRITE_IMPORT, &start)
}

const EXIT_IMPORT: &str = r#"(import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))"#;

#[tokio::test]
async fn attack_24_27_standard_output_is_accepted_up_to_its_limit_exactly() {
    let cells = cells();
    let exactly = load(&cells, &writer(1, 1024, 0, ""));
    let report = run(&cells, &exactly, Budget::default()).await;
    assert_eq!(report.result.as_ref().map(String::len), Ok(1 << 20));
    assert_eq!(report.usage.output, Bytes::mib(1));

    let more = load(&cells, &writer(1, 1024, 1, ""));
    assert_limit(&run(&cells, &more, Budget::default()).await, Limit::OutputTooLarge);
    let roomy = Budget { output: Bytes::mib(2), ..Budget::default() };
    assert!(run(&cells, &more, roomy).await.result.is_ok());

    let endless = load(&cells, &writer(1, u32::MAX, 0, ""));
    assert_limit(&run(&cells, &endless, Budget::default()).await, Limit::OutputTooLarge);
}

#[tokio::test]
async fn attack_27_standard_error_never_fails_a_script_and_keeps_its_end() {
    let cells = cells();
    let noisy = load(&cells, &writer(2, 20_000, 0, ""));
    let report = run(&cells, &noisy, Budget::default()).await;
    assert_eq!(report.result.as_deref(), Ok(""));
    assert_eq!(report.usage.stderr, Bytes::kib(20_000));
    assert!(report.stderr.starts_with("(20475904 bytes before) …xxx"), "{}", &report.stderr[..40]);
    assert!(report.stderr.len() < 4_200);
}

#[tokio::test]
async fn exit_codes_are_reported_with_the_end_of_standard_error() {
    let cells = cells();
    let exit = |code: i32| {
        let start = format!(
            "{WRITE} (data (i32.const 100) \"out err\")
            (func $start
                (call $write (i32.const 1) (i32.const 100) (i32.const 3))
                (call $write (i32.const 2) (i32.const 104) (i32.const 3))
                (call $exit (i32.const {code})))"
        );
        command(&format!("{WRITE_IMPORT} {EXIT_IMPORT}"), &start)
    };
    let zero = load(&cells, &exit(0));
    let report = run(&cells, &zero, Budget::default()).await;
    assert_eq!((report.result.as_deref(), report.stderr.as_str()), (Ok("out"), "err"));

    // WASI preview 2, which preview 1 is adapted to, tells success from failure and no more.
    let failed = load(&cells, &exit(3));
    let report = run(&cells, &failed, Budget::default()).await;
    let expected = CellError::Exit { code: 1, stderr: "err".to_owned() };
    assert_eq!(report.result, Err(expected));
    assert_eq!(report.result.map_err(|error| error.to_string()), Err("exited with code 1: err".to_owned()));
}

#[tokio::test]
async fn a_trap_is_reported_with_the_functions_it_happened_in() {
    let cells = cells();
    let parts = "(func $divide_by (param i32) (result i32) (i32.div_u (i32.const 1) (local.get 0)))
        (func $run (result i32) (drop (call $divide_by (i32.const 0))) (unreachable))";
    let cell = load(&cells, &script("", parts));
    let report = run(&cells, &cell, Budget::default()).await;
    let CellError::Trap { message, backtrace, .. } = error(&report) else { panic!("{:?}", report.result) };
    assert_eq!(message, "integer divide by zero");
    let functions: Vec<String> = backtrace.iter().take(2).map(ToString::to_string).collect();
    assert_eq!(functions, ["divide_by", "run"]);
}

/// Whoever knows the source is asked for offsets in the component, and those are of the instructions that were executed.
#[tokio::test]
async fn a_trap_is_reported_with_its_places_in_the_source() {
    const DIVISION: u8 = 0x6e;
    const CALL: u8 = 0x10;
    let cells = cells();
    let parts = "(func $divide_by (param i32) (result i32) (i32.div_u (i32.const 1) (local.get 0)))
        (func $run (result i32) (drop (call $divide_by (i32.const 0))) (unreachable))";
    let component = script("", parts);
    let cell = load(&cells, &component);
    let failing = async |known: &'static [(u8, &'static str)]| {
        let component = component.clone();
        let places: PlaceFinder = Arc::new(move |offsets: &[u64]| {
            let instruction = |offset: &u64| component.get(*offset as usize);
            let place = |byte: &u8| known.iter().find(|(known, _)| known == byte).map(|(_, place)| (*place).to_owned());
            offsets.iter().map(|offset| instruction(offset).and_then(place)).collect()
        });
        let terms = Terms { places: Some(places), ..terms(Budget::default()) };
        let report = run_with(&cells, &cell, state([]), terms).await;
        error(&report).to_string()
    };
    let both = failing(&[(DIVISION, "src/a.c:1:2"), (CALL, "src/a.c:3:4")]).await;
    assert_eq!(both, "trapped: integer divide by zero in `divide_by` (src/a.c:1:2)");
    let of_the_caller = failing(&[(CALL, "src/a.c:3:4")]).await;
    assert_eq!(of_the_caller, "trapped: integer divide by zero in `divide_by`, called at src/a.c:3:4");

    let forgetful = Terms { places: Some(Arc::new(|_: &[u64]| Vec::new())), ..terms(Budget::default()) };
    let report = run_with(&cells, &cell, state([]), forgetful).await;
    assert_eq!(error(&report).to_string(), "trapped: integer divide by zero in `divide_by`");
}

#[tokio::test]
async fn attack_30_output_that_is_not_text_is_said_so() {
    let cells = cells();
    let start = format!(
        "{WRITE} (data (i32.const 100) \"ab\\ff\\1b[31m\\ff\")
        (func $start
            (call $write (i32.const 1) (i32.const 100) (i32.const 3))
            (call $write (i32.const 2) (i32.const 100) (i32.const 9)))"
    );
    let cell = load(&cells, &command(WRITE_IMPORT, &start));
    let report = run(&cells, &cell, Budget::default()).await;
    assert_eq!(report.result, Err(CellError::NotText { at: 2 }));
    assert_eq!(report.stderr, "ab\u{fffd}\\u{1b}[31m\u{fffd}");
}

const LOG_IMPORT: &str = r#"(import "hotcell:plugin/log@0.2.0" "log" (func $log (param i32 i32 i32)))"#;

#[tokio::test]
async fn attack_28_29_logged_lines_are_cut_counted_and_escaped() {
    let cells = cells();
    let parts = "(data (i32.const 2000) \"\\1b[2J\\0a[host] allowed\")
        (func $run (result i32) (local $left i32)
            (call $log (i32.const 3) (i32.const 2000) (i32.const 19))
            (memory.fill (i32.const 4096) (i32.const 120) (i32.const 60000))
            (call $log (i32.const 0) (i32.const 4096) (i32.const 60000))
            (local.set $left (i32.const 500))
            (loop $next
                (call $log (i32.const 2) (i32.const 4096) (i32.const 1))
                (local.set $left (i32.sub (local.get $left) (i32.const 1)))
                (br_if $next (local.get $left)))
            (call $ok (i32.const 1024) (i32.const 2)))";
    let cell = load(&cells, &script(LOG_IMPORT, parts));
    let report = run(&cells, &cell, Budget::default()).await;
    assert_eq!(report.result.as_deref(), Ok("{}"));
    assert_eq!((report.logs.len(), report.dropped_log_lines, report.usage.log_lines), (256, 246, 502));
    assert_eq!(
        (report.logs[0].level, report.logs[0].message.as_str()),
        (LogLevel::Warn, "\\u{1b}[2J\\n[host] allowed")
    );
    assert_eq!(report.logs[1].level, LogLevel::Trace);
    assert!(report.logs[1].message.ends_with("… (55904 more bytes)"), "{}", report.logs[1].message);
}

#[tokio::test]
async fn attack_31_an_error_text_is_cut() {
    let cells = cells();
    let parts = "(func $run (result i32)
        (memory.fill (i32.const 4096) (i32.const 120) (i32.const 60000))
        (call $fail (i32.const 4096) (i32.const 60000)))";
    let cell = load(&cells, &script("", parts));
    let report = run(&cells, &cell, Budget::default()).await;
    let CellError::Guest { kind, message, .. } = error(&report) else { panic!("{:?}", report.result) };
    assert_eq!(*kind, GuestErrorKind::Other);
    assert!(message.len() < 4_200 && message.ends_with("… (55904 more bytes)"));
}

#[tokio::test]
async fn what_a_plugin_prints_is_for_people_and_not_the_result() {
    let cells = cells();
    let parts = format!(
        "{WRITE} (data (i32.const 2000) \"out err\")
        (func $run (result i32)
            (call $write (i32.const 1) (i32.const 2000) (i32.const 4))
            (call $write (i32.const 2) (i32.const 2004) (i32.const 3))
            (call $ok (i32.const 1024) (i32.const 2)))"
    );
    let cell = load(&cells, &script(WRITE_IMPORT, &parts));
    let report = run(&cells, &cell, Budget::default()).await;
    assert_eq!((report.result.as_deref(), report.stderr.as_str()), (Ok("{}"), "out err"));
    assert_eq!((report.usage.output, report.usage.stderr), (Bytes(2), Bytes(7)));
}
