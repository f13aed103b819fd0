//! What a build says where a tool is missing: always the command that installs it.

use std::fs;
use std::path::Path;

use hotcell_authoring::{BuildError, Kind, Language, NewPlugin, Tools, build_with, native, new};

pub(super) fn project(language: Language) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    new(&NewPlugin { directory: folder.path().to_owned(), name: "weather".to_owned(), kind: Kind::Tool, language })
        .expect("a project");
    folder
}

fn problem(directory: &Path, tools: &Tools) -> String {
    let error = build_with(directory, tools, &mut |_| ()).expect_err("a failure");
    assert!(matches!(error, BuildError::MissingTool { .. }), "{error}");
    assert!(!directory.join("build/weather.wasm").exists());
    error.to_string()
}

#[test]
fn without_any_program_every_language_says_what_to_install() {
    let cases = [
        (Language::Rust, "rustup"),
        (Language::Python, "`hotcell plugin setup python`"),
        (Language::JavaScript, "`hotcell plugin setup js`"),
        (Language::TypeScript, "`hotcell plugin setup js`"),
        (Language::C, "`hotcell plugin setup c`"),
    ];
    for (language, expected) in cases {
        let message = problem(project(language).path(), &Tools::in_path(""));
        assert!(message.contains(expected), "{language}: `{expected}` is not in `{message}`");
    }
}

/// Programs that only print something.
#[cfg(unix)]
pub(super) fn programs(scripts: &[(&str, &str)]) -> (tempfile::TempDir, Tools) {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().expect("a folder");
    for (name, script) in scripts {
        let path = folder.path().join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("a program");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a program that can be run");
    }
    let tools = Tools::in_path(folder.path());
    (folder, tools)
}

#[cfg(unix)]
#[test]
fn a_missing_part_of_a_tool_is_named() {
    let cases = [
        (Language::Rust, [("cargo", "exit 1"), ("rustc", "echo /no/such/folder")], "`rustup target add wasm32-wasip2`"),
        (Language::Python, [("python3", "exit 1"), ("python", "exit 1")], "`componentize-py`, which makes"),
        (Language::Python, [("python3", "echo 0.13.1"), ("python", "exit 1")], "version 0.13.1 is there"),
        (Language::JavaScript, [("node", "exit 1"), ("npm", "exit 1")], "`@bytecodealliance/componentize-js`"),
        // A clang without a C library for WASI, and a Python without zig.
        (Language::C, [("clang", "echo crt1-reactor.o"), ("python3", "exit 1")], "`hotcell plugin setup c`"),
    ];
    for (language, scripts, expected) in cases {
        let (_programs, tools) = programs(&scripts);
        let message = problem(project(language).path(), &tools);
        assert!(message.contains(expected), "{language}: `{expected}` is not in `{message}`");
    }
}

/// Cases are played natively before anything was set up: that makes no component.
#[cfg(unix)]
#[test]
fn a_plugin_runs_natively_without_what_makes_components() {
    let (_programs, tools) = programs(&[("python3", "exit 1"), ("node", "exit 0")]);
    let python = project(Language::Python);
    native(python.path(), &tools, &mut |_| ()).expect("a program");
    let javascript = project(Language::JavaScript);
    let missing = native(javascript.path(), &tools, &mut |_| ()).expect_err("nothing bundles it").to_string();
    assert!(missing.contains("the package `esbuild`"), "{missing}");
    fs::create_dir_all(javascript.path().join("node_modules/esbuild")).expect("a package");
    native(javascript.path(), &tools, &mut |_| ()).expect("a program");
}

#[cfg(unix)]
#[test]
fn what_a_failing_tool_printed_is_shown() {
    let script =
        "case \"$*\" in *print-file-name*) echo /lib/crt1-reactor.o;; *) echo 'no such include' >&2; exit 3;; esac";
    let (_programs, tools) = programs(&[("clang", script)]);
    let error = build_with(project(Language::C).path(), &tools, &mut |_| ()).expect_err("a failure").to_string();
    assert!(error.contains("no such include") && error.contains("to compile the plugin"), "{error}");
}

/// What cargo tells other programs is nothing that an author wants to read beside an error of the compiler.
#[cfg(unix)]
#[test]
fn an_error_of_the_compiler_comes_without_messages_for_programs() {
    let message = r#"{"reason":"compiler-artifact","package_id":"x"}"#;
    let cargo = format!("echo '{message}'\necho 'error[E0308]: mismatched types' >&2\nexit 101");
    let (_folder, tools) = programs(&[("rustc", "echo /"), ("cargo", &cargo)]);
    let project = project(Language::Rust);
    let error = build_with(project.path(), &tools, &mut |_| ()).expect_err("a failure").to_string();
    assert!(error.ends_with(":\nerror[E0308]: mismatched types"), "{error}");
}

#[cfg(unix)]
#[test]
fn what_installs_a_missing_tool_can_be_typed_as_it_stands() {
    let (_folder, some) =
        programs(&[("cargo", "exit 1"), ("rustc", "echo /no/such/folder"), ("python3", "exit 1"), ("node", "exit 1")]);
    let cases = [
        (Language::Rust, "rustup target add wasm32-wasip2"),
        (Language::Python, "hotcell plugin setup python"),
        (Language::JavaScript, "hotcell plugin setup js"),
        (Language::TypeScript, "hotcell plugin setup js"),
        (Language::C, "hotcell plugin setup c"),
    ];
    for (language, expected) in cases {
        let project = project(language);
        let missing = hotcell_authoring::missing_tool(project.path(), language, &some).expect("it is missing");
        assert_eq!(missing.install_command(), Some(expected), "{language}: {missing}");
    }
}
