//! Guests that want more memory, handles or room than they may have.

use crate::support::{assert_limit, call_tool, cells, error, load, run, script, tools};
use hotcell_budget::{Budget, Bytes, Fuel, Limit};
use hotcell_cells::CellError;

const GROW: &str = "(func $run (result i32)
    (loop $more (br_if $more (i32.ne (memory.grow (i32.const 16)) (i32.const -1))))
    (unreachable))";

#[tokio::test]
async fn attack_15_growing_is_refused_at_the_limit() {
    let cells = cells();
    let cell = load(&cells, &script("", GROW));
    let budget = Budget { memory: Bytes::mib(4), ..Budget::default() };
    let report = run(&cells, &cell, budget).await;
    assert_limit(&report, Limit::OutOfMemory);
    assert!(report.usage.peak_memory <= Bytes::mib(4), "{}", report.usage.peak_memory);
    assert!(report.usage.peak_memory > Bytes::mib(2), "{}", report.usage.peak_memory);
}

#[tokio::test]
async fn a_guest_that_copes_with_refused_memory_succeeds() {
    let cells = cells();
    let body = "(func $run (result i32)
        (loop $more (br_if $more (i32.ne (memory.grow (i32.const 16)) (i32.const -1))))
        (call $ok (i32.const 1024) (i32.const 2)))";
    let cell = load(&cells, &script("", body));
    assert_eq!(run(&cells, &cell, Budget::default()).await.result.as_deref(), Ok("{}"));
}

#[tokio::test]
async fn a_guest_that_starts_with_too_much_does_not_start() {
    let cells = cells();
    let cell =
        load(&cells, &crate::support::command("", "(func $start (drop (memory.grow (i32.const 2000))) unreachable)"));
    assert_limit(&run(&cells, &cell, Budget::default()).await, Limit::OutOfMemory);
    let tiny = Budget { memory: Bytes::kib(32), ..Budget::default() };
    let report = run(&cells, &cell, tiny).await;
    assert_limit(&report, Limit::OutOfMemory);
}

#[tokio::test]
async fn attack_16_the_limit_is_a_sum_over_all_memories() {
    let cells = cells();
    let body = |pages: u32| {
        format!(
            "(memory $a 0) (memory $b 0)
            (func $run (result i32)
                (if (i32.eq (memory.grow $a (i32.const {pages})) (i32.const -1)) (then (unreachable)))
                (if (i32.eq (memory.grow $b (i32.const {pages})) (i32.const -1)) (then (unreachable)))
                (call $ok (i32.const 1024) (i32.const 2)))"
        )
    };
    // Each memory is far below 4 MiB, both together are above or below.
    let budget = Budget { memory: Bytes::mib(4), ..Budget::default() };
    let above = load(&cells, &script("", &body(40)));
    assert_limit(&run(&cells, &above, budget.clone()).await, Limit::OutOfMemory);
    let below = load(&cells, &script("", &body(20)));
    let report = run(&cells, &below, budget).await;
    assert_eq!(report.result.as_deref(), Ok("{}"));
    assert_eq!(report.usage.peak_memory, Bytes::kib(64 * 41));
}

#[tokio::test]
async fn attack_17_tables_count_and_huge_ones_are_refused() {
    let cells = cells();
    let body = "(table $t 0 funcref)
        (func $run (result i32)
            (if (i32.eq (table.grow $t (ref.null func) (i32.const 100000)) (i32.const -1)) (then (unreachable)))
            (call $ok (i32.const 1024) (i32.const 2)))";
    let cell = load(&cells, &script("", body));
    assert_eq!(run(&cells, &cell, Budget::default()).await.result.as_deref(), Ok("{}"));
    let budget = Budget { memory: Bytes::kib(512), ..Budget::default() };
    assert_limit(&run(&cells, &cell, budget).await, Limit::OutOfMemory);

    let huge = "(table $t 4000000000 funcref) (func $run (result i32) (call $ok (i32.const 1024) (i32.const 2)))";
    match cells.load("huge.wasm", &script("", huge)) {
        Err(_) => {}
        Ok(cell) => assert_limit(&run(&cells, &cell, Budget::default()).await, Limit::OutOfMemory),
    }
}

#[tokio::test]
async fn attack_19_a_result_of_gigabytes_is_not_copied() {
    let cells = cells();
    let body = "(func $run (result i32) (drop (memory.grow (i32.const 800))) (call $ok (i32.const 65536) (i32.const 50000000)))";
    let cell = load(&cells, &script("", body));
    assert_limit(&run(&cells, &cell, Budget::default()).await, Limit::OutputTooLarge);
    // Within what may be handed over, but more than a result may have.
    let body = "(func $run (result i32) (drop (memory.grow (i32.const 800))) (call $ok (i32.const 65536) (i32.const 2000000)))";
    let cell = load(&cells, &script("", body));
    assert_limit(&run(&cells, &cell, Budget::default()).await, Limit::OutputTooLarge);
}

