//! From a tree to typed fields: wrong types, missing and unknown fields become diagnostics, all of them at once.

use std::borrow::Cow;
use std::cell::RefCell;
use std::ops::{Deref, Range};
use std::sync::Arc;

use hotcell_graph::advise_field;
use hotcell_graph::diagnostic::{Diagnostic, Severity, Span};

use super::{Document, Entry, Kind, MAX_DIAGNOSTICS, Node, Place, Style, has_room, position, report, scalar};

/// A value and where it is written.
#[derive(Clone, Debug, PartialEq)]
pub struct Spanned<T> {
    /// The value
    pub value: T,
    /// Where
    pub span: Span,
}

/// A text and where it is written; an offset inside it leads to its place in the file.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceText {
    /// The text
    pub value: Arc<str>,
    /// Where, with its quotes or block header
    pub span: Span,
    style: Style,
}

impl SourceText {
    /// A text that stands for one at this place which nobody wrote.
    pub fn implied(value: &str, span: Span) -> Self {
        SourceText { value: value.into(), span, style: Style::Plain }
    }

    /// The place in the file of a part of the text, given in bytes of the text.
    pub fn span_of(&self, part: Range<usize>) -> Span {
        let raw = self.span.file.text.get(self.span.start..self.span.end).unwrap_or_default();
        let locate = |offset| position::locate(raw, self.style, &self.value, offset);
        let start = locate(part.start).start;
        let last = self.value.floor_char_boundary(part.end.saturating_sub(1)).max(part.start);
        let end = locate(last).end.max(start);
        Span { file: Arc::clone(&self.span.file), start: self.span.start + start, end: self.span.start + end }
    }
}

impl Deref for SourceText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.value
    }
}

/// Reads a document and collects what is wrong with it.
#[derive(Debug)]
pub struct Reader<'d> {
    document: &'d Document,
    diagnostics: RefCell<Vec<Diagnostic>>,
}

/// Whose fields are read, for messages.
#[derive(Clone, Debug)]
pub struct Owner {
    /// What it is, as it stands in a sentence: "the graph", "`llm` nodes"
    pub what: String,
    /// The node it belongs to
    pub node: Option<Arc<str>>,
    /// The place to point at when a field is missing
    pub place: Place,
}

/// Whether a field may be left out; `null` counts as left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// It may
    Optional,
    /// It is an error
    Required,
}

impl<'d> Reader<'d> {
    /// A reader of a document.
    pub fn new(document: &'d Document) -> Self {
        Reader { document, diagnostics: RefCell::default() }
    }

    /// The document.
    pub fn document(&self) -> &'d Document {
        self.document
    }

    /// Adds a diagnostic.
    pub fn report(&self, diagnostic: Diagnostic) {
        report(&mut self.diagnostics.borrow_mut(), diagnostic);
    }

    /// Adds a diagnostic that whoever looks at the file has to see: no number of others hides it.
    pub fn insist(&self, diagnostic: Diagnostic) {
        let mut diagnostics = self.diagnostics.borrow_mut();
        if diagnostics.len() < 4 * MAX_DIAGNOSTICS {
            diagnostics.push(diagnostic);
        }
    }

    /// All diagnostics so far.
    pub fn into_diagnostics(self) -> Vec<Diagnostic> {
        self.diagnostics.into_inner()
    }

    /// The span of a place.
    pub fn span(&self, place: Place) -> Span {
        self.document.span(place)
    }

    /// The fields of a mapping; none, with an error, if it is something else.
    pub fn fields<'r>(&'r self, node: &'d Node, owner: Owner) -> Option<Fields<'r, 'd>> {
        match &node.kind {
            Kind::Map(entries) => Some(Fields { reader: self, owner, entries, known: Vec::new(), passed: Vec::new() }),
            _ => {
                let mut error = Diagnostic::error(format!("{} must be a mapping, not {}", owner.what, node.describe()))
                    .at(&self.span(node.place))
                    .help("write its fields as `name: value`, one per line");
                error.node = owner.node.as_deref().map(str::to_owned);
                self.report(error);
                None
            }
        }
    }

    /// Whether so much is wrong that further diagnostics of this severity are dropped.
    pub fn is_full_of(&self, severity: Severity) -> bool {
        !has_room(&self.diagnostics.borrow(), severity)
    }

    /// Whether an error was reported.
    pub fn has_error(&self) -> bool {
        self.diagnostics.borrow().iter().any(|diagnostic| diagnostic.severity == Severity::Error)
    }

    /// The text of a node; none, with an error that says `what` it is, if it is something else.
    pub fn text(&self, node: &'d Node, what: impl FnOnce() -> String, owner: &Owner) -> Option<SourceText> {
        match &node.kind {
            Kind::Text(text) => {
                Some(SourceText { value: Arc::clone(&text.value), span: self.span(node.place), style: text.style })
            }
            _ => {
                self.wrong_type(node, &what(), "a text", owner);
                None
            }
        }
    }

    /// The texts of a list; none, with an error, if it is something else. Items that are no texts are errors and left
    /// out.
    pub fn texts(&self, node: &'d Node, field: &str, owner: &Owner) -> Option<Vec<SourceText>> {
        match &node.kind {
            Kind::List(items) => Some(
                items.iter().filter_map(|item| self.text(item, || format!("an item of `{field}`"), owner)).collect(),
            ),
            _ => {
                self.wrong_type(node, &format!("`{field}`"), "a list of texts", owner);
                None
            }
        }
    }

    /// Reports that `what` has not the type it takes.
    pub fn wrong_type(&self, node: &Node, what: &str, expected: &str, owner: &Owner) {
        let mut error =
            Diagnostic::error(format!("{what} must be {expected}, not {}", node.describe())).at(&self.span(node.place));
        error.node = owner.node.as_deref().map(str::to_owned);
        if expected == "a text" {
            let raw = self.document.raw(node.place);
            error.help = match &node.kind {
                Kind::Map(_) if raw.starts_with("{{") => {
                    Some("put the template in quotes: without them YAML reads `{{` as a mapping".into())
                }
                Kind::Map(_) if raw.starts_with('{') => {
                    Some("if a text is meant, put it in quotes: without them YAML reads `{` as a mapping".into())
                }
                Kind::List(_) if raw.starts_with('[') => {
                    Some("if a text is meant, put it in quotes: without them YAML reads `[` as a list".into())
                }
                Kind::Number(_) | Kind::Bool(_) => Some(format!("put it in quotes: `\"{raw}\"`")),
                _ => None,
            };
        }
        self.report(error);
    }
}

