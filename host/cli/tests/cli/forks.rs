//! `hotcell runs fork`, `runs diff` and `runs show --entries`.

use crate::answers::APPROVAL;
use crate::desk::Desk;

/// A run that was answered twice, and its name.
fn sent() -> (Desk, String) {
    let desk = Desk::with(APPROVAL, &[]);
    let output = desk.output(&["run", ".", "--answer", "Ada", "--answer", "yes"]);
    assert_eq!(String::from_utf8(output.stdout).unwrap().trim(), "sent for Ada");
    let run = desk.only_run().to_string();
    (desk, run)
}

/// The number of the first entry that is listed with these words.
fn entry(desk: &Desk, run: &str, words: &[&str]) -> String {
    let listed = String::from_utf8(desk.output(&["runs", "show", run, "--entries"]).stdout).unwrap();
    let line = listed.lines().find(|line| words.iter().all(|word| line.contains(word)));
    let line = line.unwrap_or_else(|| panic!("{words:?} is not in\n{listed}"));
    line.split_whitespace().next().unwrap().to_owned()
}

fn stdout(desk: &Desk, arguments: &[&str], code: i32) -> String {
    let output = desk.output(arguments);
    let (out, error) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!(output.status.code(), Some(code), "{arguments:?}\n{out}\n{error}");
    out.trim().to_owned()
}

#[test]
fn a_fork_goes_on_with_another_state_and_differs_from_there_on() {
    let (desk, run) = sent();
    let at = entry(&desk, &run, &["completed", "name"]);
    stdout(&desk, &["runs", "fork", &run, "--at", &at, "--set", "name=Bob", "--no-input", "--quiet"], 3);
    let fork = desk.runs()[0].id.to_string();
    assert_eq!(stdout(&desk, &["runs", "answer", &fork, "yes", "--resume"], 0).lines().last(), Some("sent for Bob"));
    let diff = stdout(&desk, &["runs", "diff", &run, &fork], 1);
    assert!(diff.contains("first difference: turn at 1 (`name`)") && diff.contains("Bob"), "{diff}");
    let json: serde_json::Value =
        serde_json::from_str(&stdout(&desk, &["runs", "diff", &run, &fork, "--json"], 1)).unwrap();
    assert_eq!((&json["first"]["place"], &json["b"]["run_id"]), (&"1".into(), &fork.as_str().into()));
    assert!(stdout(&desk, &["runs", "diff", &run, &run], 0).contains("the runs are the same at every place"));
    let forked: u64 = entry(&desk, &fork, &["forked"]).parse().unwrap();
    assert_eq!(forked, at.parse::<u64>().unwrap() + 1);
}

/// A graph that asks where to send something, with the person as a variable.
const TO: &str = r#"name: to
start: ask
variables:
  - { name: who, description: The person, default: Ada }
nodes:
  ask:
    type: approval
    question: "Send to {{who}}?"
    options: ["yes"]
    routes: { "yes": done }
    on_other: done
  done: { type: end, output: "sent to {{who}}" }
"#;

#[test]
fn a_fork_at_the_start_has_other_values_of_variables() {
    let desk = Desk::with(TO, &[]);
    stdout(&desk, &["run", ".", "--answer", "yes"], 0);
    let run = desk.only_run().to_string();
    stdout(&desk, &["runs", "fork", &run, "--at", "1", "--set", "who=Bob", "--no-input", "--quiet"], 3);
    let fork = desk.runs()[0].id.to_string();
    assert_eq!(stdout(&desk, &["runs", "answer", &fork, "yes", "--resume"], 0).lines().last(), Some("sent to Bob"));
}

#[test]
fn what_is_no_fork_is_refused_and_begins_nothing() {
    let (desk, run) = sent();
    let at = entry(&desk, &run, &["completed", "name"]);
    let last = entry(&desk, &run, &["ended"]);
    for (arguments, reason) in [
        (&["--at", "0"][..], "0"),
        (&["--at", "99"], "its entries are 1 to"),
        (&["--at", &last], "nothing comes after it"),
        (&["--at", &at, "--set", "nothing=1"], "no value `nothing`"),
        (&["--at", &at, "--input", "x"], "at entry 1 only"),
        (&["--at", &at, "--prompt", "nobody=x"], "`nobody`"),
        (&["--at", &at, "--allow-effects=everything"], "models, http, tools, stores, connectors"),
    ] {
        let output = desk.output(&[&["runs", "fork", &run], arguments].concat());
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(error.contains(reason), "{arguments:?}: {error}");
    }
    assert_eq!(desk.runs().len(), 1);
    let afar = desk.output(&["runs", "fork", &run, "--at", "1", "--server", "http://127.0.0.1:9"]);
    assert!(String::from_utf8(afar.stderr).unwrap().contains("cannot be used with `--server`"));
}
