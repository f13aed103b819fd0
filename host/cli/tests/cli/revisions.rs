//! Runs and the files that they were loaded from.

use rusqlite::Connection;

use crate::desk::Desk;

const GRAPH: &str = "name: ask\nversion: \"1.0\"\nstart: ask\nnodes:\n  \
    ask: { type: input, question: \"Now?\", next: work }\n  work: { type: script, script: scripts/work.js, next: done }\n  \
    done: { type: end, output: \"{{said}}\" }\n";

fn says(text: &str) -> String {
    format!("console.log(JSON.stringify({{ said: '{text}' }}))\n")
}

/// A desk with a run that waits, and the name of the run.
fn waiting() -> (Desk, String) {
    let desk = Desk::with(GRAPH, &[("work.js", &says("old"))]);
    assert_eq!(desk.output(&["run", ".", "--quiet"]).status.code(), Some(3));
    let run = desk.only_run().to_string();
    (desk, run)
}

/// Digests are not those of other machines.
fn plain(told: &str) -> String {
    let digest = regex::Regex::new("revision `?[0-9a-f]{12}`?").unwrap();
    digest.replace_all(told, "revision [DIGEST]").into_owned()
}

#[test]
fn a_run_goes_on_as_it_began_and_says_what_was_changed() {
    let (desk, run) = waiting();
    desk.write("scripts/work.js", &says("new"));
    insta::assert_snapshot!(plain(&desk.told(&["runs", "answer", &run, "yes", "--resume"])));

    let (desk, run) = waiting();
    desk.write("scripts/work.js", &says("new"));
    desk.output(&["runs", "answer", &run, "yes"]);
    insta::assert_snapshot!(plain(&desk.told(&["runs", "resume", &run, "--revision", "current"])));
}

#[test]
fn what_does_not_fit_is_refused_with_the_node_and_changes_nothing() {
    let (desk, run) = waiting();
    desk.write("graph.yaml", &GRAPH.replace("ask: {", "question: {").replace("start: ask", "start: question"));
    let told = desk.told(&["runs", "answer", &run, "yes", "--resume", "--revision", "current"]);
    insta::assert_snapshot!(plain(&told));
    let output = desk.output(&["runs", "resume", &run]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "old\n");
    let wrong = desk.told(&["runs", "resume", &run, "--revision", "newest"]);
    assert!(wrong.contains("a revision is `current`, or the digest of one"), "{wrong}");
}

#[test]
fn a_revision_that_is_gone_or_damaged_is_refused_by_name() {
    let script = format!("WHERE size = {}", says("old").len());
    for (change, named) in [
        ("DELETE FROM artefacts", "is not kept in the journal"),
        ("DELETE FROM revisions; DELETE FROM artefacts", "is not kept in the journal"),
        (&*format!("DELETE FROM artefacts {script}"), "is not kept in the journal"),
        (&*format!("UPDATE artefacts SET bytes = x'00' {script}"), "is damaged in the journal"),
    ] {
        let (desk, run) = waiting();
        Connection::open(desk.path("runs.db")).unwrap().execute_batch(change).unwrap();
        let told = desk.told(&["runs", "answer", &run, "yes", "--resume"]);
        assert!(told.contains(named) && told.contains("`--revision current`"), "{change}: {told}");
        assert!(told.starts_with("exit code: 2"), "{told}");
        // The files are still there.
        let output = desk.output(&["runs", "resume", &run, "--revision", "current"]);
        assert_eq!(String::from_utf8_lossy(&output.stdout), "old\n", "{change}");
    }
}
