//! The texts of a configuration and which keys of `$referenced_components` can be seen from where.

use std::collections::HashMap;
use std::sync::Arc;

use hotcell_graph::closest;
use hotcell_graph::diagnostic::{Diagnostic, SourceFile, Span};

use super::versions::Version;
use crate::document::{Document, Entry, Kind, Node, Place};

/// The key of a reference.
pub(super) const REFERENCE: &str = "$component_ref";
/// The key of a dictionary of what references name.
pub(super) const REFERENCED: &str = "$referenced_components";
/// The key that tells a component from a value.
pub(super) const COMPONENT_TYPE: &str = "component_type";
/// The key of the version.
pub(super) const VERSION: &str = "agentspec_version";

/// The fields by which a component names its plugin.
pub(super) const PLUGIN_NAME: &str = "component_plugin_name";
pub(super) const PLUGIN_VERSION: &str = "component_plugin_version";

/// A file of disaggregated parts that is handed in beside a configuration.
#[derive(Clone, Debug)]
pub struct Part {
    /// The file
    pub file: Arc<SourceFile>,
    /// The key of a part in the file, and the one under which the configuration knows it
    pub rename: Vec<(String, String)>,
}

/// A piece of a text, and from where the references in it are looked up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Located<'d> {
    pub(super) node: &'d Node,
    pub(super) document: usize,
    /// The key by which the document itself knows what this is in, if it was handed in beside it
    pub(super) part: Option<&'d Arc<str>>,
    scope: Option<usize>,
}

/// A piece of a text, wherever it is looked at from.
pub(super) type Identity = (usize, u32);

struct Scope<'d> {
    around: Option<usize>,
    document: usize,
    entries: HashMap<&'d str, &'d Entry>,
}

/// The document that is read, first, and the parts that are handed in beside it.
pub(super) struct Sources<'d> {
    documents: &'d [Document],
    scopes: Vec<Scope<'d>>,
    scope_of: HashMap<Identity, usize>,
    handed_in: HashMap<Arc<str>, Vec<Located<'d>>>,
}

impl<'d> Located<'d> {
    /// The same text from the same place, however it was come by. What YAML uses through an alias is the same as what
    /// its anchor is at.
    pub(super) fn identity(&self) -> Identity {
        (self.document, self.node.place.start)
    }

    /// A piece of this piece.
    pub(super) fn with(self, node: &'d Node) -> Self {
        Located { node, ..self }
    }

    /// The same piece as something in a part.
    pub(super) fn within(self, part: Option<&'d Arc<str>>) -> Self {
        Located { part, ..self }
    }

    /// The top of another document.
    pub(super) fn of_document(self, node: &'d Node, document: usize) -> Self {
        Located { node, document, part: None, scope: None }
    }

    /// The key that this refers to, if it is a reference.
    pub(super) fn reference(&self) -> Option<&'d Entry> {
        self.node.get(REFERENCE)
    }

    /// Whether this is a component.
    pub(super) fn is_component(&self) -> bool {
        self.node.get(COMPONENT_TYPE).is_some()
    }

    /// Its entries; none if it is no mapping.
    pub(super) fn entries(&self) -> &'d [Entry] {
        match &self.node.kind {
            Kind::Map(entries) => entries,
            _ => &[],
        }
    }
}

impl<'d> Sources<'d> {
    /// The sources of a configuration. `documents` has the document itself and then one for each part.
    pub(super) fn new(documents: &'d [Document], parts: &[Part], diagnostics: &mut Vec<Diagnostic>) -> Self {
        let mut sources =
            Sources { documents, scopes: Vec::new(), scope_of: HashMap::new(), handed_in: HashMap::new() };
        for (index, part) in parts.iter().enumerate() {
            sources.hand_in(index + 1, part, diagnostics);
        }
        sources
    }

