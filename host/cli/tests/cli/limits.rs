//! Limits of the machine that scripts share with whoever runs them.

use std::process::Command;

use crate::desk::Desk;

const GRAPH: &str = r#"name: hog
version: "1.0"
start: hog
nodes:
  hog: { type: script, script: scripts/hog.py, next: after }
  after: { type: script, script: scripts/after.py, next: done }
  done: { type: end, output: "{{read}}" }
"#;

const GRANT: &str = "fs = [{ host = \"data\", guest = \"/data\" }]\n";

#[test]
fn files_that_scripts_hold_open_leave_enough_for_the_run() {
    let desk = Desk::with(
        GRAPH,
        &[
            ("hog.py", "files = [open('/data/file') for _ in range(2000)]\n"),
            ("after.py", "import json\nprint(json.dumps({'read': open('/data/file').read()}))\n"),
        ],
    );
    desk.write("data/file", "still here");
    desk.write(
        "hotcell.toml",
        &format!("[grants.\"scripts/hog.py\"]\n{GRANT}[grants.\"scripts/after.py\"]\n{GRANT}[budget.\"scripts/hog.py\"]\nhandles = 5000\n"),
    );
    let hotcell = desk.hotcell(&["run", ".", "--trust"]);
    let mut limited = Command::new("sh");
    limited.arg("-c").arg("ulimit -n 400; exec \"$0\" run . --trust").arg(hotcell.get_program());
    limited.current_dir(desk.path("")).env_clear();
    limited.envs(hotcell.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = limited.output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("too-many-handles: all guests together may have 300 files open"), "{told}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "still here\n", "{told}");
}

#[test]
fn a_run_writes_to_its_journal_what_the_folder_allows_and_no_more() {
    let graph = "name: x\nversion: \"1.0\"\nstart: big\nnodes:\n  big: { type: script, script: scripts/big.py, next: done }\n  done: { type: end, output: done }\n";
    let desk = Desk::with(graph, &[("big.py", "import json\nprint(json.dumps({'x': 'x' * 100_000}))\n")]);
    assert!(desk.told(&["run", "."]).starts_with("exit code: 0"));
    // Also where nobody trusts the folder, and when it is tried again.
    desk.write("hotcell.toml", "[run]\njournal_bytes = 50000\n");
    let full =
        "the run has written more than [BYTES] to its journal, and may not write more (`journal_bytes` under `[run]`";
    let told = desk.told(&["run", "."]);
    assert!(told.starts_with("exit code: 1") && told.contains(full), "{told}");
    let failed = desk.runs()[0].id.to_string();
    let told = desk.told(&["runs", "retry", &failed]);
    assert!(told.starts_with("exit code: 1") && told.contains(full), "{told}");
    // A higher limit counts where somebody trusts it.
    desk.write("hotcell.toml", "[run]\njournal_bytes = 4000000000\n");
    let told = desk.told(&["trust", ".", "--yes"]);
    assert!(told.contains("a run may write [BYTES] to its journal, and not only [BYTES]"), "{told}");
    let told = desk.told(&["runs", "retry", &failed, "--revision", "current"]);
    assert!(told.starts_with("exit code: 0"), "{told}");
}

/// Each of them was compared with the names of all scripts, and told.
#[test]
fn what_settings_name_in_vain_is_told_up_to_a_number() {
    let graph = "name: x\nversion: \"1.0\"\nstart: done\nnodes:\n  done: { type: end, output: done }\n";
    let desk = Desk::with(graph, &[]);
    let grants: String =
        (0..3_000).map(|at| format!("[grants.\"{}{at}.sh\"]\nclock = \"coarse\"\n", "b".repeat(100))).collect();
    desk.write("hotcell.toml", &grants);
    let told = desk.told(&["check", "."]);
    assert!(told.starts_with("exit code: 0"), "{told}");
    assert_eq!(told.matches("has no effect").count(), 200);
}
