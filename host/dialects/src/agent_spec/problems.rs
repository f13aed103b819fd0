//! What the JSON schema finds wrong with a component, in the words of the other diagnostics.

use hotcell_graph::closest;
use hotcell_graph::diagnostic::{Diagnostic, Span};
use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use serde_json::Value as Json;

use super::kinds::Kind;
use super::later;
use super::sources::REFERENCED;
use super::versions::Version;

/// Validates a component whose children are replaced. `place` gives the span of a path in its text, `key` that of one of
/// its keys or else of what tells its type.
pub(super) fn of(
    shallow: &Json,
    kind: &Kind,
    version: Version,
    place: impl Fn(&[String]) -> Span,
    key: impl Fn(&str) -> Span,
) -> Vec<Diagnostic> {
    kind.validator().iter_errors(shallow).flat_map(|error| one(&error, kind, version, &place, &key)).collect()
}

fn one(
    error: &ValidationError<'_>,
    kind: &Kind,
    version: Version,
    place: &impl Fn(&[String]) -> Span,
    key: &impl Fn(&str) -> Span,
) -> Vec<Diagnostic> {
    let path: Vec<String> = error.instance_path().as_str().split('/').skip(1).map(unescaped).collect();
    let name = path.join(".");
    match error.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected } if path.is_empty() => {
            unexpected.iter().map(|field| unknown_field(field, kind).at(&key(field))).collect()
        }
        ValidationErrorKind::Required { property } => {
            let field = property.as_str().unwrap_or_default();
            let inside = if path.is_empty() { String::new() } else { format!(" in `{name}`") };
            let error = Diagnostic::error(format!("the field `{field}` is missing{inside}")).help(format!(
                "`{field}` is required in {} `{}`",
                article(kind.component_type()),
                kind.component_type()
            ));
            vec![error.at(&if path.is_empty() { key("component_type") } else { place(&path) })]
        }
        ValidationErrorKind::Type { kind: expected } => {
            let error = Diagnostic::error(format!(
                "`{name}` must be {}, not {}",
                expected_types(expected),
                described(error.instance())
            ))
            .at(&place(&path));
            let takes_more = path.first().is_some_and(|field| field == "data") && version > Version::V25_4_1;
            let more = format!("later versions than {} allow more here, but it is not supported", Version::V25_4_1);
            vec![if takes_more { error.help(more) } else { error }]
        }
        ValidationErrorKind::Enum { options } => {
            let names: Vec<&str> = options.as_array().into_iter().flatten().filter_map(Json::as_str).collect();
            let given = error.instance().as_str().map_or_else(|| error.instance().to_string(), str::to_owned);
            let all = names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
            let near = closest(&given, names).map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
            let error = Diagnostic::error(format!("`{name}` cannot be `{given}`")).at(&place(&path));
            vec![error.help(format!("{near}It is one of {all}"))]
        }
        _ => vec![Diagnostic::error(format!("`{name}`: {error}")).at(&place(&path))],
    }
}

fn unknown_field(field: &str, kind: &Kind) -> Diagnostic {
    let component_type = kind.component_type();
    let error = Diagnostic::error(format!("`{field}` is not a field of `{component_type}`"));
    if let Some(later) = later::field(component_type, field) {
        return error.help(format!("it is one since {}", later.since));
    }
    let fields = kind.fields();
    match closest(field, fields.iter().copied().chain([REFERENCED])) {
        Some(near) => error.help(format!("did you mean `{near}`?")),
        None => {
            let all: Vec<String> = fields.iter().map(|name| format!("`{name}`")).collect();
            error.help(format!("its fields are {}", all.join(", ")))
        }
    }
}

/// A step of a JSON pointer.
fn unescaped(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}

fn expected_types(expected: &TypeKind) -> String {
    let names: Vec<String> = match expected {
        TypeKind::Single(one) => vec![one.to_string()],
        TypeKind::Multiple(several) => {
            let mut names: Vec<String> = several.iter().map(|one| one.to_string()).collect();
            names.sort_by_key(|name| name == "null");
            names
        }
    };
    let words: Vec<&str> = names
        .iter()
        .map(|name| match name.as_str() {
            "string" => "a text",
            "object" => "an object",
            "array" => "a list",
            "boolean" => "`true` or `false`",
            "integer" => "a whole number",
            "number" => "a number",
            other => other,
        })
        .collect();
    words.join(" or ")
}

fn described(value: &Json) -> &'static str {
    match value {
        Json::Null => "null",
        Json::Bool(_) => "a boolean",
        Json::Number(_) => "a number",
        Json::String(_) => "a text",
        Json::Array(_) => "a list",
        Json::Object(_) => "an object",
    }
}

/// The article before the name of a type.
pub(super) fn article(component_type: &str) -> &'static str {
    if component_type.starts_with(['A', 'E', 'I', 'O', 'U']) { "an" } else { "a" }
}
