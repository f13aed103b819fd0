//! Installing tools that all projects share, with programs that only do what a test needs of them.

use std::fs;
use std::sync::mpsc;

use hotcell_authoring::{Language, SetupEvent, Shared, missing_tool, setup};

use super::missing_tools::{programs, project};

/// What npm installs, as far as anybody looks.
const INSTALL: &str =
    "/bin/mkdir -p node_modules/@bytecodealliance/componentize-js node_modules/esbuild node_modules/typescript";

#[test]
fn of_two_that_install_the_same_tools_one_waits_and_nothing_is_done_twice() {
    let folder = tempfile::tempdir().expect("a folder");
    let (go, runs) = (folder.path().join("go"), folder.path().join("runs"));
    let npm = format!(
        "echo run >> '{}'\nwhile [ ! -e '{}' ]; do /bin/sleep 0.01; done\n{INSTALL}",
        runs.display(),
        go.display()
    );
    let (_programs, tools) = programs(&[("npm", &npm)]);
    let tools = tools.with_shared(folder.path().join("shared/tools"));
    let (begun, begins) = mpsc::channel();
    let installed = std::thread::scope(|scope| {
        let first =
            scope.spawn(|| setup(Shared::JavaScript, &tools, &mut |event| begun.send(event).expect("it waits")));
        assert!(matches!(begins.recv(), Ok(SetupEvent::Running { .. })));
        let mut events = Vec::new();
        let second = setup(Shared::JavaScript, &tools, &mut |event| {
            events.push(event);
            fs::write(&go, "").expect("a file");
        });
        assert_eq!(events, [SetupEvent::Waiting]);
        [first.join().expect("no panic"), second]
    });
    let [first, second] = installed.map(|folder| folder.expect("installed").expect("a folder"));
    assert_eq!(first, second);
    assert!(first.join("node_modules/esbuild").is_dir());
    assert_eq!(fs::read_to_string(runs).expect("it ran"), "run\n");
}

#[test]
fn tools_count_once_all_of_them_are_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let project = project(Language::JavaScript);
    let broken = format!("{INSTALL}\nexit 1");
    for (npm, is_installed) in [(broken.as_str(), false), (INSTALL, true)] {
        let (_programs, tools) = programs(&[("npm", npm), ("node", "echo v22")]);
        let tools = tools.with_shared(folder.path());
        assert_eq!(setup(Shared::JavaScript, &tools, &mut |_| ()).is_ok(), is_installed);
        let missing = missing_tool(project.path(), Language::JavaScript, &tools);
        assert_eq!(missing.is_none(), is_installed, "{missing:?}");
    }
}
