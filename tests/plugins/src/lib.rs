//! A plugin that does what it is told, for tests of other crates; the tests of this one are in `tests`.

use serde_json::json;
use wasm_encoder::{ComponentSection as _, CustomSection};

/// The component of the plugin, without a description.
pub const PROBE: &[u8] = include_bytes!(env!("HOTCELL_PROBE"));

/// The probe as a plugin of this name whose connector has these modes, and that asks for nothing.
pub fn connector(name: &str, modes: &[&str]) -> Vec<u8> {
    let description = json!({
        "contract": "0.2.0", "name": name,
        "tools": [{ "name": "say", "description": "Does what it is told", "parameters": { "type": "object" } }],
        "hooks": [{ "point": "before-skill-load" }],
        "nodes": [{ "type": "work" }],
        "connector": { "modes": modes },
    });
    described(&description)
}

/// The probe with this description.
pub fn described(description: &serde_json::Value) -> Vec<u8> {
    let mut bytes = PROBE.to_vec();
    CustomSection { name: "hotcell:description".into(), data: description.to_string().into_bytes().into() }
        .append_to_component(&mut bytes);
    bytes
}