/// The fields of one mapping. Every field that is asked for is known; [`Fields::finish`] reports the others.
#[derive(Debug)]
pub struct Fields<'r, 'd> {
    reader: &'r Reader<'d>,
    owner: Owner,
    entries: &'d [Entry],
    known: Vec<&'static str>,
    /// What was looked at and is none of its fields
    passed: Vec<&'static str>,
}

impl<'r, 'd> Fields<'r, 'd> {
    /// Whose fields these are.
    pub fn owner(&self) -> &Owner {
        &self.owner
    }

    /// Gives the owner a better name for messages, once more is known about it.
    pub fn set_owner_name(&mut self, what: String) {
        self.owner.what = what;
    }

    /// The reader behind.
    pub fn reader(&self) -> &'r Reader<'d> {
        self.reader
    }

    /// An error about this mapping.
    pub fn error(&self, message: impl Into<String>, span: &Span) -> Diagnostic {
        let mut error = Diagnostic::error(message).at(span);
        error.node = self.owner.node.as_deref().map(str::to_owned);
        error
    }

    /// Whether a field is there and not `null`, whatever it holds.
    pub fn is_written(&self, name: &str) -> bool {
        self.entries.iter().any(|entry| &*entry.key == name && entry.value.kind != Kind::Null)
    }

