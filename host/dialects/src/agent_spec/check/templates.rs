//! Texts with placeholders that look as if they were written for a template language which has more.

use hotcell_graph::Value;
use hotcell_graph::diagnostic::{Diagnostic, Span};

use super::super::model::{ComponentId, Field};
use super::super::placeholders::{MOST, more_than_placeholders, names};
use super::super::templates::{FIELDS as RENDERED, are_jinja, jinja};
use super::Checker;

/// The fields whose texts are templates.
const FIELDS: &[&str] = &[
    "system_prompt",
    "additional_instructions",
    "prompt_template",
    "message",
    "message_template",
    "template",
    "url",
    "data",
    "query_params",
    "headers",
];

impl Checker<'_> {
    /// Warns of what reaches a model or a server as it is written although it looks as if it did not.
    pub(super) fn templates(&mut self, id: ComponentId) {
        let component = self.component(id);
        let is_jinja = are_jinja(&component.component_type, self.surroundings.renders_jinja());
        for field in FIELDS {
            let Some(Field::Value { value, span }) = component.fields.get(*field) else { continue };
            let mut texts = Vec::new();
            texts_in(value, &mut texts);
            if texts.iter().map(|text| names(text).len()).sum::<usize>() > MOST {
                let error = Diagnostic::error(format!("`{field}` has more than {MOST} placeholders")).at(span);
                self.report(id, error.help("put what is many into a list, and hand that over"));
                continue;
            }
            if let (true, true, Value::Text(text)) = (is_jinja, RENDERED.contains(field), value) {
                if let Some(Err(problem)) = jinja(text) {
                    let error = Diagnostic::error(format!("`{field}` is not a valid template: {problem}")).at(span);
                    self.report(id, error);
                }
                continue;
            }
            let found: Vec<&str> = texts.into_iter().flat_map(more_than_placeholders).collect();
            let Some(first) = found.first() else { continue };
            let others = match found.len() {
                1 => String::new(),
                2 => ", as one more like it".to_owned(),
                all => format!(", as {} more like it", all - 1),
            };
            let message =
                format!("`{first}` in `{field}` is not a valid placeholder and is used as it is written{others}");
            let warning = Diagnostic::warning(message).at(&place_of(first, span)).help(
                "a placeholder is a name in double braces, and nothing else is filled in; `jinja = true` below `[compat]` in \
                 `hotcell.toml` renders prompts and messages as WayFlow does",
            );
            self.report(id, warning);
        }
    }
}

/// Where in its field a piece is written, if the text of the file shows that.
fn place_of(piece: &str, field: &Span) -> Span {
    let written = field.file.text.get(field.start..field.end).and_then(|text| text.find(piece));
    match written {
        Some(offset) => Span { start: field.start + offset, end: field.start + offset + piece.len(), ..field.clone() },
        None => field.clone(),
    }
}

fn texts_in<'v>(value: &'v Value, found: &mut Vec<&'v str>) {
    match value {
        Value::Text(text) => found.push(text),
        Value::List(items) => items.iter().for_each(|item| texts_in(item, found)),
        Value::Object(object) => object.iter().for_each(|(key, value)| {
            found.push(key);
            texts_in(value, found);
        }),
        _ => {}
    }
}
