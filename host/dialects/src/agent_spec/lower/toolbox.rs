//! Tools that an MCP server tells of.

use hotcell_graph::Value;
use hotcell_graph::ir::Callable;

use super::Lowering;
use super::agent::free_name;
use super::tool::{confirms, spoken};
use crate::agent_spec::model::ComponentId;
use crate::surroundings::ServerState;

impl Lowering<'_> {
    /// Adds the functions of an MCP server to what a model may call. The server is asked what it has.
    pub(super) fn toolbox(&mut self, offered: &mut Vec<Callable>, id: ComponentId) {
        let toolbox = self.component(id);
        if !matches!(&*toolbox.component_type, "MCPToolBox" | "PluginMCPToolBox") {
            let kind = &toolbox.component_type;
            self.refuse(toolbox, format!("`{kind}` is not supported: write the tools in `tools`, or an `MCPToolBox`"));
            return;
        }
        let Some(transport) = toolbox.child("client_transport") else { return };
        let before = self.problems.len();
        let server = self.server(transport);
        if self.problems.len() > before {
            return;
        }
        let functions = match self.surroundings.mcp_server(&server) {
            ServerState::Usable(functions) => functions,
            // Whoever only checks the file starts nothing.
            ServerState::NotStarted => return,
            ServerState::Missing => {
                self.refuse(toolbox, format!("there is no MCP server `{server}` here"));
                return;
            }
            ServerState::Unusable(reason) => {
                self.refuse(toolbox, format!("the MCP server `{server}` cannot be asked for its tools: {reason}"));
                return;
            }
        };
        let confirms = confirms(toolbox);
        let wanted: Option<Vec<(String, Option<&Value>)>> = match toolbox.value("tool_filter") {
            Some(Value::List(list)) => Some(list.iter().filter_map(named).collect()),
            _ => None,
        };
        let chosen: Vec<(String, Option<&Value>)> = match wanted {
            None => functions.iter().map(|function| (function.clone(), None)).collect(),
            Some(wanted) => {
                for (name, _) in wanted.iter().filter(|(name, _)| !functions.contains(name)) {
                    let near = hotcell_graph::closest(name, functions.iter().map(String::as_str));
                    let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
                    self.refuse_field(
                        toolbox,
                        "tool_filter",
                        format!("`tool_filter` names `{name}`, and the MCP server `{server}` has no such tool{near}"),
                    );
                }
                wanted
            }
        };
        for (function, spec) in chosen {
            let full = format!("mcp:{server}/{function}");
            self.retry_function(toolbox, &full);
            let asks =
                confirms || spec.is_some_and(|spec| entry(spec, "requires_confirmation") == Some(&Value::Bool(true)));
            let description =
                spec.and_then(|spec| entry(spec, "description")?.as_text()).filter(|text| !text.is_empty());
            if !asks && description.is_none() {
                offered.push(Callable::Tool(full));
                continue;
            }
            // What the server says of its arguments counts; what the configuration says is about this use of it.
            offered.push(Callable::Described {
                parameters: None,
                tool: full,
                name: free_name(offered, &spoken(&function)),
                description: description.map(str::to_owned),
                confirm: asks,
            });
        }
    }
}

fn entry<'v>(value: &'v Value, key: &str) -> Option<&'v Value> {
    value.as_object()?.get(key)
}

/// The name of an item of a filter, and the item if it says more.
fn named(item: &Value) -> Option<(String, Option<&Value>)> {
    match item {
        Value::Text(name) => Some((name.to_string(), None)),
        other => Some((entry(other, "name")?.as_text()?.to_owned(), Some(other))),
    }
}