    fn hand_in(&mut self, document: usize, part: &Part, diagnostics: &mut Vec<Diagnostic>) {
        let root = &self.documents[document].root;
        let file = Located { node: root, document, part: None, scope: None };
        if file.is_component() || file.reference().is_some() || root.get(REFERENCED).is_none() {
            let error = Diagnostic::error(format!(
                "`{}` is not a file of parts: such a file has `{REFERENCED}` and no component at its top",
                part.file.name
            ))
            .at(&self.span(document, root.place))
            .help("put each part under a key of `$referenced_components`");
            diagnostics.push(error);
            return;
        }
        for entry in file.entries().iter().filter(|entry| ![REFERENCED, VERSION].contains(&&*entry.key)) {
            let error = Diagnostic::error(format!("`{}` is not a field of a file of parts", entry.key))
                .at(&self.span(document, entry.key_place))
                .help(format!("such a file has `{REFERENCED}` and `{VERSION}`"));
            diagnostics.push(error);
        }
        let file = self.inside(file, diagnostics);
        let keys: Vec<&str> = root
            .get(REFERENCED)
            .map(|dictionary| file.with(&dictionary.value))
            .map_or_else(Vec::new, |dictionary| dictionary.entries().iter().map(|entry| &*entry.key).collect());
        for (from, _) in part.rename.iter().filter(|(from, _)| !keys.contains(&&**from)) {
            let mut error =
                Diagnostic::error(format!("`{}` has no part `{from}` that could be renamed", part.file.name))
                    .at(&self.span(document, root.place));
            error.help = closest(from, keys.iter().copied()).map(|near| format!("did you mean `{near}`?"));
            diagnostics.push(error);
        }
        for key in keys {
            let renamed = part.rename.iter().find(|(from, _)| from == key).map(|(_, to)| to.as_str());
            if let Some(located) = file.scope.and_then(|scope| self.entry(scope, key)) {
                self.handed_in.entry(renamed.unwrap_or(key).into()).or_default().push(located);
            }
        }
    }

