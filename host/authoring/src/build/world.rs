//! The world that a plugin targets: what its kinds export, and imports for what it asks for and nothing else.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use wit_parser::{PackageName, UnresolvedPackageGroup};

use super::{BuildError, create_folder, read_file, write_file};
use crate::manifest::Manifest;
use crate::project::{Kind, Language};

/// The name of the world that is written.
pub(crate) const NAME: &str = "plugin";
/// Interfaces that every plugin has, because they ask for nothing.
const ALWAYS: [&str; 3] = ["log", "progress", "config"];
/// Interfaces by the capability that they need.
const BY_CAPABILITY: [(&str, &str); 5] =
    [("kv", "kv"), ("secret", "secrets"), ("llm", "llm"), ("tool", "other-tools"), ("ask", "ask")];

/// Interfaces of the system, in the place of what a language brings by itself.
struct OfSystem {
    /// What the SDKs call it.
    name: &'static str,
    /// Folders of packages; the interfaces are of the first one.
    packages: &'static [&'static str],
    interfaces: &'static [&'static str],
}

/// What the SDK of a language reaches through bindings. The engine of JavaScript has `fetch`; C opens files by its library.
fn of_system(manifest: &Manifest) -> Vec<OfSystem> {
    let http = OfSystem { name: "http", packages: &["http", "io"], interfaces: &["outgoing-handler"] };
    let files = OfSystem { name: "files", packages: &["filesystem"], interfaces: &["types", "preopens"] };
    let has_fetch = matches!(manifest.language, Language::JavaScript | Language::TypeScript);
    let has_files = manifest.language == Language::C;
    let http = (manifest.asks_for("http") && !has_fetch).then_some(http);
    let files = (manifest.asks_for("fs") && !has_files).then_some(files);
    http.into_iter().chain(files).collect()
}

/// A world in a folder.
pub(crate) struct World {
    /// The folder, in the form that tools for WIT expect: the world, and the contract in `deps`.
    pub(crate) folder: PathBuf,
    /// The version of the contract.
    pub(crate) contract: String,
    /// Interfaces that the plugin may import, without package and version.
    pub(crate) imports: Vec<&'static str>,
}

/// Writes the world of a plugin into `folder`, made of the interfaces in the folder of its SDK.
pub(super) fn write(manifest: &Manifest, sdk: &Path, folder: &Path) -> Result<World, BuildError> {
    let contract = sdk.join("wit");
    let (package, version) = package_in(&contract)?;
    let mut imports = ALWAYS.to_vec();
    imports.extend(BY_CAPABILITY.iter().filter(|(asked, _)| manifest.asks_for(asked)).map(|(_, interface)| *interface));
    let kinds = manifest.kinds();
    if kinds.contains(&Kind::Script) || kinds.contains(&Kind::Node) {
        imports.push("state");
    }
    let mut text = format!("package hotcell:built;\n\nworld {NAME} {{\n");
    let lines = imports.iter().map(|interface| ("import", *interface));
    let lines = lines.chain(kinds.iter().map(|kind| ("export", kind.interface())));
    for (direction, interface) in lines {
        // Writing to a text cannot fail.
        let _ = writeln!(text, "    {direction} {}:{}/{interface}@{version};", package.namespace, package.name);
    }
    let dependencies = folder.join("deps");
    copy_wit(&contract, &dependencies.join("hotcell-plugin"))?;
    let wasi = sdk.join("wasi");
    for import in of_system(manifest) {
        let (found, wasi_version) = package_in(&wasi.join(import.packages[0]))?;
        for interface in import.interfaces {
            let _ = writeln!(text, "    import {}:{}/{interface}@{wasi_version};", found.namespace, found.name);
        }
        for package in import.packages {
            copy_wit(&wasi.join(package), &dependencies.join(package))?;
        }
        imports.push(import.name);
    }
    text.push_str("}\n");
    write_file(&folder.join("plugin.wit"), text.as_bytes())?;
    Ok(World { folder: folder.to_owned(), contract: version, imports })
}

/// The name and version of the package in a folder, whatever it depends on.
fn package_in(folder: &Path) -> Result<(PackageName, String), BuildError> {
    let unusable = |message: String| BuildError::Interfaces { path: folder.to_owned(), message };
    let package = UnresolvedPackageGroup::parse_dir(folder).map_err(|error| unusable(format!("{error:#}")))?;
    let name = package.main.name;
    match name.version.as_ref().map(ToString::to_string) {
        Some(version) => Ok((name, version)),
        None => Err(unusable("the package has no version".to_owned())),
    }
}

fn copy_wit(from: &Path, to: &Path) -> Result<(), BuildError> {
    create_folder(to)?;
    for file in wit_files(from)? {
        if let Some(name) = file.file_name() {
            write_file(&to.join(name), &read_file(&file)?)?;
        }
    }
    Ok(())
}

fn wit_files(folder: &Path) -> Result<Vec<PathBuf>, BuildError> {
    let failed = |source| BuildError::Io { action: "list", path: folder.to_owned(), source };
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension == "wit") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
