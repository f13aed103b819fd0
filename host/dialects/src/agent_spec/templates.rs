//! Texts with names in them: placeholders, as the specification has them, or templates of the Jinja language, which the
//! reference runtime renders.

use hotcell_graph::diagnostic::Span;
use hotcell_graph::{Jinja, Object, Value};

use super::model::Property;
use super::placeholders;
use super::properties::{of_schema, text};

/// The fields that are such texts, and not parts of a request.
pub(super) const FIELDS: &[&str] =
    &["system_prompt", "additional_instructions", "prompt_template", "message", "message_template", "template"];

/// Whether the texts of a component are templates of the Jinja language: where the operator says so, and in the components
/// for which the reference runtime says so.
pub(super) fn are_jinja(component_type: &str, renders_jinja: bool) -> bool {
    renders_jinja
        || matches!(
            component_type,
            "PluginChoiceNode" | "PluginInputMessageNode" | "PluginOutputMessageNode" | "PluginTemplateNode"
        )
}

/// The template, if there is more in the text than placeholders.
pub(super) fn jinja(template: &str) -> Option<Result<Jinja, String>> {
    let has_more = !placeholders::more_than_placeholders(template).is_empty();
    has_more.then(|| Jinja::parse(template))
}

/// What has to be given for a text.
pub(super) fn inputs(template: &str, is_jinja: bool, span: &Span) -> Vec<Property> {
    let placeholders = placeholders::names(template);
    match jinja(template).filter(|_| is_jinja) {
        Some(Ok(jinja)) => jinja
            .names()
            .iter()
            .filter_map(|name| match placeholders.contains(&name.as_str()) {
                true => Some(text(name, span)),
                // It may be anything that a template can use.
                false => of_schema(name, &Value::Object(Object::default()), span).ok(),
            })
            .collect(),
        _ => placeholders.into_iter().map(|name| text(name, span)).collect(),
    }
}
