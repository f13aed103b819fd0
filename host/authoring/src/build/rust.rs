//! Rust: cargo makes the component, description included.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{BuildError, BuildEvent, read_file};
use crate::component;
use crate::tools::{Tools, run, run_quietly};

const TARGET: &str = "wasm32-wasip2";
/// Interfaces that only a capability opens, with its key in the description and the line of `plugin!` that asks for it. Files are
/// not among them: the standard library imports them whether the code uses them or not.
const CAPABILITIES: [(&str, &str, &str); 6] = [
    ("hotcell:plugin/ask@", "ask", "ask: true"),
    ("hotcell:plugin/kv@", "kv", "kv: true"),
    ("hotcell:plugin/llm@", "llm", "llm: true"),
    ("hotcell:plugin/other-tools@", "tool", "tool: [\"NAME\"]"),
    ("hotcell:plugin/secrets@", "secret", "secret: { NAME: \"why\" }"),
    ("wasi:http/outgoing-handler@", "http", "http: [\"https://api.example.org\"]"),
];

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
    let bytes = match components.as_slice() {
        [one] => read_file(one)?,
        several => return Err(BuildError::Artifacts { found: several.len(), directory: directory.to_owned() }),
    };
    require_requests(&bytes)?;
    Ok(bytes)
}

/// Refuses a component that imports an interface whose capability its description does not ask for: each call of it would be
/// denied. The linker leaves out what the code does not call.
fn require_requests(bytes: &[u8]) -> Result<(), BuildError> {
    let parts = component::read(bytes)?;
    let description = parts.descriptions.first().and_then(|text| serde_json::from_slice::<Value>(text).ok());
    let asks = |key: &str| match description.as_ref().and_then(|description| description.get("capabilities")?.get(key))
    {
        Some(Value::Bool(asked)) => *asked,
        Some(Value::Array(asked)) => !asked.is_empty(),
        _ => false,
    };
    for (interface, key, line) in CAPABILITIES {
        if !asks(key) && parts.imports.iter().any(|import| import.starts_with(interface)) {
            return Err(BuildError::NotRequested { capability: key, line });
        }
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use wasm_encoder::{Component, ComponentImportSection, ComponentTypeRef, ComponentTypeSection, InstanceType};

    use super::{CAPABILITIES, require_requests};
    use crate::component::add_description;

    /// A component that imports an empty instance of this name.
    fn importing(interface: &str, description: &str) -> Vec<u8> {
        let mut types = ComponentTypeSection::new();
        types.ty().instance(&InstanceType::new());
        let mut imports = ComponentImportSection::new();
        imports.import(interface, ComponentTypeRef::Instance(0));
        let mut component = Component::new();
        component.section(&types).section(&imports);
        let mut bytes = component.finish();
        add_description(&mut bytes, description.as_bytes());
        bytes
    }

    #[test]
    fn what_is_used_is_asked_for() {
        for (interface, key, line) in CAPABILITIES {
            let interface = format!("{interface}0.2.0");
            for capabilities in ["{}".to_owned(), format!(r#"{{"{key}": false}}"#), format!(r#"{{"{key}": []}}"#)] {
                let bytes = importing(&interface, &format!(r#"{{"name": "x", "capabilities": {capabilities}}}"#));
                let error = require_requests(&bytes).expect_err("a refusal").to_string();
                assert!(error.contains(line) && error.contains("in `plugin!`"), "{error}");
            }
            let asked = if line.ends_with("true") { "true" } else { r#"["x"]"# };
            let bytes = importing(&interface, &format!(r#"{{"name": "x", "capabilities": {{"{key}": {asked}}}}}"#));
            require_requests(&bytes).expect("it asks");
        }
        require_requests(&importing("wasi:filesystem/types@0.2.12", "{}")).expect("the standard library imports files");
    }
}
