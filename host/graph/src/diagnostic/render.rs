//! Diagnostics as a person reads them: the source line, the place underlined, and what to do.

use std::fmt::Write as _;
use std::ops::Range;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Element, Group, Level, Message, Origin, Renderer, Snippet};

use super::{Diagnostic, Severity, SourceFile, Span, sort};

/// Bytes of a file that are looked at to show a place in it. Whoever draws the place looks at all that it is given, so of a
/// larger file it is given the lines that are shown: what is said of a file costs as much as what is said.
const WHOLE: usize = 64 << 10;
/// Bytes between two places on one line from which on each is shown by itself: what lies between them is shown otherwise.
const APART: usize = 400;
/// Other places that are shown of one diagnostic.
const MOST_RELATED: usize = 100;

/// All diagnostics in the order of the source, each with its file, line, column, node, source line and advice, and a
/// last line that counts them. Readable without colour; `colour` adds ANSI escapes. Empty if there are none.
pub fn render(diagnostics: &[Diagnostic], colour: bool) -> String {
    if diagnostics.is_empty() {
        return String::new();
    }
    let mut sorted = diagnostics.to_vec();
    sort(&mut sorted);
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    let renderer = renderer.decor_style(DecorStyle::Ascii).term_width(120);
    let mut text = String::new();
    for diagnostic in &sorted {
        text.push_str(&render_one(diagnostic, &renderer));
        text.push_str("\n\n");
    }
    text.push_str(&count(&sorted));
    text.push('\n');
    text
}

fn render_one(diagnostic: &Diagnostic, renderer: &Renderer) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let title = level.primary_title(diagnostic.message.as_str());
    let mut group = match &diagnostic.span {
        Some(span) => title.elements(snippets(diagnostic, span)),
        None => Group::with_title(title),
    };
    for message in footer(diagnostic) {
        group = group.element(message);
    }
    renderer.render(&[group])
}

fn footer(diagnostic: &Diagnostic) -> impl Iterator<Item = Message<'_>> {
    let node = diagnostic.node.as_ref().map(|node| Level::NOTE.with_name(Some("node")).message(format!("`{node}`")));
    let help = diagnostic.help.as_ref().map(|help| Level::HELP.message(help.as_str()));
    node.into_iter().chain(help)
}

/// A place that is underlined.
struct Mark<'a> {
    range: Range<usize>,
    kind: AnnotationKind,
    label: Option<&'a str>,
}

