//! What type a component is of: one of the specification or one that a plugin provides.

use std::rc::Rc;
use std::sync::Arc;

use hotcell_graph::diagnostic::Span;
use hotcell_graph::ir::PluginNodeKind;
use hotcell_graph::json_schema::JsonSchema;
use jsonschema::Validator;
use serde_json::{Value as Json, json};

use super::generated::Generated;
use super::model::{Plugin, Property};
use super::properties;
use super::schema::{ComponentSchema, FieldKind, Schema};
use super::sources::{Located, PLUGIN_NAME, PLUGIN_VERSION, text_of};
use crate::surroundings::ComponentType;

/// The fields that components of all plugins have.
const COMMON: &[&str] = &["id", "name", "description", "metadata", "inputs", "outputs", "branches"];

/// A component type.
#[derive(Clone)]
pub(super) enum Kind {
    /// One of the specification
    Standard {
        /// Its name
        name: &'static str,
        /// Its schema
        schema: &'static ComponentSchema,
    },
    /// One that a plugin provides
    Plugin(Rc<PluginKind>),
}

/// A component type that a plugin provides.
pub(super) struct PluginKind {
    name: Arc<str>,
    kind: PluginNodeKind,
    validator: Validator,
    own_fields: Vec<String>,
    required: Vec<String>,
    inputs: Vec<Property>,
    outputs: Vec<Property>,
    branches: Vec<Arc<str>>,
}

impl Kind {
    /// Its name.
    pub(super) fn component_type(&self) -> &str {
        match self {
            Kind::Standard { name, .. } => name,
            Kind::Plugin(plugin) => &plugin.name,
        }
    }

    /// What a field holds; none if it has no such field.
    pub(super) fn field(&self, name: &str) -> Option<FieldKind> {
        match self {
            Kind::Standard { schema, .. } => schema.field(name).cloned(),
            Kind::Plugin(_) => Some(FieldKind::Value),
        }
    }

    /// Whether `null` may stand where a component does.
    pub(super) fn takes_null(&self, field: &str) -> bool {
        matches!(self, Kind::Standard { schema, .. } if schema.takes_null(field))
    }

    /// Whether `null` in a field is not the same as leaving it out.
    pub(super) fn keeps_null(&self, field: &str) -> bool {
        let Kind::Standard { name, .. } = self else { return false };
        match *name {
            "PluginGetChatHistoryNode" => matches!(field, "message_types" | "output_template"),
            "ConversationSummarizationTransform" => field == "max_num_messages",
            _ => false,
        }
    }

    /// Whether the value of a field may have components in it: in those that a plugin adds, the plugin says what belongs there.
    pub(super) fn takes_components(&self, field: &str) -> bool {
        match self {
            Kind::Standard { schema, .. } => {
                matches!(schema.field(field), Some(FieldKind::Pieces(_) | FieldKind::Described))
            }
            Kind::Plugin(_) => !COMMON.contains(&field),
        }
    }

    /// Whether a component of this type says which plugin has its type.
    pub(super) fn names_plugin(&self) -> bool {
        match self {
            Kind::Standard { schema, .. } => schema.plugin.is_some(),
            Kind::Plugin(_) => true,
        }
    }

    /// The names of its fields.
    pub(super) fn fields(&self) -> Vec<&str> {
        match self {
            Kind::Standard { schema, .. } => schema.fields.iter().map(|(name, _)| name.as_str()).collect(),
            Kind::Plugin(plugin) => {
                COMMON.iter().copied().chain(plugin.own_fields.iter().map(String::as_str)).collect()
            }
        }
    }

    /// Whether it has inputs and outputs.
    pub(super) fn has_io(&self) -> bool {
        match self {
            Kind::Standard { schema, .. } => schema.field("inputs").is_some(),
            Kind::Plugin(_) => true,
        }
    }

    /// Whether `null` in a field is no matter of its schema.
    pub(super) fn may_leave_out(&self, field: &str) -> bool {
        match self {
            Kind::Standard { .. } => false,
            Kind::Plugin(plugin) => {
                plugin.own_fields.iter().any(|own| own == field) && !plugin.required.iter().any(|own| own == field)
            }
        }
    }

