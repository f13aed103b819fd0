//! The tools of a server, as far as they are accepted.
//!
//! Names and descriptions end up before models and people, so a list that breaks a rule is refused as a whole: a
//! server that tries one trick is not one whose other tools should be used.

use std::collections::HashSet;
use std::sync::Arc;

use rmcp::model::{JsonObject, PaginatedRequestParams, Tool};
use rmcp::service::{Peer, RoleClient, ServiceError};
use serde_json::Value;

use crate::error::McpError;
use crate::text::{clean, is_hidden, shown, visible};

/// The most tools of one server.
const MOST_TOOLS: usize = 1_000;
/// The most pages in which they come.
const MOST_PAGES: usize = 100;
/// The longest name, in bytes.
const LONGEST_NAME: usize = 128;
/// The longest title, in bytes; the rest is cut off.
const LONGEST_TITLE: usize = 256;
/// The longest description, in bytes.
const LONGEST_DESCRIPTION: usize = 64 << 10;

/// A tool of a server.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolInfo {
    /// Its name at the server
    pub name: String,
    /// Its name for people
    pub title: Option<String>,
    /// What it does, in the server's words; may be empty
    pub description: String,
    /// The JSON schema of its arguments, an object
    pub input_schema: Value,
    /// The JSON schema of its structured answers, if it gives any
    pub output_schema: Option<Value>,
    /// What the server claims about its effects (`readOnlyHint`, `destructiveHint`, ...); nothing to rely on
    pub annotations: Option<Value>,
}

/// Asks a server for all of its tools. `total` is the most bytes of all of them together.
pub(crate) async fn list(peer: &Peer<RoleClient>, server: &str, total: usize) -> Result<Arc<[ToolInfo]>, ListError> {
    let refused = |reason: String| ListError::Refused(McpError::ToolsRefused { server: server.to_owned(), reason });
    let offers_tools = peer.peer_info().is_none_or(|info| info.capabilities.tools.is_some());
    if !offers_tools {
        return Ok(Arc::new([]));
    }
    let mut accepted = Accepted { tools: Vec::new(), names: HashSet::new(), bytes: 0, most_bytes: total };
    let mut cursor = None;
    for _ in 0..MOST_PAGES {
        let page = PaginatedRequestParams::default().with_cursor(cursor);
        let page = peer.list_tools(Some(page)).await.map_err(ListError::Service)?;
        for tool in page.tools {
            accepted.add(tool).map_err(refused)?;
        }
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(accepted.tools.into());
        }
    }
    Err(refused(format!("they do not end after {MOST_PAGES} pages")))
}

/// Why there is no list.
pub(crate) enum ListError {
    /// It breaks a rule
    Refused(McpError),
    /// The server did not give it
    Service(ServiceError),
}

/// The tools accepted so far.
struct Accepted {
    tools: Vec<ToolInfo>,
    names: HashSet<String>,
    bytes: usize,
    most_bytes: usize,
}

