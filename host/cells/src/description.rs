//! What a plugin says about itself: a JSON text in a custom section of the component, read without running it.
//!
//! The text is untrusted. It is checked here for size, depth, names and against what the component exports; its
//! descriptions are only ever shown or handed on as data.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::contract::{CALL_TOOL, CONNECT, HOOK, Interface, RUN_NODE, VERSIONS};
use crate::requests::Requests;

/// The name of the custom section.
pub const DESCRIPTION_SECTION: &str = "hotcell:description";
/// The points at which hooks are told of events.
pub const HOOK_POINTS: [&str; 17] = [
    "before-run",
    "after-run",
    "before-node",
    "after-node",
    "node-failed",
    "before-model-call",
    "after-model-call",
    "before-tool-call",
    "after-tool-call",
    "before-agent-call",
    "after-agent-call",
    "before-question",
    "after-question",
    "before-skill-load",
    "after-skill-load",
    "before-skill-unload",
    "after-skill-unload",
];
/// Bytes that a description may have.
const MAX_BYTES: usize = 256 << 10;
/// Tools, node types, hooks or branches that one plugin may offer of each.
const MAX_OFFERS: usize = 256;
/// Levels of nesting in a description, schemas included.
const MAX_DEPTH: usize = 32;
/// Bytes of one text that people or models read.
const MAX_TEXT: usize = 8 << 10;
/// Bytes of a name.
const MAX_NAME: usize = 64;

/// What a plugin says about itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// The version of the contract it was made for.
    pub contract: String,
    /// The plugin's own name, with a colon after the part that says whose it is, if there is one: `acme:weather`.
    pub name: String,
    /// The version of the plugin itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// What the plugin is for.
    #[serde(default)]
    pub description: String,
    /// Its tools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolDescription>,
    /// Its node types.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeDescription>,
    /// What its hooks are told of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<HookDescription>,
    /// The connection it makes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connector: Option<ConnectorDescription>,
    /// What it asks the operator for. This grants nothing.
    #[serde(default, skip_serializing_if = "Requests::is_empty")]
    pub capabilities: Requests,
    /// Whatever else it says; kept and shown, never acted on.
    #[serde(flatten)]
    pub metadata: Map<String, Value>,
}

/// One tool of a plugin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolDescription {
    /// The name it is called by: letters, digits, `_`, `-` and `.`, 64 at most.
    pub name: String,
    /// What it does, for the model that chooses it.
    pub description: String,
    /// A JSON schema of its arguments, which are an object.
    pub parameters: Value,
    /// A JSON schema of what a call answers, if it is always of one form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub returns: Option<Value>,
    /// Whether a call changes nothing anywhere.
    #[serde(default)]
    pub read_only: bool,
    /// Whatever else it says.
    #[serde(flatten)]
    pub metadata: Map<String, Value>,
}

/// One node type of a plugin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeDescription {
    /// The type's name, without the plugin's: letters, digits, `_`, `-` and `.`, 64 at most.
    #[serde(rename = "type")]
    pub node_type: String,
    /// What a node of this type does.
    #[serde(default)]
    pub description: String,
    /// A JSON schema of what the graph's author writes on the node, which is an object.
    #[serde(default = "any_object")]
    pub fields: Value,
    /// A JSON schema of the values that flow in, which are an object.
    #[serde(default = "any_object")]
    pub inputs: Value,
    /// A JSON schema of the values that flow out, which are an object.
    #[serde(default = "any_object")]
    pub outputs: Value,
    /// The branches a node of this type may leave by; none for one that just goes on.
    #[serde(default)]
    pub branches: Vec<String>,
    /// Whatever else it says.
    #[serde(flatten)]
    pub metadata: Map<String, Value>,
}

fn any_object() -> Value {
    serde_json::json!({ "type": "object" })
}

/// One point at which a plugin's hook is told of events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HookDescription {
    /// The point, one of [`HOOK_POINTS`].
    pub point: String,
    /// What the hook does there.
    #[serde(default)]
    pub description: String,
}

/// What a connector takes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConnectorDescription {
    /// What it connects to.
    #[serde(default)]
    pub description: String,
    /// How it gets answers.
    pub modes: Vec<ConnectorMode>,
    /// A JSON schema of how the author of a graph sets it up, which is an object.
    #[serde(default = "any_object")]
    pub config: Value,
}

