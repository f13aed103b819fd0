//! YAML to a tree: aliases and merge keys resolved within a budget, everything that builds objects refused.

use std::collections::HashMap;
use std::sync::Arc;

use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, ScanError, Span as YamlSpan, Tag};
use hotcell_graph::diagnostic::{Diagnostic, SourceFile, Span};

use super::scalar::{Scalar, resolve};
use super::{BYTE_ORDER_MARK, Entry, Kind, MAX_COPIES, MAX_DEPTH, MAX_VALUES, Node, Place, Style, Text};

/// Reads one YAML document. No node if the syntax is broken.
pub(super) fn parse(file: &Arc<SourceFile>) -> (Option<Node>, Vec<Diagnostic>) {
    let skipped = if file.text.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
    let options = granit_parser::options! {
        flow_nesting_limit: MAX_DEPTH,
        block_nesting_limit: MAX_DEPTH,
        emit_comments: false,
    };
    let mut builder = Builder {
        file,
        skipped,
        stack: Vec::new(),
        anchors: HashMap::new(),
        values_left: MAX_VALUES,
        copies_left: MAX_COPIES,
        root: None,
        diagnostics: Vec::new(),
    };
    for event in Parser::new_from_str_with_options(&file.text[skipped..], options) {
        let step = match event {
            Ok((event, span)) => builder.take(&event, &span),
            Err(error) => Err(builder.syntax_error(&error)),
        };
        if let Err(error) = step {
            builder.report(*error);
            return (None, builder.diagnostics);
        }
    }
    let root = builder.root.unwrap_or(Node { place: Place::default(), kind: Kind::Null });
    (Some(root), builder.diagnostics)
}

/// An error after which reading stops.
type Fatal = Box<Diagnostic>;

struct Builder<'f> {
    file: &'f Arc<SourceFile>,
    /// Bytes of the file before the text that is parsed
    skipped: usize,
    stack: Vec<Open>,
    anchors: HashMap<usize, Anchored>,
    values_left: usize,
    copies_left: usize,
    root: Option<Node>,
    diagnostics: Vec<Diagnostic>,
}

/// A list or mapping whose end has not come yet.
struct Open {
    start: usize,
    anchor: usize,
    kind: OpenKind,
}

enum OpenKind {
    List(Vec<Node>),
    Map { entries: Vec<Entry>, merged: Vec<Node>, key: PendingKey },
}

/// The key whose value comes next.
enum PendingKey {
    None,
    Key(Arc<str>, Place),
    /// `<<`
    Merge,
    /// Something that cannot be a key and was reported
    Refused,
}

struct Anchored {
    node: Node,
    size: usize,
    depth: usize,
}

