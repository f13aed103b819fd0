//! What a plugin says about itself: a JSON text in a custom section of the component, read without running it.
//!
//! The text is untrusted. It is checked for size, depth and names here, and its descriptions are only ever shown or
//! handed on as data.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The name of the custom section.
pub const DESCRIPTION_SECTION: &str = "hotcell:description";
/// Bytes that a description may have.
const MAX_BYTES: usize = 256 << 10;
/// Tools that one plugin may offer.
const MAX_TOOLS: usize = 256;
/// Levels of nesting in a description, parameters included.
const MAX_DEPTH: usize = 32;
/// Bytes of one text that people or models read.
const MAX_TEXT: usize = 8 << 10;
/// Bytes of a tool's name.
const MAX_NAME: usize = 64;

/// What a plugin with tools says about itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// The version of the contract it was made for.
    pub contract: String,
    /// The plugin's own name.
    pub name: String,
    /// What the plugin is for.
    #[serde(default)]
    pub description: String,
    /// Its tools.
    pub tools: Vec<ToolDescription>,
    /// What it asks the operator for, by capability. This grants nothing.
    #[serde(default)]
    pub capabilities: BTreeMap<String, Value>,
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
    /// Whether a call changes nothing anywhere.
    #[serde(default)]
    pub read_only: bool,
    /// Whatever else it says.
    #[serde(flatten)]
    pub metadata: Map<String, Value>,
}

/// What is wrong with a description.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DescriptionError {
    /// There is none.
    #[error("it exports tools but has no custom section `{DESCRIPTION_SECTION}` that lists them")]
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
    #[error("it is made for version `{found}` of the contract; this hotcell offers {offered}")]
    Version {
        /// The version it names.
        found: String,
        /// The version of this host.
        offered: &'static str,
    },
}

/// Reads the descriptions found in a component's custom sections.
pub(crate) fn read(sections: &[&[u8]]) -> Result<Description, DescriptionError> {
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
    let description: Description = serde_json::from_slice(bytes).map_err(|error| form(error.to_string()))?;
    check_version(&description.contract)?;
    check_text("the plugin's name", &description.name, MAX_NAME).map_err(form)?;
    check_text("the plugin's description", &description.description, MAX_TEXT).map_err(form)?;
    check_tools(&description.tools).map_err(form)?;
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

/// A host of version 0.1.z runs what was made for 0.1.0 up to its own version.
fn check_version(found: &str) -> Result<(), DescriptionError> {
    let offered = crate::contract::CONTRACT_VERSION;
    let numbers = |version: &str| -> Option<[u64; 3]> {
        let mut parts = version.split('.').map(|part| part.parse().ok());
        let numbers = [parts.next()??, parts.next()??, parts.next()??];
        parts.next().is_none().then_some(numbers)
    };
    let fits = match (numbers(found), numbers(offered)) {
        (Some([0, minor, patch]), Some([0, own_minor, own_patch])) => minor == own_minor && patch <= own_patch,
        (Some([major, minor, _]), Some([own_major, own_minor, _])) => major == own_major && minor <= own_minor,
        _ => false,
    };
    if fits {
        return Ok(());
    }
    Err(DescriptionError::Version { found: crate::text::one_line(found, 40), offered })
}

fn check_text(what: &str, text: &str, limit: usize) -> Result<(), String> {
    if text.len() > limit {
        return Err(format!("{what} has {} bytes, more than {limit}", text.len()));
    }
    Ok(())
}

fn check_tools(tools: &[ToolDescription]) -> Result<(), String> {
    if tools.len() > MAX_TOOLS {
        return Err(format!("it lists {} tools, more than {MAX_TOOLS}", tools.len()));
    }
    let mut names = BTreeSet::new();
    for tool in tools {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
        if tool.name.is_empty() || tool.name.len() > MAX_NAME || !tool.name.bytes().all(plain) {
            return Err(format!(
                "the tool name `{}` is not made of 1 to {MAX_NAME} letters, digits, `_`, `-` and `.`",
                tool.name
            ));
        }
        if !names.insert(tool.name.to_ascii_lowercase()) {
            return Err(format!("the tool name `{}` is there twice", tool.name));
        }
        check_text(&format!("the description of tool `{}`", tool.name), &tool.description, MAX_TEXT)?;
        if !tool.parameters.is_object() {
            return Err(format!("the parameters of tool `{}` are not a JSON schema object", tool.name));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{DescriptionError, read};

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
            (GOOD.replace("0.1.0", "0.2.0"), "version `0.2.0`"),
            (GOOD.replace("0.1.0", "0.1.1"), "version `0.1.1`"),
            (GOOD.replace("0.1.0", "latest"), "version `latest`"),
            (tools(&tool("a b")), "`a b` is not made of"),
            (tools(&tool("")), "`` is not made of"),
            (tools(&tool("\u{430}dd")), "is not made of"),
            (tools(&format!("{},{}", tool("Add"), tool("add"))), "`add` is there twice"),
            (tools(&vec![tool("a"); 257].join(",")), "257 tools"),
            (tools(r#"{ "name": "a", "description": "", "parameters": 1 }"#), "not a JSON schema object"),
        ];
        for (text, expected) in cases {
            let message = read(&[text.as_bytes()]).map_or_else(|error| error.to_string(), |_| "accepted".to_owned());
            assert!(message.contains(expected), "`{expected}` is not in `{message}`");
        }
        assert_eq!(read(&[]), Err(DescriptionError::Missing));
        assert_eq!(read(&[b"{}", b"{}"]), Err(DescriptionError::Several));
    }
}
