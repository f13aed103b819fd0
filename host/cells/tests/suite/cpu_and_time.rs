//! Guests that want more work or time than they may have. The numbers are those of the list of attacks.

use std::time::Duration;

use crate::support::{assert_limit, cells, command, error, load, run, script};
use hotcell_budget::{Budget, Fuel, Limit};
use hotcell_cells::CellError;

const LOOP: &str = "(func $run (result i32) (loop $again (br $again)) (unreachable))";

fn little_fuel() -> Budget {
    Budget { fuel: Fuel(1_000_000), ..Budget::default() }
}

#[tokio::test]
async fn attack_01_an_endless_loop_runs_out_of_fuel_and_nothing_else_notices() {
    let cells = cells();
    let endless = load(&cells, &script("", LOOP));
    let other = load(&cells, &script("", "(func $run (result i32) (call $ok (i32.const 1024) (i32.const 2)))"));

    let report = run(&cells, &endless, little_fuel()).await;
    assert_limit(&report, Limit::OutOfFuel);
    assert_eq!(report.usage.fuel, Fuel(1_000_000));
    assert_eq!(report.usage.calls, 1);
    assert_eq!(run(&cells, &other, little_fuel()).await.result.as_deref(), Ok("{}"));
}

#[tokio::test]
async fn attack_02_a_loop_in_the_start_function_is_under_the_same_limits() {
    let cells = cells();
    let body = "(func $loop (loop $again (br $again))) (start $loop)
        (func $run (result i32) (call $ok (i32.const 1024) (i32.const 2)))";
    let cell = load(&cells, &script("", body));
    assert_limit(&run(&cells, &cell, little_fuel()).await, Limit::OutOfFuel);

    let short = Budget { fuel: Fuel(u64::MAX / 2), wall_clock: Duration::from_millis(30), ..Budget::default() };
    assert_limit(&run(&cells, &cell, short).await, Limit::Deadline);
}

#[tokio::test]
async fn a_trap_in_the_start_function_is_a_failure_of_the_call() {
    let cells = cells();
    let body = "(func $bad (unreachable)) (start $bad)
        (func $run (result i32) (call $ok (i32.const 1024) (i32.const 2)))";
    let cell = load(&cells, &script("", body));
    let report = run(&cells, &cell, Budget::default()).await;
    assert!(matches!(error(&report), CellError::Trap { message, .. } if message.contains("unreachable")), "{report:?}");
}

#[tokio::test]
async fn attack_04_exponential_recursion_runs_out_of_fuel() {
    let cells = cells();
    let body = "(func $twice (param i32) (if (local.get 0) (then
            (call $twice (i32.sub (local.get 0) (i32.const 1)))
            (call $twice (i32.sub (local.get 0) (i32.const 1))))))
        (func $run (result i32) (call $twice (i32.const 60)) (call $ok (i32.const 1024) (i32.const 2)))";
    let cell = load(&cells, &script("", body));
    assert_limit(&run(&cells, &cell, little_fuel()).await, Limit::OutOfFuel);
}

#[tokio::test]
async fn attack_05_endless_recursion_ends_at_the_stack() {
    let cells = cells();
    let body = "(func $deeper (param i64 i64 i64 i64) (result i64)
            (i64.add (call $deeper (local.get 3) (local.get 2) (local.get 1) (i64.add (local.get 0) (i64.const 1)))
                (local.get 1)))
        (func $run (result i32)
            (drop (call $deeper (i64.const 1) (i64.const 2) (i64.const 3) (i64.const 4)))
            (call $ok (i32.const 1024) (i32.const 2)))";
    let cell = load(&cells, &script("", body));
    let report = run(&cells, &cell, Budget::default()).await;
    assert_limit(&report, Limit::TooDeep);
    assert_limit(&run(&cells, &cell, Budget::default()).await, Limit::TooDeep);
}

#[tokio::test]
async fn attack_06_filling_the_memory_over_and_over_is_bounded() {
    let cells = cells();
    let body = "(func $run (result i32)
            (drop (memory.grow (i32.const 500)))
            (loop $again
                (memory.fill (i32.const 65536) (i32.const 7) (i32.const 32768000))
                (memory.copy (i32.const 65536) (i32.const 65600) (i32.const 32000000))
                (br $again))
            (unreachable))";
    let cell = load(&cells, &script("", body));
    let budget = Budget { wall_clock: Duration::from_millis(100), ..Budget::default() };
    let report = run(&cells, &cell, budget).await;
    assert!(matches!(error(&report).limit(), Some(Limit::Deadline | Limit::OutOfFuel)), "{:?}", report.result);
}

