//! What type a component is of: one of the specification or one that a plugin provides.

use std::rc::Rc;
use std::sync::Arc;

use hotcell_graph::Value;
use hotcell_graph::closest;
use hotcell_graph::diagnostic::{Diagnostic, Span};
use hotcell_graph::ir::PluginNodeKind;
use hotcell_graph::json_schema::JsonSchema;
use jsonschema::Validator;
use serde_json::{Value as Json, json};

use super::builder::{Builder, PLUGIN_NAME, PLUGIN_VERSION, text_of};
use super::generated::Generated;
use super::later;
use super::model::{Plugin, Property};
use super::properties;
use super::schema::{ComponentSchema, FieldKind, Schema};
use super::sources::{COMPONENT_TYPE, Located, VERSION};
use crate::surroundings::{ComponentState, ComponentType};

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
    fn of(name: &str, provided: &ComponentType) -> Result<Self, String> {
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

impl<'d> Builder<'_, 'd> {
    /// The type of a component; none, with an error, if there is no such type or it cannot be used here.
    pub(super) fn kind(&mut self, at: Located<'d>) -> Option<Kind> {
        let place = at.node.get(COMPONENT_TYPE).map_or(at.node.place, |entry| entry.value.place);
        let span = self.sources.span(at.document, place);
        let Some(name) = text_of(at, COMPONENT_TYPE) else {
            let what = at.node.get(COMPONENT_TYPE).map_or("nothing", |entry| entry.value.describe());
            self.report(Diagnostic::error(format!("`{COMPONENT_TYPE}` must be a text, not {what}")).at(&span));
            return None;
        };
        let plugin = text_of(at, PLUGIN_NAME).filter(|plugin| !plugin.is_empty());
        if let Some((known, schema)) = Schema::get().component(&name) {
            if let Some(error) = self.cannot_be(known, schema, plugin.as_deref()) {
                self.report(error.at(&span));
                return None;
            }
            return Some(Kind::Standard { name: known, schema });
        }
        let Some(plugin) = plugin else {
            let error = self.unknown(&name);
            self.report(error.at(&span));
            return None;
        };
        self.of_plugin(at, &name, plugin, &span)
    }

    /// Why a component whose type is known cannot be of it.
    fn cannot_be(&self, name: &str, schema: &ComponentSchema, plugin: Option<&str>) -> Option<Diagnostic> {
        if let Some(own) = schema.plugin.as_deref().filter(|own| plugin != Some(*own)) {
            let error = Diagnostic::error(format!("`{name}` is a component of the plugin `{own}`"));
            return Some(error.help(format!("write `{PLUGIN_NAME}: {own}` and `{PLUGIN_VERSION}` beside it")));
        }
        let (version, since) = (self.version(), later::type_since(name)?);
        (version < since).then(|| {
            Diagnostic::error(format!(
                "`{name}` is a component of {since}, and the configuration is written for {version}"
            ))
            .help(format!("write `\"{VERSION}\": \"{since}\"` at the top of the file"))
        })
    }

    fn of_plugin(&mut self, at: Located<'d>, name: &Arc<str>, plugin: Arc<str>, span: &Span) -> Option<Kind> {
        let Some(version) = text_of(at, PLUGIN_VERSION) else {
            let error = Diagnostic::error(format!("the field `{PLUGIN_VERSION}` is missing"))
                .at(span)
                .help(format!("a component of a plugin names it with `{PLUGIN_NAME}` and `{PLUGIN_VERSION}`"));
            self.report(error);
            return None;
        };
        if let Some(kind) = self.kinds.get(&(Arc::clone(&plugin), Arc::clone(name))) {
            return Some(kind.clone());
        }
        let error = match self.surroundings.component(&plugin, name) {
            ComponentState::Usable(provided) => match PluginKind::of(name, &provided) {
                Ok(kind) => {
                    if !provided.version.is_empty() && provided.version != *version {
                        let warning = Diagnostic::warning(format!(
                            "the component is written for version {version} of the plugin `{plugin}`, and version {} \
                             is here",
                            provided.version
                        ));
                        self.report(warning.at(span));
                    }
                    let kind = Kind::Plugin(Rc::new(kind));
                    self.kinds.insert((plugin, Arc::clone(name)), kind.clone());
                    return Some(kind);
                }
                Err(reason) => Diagnostic::error(format!(
                    "what the plugin `{plugin}` says of its component type `{name}` cannot be used: {reason}"
                )),
            },
            ComponentState::Missing(near) => missing(name, &plugin, near),
            ComponentState::WrongPlugin(other) => {
                Diagnostic::error(format!("no plugin `{plugin}` provides `{name}`: the plugin `{other}` does"))
                    .help(format!("write `\"{PLUGIN_NAME}\": \"{other}\"` if that is the one which is meant"))
            }
            ComponentState::Unusable(reason) => Diagnostic::error(reason),
        };
        self.report(error.at(span));
        None
    }

    /// The error for a type that the specification does not have and no plugin is named for.
    fn unknown(&self, name: &str) -> Diagnostic {
        if Schema::get().is_abstract(name) {
            return Diagnostic::error(format!("`{name}` is an abstract type: no component is of it"))
                .help("write the name of a type that belongs to it");
        }
        if let ComponentState::WrongPlugin(plugin) = self.surroundings.component("", name) {
            return Diagnostic::error(format!("a component of the type `{name}` does not name a plugin")).help(
                format!("write `{PLUGIN_NAME}` and `{PLUGIN_VERSION}`; the plugin `{plugin}` provides this type"),
            );
        }
        // A type that the version does not have would be refused next.
        let known = Schema::get().component_types().filter(|name| {
            let (_, schema) = Schema::get().component(name).unzip();
            schema.is_some_and(|schema| self.cannot_be(name, schema, None).is_none())
        });
        let error = Diagnostic::error(format!("there is no component type `{name}`"));
        match closest(name, known) {
            Some(near) => error.help(format!("did you mean `{near}`?")),
            None => error.help(format!("a component of a plugin names it with `{PLUGIN_NAME}`")),
        }
    }
}

/// The error for a component type of a plugin that is not here.
fn missing(name: &str, plugin: &str, near: Option<String>) -> Diagnostic {
    // Its plugins had other names in earlier versions.
    if let Some(instead) = Schema::get().instead_of(name) {
        return Diagnostic::error(format!("`{name}` of WayFlow's plugin `{plugin}` is not supported")).help(instead);
    }
    let error = Diagnostic::error(format!("the plugin `{plugin}` with the component type `{name}` is not here"));
    match near {
        Some(near) => error.help(format!("did you mean `{near}`?")),
        None => error.help("install the plugin, or use another component"),
    }
}

/// A schema of a plugin as an object; none if it says nothing.
pub(super) fn object_schema(schema: &Value) -> Option<&hotcell_graph::Object> {
    schema.as_object()?.get("properties")?.as_object()
}
