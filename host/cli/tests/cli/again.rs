//! `hotcell runs reexecute` and `hotcell plugin replay`.

use rusqlite::Connection;

use crate::desk::Desk;

const GRAPH: &str = r#"name: twice
version: "1.0"
start: first
nodes:
  first: { type: script, script: scripts/first.js, next: second }
  second: { type: script, script: scripts/second.wasm, next: done }
  done: { type: end, output: "{{time}} {{x}}" }
"#;

/// What it gives is another thing with every run.
const FIRST: &str = "console.log(JSON.stringify({ time: Date.now(), random: Math.random() }));\n";

/// A WASI command that prints this text, and does so much besides.
fn prints(text: &str, besides: u32) -> Vec<u8> {
    let escaped = text.replace('"', "\\\"");
    let length = text.len();
    let wat = format!(
        r#"(module
            (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
            (memory (export "memory") 1) (data (i32.const 64) "{escaped}")
            (func (export "_start") (local $i i32)
                (loop $again
                    (local.set $i (i32.add (local.get $i) (i32.const 1)))
                    (br_if $again (i32.lt_u (local.get $i) (i32.const {besides}))))
                (i32.store (i32.const 0) (i32.const 64)) (i32.store (i32.const 4) (i32.const {length}))
                (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))"#
    );
    wat::parse_str(wat).unwrap()
}

/// A command that opens a file, which nobody granted to whoever was recorded.
fn opens_a_file() -> Vec<u8> {
    let wat = r#"(module
        (import "wasi_snapshot_preview1" "path_open"
            (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
        (memory (export "memory") 1) (data (i32.const 64) "data/a.txt")
        (func (export "_start")
            (drop (call $open (i32.const 3) (i32.const 0) (i32.const 64) (i32.const 10) (i32.const 0)
                (i64.const 2) (i64.const 2) (i32.const 0) (i32.const 8)))))"#;
    wat::parse_str(wat).unwrap()
}

fn desk() -> Desk {
    let desk = Desk::with(GRAPH, &[("first.js", FIRST)]);
    std::fs::write(desk.path("scripts/second.wasm"), prints(r#"{"x":1}"#, 1)).unwrap();
    desk
}

fn ran(desk: &Desk) -> String {
    let output = desk.output(&["run", ".", "--quiet", "--trust"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    desk.only_run().to_string()
}

#[test]
fn a_run_does_the_same_again() {
    let desk = desk();
    let run = ran(&desk);
    insta::assert_snapshot!(desk.told(&["runs", "reexecute", &run]), @r"
    exit code: 0
    --- stdout
    2 calls: 2 same
    --- stderr
    ");
    let output = desk.output(&["runs", "reexecute", &run, "2", "--json"]);
    let lines: Vec<serde_json::Value> =
        String::from_utf8(output.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        (&lines[0]["result"], &lines[0]["place"], &lines[0]["name"]),
        (&"same".into(), &"2".into(), &"scripts/second.wasm".into())
    );
    assert_eq!(lines[0]["fuel_recorded"], lines[0]["fuel_now"]);
    assert_eq!((&lines[1]["calls"], &lines[1]["same"]), (&1.into(), &1.into()));
}

#[test]
fn places_without_a_call_and_runs_without_recordings_are_said() {
    let desk = desk();
    let run = ran(&desk);
    let mut told: Vec<String> =
        ["3", "9", "x"].iter().map(|place| desk.told(&["runs", "reexecute", &run, place])).collect();
    told.push(desk.told(&["runs", "reexecute", "nothing"]));
    desk.write("hotcell.toml", "[record]\non = false\n");
    desk.output(&["run", ".", "--quiet", "--trust"]);
    let unrecorded = desk.runs()[0].id.to_string();
    told.push(desk.told(&["runs", "reexecute", &unrecorded]).replace(&unrecorded, "[RUN]"));
    insta::assert_snapshot!(told.join("\n").replace(&run, "[RUN]"));
}

#[test]
fn what_was_changed_or_is_gone_is_said_with_where_it_was() {
    let desk = desk();
    let run = ran(&desk);
    desk.write("scripts/first.js", "console.log('{}')\n");
    std::fs::remove_file(desk.path("scripts/second.wasm")).unwrap();
    // The revision of the run has them.
    assert!(desk.told(&["runs", "reexecute", &run]).contains("2 calls: 2 same"));
    Connection::open(desk.path("runs.db")).unwrap().execute("DELETE FROM artefacts", []).unwrap();
    insta::assert_snapshot!(without_digests(&desk.told(&["runs", "reexecute", &run])));
}

/// The text with other digits in the place of digests.
fn without_digests(text: &str) -> String {
    let mut parts = text.split("SHA-256 ");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| format!("{text}SHA-256 [DIGEST]{}", part.get(12..).unwrap_or_default()))
}

#[test]
fn a_damaged_recording_is_said_and_the_others_are_executed() {
    let desk = desk();
    let run = ran(&desk);
    let journal = Connection::open(desk.path("runs.db")).unwrap();
    journal.execute("UPDATE calls SET name = 'scripts/other.js' WHERE number = 1", []).unwrap();
    insta::assert_snapshot!(desk.told(&["runs", "reexecute", &run]));
}

#[test]
fn what_is_private_is_left_out_and_not_guessed() {
    let desk = desk();
    desk.write("hotcell.toml", "[record]\nprivate = ['scripts/first.js']\n");
    let run = ran(&desk);
    insta::assert_snapshot!(desk.told(&["runs", "reexecute", &run]));
    desk.write("hotcell.toml", "[record]\nmax_bytes = 10\n");
    desk.output(&["run", ".", "--quiet", "--trust"]);
    insta::assert_snapshot!(desk.told(&["runs", "reexecute", desk.runs()[0].id.as_str()]));
}

#[test]
fn a_folder_that_nobody_trusts_does_not_switch_recordings_off() {
    let desk = desk();
    desk.write("hotcell.toml", "[record]\non = false\n");
    desk.output(&["run", ".", "--quiet"]);
    assert_eq!(desk.output(&["runs", "reexecute", desk.only_run().as_str()]).status.code(), Some(0));
}

#[test]
fn a_changed_component_is_run_over_recorded_calls() {
    let desk = desk();
    let run = ran(&desk);
    desk.output(&["run", ".", "--quiet"]);
    let replay = |bytes: Vec<u8>, which: &[&str]| {
        std::fs::write(desk.path("new.wasm"), bytes).unwrap();
        let arguments = [&["plugin", "replay", "new.wasm"], which].concat();
        desk.told(&arguments)
    };
    let of = ["--of", "scripts/second.wasm"];
    let all = [&["--all"], &of[..]].concat();
    let told = [
        replay(prints(r#"{"x":1}"#, 1), &[&["--runs", &run], &of[..]].concat()),
        replay(prints(r#"{"x":1}"#, 1_000), &all),
        replay(prints(r#"{"y":1}"#, 1), &[&["--agent", "twice"], &of[..]].concat()),
        replay(opens_a_file(), &all),
        replay(prints("{}", 1), &["--all"]),
        replay(prints("{}", 1), &["--all", "--of", "nothing"]),
        replay(b"no component".to_vec(), &all),
        desk.told(&["plugin", "replay", "new.wasm"]),
        desk.told(&["plugin", "replay", "missing.wasm", "--all"]),
    ];
    // Whether it has to be compiled depends on what ran before.
    insta::assert_snapshot!(told.join("\n").replace("compiling new.wasm\n", ""));
}