/// How a connector gets an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ConnectorMode {
    /// In the reply to its request.
    Sync,
    /// By a call from outside, perhaps much later.
    Callback,
}

/// What is wrong with a description.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DescriptionError {
    /// There is none.
    #[error("it has no custom section `{DESCRIPTION_SECTION}` that says what it offers")]
    Missing,
    /// There is more than one.
    #[error("it has several custom sections `{DESCRIPTION_SECTION}`")]
    Several,
    /// It is too long.
    #[error("its description has {bytes} bytes, more than the {MAX_BYTES} that are read")]
    TooLong {
        /// The length.
        bytes: usize,
    },
    /// It is not JSON, or not of the documented form.
    #[error("its description is not of the documented form: {0}")]
    Form(String),
    /// It is made for another version of the contract.
    #[error("it is made for version `{found}` of the contract; this hotcell offers {}", VERSIONS.join(", "))]
    Version {
        /// The version it names.
        found: String,
    },
    /// It promises what the component does not export, or the other way round.
    #[error("its description does not fit what it exports: {0}")]
    Exports(String),
}

/// Reads the description of a component with these exports. A script needs none.
pub(crate) fn read_for(sections: &[&[u8]], exports: &[&str]) -> Result<Option<Description>, DescriptionError> {
    let exported = |interface: Interface| interface.names().any(|name| exports.contains(&name.as_str()));
    let needed = [CALL_TOOL, RUN_NODE, HOOK, CONNECT].into_iter().any(exported);
    if sections.is_empty() && !needed {
        return Ok(None);
    }
    let description = read(sections)?;
    let offers = [
        ("tools", !description.tools.is_empty(), CALL_TOOL),
        ("nodes", !description.nodes.is_empty(), RUN_NODE),
        ("hooks", !description.hooks.is_empty(), HOOK),
        ("connector", description.connector.is_some(), CONNECT),
    ];
    for (what, described, interface) in offers {
        let complain = |text: String| Err(DescriptionError::Exports(text));
        match (described, exported(interface)) {
            (true, false) => {
                return complain(format!("it lists `{what}` and the component has no `{}`", interface.name));
            }
            (false, true) => {
                return complain(format!("the component has `{}` and it lists no `{what}`", interface.name));
            }
            _ => {}
        }
    }
    Ok(Some(description))
}

fn read(sections: &[&[u8]]) -> Result<Description, DescriptionError> {
    let bytes = match sections {
        [] => return Err(DescriptionError::Missing),
        [bytes] => *bytes,
        _ => return Err(DescriptionError::Several),
    };
    if bytes.len() > MAX_BYTES {
        return Err(DescriptionError::TooLong { bytes: bytes.len() });
    }
    let form = |message: String| DescriptionError::Form(crate::text::one_line(&message, 500));
    let depth = nesting(bytes);
    if depth > MAX_DEPTH {
        return Err(form(format!("it is nested {depth} levels deep, more than {MAX_DEPTH}")));
    }
    /// Read first, so that a newer form is called newer and not wrong.
    #[derive(Deserialize)]
    struct Version {
        contract: String,
    }
    let version: Version = serde_json::from_slice(bytes).map_err(|error| form(error.to_string()))?;
    if !VERSIONS.contains(&version.contract.as_str()) {
        return Err(DescriptionError::Version { found: crate::text::one_line(&version.contract, 40) });
    }
    let description: Description = serde_json::from_slice(bytes).map_err(|error| form(error.to_string()))?;
    check(&description).map_err(form)?;
    Ok(description)
}

/// The deepest nesting of brackets outside strings; enough to keep a recursive parser from harm.
fn nesting(json: &[u8]) -> usize {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0_usize, 0, false, false);
    for byte in json {
        match (in_string, byte) {
            (true, _) if escaped => escaped = false,
            (true, b'\\') => escaped = true,
            (true, b'"') => in_string = false,
            (true, _) => {}
            (false, b'"') => in_string = true,
            (false, b'{' | b'[') => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            (false, b'}' | b']') => depth = depth.saturating_sub(1),
            (false, _) => {}
        }
    }
    deepest
}

