//! What the JSON schema finds wrong with a component, in the words of the other diagnostics.

use hotcell_graph::diagnostic::{Diagnostic, Span};
use hotcell_graph::{advise_field, closest};
use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use serde_json::Value as Json;

use super::kinds::Kind;
use super::later;
use super::sources::{REFERENCED, VERSION};
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
    let mut problems: Vec<Diagnostic> =
        kind.validator().iter_errors(shallow).flat_map(|error| one(&error, kind, version, &place, &key)).collect();
    let data = &shallow["data"];
    let takes_objects = version == Version::V25_4_1 && matches!(kind.component_type(), "RemoteTool" | "ApiNode");
    if takes_objects && !data.is_null() && !data.is_object() {
        let message = format!("`data` must be an object, not {}, in {version}", described(data));
        let error = Diagnostic::error(message).at(&place(&["data".to_owned()]));
        let next = Version::V25_4_2;
        problems.push(error.help(format!("write an object, or `\"{VERSION}\": \"{next}\"`, which takes any value")));
    }
    problems
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
            unexpected.iter().map(|field| unknown_field(field, kind, version).at(&key(field))).collect()
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
            vec![error]
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

/// Fields that versions before the first published one had, and what became of them.
const FORMER: &[(&str, &str, &str)] = &[
    ("Flow", "state", "a flow has no state of its own: pass values on with data edges"),
    (
        "Agent",
        "agents",
        "an agent has `tools`: let several agents work together with `ManagerWorkers` or `Swarm`, or write WayFlow's \
         `ExtendedAgent`, which has `agents`",
    ),
    (
        "Agent",
        "flows",
        "an agent has `tools`: write WayFlow's `ExtendedAgent`, which has `flows`, or run the flow around the agent",
    ),
];

fn unknown_field(field: &str, kind: &Kind, version: Version) -> Diagnostic {
    let component_type = kind.component_type();
    let error = Diagnostic::error(format!("`{field}` is not a field of `{component_type}`"));
    let former = FORMER.iter().find(|(of, name, _)| *of == component_type && *name == field);
    if let Some((_, _, instead)) = former {
        return Diagnostic::error(format!(
            "`{field}` was a field of `{component_type}` before {}, the first version that was published",
            Version::V25_4_1
        ))
        .help(format!("remove it; {instead}"));
    }
    let is_known = |name: &&str| later::field(component_type, name).is_none_or(|field| field.since <= version);
    let fields: Vec<&str> = kind.fields().into_iter().filter(is_known).collect();
    match closest(field, [REFERENCED]) {
        Some(near) => error.help(format!("did you mean `{near}`?")),
        None => error.help(advise_field(field, fields)),
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