/// What is shown of the file of the place itself, with the related places of that file, and then of each other file.
fn snippets<'a>(diagnostic: &'a Diagnostic, place: &'a Span) -> Vec<Element<'a>> {
    let primary = Mark { range: range(place), kind: AnnotationKind::Primary, label: diagnostic.label.as_deref() };
    let mut files: Vec<(&SourceFile, Vec<Mark<'_>>)> = vec![(&*place.file, vec![primary])];
    for (span, label) in diagnostic.related.iter().take(MOST_RELATED) {
        let mark = Mark { range: range(span), kind: AnnotationKind::Context, label: Some(label) };
        match files.iter_mut().find(|(file, _)| file.name == span.file.name) {
            Some((_, marks)) => marks.push(mark),
            None => files.push((&*span.file, vec![mark])),
        }
    }
    files.into_iter().flat_map(|(file, marks)| pieces(file, marks)).collect()
}

/// The pieces of a file in which these places are. A line that is longer than what is looked at is only named.
fn pieces<'a>(file: &'a SourceFile, marks: Vec<Mark<'a>>) -> Vec<Element<'a>> {
    let mut pieces: Vec<(Range<usize>, Vec<Mark<'_>>)> = Vec::new();
    for mark in marks {
        let is_short = file.text.len() <= WHOLE;
        let lines = if is_short { 0..file.text.len() } else { lines_around(&file.text, &mark.range) };
        let together = |piece: &Range<usize>| piece.start.min(lines.start)..piece.end.max(lines.end);
        let is_near = |marks: &[Mark<'_>]| marks.iter().all(|other| !is_far(&file.text, &other.range, &mark.range));
        match pieces.iter_mut().find(|(piece, marks)| together(piece).len() <= WHOLE && is_near(marks)) {
            Some((piece, marks)) => {
                *piece = together(piece);
                marks.push(mark);
            }
            None => pieces.push((lines, vec![mark])),
        }
    }
    pieces.into_iter().map(|(lines, marks)| piece(file, lines, marks)).collect()
}

/// Whether two places lie far from each other on one line.
fn is_far(text: &str, one: &Range<usize>, other: &Range<usize>) -> bool {
    let (from, to) = (one.end.min(other.end), one.start.max(other.start));
    to.saturating_sub(from) > APART && !text[from..to].contains('\n')
}

fn piece<'a>(file: &'a SourceFile, lines: Range<usize>, marks: Vec<Mark<'a>>) -> Element<'a> {
    if lines.len() > WHOLE {
        let at = marks.first().map_or(lines.start, |mark| mark.range.start);
        let (line, column) = file.line_column(at);
        return Origin::path(shown_name(file)).line(line).char_column(column).into();
    }
    let annotations = marks.into_iter().map(|Mark { range, kind, label }| {
        let within = range.start.saturating_sub(lines.start)..range.end.saturating_sub(lines.start);
        kind.span(within).label(label)
    });
    let first = file.line_column(lines.start).0;
    Snippet::source(&file.text[lines.clone()])
        .line_start(first)
        .path(shown_name(file))
        .annotations(annotations.collect::<Vec<_>>())
        .into()
}

/// The name of a file on one line: whoever names a folder may put line ends into it, and what looks like an answer behind them.
fn shown_name(file: &SourceFile) -> String {
    let mut shown = String::with_capacity(file.name.len());
    for character in file.name.chars() {
        match character.is_control() {
            true => shown.extend(character.escape_default()),
            false => shown.push(character),
        }
    }
    shown
}

/// The lines that a place lies in, with one before and the end of the last.
fn lines_around(text: &str, range: &Range<usize>) -> Range<usize> {
    let begin = |at: usize| text[..at].rfind('\n').map_or(0, |end| end + 1);
    let own = begin(range.start);
    let start = if own == 0 { 0 } else { begin(own - 1) };
    let end = text[range.end..].find('\n').map_or(text.len(), |end| range.end + end + 1);
    // A long line beside it is none of its own.
    let start = if end - start > WHOLE { own } else { start };
    start..end
}

/// The place cut to its first line and to the text, so that a whole block is not underlined and nothing can be out of
/// bounds.
fn range(span: &Span) -> Range<usize> {
    let text = &span.file.text;
    let start = text.floor_char_boundary(span.start.min(text.len()));
    let end = text.floor_char_boundary(span.end.clamp(start, text.len()));
    let end = text[start..end].find(['\n', '\r']).map_or(end, |line_end| start + line_end);
    start..end
}

fn count(diagnostics: &[Diagnostic]) -> String {
    let of = |severity| diagnostics.iter().filter(|diagnostic| diagnostic.severity == severity).count();
    let mut text = String::new();
    for (severity, noun) in [(Severity::Error, "error"), (Severity::Warning, "warning"), (Severity::Note, "note")] {
        let number = of(severity);
        if number == 0 {
            continue;
        }
        let separator = if text.is_empty() { "" } else { ", " };
        let plural = if number == 1 { "" } else { "s" };
        // Writing to a `String` cannot fail.
        let _ = write!(text, "{separator}{number} {noun}{plural}");
    }
    text
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::diagnostic::SourceFile;

    fn span(file: &Arc<SourceFile>, part: &str) -> Span {
        let start = file.text.find(part).unwrap();
        Span { file: Arc::clone(file), start, end: start + part.len() }
    }

    #[test]
    fn everything_is_shown_in_source_order() {
        let text = "name: x\nstart: dome\nnodes:\n  done:\n    type: end\n    ouput: \"é {{a}}\"\n";
        let file = Arc::new(SourceFile { name: "graph.yaml".into(), text: text.into() });
        let diagnostics = [
            Diagnostic::warning("`ouput` is odd")
                .at(&span(&file, "ouput"))
                .label("here")
                .related(&span(&file, "done:"), "in this node")
                .node("done")
                .help("write `output`"),
            Diagnostic::error("`start` does not name a node").at(&span(&file, "dome")),
            Diagnostic::error("two files in one folder"),
        ];
        let expected = "\
error: two files in one folder

error: `start` does not name a node
 --> graph.yaml:2:8
  |
2 | start: dome
  |        ^^^^

warning: `ouput` is odd
 --> graph.yaml:6:5
  |
4 |   done:
  |   ----- in this node
5 |     type: end
6 |     ouput: \"é {{a}}\"
  |     ^^^^^ here
  |
  = node: `done`
  = help: write `output`

2 errors, 1 warning
";
        assert_eq!(render(&diagnostics, false), expected);
        let coloured = render(&diagnostics, true);
        assert!(coloured.contains("\u{1b}["));
        let mut plain = coloured;
        while let Some(start) = plain.find('\u{1b}') {
            let end = start + plain[start..].find('m').unwrap();
            plain.replace_range(start..=end, "");
        }
        assert_eq!(plain, expected);
    }

    /// In a file that is longer than what is looked at, the same is shown.
    #[test]
    fn a_long_file_is_shown_as_a_short_one_is() {
        let lines: Vec<String> = (1..=20_000).map(|line| format!("line {line}")).collect();
        let file = Arc::new(SourceFile { name: "a.yaml".into(), text: lines.join("\n") });
        let error = Diagnostic::error("wrong").at(&span(&file, "line 15000")).label("here");
        let near = error.clone().related(&span(&file, "line 14998"), "there");
        let expected = "error: wrong\n     --> a.yaml:15000:1\n      |\n14998 | line 14998\n      | ---------- there\n\
                        14999 | line 14999\n15000 | line 15000\n      | ^^^^^^^^^^ here\n\n1 error\n";
        assert_eq!(render(&[near], false), expected);
        // What lies far away has a piece of its own, and what is long is named.
        let far = render(&[error.related(&span(&file, "line 7"), "far away")], false);
        assert!(far.contains("15000 | line 15000") && far.contains("line 7\n") && far.len() < 500, "{far}");
        let last = file.text.len();
        let end = Diagnostic::error("cut").at(&Span { file: Arc::clone(&file), start: last, end: last });
        assert!(render(&[end], false).contains("--> a.yaml:20000:11"));
    }

    /// As in a JSON file without line ends.
    #[test]
    fn places_far_apart_on_one_line_are_shown_without_what_lies_between() {
        let text = format!("{{one: {}two: 2}}", "é, ".repeat(10_000));
        let file = Arc::new(SourceFile { name: "a.json".into(), text });
        let shown =
            render(&[Diagnostic::error("twice").at(&span(&file, "two")).related(&span(&file, "one"), "first")], false);
        assert!(shown.contains("a.json:1:30007") && shown.contains("^^^") && shown.contains("--- first"), "{shown}");
        assert!(shown.len() < 1_000, "{}", shown.len());
    }

    #[test]
    fn a_line_of_a_megabyte_is_named_and_not_shown() {
        let text = format!("first\n{{{}", "é, ".repeat(300_000));
        let file = Arc::new(SourceFile { name: "a".into(), text });
        let mut error = Diagnostic::error("wrong").at(&Span { file: Arc::clone(&file), start: 3_007, end: 3_009 });
        for at in 0..5_000 {
            error = error.related(&Span { file: Arc::clone(&file), start: 100 * at, end: 100 * at }, "again");
        }
        let shown = render(&[error], false);
        assert!(shown.contains("--> a:2:2252"), "{}", &shown[..200]);
        assert!(shown.len() < 100_000, "{}", shown.len());
    }

    #[test]
    fn a_place_outside_the_text_or_inside_a_letter_is_moved() {
        let file = Arc::new(SourceFile { name: "a".into(), text: "é\nx".into() });
        for (start, end) in [(1, 2), (0, 900), (700, 900), (3, 1)] {
            let span = Span { file: Arc::clone(&file), start, end };
            assert!(render(&[Diagnostic::error("e").at(&span)], false).contains("--> a:"), "{start}..{end}");
        }
    }

    #[test]
    fn nothing_renders_as_nothing() {
        assert_eq!(render(&[], true), "");
    }
}