#[tokio::test]
async fn a_result_outside_the_memory_is_a_trap() {
    let cells = cells();
    let body = "(func $run (result i32) (call $ok (i32.const 65000) (i32.const 50000)))";
    let cell = load(&cells, &script("", body));
    let report = run(&cells, &cell, Budget::default()).await;
    assert!(matches!(error(&report), CellError::Trap { .. }), "{:?}", report.result);
}

#[tokio::test]
async fn attack_20_a_list_of_endless_empty_strings_is_not_copied() {
    let cells = cells();
    let body = "(func $call (param i32 i32 i32 i32) (result i32)
        (drop (memory.grow (i32.const 900)))
        (drop (call $fail (i32.const 1024) (i32.const 2)))
        (i32.store (i32.const 32) (i32.const 65536))
        (i32.store (i32.const 36) (i32.const 3000000))
        (i32.const 16))";
    let cell = load(&cells, &tools("", body));
    let report = call_tool(&cells, &cell, "{}", &[]).await;
    assert_limit(&report, Limit::OutputTooLarge);
}

#[tokio::test]
async fn attack_21_handles_that_are_never_dropped_run_out() {
    let cells = cells();
    let text = r#"(component
        (import "wasi:io/poll@0.2.0" (instance $poll (export "pollable" (type (sub resource)))))
        (alias export $poll "pollable" (type $pollable))
        (import "wasi:clocks/monotonic-clock@0.2.0" (instance $clock
            (alias outer 1 $pollable (type $p))
            (export "pollable" (type (eq $p)))
            (export "subscribe-duration" (func (param "when" u64) (result (own 1))))))
        (core func $subscribe (canon lower (func $clock "subscribe-duration")))
        (core module $m
            (import "clock" "subscribe" (func $subscribe (param i64) (result i32)))
            (func (export "run") (result i32)
                (loop $again (drop (call $subscribe (i64.const 1000000))) (br $again)) (unreachable)))
        (core instance $i (instantiate $m (with "clock" (instance (export "subscribe" (func $subscribe))))))
        (func $run (result (result)) (canon lift (core func $i "run")))
        (instance $exports (export "run" (func $run)))
        (export "wasi:cli/run@0.2.0" (instance $exports)))"#;
    let cell = load(&cells, &crate::support::wasm(text));
    for handles in [10, 1_000] {
        let report = run(&cells, &cell, Budget { handles, ..Budget::default() }).await;
        assert_limit(&report, Limit::TooManyHandles);
    }
}

#[tokio::test]
async fn attack_25_a_slot_is_clean_for_the_next_guest() {
    let cells = cells();
    let writer = "(func $run (result i32)
        (drop (memory.grow (i32.const 64)))
        (memory.fill (i32.const 65536) (i32.const 65) (i32.const 4194304))
        (call $ok (i32.const 1024) (i32.const 2)))";
    let reader = "(func $run (result i32) (local $at i32)
        (drop (memory.grow (i32.const 64)))
        (local.set $at (i32.const 65536))
        (loop $next
            (if (i32.ne (i32.const 0) (i32.load (local.get $at))) (then (unreachable)))
            (local.set $at (i32.add (local.get $at) (i32.const 4)))
            (br_if $next (i32.lt_u (local.get $at) (i32.const 4259840))))
        (call $ok (i32.const 1024) (i32.const 2)))";
    let (writer, reader) = (load(&cells, &script("", writer)), load(&cells, &script("", reader)));
    for _ in 0..40 {
        assert_eq!(run(&cells, &writer, Budget::default()).await.result.as_deref(), Ok("{}"));
        assert_eq!(run(&cells, &reader, Budget::default()).await.result.as_deref(), Ok("{}"));
    }
}

#[tokio::test]
async fn attack_74_every_call_starts_from_nothing() {
    let cells = cells();
    let body = "(global $calls (mut i32) (i32.const 0)) (data (i32.const 1030) \"[1]\")
        (func $run (result i32)
            (global.set $calls (i32.add (global.get $calls) (i32.const 1)))
            (if (i32.ne (global.get $calls) (i32.const 1)) (then (unreachable)))
            (i32.store8 (i32.const 1031) (i32.add (i32.load8_u (i32.const 1031)) (i32.const 1)))
            (call $ok (i32.const 1030) (i32.const 3)))";
    let cell = load(&cells, &script("", body));
    let mut fuel = Vec::new();
    for _ in 0..40 {
        let report = run(&cells, &cell, Budget { fuel: Fuel(100_000), ..Budget::default() }).await;
        assert_eq!(report.result.as_deref(), Ok("[2]"));
        fuel.push(report.usage.fuel);
    }
    fuel.dedup();
    assert_eq!(fuel.len(), 1, "the same call uses the same fuel: {fuel:?}");
}
