//! Whatever the text: nothing panics, and every diagnostic points into the file.

use std::sync::Arc;

use hotcell_dialects::loki;
use hotcell_graph::diagnostic::{Diagnostic, Severity, SourceFile, Span, render};
use proptest::prelude::*;

use crate::surroundings::Fake;

const GOOD: &str = r#"name: g
version: "1.0"
settings: { timeout: 5, max_concurrency: 2 }
initial_state: &s { a: [1, 2.5, null], b: 'it''s', c: *s2 }
reducers: { a: append }
start: split
nodes:
  split: { type: script, script: scripts/a.js, next: [one, "two\u00e9"] }
  one:
    type: llm
    prompt: |-
      Ask {{ a }} and {{b.c[0]}}
        é {{ x y }}
    output_schema: { type: object, properties: { q: { type: string } } }
    next: done
  "twoé": { type: map, over: "{{a}}", as: x, branch: one, collect_into: r, next: done }
  gate: { type: approval, question: >-
      folded
      {{r}}
    , options: [y], routes: { y: done }, on_other: done }
  done: { type: end, output: "{{r}}" }
"#;

fn check(name: &str, text: &str) {
    let file = Arc::new(SourceFile { name: name.into(), text: text.into() });
    let loaded = loki::load(&file, &Fake);
    let has_error = loaded.diagnostics.iter().any(|one| one.severity == Severity::Error);
    assert_eq!(loaded.graph.is_none(), has_error);
    for diagnostic in &loaded.diagnostics {
        for span in places(diagnostic) {
            assert!(span.start <= span.end && span.end <= text.len(), "{diagnostic}: {}..{}", span.start, span.end);
            assert!(text.is_char_boundary(span.start) && text.is_char_boundary(span.end), "{diagnostic}");
        }
    }
    render(&loaded.diagnostics, true);
}

fn places(diagnostic: &Diagnostic) -> impl Iterator<Item = &Span> {
    diagnostic.span.iter().chain(diagnostic.related.iter().map(|(span, _)| span))
}

/// Pieces that YAML and the language give a meaning to, in any order.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("name: "),
        Just("start: "),
        Just("nodes:\n"),
        Just("  "),
        Just("\n"),
        Just("a"),
        Just("b: "),
        Just("type: "),
        Just("llm"),
        Just("script"),
        Just("map"),
        Just("end"),
        Just("approval"),
        Just("{"),
        Just("}"),
        Just("["),
        Just("]"),
        Just(", "),
        Just("- "),
        Just("&x "),
        Just("*x"),
        Just("<<: "),
        Just("!!str "),
        Just("!t "),
        Just("\""),
        Just("'"),
        Just("|\n"),
        Just(">-\n"),
        Just("\t"),
        Just("---\n"),
        Just("{{a}}"),
        Just("{{ a b }}"),
        Just("é"),
        Just("\u{feff}"),
        Just("\\u00e9"),
        Just("1"),
        Just("~"),
        Just("next: "),
        Just("prompt: "),
        Just("state_updates: "),
        Just("# c\n"),
        Just("? "),
        Just(": "),
        Just("\r\n"),
        Just("%YAML 1.1\n"),
        Just("..."),
    ];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text(text in any::<String>()) {
        check("graph.yaml", &text);
        check("graph.json", &text);
    }

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        check("graph.yaml", &String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn any_pieces(text in pieces()) {
        check("graph.yaml", &text);
        check("graph.json", &text);
    }

    #[test]
    fn a_good_file_with_a_piece_replaced(at in 0..GOOD.len(), length in 0..40usize, text in pieces()) {
        let start = GOOD.floor_char_boundary(at);
        let end = GOOD.floor_char_boundary((start + length).min(GOOD.len())).max(start);
        check("graph.yaml", &format!("{}{text}{}", &GOOD[..start], &GOOD[end..]));
    }
}
