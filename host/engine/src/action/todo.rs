//! The to-do list that a model keeps.

use hotcell_graph::TodoTool;
use hotcell_models::ToolSpec;
use serde_json::json;

/// What a model is told about a tool with which it keeps its list.
pub(super) fn describe(tool: TodoTool, name: &str) -> ToolSpec {
    let argument = match tool {
        TodoTool::Init => json!({ "type": "string", "description": "What is reached when all tasks are done" }),
        TodoTool::Add => json!({ "type": "string", "description": "The task" }),
        TodoTool::Done => json!({ "type": "integer", "description": "Its number" }),
        TodoTool::List | TodoTool::Clear => json!({}),
    };
    let names: Vec<&str> = tool.argument().into_iter().collect();
    let properties: serde_json::Map<_, _> = names.iter().map(|name| ((*name).to_owned(), argument.clone())).collect();
    let parameters = json!({ "type": "object", "properties": properties, "required": names });
    ToolSpec { name: name.to_owned(), description: tool.description().to_owned(), parameters }
}
