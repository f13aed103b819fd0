//! What files declare: lists of it, references to it, and what an import path stands for.

use std::collections::HashMap;
use std::sync::Arc;

use hotcell_graph::closest;
use hotcell_graph::diagnostic::{Diagnostic, Span};

use super::schema::{Declared, Reference};
use crate::document::Need::{Optional, Required};
use crate::document::{Fields, Node, Owner, Reader, SourceText};
use crate::surroundings::{Import, Imported, Surroundings, Unavailable};

/// Reads the items of a list of declarations, each of which is a `noun`; an id that occurs twice is an error.
pub(super) fn declarations<'r, 'd, T>(
    fields: &mut Fields<'r, 'd>,
    name: &'static str,
    noun: &str,
    mut read: impl FnMut(&mut Fields<'r, 'd>, Declared) -> Option<T>,
) -> Vec<T> {
    let reader = fields.reader();
    let mut seen: HashMap<Arc<str>, Span> = HashMap::new();
    let mut found = Vec::new();
    for item in fields.list(name, Optional).unwrap_or_default() {
        let what = match item.get("id").and_then(|entry| entry.value.as_text()) {
            Some(id) => format!("the {noun} `{id}`"),
            None => format!("an item of `{name}`"),
        };
        let Some(mut fields) = reader.fields(item, Owner { what, node: None, place: item.place }) else { continue };
        let id = fields.text("id", Required);
        let version = fields.text("version", Optional);
        let Some(id) = id else { continue };
        if let Some(first) = seen.insert(Arc::clone(&id.value), id.span.clone()) {
            let error = fields.error(format!("the id `{}` occurs twice in `{name}`", &*id), &id.span);
            reader.report(error.related(&first, "first here").help("remove one of them or give it another id"));
        }
        found.extend(read(&mut fields, Declared { id, version }));
        fields.finish(|_| None);
    }
    found
}

/// The error of a file that cannot be read.
pub(super) fn unreadable(fields: &Fields<'_, '_>, path: &SourceText, reason: &Unavailable) -> Diagnostic {
    fields.error(format!("{}: cannot read `{}`: {reason}", fields.owner().what, &**path), &path.span)
}

/// Reports that something has both or neither of two fields, one of which it needs.
pub(super) fn not_one_of(fields: &Fields<'_, '_>, has_both: bool, [first, second]: [&str; 2], declared: &Declared) {
    // One that is written and is of another type was reported.
    if !has_both && [first, second].into_iter().any(|field| fields.is_written(field)) {
        return;
    }
    let what = &fields.owner().what;
    let message = match has_both {
        true => format!("{what} has both `{first}` and `{second}`"),
        false => format!("{what} has neither `{first}` nor `{second}`"),
    };
    let error = fields.error(message, &declared.id.span);
    fields.reader().report(error.help("give it exactly one of them"));
}

/// The error of a word that is none of those there are.
pub(super) fn unknown(fields: &Fields<'_, '_>, what: &str, word: &SourceText, known: &[&str]) -> Diagnostic {
    let help = match closest(word, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there are `{}`", known.join("`, `")),
    };
    let of = match fields.owner().node {
        Some(_) => String::new(),
        None => format!("{}: ", fields.owner().what),
    };
    fields.error(format!("{of}there is no {what} `{}`", &**word), &word.span).help(help)
}

/// The tool that an import path means.
pub(super) fn tool_of_path(
    fields: &Fields<'_, '_>,
    path: &SourceText,
    surroundings: &dyn Surroundings,
) -> Option<String> {
    let help = "put a plugin that offers it into one of these folders, a file of functions beside the agent, or say what it \
                means with `[imports]` in `hotcell.toml`";
    imported(fields, Import::Tool, path, help, surroundings)
}

/// What an import path means here. What it does not mean is reported with the places that were searched.
pub(super) fn imported(
    fields: &Fields<'_, '_>,
    what: Import,
    path: &SourceText,
    help: &str,
    surroundings: &dyn Surroundings,
) -> Option<String> {
    let of = &fields.owner().what;
    let error = match surroundings.import(what, path) {
        Imported::Usable(name) => return Some(name),
        Imported::Missing { searched } => {
            let kind = match what {
                Import::Tool => "a tool",
                Import::Hook => "a hook that guards this agent",
                Import::Agent => "an agent",
            };
            let message = format!("{of}: `{}` does not name {kind}; searched: {}", &**path, searched.join(", "));
            fields.error(message, &path.span).help(help)
        }
        Imported::Unusable(reason) => fields.error(format!("{of}: `{}` cannot be used: {reason}", &**path), &path.span),
    };
    fields.reader().report(error);
    None
}

/// A reference with `id` and `version`.
pub(super) fn reference<'d>(
    reader: &Reader<'d>,
    node: &'d Node,
    what: &str,
    of: Option<&Arc<str>>,
) -> Option<Reference> {
    let owner = Owner { what: format!("`{what}`"), node: of.cloned(), place: node.place };
    let mut fields = reader.fields(node, owner)?;
    let id = fields.text("id", Required);
    let version = fields.text("version", Optional);
    fields.finish(|_| None);
    Some(Reference { id: id?, version })
}
