//! Guests that have the host's native code work for them: it costs next to no fuel, and holds no call beyond its deadline
//! and nobody else up.

use std::time::Duration;

use crate::support::{assert_limit, cells, command, load, run, script, wasm};
use hotcell_budget::{Budget, Fuel, Limit};

/// 64 KiB of random numbers, over and over.
fn random() -> Vec<u8> {
    let imports = r#"(import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))"#;
    command(
        imports,
        "(func $start (drop (memory.grow (i32.const 16)))
            (loop $again (drop (call $random (i32.const 4096) (i32.const 1000000))) (br $again)))",
    )
}

/// A component in which one part hands the other a text that has to be transcoded, over and over.
fn transcoding(from: &str, to: &str) -> Vec<u8> {
    wasm(&format!(
        r#"(component
            (component $reader
                (core module $m
                    (memory (export "memory") 300)
                    (func (export "allocate") (param i32 i32 i32 i32) (result i32) (i32.const 0))
                    (func (export "read") (param i32 i32)))
                (core instance $i (instantiate $m))
                (func (export "read") (param "text" string) (canon lift (core func $i "read")
                    (memory (core memory $i "memory")) (realloc (core func $i "allocate")) string-encoding={to})))
            (component $writer
                (import "read" (func $read (param "text" string)))
                (core module $memory (memory (export "memory") 140))
                (core instance $memory (instantiate $memory))
                (core func $read (canon lower (func $read) (memory (core memory $memory "memory"))
                    string-encoding={from}))
                (core module $m (import "reader" "read" (func $read (param i32 i32)))
                    (func (export "run") (result i32)
                        (loop $again (call $read (i32.const 0) (i32.const 4000000)) (br $again)) (i32.const 0)))
                (core instance $i (instantiate $m (with "reader" (instance (export "read" (func $read))))))
                (func (export "run") (result (result)) (canon lift (core func $i "run"))))
            (instance $reader (instantiate $reader))
            (instance $writer (instantiate $writer (with "read" (func $reader "read"))))
            (instance $exports (export "run" (func $writer "run")))
            (export "wasi:cli/run@0.2.0" (instance $exports)))"#
    ))
}

/// Growing a memory by nothing costs one unit of fuel.
fn growing() -> Vec<u8> {
    command("", "(func $start (loop $again (drop (memory.grow (i32.const 0))) (br $again)))")
}

/// Reading a clock.
fn clock() -> Vec<u8> {
    let imports =
        r#"(import "wasi_snapshot_preview1" "clock_time_get" (func $clock (param i32 i64 i32) (result i32)))"#;
    command(
        imports,
        "(func $start (loop $again (drop (call $clock (i32.const 1) (i64.const 0) (i32.const 64))) (br $again)))",
    )
}

/// Waiting for what is ready.
fn polling() -> Vec<u8> {
    let imports =
        r#"(import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))"#;
    command(
        imports,
        "(func $start (i32.store (i32.const 1016) (i32.const 1))
            (loop $again (drop (call $poll (i32.const 1000) (i32.const 2000) (i32.const 1) (i32.const 3000)))
                (br $again)))",
    )
}

fn guests() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("random numbers", random()),
        ("transcoding to UTF-16", transcoding("utf8", "utf16")),
        ("transcoding to UTF-8", transcoding("utf16", "utf8")),
        ("transcoding to either", transcoding("utf8", "latin1+utf16")),
        ("copying of text", transcoding("utf8", "utf8")),
        ("growing", growing()),
        ("clock", clock()),
        ("polling", polling()),
    ]
}

/// With endless fuel only the clock can end these.
fn endless(wall_clock: Duration) -> Budget {
    Budget { fuel: Fuel(u64::MAX / 2), wall_clock, ..Budget::default() }
}

#[tokio::test]
async fn native_work_for_a_guest_meets_the_deadline_and_holds_nobody_up() {
    let cells = cells();
    let quick = load(&cells, &script("", "(func $run (result i32) (call $ok (i32.const 1024) (i32.const 2)))"));
    for (name, bytes) in guests() {
        let cell = load(&cells, &bytes);
        let working = run(&cells, &cell, endless(Duration::from_secs(60)));
        // On this one thread the others only get a turn if the guest's native work gives the thread away.
        let others = async {
            for _ in 0..3 {
                assert_eq!(run(&cells, &quick, Budget::default()).await.result.as_deref(), Ok("{}"));
            }
            "others"
        };
        let first = tokio::select! {
            biased;
            report = working => panic!("{name} ended first: {report:?}"),
            first = others => first,
        };
        assert_eq!(first, "others");
        let report = run(&cells, &cell, endless(Duration::from_millis(400))).await;
        assert_limit(&report, Limit::Deadline);
        assert!(report.usage.fuel < Fuel(20_000_000_000), "{name}: {} of fuel", report.usage.fuel);
    }
}

#[tokio::test]
async fn native_work_for_a_guest_can_be_dropped_at_any_time() {
    let cells = cells();
    for (name, bytes) in guests() {
        let cell = load(&cells, &bytes);
        // More often than there are slots.
        for _ in 0..20 {
            let call = run(&cells, &cell, endless(Duration::from_secs(3_600)));
            tokio::pin!(call);
            for _ in 0..2 {
                assert!(futures::poll!(&mut call).is_pending(), "{name}");
                tokio::task::yield_now().await;
            }
        }
    }
}

#[tokio::test]
async fn what_is_due_is_the_same_to_the_unit_of_fuel() {
    let cells = cells();
    let work = "(func $start (local $left i32) (local.set $left (i32.const 20000))
        (loop $again (drop (memory.grow (i32.const 0)))
            (br_if $again (local.tee $left (i32.sub (local.get $left) (i32.const 1))))))";
    let cell = load(&cells, &command("", work));
    let first = run(&cells, &cell, Budget::default()).await;
    assert_eq!(first.result.as_deref(), Ok(""));
    for _ in 0..5 {
        assert_eq!(run(&cells, &cell, Budget::default()).await.usage.fuel, first.usage.fuel);
    }
}