    /// The entry of a field; none if it is left out or `null`, with an error if it is needed.
    pub fn entry(&mut self, name: &'static str, need: Need) -> Option<&'d Entry> {
        self.known.push(name);
        let entry = self.entries.iter().find(|entry| &*entry.key == name);
        match entry {
            Some(entry) if entry.value.kind != Kind::Null => Some(entry),
            _ => {
                if need == Need::Required {
                    let place = entry.map_or(self.owner.place, |entry| entry.key_place);
                    let problem = if entry.is_some() { "has no value" } else { "is missing" };
                    let error = self
                        .error(format!("the field `{name}` {problem}"), &self.reader.span(place))
                        .help(format!("`{name}` is required in {}", self.owner.what));
                    self.reader.report(error);
                }
                None
            }
        }
    }

    /// A value of any type.
    pub fn node(&mut self, name: &'static str, need: Need) -> Option<&'d Node> {
        self.entry(name, need).map(|entry| &entry.value)
    }

    /// A text.
    pub fn text(&mut self, name: &'static str, need: Need) -> Option<SourceText> {
        let node = self.node(name, need)?;
        self.reader.text(node, || format!("`{name}`"), &self.owner)
    }

    /// A list of texts.
    pub fn texts(&mut self, name: &'static str, need: Need) -> Option<Vec<SourceText>> {
        let node = self.node(name, need)?;
        self.reader.texts(node, name, &self.owner)
    }

    /// A mapping, as its entries and the place of the whole.
    pub fn map(&mut self, name: &'static str, need: Need) -> Option<(&'d [Entry], Place)> {
        let node = self.node(name, need)?;
        match &node.kind {
            Kind::Map(entries) => Some((entries, node.place)),
            _ => {
                self.reader.wrong_type(node, &format!("`{name}`"), "a mapping", &self.owner);
                None
            }
        }
    }

    /// A list, as its items.
    pub fn list(&mut self, name: &'static str, need: Need) -> Option<&'d [Node]> {
        let node = self.node(name, need)?;
        match &node.kind {
            Kind::List(items) => Some(items),
            _ => {
                self.reader.wrong_type(node, &format!("`{name}`"), "a list", &self.owner);
                None
            }
        }
    }

    /// `true` or `false`.
    pub fn flag(&mut self, name: &'static str, need: Need) -> Option<Spanned<bool>> {
        let node = self.node(name, need)?;
        match &*meant(node) {
            Kind::Bool(value) => Some(Spanned { value: *value, span: self.reader.span(node.place) }),
            _ => {
                self.reader.wrong_type(node, &format!("`{name}`"), "`true` or `false`", &self.owner);
                None
            }
        }
    }

    /// A number.
    pub fn number(&mut self, name: &'static str, need: Need) -> Option<Spanned<f64>> {
        let node = self.node(name, need)?;
        match &*meant(node) {
            Kind::Number(number) => Some(Spanned { value: number.to_f64(), span: self.reader.span(node.place) }),
            _ => {
                self.reader.wrong_type(node, &format!("`{name}`"), "a number", &self.owner);
                None
            }
        }
    }

    /// A whole number that is not negative.
    pub fn count(&mut self, name: &'static str, need: Need) -> Option<Spanned<u32>> {
        let node = self.node(name, need)?;
        let span = self.reader.span(node.place);
        let kind = meant(node);
        let Kind::Number(number) = &*kind else {
            self.reader.wrong_type(node, &format!("`{name}`"), "a whole number", &self.owner);
            return None;
        };
        let value = number.to_f64();
        if !number.is_integer() || value < 0.0 || value > f64::from(u32::MAX) {
            let raw = self.reader.document.raw(node.place);
            let error =
                self.error(format!("`{name}` must be a whole number from 0 to {}, not `{raw}`", u32::MAX), &span);
            self.reader.report(error);
            return None;
        }
        // Within the range of `u32` every whole number is exact in `f64`.
        Some(Spanned { value: value as u32, span })
    }

    /// Takes note of a field that is allowed and means nothing.
    pub fn ignore(&mut self, name: &'static str) {
        self.known.push(name);
    }

    /// A field that is looked at and is none of the owner's: nobody is told to write it. None if there is none of that name.
    pub fn pass(&mut self, name: &'static str) -> Option<&'d Entry> {
        self.passed.push(name);
        self.entries.iter().find(|entry| &*entry.key == name)
    }

    /// Reports every field that was not asked for. `advice` may know better than the nearest name what to write.
    pub fn finish(self, advice: impl Fn(&str) -> Option<String>) {
        self.finish_as(Severity::Error, advice);
    }

    /// The same as warnings, of an owner that may have fields which mean nothing.
    pub fn finish_open(self) {
        self.finish_as(Severity::Warning, |_| None);
    }

    fn finish_as(self, severity: Severity, advice: impl Fn(&str) -> Option<String>) {
        for entry in self.entries {
            if self.known.contains(&&*entry.key) || self.passed.contains(&&*entry.key) {
                continue;
            }
            if self.reader.is_full_of(severity) {
                return;
            }
            let message = format!("`{}` is not a field of {}", entry.key, self.owner.what);
            let help = advice(&entry.key).unwrap_or_else(|| advise_field(&entry.key, self.known.iter().copied()));
            let error = self.error(message, &self.reader.span(entry.key_place)).help(help);
            self.reader.report(Diagnostic { severity, ..error });
        }
    }
}

/// The value that is meant where a number or a flag is: what a variable gave is read as if it stood in the file.
fn meant(node: &Node) -> Cow<'_, Kind> {
    match &node.kind {
        Kind::Text(text) if text.style == Style::Variable => match scalar::resolve(&text.value) {
            scalar::Scalar::Number(number) => Cow::Owned(Kind::Number(number)),
            scalar::Scalar::Bool(value) => Cow::Owned(Kind::Bool(value)),
            _ => Cow::Borrowed(&node.kind),
        },
        kind => Cow::Borrowed(kind),
    }
}
