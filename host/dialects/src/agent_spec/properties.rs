//! Inputs and outputs: a list of JSON schemas, each with the name of a property as its title.

use std::sync::Arc;

use hotcell_graph::diagnostic::Span;
use hotcell_graph::types::Type;
use hotcell_graph::{List, Object, Value};

use super::model::Property;

/// What is wrong with a property, and where in it.
pub(super) struct Problem {
    pub(super) path: Vec<String>,
    pub(super) message: String,
    pub(super) help: Option<String>,
}

fn problem(path: &[&str], message: impl Into<String>) -> Problem {
    Problem { path: path.iter().map(|&step| step.to_owned()).collect(), message: message.into(), help: None }
}

/// The property of a schema, which is that object.
pub(super) fn property(schema: &Value, object: &Object, span: &Span) -> Result<Property, Problem> {
    let title: Arc<str> = match object.get("title") {
        None => {
            let help = Some("the title is the name of the property".to_owned());
            return Err(Problem { help, ..problem(&[], "it has no `title`") });
        }
        Some(Value::Text(title)) if title.is_empty() => return Err(problem(&["title"], "its `title` is empty")),
        Some(Value::Text(title)) => Arc::clone(title),
        Some(other) => return Err(problem(&["title"], format!("its `title` must be a text, not {}", other.a_kind()))),
    };
    if let Some(other) = object.get("description").filter(|value| !matches!(value, Value::Text(_) | Value::Null)) {
        return Err(problem(&["description"], format!("its `description` must be a text, not {}", other.a_kind())));
    }
    let ty = Type::of_schema(schema).map_err(|error| {
        // A property may be deep: its error says where in it.
        let message = match error.path.len() {
            0 | 1 => error.problem,
            _ => format!("`{}`: {}", error.path.join("."), error.problem),
        };
        Problem { path: error.path, message, help: None }
    })?;
    let default = object.get("default").cloned();
    if let Some(default) = &default
        && !ty.takes_default(default)
    {
        return Err(problem(&["default"], format!("its `default` must be of the type {ty}, and `{default}` is not")));
    }
    Ok(Property { title, ty: Arc::new(ty), default, schema: schema.clone(), span: span.clone() })
}

/// A property of that name and schema, whose title and place are given.
///
/// # Errors
/// When the schema is no type.
pub(super) fn of_schema(title: &str, schema: &Value, span: &Span) -> Result<Property, String> {
    let mut object = Object::default();
    object.insert("title", title.into());
    for (key, value) in schema.as_object().into_iter().flat_map(Object::iter).filter(|(key, _)| &***key != "title") {
        object.insert(Arc::clone(key), value.clone());
    }
    property(&Value::Object(object.clone()), &object, span).map_err(|problem| format!("`{title}`: {}", problem.message))
}

/// The property that a value describes, whose `title` is its name.
///
/// # Errors
/// When it describes none.
pub(super) fn described(value: &Value, span: &Span) -> Result<Property, String> {
    let Value::Object(object) = value else { return Err(format!("a property is an object, not {}", value.a_kind())) };
    property(value, object, span).map_err(|problem| problem.message)
}

/// The properties of a schema of an object.
///
/// # Errors
/// When the schema of one is no type.
pub(super) fn of_object(schema: &Value) -> Result<Vec<Property>, String> {
    let required = schema.as_object().and_then(|schema| schema.get("required")).and_then(Value::as_list);
    let is_required = |name: &str| required.is_none_or(|names| names.iter().any(|known| known.as_text() == Some(name)));
    let settled = |property: Property| match is_required(&property.title) || property.default.is_some() {
        true => Ok(property),
        false => optional(&property),
    };
    entries_of(schema)?.into_iter().map(settled).collect()
}

/// The properties of a schema of an object, whether they are required or not.
///
/// # Errors
/// When the schema of one is no type.
pub(super) fn entries_of(schema: &Value) -> Result<Vec<Property>, String> {
    let outer = schema.as_object();
    let properties = object_schema(schema).into_iter().flat_map(Object::iter);
    properties.map(|(name, schema)| of_schema(name, &with_definitions(schema, outer), &Span::none())).collect()
}

/// The schema with what the one around it defines, so that its references lead somewhere.
fn with_definitions(schema: &Value, outer: Option<&Object>) -> Value {
    let Value::Object(own) = schema else { return schema.clone() };
    let mut own = own.clone();
    for key in ["$defs", "definitions"] {
        if let (None, Some(definitions)) = (own.get(key), outer.and_then(|outer| outer.get(key))) {
            own.insert(key, definitions.clone());
        }
    }
    Value::Object(own)
}

/// The property for which nothing has to be given.
fn optional(property: &Property) -> Result<Property, String> {
    let null: Object = std::iter::once((Arc::from("type"), "null".into())).collect();
    let members: List = [property.schema.clone(), Value::Object(null)].into_iter().collect();
    let schema: Object =
        [(Arc::from("anyOf"), Value::List(members)), (Arc::from("default"), Value::Null)].into_iter().collect();
    of_schema(&property.title, &Value::Object(schema), &property.span)
}

/// A property that is a text.
pub(super) fn text(title: &str, span: &Span) -> Property {
    let schema: Object =
        [(Arc::from("title"), title.into()), (Arc::from("type"), Value::from("string"))].into_iter().collect();
    Property {
        title: title.into(),
        ty: Arc::new(Type::text()),
        default: None,
        schema: Value::Object(schema),
        span: span.clone(),
    }
}

/// A schema of a plugin as an object; none if it says nothing.
fn object_schema(schema: &Value) -> Option<&Object> {
    schema.as_object()?.get("properties")?.as_object()
}
