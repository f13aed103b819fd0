//! The types that `yields`, `inputs` and data structures declare.

use hotcell_graph::closest;
use hotcell_graph::{Key, List, Object, Value};

use crate::document::Need::{Optional, Required};
use crate::document::{Entry, Fields, Kind, Node, Owner, Reader};

/// The words for types.
pub(super) const TYPES: [&str; 6] = ["string", "number", "boolean", "list", "array", "object"];
/// How deeply types may be nested.
const MAX_DEPTH: usize = 32;

/// A declared field.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Field {
    pub(super) shape: Shape,
    /// Whether it may be `null`
    pub(super) nullable: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Shape {
    Text,
    Number,
    Boolean,
    /// With what its items are
    List(Option<Box<Field>>),
    /// With the fields that it has to have
    Object(Option<Vec<(Key, Field)>>),
    /// A data structure of the mesh
    Structure(Key),
    /// What is wrong with it is reported
    Broken,
}

impl Field {
    fn of(shape: Shape) -> Self {
        Field { shape, nullable: false }
    }

    /// The value of a field that was left out.
    pub(super) fn default(&self) -> Value {
        match &self.shape {
            Shape::Text => Value::from(""),
            Shape::Number => Value::from(0),
            Shape::Boolean => Value::Bool(false),
            Shape::List(_) => Value::List(List::default()),
            Shape::Object(_) | Shape::Structure(_) | Shape::Broken => Value::Object(Object::default()),
        }
    }

    /// Whether it is a data structure, or holds one.
    pub(super) fn names_structure(&self) -> bool {
        match &self.shape {
            Shape::Structure(_) => true,
            Shape::List(items) => items.as_ref().is_some_and(|items| items.names_structure()),
            Shape::Object(fields) => fields.iter().flatten().any(|(_, field)| field.names_structure()),
            Shape::Text | Shape::Number | Shape::Boolean | Shape::Broken => false,
        }
    }

    /// The JSON schema of its values, where a data structure is any object.
    pub(super) fn schema(&self) -> Value {
        self.schema_with(&mut |_| of_type("object"))
    }

    /// The JSON schema of its values, with what stands for each data structure.
    pub(super) fn schema_with(&self, structure: Structured<'_>) -> Value {
        let schema = match &self.shape {
            Shape::Text => of_type("string"),
            Shape::Number => of_type("number"),
            Shape::Boolean => of_type("boolean"),
            Shape::List(None) => of_type("array"),
            Shape::List(Some(items)) => {
                object([("items", items.schema_with(structure)), ("type", Value::from("array"))])
            }
            Shape::Object(Some(fields)) => of_fields_with(fields, structure),
            Shape::Object(None) | Shape::Broken => of_type("object"),
            Shape::Structure(name) => structure(name),
        };
        with_null(schema, self.nullable)
    }
}

/// What stands for a data structure in a JSON schema.
pub(super) type Structured<'s> = &'s mut dyn FnMut(&Key) -> Value;

/// The JSON schema of an object that has to have all of these.
pub(super) fn of_fields(fields: &[(Key, Field)]) -> Value {
    of_fields_with(fields, &mut |_| of_type("object"))
}

fn of_fields_with(fields: &[(Key, Field)], structure: Structured<'_>) -> Value {
    let required: Vec<Key> = fields.iter().map(|(name, _)| name.clone()).collect();
    with_fields(fields, &required, structure)
}

/// The JSON schema of an object with these, of which it has to have those that are required.
pub(super) fn with_fields(fields: &[(Key, Field)], required: &[Key], structure: Structured<'_>) -> Value {
    let required: List = required.iter().map(|name| Value::Text(name.clone())).collect();
    let properties: Object =
        fields.iter().map(|(name, field)| (name.clone(), field.schema_with(&mut *structure))).collect();
    object([
        ("type", Value::from("object")),
        ("properties", Value::Object(properties)),
        ("required", Value::List(required)),
    ])
}

/// The JSON schema of all values of a type.
pub(super) fn of_type(word: &str) -> Value {
    object([("type", Value::from(word))])
}

pub(super) fn object<const N: usize>(entries: [(&str, Value); N]) -> Value {
    Value::Object(entries.into_iter().map(|(key, value)| (Key::from(key), value)).collect())
}

fn with_null(schema: Value, nullable: bool) -> Value {
    match schema {
        schema if !nullable => schema,
        Value::Object(mut object) if object.get("type").is_some() => {
            let word = object.get("type").cloned().unwrap_or_default();
            object.insert("type", Value::List([word, Value::from("null")].into_iter().collect()));
            Value::Object(object)
        }
        schema => object([("anyOf", Value::List([schema, of_type("null")].into_iter().collect()))]),
    }
}

