//! The JSON schema of the specification, as far as a reader needs it: `schema/26.3.1.json`, made by `schema/reduce.py`; and
//! in the same form `schema/wayflow.json`, the plugin components of its reference runtime that can be run here.

use std::collections::HashMap;
use std::sync::OnceLock;

use jsonschema::Validator;
use serde_json::Value as Json;

/// The component types of the specification.
pub(super) struct Schema {
    components: HashMap<String, ComponentSchema>,
    families: HashMap<String, Vec<String>>,
    /// Plugin components of the reference runtime that cannot be run here, each with what to do instead
    refused: HashMap<String, String>,
}

/// A component type.
pub(super) struct ComponentSchema {
    /// The kind of each of its fields, in the order of the specification
    pub(super) fields: Vec<(String, FieldKind)>,
    /// The plugin that has it, if it is none of the specification
    pub(super) plugin: Option<String>,
    own: Json,
    validator: OnceLock<Validator>,
}

/// What a field holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FieldKind {
    /// A component of this family
    Component(String),
    /// A list of components of this family
    Components(String),
    /// A list in which components of this family stand, in lists or beside texts
    Pieces(String),
    /// JSON in which components of any type may stand. They are read as they are written and never run as components
    Described,
    /// Plain JSON
    Value,
}

impl Schema {
    /// The schema; it is read once in a process.
    pub(super) fn get() -> &'static Schema {
        static SCHEMA: OnceLock<Schema> = OnceLock::new();
        SCHEMA.get_or_init(|| {
            let json: Json = serde_json::from_str(include_str!("schema/26.3.1.json")).expect("it is JSON");
            let wayflow: Json = serde_json::from_str(include_str!("schema/wayflow.json")).expect("it is JSON");
            let texts = |list: &Json| -> Vec<String> {
                list.as_array().into_iter().flatten().filter_map(Json::as_str).map(str::to_owned).collect()
            };
            let mut families: HashMap<String, Vec<String>> =
                entries(&json["families"]).map(|(name, types)| (name.clone(), texts(types))).collect();
            for (name, own) in entries(&wayflow["components"]) {
                for family in texts(&own["families"]) {
                    families.entry(family).or_default().push(name.clone());
                }
            }
            let all = entries(&json["components"]).chain(entries(&wayflow["components"]));
            let components = all.map(|(name, own)| (name.clone(), ComponentSchema::of(own))).collect();
            let refused = entries(&wayflow["refused"])
                .flat_map(|(_, own)| {
                    let instead = own["instead"].as_str().unwrap_or_default().to_owned();
                    texts(&own["types"]).into_iter().map(move |name| (name, instead.clone()))
                })
                .collect();
            Schema { components, families, refused }
        })
    }

    /// A concrete component type, and its name.
    pub(super) fn component(&'static self, component_type: &str) -> Option<(&'static str, &'static ComponentSchema)> {
        self.components.get_key_value(component_type).map(|(name, schema)| (name.as_str(), schema))
    }

    /// What to do instead of writing a component type of the reference runtime's plugins that cannot be run here.
    pub(super) fn instead_of(&self, component_type: &str) -> Option<&str> {
        self.refused.get(component_type).map(String::as_str)
    }

    /// The names of all concrete component types.
    pub(super) fn component_types(&self) -> impl Iterator<Item = &str> {
        self.components.keys().map(String::as_str)
    }

    /// The abstract types, which are families and nothing else.
    pub(super) fn is_abstract(&self, name: &str) -> bool {
        self.families.contains_key(name) && !self.components.contains_key(name)
    }

    /// Whether a component type of the specification is in a family.
    pub(super) fn is_in(&self, component_type: &str, family: &str) -> bool {
        self.families.get(family).is_some_and(|types| types.iter().any(|known| known == component_type))
    }
}

impl ComponentSchema {
    fn of(own: &Json) -> Self {
        let kind = |field: &Json| {
            let family = |key: &str| field[key].as_str().map(str::to_owned);
            let one = family("x-component").map(FieldKind::Component);
            let list = family("x-components").map(FieldKind::Components);
            let described = (field["x-described"] == Json::Bool(true)).then_some(FieldKind::Described);
            one.or(list).or(family("x-pieces").map(FieldKind::Pieces)).or(described).unwrap_or(FieldKind::Value)
        };
        ComponentSchema {
            fields: entries(&own["properties"]).map(|(name, field)| (name.clone(), kind(field))).collect(),
            plugin: own["plugin"].as_str().map(str::to_owned),
            own: own.clone(),
            validator: OnceLock::new(),
        }
    }

    /// Validates a component whose children are replaced by any object. It is made when the first component of the type
    /// comes: most documents use few of them.
    pub(super) fn validator(&self) -> &Validator {
        self.validator.get_or_init(|| jsonschema::options().offline().build(&self.own).expect("it is a JSON schema"))
    }

    /// Whether a field may be `null`.
    pub(super) fn takes_null(&self, field: &str) -> bool {
        let types = &self.own["properties"][field]["type"];
        types.as_array().is_some_and(|types| types.iter().any(|kind| kind == "null"))
    }

    /// The kind of a field.
    pub(super) fn field(&self, name: &str) -> Option<&FieldKind> {
        self.fields.iter().find(|(known, _)| known == name).map(|(_, kind)| kind)
    }
}

fn entries(json: &Json) -> impl Iterator<Item = (&String, &Json)> {
    json.as_object().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_family_that_a_field_takes_has_types_with_schemas() {
        let schema = Schema::get();
        for (name, component) in &schema.components {
            component.validator();
            for (field, kind) in &component.fields {
                let (FieldKind::Component(family) | FieldKind::Components(family) | FieldKind::Pieces(family)) = kind
                else {
                    continue;
                };
                let types = schema.families.get(family).map(Vec::as_slice).unwrap_or_default();
                assert!(!types.is_empty(), "{name}.{field}");
                assert!(types.iter().all(|name| schema.components.contains_key(name)), "{name}.{field}");
            }
        }
        assert_eq!(schema.components.values().filter(|component| component.plugin.is_none()).count(), 62);
    }
}
