//! What is wrong with a source file, and where.

mod render;

use std::fmt;
use std::sync::Arc;

pub use render::render;

/// A piece of a source file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// The file
    pub file: Arc<SourceFile>,
    /// Byte offset of its start
    pub start: usize,
    /// Byte offset behind its end
    pub end: usize,
}

/// A source file and its text.
#[derive(Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// The name as it is shown to the person
    pub name: String,
    /// The whole text
    pub text: String,
}

impl Span {
    /// A span for what was not written in any file (tests, graphs that are built in code).
    pub fn none() -> Self {
        Span { file: Arc::new(SourceFile { name: String::new(), text: String::new() }), start: 0, end: 0 }
    }

    /// Line and column of the start, both counted from 1, the column in characters.
    pub fn line_column(&self) -> (usize, usize) {
        self.file.line_column(self.start)
    }
}

impl SourceFile {
    /// Line and column of an offset, both counted from 1, the column in characters.
    fn line_column(&self, offset: usize) -> (usize, usize) {
        let before = &self.text[..self.text.floor_char_boundary(offset.min(self.text.len()))];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
    }
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The graph runs as it says, and could be better; only a check mentions it
    Note,
    /// The graph runs, but probably not as meant
    Warning,
    /// The graph does not run
    Error,
}

/// One thing that is wrong with a source file.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnostic {
    /// How bad it is
    pub severity: Severity,
    /// What is wrong: a sentence without full stop, literals in backticks
    pub message: String,
    /// Where; none when no place in a file is to blame
    pub span: Option<Span>,
    /// A few words at the marked place
    pub label: Option<String>,
    /// Other places that belong to it, each with a few words
    pub related: Vec<(Span, String)>,
    /// The node it is about
    pub node: Option<String>,
    /// What to do about it
    pub help: Option<String>,
}

/// Bytes of one text of a diagnostic. A name in a file may have megabytes, and thousands of names may stand in one sentence.
const LONGEST: usize = 16 << 10;

/// A text as long as anybody reads it: of a longer one its beginning and its end.
fn readable(text: impl Into<String>) -> String {
    let text = text.into();
    if text.len() <= LONGEST {
        return text;
    }
    let begin = &text[..text.floor_char_boundary(LONGEST / 4 * 3)];
    let end = &text[text.floor_char_boundary(text.len() - LONGEST / 4)..];
    format!("{begin}… ({} more bytes) …{end}", text.len() - begin.len() - end.len())
}

impl Diagnostic {
    /// An error. Of this and the other texts of a diagnostic 16 KiB are kept.
    pub fn error(message: impl Into<String>) -> Self {
        Diagnostic {
            severity: Severity::Error,
            message: readable(message),
            span: None,
            label: None,
            related: Vec::new(),
            node: None,
            help: None,
        }
    }

    /// A warning.
    pub fn warning(message: impl Into<String>) -> Self {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(message) }
    }

    /// Something that could be better.
    pub fn note(message: impl Into<String>) -> Self {
        Diagnostic { severity: Severity::Note, ..Diagnostic::error(message) }
    }

    /// With the place it is about.
    pub fn at(mut self, span: &Span) -> Self {
        self.span = Some(span.clone());
        self
    }

    /// With a few words at that place.
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(readable(label));
        self
    }

    /// With another place that belongs to it, and a few words there.
    pub fn related(mut self, span: &Span, label: impl Into<String>) -> Self {
        self.related.push((span.clone(), readable(label)));
        self
    }

    /// With the node it is about.
    pub fn node(mut self, id: impl Into<String>) -> Self {
        self.node = Some(readable(id));
        self
    }

    /// With advice.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(readable(help));
        self
    }
}

/// Puts diagnostics in the order of the source: those without a place first, then by file, then by position.
pub fn sort(diagnostics: &mut [Diagnostic]) {
    diagnostics.sort_by(|left, right| {
        let key = |diagnostic: &Diagnostic| {
            diagnostic.span.as_ref().map(|span| (Arc::clone(&span.file), span.start, span.end))
        };
        match (key(left), key(right)) {
            (Some((left_file, left_start, left_end)), Some((right_file, right_start, right_end))) => {
                left_file.name.cmp(&right_file.name).then((left_start, left_end).cmp(&(right_start, right_end)))
            }
            (left, right) => left.is_some().cmp(&right.is_some()),
        }
    });
}

impl fmt::Display for Diagnostic {
    /// One line: `file:line:column: error: [node] message (help)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(span) = &self.span {
            let (line, column) = span.line_column();
            write!(f, "{}:{line}:{column}: ", span.file.name)?;
        }
        f.write_str(match self.severity {
            Severity::Note => "note: ",
            Severity::Warning => "warning: ",
            Severity::Error => "error: ",
        })?;
        if let Some(node) = &self.node {
            write!(f, "[{node}] ")?;
        }
        f.write_str(&self.message)?;
        match &self.help {
            Some(help) => write!(f, " ({help})"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Twelve names of a megabyte in each of two hundred sentences would be gigabytes.
    #[test]
    fn no_text_of_a_diagnostic_is_longer_than_anybody_reads() {
        let name = "é".repeat(1 << 20);
        let diagnostic =
            Diagnostic::error(&*name).label(&*name).node(&*name).help(&*name).related(&Span::none(), &*name);
        let texts = [Some(diagnostic.message), diagnostic.label, diagnostic.node, diagnostic.help];
        for text in texts.into_iter().flatten().chain(diagnostic.related.into_iter().map(|(_, label)| label)) {
            assert!(text.capacity() <= 2 * LONGEST, "{}", text.capacity());
            assert!(text.starts_with('é') && text.ends_with('é') && text.contains("é… (2080768 more bytes) …é"));
        }
        assert_eq!(Diagnostic::error("short").message, "short");
    }
}
