//! The inputs and outputs that a component declares.

use hotcell_graph::diagnostic::{Diagnostic, Span};
use hotcell_graph::types::doubtful_keywords;
use hotcell_graph::{List, Value};

use super::builder::Builder;
use super::model::Property;
use super::properties::property;
use super::sources::Located;

/// Reads a list of properties; what is wrong with one is reported, and it is left out. `side` is the field that has them.
pub(super) fn read<'d>(builder: &mut Builder<'_, 'd>, list: &List, at: Located<'d>, side: &str) -> Vec<Property> {
    let mut properties: Vec<Property> = Vec::with_capacity(list.len());
    for (index, schema) in list.iter().enumerate() {
        let steps = [index.to_string()];
        let span = span_at(builder, at, &steps);
        // That an item is no object is said by the schema of the component.
        let Value::Object(object) = schema else { continue };
        for doubt in doubtful_keywords(schema) {
            let keyword = doubt.path.last().map(String::as_str).unwrap_or_default();
            let message = format!("`{keyword}` is not a keyword of JSON Schema, so it limits nothing");
            let path: Vec<String> = steps.iter().cloned().chain(doubt.path.iter().cloned()).collect();
            let warning = Diagnostic::warning(message).at(&span_at(builder, at, &path));
            builder.report(warning.help(format!("did you mean `{}`?", doubt.meant)));
        }
        match property(schema, object, &span) {
            Ok(property) => match properties.iter().find(|known| known.title == property.title) {
                Some(first) => {
                    let error = Diagnostic::error(format!("`{side}` has two properties `{}`", property.title))
                        .at(&span)
                        .label("again here")
                        .related(&first.span, "first here")
                        .help("remove one of them or give it another title");
                    builder.report(error);
                }
                None => properties.push(property),
            },
            Err(problem) => {
                let mut steps = steps.to_vec();
                steps.extend(problem.path);
                let span = span_at(builder, at, &steps);
                let title = object.get("title").and_then(Value::as_text);
                let of = match title.filter(|title| !title.is_empty()) {
                    Some(title) => format!("property `{title}` of `{side}`"),
                    None => format!("property {} of `{side}`", index + 1),
                };
                let mut error = Diagnostic::error(format!("{of}: {}", problem.message)).at(&span);
                error.help = problem.help;
                builder.report(error);
            }
        }
    }
    properties
}

fn span_at<'d>(builder: &Builder<'_, 'd>, at: Located<'d>, steps: &[String]) -> Span {
    let node = at.node.nearest(steps.iter().map(String::as_str));
    builder.sources.span(at.document, node.place)
}
