//! Tools that an MCP server tells of, and what is done again when it fails.

use std::time::Duration;

use hotcell_graph::Value;
use hotcell_graph::ir::{Callable, Retry, RetryOn};

use super::Lowering;
use super::agent::free_name;
use super::tool::{confirms, spoken};
use crate::agent_spec::model::{Component, ComponentId};
use crate::surroundings::ServerState;

/// Statuses on which a request may be made again, beside those of servers that failed.
const PASSING: &[&str] = &["408", "409", "429"];

/// The field with what is tried again.
const RETRIES: &str = "retry_policy";

impl Lowering<'_> {
    /// Adds the functions of an MCP server to what a model may call. The server is asked what it has.
    pub(super) fn toolbox(&mut self, offered: &mut Vec<Callable>, id: ComponentId) {
        let toolbox = self.component(id);
        if &*toolbox.component_type != "MCPToolBox" {
            let kind = &toolbox.component_type;
            self.refuse(toolbox, format!("`{kind}` is not supported: write the tools in `tools`, or an `MCPToolBox`"));
            return;
        }
        self.no_retries(toolbox);
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

    /// The retries that a component asks for.
    pub(super) fn retry(&mut self, component: &Component) -> Option<Retry> {
        let policy = component.value(RETRIES).and_then(Value::as_object)?;
        let number = |name: &str, default: f64| match policy.get(name) {
            Some(Value::Number(number)) => number.to_f64(),
            _ => default,
        };
        let seconds = |seconds: f64| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        let factor = number("backoff_factor", 2.0);
        if factor != 1.0 && factor != 2.0 {
            self.refuse_field(
                component,
                RETRIES,
                format!("a `backoff_factor` of {factor} is not supported: 1 and 2 are"),
            );
        }
        if policy.get("request_timeout").is_some_and(|value| *value != Value::Null) {
            self.refuse_field(
                component,
                RETRIES,
                "`request_timeout` of a `retry_policy` is not supported: the limits of the host hold",
            );
        }
        if policy.get("service_error_retry_on_any_5xx") == Some(&Value::Bool(false)) {
            let message =
                "`service_error_retry_on_any_5xx: false` is not supported: failures of a server are tried again";
            self.refuse_field(component, RETRIES, message);
        }
        let statuses = policy.get("recoverable_statuses").and_then(Value::as_object);
        for (status, _) in statuses.into_iter().flat_map(|statuses| statuses.iter()) {
            if !PASSING.contains(&&**status) && !status.starts_with('5') {
                let all = PASSING.join(", ");
                self.refuse_field(
                    component,
                    RETRIES,
                    format!("the status {status} cannot be tried again: {all} and those from 500 on can"),
                );
            }
        }
        Some(Retry {
            attempts: 1 + number("max_attempts", 2.0).clamp(0.0, 100.0) as u32,
            on: RetryOn::Retryable,
            pause: seconds(number("initial_retry_delay", 1.0)),
            growth: factor.clamp(1.0, 100.0),
            jitter: false,
            longest_pause: seconds(number("max_retry_delay", 8.0)),
        })
    }

    /// Says that nothing is tried again here.
    pub(super) fn no_retries(&mut self, component: &Component) {
        if component.value(RETRIES).is_some_and(|value| *value != Value::Null) {
            let kind = &component.component_type;
            self.refuse_field(
                component,
                RETRIES,
                format!("`retry_policy` of `{kind}` is not supported: models, `RemoteTool` and `ApiNode` have it"),
            );
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