#[tokio::test]
async fn attack_07_a_storm_of_host_calls_is_charged() {
    let cells = cells();
    let imports = r#"(import "hotcell:plugin/log@0.2.0" "log" (func $log (param i32 i32 i32)))"#;
    let body = "(func $run (result i32)
        (loop $again (call $log (i32.const 2) (i32.const 1024) (i32.const 2)) (br $again)) (unreachable))";
    let cell = load(&cells, &script(imports, body));
    let report = run(&cells, &cell, little_fuel()).await;
    assert_limit(&report, Limit::OutOfFuel);
    assert!(report.usage.log_lines <= 5_000, "{} calls for a million of fuel", report.usage.log_lines);
    assert_eq!(report.logs.len() as u64 + report.dropped_log_lines, report.usage.log_lines);
}

const POLL_IMPORT: &str =
    r#"(import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))"#;

/// A command that waits for `nanoseconds` of the monotonic clock.
fn sleeper(nanoseconds: u64) -> Vec<u8> {
    let start = format!(
        "(func $start
            (i32.store (i32.const 1016) (i32.const 1))
            (i64.store (i32.const 1024) (i64.const {}))
            (drop (call $poll (i32.const 1000) (i32.const 2000) (i32.const 1) (i32.const 3000))))",
        nanoseconds as i64
    );
    command(POLL_IMPORT, &start)
}

#[tokio::test]
async fn attack_08_a_guest_that_sleeps_for_hours_meets_its_deadline_and_blocks_nobody() {
    let cells = cells();
    let sleeper = load(&cells, &sleeper(3_600_000_000_000));
    let quick = load(&cells, &script("", "(func $run (result i32) (call $ok (i32.const 1024) (i32.const 2)))"));
    let within = |wall_clock| Budget { wall_clock, ..Budget::default() };
    // On this one thread the other calls only end first if the sleeping one does not hold the thread.
    let sleeping = run(&cells, &sleeper, within(Duration::from_secs(60)));
    let others = async {
        for _ in 0..10 {
            assert_eq!(run(&cells, &quick, Budget::default()).await.result.as_deref(), Ok("{}"));
        }
        "others"
    };
    tokio::pin!(sleeping, others);
    let first = tokio::select! {
        report = &mut sleeping => panic!("the sleeping call ended first: {report:?}"),
        first = &mut others => first,
    };
    assert_eq!(first, "others");
    assert_limit(&run(&cells, &sleeper, within(Duration::from_millis(300))).await, Limit::Deadline);
}

#[tokio::test]
async fn attack_09_waits_of_no_time_and_of_all_time_do_no_harm() {
    let cells = cells();
    let none = load(&cells, &sleeper(0));
    assert_eq!(run(&cells, &none, Budget::default()).await.result.as_deref(), Ok(""));
    let budget = Budget { wall_clock: Duration::from_millis(50), ..Budget::default() };
    let ever = load(&cells, &sleeper(u64::MAX));
    assert_limit(&run(&cells, &ever, budget).await, Limit::Deadline);
}

#[tokio::test]
async fn a_busy_guest_meets_its_deadline() {
    let cells = cells();
    let endless = load(&cells, &script("", LOOP));
    let budget = Budget { fuel: Fuel(u64::MAX / 2), wall_clock: Duration::from_millis(50), ..Budget::default() };
    let report = run(&cells, &endless, budget).await;
    assert_limit(&report, Limit::Deadline);
    assert!(report.usage.fuel > Fuel(1_000_000), "fuel is reported after a deadline too: {}", report.usage.fuel);
    assert!(report.usage.wall_clock >= Duration::from_millis(50));
}

/// Ten thousand fuel is far less than one interval between yields, so only the guard in front of the first
/// instruction can end this call.
#[tokio::test]
async fn no_time_at_all_is_a_deadline() {
    let cells = cells();
    let endless = load(&cells, &script("", LOOP));
    let budget = Budget { fuel: Fuel(10_000), wall_clock: Duration::ZERO, ..Budget::default() };
    assert_limit(&run(&cells, &endless, budget).await, Limit::Deadline);
}