/// Whose types are read.
pub(super) struct Declared<'a> {
    /// `yields` or `inputs`, or what a structure calls it
    pub(super) block: &'a str,
    /// The data structures of the mesh that may stand for a type
    pub(super) structures: &'a [Key],
}

impl Declared<'_> {
    /// The fields of a block.
    pub(super) fn fields<'d>(&self, fields: &mut Fields<'_, 'd>, name: &'static str) -> Vec<(Key, Field)> {
        let Some((entries, _)) = fields.map(name, Optional) else { return Vec::new() };
        self.entries(fields.reader(), entries, fields.owner(), 0)
    }

    fn entries<'d>(&self, reader: &Reader<'d>, entries: &'d [Entry], owner: &Owner, depth: usize) -> Vec<(Key, Field)> {
        entries
            .iter()
            .map(|entry| (entry.key.clone(), self.field(reader, &entry.value, &entry.key, owner, depth)))
            .collect()
    }

    /// A type by its word, or with its parts.
    pub(super) fn field<'d>(
        &self,
        reader: &Reader<'d>,
        node: &'d Node,
        name: &str,
        owner: &Owner,
        depth: usize,
    ) -> Field {
        let report = |message: String, help: String| {
            let mut error =
                hotcell_graph::diagnostic::Diagnostic::error(message).at(&reader.span(node.place)).help(help);
            error.node = owner.node.as_deref().map(str::to_owned);
            reader.report(error);
            Field::of(Shape::Broken)
        };
        let block = self.block;
        if depth > MAX_DEPTH {
            return report(format!("`{name}` of {block} is nested more than {MAX_DEPTH} deep"), "nest less".to_owned());
        }
        match &node.kind {
            Kind::Text(word) => match self.word(&word.value) {
                Some(shape) => Field::of(shape),
                None => {
                    let known = TYPES.iter().copied().chain(self.structures.iter().map(|name| &**name));
                    let help = match closest(&word.value, known) {
                        Some(near) => format!("did you mean `{near}`?"),
                        None => format!("types are `{}`", TYPES.join("`, `")),
                    };
                    report(format!("`{name}` of {block} cannot have the type `{}`", word.value), help)
                }
            },
            Kind::Map(_) => {
                let what = format!("the type of `{name}`");
                let owner = Owner { what, node: owner.node.clone(), place: node.place };
                let Some(mut fields) = reader.fields(node, owner) else { return Field::of(Shape::Broken) };
                let field = self.nested(&mut fields, name, depth);
                fields.finish(|_| None);
                field
            }
            _ => report(
                format!("`{name}` of {block} must be a type, not {}", node.describe()),
                format!("types are `{}`, or `{{type: object, fields: ...}}`", TYPES.join("`, `")),
            ),
        }
    }

    fn word(&self, word: &str) -> Option<Shape> {
        Some(match word {
            "string" => Shape::Text,
            "number" => Shape::Number,
            "boolean" => Shape::Boolean,
            "list" | "array" => Shape::List(None),
            "object" => Shape::Object(None),
            word => Shape::Structure(self.structures.iter().find(|name| &***name == word)?.clone()),
        })
    }

    fn nested(&self, fields: &mut Fields<'_, '_>, name: &str, depth: usize) -> Field {
        let reader = fields.reader();
        let word = fields.node("type", Required);
        let owner = fields.owner().clone();
        let mut field = match word {
            Some(node) if matches!(node.kind, Kind::Text(_)) => self.field(reader, node, name, &owner, depth + 1),
            Some(node) => {
                reader.wrong_type(node, "`type`", "a text", &owner);
                Field::of(Shape::Broken)
            }
            None => Field::of(Shape::Broken),
        };
        let of_object = fields.map("fields", Optional);
        let items = fields.node("items", Optional);
        let is_broken = field.shape == Shape::Broken;
        match (&mut field.shape, of_object, items) {
            (Shape::Object(inner), Some((entries, _)), None) => {
                *inner = Some(self.entries(reader, entries, &owner, depth + 1));
            }
            (Shape::List(inner), None, Some(items)) => {
                *inner = Some(Box::new(self.field(reader, items, name, &owner, depth + 1)));
            }
            (_, None, None) => {}
            _ if is_broken => {}
            (_, of_object, items) => {
                let place = of_object.map(|(_, place)| place).or(items.map(|items| items.place));
                let message = format!("`{name}` has parts that its type does not have");
                let error = fields.error(message, &reader.span(place.unwrap_or(owner.place)));
                reader.report(error.help("`fields` belong to `type: object`, `items` to `type: list`"));
            }
        }
        field.nullable = fields.flag("nullable", Optional).is_some_and(|flag| flag.value);
        fields.ignore("description");
        field
    }
}
