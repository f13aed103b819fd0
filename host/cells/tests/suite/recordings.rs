//! Recordings: what a call took from the host is in them, and it does the same again from nothing else. That other calls of
//! these tests do the same again is seen wherever one is made (`support::again`).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hotcell_budget::{Budget, Bytes, Fuel};
use hotcell_cells::{
    Called, Cell, Cells, Gap, Gave, HostFunction, KeyValueStore, RecordTerms, Recording, RecordingError, Report,
    Secrets, ServiceError, Terms, ToolCall,
};

use crate::support::{again, cells, command, grants, load, plugin, run_with, script, state, terms, tools};

const RECORDED: Option<RecordTerms> = Some(RecordTerms { max_bytes: Bytes(1 << 20), is_private: false });

async fn call(cells: &Cells, cell: &Cell, arguments: &str, terms: Terms) -> Report<String> {
    let (tool, arguments) = ("tool".to_owned(), arguments.to_owned());
    cells.call_tool(cell, ToolCall { tool, arguments, answers: Vec::new(), terms }).await
}

fn read<T>(report: &Report<T>) -> Recording {
    let text = report.recording.as_deref().unwrap_or_else(|| panic!("nothing was recorded"));
    Recording::read(text).unwrap_or_else(|error| panic!("{error}"))
}

/// A tool that answers with its arguments, and another one that answers with a text of its own.
fn echo() -> Vec<u8> {
    tools("", "(func $call (param i32 i32 i32 i32) (result i32) (call $ok (local.get 2) (local.get 3)))")
}

fn answers(text: &str) -> Vec<u8> {
    let text = format!(
        "(data (i32.const 2000) \"{text}\") (func $call (param i32 i32 i32 i32) (result i32)
            (call $ok (i32.const 2000) (i32.const {})))",
        text.len()
    );
    tools("", &text)
}

