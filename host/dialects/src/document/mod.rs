//! YAML and JSON text as a tree whose every key and value knows its place in the file.
//!
//! All front ends read their sources through this module, so that all of them refuse the same dangerous documents and
//! point at the same places. It knows no source language and does no I/O.

mod choices;
mod json;
mod position;
mod read;
mod scalar;
#[cfg(test)]
mod tests;
mod yaml;

use std::collections::HashMap;
use std::sync::Arc;

use hotcell_graph::diagnostic::{Diagnostic, Severity, SourceFile, Span};
use hotcell_graph::value::Number;
use hotcell_graph::{List, Object, Value};

pub use position::Style;
pub use read::{Fields, Need, Owner, Reader, SourceText, Spanned};

/// How deeply lists and mappings may be nested, aliases resolved.
pub const MAX_DEPTH: usize = hotcell_graph::value::MAX_DEPTH;
/// The largest source file, in bytes.
pub const MAX_BYTES: usize = 16 << 20;
/// How many values a file may hold, those in lists and mappings included.
pub const MAX_VALUES: usize = 200_000;
/// How many entries a mapping may have, and how many mappings and lists a list: what reads a file compares them with each other.
pub const MAX_ENTRIES: usize = 4_000;
/// How many values anchors and aliases may copy in one document.
pub const MAX_COPIES: usize = 100_000;
/// Bytes of a text, a key or the digits of a number that count as one value where they are copied. Copies share them in memory, and are
/// written out one by one: all of them together have as many bytes as a file may have.
pub(crate) const BYTES_A_COPY: usize = MAX_BYTES / MAX_COPIES;
/// How many errors, how many warnings and how many notes one document may have; what is wrong beyond that is not reported.
pub const MAX_DIAGNOSTICS: usize = 200;

/// A parsed document.
#[derive(Clone, Debug)]
pub struct Document {
    /// The file it was read from
    pub file: Arc<SourceFile>,
    /// Its value
    pub root: Node,
}

/// A part of a document's file, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Offset of its start
    pub start: u32,
    /// Offset behind its end
    pub end: u32,
}

/// A value and where it is written. A value that is used through an alias has the place of its anchor.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Where
    pub place: Place,
    /// What
    pub kind: Kind,
}

/// A value, by the core schema of YAML 1.2: unquoted `yes`, `no`, `on` and `off` are texts.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// `null`, `~` or nothing
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A finite number
    Number(Number),
    /// A text
    Text(Text),
    /// A list
    List(Vec<Node>),
    /// A mapping whose keys are texts, each once, in the order of the source
    Map(Vec<Entry>),
}

/// A text and how it was written.
#[derive(Clone, Debug, PartialEq)]
pub struct Text {
    /// The text, escapes and folding resolved
    pub value: Arc<str>,
    /// How it was written
    pub style: Style,
}

/// A key with its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The key
    pub key: Arc<str>,
    /// Where the key is written
    pub key_place: Place,
    /// The value
    pub value: Node,
}

impl Place {
    fn new(start: usize, end: usize) -> Self {
        // Files are at most `MAX_BYTES` long, so offsets fit.
        Place { start: start as u32, end: end.max(start) as u32 }
    }
}

impl Node {
    /// What kind of value this is, with its article: `a text`, `an object`, `null`.
    pub fn describe(&self) -> &'static str {
        match self.kind {
            Kind::Null => "null",
            Kind::Bool(_) => "a boolean",
            Kind::Number(_) => "a number",
            Kind::Text(_) => "a text",
            Kind::List(_) => "a list",
            Kind::Map(_) => "a mapping",
        }
    }

    /// The entry of that key, if this is a mapping that has it.
    pub fn get(&self, key: &str) -> Option<&Entry> {
        match &self.kind {
            Kind::Map(entries) => entries.iter().find(|entry| &*entry.key == key),
            _ => None,
        }
    }

    /// The text, if this is one.
    pub fn as_text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Text(text) => Some(&text.value),
            _ => None,
        }
    }

    /// As how many values it counts where it is copied, with all that is in it, and how deeply it is nested.
    pub(crate) fn copied(&self) -> (usize, usize) {
        let around = |children: &mut dyn Iterator<Item = (usize, usize)>| {
            let (size, depth) = children.fold((1, 0), |(size, depth), (more, below)| (size + more, depth.max(below)));
            (size, depth + 1)
        };
        match &self.kind {
            Kind::Null | Kind::Bool(_) => (1, 0),
            Kind::Number(_) => (1 + self.place.end.saturating_sub(self.place.start) as usize / BYTES_A_COPY, 0),
            Kind::Text(text) => (1 + text.value.len() / BYTES_A_COPY, 0),
            Kind::List(items) => around(&mut items.iter().map(Node::copied)),
            Kind::Map(entries) => around(&mut entries.iter().map(|entry| {
                let (size, depth) = entry.value.copied();
                (size + entry.key.len() / BYTES_A_COPY, depth)
            })),
        }
    }

    /// The JSON value.
    pub fn to_value(&self) -> Value {
        match &self.kind {
            Kind::Null => Value::Null,
            Kind::Bool(value) => Value::Bool(*value),
            Kind::Number(number) => Value::Number(number.clone()),
            Kind::Text(text) => Value::Text(Arc::clone(&text.value)),
            Kind::List(items) => Value::List(items.iter().map(Node::to_value).collect::<List>()),
            Kind::Map(entries) => Value::Object(
                entries.iter().map(|entry| (Arc::clone(&entry.key), entry.value.to_value())).collect::<Object>(),
            ),
        }
    }

    /// The node that a path of keys and indexes leads to, or the last one on the way that is there.
    pub fn nearest<'p>(&self, path: impl IntoIterator<Item = &'p str>) -> &Node {
        let mut node = self;
        for step in path {
            let next = match &node.kind {
                Kind::Map(_) => node.get(step).map(|entry| &entry.value),
                Kind::List(items) => step.parse::<usize>().ok().and_then(|index| items.get(index)),
                _ => None,
            };
            match next {
                Some(next) => node = next,
                None => break,
            }
        }
        node
    }
}

