//! What `new` writes, and what it refuses.

use std::fs;
use std::path::Path;

use hotcell_authoring::{Kind, Language, NewError, NewPlugin, new};

fn plugin(directory: &Path, name: &str) -> NewPlugin {
    NewPlugin { directory: directory.to_owned(), name: name.to_owned(), kind: Kind::Tool, language: Language::Python }
}

fn files_in(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() { files_in(&path, found) } else { found.push(path) }
    }
}

#[test]
fn it_writes_exactly_what_it_says() {
    let folder = tempfile::tempdir().expect("a folder");
    for language in Language::ALL {
        for kind in Kind::ALL {
            let directory = folder.path().join(format!("{language}-{kind}"));
            let order = NewPlugin { directory: directory.clone(), name: "acme:Weather".to_owned(), kind, language };
            let mut said = new(&order).expect("a project");
            let mut found = Vec::new();
            files_in(&directory, &mut found);
            said.sort();
            found.sort();
            assert_eq!(said, found, "{language} {kind}");
        }
    }
}

#[test]
fn an_empty_folder_is_filled_and_the_name_is_put_in() {
    let folder = tempfile::tempdir().expect("a folder");
    new(&plugin(folder.path(), "acme:weather")).expect("a project");
    let manifest = fs::read_to_string(folder.path().join("plugin.toml")).expect("a manifest");
    assert!(manifest.contains("name = \"acme:weather\""), "{manifest}");
    let readme = fs::read_to_string(folder.path().join("README.md")).expect("a README");
    assert!(readme.contains("build/acme-weather.wasm"), "{readme}");
}

#[test]
fn a_folder_in_use_stays_as_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let kept = folder.path().join("kept.txt");
    fs::write(&kept, "kept").expect("a file");
    let error = new(&plugin(folder.path(), "weather")).expect_err("a refusal");
    assert!(matches!(error, NewError::NotEmpty { .. }), "{error}");
    let error = new(&plugin(&kept, "weather")).expect_err("a refusal");
    assert!(matches!(error, NewError::NotADirectory { .. }), "{error}");
    let mut found = Vec::new();
    files_in(folder.path(), &mut found);
    assert_eq!(found, [kept]);
}

#[test]
fn a_bad_name_writes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let directory = folder.path().join("new");
    for name in ["", "a b", "../up", "a:b:c", "wörter"] {
        let error = new(&plugin(&directory, name)).expect_err("a refusal");
        assert!(error.to_string().contains("is not a valid plugin name"), "{error}");
    }
    assert!(!directory.exists());
}
