//! The tools of a case as one sealed component: the bundled guest with the case's own description attached.
//!
//! What a tool does is in the guest and chosen by configuration; nothing here runs a tool.

use indexmap::IndexMap;
use serde_json::json;
use wasm_encoder::{ComponentSection as _, CustomSection};

use crate::case_file::{Behaviour, Tool};

/// The name of the plugin.
pub const PLUGIN: &str = "case-tools";

/// The guest, without a description.
const GUEST: &[u8] = include_bytes!(env!("HOTCELL_CASE_TOOLS"));

/// A component that offers these tools.
pub fn component(tools: &IndexMap<String, Tool>) -> Vec<u8> {
    let offered: Vec<_> = offered(tools).collect();
    let description = json!({
        "contract": "0.2.0",
        "name": PLUGIN,
        "description": "The tools of a test case",
        "tools": offered,
        "capabilities": { "ask": asks(tools) },
    });
    described(GUEST, &description)
}

/// Tools as a description lists them.
fn offered(tools: &IndexMap<String, Tool>) -> impl Iterator<Item = serde_json::Value> {
    tools
        .iter()
        .map(|(name, tool)| json!({"name": name, "description": tool.description, "parameters": tool.parameters}))
}

/// Whether one of them asks somebody.
fn asks(tools: &IndexMap<String, Tool>) -> bool {
    tools.values().any(|tool| tool.behaviour == Behaviour::Ask)
}

/// The name of the plugin with the functions of agents.
pub const FUNCTIONS: &str = "case-agents";

/// The functions of agents and the tools beside them, without a description.
const FUNCTIONS_GUEST: &[u8] = include_bytes!(env!("HOTCELL_CASE_AGENTS"));

/// A component that exports the functions of these agents, and these tools. All of them ask or tell a server of this machine.
pub fn functions(agents: &[&String], tools: &IndexMap<String, Tool>, port: u16) -> Vec<u8> {
    let function = |name: &&String| json!({"name": name, "description": "The function of an agent", "parameters": {"type": "object"}});
    let offered: Vec<_> = agents.iter().map(function).chain(offered(tools)).collect();
    let description = json!({
        "contract": "0.2.0",
        "name": FUNCTIONS,
        "description": "The functions of the agents of a test case, and its tools",
        "tools": offered,
        "capabilities": { "ask": asks(tools), "http": [format!("http://127.0.0.1:{port}")] },
    });
    described(FUNCTIONS_GUEST, &description)
}

/// The table of `hotcell.toml` that says where the server is, and what the tools do.
pub fn functions_settings(tools: &IndexMap<String, Tool>, port: u16) -> toml::Table {
    let mut settings = settings(tools);
    if let Some(toml::Value::Table(config)) = settings.get_mut("config") {
        config.insert("server".to_owned(), format!("127.0.0.1:{port}").into());
    }
    settings
}

/// The plugin that the cases may have, without a description.
const PLUGIN_GUEST: &[u8] = include_bytes!(env!("HOTCELL_CASE_PLUGIN"));

/// The name of the plugin that the cases may have.
pub const TEST_PLUGIN: &str = "hotcell_test_plugin";

/// The plugin that the cases may have: one type of node.
pub fn test_plugin() -> Vec<u8> {
    let text = |name: &str| json!({"type": "object", "properties": {name: {"type": "string"}}, "required": [name]});
    let description = json!({
        "contract": "0.2.0",
        "name": TEST_PLUGIN,
        "version": "1.0.0",
        "description": "The plugin of the test cases",
        "nodes": [{
            "type": "UppercaseNode",
            "description": "Gives a text in upper case",
            "fields": {
                "type": "object",
                "properties": {"suffix": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": null}},
                "additionalProperties": false,
            },
            "inputs": text("text"),
            "outputs": text("shout"),
        }],
    });
    described(PLUGIN_GUEST, &description)
}

/// A component with a description.
fn described(guest: &[u8], description: &serde_json::Value) -> Vec<u8> {
    let mut component = guest.to_vec();
    CustomSection { name: "hotcell:description".into(), data: description.to_string().into_bytes().into() }
        .append_to_component(&mut component);
    component
}

/// The table of `hotcell.toml` that tells the component what its tools do.
pub fn settings(tools: &IndexMap<String, Tool>) -> toml::Table {
    let mut config = toml::Table::new();
    for (name, tool) in tools {
        config.insert(format!("behaviour.{name}"), tool.behaviour.as_str().into());
        if tool.behaviour == Behaviour::Constant {
            let value = tool.value.as_ref().map_or_else(|| "null".to_owned(), |value| value.0.to_json());
            config.insert(format!("value.{name}"), value.into());
        }
    }
    let mut settings = toml::Table::new();
    settings.insert("config".to_owned(), config.into());
    settings
}
