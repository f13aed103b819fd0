//! One run, one check: what is printed where, and the exit codes.

use crate::desk::Desk;

const GREETING: &str = r#"name: greeting
version: "1.0"
variables:
  - name: language
    description: The language to greet in
    default: en
start: greet
nodes:
  greet:
    type: script
    script: scripts/greet.js
    next: done
  done:
    type: end
    output: "{{greeting}}"
"#;

const GREET: &str = r#"const state = JSON.parse(process.env.GRAPH_STATE);
const word = { en: "Hello", fr: "Bonjour" }[process.env.LLM_AGENT_VAR_LANGUAGE];
console.error("a note that is not part of the answer");
console.log(JSON.stringify({ greeting: `${word}, ${state.initial_prompt ?? "nobody"}` }));
"#;

fn greeting() -> Desk {
    Desk::with(GREETING, &[("greet.js", GREET)])
}

#[test]
fn a_run_is_narrated_and_its_result_printed() {
    insta::assert_snapshot!(greeting().told(&["run", ".", "Ada"]));
}

#[test]
fn what_failed_inside_a_script_that_went_on_is_seen() {
    let graph = GREETING.replace("greet.js", "greet.sh");
    let script =
        "source \"$(dirname \"$0\")/../../.shared/utils.sh\"\nno-such --program\necho '{\"greeting\": \"hi\"}'\n";
    insta::assert_snapshot!(Desk::with(&graph, &[("greet.sh", script)]).told(&["run", ".", "Ada"]));
}

/// Progress is what is suppressed: what a script writes, and not what it did without.
#[test]
fn quiet_hides_no_warning_about_a_node() {
    let graph = GREETING.replace("greet.js", "greet.sh");
    let script = "source \"$(dirname \"$0\")/../../.shared/utils.sh\"\necho '{\"greeting\": \"hi\"}'\n";
    insta::assert_snapshot!(Desk::with(&graph, &[("greet.sh", script)]).told(&["run", ".", "Ada", "--quiet"]));
}

