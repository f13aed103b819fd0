//! What a WASI guest finds around it: environment, files, clocks, random numbers. Nothing of the host's own.

use std::fs;
use std::time::{Duration, UNIX_EPOCH};

use crate::support::{
    TestResult, WRITE, WRITE_IMPORT, cells, cells_with, command, error, grants, load, run, run_with, state, terms,
};
use hotcell_budget::{Budget, Fuel};
use hotcell_cells::{CellError, CellsOptions, Repeatable, Terms};

const ENVIRON_IMPORT: &str = r#"
    (import "wasi_snapshot_preview1" "environ_sizes_get" (func $sizes (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "environ_get" (func $environ (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "args_sizes_get" (func $args_sizes (param i32 i32) (result i32)))"#;

/// A command that writes out its environment, with NUL after each variable.
fn environment() -> Vec<u8> {
    let start = format!(
        "{WRITE} (func $start
            (drop (memory.grow (i32.const 8)))
            (drop (call $sizes (i32.const 16) (i32.const 20)))
            (drop (call $environ (i32.const 1024) (i32.const 65536)))
            (call $write (i32.const 1) (i32.const 65536) (i32.load (i32.const 20))))"
    );
    command(&format!("{WRITE_IMPORT} {ENVIRON_IMPORT}"), &start)
}

#[tokio::test]
async fn attack_54_a_script_sees_its_state_and_what_was_granted() {
    let cells = cells();
    let cell = load(&cells, &environment());
    let terms = Terms { env: vec![("LANG".to_owned(), "de".to_owned())], ..terms(Budget::default()) };
    let report = run_with(&cells, &cell, state([("a", "\"ä\"")]), terms).await;
    assert_eq!(report.result.as_deref(), Ok("LANG=de\0GRAPH_STATE={\"a\":\"ä\"}\0"));
}

#[tokio::test]
async fn a_state_of_more_than_32_kib_is_in_a_file() {
    let cells = cells();
    let cell = load(&cells, &environment());
    // `{"a":"…"}` with 8 bytes around the text.
    for (length, expected) in [(32_768 - 8, "GRAPH_STATE="), (32_768 - 7, "GRAPH_STATE_FILE=/graph-state/state.json\0")]
    {
        let value = format!("\"{}\"", "x".repeat(length));
        let report = run_with(&cells, &cell, state([("a", &value)]), terms(Budget::default())).await;
        let Ok(output) = &report.result else { panic!("{report:?}") };
        assert!(output.starts_with(expected), "{}", &output[..60.min(output.len())]);
        assert_eq!(output.matches("GRAPH_STATE").count(), 1);
    }
}

const FILES_IMPORT: &str = r#"
    (import "wasi_snapshot_preview1" "path_open"
        (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_prestat_get" (func $prestat (param i32 i32) (result i32)))"#;

/// A command that opens `path` below the first directory it was given, with these flags, and writes what it reads;
/// on an error it writes the number of the error. Without a directory it writes `none`.
fn opener(path: &str, oflags: u32, rights: u64) -> Vec<u8> {
    let start = format!(
        "{WRITE} (data (i32.const 100) \"none\") (data (i32.const 200) \"{path}\")
        (func $start (local $error i32)
            (if (call $prestat (i32.const 3) (i32.const 64))
                (then (call $write (i32.const 1) (i32.const 100) (i32.const 4)) (return)))
            (local.set $error (call $open (i32.const 3) (i32.const 1) (i32.const 200) (i32.const {}) (i32.const {oflags})
                (i64.const {rights}) (i64.const 0) (i32.const 0) (i32.const 32)))
            (if (local.get $error) (then
                (i32.store8 (i32.const 300) (i32.add (i32.const 48) (i32.div_u (local.get $error) (i32.const 10))))
                (i32.store8 (i32.const 301) (i32.add (i32.const 48) (i32.rem_u (local.get $error) (i32.const 10))))
                (call $write (i32.const 1) (i32.const 300) (i32.const 2))
                (return)))
            (i32.store (i32.const 40) (i32.const 4096))
            (i32.store (i32.const 44) (i32.const 4096))
            (drop (call $read (i32.load (i32.const 32)) (i32.const 40) (i32.const 1) (i32.const 48)))
            (call $write (i32.const 1) (i32.const 4096) (i32.load (i32.const 48))))",
        path.len()
    );
    command(&format!("{WRITE_IMPORT} {FILES_IMPORT}"), &start)
}

const READ: u64 = 2;
const WRITE_RIGHT: u64 = 64;
const CREATE: u32 = 1;
const DIRECTORY: u32 = 2;
const TRUNCATE: u32 = 8;

async fn open(path: &str, oflags: u32, rights: u64, terms: Terms) -> String {
    let cells = cells();
    let cell = load(&cells, &opener(path, oflags, rights));
    let report = run_with(&cells, &cell, state([]), terms).await;
    report.result.unwrap_or_else(|error| error.to_string())
}

#[tokio::test]
async fn the_state_file_can_be_read_and_nothing_around_it() {
    let cells = cells();
    let value = format!("\"{}\"", "x".repeat(40_000));
    for (path, expected) in [("state.json", "{\"a\":\"xxx"), ("../", "63"), ("no-such", "44")] {
        let cell = load(&cells, &opener(path, 0, READ));
        let report = run_with(&cells, &cell, state([("a", &value)]), terms(Budget::default())).await;
        let Ok(output) = &report.result else { panic!("{path}: {report:?}") };
        assert!(output.starts_with(expected), "{path}: {}", &output[..20.min(output.len())]);
    }
}

#[tokio::test]
async fn without_a_grant_there_are_no_files_and_the_denial_says_how_to_grant_them() {
    let cells = cells();
    let cases = [
        ("etc/passwd", 0, READ, "44", "fs = [{ host = \"A DIRECTORY\", guest = \"/etc\", access = \"read\" }]"),
        ("out/a/b", CREATE, WRITE_RIGHT, "63", "guest = \"/out/a\", access = \"read-write\""),
        ("data", DIRECTORY, READ, "44", "guest = \"/data\", access = \"read\""),
    ];
    for (path, oflags, rights, errno, grant) in cases {
        let cell = load(&cells, &opener(path, oflags, rights));
        let report = run_with(&cells, &cell, state([]), terms(Budget::default())).await;
        assert_eq!(report.result.as_deref(), Ok(errno), "{path}");
        let denials: Vec<String> = report.denials.iter().map(ToString::to_string).collect();
        assert!(denials.len() == 1 && denials[0].contains(grant), "{path}: {denials:?}");
    }
}

/// 63 is `perm`, 76 `notcapable`, 69 `rofs`, 44 `noent`, 31 `isdir`, 32 `loop`, 54 `notdir`, 2 `acces`, 8 `badf`.
#[cfg(unix)]
#[tokio::test]
async fn attack_32_33_36_a_granted_directory_is_a_prison() -> TestResult {
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("data");
    fs::create_dir_all(data.join("inner"))?;
    fs::write(data.join("file"), "inside")?;
    fs::write(folder.path().join("secret"), "outside")?;
    std::os::unix::fs::symlink("/etc", data.join("absolute"))?;
    std::os::unix::fs::symlink("../secret", data.join("relative"))?;
    std::os::unix::fs::symlink("file", data.join("within"))?;
    let reading = |access: &str| {
        let text = format!("fs = [{{ host = '{}', guest = '/data', access = '{access}' }}]", data.display());
        Terms { grants: grants(&text), ..terms(Budget::default()) }
    };
    for path in ["file", "./file", "inner/../file", "within"] {
        assert_eq!(open(path, 0, READ, reading("read")).await, "inside", "{path}");
    }
    for path in [
        "../secret",
        "..",
        "/etc/passwd",
        "inner/../../secret",
        "absolute/passwd",
        "absolute/",
        "relative",
        "relative/",
        "//etc",
    ] {
        let outcome = open(path, 0, READ, reading("read")).await;
        assert!(outcome.len() == 2 && outcome.bytes().all(|byte| byte.is_ascii_digit()), "{path}: {outcome}");
    }
    for (path, oflags, rights) in [
        ("new", CREATE, WRITE_RIGHT),
        ("file", TRUNCATE, READ),
        ("file", TRUNCATE, WRITE_RIGHT),
        ("file", 0, WRITE_RIGHT),
    ] {
        let outcome = open(path, oflags, rights, reading("read")).await;
        assert!(outcome.len() == 2, "{path} {oflags}: {outcome}");
    }
    assert_eq!((fs::read_to_string(data.join("file"))?.as_str(), data.join("new").exists()), ("inside", false));
    assert_eq!(open("new", CREATE, READ | WRITE_RIGHT, reading("read-write")).await, "");
    assert!(data.join("new").exists());
    Ok(())
}

#[tokio::test]
async fn a_granted_directory_that_does_not_exist_is_named() {
    let cells = cells();
    let cell = load(&cells, &environment());
    let terms = Terms { grants: grants("fs = [{ host = '/no/such', guest = '/data' }]"), ..terms(Budget::default()) };
    let report = run_with(&cells, &cell, state([]), terms).await;
    let CellError::Directory { message } = error(&report) else { panic!("{report:?}") };
    assert!(message.starts_with("cannot open the directory `/no/such`, which is granted to `test.wasm` as `/data`"));
}

/// A command that writes out a random number of eight bytes, the time, and the time once more, as 24 letters each.
fn clock_and_random() -> Vec<u8> {
    let imports = format!(
        r#"{WRITE_IMPORT}
        (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "clock_time_get" (func $clock (param i32 i64 i32) (result i32)))"#
    );
    let start = format!(
        "{WRITE} (func $start (local $at i32)
            (drop (call $random (i32.const 64) (i32.const 8)))
            (drop (call $clock (i32.const 0) (i64.const 1) (i32.const 72)))
            (drop (call $clock (i32.const 1) (i64.const 1) (i32.const 80)))
            (loop $next
                (i32.store8 (i32.add (i32.const 128) (i32.mul (local.get $at) (i32.const 2)))
                    (i32.add (i32.const 97) (i32.and (i32.load8_u (i32.add (i32.const 64) (local.get $at))) (i32.const 15))))
                (i32.store8 (i32.add (i32.const 129) (i32.mul (local.get $at) (i32.const 2)))
                    (i32.add (i32.const 97) (i32.shr_u (i32.load8_u (i32.add (i32.const 64) (local.get $at))) (i32.const 4))))
                (local.set $at (i32.add (local.get $at) (i32.const 1)))
                (br_if $next (i32.lt_u (local.get $at) (i32.const 24))))
            (call $write (i32.const 1) (i32.const 128) (i32.const 48)))"
    );
    command(&imports, &start)
}

/// The three numbers that [`clock_and_random`] wrote.
fn numbers(output: &str) -> [u64; 3] {
    let number = |part: &str| {
        part.bytes().enumerate().fold(0_u64, |sum, (at, letter)| sum | (u64::from(letter - b'a') << (4 * at)))
    };
    [number(&output[..16]), number(&output[16..32]), number(&output[32..])]
}

#[tokio::test]
async fn attack_56_a_repeatable_call_uses_the_same_fuel_to_the_unit() {
    let repeatable = Repeatable { clock: UNIX_EPOCH + Duration::from_secs(1_000), seed: 7 };
    let cells = cells_with(CellsOptions { repeatable: Some(repeatable), ..CellsOptions::default() });
    let cell = load(&cells, &clock_and_random());
    let mut seen: Vec<(String, Fuel)> = Vec::new();
    for _ in 0..5 {
        let report = run(&cells, &cell, Budget::default()).await;
        seen.push((report.result.unwrap_or_else(|error| error.to_string()), report.usage.fuel));
    }
    let first = seen[0].clone();
    assert!(seen.iter().all(|other| *other == first), "{seen:?}");
    let [_, wall, monotonic] = numbers(&first.0);
    assert!((1_000_000_000_000..1_000_100_000_000).contains(&wall), "{wall}");
    assert!(monotonic < 100_000_000, "{monotonic}");

    let other = Repeatable { seed: 8, ..repeatable };
    let cells = cells_with(CellsOptions { repeatable: Some(other), ..CellsOptions::default() });
    let report = run(&cells, &load(&cells, &clock_and_random()), Budget::default()).await;
    assert_ne!(report.result, Ok(first.0));
}

#[tokio::test]
async fn time_is_real_and_coarse_and_random_numbers_differ() -> TestResult {
    let cells = cells();
    let cell = load(&cells, &clock_and_random());
    let mut randoms = Vec::new();
    for _ in 0..3 {
        let output = run(&cells, &cell, Budget::default()).await.result?;
        let [random, wall, monotonic] = numbers(&output);
        let now = std::time::SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos() as u64;
        assert!(now - wall < 60_000_000_000, "{wall} is not {now}");
        assert_eq!((wall % 1_000_000, monotonic % 1_000_000), (0, 0));
        randoms.push(random);
    }
    randoms.dedup();
    assert_eq!(randoms.len(), 3);

    let seeded = Terms { grants: grants("random = 'seeded'"), ..terms(Budget::default()) };
    let first = numbers(&run_with(&cells, &cell, state([]), seeded.clone()).await.result?)[0];
    let second = numbers(&run_with(&cells, &cell, state([]), seeded).await.result?)[0];
    assert_eq!(first, second);
    Ok(())
}