    /// A value that its schema takes for a field whose own value could not be read.
    pub(super) fn placeholder(&self, field: &str) -> Json {
        let takes = |value: &Json| {
            !self
                .validator()
                .iter_errors(&json!({ field: value }))
                .any(|error| error.instance_path().as_str().strip_prefix('/').is_some_and(|path| path == field))
        };
        [json!(""), json!({}), json!([]), json!(0)].into_iter().find(takes).unwrap_or(Json::Null)
    }

    /// Validates the component with its children replaced.
    pub(super) fn validator(&self) -> &Validator {
        match self {
            Kind::Standard { schema, .. } => schema.validator(),
            Kind::Plugin(plugin) => &plugin.validator,
        }
    }

    /// The plugin that a component of this type names.
    pub(super) fn plugin(&self, at: Located<'_>) -> Option<Plugin> {
        self.names_plugin().then(|| Plugin {
            name: text_of(at, PLUGIN_NAME).unwrap_or_default(),
            version: text_of(at, PLUGIN_VERSION).unwrap_or_default(),
        })
    }

    /// Whether a type that a plugin provides is in a family.
    pub(super) fn is_in(&self, family: &str) -> bool {
        match self {
            Kind::Standard { name, .. } => Schema::get().is_in(name, family),
            Kind::Plugin(plugin) => match plugin.kind {
                PluginNodeKind::Node => matches!(family, "Node" | "ComponentWithIO"),
                PluginNodeKind::Tool => matches!(family, "Tool" | "ComponentWithIO"),
                PluginNodeKind::Connector | PluginNodeKind::Callback => {
                    matches!(family, "Node" | "Tool" | "ComponentWithIO")
                }
            },
        }
    }
}

impl PluginKind {
    pub(super) fn of(name: &str, provided: &ComponentType) -> Result<Self, String> {
        let fields = Json::from(&provided.fields);
        let own = fields["properties"].as_object().cloned().unwrap_or_default();
        let own_fields: Vec<String> = own.keys().cloned().collect();
        let texts = |list: &Json| -> Vec<String> {
            list.as_array().into_iter().flatten().filter_map(Json::as_str).map(str::to_owned).collect()
        };
        let required = texts(&fields["required"]);
        let mut schema = if fields.is_object() { fields.clone() } else { json!({}) };
        let common = json!({
            "id": {"type": ["string", "null"]}, "name": {"type": "string"},
            "description": {"type": ["string", "null"]}, "metadata": {"type": ["object", "null"]},
            "inputs": {"type": ["array", "null"], "items": {"type": "object"}},
            "outputs": {"type": ["array", "null"], "items": {"type": "object"}},
            "branches": {"type": ["array", "null"], "items": {"type": "string"}},
        });
        let mut properties = common.as_object().cloned().unwrap_or_default();
        properties.extend(own);
        schema["properties"] = Json::Object(properties);
        schema["required"] = std::iter::once("name".to_owned()).chain(required.iter().cloned()).collect();
        if fields.get("additionalProperties").is_none() {
            schema["additionalProperties"] = Json::Bool(false);
        }
        let validator = JsonSchema::compile(&schema)
            .map_err(|error| error.to_string())?
            .into_validator()
            .ok_or("the schema of its fields refers to itself, which is not supported")?;
        let branches = match &provided.branches[..] {
            [] if provided.kind == PluginNodeKind::Tool => Vec::new(),
            [] => vec!["next".into()],
            branches => branches.iter().map(|branch| branch.as_str().into()).collect(),
        };
        Ok(PluginKind {
            name: name.into(),
            kind: provided.kind,
            validator,
            own_fields,
            required,
            inputs: properties::of_object(&provided.inputs)?,
            outputs: properties::of_object(&provided.outputs)?,
            branches,
        })
    }

    /// What a component of this type has.
    pub(super) fn generated(&self, span: &Span) -> Generated {
        let at = |properties: &[Property]| {
            Some(properties.iter().map(|property| Property { span: span.clone(), ..property.clone() }).collect())
        };
        // A plugin does not say what comes out of a tool: that is only declared.
        let outputs = if self.kind == PluginNodeKind::Tool { None } else { at(&self.outputs) };
        Generated { inputs: at(&self.inputs), outputs, branches: Some(self.branches.clone()) }
    }
}
