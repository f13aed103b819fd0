//! Parts of the language that are read and checked, and that the engine cannot run yet. Nothing is skipped silently.

use super::super::schema::Body;
use super::super::tool_name;
use super::Check;
use super::tools::{is_mcp_function, problem};

pub(super) fn nodes(check: &Check<'_>) {
    for node in check.nodes() {
        match &node.body {
            Body::Agent(_) | Body::Rag(_) => {
                let message = format!("`{}` nodes are not supported yet", node.body.kind());
                check.reader.report(check.error(node, message, &node.id.span));
            }
            Body::Llm(llm) => {
                for tool in &llm.tools {
                    let is_declared =
                        check.source.global_tools.iter().any(|declared| tool_name(declared) == tool_name(tool));
                    let is_mcp = tool.starts_with("mcp:") || (!is_declared && is_mcp_function(check, tool));
                    if is_mcp && problem(check, tool).is_none() {
                        let message = format!("the MCP tool `{}` is not supported yet", &**tool);
                        check.reader.report(check.error(node, message, &tool.span));
                    }
                }
            }
            _ => {}
        }
    }
}
