//! `--server`: what a server does looks and ends as what is done here.

use hotcell_journal::RunStatus;
use serde_json::Value;

use crate::answers::APPROVAL;
use crate::desk::Desk;
use crate::serve::Serving;

/// Writes something and takes two nodes for it.
const GREETS: &str = r#"name: greets
version: "1.0"
start: greet
nodes:
  greet: { type: script, script: scripts/greet.js, next: done }
  done: { type: end, output: "{{greeting}}, {{initial_prompt}}" }
"#;

/// Fails until its file is there.
const FAILS: &str = r#"name: fails
version: "1.0"
start: work
on_failure: stop
nodes:
  work: { type: script, script: scripts/work.js, next: done }
  done: { type: end, output: "worked" }
"#;

/// A desk with agents, and a server of the journal `served.db` that has them.
fn served(agents: &[(&str, &str)]) -> (Desk, Serving, String) {
    let desk = Desk::new();
    for (name, text) in agents {
        desk.write(name, text);
    }
    let journal = desk.path("served.db");
    let server = Serving::start(&desk, &["--journal", &journal.to_string_lossy()]);
    let url = format!("http://{}", server.address);
    (desk, server, url)
}

/// A command's exit code, standard output and standard error.
fn came(desk: &Desk, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = desk.output(arguments);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// The only run that a server has, by what it says.
fn only_run(desk: &Desk, url: &str) -> String {
    let (_, listed, told) = came(desk, &["runs", "list", "--json", "--server", url]);
    let mut runs = listed.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let run = runs.next().unwrap_or_else(|| panic!("{told}"))["run"].as_str().unwrap().to_owned();
    assert!(runs.next().is_none(), "{listed}");
    run
}

/// What a command says, with the server taken out of the commands that it names.
fn tidy(told: &str, url: &str) -> String {
    told.replace(&format!(" --server {url}"), "")
}

/// What a command says without the lines of nodes that begin, `▸ node (type)`. A server tells them to whoever is there at that moment,
/// and a run that goes on with an answer may be faster than the one who answered.
fn without_beginnings(told: &str) -> String {
    let begins = |line: &&str| line.starts_with("▸ ") && line.ends_with(')') && !line.starts_with("▸ graph: ");
    told.lines().filter(|line| !begins(line)).map(|line| format!("{line}\n")).collect()
}

#[test]
fn a_run_looks_and_ends_as_one_that_is_done_here() {
    let greet = "console.log(JSON.stringify({ greeting: 'Hello' }));\n";
    let (desk, _server, url) =
        served(&[("greets/graph.yaml", GREETS), ("greets/scripts/greet.js", greet), ("asks/graph.yaml", APPROVAL)]);
    for arguments in [
        &["run", "greets", "Ada"][..],
        &["run", "greets", "Ada", "--quiet"],
        &["run", "asks", "--answer", "Ada", "--answer", "yes"],
        &["run", "asks", "--answer", "Ada"],
        &["run", "asks", "--no-input"],
        &["run", "asks", "--answer", "Ada", "--answer", "no", "--answer", "more"],
    ] {
        let (here, there) = (desk.told(arguments), desk.told(&[arguments, &["--server", &url]].concat()));
        let (here, there) = match arguments.contains(&"--answer") {
            true => (without_beginnings(&here), without_beginnings(&there)),
            false => (here, there),
        };
        assert_eq!(tidy(&there, &url), here, "{arguments:?}");
    }
    assert_eq!(desk.runs().len(), 6, "the journal of this machine has no others");
}

#[test]
fn programs_read_the_same_events() {
    let greet = "console.log(JSON.stringify({ greeting: 'Hello' }));\n";
    let (desk, _server, url) =
        served(&[("greets/graph.yaml", GREETS), ("greets/scripts/greet.js", greet), ("asks/graph.yaml", APPROVAL)]);
    for arguments in [&["run", "greets", "Ada", "--json", "--quiet"][..], &["run", "asks", "--json", "--answer", "Ada"]]
    {
        let events = |arguments: &[&str]| {
            let (code, stdout, _) = came(&desk, arguments);
            let lines: Vec<Value> = stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            let mut kinds: Vec<String> = lines.iter().map(|line| line["event"].as_str().unwrap().to_owned()).collect();
            // As in `without_beginnings`.
            if arguments.contains(&"--answer") {
                kinds.retain(|kind| kind != "node_started");
            }
            let last = lines.last().unwrap().clone();
            (code, kinds, last["status"].clone(), last["output"].clone(), last["usage"]["calls"].clone())
        };
        let far = events(&[arguments, &["--server", &url]].concat());
        assert_eq!(far, events(arguments), "{arguments:?}");
    }
    let (code, stdout, _) = came(&desk, &["run", "nobody", "--json", "--server", &url]);
    let last: Value = serde_json::from_str(stdout.lines().last().unwrap()).unwrap();
    assert_eq!((code, last["status"].clone()), (Some(2), "refused".into()));
}

#[test]
fn a_run_that_waits_is_looked_at_answered_and_followed() {
    let (desk, server, url) = served(&[("asks/graph.yaml", APPROVAL)]);
    let far = |arguments: &[&str]| came(&desk, &[arguments, &["--server", &url]].concat());
    let (code, _, told) = far(&["run", "asks", "--answer", "Ada"]);
    assert_eq!(code, Some(3), "{told}");
    let run = only_run(&desk, &url);
    assert!(told.contains(&format!("hotcell runs answer {run} yes --resume --server {url}")), "{told}");
    let (code, shown, _) = far(&["runs", "show", &run]);
    assert_eq!(code, Some(0));
    assert!(shown.contains("waiting") && shown.contains("Ada wants to send the report."), "{shown}");
    assert!(shown.contains("answered: Ada"), "{shown}");
    let (_, listed, _) = far(&["runs", "list", "--status", "waiting"]);
    assert!(listed.contains(&run) && listed.contains("asks"), "{listed}");
    let (_, listed, told) = far(&["runs", "list", "--status", "completed", "--status", "failed"]);
    assert!(listed.is_empty() && told.contains("no matching runs"), "{listed}{told}");
    let (code, _, told) = far(&["runs", "watch", &run]);
    assert_eq!(code, Some(3));
    assert!(told.contains("name") && told.contains("Send it?"), "{told}");
    let (code, stdout, told) = far(&["runs", "answer", &run, "yes", "--resume"]);
    assert_eq!((code, stdout.as_str()), (Some(0), "sent for Ada\n"), "{told}");
    assert!(told.contains("answered the question of `approve`"), "{told}");
    // The first answer counts, and a run that has ended takes nothing.
    assert_eq!(far(&["runs", "answer", &run, "no"]).0, Some(2));
    assert_eq!(far(&["runs", "cancel", &run]).0, Some(2));
    let (code, stdout, _) = far(&["runs", "watch", &run]);
    assert_eq!((code, stdout.as_str()), (Some(0), "sent for Ada\n"));
    // A thread goes on with the prompt as the answer.
    assert_eq!(far(&["run", "asks", "--thread", "t", "--no-input"]).0, Some(3));
    assert_eq!(server.end(), Some(0));
    assert_eq!(desk.runs().len(), 0);
}

#[test]
fn a_run_is_cancelled_resumed_and_retried_from_afar() {
    let (desk, _server, url) = served(&[("asks/graph.yaml", APPROVAL), ("fails/graph.yaml", FAILS)]);
    let far = |arguments: &[&str]| came(&desk, &[arguments, &["--server", &url]].concat());
    assert_eq!(far(&["run", "asks", "--no-input"]).0, Some(3));
    let run = only_run(&desk, &url);
    // Whoever resumes it is asked.
    let (code, stdout, told) = far(&["runs", "resume", &run, "--answer", "Ada", "--answer", "yes"]);
    assert_eq!((code, stdout.as_str()), (Some(0), "sent for Ada\n"), "{told}");
    let (code, _, told) = far(&["runs", "retry", &run]);
    assert_eq!(code, Some(2), "{told}");
    assert_eq!(far(&["run", "asks", "--no-input"]).0, Some(3));
    let (_, listed, _) = far(&["runs", "list", "--status", "waiting", "--json"]);
    let other = serde_json::from_str::<Value>(listed.trim()).unwrap()["run"].as_str().unwrap().to_owned();
    let (code, stdout, _) = far(&["runs", "cancel", &other]);
    assert_eq!((code, stdout), (Some(0), format!("cancelled run {other}\n")));
    assert_eq!(far(&["runs", "resume", &other]).0, Some(2));
}

#[test]
fn a_key_is_needed_and_never_told() {
    let (desk, _server, url) = served(&[("asks/graph.yaml", APPROVAL)]);
    let journal = desk.path("served.db");
    let made = desk.output(&[
        "serve",
        "key",
        "add",
        "far",
        "--role",
        "run",
        "--role",
        "answer",
        "--journal",
        &journal.to_string_lossy(),
    ]);
    let key = String::from_utf8(made.stdout).unwrap().trim().to_owned();
    let list = ["runs", "list", "--server", &url];
    let (code, _, told) = came(&desk, &list);
    assert_eq!(code, Some(2));
    assert!(told.contains("needs an API key") && told.contains("HOTCELL_SERVER_KEY"), "{told}");
    let output = desk.hotcell(&list).env("HOTCELL_SERVER_KEY", &key).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    desk.write("key", &format!("{key}\n"));
    let file = [&list[..], &["--server-key-file", "key"]].concat();
    assert_eq!(came(&desk, &file).0, Some(0));
    desk.write("key", "hck_wrong");
    let (code, _, told) = came(&desk, &file);
    assert_eq!(code, Some(2));
    assert!(told.contains("is not valid here") && !told.contains("hck_wrong"), "{told}");
    for wrong in ["", "a b", "nothing"] {
        if wrong != "nothing" {
            desk.write("key", wrong);
        }
        let name = if wrong == "nothing" { "nothing" } else { "key" };
        assert_eq!(came(&desk, &[&list[..], &["--server-key-file", name]].concat()).0, Some(2), "{wrong}");
    }
    // Not on the command line, where every process of the machine sees it.
    let address = url.replace("http://", &format!("http://{key}@"));
    let (code, _, told) = came(&desk, &["runs", "list", "--server", &address]);
    assert_eq!(code, Some(2));
    assert!(told.contains("HOTCELL_SERVER_KEY"), "{told}");
}

#[test]
fn what_a_server_cannot_do_is_refused_by_name() {
    let (desk, server, url) = served(&[("asks/graph.yaml", APPROVAL)]);
    for (option, arguments) in [
        ("--model", &["run", "asks", "--model", "a:b"][..]),
        ("--plugins", &["run", "asks", "--plugins", "x"]),
        ("--replay", &["run", "asks", "--replay", "x"]),
        ("--trust", &["run", "asks", "--trust"]),
        ("--components", &["run", "asks", "--components", "x.json"]),
        ("--newer-than", &["runs", "list", "--newer-than", "1d"]),
        ("--revision", &["runs", "resume", "x", "--revision", "current"]),
        ("prune", &["runs", "prune", "--status", "completed"]),
        ("pause", &["runs", "pause", "x"]),
        ("reexecute", &["runs", "reexecute", "x"]),
        ("listen", &["runs", "listen"]),
    ] {
        let (code, _, told) = came(&desk, &[arguments, &["--server", &url]].concat());
        assert_eq!(code, Some(2), "{told}");
        assert!(told.contains(option) && told.contains("cannot be used with `--server`"), "{told}");
    }
    for run in ["nothing", "../agents", "a/b", ""] {
        assert_eq!(came(&desk, &["runs", "show", run, "--server", &url]).0, Some(2), "{run}");
    }
    // Here, whoever has the journal may answer everything.
    let (code, _, told) = came(&desk, &["runs", "answer", "x", "yes", "--operator", "ann"]);
    assert_eq!(code, Some(2), "{told}");
    assert!(told.contains("`--operator` needs `--server`"), "{told}");
    assert_eq!(server.end(), Some(0));
    let (code, _, told) = came(&desk, &["runs", "list", "--server", &url]);
    assert_eq!(code, Some(1));
    assert!(told.contains(&format!("the server at {url} cannot be used")), "{told}");
    for wrong in ["localhost", "ftp://localhost", "http://localhost/?a=b"] {
        assert_eq!(came(&desk, &["runs", "list", "--server", wrong]).0, Some(2), "{wrong}");
    }
    assert!(desk.runs().iter().all(|run| run.status != RunStatus::Running));
}
