//! Tools, and the requests of `RemoteTool` and `ApiNode`.

use std::sync::Arc;

use hotcell_graph::ir::{Expression, Slot, Tool, ToolKind, WebAnswer, WebRequest};
use hotcell_graph::{Key, Value};

use super::{Lowering, template};
use crate::agent_spec::model::{Component, ComponentId, Property};

/// Letters that the name of a tool may have for a model.
const LONGEST_NAME: usize = 64;

impl Lowering<'_> {
    /// A tool.
    pub(super) fn tool(&mut self, id: ComponentId) -> Arc<Tool> {
        let component = self.component(id);
        let kind = match (&*component.component_type, &component.plugin) {
            ("ServerTool", _) => ToolKind::Host(component.name.to_string()),
            ("ClientTool", _) => ToolKind::Client,
            ("RemoteTool", _) => {
                let answer = match &component.outputs[..] {
                    [] => WebAnswer::Text,
                    [only] if only.ty.is_text() => WebAnswer::Text,
                    [_] => WebAnswer::Json,
                    _ => WebAnswer::Object,
                };
                ToolKind::Web(Box::new(request(component, answer)))
            }
            ("MCPTool", _) => self.function(component),
            (kind, Some(plugin)) => ToolKind::Host(format!("{}/{kind}", plugin.name)),
            (other, None) => {
                self.refuse(component, format!("`{other}` is no tool that can be called here"));
                ToolKind::Refused(String::new())
            }
        };
        Arc::new(Tool {
            name: component.name.clone(),
            spoken: spoken(&component.name),
            description: component.text("description").unwrap_or_default().to_owned(),
            inputs: component.inputs.iter().map(slot).collect(),
            kind,
        })
    }

    /// A function of an MCP server. The server is contacted when it is called.
    fn function(&mut self, component: &Component) -> ToolKind {
        let Some(transport) = component.child("client_transport") else { return ToolKind::Refused(String::new()) };
        let transport = self.component(transport);
        ToolKind::Host(format!("mcp:{}/{}", transport.name, component.name))
    }
}

/// The node that sends a request itself, as a tool.
pub(super) fn of_api_node(component: &Component) -> Tool {
    Tool {
        name: component.name.clone(),
        spoken: spoken(&component.name),
        description: String::new(),
        inputs: component.inputs.iter().map(slot).collect(),
        kind: ToolKind::Web(Box::new(request(component, WebAnswer::Object))),
    }
}

pub(super) fn slot(property: &Property) -> Slot {
    Slot {
        name: property.title.clone(),
        schema: property.schema.clone(),
        ty: property.ty.clone(),
        default: property.default.clone(),
    }
}

/// The request of a component with `url`, `http_method`, `data`, `query_params` and `headers`.
fn request(component: &Component, answer: WebAnswer) -> WebRequest {
    let value = |name: &str| Expression::Key(Key::from(name));
    let object = |field: &str| match component.value(field).and_then(Value::as_object) {
        Some(object) => template::entries(object, &value),
        None => Expression::Value(Value::Object(Default::default())),
    };
    let body = match component.value("data") {
        None | Some(Value::Null) => Expression::Value(Value::Null),
        Some(Value::Object(object)) if object.is_empty() => Expression::Value(Value::Null),
        Some(data) => template::json(data, &value),
    };
    WebRequest {
        url: template::url(component.text("url").unwrap_or_default(), value),
        method: template::text(component.text("http_method").unwrap_or_default(), value),
        query: object("query_params"),
        headers: object("headers"),
        body,
        answer,
    }
}

/// A name as models may write it.
fn spoken(name: &str) -> String {
    let fits = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-');
    let name: String =
        name.chars().map(|character| if fits(character) { character } else { '_' }).take(LONGEST_NAME).collect();
    if name.is_empty() { "tool".to_owned() } else { name }
}
