//! Every template of `hotcell plugin new`, and the examples of the authors' documentation (those in Rust are tests of the SDK),
//! built and played as their author would. Where a language's tool is missing, its tests
//! say so on standard error, past the capture of the test runner; with `HOTCELL_ALL_LANGUAGES` set, they fail.

use std::env;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Output;

use crate::desk::{Desk, text};

/// What tools of languages need to know of the machine.
const KEPT: [&str; 6] =
    ["PATH", "RUSTUP_TOOLCHAIN", "PYENV_ROOT", "WASI_SDK_PATH", "SSL_CERT_FILE", "CARGO_NET_OFFLINE"];

pub(crate) fn hotcell(desk: &Desk, arguments: &[&str]) -> Output {
    let mut command = desk.hotcell(arguments);
    for name in KEPT {
        if let Some(value) = env::var_os(name) {
            command.env(name, value);
        }
    }
    let home = PathBuf::from(env::var_os("HOME").unwrap_or_default());
    for (name, folder) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
        command.env(name, env::var_os(name).map_or_else(|| home.join(folder), PathBuf::from));
    }
    // `hotcell plugin setup` installed tools there for all tests.
    if let Some(tools) = env::var_os("HOTCELL_TEST_TOOLS") {
        command.env("XDG_DATA_HOME", tools);
    }
    // What plugins in Rust share is compiled once.
    command.env("CARGO_TARGET_DIR", concat!(env!("CARGO_TARGET_TMPDIR"), "/templates"));
    command.output().unwrap()
}

/// A new plugin, in a folder of the name that comes back.
pub(crate) fn made(language: &str, kind: &str) -> (Desk, String) {
    // Projects that share a folder of cargo's need names of their own.
    made_as(&format!("acme:{kind}"), language, kind)
}

/// The same with a name that no other test of plugins in Rust uses.
pub(crate) fn made_as(name: &str, language: &str, kind: &str) -> (Desk, String) {
    let desk = Desk::new();
    // Packages for JavaScript are installed once for many tests.
    #[cfg(unix)]
    if let Some(packages) = env::var_os("HOTCELL_NODE_MODULES") {
        std::os::unix::fs::symlink(packages, desk.path("node_modules")).unwrap();
    }
    let made = hotcell(&desk, &["plugin", "new", name, "--kind", kind, "--lang", language]);
    assert!(made.status.success(), "{}", text(&made));
    (desk, name.replace(':', "-"))
}

/// Says that a test did not test, and why.
pub(crate) fn left_out(reason: &str) {
    assert!(env::var_os("HOTCELL_ALL_LANGUAGES").is_none(), "{reason}");
    let test = std::thread::current().name().unwrap_or_default().to_owned();
    let _ = writeln!(std::io::stderr(), "left out: {test}: {reason}");
}

/// Builds a plugin; false where a tool is missing.
fn is_built(desk: &Desk, project: &str) -> bool {
    let built = hotcell(desk, &["plugin", "build", project]);
    let told = text(&built);
    if let Some(missing) = told.lines().find(|line| line.contains(" is missing; ")) {
        left_out(missing);
        return false;
    }
    assert!(built.status.success() && told.contains("hotcell:plugin/"), "{told}");
    true
}

/// Builds a plugin and plays its cases, all of which have to pass.
fn passes(desk: &Desk, project: &str) {
    if !is_built(desk, project) {
        return;
    }
    let played = hotcell(desk, &["plugin", "test", project]);
    let told = text(&played);
    assert!(played.status.success(), "{told}");
    let cases = desk.path(project).join("cases").read_dir().unwrap().count();
    assert!(cases > 0 && told.contains(&format!("{cases} passed")), "{cases}: {told}");
}

fn works(language: &str, kind: &str) {
    let (desk, project) = made(language, kind);
    passes(&desk, &project);
}

