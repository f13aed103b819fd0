//! The table of capabilities in `docs/reference/plugin-toml.md`: every capability, from every language, granted and not. A cell of
//! the table is a case of `parity/cases`, played with the plugin of its language, all of which have the same tools.

use std::path::Path;

use crate::desk::{Desk, text};
use crate::templates::{hotcell, made_as};

/// Where the code of a language is, in the project and here.
const SOURCES: [(&str, &[(&str, &str)]); 5] = [
    ("rust", &[("src/lib.rs", include_str!("parity/plugin.rs"))]),
    ("python", &[("src/plugin.py", include_str!("parity/plugin.py"))]),
    ("js", &[("src/plugin.js", include_str!("parity/plugin.js"))]),
    ("ts", &[("src/plugin.ts", include_str!("parity/plugin.js"))]),
    (
        "c",
        &[
            ("src/plugin.c", include_str!("parity/plugin.c")),
            ("src/description.json", include_str!("parity/description.json")),
        ],
    ),
];

fn code(language: &str) -> &'static [(&'static str, &'static str)] {
    SOURCES.iter().find(|(name, _)| *name == language).expect("a language").1
}

/// A plugin with the code of the table, which asks for all of it or for nothing.
fn plugin(language: &str, capabilities: &str) -> (Desk, String) {
    let name = if capabilities.is_empty() { "acme:asks" } else { "acme:table" };
    let (desk, project) = made_as(name, language, "tool");
    for (file, text) in code(language) {
        desk.write(&format!("{project}/{file}"), text);
    }
    if language == "rust" && capabilities.is_empty() {
        let (before, asked) = include_str!("parity/plugin.rs").split_once("    capabilities: {").expect("capabilities");
        let (_, after) = asked.split_once("\n    },\n").expect("an end");
        desk.write(&format!("{project}/src/lib.rs"), &format!("{before}{after}"));
    }
    let manifest = desk.path(&format!("{project}/plugin.toml"));
    if let Ok(text) = std::fs::read_to_string(&manifest) {
        let (before, _) = text.split_once("[capabilities]").expect("capabilities");
        std::fs::write(&manifest, format!("{before}[capabilities]\n{capabilities}")).expect("a manifest");
    }
    (desk, project)
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in from.read_dir().expect("a folder") {
        let entry = entry.expect("an entry");
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).expect("a file");
        }
    }
}

/// Whether the tools of a language are here; says what is left out where they are not.
fn is_left_out(told: &str) -> bool {
    let missing = told.lines().find(|line| line.contains(" is missing; "));
    if let Some(missing) = missing {
        crate::templates::left_out(missing);
    }
    missing.is_some()
}

fn table(language: &str) {
    let (desk, project) = plugin(language, include_str!("parity/capabilities.toml"));
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/parity/cases");
    std::fs::remove_dir_all(desk.path(&project).join("cases")).expect("a folder");
    copy(&cases, &desk.path(&project).join("cases"));
    let count = cases.read_dir().expect("a folder").count() - 1;
    let all = format!("{count} passed, 0 failed");
    // Whoever tries a plugin before it is built gets the same.
    if ["python", "js", "ts"].contains(&language) {
        let told = text(&hotcell(&desk, &["plugin", "test", &project, "--fast", "--case", "settings"]));
        if is_left_out(&told) {
            return;
        }
        let told = text(&hotcell(&desk, &["plugin", "test", &project, "--fast"]));
        let clock = "FAIL  clock";
        assert!(told.contains(clock) && told.contains(&format!("{} passed, 1 failed", count - 1)), "{told}");
    }
    let told = text(&hotcell(&desk, &["plugin", "test", &project]));
    assert!(is_left_out(&told) || told.contains(&all), "{told}");
}

/// What is used and not asked for is an error of the build, with the line that asks for it.
fn asks(language: &str) {
    let (desk, project) = plugin(language, "");
    let told = text(&hotcell(&desk, &["plugin", "build", &project]));
    let place =
        if language == "rust" { "under `capabilities` in `plugin!`" } else { "under `[capabilities]` in plugin.toml" };
    assert!(is_left_out(&told) || told.contains(place), "{told}");
}

macro_rules! languages {
    ($($language:ident)*) => {
        $(mod $language {
            #[test]
            fn every_capability_works_and_is_denied_alike() {
                super::table(stringify!($language));
            }
        })*
    };
}

languages!(rust python js ts c);

/// The global `fetch` of JavaScript is there without an import. Its use is found all the same, and nothing else of that name is taken for it.
#[test]
fn fetch_is_a_use_of_http() {
    let (desk, project) = made_as("acme:fetches", "js", "tool");
    let source = format!("{project}/src/plugin.js");
    let code = std::fs::read_to_string(desk.path(&source)).expect("a source");
    let told = |command: &[&str], statement: &str| {
        desk.write(&source, &code.replace("      log.debug(", &format!("      {statement}\n      log.debug(")));
        text(&hotcell(&desk, &[&["plugin"][..], command, &[project.as_str()]].concat()))
    };
    let others = [
        "// fetch(text)",
        "log.debug(\"fetch(text)\");",
        "const fetch = (text) => text; fetch(text);",
        "const web = { fetch: (text) => text }; web.fetch(text);",
        "log.debug(typeof fetch);",
        "globalThis.fetch = (text) => text; fetch(text);",
    ];
    for other in others {
        let told = told(&["test", "--fast"], other);
        if is_left_out(&told) {
            return;
        }
        assert!(told.contains(" passed, 0 failed"), "{other}: {told}");
    }
    for command in [&["test", "--fast"][..], &["build"]] {
        let told = told(command, "const get = fetch; get(\"https://api.example.org\");");
        let line = "ask for it with `http = [\"https://api.example.org\"]` under `[capabilities]` in plugin.toml";
        assert!(is_left_out(&told) || told.contains(line), "{told}");
    }
}

#[test]
fn what_is_not_asked_for_is_an_error_of_every_build() {
    for language in ["rust", "python", "js", "c"] {
        asks(language);
    }
}