fn check(description: &Description) -> Result<(), String> {
    check_plugin_name(&description.name)?;
    check_text("the plugin's description", &description.description)?;
    if let Some(version) = &description.version {
        check_name("the plugin's version", &version.replace('+', "."))?;
    }
    check_offers("tool", description.tools.iter().map(|tool| tool.name.as_str()))?;
    for tool in &description.tools {
        check_text(&format!("the description of tool `{}`", tool.name), &tool.description)?;
        check_schema(&format!("the parameters of tool `{}`", tool.name), &tool.parameters)?;
        if let Some(returns) = &tool.returns {
            check_schema(&format!("the results of tool `{}`", tool.name), returns)?;
        }
    }
    check_offers("node type", description.nodes.iter().map(|node| node.node_type.as_str()))?;
    for node in &description.nodes {
        let named = |what: &str| format!("the {what} of node type `{}`", node.node_type);
        check_text(&named("description"), &node.description)?;
        for (what, schema) in [("fields", &node.fields), ("inputs", &node.inputs), ("outputs", &node.outputs)] {
            check_schema(&named(what), schema)?;
        }
        check_offers("branch", node.branches.iter().map(String::as_str))?;
    }
    check_offers("hook", description.hooks.iter().map(|hook| hook.point.as_str()))?;
    for hook in &description.hooks {
        if !HOOK_POINTS.contains(&hook.point.as_str()) {
            return Err(format!("there is no point `{}` for hooks; there are {}", hook.point, HOOK_POINTS.join(", ")));
        }
        check_text(&format!("the description of the hook at `{}`", hook.point), &hook.description)?;
    }
    if let Some(connector) = &description.connector {
        check_text("the description of the connector", &connector.description)?;
        check_schema("the config of the connector", &connector.config)?;
        if connector.modes.is_empty() {
            return Err("the connector has neither mode `sync` nor mode `callback`".to_owned());
        }
    }
    Ok(())
}

fn check_text(what: &str, text: &str) -> Result<(), String> {
    if text.len() > MAX_TEXT {
        return Err(format!("{what} has {} bytes, more than {MAX_TEXT}", text.len()));
    }
    Ok(())
}

fn check_schema(what: &str, schema: &Value) -> Result<(), String> {
    if schema.is_object() {
        return Ok(());
    }
    Err(format!("{what} are not a JSON schema object"))
}

/// A name and, before a colon, whose it is.
fn check_plugin_name(name: &str) -> Result<(), String> {
    match name.split_once(':') {
        Some((owner, rest)) => {
            check_name("the plugin's name", owner)?;
            check_name("the plugin's name", rest)
        }
        None => check_name("the plugin's name", name),
    }
}

fn check_name(what: &str, name: &str) -> Result<(), String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    if name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(plain) {
        return Err(format!("{what} `{name}` is not made of 1 to {MAX_NAME} letters, digits, `_`, `-` and `.`"));
    }
    Ok(())
}