#[tokio::test]
async fn attack_12_calls_nest_only_so_deep() {
    let cells = cells();
    let cell = load(&cells, &script("", "(func $run (result i32) (call $ok (i32.const 1024) (i32.const 2)))"));
    for (depth, works) in [(7, true), (8, false)] {
        let mut terms = crate::support::terms(Budget::default());
        terms.depth = depth;
        let report = crate::support::run_with(&cells, &cell, crate::support::state([]), terms).await;
        assert_eq!(report.result.is_ok(), works, "{report:?}");
        if !works {
            assert_limit(&report, Limit::TooDeep);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn attack_13_a_thousand_calls_at_once_all_get_their_turn() -> crate::support::TestResult {
    let cells = cells();
    let cell = load(&cells, &script("", "(func $run (result i32) (call $ok (i32.const 1024) (i32.const 2)))"));
    let calls: Vec<_> = (0..1_000)
        .map(|_| {
            let (cells, cell) = (cells.clone(), cell.clone());
            tokio::spawn(async move { run(&cells, &cell, Budget::default()).await.result })
        })
        .collect();
    for call in calls {
        assert_eq!(call.await?.as_deref(), Ok("{}"));
    }
    Ok(())
}

#[tokio::test]
async fn attack_14_calls_that_are_dropped_half_way_leave_nothing_behind() {
    let cells = cells();
    let sleeper = load(&cells, &sleeper(3_600_000_000_000));
    let endless = load(&cells, &script("", LOOP));
    let budget = Budget { fuel: Fuel(u64::MAX / 2), ..Budget::default() };
    // More often than there are slots: a slot that is not given back would end this in a hang or an error.
    for _ in 0..50 {
        for cell in [&sleeper, &endless] {
            let call = run(&cells, cell, budget.clone());
            tokio::pin!(call);
            for _ in 0..3 {
                assert!(futures::poll!(&mut call).is_pending());
                tokio::task::yield_now().await;
            }
        }
    }
    let quick = load(&cells, &script("", "(func $run (result i32) (call $ok (i32.const 1024) (i32.const 2)))"));
    assert_eq!(run(&cells, &quick, Budget::default()).await.result.as_deref(), Ok("{}"));
}

/// A guest that could catch the end of its fuel could go on for ever.
#[tokio::test]
async fn attack_10_running_out_of_fuel_cannot_be_caught() {
    let cells = cells();
    let catcher = crate::support::wasm(
        "(module (func $spin (loop $again (br $again)))
            (func (export \"_start\") (loop $again (block $caught
                (try_table (catch_all $caught) (call $spin))) (br $again))))",
    );
    let refused = cells.load("catcher.wasm", &catcher).map_err(|error| error.to_string());
    assert!(refused.is_err_and(|message| message.starts_with("cannot load `catcher.wasm`: ")));

    // Nothing after the endless part is reached: neither in the function that called it, nor in a component that
    // calls the endless one.
    let imports = r#"(import "hotcell:plugin/log@0.2.0" "log" (func $log (param i32 i32 i32)))"#;
    let body = "(table 1 funcref) (elem (i32.const 0) $spin) (func $spin (loop $again (br $again)))
        (func $run (result i32)
            (call_indirect (i32.const 0))
            (call $log (i32.const 2) (i32.const 1024) (i32.const 2))
            (call $ok (i32.const 1024) (i32.const 2)))";
    let nested = crate::support::wasm(
        r#"(component
            (component $inner
                (core module $m (func (export "spin") (loop $again (br $again))))
                (core instance $i (instantiate $m))
                (func (export "spin") (canon lift (core func $i "spin"))))
            (component $outer
                (import "spin" (func $spin))
                (core func $spin (canon lower (func $spin)))
                (core module $m (import "inner" "spin" (func $spin))
                    (func (export "run") (result i32) (call $spin) (i32.const 0)))
                (core instance $i (instantiate $m (with "inner" (instance (export "spin" (func $spin))))))
                (func (export "run") (result (result)) (canon lift (core func $i "run"))))
            (instance $inner (instantiate $inner))
            (instance $outer (instantiate $outer (with "spin" (func $inner "spin"))))
            (instance $exports (export "run" (func $outer "run")))
            (export "wasi:cli/run@0.2.0" (instance $exports)))"#,
    );
    for bytes in [script(imports, body), nested] {
        let cell = load(&cells, &bytes);
        for _ in 0..3 {
            let report = run(&cells, &cell, little_fuel()).await;
            assert_limit(&report, Limit::OutOfFuel);
            assert_eq!((report.logs.len(), report.usage.fuel), (0, Fuel(1_000_000)));
        }
    }
}
