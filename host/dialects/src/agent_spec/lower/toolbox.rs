//! Tools that an MCP server tells of.

use std::collections::{HashMap, HashSet};

use hotcell_graph::Value;
use hotcell_graph::ir::Callable;

use super::Lowering;
use super::agent::free_name;
use super::tool::{confirms, spoken};
use crate::agent_spec::model::{Component, ComponentId};
use crate::surroundings::ServerState;

/// How many functions all toolboxes of one agent may offer together. No model takes as many.
const MOST_FUNCTIONS: usize = 4_096;

impl Lowering<'_> {
    /// Adds the functions of MCP servers to what a model may call. A toolbox that is listed twice is offered once, like a tool.
    pub(super) fn toolboxes(&mut self, offered: &mut Vec<Callable>, listed: &[ComponentId]) {
        let mut seen = HashSet::new();
        let mut left = MOST_FUNCTIONS;
        for id in listed {
            if seen.insert(*id) {
                self.toolbox(offered, &mut left, *id);
            }
        }
    }

    /// Adds the functions of an MCP server, which is asked what it has, if there are that many left.
    fn toolbox(&mut self, offered: &mut Vec<Callable>, left: &mut usize, id: ComponentId) {
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
        let wanted = match toolbox.value("tool_filter") {
            Some(Value::List(list)) => match self.filtered(toolbox, list.iter()) {
                Some(wanted) => Some(wanted),
                None => return,
            },
            _ => None,
        };
        let count = wanted.as_ref().map_or(functions.len(), Vec::len);
        let Some(rest) = left.checked_sub(count) else {
            let problem =
                format!("the toolboxes of an agent offer {MOST_FUNCTIONS} functions at most, and these are more");
            self.refuse(toolbox, problem);
            return;
        };
        *left = rest;
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

    /// The items of a filter with their names, each name once. None, and a problem, if one is there in two ways.
    fn filtered<'v>(
        &mut self,
        toolbox: &Component,
        items: impl Iterator<Item = &'v Value>,
    ) -> Option<Vec<(String, Option<&'v Value>)>> {
        let mut known: HashMap<String, Option<&Value>> = HashMap::new();
        let mut wanted = Vec::new();
        for (name, spec) in items.filter_map(named) {
            match known.get(&name) {
                Some(before) if *before == spec => {}
                Some(_) => {
                    let problem = format!("`tool_filter` names `{name}` twice, and not in the same way");
                    self.refuse_field(toolbox, "tool_filter", problem);
                    return None;
                }
                None => {
                    known.insert(name.clone(), spec);
                    wanted.push((name, spec));
                }
            }
        }
        Some(wanted)
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