#[tokio::test]
async fn nothing_is_recorded_unless_that_is_wanted() {
    let cells = cells();
    let cell = load(&cells, &echo());
    assert_eq!(call(&cells, &cell, "{}", terms(Budget::default())).await.recording, None);
    let recorded = Terms { record: RECORDED, ..terms(Budget::default()) };
    let recording = read(&call(&cells, &cell, r#"{"a":1}"#, recorded).await);
    assert_eq!(recording.gave, Gave::Text(r#"{"a":1}"#.to_owned()));
    assert_eq!(recording.component, cell.digest());
    assert!(matches!(&recording.call, Called::Tool { arguments, .. } if arguments == r#"{"a":1}"#));
}

/// A store whose value is another one with every call: only a recording gives the same again.
#[derive(Default)]
struct Counter(AtomicU64);

impl KeyValueStore for Counter {
    fn get(&self, _: &str) -> Result<Option<Vec<u8>>, ServiceError> {
        Ok(Some(self.0.fetch_add(1, Ordering::Relaxed).to_string().into_bytes()))
    }

    fn set(&self, _: &str, _: &[u8]) -> Result<(), ServiceError> {
        Ok(())
    }

    fn delete(&self, _: &str) -> Result<(), ServiceError> {
        Ok(())
    }

    fn keys(&self, _: &str, _: usize) -> Result<Vec<String>, ServiceError> {
        Ok(Vec::new())
    }
}

/// Reads the key `name` of its store and answers with what is there.
fn reads(name: &str) -> Vec<u8> {
    let imports = r#"(import "hotcell:plugin/kv@0.2.0" "get" (func $get (param i32 i32 i32)))"#;
    let parts = format!(
        "(data (i32.const 2000) \"{name}\") (func $call (param i32 i32 i32 i32) (result i32)
            (call $get (i32.const 2000) (i32.const {}) (i32.const 64))
            (if (i32.load8_u (i32.const 64)) (then (return (call $fail (i32.load (i32.const 72)) (i32.load (i32.const 76))))))
            (call $ok (i32.load (i32.const 72)) (i32.load (i32.const 76))))",
        name.len()
    );
    tools(imports, &parts)
}

#[tokio::test]
async fn a_store_is_not_asked_again() {
    let cells = cells();
    let cell = load(&cells, &reads("k"));
    let store = Arc::new(Counter::default());
    let terms =
        || Terms { grants: grants("kv = true"), kv: Some(store.clone()), record: RECORDED, ..terms(Budget::default()) };
    let first = call(&cells, &cell, "{}", terms()).await;
    let second = call(&cells, &cell, "{}", terms()).await;
    assert_eq!((first.result.as_deref(), second.result.as_deref()), (Ok("0"), Ok("1")));
    for report in [&first, &second] {
        let recording = again(&cells, &cell, report).await.unwrap_or_else(|| panic!("it is recorded"));
        assert_eq!(recording.taken.len(), 1);
        assert_eq!((recording.taken[0].from, recording.taken[0].asked.as_str()), (HostFunction::Kv, "get k"));
    }
    assert_eq!(store.0.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn a_changed_component_that_asks_for_more_is_ended_there() {
    let cells = cells();
    let terms = Terms {
        grants: grants("kv = true"),
        kv: Some(Arc::new(Counter::default())),
        record: RECORDED,
        ..terms(Budget::default())
    };
    let recording = read(&call(&cells, &load(&cells, &reads("k")), "{}", terms).await);
    let other = cells.reexecute(&load(&cells, &reads("other")), None, &recording).await;
    assert_eq!(other.wanted.as_deref(), Some("the store for `get other`"));
    let model = tools(
        r#"(import "hotcell:plugin/llm@0.2.0" "complete" (func $complete (param i32 i32 i32)))"#,
        "(func $call (param i32 i32 i32 i32) (result i32)
            (call $complete (local.get 2) (local.get 3) (i32.const 64)) (call $ok (i32.const 1024) (i32.const 2)))",
    );
    // It was granted no model, so that it is a capability that it wants more, although it would go on without.
    let other = cells.reexecute(&load(&cells, &model), None, &recording).await;
    assert_eq!(other.wanted.as_deref(), Some("for `llm`, the model of the run"));
}

#[tokio::test]
async fn another_output_and_another_use_of_fuel_are_seen() {
    let cells = cells();
    let record = || Terms { record: RECORDED, ..terms(Budget::default()) };
    let recording = read(&call(&cells, &load(&cells, &answers("12345")), "{}", record()).await);
    let other = cells.reexecute(&load(&cells, &answers("12x45")), None, &recording).await;
    let difference = recording.gave.difference(&other.gave).unwrap_or_else(|| panic!("they differ"));
    assert_eq!((difference.at, other.fuel), (2, recording.fuel));
    let slower = tools(
        "",
        "(data (i32.const 2000) \"12345\") (func $call (param i32 i32 i32 i32) (result i32)
            nop i32.const 1 drop (call $ok (i32.const 2000) (i32.const 5)))",
    );
    let other = cells.reexecute(&load(&cells, &slower), None, &recording).await;
    assert_eq!(recording.gave.difference(&other.gave), None);
    assert!(other.fuel > recording.fuel);
}

/// Random numbers and clocks: fresh and precise ones differ from call to call, and come back as they were.
#[tokio::test]
async fn clocks_and_random_numbers_come_back() {
    let cells = cells();
    let imports = r#"(import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "clock_time_get" (func $time (param i32 i64 i32) (result i32)))
        (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))"#;
    // 16 random bytes and both clocks, each byte as a letter.
    let parts = r#"(func $start (local $i i32)
        (drop (call $random (i32.const 100) (i32.const 16)))
        (drop (call $time (i32.const 0) (i64.const 0) (i32.const 116)))
        (drop (call $time (i32.const 1) (i64.const 0) (i32.const 124)))
        (loop $next
            (i32.store8 (i32.add (i32.const 200) (local.get $i))
                (i32.add (i32.const 97) (i32.and (i32.const 15) (i32.load8_u (i32.add (i32.const 100) (local.get $i))))))
            (local.set $i (i32.add (local.get $i) (i32.const 1)))
            (br_if $next (i32.lt_u (local.get $i) (i32.const 32))))
        (i32.store (i32.const 0) (i32.const 200)) (i32.store (i32.const 4) (i32.const 32))
        (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8))))"#;
    let cell = load(&cells, &command(imports, parts));
    let granted = || Terms { grants: grants("random = 'fresh'\nclock = 'precise'"), ..terms(Budget::default()) };
    // Executed again within `run_with`.
    let first = run_with(&cells, &cell, state([]), granted()).await;
    let second = run_with(&cells, &cell, state([]), granted()).await;
    assert_ne!(first.result, second.result);
}

#[tokio::test]
async fn what_a_script_reads_of_the_state_comes_back_and_nothing_else_is_kept() {
    let cells = cells();
    let imports = r#"(import "hotcell:plugin/state@0.2.0" "get" (func $get (param i32 i32 i32)))"#;
    let parts = r#"(data (i32.const 2000) "a.b") (func $run (result i32)
        (call $get (i32.const 2000) (i32.const 3) (i32.const 64))
        (call $ok (i32.load (i32.const 68)) (i32.load (i32.const 72))))"#;
    let cell = load(&cells, &script(imports, parts));
    let state = state([("a.b", r#"{"x":1}"#), ("other", r#""unread""#)]);
    let report = run_with(&cells, &cell, state, terms(Budget::default())).await;
    let recording = read(&report);
    assert_eq!(recording.taken[0].gave, r#"{"x":1}"#);
    assert!(!report.recording.unwrap_or_default().contains("unread"));
}

#[tokio::test]
async fn hooks_nodes_and_connectors_do_the_same_again() {
    let cells = cells();
    let description = r#"{"contract":"0.2.0","name":"hook","hooks":[{"point":"before-run"}]}"#;
    // The verdict `refuse` with the message of two bytes at 1,024.
    let parts = "(func $on (param i32 i32 i32 i32) (result i32)
        (i32.store (i32.const 16) (i32.const 0)) (i32.store (i32.const 20) (i32.const 2))
        (i32.store (i32.const 24) (i32.const 1024)) (i32.store (i32.const 28) (i32.const 2))
        (i32.store (i32.const 32) (i32.const 0)) (i32.store (i32.const 36) (i32.const 0)) (i32.const 16))";
    let cell = load(&cells, &plugin("hooks", "", parts, &["hook@0.2.0#on=on"], description));
    let call = hotcell_cells::HookCall {
        point: "before-run".to_owned(),
        event: r#"{"graph":"g"}"#.to_owned(),
        terms: Terms { record: RECORDED, ..terms(Budget::default()) },
    };
    let report = cells.call_hook(&cell, call).await;
    let recording = again(&cells, &cell, &report).await.unwrap_or_else(|| panic!("it is recorded"));
    assert_eq!(recording.gave, Gave::Refuse("{}".to_owned()));
    assert!(matches!(recording.call, Called::Hook { .. }));
}

#[tokio::test]
async fn limits_that_depend_on_the_call_alone_end_it_again_and_a_deadline_is_no_such_limit() {
    let cells = cells();
    let endless = tools("", "(func $call (param i32 i32 i32 i32) (result i32) (loop $on (br $on)) unreachable)");
    let cell = load(&cells, &endless);
    let budget = Budget { fuel: Fuel(10_000), ..Budget::default() };
    let report = call(&cells, &cell, "{}", Terms { record: RECORDED, ..terms(budget) }).await;
    let recording = again(&cells, &cell, &report).await.unwrap_or_else(|| panic!("it is recorded"));
    assert!(matches!(&recording.gave, Gave::Error(error) if error.starts_with("out-of-fuel")), "{recording:?}");
    let budget =
        Budget { fuel: Fuel(u64::MAX / 2), wall_clock: std::time::Duration::from_millis(20), ..Budget::default() };
    let report = call(&cells, &cell, "{}", Terms { record: RECORDED, ..terms(budget) }).await;
    assert_eq!(read(&report).gap, Some(Gap::Deadline));
}

#[tokio::test]
async fn what_is_private_or_too_large_is_kept_as_digests() {
    let cells = cells();
    let cell = load(&cells, &echo());
    let arguments = r#"{"salary":123456}"#;
    let private = RecordTerms { is_private: true, ..RecordTerms::default() };
    let small = RecordTerms { max_bytes: Bytes(200), ..RecordTerms::default() };
    for (record, gap) in [(private, Gap::Private), (small, Gap::TooLarge { limit: 200 })] {
        let terms = Terms {
            record: Some(record),
            env: vec![("TOKEN".to_owned(), "in the environment".to_owned())],
            ..terms(Budget::default())
        };
        let report = call(&cells, &cell, arguments, terms).await;
        assert_eq!(report.result.as_deref(), Ok(arguments), "what is recorded changes nothing");
        let text = report.recording.as_deref().unwrap_or_default();
        assert!(!text.contains("123456") && !text.contains("in the environment"), "{text}");
        let recording = read(&report);
        assert_eq!(recording.gap, Some(gap));
        assert!(matches!(&recording.gave, Gave::Text(digest) if digest.starts_with("blake3:")), "{recording:?}");
    }
}

/// A guest that reads a precise clock all the time it has: what is kept of it stays within the limit.
#[tokio::test]
async fn a_flood_of_readings_is_no_flood_of_memory() {
    let cells = cells();
    let imports = r#"(import "wasi_snapshot_preview1" "clock_time_get" (func $time (param i32 i64 i32) (result i32)))"#;
    let parts = "(func $start (local $i i32) (loop $next
        (drop (call $time (i32.const 1) (i64.const 0) (i32.const 100)))
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (br_if $next (i32.lt_u (local.get $i) (i32.const 20000)))))";
    let cell = load(&cells, &command(imports, parts));
    let call = |max_bytes| hotcell_cells::ScriptCall {
        file_name: "test.wasm".to_owned(),
        source: None,
        state: state([]),
        terms: Terms {
            grants: grants("clock = 'precise'"),
            record: Some(RecordTerms { max_bytes: Bytes(max_bytes), is_private: false }),
            ..terms(Budget::default())
        },
    };
    let report = cells.run_script(&cell, call(1 << 10)).await;
    assert_eq!(read(&report).gap, Some(Gap::TooLarge { limit: 1 << 10 }));
    let report = cells.run_script(&cell, call(1 << 20)).await;
    assert!(again(&cells, &cell, &report).await.is_some_and(|recording| recording.gap.is_none()));
}

#[tokio::test]
async fn no_value_of_a_secret_is_recorded() {
    let cells = cells();
    let cell = load(&cells, &echo());
    let with = |value: &str| Terms {
        grants: grants("secret = [{ name = 'KEY', servers = ['https://x.org'] }]"),
        secrets: Secrets::new([("KEY".to_owned(), value.to_owned())]),
        record: RECORDED,
        ..terms(Budget::default())
    };
    // Somebody gave it away in the arguments, in one form or another.
    for (value, arguments) in
        [("value-of-the-key", r#"{"k":"value-of-the-key"}"#), ("with \"quotes\"", r#"{"k":"with \"quotes\""}"#)]
    {
        let report = call(&cells, &cell, arguments, with(value)).await;
        let text = report.recording.as_deref().unwrap_or_default();
        assert!(!text.contains("value-of") && !text.contains("quotes"), "{text}");
        assert_eq!(read(&report).gap, Some(Gap::Secret));
    }
    let report = call(&cells, &cell, "{}", with("value-of-the-key")).await;
    assert_eq!(again(&cells, &cell, &report).await.and_then(|recording| recording.gap), None);
}

/// A recording that somebody else wrote grants whatever they like. The guest makes a directory in what was granted to it.
#[tokio::test]
async fn a_recording_opens_no_directory_of_this_machine() {
    let folder = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    let cells = cells();
    let imports =
        r#"(import "wasi_snapshot_preview1" "path_create_directory" (func $mkdir (param i32 i32 i32) (result i32)))"#;
    let parts = r#"(data (i32.const 1024) "made") (func $start
        (drop (call $mkdir (i32.const 3) (i32.const 1024) (i32.const 4))))"#;
    let cell = load(&cells, &command(imports, parts));
    let grant = format!("fs = [{{ host = '{}', guest = '/data', access = 'read-write' }}]", folder.path().display());
    let granted = Terms { grants: grants(&grant), ..terms(Budget::default()) };
    let mut recording = read(&run_with(&cells, &cell, state([]), granted).await);
    assert_eq!(recording.gap, Some(Gap::Directories));
    let made = folder.path().join("made");
    assert!(made.is_dir(), "the guest does what this test is about");
    std::fs::remove_dir(&made).unwrap_or_else(|error| panic!("{error}"));
    recording.gap = None;
    cells.reexecute(&cell, None, &recording).await;
    assert!(!made.exists());
}

#[tokio::test]
async fn a_recording_that_is_none_or_newer_is_said() {
    let cells = cells();
    let cell = load(&cells, &echo());
    let report = call(&cells, &cell, "{}", Terms { record: RECORDED, ..terms(Budget::default()) }).await;
    let text = report.recording.unwrap_or_default();
    let newer = text.replacen("\"layout\":1", "\"layout\":2", 1);
    assert_eq!(Recording::read(&newer), Err(RecordingError::Newer { found: 2 }));
    let unknown = r#"{"layout":9,"something":"else"}"#;
    assert_eq!(Recording::read(unknown), Err(RecordingError::Newer { found: 9 }));
    for damaged in ["", "{", "[]", &text[..text.len() - 2], &text.replacen("tool", "poll", 1)] {
        assert!(matches!(Recording::read(damaged), Err(RecordingError::Damaged { .. })), "{damaged}");
    }
}