impl Document {
    /// The span of a place.
    pub fn span(&self, place: Place) -> Span {
        span(&self.file, place)
    }

    /// The text of a place as it is in the file.
    pub fn raw(&self, place: Place) -> &str {
        self.file.text.get(place.start as usize..place.end as usize).unwrap_or_default()
    }
}

fn span(file: &Arc<SourceFile>, place: Place) -> Span {
    Span { file: Arc::clone(file), start: place.start as usize, end: place.end as usize }
}

/// Reads a source file: JSON if its name ends in `.json`, else YAML. There is a document unless its syntax is broken;
/// with errors among the diagnostics it is only good for finding more of them.
pub fn parse(file: &Arc<SourceFile>) -> (Option<Document>, Vec<Diagnostic>) {
    if file.text.len() > MAX_BYTES {
        let error =
            Diagnostic::error(format!("the file has {} bytes, and at most {MAX_BYTES} are read", file.text.len()))
                .at(&span(file, Place::default()));
        return (None, vec![error]);
    }
    let is_json = file.name.rsplit_once('.').is_some_and(|(_, extension)| extension.eq_ignore_ascii_case("json"));
    let (root, diagnostics) = if is_json { json::parse(file) } else { yaml::parse(file) };
    (root.map(|root| Document { file: Arc::clone(file), root }), diagnostics)
}

/// What a list or mapping has too much of, if it has.
fn excess(kind: &Kind) -> Option<String> {
    let (what, number, of) = match kind {
        Kind::Map(entries) => ("mapping", entries.len(), "entries"),
        Kind::List(items) => {
            let is_composed = |item: &&Node| matches!(item.kind, Kind::List(_) | Kind::Map(_));
            ("list", items.iter().filter(is_composed).count(), "mappings and lists")
        }
        _ => return None,
    };
    (number > MAX_ENTRIES).then(|| format!("the {what} has {number} {of}, and at most {MAX_ENTRIES} are read"))
}

/// What is said of a file with too many values.
fn too_many_values() -> String {
    format!("the file has more than {MAX_VALUES} values")
}

/// The byte order mark that some editors put before the text; it means nothing.
const BYTE_ORDER_MARK: &str = "\u{feff}";

/// Takes out entries whose key was there before, and reports each.
fn remove_duplicates(entries: &mut Vec<Entry>, file: &Arc<SourceFile>, diagnostics: &mut Vec<Diagnostic>) {
    // Most mappings are small, and comparing a few keys is cheaper than a table of them.
    const FEW: usize = 8;
    let has_duplicates = entries.len() > FEW
        || entries.iter().enumerate().any(|(index, entry)| entries[..index].iter().any(|other| other.key == entry.key));
    if !has_duplicates {
        return;
    }
    let mut first: HashMap<Arc<str>, Place> = HashMap::with_capacity(entries.len());
    entries.retain(|entry| {
        let Some(place) = first.get(&entry.key) else {
            first.insert(Arc::clone(&entry.key), entry.key_place);
            return true;
        };
        let error = Diagnostic::error(format!("the key `{}` occurs twice in one mapping", entry.key))
            .at(&span(file, entry.key_place))
            .label("again here")
            .related(&span(file, *place), "first here")
            .help("remove one of them or give it another name");
        report(diagnostics, error);
        false
    });
}

/// Adds a diagnostic, if there is room for it.
pub(crate) fn report(diagnostics: &mut Vec<Diagnostic>, diagnostic: Diagnostic) {
    if has_room(diagnostics, diagnostic.severity) {
        diagnostics.push(diagnostic);
    }
}

/// Whether one more diagnostic of this severity is reported. Each has its own room: no number of warnings hides an error.
pub(crate) fn has_room(diagnostics: &[Diagnostic], severity: Severity) -> bool {
    diagnostics.len() < MAX_DIAGNOSTICS
        || diagnostics.iter().filter(|diagnostic| diagnostic.severity == severity).count() < MAX_DIAGNOSTICS
}

/// Leaves as many of each severity as are reported, the first ones.
pub(crate) fn keep_first(diagnostics: &mut Vec<Diagnostic>) {
    let mut kept = [0; 3];
    diagnostics.retain(|diagnostic| {
        let number = &mut kept[diagnostic.severity as usize];
        *number += 1;
        *number <= MAX_DIAGNOSTICS
    });
}
