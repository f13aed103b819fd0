//! Builds with the real tools, where they are. A language whose tools are not there is left out, which is said on standard
//! error, past the capture of the test runner: `missing_tools.rs` has what an author is told then. With
//! `HOTCELL_ALL_LANGUAGES` set, a missing tool is a failure.

use std::env;
use std::fs;
use std::io::Write as _;
use std::path::Path;

use hotcell_authoring::{BuildError, Built, Kind, Language, NewPlugin, build, new};

fn project(kind: Kind, language: Language) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    new(&NewPlugin { directory: folder.path().to_owned(), name: "acme:weather".to_owned(), kind, language })
        .expect("a project");
    folder
}

/// Builds, or gives nothing where the tools of the language are missing.
fn built(directory: &Path) -> Option<Built> {
    match build(directory, &mut |_| ()) {
        Ok(built) => Some(built),
        Err(error @ BuildError::MissingTool { .. }) => {
            left_out(&error.to_string());
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Says that a test did not test, and why.
fn left_out(reason: &str) {
    assert!(env::var_os("HOTCELL_ALL_LANGUAGES").is_none(), "{reason}");
    let test = std::thread::current().name().unwrap_or_default().to_owned();
    let _ = writeln!(std::io::stderr(), "left out: {test}: {reason}");
}

/// The blocks of a README in a language, in their order.
fn blocks<'a>(readme: &'a str, language: &str) -> Vec<&'a str> {
    let start = format!("```{language}\n");
    readme.split(&start).skip(1).map(|rest| rest.split("```").next().unwrap_or_default()).collect()
}

fn has(names: &[String], interface: &str) -> bool {
    names.iter().any(|name| name.starts_with(&format!("hotcell:plugin/{interface}@")))
}

#[test]
fn a_folder_without_a_project_is_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let error = build(folder.path(), &mut |_| ()).expect_err("a failure");
    assert!(error.to_string().contains("`hotcell plugin new` makes a project"), "{error}");
}

#[test]
fn c_plugins_of_every_kind_import_only_what_they_use() {
    for kind in Kind::ALL {
        let folder = project(kind, Language::C);
        let Some(built) = built(folder.path()) else { return };
        assert!(built.path.ends_with("build/acme-weather.wasm"), "{}", built.path.display());
        assert_eq!((built.digest.len(), fs::metadata(&built.path).expect("a file").len()), (64, built.size));
        assert!(has(&built.exports, kind.interface()), "{kind}: {:?}", built.exports);
        assert_eq!(has(&built.imports, "kv"), kind == Kind::Connector, "{kind}: {:?}", built.imports);
        assert_eq!(built.description["name"], "acme:weather");
        assert_eq!(built.description["contract"], "0.2.0");
        assert!(!built.imports.iter().any(|import| import.starts_with("wasi:")), "{kind}: {:?}", built.imports);
    }
}

#[test]
fn the_example_of_the_c_readme_builds() {
    let readme = include_str!("../../../../sdk/c/README.md");
    let folder = project(Kind::Tool, Language::C);
    fs::write(folder.path().join("src/plugin.c"), blocks(readme, "c")[0]).expect("the code");
    fs::write(folder.path().join("src/description.json"), blocks(readme, "json")[0]).expect("the description");
    let Some(built) = built(folder.path()) else { return };
    assert_eq!(built.description["tools"][0]["name"], "greet");
}

#[test]
fn an_error_in_c_is_shown_with_its_line() {
    let folder = project(Kind::Tool, Language::C);
    fs::write(folder.path().join("src/plugin.c"), "int broken(void) { return no_such_name; }\n").expect("the code");
    match build(folder.path(), &mut |_| ()) {
        Err(error @ BuildError::MissingTool { .. }) => left_out(&error.to_string()),
        Err(error) => assert!(error.to_string().contains("plugin.c:1:"), "{error}"),
        Ok(_) => panic!("broken code was built"),
    }
}

#[test]
fn the_example_of_the_python_readme_builds_and_is_described_by_its_types() {
    let folder = project(Kind::Tool, Language::Python);
    let readme = include_str!("../../../../sdk/python/README.md");
    fs::write(folder.path().join("src/plugin.py"), blocks(readme, "python")[0]).expect("the code");
    let Some(built) = built(folder.path()) else { return };
    let tool = &built.description["tools"][0];
    assert_eq!(tool["description"], "The distance between two places, for short ways.");
    assert_eq!(tool["parameters"]["required"], serde_json::json!(["start", "end"]));
    assert_eq!(tool["parameters"]["properties"]["unit"]["enum"], serde_json::json!(["km", "miles"]));
    assert!(has(&built.exports, "call-tool") && !has(&built.imports, "kv"), "{:?}", built.imports);
}

