//! `hotcell plugin store`: the data of plugins when projects move, and what was written before stores had projects.

use rusqlite::Connection;
use serde_json::json;

use crate::desk::{Desk, text};

const GRAPH: &str = r#"name: keeper
start: keep
nodes:
  keep:
    type: acme/say
    inputs: { do: remember, text: "{{initial_prompt}}" }
    state_updates: { before: "{{output}}" }
    next: done
  done: { type: end, output: "{{before}}" }
"#;

/// A project with a plugin that may keep data.
fn project(desk: &Desk, folder: &str) {
    desk.write(&format!("{folder}/graph.yaml"), GRAPH);
    let description = json!({
        "contract": "0.2.0", "name": "acme",
        "tools": [{ "name": "say", "description": "Does what it is told", "parameters": { "type": "object" } }],
        "hooks": [{ "point": "before-skill-load" }],
        "nodes": [{ "type": "work" }],
        "connector": { "modes": ["sync"] },
        "capabilities": { "kv": true },
    });
    std::fs::create_dir_all(desk.path(folder).join("plugins")).unwrap();
    let file = desk.path(folder).join("plugins/acme.wasm");
    std::fs::write(file, hotcell_plugin_tests::described(&description)).unwrap();
    let granted = desk.output(&["plugin", "grant", "acme", "--in", folder, "--yes"]);
    assert_eq!(granted.status.code(), Some(0), "{}", text(&granted));
}

/// Lets the plugin of a project remember a text; gives what it remembered before, and what was told.
fn remember(desk: &Desk, folder: &str, what: &str) -> (String, String) {
    let output = desk.output(&["run", folder, what]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
    (said(&output.stdout), said(&output.stderr))
}

#[test]
fn a_store_belongs_to_a_project_and_moves_with_it_when_that_is_said() {
    let desk = Desk::new();
    project(&desk, "one");
    project(&desk, "two");
    assert_eq!(remember(&desk, "one", "a").0, "null");
    assert_eq!(remember(&desk, "two", "b").0, "null");
    assert_eq!(remember(&desk, "one", "c").0, "a");
    std::fs::rename(desk.path("one"), desk.path("three")).unwrap();
    desk.output(&["trust", "three", "--yes"]);
    let told = desk.told(&["check", "three"]);
    assert!(told.contains("begins with an empty store") && told.contains("[FOLDER]/one` (1 key)"), "{told}");
    assert!(told.contains("`hotcell plugin store move [FOLDER]/one [FOLDER]/three`"), "{told}");
    let refused = desk.output(&["plugin", "store", "move", "one", "three"]);
    assert_eq!(refused.status.code(), Some(2), "nobody confirms it: {}", text(&refused));
    insta::assert_snapshot!(desk.told(&["plugin", "store", "move", "one", "three", "--yes"]));
    assert_eq!(remember(&desk, "three", "d").0, "c");
    insta::assert_snapshot!(desk.told(&["plugin", "store", "list"]));
    insta::assert_snapshot!(desk.told(&["plugin", "store", "move", "two", "three", "--yes"]));
    insta::assert_snapshot!(desk.told(&["plugin", "store", "move", "nowhere", "three", "--yes"]));
}

#[test]
fn a_removed_plugin_leaves_its_data_unless_that_is_purged() {
    let desk = Desk::new();
    project(&desk, "one");
    remember(&desk, "one", "a");
    insta::assert_snapshot!(desk.told(&["plugin", "remove", "acme", "--in", "one"]));
    project(&desk, "one");
    assert_eq!(remember(&desk, "one", "b").0, "a", "it is found again");
    let refused = desk.output(&["plugin", "remove", "acme", "--in", "one", "--purge"]);
    assert_eq!(refused.status.code(), Some(2), "nobody confirms it: {}", text(&refused));
    assert_eq!(remember(&desk, "one", "c").0, "b", "and nothing was removed");
    insta::assert_snapshot!(desk.told(&["plugin", "remove", "acme", "--in", "one", "--purge", "--yes"]));
    project(&desk, "one");
    assert_eq!(remember(&desk, "one", "d").0, "null");
    desk.output(&["plugin", "remove", "acme", "--in", "one"]);
    insta::assert_snapshot!(desk.told(&["plugin", "remove", "acme", "--in", "one", "--purge", "--yes"]));
    let nothing = desk.output(&["plugin", "remove", "acme", "--in", "one", "--purge", "--yes"]);
    assert_eq!(nothing.status.code(), Some(2), "{}", text(&nothing));
}

#[test]
fn data_written_under_a_name_waits_until_it_is_said_whose_it_is() {
    let desk = Desk::new();
    project(&desk, "one");
    let folder = desk.path(".local/state/hotcell");
    std::fs::create_dir_all(&folder).unwrap();
    Connection::open(folder.join("stores.db"))
        .unwrap()
        .execute_batch(
            "CREATE TABLE entries (
                 owner TEXT NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL, PRIMARY KEY (owner, key)
             ) WITHOUT ROWID;
             INSERT INTO entries VALUES ('acme', 'k', CAST('of long ago' AS BLOB));",
        )
        .unwrap();
    let told = desk.told(&["check", "one"]);
    assert!(told.contains("`hotcell plugin store adopt acme --in [FOLDER]/one`"), "{told}");
    assert_eq!(remember(&desk, "one", "new").0, "null");
    let adopt =
        |more: &[&str]| desk.told(&[&["plugin", "store", "adopt", "acme", "--in", "one", "--yes"], more].concat());
    insta::assert_snapshot!(adopt(&[]));
    // A component that nobody granted anything gets nothing.
    desk.output(&["plugin", "revoke", "acme", "--in", "one"]);
    insta::assert_snapshot!(adopt(&["--replace"]));
    desk.output(&["plugin", "grant", "acme", "--in", "one", "--yes"]);
    insta::assert_snapshot!(desk.told(&["plugin", "store", "list", "--json"]));
    insta::assert_snapshot!(adopt(&["--replace"]));
    assert_eq!(remember(&desk, "one", "newer").0, "of long ago");
}
