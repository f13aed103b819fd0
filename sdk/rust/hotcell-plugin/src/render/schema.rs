//! Renders schemas.

use super::Writer;
use crate::schema::{Field, Object, Schema};

impl Writer<'_> {
    /// A schema in which `about` (a field's description) stands before the type's own description.
    pub(super) const fn schema(&mut self, schema: &Schema, about: &str) {
        self.text("{");
        let own = match schema {
            Schema::Choice { description, .. } | Schema::OneOf { description, .. } => *description,
            Schema::Object(object) => object.description,
            Schema::Nullable(Schema::Choice { description, .. }) => *description,
            _ => "",
        };
        match (about.is_empty(), own.is_empty()) {
            (true, _) => self.description(own),
            (false, true) => self.description(about),
            (false, false) => self.texts(&["\"description\":\"", about, "\\n", own, "\","]),
        }
        self.members(schema, false);
        self.text("}");
    }

    /// The members of a schema without its description. Something always follows the description, so that no comma
    /// is left over.
    const fn members(&mut self, schema: &Schema, or_null: bool) {
        match schema {
            Schema::Any => {
                self.text(r#""type":["object","array","string","number","boolean","null"]"#);
            }
            Schema::Null => self.text(r#""type":"null""#),
            Schema::Boolean => self.kind("boolean", or_null),
            Schema::Integer { minimum, maximum } => {
                self.kind("integer", or_null);
                if let Some(minimum) = minimum {
                    self.text(",\"minimum\":");
                    self.integer(*minimum);
                }
                if let Some(maximum) = maximum {
                    self.text(",\"maximum\":");
                    self.integer(*maximum);
                }
            }
            Schema::Number => self.kind("number", or_null),
            Schema::Text => self.kind("string", or_null),
            Schema::Constant(text) => self.texts(&["\"const\":\"", text, "\""]),
            Schema::Choice { texts, .. } => {
                self.kind("string", or_null);
                self.text(",\"enum\":");
                self.list(texts);
                if or_null {
                    // The list is reopened: its closing bracket is the last byte written.
                    self.length -= 1;
                    self.text(",null]");
                }
            }
            Schema::List(items) => {
                self.kind("array", or_null);
                self.text(",\"items\":");
                self.schema(items, "");
            }
            Schema::Map(values) => {
                self.kind("object", or_null);
                self.text(",\"additionalProperties\":");
                self.schema(values, "");
            }
            Schema::Object(object) => {
                self.kind("object", or_null);
                self.object(object);
            }
            Schema::Nullable(inner) => match inner {
                Schema::Constant(_) | Schema::OneOf { .. } => {
                    self.text("\"anyOf\":[");
                    self.schema(inner, "");
                    self.text(",{\"type\":\"null\"}]");
                }
                _ => self.members(inner, true),
            },
            Schema::OneOf { forms, .. } => {
                self.text("\"oneOf\":[");
                let mut index = 0;
                while index < forms.len() {
                    self.comma(index);
                    self.schema(&forms[index], "");
                    index += 1;
                }
                self.text("]");
            }
        }
    }

    const fn kind(&mut self, kind: &str, or_null: bool) {
        if or_null {
            self.texts(&["\"type\":[\"", kind, "\",\"null\"]"]);
        } else {
            self.texts(&["\"type\":\"", kind, "\""]);
        }
    }

    const fn object(&mut self, object: &Object) {
        self.text(",\"properties\":{");
        let mut index = 0;
        while index < object.fields.len() {
            self.comma(index);
            self.field(&object.fields[index]);
            index += 1;
        }
        self.text("},\"required\":[");
        let (mut index, mut written) = (0, 0);
        while index < object.fields.len() {
            if object.fields[index].required {
                self.comma(written);
                self.texts(&["\"", object.fields[index].name, "\""]);
                written += 1;
            }
            index += 1;
        }
        self.texts(&["],\"additionalProperties\":", if object.open { "true" } else { "false" }]);
    }

    const fn field(&mut self, field: &Field) {
        self.texts(&["\"", field.name, "\":"]);
        self.schema(field.schema, field.description);
        if !field.default.is_empty() {
            // The schema is reopened: its closing brace is the last byte written.
            self.length -= 1;
            self.texts(&[",\"default\":", field.default, "}"]);
        }
    }
}