    /// The document.
    pub(super) fn root(&self) -> Located<'d> {
        Located { node: &self.documents[0].root, document: 0, part: None, scope: None }
    }

    /// The place of a part of a document.
    pub(super) fn span(&self, document: usize, place: Place) -> Span {
        self.documents[document].span(place)
    }

    /// The piece as it is seen from inside: the keys of its own `$referenced_components` are known too.
    pub(super) fn inside(&mut self, at: Located<'d>, diagnostics: &mut Vec<Diagnostic>) -> Located<'d> {
        let Some(dictionary) = at.node.get(REFERENCED) else { return at };
        if let Some(scope) = self.scope_of.get(&at.identity()) {
            return Located { scope: Some(*scope), ..at };
        }
        let mut entries = HashMap::new();
        match &dictionary.value.kind {
            Kind::Map(own) => {
                for entry in own {
                    if let Some(first) = self.around(at.scope, &entry.key) {
                        let error = Diagnostic::error(format!(
                            "the key `{}` of `{REFERENCED}` is defined again inside of where it is known",
                            entry.key
                        ))
                        .at(&self.span(at.document, entry.key_place))
                        .label("again here")
                        .related(&self.span(at.document, first.key_place), "first here")
                        .help("remove one of them or give it another name");
                        diagnostics.push(error);
                    }
                    entries.insert(&*entry.key, entry);
                }
            }
            Kind::Null => {}
            _ => diagnostics.push(
                Diagnostic::error(format!("`{REFERENCED}` must be a mapping, not {}", dictionary.value.describe()))
                    .at(&self.span(at.document, dictionary.value.place)),
            ),
        }
        self.scopes.push(Scope { around: at.scope, document: at.document, entries });
        let scope = self.scopes.len() - 1;
        self.scope_of.insert(at.identity(), scope);
        Located { scope: Some(scope), ..at }
    }

    /// The entry of a key in a scope or one around it.
    fn around(&self, mut scope: Option<usize>, key: &str) -> Option<&'d Entry> {
        while let Some(index) = scope {
            if let Some(entry) = self.scopes[index].entries.get(key) {
                return Some(entry);
            }
            scope = self.scopes[index].around;
        }
        None
    }

    fn entry(&self, scope: usize, key: &str) -> Option<Located<'d>> {
        let entry = self.scopes[scope].entries.get(key)?;
        Some(Located { node: &entry.value, document: self.scopes[scope].document, part: None, scope: Some(scope) })
    }

    /// Everything that a key can mean where it is written: its own document's, and what is handed in.
    pub(super) fn definitions(&self, key: &str, at: Located<'d>) -> Vec<Located<'d>> {
        let mut found = Vec::new();
        let mut scope = at.scope;
        while let Some(index) = scope {
            found.extend(self.entry(index, key));
            scope = self.scopes[index].around;
        }
        // A part knows its own keys by themselves; what others hand in, it knows like the entry.
        if found.is_empty() || at.document == 0 {
            found.extend(self.handed_in.get(key).into_iter().flatten());
        }
        found
    }

    /// Whether this is a part that a file of parts defines.
    pub(super) fn is_part(&self, at: Located<'d>) -> bool {
        let Some(scope) = at.scope.filter(|_| at.document > 0).map(|index| &self.scopes[index]) else { return false };
        scope.around.is_none() && scope.entries.values().any(|entry| std::ptr::eq(&entry.value, at.node))
    }

    /// All keys that are known somewhere, to find the one that was meant.
    pub(super) fn keys(&self, at: Located<'d>) -> Vec<&str> {
        let mut keys: Vec<&str> = self.handed_in.keys().map(|key| &**key).collect();
        let mut scope = at.scope;
        while let Some(index) = scope {
            keys.extend(self.scopes[index].entries.keys());
            scope = self.scopes[index].around;
        }
        keys.sort_unstable();
        keys
    }

    /// What the dictionaries of the document itself define, from the dictionary with that number on; more are known once
    /// these are read.
    pub(super) fn defined(&self, from: usize) -> (Vec<Located<'d>>, usize) {
        let scopes = self.scopes.iter().enumerate().skip(from).filter(|(_, scope)| scope.document == 0);
        let mut found: Vec<Located<'d>> = scopes
            .flat_map(|(index, scope)| {
                scope.entries.values().map(move |entry| Located {
                    node: &entry.value,
                    document: 0,
                    part: None,
                    scope: Some(index),
                })
            })
            .collect();
        found.sort_by_key(|located| located.node.place.start);
        (found, self.scopes.len())
    }
}

/// The text of an entry.
pub(super) fn text_of(at: Located<'_>, key: &str) -> Option<Arc<str>> {
    match &at.node.get(key)?.value.kind {
        Kind::Text(text) => Some(Arc::clone(&text.value)),
        _ => None,
    }
}

/// The version that stands at the top of a document. An error, reported, if it is none that is known.
pub(super) fn version(
    top: Located<'_>,
    sources: &Sources<'_>,
    diagnostics: &mut Vec<Diagnostic>,
) -> Result<Option<Version>, ()> {
    let Some(entry) = top.node.get(VERSION) else { return Ok(None) };
    let known = || Version::ALL.map(Version::name);
    let all = known().map(|name| format!("`{name}`")).join(", ");
    let error = match &entry.value.kind {
        Kind::Text(text) => match Version::of_name(&text.value) {
            Some(version) => return Ok(Some(version)),
            None => Diagnostic::error(format!("`{VERSION}` does not name a known version: `{}`", text.value)).help(
                match closest(&text.value, known()) {
                    Some(near) => format!("did you mean `{near}`? The versions are {all}"),
                    None => format!("the versions are {all}"),
                },
            ),
        },
        _ => Diagnostic::error(format!("`{VERSION}` must be a text, not {}", entry.value.describe()))
            .help(format!("the versions are {all}, in quotes")),
    };
    diagnostics.push(error.at(&sources.span(top.document, entry.value.place)));
    Err(())
}
