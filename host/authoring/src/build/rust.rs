//! Rust: cargo makes the component, description included.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{BuildError, BuildEvent, read_file};
use crate::tools::{Tools, run, run_quietly};

const TARGET: &str = "wasm32-wasip2";

/// Builds the package in `directory` and gives the component.
pub(super) fn build(
    directory: &Path,
    tools: &Tools,
    events: &mut dyn FnMut(BuildEvent),
) -> Result<Vec<u8>, BuildError> {
    let cargo = find_cargo(directory, tools)?;
    events(BuildEvent::Running { program: cargo.display().to_string(), purpose: "to build the plugin" });
    let mut command = tools.command(&cargo, directory);
    // Quietly: of a build that fails, the errors are of interest, and not what was compiled before.
    command.args(["build", "--quiet", "--release", "--target", TARGET, "--message-format", "json-render-diagnostics"]);
    let messages = run_quietly(&mut command, "to build the plugin")?;
    let components = components(&String::from_utf8_lossy(&messages), &directory.join("Cargo.toml"));
    match components.as_slice() {
        [one] => read_file(one),
        several => Err(BuildError::Artifacts { found: several.len(), directory: directory.to_owned() }),
    }
}

/// The cargo that builds plugins, where it has their target.
pub(super) fn find_cargo(directory: &Path, tools: &Tools) -> Result<PathBuf, BuildError> {
    let (Some(cargo), Some(rustc)) = (tools.find(&["cargo"]), tools.find(&["rustc"])) else {
        return Err(BuildError::missing(
            "cargo, which builds plugins in Rust,",
            "install Rust with `rustup` (rustup.rs)",
        ));
    };
    require_target(directory, tools, &rustc)?;
    Ok(cargo)
}

fn require_target(directory: &Path, tools: &Tools, rustc: &Path) -> Result<(), BuildError> {
    let mut command = tools.command(rustc, directory);
    command.args(["--print", "target-libdir", "--target", TARGET]);
    let library = run(&mut command, "to find the standard library for plugins")?;
    if Path::new(String::from_utf8_lossy(&library).trim()).is_dir() {
        return Ok(());
    }
    Err(BuildError::missing("the Rust target `wasm32-wasip2`", "install it with `rustup target add wasm32-wasip2`"))
}

/// The components that cargo says it made of the package with this manifest.
fn components(messages: &str, manifest: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for message in messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        let of_package = message.get("manifest_path").and_then(Value::as_str).map(Path::new) == Some(manifest);
        let made = message.get("reason").and_then(Value::as_str) == Some("compiler-artifact");
        if !(of_package && made) {
            continue;
        }
        let files = message.get("filenames").and_then(Value::as_array).into_iter().flatten();
        let files = files.filter_map(Value::as_str).filter(|file| file.ends_with(".wasm"));
        found.extend(files.map(PathBuf::from));
    }
    found
}
