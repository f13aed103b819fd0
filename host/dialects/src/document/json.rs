//! JSON to the same tree as YAML.

use std::sync::Arc;

use hotcell_graph::diagnostic::{Diagnostic, SourceFile, Span};
use jiter::{Jiter, JiterError, Peek};

use super::scalar::{Scalar, resolve};
use super::{BYTE_ORDER_MARK, Entry, Kind, MAX_DEPTH, MAX_VALUES, Node, Place, Style, Text};

/// Reads one JSON document. No node if the syntax is broken.
pub(super) fn parse(file: &Arc<SourceFile>) -> (Option<Node>, Vec<Diagnostic>) {
    let skipped = if file.text.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
    let jiter = Jiter::new(&file.text.as_bytes()[skipped..]);
    let mut builder = Builder { file, skipped, jiter, values_left: MAX_VALUES, diagnostics: Vec::new() };
    let root = builder.document();
    match root {
        Ok(node) => (Some(node), builder.diagnostics),
        Err(error) => {
            let error = builder.explain(&error);
            builder.diagnostics.push(error);
            (None, builder.diagnostics)
        }
    }
}

enum Broken {
    Syntax(JiterError),
    TooDeep(usize),
    /// There is too much of something, in words, at this offset
    TooMuch(String, usize),
}

impl From<JiterError> for Broken {
    fn from(error: JiterError) -> Self {
        Broken::Syntax(error)
    }
}

struct Builder<'f> {
    file: &'f Arc<SourceFile>,
    skipped: usize,
    jiter: Jiter<'f>,
    values_left: usize,
    diagnostics: Vec<Diagnostic>,
}

impl Builder<'_> {
    fn document(&mut self) -> Result<Node, Broken> {
        let peek = self.jiter.peek()?;
        let root = self.value(peek, 0)?;
        self.jiter.finish()?;
        Ok(root)
    }

    /// Where the parser is, as an offset in the file.
    fn at(&self) -> usize {
        self.skipped + self.jiter.current_index()
    }

    fn value(&mut self, peek: Peek, depth: usize) -> Result<Node, Broken> {
        if depth > MAX_DEPTH {
            return Err(Broken::TooDeep(self.at()));
        }
        let start = self.at();
        let too_many = || Broken::TooMuch(super::too_many_values(), start);
        self.values_left = self.values_left.checked_sub(1).ok_or_else(too_many)?;
        let kind = match peek {
            Peek::Null => {
                self.jiter.known_null()?;
                Kind::Null
            }
            Peek::True | Peek::False => Kind::Bool(self.jiter.known_bool(peek)?),
            Peek::String => {
                let value: Arc<str> = self.jiter.known_str()?.into();
                Kind::Text(Text { value, style: Style::Double })
            }
            Peek::Array => {
                let mut items = Vec::new();
                let mut next = self.jiter.known_array()?;
                while let Some(peek) = next {
                    items.push(self.value(peek, depth + 1)?);
                    next = self.jiter.array_step()?;
                }
                Kind::List(items)
            }
            Peek::Object => self.object(depth)?,
            _ => {
                self.jiter.known_number_bytes(peek)?;
                self.number(start)
            }
        };
        match super::excess(&kind) {
            Some(excess) => Err(Broken::TooMuch(excess, start)),
            None => Ok(Node { place: Place::new(start, self.at()), kind }),
        }
    }

    fn object(&mut self, depth: usize) -> Result<Kind, Broken> {
        let mut entries = Vec::new();
        let mut before = self.at() + 1;
        let mut key: Option<Arc<str>> = self.jiter.known_object()?.map(Arc::from);
        while let Some(name) = key {
            let key_place = self.key_place(before);
            let peek = self.jiter.peek()?;
            let value = self.value(peek, depth + 1)?;
            entries.push(Entry { key: name, key_place, value });
            before = self.at();
            key = self.jiter.next_key()?.map(Arc::from);
        }
        super::remove_duplicates(&mut entries, self.file, &mut self.diagnostics);
        Ok(Kind::Map(entries))
    }

    /// The place of the key that was just read; nothing but white space and a comma lies between `before` and it, and
    /// nothing but white space and a colon between it and where the parser is.
    fn key_place(&self, before: usize) -> Place {
        let between = &self.file.text[before..self.at()];
        let start = between.find('"').unwrap_or(0);
        let end = between.rfind('"').map_or(start, |end| end + 1);
        Place::new(before + start, before + end)
    }

    fn number(&mut self, start: usize) -> Kind {
        let raw = &self.file.text[start..self.at()];
        match resolve(raw) {
            Scalar::Number(number) => Kind::Number(number),
            _ => {
                let span = Span { file: Arc::clone(self.file), start, end: self.at() };
                let error = Diagnostic::error("the number is too large to be held").at(&span);
                super::report(&mut self.diagnostics, error);
                Kind::Null
            }
        }
    }

    fn explain(&self, broken: &Broken) -> Diagnostic {
        let (at, message) = match broken {
            Broken::Syntax(error) => {
                (self.skipped + error.index, format!("the file is not valid JSON: {}", error.error_type))
            }
            Broken::TooDeep(at) => (*at, format!("lists and mappings are nested more than {MAX_DEPTH} levels deep")),
            Broken::TooMuch(what, at) => (*at, what.clone()),
        };
        let text = &self.file.text;
        let start = text.floor_char_boundary(at.min(text.len()));
        let end = text.ceil_char_boundary((start + 1).min(text.len()));
        Diagnostic::error(message).at(&Span { file: Arc::clone(self.file), start, end })
    }
}