impl Builder<'_> {
    fn take(&mut self, event: &Event<'_>, span: &YamlSpan) -> Result<(), Fatal> {
        match event {
            Event::DocumentStart(..) if self.root.is_some() => {
                let error = Diagnostic::error("the file holds more than one YAML document")
                    .at(&self.span(span))
                    .label("the second one starts here")
                    .help("keep one document in a file");
                return Err(Box::new(error));
            }
            Event::Scalar(text, style, anchor, tag) => {
                self.count(span)?;
                let node = self.scalar(text, *style, tag.as_deref(), span);
                self.remember(*anchor, &node)?;
                self.add(node);
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.check_tag(tag.as_deref(), "seq", span);
                self.open(*anchor, span, OpenKind::List(Vec::new()))?;
            }
            Event::MappingStart(_, anchor, tag) => {
                self.check_tag(tag.as_deref(), "map", span);
                let kind = OpenKind::Map { entries: Vec::new(), merged: Vec::new(), key: PendingKey::None };
                self.open(*anchor, span, kind)?;
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(span)?,
            Event::Alias(anchor) => {
                let node = self.alias(*anchor, span)?;
                self.add(node);
            }
            _ => {}
        }
        Ok(())
    }

    fn open(&mut self, anchor: usize, span: &YamlSpan, kind: OpenKind) -> Result<(), Fatal> {
        if self.stack.len() >= MAX_DEPTH {
            return Err(self.too_deep(&self.span(span)));
        }
        self.count(span)?;
        self.stack.push(Open { start: self.place(span).start as usize, anchor, kind });
        Ok(())
    }

    fn close(&mut self, span: &YamlSpan) -> Result<(), Fatal> {
        // The parser closes only what it opened.
        let Some(open) = self.stack.pop() else { return Ok(()) };
        let kind = match open.kind {
            OpenKind::List(items) => Kind::List(items),
            OpenKind::Map { mut entries, merged, .. } => {
                super::remove_duplicates(&mut entries, self.file, &mut self.diagnostics);
                self.merge(&mut entries, merged);
                Kind::Map(entries)
            }
        };
        // A block ends where the next thing starts; its place ends with its last value instead.
        let last = match &kind {
            Kind::List(items) => items.last().map(|node| node.place.end),
            Kind::Map(entries) => entries.last().map(|entry| entry.value.place.end.max(entry.key_place.end)),
            _ => None,
        };
        let end = self.place(span).end as usize;
        let is_flow = self.file.text.as_bytes().get(open.start).is_some_and(|byte| matches!(byte, b'[' | b'{'));
        let end = if is_flow { end } else { last.map_or(end, |last| last as usize) };
        let node = Node { place: Place::new(open.start, end), kind };
        if let Some(excess) = super::excess(&node.kind) {
            return Err(Box::new(Diagnostic::error(excess).at(&super::span(self.file, node.place))));
        }
        self.remember(open.anchor, &node)?;
        self.add(node);
        Ok(())
    }

    /// Counts a value that begins here; keys are values, too.
    fn count(&mut self, span: &YamlSpan) -> Result<(), Fatal> {
        match self.values_left.checked_sub(1) {
            Some(left) => {
                self.values_left = left;
                Ok(())
            }
            None => Err(Box::new(Diagnostic::error(super::too_many_values()).at(&self.span(span)))),
        }
    }

    /// Puts a finished node where it belongs.
    fn add(&mut self, node: Node) {
        let Some(open) = self.stack.last_mut() else {
            self.root.get_or_insert(node);
            return;
        };
        match &mut open.kind {
            OpenKind::List(items) => items.push(node),
            OpenKind::Map { entries, merged, key } => match std::mem::replace(key, PendingKey::None) {
                PendingKey::None => {
                    let pending = self.key(node);
                    // The frame is still the last one: reading a key opens nothing.
                    if let Some(Open { kind: OpenKind::Map { key, .. }, .. }) = self.stack.last_mut() {
                        *key = pending;
                    }
                }
                PendingKey::Key(key, key_place) => entries.push(Entry { key, key_place, value: node }),
                PendingKey::Merge => merged.push(node),
                PendingKey::Refused => {}
            },
        }
    }

    fn key(&mut self, node: Node) -> PendingKey {
        let place = node.place;
        match node.kind {
            Kind::Text(text) if &*text.value == "<<" && text.style == Style::Plain => PendingKey::Merge,
            Kind::Text(text) => PendingKey::Key(text.value, place),
            Kind::List(_) | Kind::Map(_) => {
                let error = Diagnostic::error("a list or a mapping cannot be a key")
                    .at(&super::span(self.file, place))
                    .help("use a text as the key; a value that starts with `{{` needs quotes around it");
                self.report(error);
                PendingKey::Refused
            }
            Kind::Null | Kind::Bool(_) | Kind::Number(_) => {
                let raw = self.file.text.get(place.start as usize..place.end as usize).unwrap_or_default();
                let error = match raw {
                    "" => Diagnostic::error("a key is missing before `:`"),
                    raw => Diagnostic::error(format!("the key `{raw}` is {}, not a text", node.describe()))
                        .help(format!("put it in quotes: `\"{raw}\"`")),
                };
                let pending = PendingKey::Key(raw.into(), place);
                self.report(error.at(&super::span(self.file, place)));
                pending
            }
        }
    }

    /// Adds what merge keys bring: entries that the mapping does not have itself, the first source first.
    fn merge(&mut self, entries: &mut Vec<Entry>, merged: Vec<Node>) {
        let mut sources = Vec::new();
        for node in merged {
            match node.kind {
                Kind::Map(source) => sources.push(source),
                Kind::List(items) if items.iter().all(|item| matches!(item.kind, Kind::Map(_))) => {
                    for item in items {
                        if let Kind::Map(source) = item.kind {
                            sources.push(source);
                        }
                    }
                }
                _ => {
                    let error = Diagnostic::error("the merge key `<<` takes a mapping or a list of mappings")
                        .at(&super::span(self.file, node.place))
                        .help("put `<<` in quotes if it is meant as a key of its own");
                    self.report(error);
                }
            }
        }
        if sources.is_empty() {
            return;
        }
        let mut known: std::collections::HashSet<Arc<str>> = entries.iter().map(|entry| entry.key.clone()).collect();
        for entry in sources.into_iter().flatten() {
            if known.insert(Arc::clone(&entry.key)) {
                entries.push(entry);
            }
        }
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, tag: Option<&Tag>, span: &YamlSpan) -> Node {
        let place = self.scalar_place(style, span);
        let own_style = match style {
            ScalarStyle::Plain => Style::Plain,
            ScalarStyle::SingleQuoted => Style::Single,
            ScalarStyle::DoubleQuoted => Style::Double,
            ScalarStyle::Literal | ScalarStyle::Folded => Style::Block,
        };
        let as_text = || Kind::Text(Text { value: text.into(), style: own_style });
        let core = tag.and_then(Tag::core_suffix);
        let kind = match (tag, core) {
            (None, _) if style == ScalarStyle::Plain => self.plain(text, place).unwrap_or_else(as_text),
            (None, _) | (_, Some("str")) => as_text(),
            (Some(_), Some(wanted @ ("null" | "bool" | "int" | "float"))) => {
                let kind = self.plain(text, place).unwrap_or_else(as_text);
                let fits = match (&kind, wanted) {
                    (Kind::Null, "null") | (Kind::Bool(_), "bool") | (Kind::Number(_), "float") => true,
                    (Kind::Number(number), "int") => number.is_integer(),
                    _ => false,
                };
                if !fits {
                    let error = Diagnostic::error(format!("`{text}` is not what its tag `!!{wanted}` says"))
                        .at(&super::span(self.file, place));
                    self.report(error);
                }
                kind
            }
            (Some(tag), _) if tag.handle().is_empty() && tag.suffix() == "!" => as_text(),
            (Some(tag), _) => {
                self.refuse_tag(tag, span);
                as_text()
            }
        };
        Node { place, kind }
    }

    /// The meaning of an unquoted word; none for a text.
    fn plain(&mut self, text: &str, place: Place) -> Option<Kind> {
        match resolve(text) {
            Scalar::Null => Some(Kind::Null),
            Scalar::Bool(value) => Some(Kind::Bool(value)),
            Scalar::Number(number) => Some(Kind::Number(number)),
            Scalar::Text => None,
            Scalar::NotFinite => {
                let error = Diagnostic::error(format!("the number `{text}` has no value in JSON"))
                    .at(&super::span(self.file, place))
                    .help(format!("write a finite number, or `\"{text}\"` for a text"));
                self.report(error);
                None
            }
        }
    }

    fn check_tag(&mut self, tag: Option<&Tag>, expected: &str, span: &YamlSpan) {
        if let Some(tag) = tag
            && tag.core_suffix() != Some(expected)
        {
            self.refuse_tag(tag, span);
        }
    }

    fn refuse_tag(&mut self, tag: &Tag, span: &YamlSpan) {
        let place = span.tag_span().unwrap_or(*span);
        let error = Diagnostic::error(format!("the tag `{}` is not supported", tag.original()))
            .at(&self.span(&place))
            .help("remove it: only texts, numbers, booleans, null, lists and mappings are read, nothing is built");
        self.report(error);
    }

    fn remember(&mut self, anchor: usize, node: &Node) -> Result<(), Fatal> {
        if anchor == 0 {
            return Ok(());
        }
        let (size, depth) = node.copied();
        self.spend(size, &super::span(self.file, node.place))?;
        self.anchors.insert(anchor, Anchored { node: node.clone(), size, depth });
        Ok(())
    }

    fn alias(&mut self, anchor: usize, span: &YamlSpan) -> Result<Node, Fatal> {
        let span = self.span(span);
        let Some(anchored) = self.anchors.get(&anchor) else {
            let error = Diagnostic::error("the alias stands inside the value that it names")
                .at(&span)
                .help("a value cannot contain itself");
            return Err(Box::new(error));
        };
        let size = anchored.size;
        if self.stack.len() + anchored.depth > MAX_DEPTH {
            return Err(self.too_deep(&span));
        }
        let node = anchored.node.clone();
        self.spend(size, &span)?;
        Ok(node)
    }

    fn spend(&mut self, copies: usize, span: &Span) -> Result<(), Fatal> {
        match self.copies_left.checked_sub(copies) {
            Some(left) => {
                self.copies_left = left;
                Ok(())
            }
            None => Err(Box::new(
                Diagnostic::error(format!("the aliases of this YAML file stand for more than {MAX_COPIES} values"))
                    .at(span)
                    .label("the limit is passed here")
                    .help("write the values out, or keep such data in a file of its own; a long text counts as several values"),
            )),
        }
    }

    fn too_deep(&self, span: &Span) -> Fatal {
        Box::new(Diagnostic::error(format!("lists and mappings are nested more than {MAX_DEPTH} levels deep")).at(span))
    }

    fn syntax_error(&self, error: &ScanError) -> Fatal {
        let at = self.skipped + error.marker().byte_offset().unwrap_or(0);
        let text = &self.file.text;
        let at = text.floor_char_boundary(at.min(text.len()));
        // Where a tab is wrong, what stands before it is what was read last.
        let is_tab = matches!(
            error.kind(),
            ErrorKind::TabNotAllowed
                | ErrorKind::TabInBlockIndentation
                | ErrorKind::TabAtBlockScalarStart
                | ErrorKind::TabInIndentation
                | ErrorKind::TabInPlainScalar
        );
        let at = if is_tab { text[at..].find('\t').map_or(at, |tab| at + tab) } else { at };
        let span = Span { file: Arc::clone(self.file), start: at, end: text.ceil_char_boundary(at + 1) };
        let (message, help) = match error.kind() {
            ErrorKind::RecursionLimitExceeded => return self.too_deep(&span),
            _ if is_tab => {
                ("a tab is used for indentation".to_owned(), Some("indent with spaces: YAML does not allow tabs"))
            }
            ErrorKind::UnknownAnchor => ("the alias names an anchor that is not defined before it".to_owned(), None),
            ErrorKind::UnclosedQuotedScalar | ErrorKind::InvalidQuotedScalarIndent => (
                "a quoted text is not closed, or goes on in a line with too little indentation".to_owned(),
                Some("put the closing quote at the end of the text"),
            ),
            ErrorKind::ExpectedFlowMappingSeparator => {
                ("`,` or `}` is expected here".to_owned(), Some("check that brackets are closed"))
            }
            ErrorKind::ExpectedFlowSequenceSeparator => {
                ("`,` or `]` is expected here".to_owned(), Some("check that brackets are closed"))
            }
            ErrorKind::UnexpectedEofFlowMapping | ErrorKind::UnexpectedEofImplicitFlowMapping => {
                ("the file ends where `}` is expected".to_owned(), None)
            }
            ErrorKind::UnexpectedEofFlowSequence => ("the file ends where `]` is expected".to_owned(), None),
            ErrorKind::UnclosedFlowCollection { open } => (format!("`{open}` is not closed"), None),
            ErrorKind::MappingValueNotAllowed | ErrorKind::InvalidColonPlacement => (
                "a key with `:` cannot stand here".to_owned(),
                Some("check the indentation, and put texts that contain `: ` in quotes"),
            ),
            ErrorKind::ExpectedBlockMappingKey | ErrorKind::SimpleKeyExpected => (
                "a key followed by `:` is expected here".to_owned(),
                Some("check the indentation, and that quotes and brackets are closed"),
            ),
            ErrorKind::UnexpectedCharacter { character } => {
                (format!("`{}` cannot start a value", character.escape_default()), Some("put the text in quotes"))
            }
            kind => (kind.to_string(), None),
        };
        let mut diagnostic = Diagnostic::error(format!("the file is not valid YAML: {message}")).at(&span);
        diagnostic.help = help.map(str::to_owned);
        Box::new(diagnostic)
    }

    fn place(&self, span: &YamlSpan) -> Place {
        let range = span.byte_range().unwrap_or(0..0);
        Place::new(self.skipped + range.start, self.skipped + range.end)
    }

    /// Where a scalar is written, without white space behind it and for a block with its header.
    fn scalar_place(&self, style: ScalarStyle, span: &YamlSpan) -> Place {
        let place = self.place(span);
        let (mut start, end) = (place.start as usize, place.end as usize);
        let text = &self.file.text;
        let (Some(before), Some(written)) = (text.get(..start), text.get(start..end)) else { return place };
        if matches!(style, ScalarStyle::Literal | ScalarStyle::Folded)
            && !written.starts_with(['|', '>'])
            && let Some(header) = before.rfind(['|', '>'])
            && before[header..].trim_end_matches([' ', '\t']).ends_with('\n')
        {
            start = header;
        }
        Place::new(start, end - (written.len() - written.trim_end().len()))
    }

    fn span(&self, span: &YamlSpan) -> Span {
        super::span(self.file, self.place(span))
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        super::report(&mut self.diagnostics, diagnostic);
    }
}
