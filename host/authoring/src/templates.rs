//! What a new project is made of, carried in the program: the templates, the SDKs and the contract.
//!
//! A project gets a copy of its SDK, so that it builds without a checkout of hotcell and does not change when hotcell is
//! updated.

use rust_embed::{Embed, EmbeddedFile};

use crate::project::{Kind, Language, file_stem, package_name};

/// `LANGUAGE/common` and `LANGUAGE/KIND`, each the files of a project. The ending `.template` is dropped; it keeps tools
/// that walk the repository from taking the files for real ones.
#[derive(Embed)]
#[folder = "../../sdk/templates"]
struct Templates;

#[derive(Embed)]
#[folder = "../../wit"]
#[include = "*.wit"]
struct Contract;

#[derive(Embed)]
#[folder = "../../sdk/python/hotcell_plugin"]
#[include = "*.py"]
struct PythonSdk;

/// The interfaces of WASI that SDKs reach HTTP and files through.
#[derive(Embed)]
#[folder = "../../sdk/wasi"]
#[include = "*.wit"]
struct Wasi;

#[derive(Embed)]
#[folder = "../../sdk/javascript/hotcell-plugin"]
struct JavaScriptSdk;

#[derive(Embed)]
#[folder = "../../sdk/c/include"]
struct CSdk;

#[derive(Embed)]
#[folder = "../../sdk/rust/hotcell-plugin"]
#[include = "Cargo.toml"]
#[include = "README.md"]
#[include = "src/**"]
#[include = "wit/**"]
struct RustSdk;

#[derive(Embed)]
#[folder = "../../sdk/rust/hotcell-plugin-macros"]
#[include = "Cargo.toml"]
#[include = "README.md"]
#[include = "src/**"]
struct RustMacros;

/// The workspace of the Rust SDK, whose settings its crates inherit.
const RUST_WORKSPACE: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../sdk/rust/Cargo.toml"));

/// A file of a project: its path with `/` between folders, and its contents.
pub(crate) type ProjectFile = (String, Vec<u8>);

/// All files of a new project, in the order of their paths.
pub(crate) fn files(name: &str, kind: Kind, language: Language) -> Vec<ProjectFile> {
    let mut files = Vec::new();
    for part in ["common", kind.word()] {
        let folder = format!("{}/{part}/", language.word());
        for path in Templates::iter() {
            let Some(inside) = path.strip_prefix(&folder) else { continue };
            let Some(file) = Templates::get(&path) else { continue };
            files.push((inside.trim_end_matches(".template").to_owned(), fill(&file.data, name, kind)));
        }
    }
    match language {
        Language::Rust => {
            copy::<RustSdk>("sdk/hotcell-plugin", &mut files);
            copy::<RustMacros>("sdk/hotcell-plugin-macros", &mut files);
            files.push(("sdk/Cargo.toml".to_owned(), rust_workspace().into_bytes()));
        }
        Language::Python => copy::<PythonSdk>("sdk/hotcell_plugin", &mut files),
        Language::JavaScript | Language::TypeScript => copy::<JavaScriptSdk>("sdk/hotcell-plugin", &mut files),
        Language::C => copy::<CSdk>("sdk", &mut files),
    }
    if language != Language::Rust {
        copy::<Contract>("sdk/wit", &mut files);
        copy::<Wasi>("sdk/wasi", &mut files);
    }
    files.sort();
    files
}

fn copy<From: Embed>(folder: &str, files: &mut Vec<ProjectFile>) {
    for path in From::iter() {
        if let Some(EmbeddedFile { data, .. }) = From::get(&path) {
            files.push((format!("{folder}/{path}"), data.into_owned()));
        }
    }
}

/// The workspace with the two crates that a plugin needs.
fn rust_workspace() -> String {
    let Ok(mut workspace) = RUST_WORKSPACE.parse::<toml::Table>() else { return RUST_WORKSPACE.to_owned() };
    if let Some(table) = workspace.get_mut("workspace").and_then(toml::Value::as_table_mut) {
        table.insert("members".to_owned(), toml::Value::from(vec!["hotcell-plugin", "hotcell-plugin-macros"]));
    }
    workspace.to_string()
}

/// Puts the names into a template.
fn fill(template: &[u8], name: &str, kind: Kind) -> Vec<u8> {
    let package = package_name(name);
    String::from_utf8_lossy(template)
        .replace("{{name}}", name)
        .replace("{{file}}", &file_stem(name))
        .replace("{{package}}", &package)
        .replace("{{kind}}", kind.word())
        .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::files;
    use crate::project::{Kind, Language};

    #[test]
    fn every_language_has_every_kind_with_cases_and_no_open_names() {
        for language in Language::ALL {
            for kind in Kind::ALL {
                let files = files("acme:weather", kind, language);
                let has = |wanted: &str| files.iter().any(|(path, _)| path.starts_with(wanted));
                let manifest = if language == Language::Rust { "Cargo.toml" } else { "plugin.toml" };
                for wanted in ["README.md", ".gitignore", "cases/", "src/", "sdk/", manifest] {
                    assert!(has(wanted), "{language} {kind} has no `{wanted}`");
                }
                for (path, contents) in &files {
                    assert!(!path.ends_with(".template"), "{path}");
                    let open = String::from_utf8_lossy(contents).contains("{{name}}");
                    assert!(path.starts_with("sdk/") || !open, "{language} {kind}: `{path}` has an open name");
                    if path.starts_with("cases/") {
                        let case: serde_json::Value = serde_json::from_slice(contents).expect("a case");
                        assert!(case.get("expect").is_some(), "{language} {kind}: `{path}` expects nothing");
                    }
                }
            }
        }
    }
}