#[test]
fn quiet_leaves_the_result_alone() {
    let desk = greeting();
    let output = desk.output(&["run", "graph.yaml", "Ada", "--var", "language=fr", "--quiet"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "Bonjour, Ada\n");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn the_prompt_can_come_from_standard_input() {
    let desk = greeting();
    let told = desk.told_with_input(&["run", ".", "-", "--quiet"], "Ada\nand Grace\n");
    assert_eq!(told, "exit code: 0\n--- stdout\nHello, Ada\nand Grace\n--- stderr\n");
}

#[test]
fn events_are_json_lines() {
    let desk = greeting();
    insta::assert_snapshot!(desk.told(&["run", ".", "Ada", "--json", "--quiet"]));
}

#[test]
fn every_line_of_json_output_is_json() {
    let desk = greeting();
    for arguments in [&["run", ".", "--json"][..], &["check", ".", "--json"], &["runs", "list", "--json"]] {
        let output = desk.output(arguments);
        let stdout = String::from_utf8(output.stdout).unwrap();
        assert!(!stdout.is_empty(), "{arguments:?}");
        for line in stdout.lines() {
            serde_json::from_str::<serde_json::Value>(line)
                .unwrap_or_else(|error| panic!("{arguments:?}: {error}: {line}"));
        }
    }
}

const FAILING: &str = r#"name: failing
version: "1.0"
start: work
nodes:
  work: { type: script, script: scripts/work.js }
  done: { type: end, output: never }
"#;

#[test]
fn a_failed_run_says_why_and_exits_with_1() {
    let desk = Desk::with(FAILING, &[("work.js", "throw new Error('the \\u001b[31mred\\u001b[0m disk is full')\n")]);
    insta::assert_snapshot!(desk.told(&["run", "."]));
}

#[test]
fn a_failed_run_has_a_result_line() {
    let desk = Desk::with(FAILING, &[("work.js", "process.exit(7)\n")]);
    let output = desk.output(&["run", ".", "--json", "--quiet"]);
    let stdout = String::from_utf8(output.stdout).unwrap();
    let last: serde_json::Value = serde_json::from_str(stdout.lines().last().unwrap()).unwrap();
    assert_eq!((&last["event"], &last["status"], &last["node"]), (&"result".into(), &"failed".into(), &"work".into()));
    assert_eq!(last["exit_code"], 1);
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_fallback_is_told() {
    let graph = r#"name: fallback
version: "1.0"
start: work
nodes:
  work: { type: script, script: scripts/work.js, fallback: other, next: done }
  other: { type: script, script: scripts/other.js, next: done }
  done: { type: end, output: "{{text}}" }
"#;
    let scripts = [("work.js", "console.log('not JSON')\n"), ("other.js", "console.log('{\"text\": \"saved\"}')\n")];
    insta::assert_snapshot!(Desk::with(graph, &scripts).told(&["run", "."]));
}

#[test]
fn a_map_is_told_item_by_item() {
    let graph = r#"name: each
version: "1.0"
initial_state: { words: [a, bb] }
start: measure
nodes:
  measure: { type: map, over: "{{words}}", as: word, branch: one, collect_into: lengths, max_concurrency: 1, next: done }
  one: { type: script, script: scripts/one.js }
  done: { type: end, output: "{{lengths}}" }
"#;
    let one = "console.log(JSON.stringify({ output: JSON.parse(process.env.GRAPH_STATE).word.length }))\n";
    insta::assert_snapshot!(Desk::with(graph, &[("one.js", one)]).told(&["run", "."]));
}

#[test]
fn a_folder_is_there_only_if_it_was_granted() {
    let graph = r#"name: curious
version: "1.0"
start: look
nodes:
  look: { type: script, script: scripts/look.js, next: done }
  done: { type: end, output: "{{secret}}" }
"#;
    let desk =
        Desk::with(graph, &[("look.js", "console.log(require('fs').readFileSync('/data/secret.json', 'utf8'))\n")]);
    desk.write("data/secret.json", r#"{ "secret": "granted" }"#);
    let refused = desk.output(&["run", "."]);
    assert_eq!((refused.status.code(), refused.stdout.as_slice()), (Some(1), &b""[..]));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("ENOENT"));
    desk.write("hotcell.toml", "[grants.\"scripts/look.js\"]\nfs = [{ host = \"data\", guest = \"/data\" }]\n");
    let distrusted = desk.output(&["run", "."]);
    assert_eq!((distrusted.status.code(), distrusted.stdout.as_slice()), (Some(1), &b""[..]));
    assert!(String::from_utf8_lossy(&distrusted.stderr).contains("`hotcell trust .`"));
    assert_eq!(String::from_utf8_lossy(&desk.output(&["run", ".", "--trust"]).stdout), "granted\n");
    assert_eq!(desk.output(&["run", "."]).status.code(), Some(1));
    assert_eq!(desk.output(&["trust", "."]).status.code(), Some(2), "confirmation needs a terminal");
    let nowhere = desk.output(&["trust", "nowhere", "--yes"]);
    assert!(String::from_utf8_lossy(&nowhere.stderr).contains("there is no folder `nowhere`"), "{nowhere:?}");
    let trusted = desk.output(&["trust", ".", "--yes"]);
    assert!(String::from_utf8_lossy(&trusted.stderr).contains("data`, as `/data`"), "{trusted:?}");
    assert_eq!(String::from_utf8_lossy(&desk.output(&["run", "."]).stdout), "granted\n");
    desk.write("hotcell.toml", "[grants.\"scripts/look.js\"]\nfs = [{ host = \".\", guest = \"/data\" }]\n");
    assert_eq!(desk.output(&["run", "."]).status.code(), Some(1), "a changed file is not trusted");
}

#[test]
fn what_is_wrong_outside_the_graph_file_is_reported_too() {
    let graph = r#"name: call
version: "1.0"
start: call
nodes:
  call: { type: script, script: scripts/call.wasm, next: done }
  done: { type: end, output: "called" }
"#;
    let desk = Desk::with(graph, &[("call.wasm", "this is no component")]);
    desk.write("hotcell.toml", "[grants.\"scripts/other.js\"]\nenv = [\"LANG\"]\n");
    desk.output(&["trust", ".", "--yes"]);
    insta::assert_snapshot!(desk.told(&["check", "."]));
}

/// A misspelt name grants nothing and limits nothing, and nobody would notice.
#[test]
fn names_in_the_settings_that_match_nothing_are_warnings() {
    let desk = greeting();
    desk.write("mcp.json", r#"{"mcpServers":{"library":{"command":"true"}}}"#);
    desk.write(
        "hotcell.toml",
        "[grants.\"scripts/gret.js\"]\nenv = [\"LANG\"]\n[grants.\"scripts/greet.js\"]\n\
         fs = [{ host = \"missing\", guest = \"/data\" }]\nsecret = [{ name = \"KEY\", servers = [] }]\n\
         [grants.\"mcp:libary\"]\nprocess = true\n[grants.\"rag:docs\"]\nhttp = []\n[budget.curency]\nfuel = 3\n\
         [hooks]\noptional = [\"guard\"]\n[secrets]\nKYE = { env = \"X\" }\n",
    );
    insta::assert_snapshot!(desk.told(&["check", "."]));
    desk.output(&["trust", ".", "--yes"]);
    let trusted = desk.told(&["check", "."]);
    assert!(!trusted.contains("trust"), "a directory that is not there is trusted like any other: {trusted}");
    desk.write("hotcell.toml", "[grants\n");
    let broken = desk.told(&["run", "."]);
    assert!(broken.contains("cannot be parsed") && !broken.contains("trust"), "{broken}");
}

const WRONG: &str = r#"name: wrong
version: "1.0"
start: begin
nodes:
  begin:
    type: script
    script: scripts/missing.js
    next: dome
  ask:
    type: approval
    question: Really?
    options: ["yes", "no"]
    routes: { "yes": done }
    on_othr: done
  done:
    type: end
    output: "{{x}}"
"#;

#[test]
fn check_reports_everything_at_once() {
    let desk = Desk::with(WRONG, &[]);
    insta::assert_snapshot!(desk.told(&["check", "."]));
}

#[test]
fn run_refuses_what_check_refuses() {
    let desk = Desk::with(WRONG, &[]);
    let (run, check) = (desk.output(&["run", "."]), desk.output(&["check", "."]));
    assert_eq!((run.status.code(), check.status.code()), (Some(2), Some(2)));
    assert_eq!(String::from_utf8_lossy(&run.stderr).trim(), String::from_utf8_lossy(&check.stdout).trim());
    assert_eq!(desk.output(&["runs", "list"]).stdout, b"");
}

#[test]
fn a_refused_run_has_a_result_line() {
    let desk = Desk::with(WRONG, &[]);
    desk.write("good/graph.yaml", GREETING);
    desk.write("good/scripts/greet.js", GREET);
    for (arguments, fragment) in
        [(&["run", ".", "--json"][..], "errors"), (&["run", "good", "--json", "--var", "x=1"], "`x`")]
    {
        let output = desk.output(arguments);
        let stdout = String::from_utf8(output.stdout).unwrap();
        let last: serde_json::Value = serde_json::from_str(stdout.lines().last().unwrap()).unwrap();
        assert_eq!((&last["event"], &last["status"]), (&"result".into(), &"refused".into()), "{arguments:?}");
        assert!(last["error"].as_str().unwrap().contains(fragment), "{last}");
        assert_eq!(output.status.code(), Some(2));
    }
}

#[test]
fn check_goes_through_all_graphs() {
    let desk = greeting();
    desk.write("other/graph.yaml", WRONG);
    insta::assert_snapshot!(desk.told(&["check", "--json", ".", "other", "nowhere"]));
}

#[test]
fn check_accepts_a_good_graph() {
    assert_eq!(
        greeting().told(&["check", "."]),
        "exit code: 0\n--- stdout\nok: . (graph `greeting`, 2 nodes)\n--- stderr\n"
    );
}

#[test]
fn a_wrong_command_line_is_refused() {
    let desk = greeting();
    for arguments in [
        &["run"][..],
        &["run", ".", "--var", "=x"],
        &["run", ".", "--var", "a=1", "--var", "a=2"],
        &["run", ".", "--colour"],
        &["run", ".", "--var", "langauge=fr"],
        &["runs", "show", "zzz"],
        &["graph"],
        &["frobnicate"],
    ] {
        let output = desk.output(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(String::from_utf8_lossy(&output.stderr).starts_with("error: "), "{arguments:?}");
    }
}

#[test]
fn a_missing_variable_is_named() {
    let desk = Desk::with(&GREETING.replace("    default: en\n", ""), &[("greet.js", GREET)]);
    insta::assert_snapshot!(desk.told(&["run", "."]));
}

#[test]
fn a_variable_that_is_not_declared_is_refused_with_those_that_are() {
    let desk = greeting();
    let said = |given: &str| {
        let (code, _, told) = desk.said(&["run", ".", "--var", given]);
        assert_eq!(code, Some(2), "{told}");
        told.lines().next().unwrap_or_default().to_owned()
    };
    assert_eq!(said("langage=fr"), "error: the graph declares no variable `langage`; did you mean `language`?");
    assert_eq!(said("who=Ada"), "error: the graph declares no variable `who`; its variables are `language`");
}

#[test]
fn colours_switch_off() {
    let desk = greeting();
    let coloured = |arguments: &[&str], no_color: Option<&str>| {
        let mut command = desk.hotcell(arguments);
        if let Some(no_color) = no_color {
            command.env("NO_COLOR", no_color);
        }
        command.output().unwrap().stderr.contains(&0x1b)
    };
    assert!(coloured(&["run", ".", "--color", "always"], None));
    assert!(coloured(&["run", ".", "--color", "always"], Some("1")), "what the command line says wins");
    assert!(!coloured(&["run", ".", "--color", "never"], None));
    assert!(!coloured(&["run", "."], None), "a pipe is not coloured");
}

#[test]
fn rust_log_opens_the_log_under_both_names() {
    let desk = greeting();
    for wanted in ["hotcell::graph=debug", "loki::graph=debug"] {
        let output = desk.hotcell(&["run", ".", "--quiet"]).env("RUST_LOG", wanted).output().unwrap();
        let log = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(log.contains("performance summary (slowest first)"), "{wanted}: {log}");
        assert!(log.contains("[graph:greeting]"), "{wanted}: {log}");
    }
    let output = desk.hotcell(&["run", ".", "--quiet"]).env("RUST_LOG", "other=debug").output().unwrap();
    assert_eq!(output.stderr, b"");
}

#[test]
fn compiled_code_is_removed_and_made_again() {
    let graph = "name: x\nstart: a\nnodes:\n  a: { type: script, script: scripts/a.wasm, next: done }\n  done: { type: end, output: ok }\n";
    let desk = Desk::with(graph, &[]);
    let script = wat::parse_str(
        r#"(module (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
            (memory (export "memory") 1) (data (i32.const 0) "\08\00\00\00\02\00\00\00{}")
            (func (export "_start") (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 16)))))"#,
    );
    std::fs::create_dir_all(desk.path("scripts")).unwrap();
    std::fs::write(desk.path("scripts/a.wasm"), script.unwrap()).unwrap();
    // A cache of its own: others use the shared one.
    let output = |arguments: &[&str]| {
        let output = desk.hotcell(arguments).env("XDG_CACHE_HOME", desk.path("cache")).output().unwrap();
        (output.status.code(), desk.describe(&output))
    };
    assert_eq!(output(&["run", ".", "--quiet"]).0, Some(0));
    let (_, would) = output(&["clean", "--dry-run"]);
    assert!(would.contains("would remove 1 compiled component ("), "{would}");
    let (_, recent) = output(&["clean", "--unused-for", "7d"]);
    assert!(recent.contains("removed 0 compiled components"), "{recent}");
    let (_, removed) = output(&["clean"]);
    assert!(removed.contains("removed 1 compiled component (") && removed.contains("0 B left"), "{removed}");
    assert_eq!(output(&["run", ".", "--quiet"]).0, Some(0));
}

#[test]
fn the_command_introduces_itself() {
    let desk = Desk::new();
    let version = desk.output(&["--version"]);
    assert_eq!(String::from_utf8_lossy(&version.stdout), format!("hotcell {}\n", env!("CARGO_PKG_VERSION")));
    let help = String::from_utf8(desk.output(&["run", "--help"]).stdout).unwrap();
    for code in ["0    success", "1    the run failed", "2    invalid usage", "3    the run waits", "130  interrupted"]
    {
        assert!(help.contains(code), "{help}");
    }
    for (arguments, part) in [(&[][..], "Commands:"), (&["runs"], "resume"), (&["plugin", "store"], "adopt")] {
        let alone = desk.output(arguments);
        assert!(alone.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&alone.stderr));
        assert!(String::from_utf8_lossy(&alone.stdout).contains(part), "{arguments:?}");
    }
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = desk.output(&["completions", shell]);
        assert!(script.status.success());
        assert!(String::from_utf8_lossy(&script.stdout).contains("runs"), "{shell}");
    }
}