#[test]
fn a_python_function_without_types_is_refused_by_name() {
    let folder = project(Kind::Tool, Language::Python);
    let code = "from hotcell_plugin import tool\n\n@tool\ndef forecast(city):\n    return city\n";
    fs::write(folder.path().join("src/plugin.py"), code).expect("the code");
    match build(folder.path(), &mut |_| ()) {
        Err(error @ BuildError::MissingTool { .. }) => left_out(&error.to_string()),
        Err(error) => {
            let message = error.to_string();
            assert!(message.contains("tool `forecast`, parameter `city` has no type"), "{message}");
            assert!(message.contains("src/plugin.py:3"), "{message}");
        }
        Ok(_) => panic!("a function without types was described"),
    }
}

/// Packages for JavaScript are installed once for many tests: `HOTCELL_NODE_MODULES` names the folder `node_modules`.
#[cfg(unix)]
fn with_packages(folder: &Path) -> bool {
    let Some(packages) = env::var_os("HOTCELL_NODE_MODULES") else {
        left_out(
            "`HOTCELL_NODE_MODULES` does not name a folder with `@bytecodealliance/componentize-js` and `esbuild`",
        );
        return false;
    };
    std::os::unix::fs::symlink(packages, folder.join("node_modules")).is_ok()
}

#[cfg(unix)]
#[test]
fn the_example_of_the_javascript_readme_builds() {
    let folder = project(Kind::Tool, Language::TypeScript);
    if !with_packages(folder.path()) {
        return;
    }
    let readme = include_str!("../../../../sdk/javascript/README.md");
    fs::write(folder.path().join("src/plugin.ts"), blocks(readme, "ts")[0]).expect("the code");
    let Some(built) = built(folder.path()) else { return };
    assert_eq!(built.description["tools"][0]["parameters"]["required"], serde_json::json!(["start", "end"]));
    assert!(has(&built.exports, "call-tool") && !has(&built.imports, "kv"), "{:?}", built.imports);
}

#[cfg(unix)]
#[test]
fn a_capability_that_javascript_uses_has_to_be_asked_for() {
    let folder = project(Kind::Tool, Language::JavaScript);
    if !with_packages(folder.path()) {
        return;
    }
    let path = folder.path().join("src/plugin.js");
    let code = fs::read_to_string(&path).expect("the code");
    fs::write(&path, format!("import * as kv from \"hotcell-plugin/kv\";\nkv;\n{code}")).expect("the code");
    match build(folder.path(), &mut |_| ()) {
        Err(error @ BuildError::MissingTool { .. }) => left_out(&error.to_string()),
        Err(error) => assert!(error.to_string().contains("ask for it with `kv = true`"), "{error}"),
        Ok(_) => panic!("`kv` was imported without being asked for"),
    }
}

/// Builds, and counts the programs that ran for it.
fn ran(directory: &Path) -> (Option<Built>, usize) {
    let mut count = 0;
    match build(directory, &mut |_| count += 1) {
        Ok(built) => (Some(built), count),
        Err(error @ BuildError::MissingTool { .. }) => {
            left_out(&error.to_string());
            (None, 0)
        }
        Err(error) => panic!("{error}"),
    }
}

#[cfg(unix)]
#[test]
fn what_is_unchanged_is_not_built_again() {
    for language in [Language::Python, Language::JavaScript] {
        let folder = project(Kind::Tool, language);
        if language == Language::JavaScript && !with_packages(folder.path()) {
            continue;
        }
        let (Some(first), _) = ran(folder.path()) else { continue };
        assert!(!first.is_unchanged);
        let (again, programs) = ran(folder.path());
        let again = again.expect("a component");
        assert_eq!((again.is_unchanged, again.digest, programs), (true, first.digest, 0), "{language}");
        assert_eq!((again.exports, again.description), (first.exports, first.description), "{language}");
        let manifest = folder.path().join("plugin.toml");
        let text = fs::read_to_string(&manifest).expect("a manifest").replace("0.1.0", "0.2.0");
        fs::write(&manifest, text).expect("a manifest");
        let (changed, _) = ran(folder.path());
        let changed = changed.expect("a component");
        assert_eq!((changed.is_unchanged, &changed.description["version"]), (false, &"0.2.0".into()), "{language}");
    }
}