/// Names of one kind: not too many, plain, and each once, also for those who do not see the case of letters.
fn check_offers<'a>(kind: &str, names: impl ExactSizeIterator<Item = &'a str>) -> Result<(), String> {
    if names.len() > MAX_OFFERS {
        return Err(format!("it lists {} of kind {kind}, more than {MAX_OFFERS}", names.len()));
    }
    let mut seen = BTreeSet::new();
    for name in names {
        check_name(&format!("the {kind}"), name)?;
        if !seen.insert(name.to_ascii_lowercase()) {
            return Err(format!("the {kind} `{name}` is there twice"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{DescriptionError, read, read_for};

    const GOOD: &str = r#"{ "contract": "0.1.0", "name": "weather", "tools": [ { "name": "forecast", "read_only": true,
        "description": "…", "parameters": { "type": "object" }, "idempotent": true } ],
        "capabilities": { "http": ["https://api.example.org"] }, "licence": "MIT" }"#;

    #[test]
    fn a_description_is_read_with_what_it_says_besides() -> Result<(), DescriptionError> {
        let description = read(&[GOOD.as_bytes()])?;
        assert_eq!((description.name.as_str(), description.tools[0].read_only), ("weather", true));
        assert_eq!(description.tools[0].metadata["idempotent"], true);
        assert_eq!(description.metadata["licence"], "MIT");
        Ok(())
    }

    #[test]
    fn attack_61_73_what_is_wrong_with_a_description_is_said() {
        let tools = |tools: &str| format!(r#"{{ "contract": "0.1.0", "name": "x", "tools": [{tools}] }}"#);
        let tool = |name: &str| format!(r#"{{ "name": "{name}", "description": "", "parameters": {{}} }}"#);
        let cases = [
            ("{".to_owned(), "not of the documented form"),
            (format!("{}{}", "[".repeat(100_000), "]".repeat(100_000)), "nested 100000 levels deep"),
            (" ".repeat(300_000), "has 300000 bytes"),
            (GOOD.replace("0.1.0", "0.3.0"), "version `0.3.0`"),
            (GOOD.replace("0.1.0", "0.1.1"), "version `0.1.1`"),
            (GOOD.replace("0.1.0", "latest"), "version `latest`"),
            (tools(&tool("a b")), "`a b` is not made of"),
            (tools(&tool("")), "`` is not made of"),
            (tools(&tool("\u{430}dd")), "is not made of"),
            (tools(&format!("{},{}", tool("Add"), tool("add"))), "`add` is there twice"),
            (tools(&vec![tool("a"); 257].join(",")), "257 of kind tool"),
            (tools(r#"{ "name": "a", "description": "", "parameters": 1 }"#), "not a JSON schema object"),
        ];
        for (text, expected) in cases {
            let message = read(&[text.as_bytes()]).map_or_else(|error| error.to_string(), |_| "accepted".to_owned());
            assert!(message.contains(expected), "`{expected}` is not in `{message}`");
        }
        assert_eq!(read(&[]), Err(DescriptionError::Missing));
        assert_eq!(read(&[b"{}", b"{}"]), Err(DescriptionError::Several));
    }

    #[test]
    fn a_description_has_to_fit_the_exports() {
        let plugin = |rest: &str| format!(r#"{{ "contract": "0.2.0", "name": "x"{rest} }}"#);
        let call_tool: &[&str] = &["hotcell:plugin/call-tool@0.2.0"];
        let run_node: &[&str] = &["hotcell:plugin/run-node@0.2.0"];
        let hook: &[&str] = &["hotcell:plugin/hook@0.2.0"];
        let connect: &[&str] = &["hotcell:plugin/connect@0.2.0"];
        let tool = r#", "tools": [ { "name": "t", "description": "", "parameters": {} } ]"#;
        let cases = [
            (plugin(""), call_tool, "has `call-tool` and it lists no `tools`"),
            (plugin(tool), run_node, "lists `tools` and the component has no `call-tool`"),
            (plugin(r#", "nodes": [ { "type": "a b" } ]"#), run_node, "the node type `a b` is not made of"),
            (
                plugin(r#", "nodes": [ { "type": "a", "branches": ["x", "X"] } ]"#),
                run_node,
                "the branch `X` is there twice",
            ),
            (plugin(r#", "nodes": [ { "type": "a", "inputs": 1 } ]"#), run_node, "the inputs of node type `a`"),
            (plugin(r#", "hooks": [ { "point": "before-breakfast" } ]"#), hook, "no point `before-breakfast`"),
            (plugin(r#", "connector": { "modes": [] }"#), connect, "neither mode"),
            (plugin(r#", "connector": { "modes": ["push"] }"#), connect, "unknown variant `push`"),
            (plugin(r#", "capabilities": { "htpt": [] }"#), hook, "unknown field `htpt`"),
            (
                plugin(r#", "capabilities": { "http": ["example.org"] }"#),
                hook,
                "`example.org` is not a server: it does not begin with `https://` or `http://`",
            ),
            (plugin("").replace("\"x\"", "\"a:b:c\""), &[], "the plugin's name `b:c`"),
        ];
        for (text, exports, expected) in cases {
            let outcome = read_for(&[text.as_bytes()], exports);
            let message = outcome.map_or_else(|error| error.to_string(), |_| "accepted".to_owned());
            assert!(message.contains(expected), "`{expected}` is not in `{message}`");
        }
        assert_eq!(read_for(&[], call_tool), Err(DescriptionError::Missing));
        assert_eq!(read_for(&[], &["hotcell:plugin/run-script@0.2.0"]), Ok(None));
    }
}