/// What is printed after an agent was made can be typed as it stands, and works.
#[test]
fn a_new_agent_of_each_language_runs() {
    for language in ["loki", "sherma", "agent-spec", "agentloom", "leafmesh"] {
        let result = "Hello, Ada!";
        let desk = Desk::new();
        let made = desk.output(&["new", "hello", "--lang", language]);
        let told = String::from_utf8(made.stdout).unwrap();
        assert_eq!(made.status.code(), Some(0), "{language}");
        let steps: Vec<&str> = told.split("now:\n").nth(1).unwrap().lines().map(str::trim).collect();
        assert_eq!(steps[0], "cd hello");
        let place = if language == "agentloom" { "hello/workflow.yaml" } else { "hello" };
        let checked = desk.output(&["check", place]);
        let told = String::from_utf8_lossy(&checked.stdout).into_owned();
        assert!(told.starts_with(&format!("ok: {place} (graph `hello`")), "{language}: {told}");
        let run = format!("cd hello && {}", steps[1].replace("hotcell", env!("CARGO_BIN_EXE_hotcell")));
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", &run]).current_dir(desk.path("")).env_clear().env("HOME", desk.path(""));
        shell.env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR")).env("PATH", "/bin:/usr/bin");
        let output = shell.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(said.contains(result), "{language}: {said}{}", String::from_utf8_lossy(&output.stderr));
        let again = desk.output(&["new", "hello", "--lang", language]);
        assert_eq!(again.status.code(), Some(2), "it is not overwritten");
    }
    assert_eq!(Desk::new().output(&["new", "../x"]).status.code(), Some(2));
}