/// The example of a README: the files that its blocks are, and cases with the arguments and what comes of them.
fn example(language: &str, readme: &str, files: &[(&str, &str)], tool: &str, cases: &[(&str, &str)]) {
    let (desk, project) = made(language, "tool");
    for (block, file) in files {
        let start = format!("```{block}\n");
        let code = readme.split(&start).nth(1).and_then(|rest| rest.split("```").next()).unwrap();
        desk.write(&format!("{project}/{file}"), code);
    }
    std::fs::remove_dir_all(desk.path(&project).join("cases")).unwrap();
    for (number, (arguments, expect)) in cases.iter().enumerate() {
        let case = format!(r#"{{ "tool": "{tool}", "arguments": {arguments}, "expect": {expect} }}"#);
        desk.write(&format!("{project}/cases/{number}.json"), &case);
    }
    passes(&desk, &project);
}

#[test]
fn the_files_of_the_sdk_are_counted_and_not_listed() {
    let desk = Desk::new();
    let (code, told, _) = desk.said(&["plugin", "new", "words", "--lang", "c"]);
    assert_eq!(code, Some(0), "{told}");
    assert!(
        told.contains("words/src/plugin.c\n") && told.contains("words/sdk (") && told.contains(" files)\n"),
        "{told}"
    );
    assert!(!told.contains("words/sdk/"), "{told}");
}

const NEAR: &str = r#"{ "start": { "latitude": 0, "longitude": 0 }, "end": { "latitude": 3, "longitude": 4 } }"#;
const NOWHERE: &str = r#"{ "start": { "latitude": 91, "longitude": 0 }, "end": { "latitude": 3, "longitude": 4 } }"#;
const NO_PLACE: &str = r#"{ "error": { "kind": "invalid-input", "message": "a latitude lies between -90 and 90" } }"#;

#[test]
fn the_example_of_the_python_readme() {
    let readme = include_str!("../../../../sdk/python/README.md");
    let cases = [(NEAR, r#"{ "output": 556.0 }"#), (NOWHERE, NO_PLACE)];
    example("python", readme, &[("python", "src/plugin.py")], "distance", &cases);
}

#[test]
fn the_example_of_the_javascript_readme() {
    let readme = include_str!("../../../../sdk/javascript/README.md");
    let cases = [(NEAR, r#"{ "output": 556 }"#), (NOWHERE, NO_PLACE)];
    example("ts", readme, &[("ts", "src/plugin.ts")], "distance", &cases);
}

#[test]
fn the_example_of_the_c_readme() {
    let readme = include_str!("../../../../sdk/c/README.md");
    let no_text = r#"{ "error": { "kind": "invalid-input", "message": "`who` must be a text" } }"#;
    let cases = [(r#"{ "who": "Ada" }"#, r#"{ "output": "Hello, Ada!" }"#), (r#"{ "who": 1 }"#, no_text)];
    example("c", readme, &[("c", "src/plugin.c"), ("json", "src/description.json")], "greet", &cases);
}

macro_rules! templates {
    ($($language:ident)*) => {
        $(mod $language {
            use super::works;

            const LANGUAGE: &str = stringify!($language);

            #[test]
            fn tool() {
                works(LANGUAGE, "tool");
            }

            #[test]
            fn script() {
                works(LANGUAGE, "script");
            }

            #[test]
            fn connector() {
                works(LANGUAGE, "connector");
            }

            #[test]
            fn hooks() {
                works(LANGUAGE, "hooks");
            }

            #[test]
            fn node() {
                works(LANGUAGE, "node");
            }
        })*
    };
}

templates!(rust python js ts c);

/// A component of the template for tools, from a new folder.
fn component(language: &str) -> Option<Vec<u8>> {
    let (desk, project) = made_as("acme:twice", language, "tool");
    if !is_built(&desk, &project) {
        return None;
    }
    let mut files = desk.path(&project).join("build").read_dir().unwrap().map(|entry| entry.unwrap().path());
    let component = files.find(|path| path.extension().is_some_and(|extension| extension == "wasm"));
    Some(std::fs::read(component.unwrap()).unwrap())
}

/// The same sources give the same component, and so the same digest and the same fuel, whichever folder they are in and whenever
/// they are built. Python is not among them: `componentize-py` starts CPython with random numbers and times that nobody can set.
#[test]
fn what_is_built_twice_is_the_same() {
    // TypeScript takes the way of JavaScript.
    for language in ["rust", "js", "c"] {
        let (Some(first), Some(second)) = (component(language), component(language)) else { continue };
        assert!(first == second, "{language}: the components differ");
    }
}

/// An assertion of C that fails is told with its place in the author's code, also where the code is optimized.
#[test]
fn an_assertion_in_c_says_where_it_is() {
    let (desk, project) = made_as("acme:asserts", "c", "tool");
    let source = desk.path(&format!("{project}/src/plugin.c"));
    let code = std::fs::read_to_string(&source).unwrap();
    let (before, after) = code.split_once("    size_t words = 0").unwrap();
    let line = before.lines().count() + 2;
    let code = format!("#include <assert.h>\n{before}    assert(text.len != 4);\n    size_t words = 0{after}");
    std::fs::write(source, code).unwrap();
    if !is_built(&desk, &project) {
        return;
    }
    let told = text(&hotcell(&desk, &["plugin", "call", &project, "count_words", r#"{"text": "boom"}"#]));
    assert!(told.contains("text.len != 4") && told.contains("src/plugin.c"), "{told}");
    assert!(told.contains(&format!(": {line})")), "{line}: {told}");
    assert!(!told.contains(&desk.path("").display().to_string()), "{told}");
}

/// So is a trap without an assertion. What the compiler noted for it lies beside the component and not in it.
#[test]
fn a_trap_in_c_says_where_it_is() {
    let (desk, project) = made_as("acme:traps", "c", "tool");
    let source = desk.path(&format!("{project}/src/plugin.c"));
    let code = std::fs::read_to_string(&source).unwrap();
    let (before, after) = code.split_once("    size_t words = 0").unwrap();
    let line = before.lines().count() + 2;
    let division = "    volatile size_t rest = text.len - 4;\n    hc_log(DEBUG, \"%zu\", 84 / rest);\n";
    std::fs::write(source, format!("{before}{division}    size_t words = 0{after}")).unwrap();
    desk.write(
        &format!("{project}/cases/boom.json"),
        r#"{ "tool": "count_words", "arguments": { "text": "boom" }, "expect": { "output": {} } }"#,
    );
    if !is_built(&desk, &project) {
        return;
    }
    let place = format!("(src/plugin.c:{line}:");
    let called = text(&hotcell(&desk, &["plugin", "call", &project, "count_words", r#"{"text": "boom"}"#]));
    assert!(called.contains("integer divide by zero") && called.contains(&place), "{place}: {called}");
    let played = text(&hotcell(&desk, &["plugin", "test", &project, "--case", "boom"]));
    assert!(played.contains("    in ") && played.contains(&place), "{place}: {played}");
    let component = std::fs::read(desk.path(&format!("{project}/build/acme-traps.wasm"))).unwrap();
    assert!(!component.windows(7).any(|window| window == b".debug_"));
}