impl Accepted {
    fn add(&mut self, tool: Tool) -> Result<(), String> {
        if self.tools.len() == MOST_TOOLS {
            return Err(format!("there are more than {MOST_TOOLS}"));
        }
        let name = tool.name.into_owned();
        let readable = !name.is_empty() && name.len() <= LONGEST_NAME && !name.contains(is_hidden);
        if !readable {
            return Err(format!("{:?} is not a valid name: 1 to {LONGEST_NAME} visible characters", shown(&name)));
        }
        if !self.names.insert(name.clone()) {
            return Err(format!("`{name}` is there twice"));
        }
        let description = tool.description.unwrap_or_default();
        if description.len() > LONGEST_DESCRIPTION {
            return Err(format!("the description of `{name}` has more than {LONGEST_DESCRIPTION} bytes"));
        }
        let schema = |object: &Arc<JsonObject>| {
            let schema = visible(Value::Object(JsonObject::clone(object)));
            schema.ok_or_else(|| format!("a schema of `{name}` is nested too deeply"))
        };
        let input_schema = schema(&tool.input_schema)?;
        let output_schema = tool.output_schema.as_ref().map(schema).transpose()?;
        let annotations = tool.annotations.and_then(|mut annotations| {
            annotations.title = annotations.title.map(|title| clean(&title, LONGEST_TITLE));
            serde_json::to_value(annotations).ok()
        });
        let schemas = [Some(&input_schema), output_schema.as_ref()];
        self.bytes += name.len() + description.len();
        self.bytes += schemas.into_iter().flatten().map(|schema| schema.to_string().len()).sum::<usize>();
        if self.bytes > self.most_bytes {
            return Err(format!("they have more than {} bytes", self.most_bytes));
        }
        self.tools.push(ToolInfo {
            title: tool.title.map(|title| clean(&title, LONGEST_TITLE)),
            description: clean(&description, LONGEST_DESCRIPTION),
            name,
            input_schema,
            output_schema,
            annotations,
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(name: &str, description: &str) -> Tool {
        Tool::new(name.to_owned(), description.to_owned(), JsonObject::new())
    }

    /// A schema that no JSON text can be read as, but by the library's way to hide one in another.
    fn deep() -> JsonObject {
        let nested = (0..300).fold(json!(1), |inner, _| Value::Array(vec![inner]));
        JsonObject::from_iter([("x".to_owned(), nested)])
    }

    fn accept(tools: Vec<Tool>) -> Result<Vec<ToolInfo>, String> {
        let mut accepted = Accepted { tools: Vec::new(), names: HashSet::new(), bytes: 0, most_bytes: 1 << 20 };
        tools.into_iter().try_for_each(|tool| accepted.add(tool))?;
        Ok(accepted.tools)
    }

    #[test]
    fn descriptions_are_cleaned_and_names_are_not() {
        let tools = accept(vec![tool("read.file-2_ä", "reads\u{1b}[2J a\u{e0041} file\n")]).expect("accepted");
        assert_eq!((tools[0].name.as_str(), tools[0].description.as_str()), ("read.file-2_ä", "reads[2J a file\n"));
    }

    #[test]
    fn what_models_and_people_see_of_schemas_and_annotations_is_cleaned_too() {
        let tool: Tool = serde_json::from_value(json!({
            "name": "read",
            "inputSchema": { "type": "object", "properties": { "path": { "description": "a file\u{e0041}" } } },
            "outputSchema": { "type": "object", "title": "\u{202e}x" },
            "annotations": { "title": format!("\u{1b}{}", "x".repeat(1_000_000)), "readOnlyHint": true },
        }))
        .expect("a tool");
        let tools = accept(vec![tool]).expect("accepted");
        assert_eq!(tools[0].input_schema["properties"]["path"]["description"], "a file");
        assert_eq!(tools[0].output_schema.as_ref().expect("a schema")["title"], "x");
        let annotations = tools[0].annotations.as_ref().expect("annotations");
        assert_eq!(annotations["title"].as_str().map(str::len), Some(LONGEST_TITLE + '…'.len_utf8()));
        assert_eq!(annotations["readOnlyHint"], true);
    }

    #[test]
    fn a_list_that_breaks_a_rule_is_refused() {
        for (tools, expected) in [
            (vec![tool("", "")], "is not a valid name"),
            (vec![tool("a\nb", "")], "is not a valid name"),
            (vec![tool("a\u{202e}b", "")], "is not a valid name"),
            (vec![tool(&"a".repeat(129), "")], "is not a valid name"),
            (vec![tool("a", ""), tool("b", ""), tool("a", "")], "`a` is there twice"),
            (vec![tool("a", &"x".repeat((64 << 10) + 1))], "the description of `a`"),
            (vec![Tool::new("a", "", deep())], "a schema of `a` is nested too deeply"),
            ((0..1_001).map(|number| tool(&number.to_string(), "")).collect(), "more than 1000"),
            ((0..20).map(|number| tool(&number.to_string(), &"x".repeat(60_000))).collect(), "more than 1048576 bytes"),
        ] {
            let error = accept(tools).expect_err(expected);
            assert!(error.contains(expected), "{error}");
        }
    }
}
