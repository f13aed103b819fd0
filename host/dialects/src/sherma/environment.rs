//! Variables of the environment in a file's texts: `${NAME}`, `${NAME:-default}`, and `$$` for a dollar sign.

use std::sync::Arc;

use hotcell_graph::diagnostic::Diagnostic;

use crate::document::{Document, Kind, MAX_DIAGNOSTICS, Node, Place, report};
use crate::surroundings::Surroundings;

/// Puts values into every text of the file. What has no value is an error at its place.
pub(super) fn substitute(document: &mut Document, surroundings: &dyn Surroundings, diagnostics: &mut Vec<Diagnostic>) {
    let mut missing = Vec::new();
    visit(&mut document.root, surroundings, &mut missing);
    for (name, place) in missing {
        let error = Diagnostic::error(format!("the environment variable `{name}` has no value"))
            .at(&document.span(place))
            .help(format!(
                "set it and allow it, with `env = [\"{name}\"]` below `[grants.agent]` in `hotcell.toml`; or give it a \
                 default: `${{{name}:-default}}`"
            ));
        report(diagnostics, error);
    }
}

fn visit(node: &mut Node, surroundings: &dyn Surroundings, missing: &mut Vec<(String, Place)>) {
    let place = node.place;
    match &mut node.kind {
        Kind::Text(text) if text.value.contains('$') => {
            let mut absent = |name: &str| {
                if missing.len() < MAX_DIAGNOSTICS {
                    missing.push((name.to_owned(), place));
                }
            };
            if let Some(value) = expand(&text.value, surroundings, &mut absent) {
                text.value = Arc::from(value);
            }
        }
        Kind::List(items) => items.iter_mut().for_each(|item| visit(item, surroundings, missing)),
        Kind::Map(entries) => entries.iter_mut().for_each(|entry| visit(&mut entry.value, surroundings, missing)),
        _ => {}
    }
}

/// The text with values put in; none if there is nothing to put in. One pass: a value is never looked at again.
fn expand(text: &str, surroundings: &dyn Surroundings, absent: &mut dyn FnMut(&str)) -> Option<String> {
    let mut made = String::with_capacity(text.len());
    let mut rest = text;
    let mut changed = false;
    // Behind the last brace that closes there is no reference: looking for one each time would take for ever.
    let closes = text.rfind('}').unwrap_or(0);
    while let Some(at) = rest.find('$') {
        made.push_str(&rest[..at]);
        let from = &rest[at + 1..];
        if let Some(after) = from.strip_prefix('$') {
            made.push('$');
            rest = after;
            changed = true;
        } else if text.len() - from.len() <= closes
            && let Some((name, default, after)) = reference(from)
        {
            match (surroundings.variable(name), default) {
                (Some(value), _) => made.push_str(&value),
                (None, Some(default)) => made.push_str(default),
                (None, None) => absent(name),
            }
            rest = after;
            changed = true;
        } else {
            made.push('$');
            rest = from;
        }
    }
    made.push_str(rest);
    changed.then_some(made)
}

/// `{NAME}` or `{NAME:-default}` and what follows; names are in upper case.
fn reference(from: &str) -> Option<(&str, Option<&str>, &str)> {
    let inside = from.strip_prefix('{')?;
    let end = inside.find(|c: char| !(c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_'))?;
    let (name, behind) = inside.split_at(end);
    if !name.starts_with(|c: char| c.is_ascii_uppercase() || c == '_') {
        return None;
    }
    if let Some(after) = behind.strip_prefix('}') {
        return Some((name, None, after));
    }
    let (default, after) = behind.strip_prefix(":-")?.split_once('}')?;
    Some((name, Some(default), after))
}
