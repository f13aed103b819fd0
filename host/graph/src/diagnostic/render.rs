//! Diagnostics as a person reads them: the source line, the place underlined, and what to do.

use std::fmt::Write as _;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Message, Renderer, Snippet};

use super::{Diagnostic, Severity, Span, sort};

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

/// One snippet for the file of the place itself, with the related places of that file, and one for each other file.
fn snippets<'a>(diagnostic: &'a Diagnostic, place: &'a Span) -> Vec<Snippet<'a, annotate_snippets::Annotation<'a>>> {
    let primary = AnnotationKind::Primary.span(range(place)).label(diagnostic.label.as_deref());
    let mut files = vec![(&place.file, vec![primary])];
    for (span, label) in &diagnostic.related {
        let annotation = AnnotationKind::Context.span(range(span)).label(label.as_str());
        match files.iter_mut().find(|(file, _)| file.name == span.file.name) {
            Some((_, annotations)) => annotations.push(annotation),
            None => files.push((&span.file, vec![annotation])),
        }
    }
    files
        .into_iter()
        .map(|(file, annotations)| {
            Snippet::source(file.text.as_str()).path(file.name.as_str()).annotations(annotations)
        })
        .collect()
}

/// The place cut to its first line and to the text, so that a whole block is not underlined and nothing can be out of
/// bounds.
fn range(span: &Span) -> std::ops::Range<usize> {
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
            Diagnostic::error("`start` names no node").at(&span(&file, "dome")),
            Diagnostic::error("two files in one folder"),
        ];
        let expected = "\
error: two files in one folder

error: `start` names no node
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
