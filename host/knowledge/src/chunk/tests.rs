//! What chunks look like, by kind of document. Lengths are those of [`crate::tokens::approximate_starts`].

use async_trait::async_trait;

use super::*;
use crate::{embed::EmbedError, tokens::approximate_starts};

mod code;

struct Approximate;

#[async_trait]
impl Embedder for Approximate {
    fn name(&self) -> &str {
        "approximate"
    }

    fn token_starts(&self, text: &str) -> Vec<usize> {
        approximate_starts(text)
    }

    async fn embed(&self, _: &[String]) -> Result<Vec<Vec<f32>>, EmbedError> {
        Ok(Vec::new())
    }
}

fn cut(kind: Kind, size: usize, overlap: usize, text: &str) -> Vec<String> {
    let cutter = Cutter::new(size, overlap, &Approximate).expect("a cutter");
    let chunks = cutter.cut(kind, text);
    for chunk in &chunks {
        assert!(!chunk.trim().is_empty(), "{chunks:?}");
    }
    chunks
}

#[test]
fn sizes_that_make_no_sense_are_refused() {
    let refused = |size, overlap| Cutter::new(size, overlap, &Approximate).err();
    assert_eq!(refused(0, 0), Some(ChunkError::Size));
    assert_eq!(refused(10, 10), Some(ChunkError::Overlap { overlap: 10, size: 10 }));
    assert_eq!(refused(10, 9), None);
}

#[test]
fn text_is_cut_at_paragraphs_and_sentences() {
    let text = "One two three. Four five six.\n\nSeven eight nine ten.\n\n\nA b c d e f g h i j k.";
    assert_eq!(
        cut(Kind::Text, 8, 0, text),
        ["One two three. Four five six.", "Seven eight nine ten.", "A b c d e f g h", "i j k."]
    );
    assert_eq!(cut(Kind::Text, 100, 10, text), [text]);
    assert_eq!(cut(Kind::Text, 4, 2, "a b c d e f"), ["a b c d", "c d e f"]);
    assert_eq!(cut(Kind::Text, 4, 2, " \n "), [] as [&str; 0]);
    // Scripts without spaces, and a word longer than a chunk.
    assert_eq!(cut(Kind::Text, 3, 0, "日本語を"), ["日本語", "を"]);
    assert_eq!(cut(Kind::Text, 2, 0, &"x".repeat(30)).concat(), "x".repeat(30));
}

#[test]
fn markdown_keeps_headings_with_what_they_head() {
    let text = "# Title\n\nAbout it all.\n\n## First\n\nOne two three four.\n\n## Second\n\n- a b c\n- d e f\n";
    assert_eq!(
        cut(Kind::Markdown, 12, 0, text),
        ["# Title\n\nAbout it all.", "## First\n\nOne two three four.", "## Second\n\n- a b c\n- d e f"]
    );
}

#[test]
fn rows_have_their_columns_in_every_chunk() {
    let text = "id,name\n1,\"Ada, L\"\n2,Bob\n\n3,\"Two\nlines\"\n4,D\n";
    assert_eq!(cut(Kind::Rows(b','), 13, 5, text), ["id,name\n1,\"Ada, L\"\n2,Bob", "id,name\n3,\"Two\nlines\"\n4,D"]);
    // A row that is too long for a chunk is cut; each part knows its columns.
    let chunks = cut(Kind::Rows(b'\t'), 8, 0, "a\tb\n1\tone two three four five six seven eight\n");
    assert!(chunks.len() > 1 && chunks.iter().all(|chunk| chunk.starts_with("a\tb\n")), "{chunks:?}");
    // Columns that leave no room, or nothing but columns, are text.
    assert_eq!(cut(Kind::Rows(b','), 8, 0, "a,b,c,d\n1,2,3,4\n"), ["a,b,c,d", "1,2,3,4"]);
    assert_eq!(cut(Kind::Rows(b','), 8, 0, "a,b\n"), ["a,b"]);
}

#[test]
fn json_values_have_their_path() {
    let text = r#"{"users": [{"name": "Ada", "address": {"city": "London", "zip code": "N1 9GU"}},
        {"name": "Bob", "big": 12345678901234567890123, "rate": 1.10}], "note": "a\nb"}"#;
    assert_eq!(cut(Kind::Json, 500, 0, text), [text]);
    assert_eq!(
        cut(Kind::Json, 26, 0, text),
        [
            "users[0].name: \"Ada\"\nusers[0].address.city: \"London\"",
            r#"users[0].address["zip code"]: "N1 9GU""#,
            r#"users[1].name: "Bob"
users[1].big: 12345678901234567890123"#,
            r#"users[1].rate: 1.10
note: "a\nb""#,
        ]
    );
    let long = format!(r#"{{"a": {{"b-c": "{}"}}}}"#, "word ".repeat(30));
    let chunks = cut(Kind::Json, 20, 0, &long);
    assert!(chunks.len() > 2 && chunks.iter().all(|chunk| chunk.starts_with(r#"a["b-c"]: word"#)), "{chunks:?}");
    // One value in each line.
    assert_eq!(cut(Kind::JsonLines, 12, 0, "{\"a\":1}\n\n{\"a\":2}\n"), ["[0]: {\"a\":1}", "[1]: {\"a\":2}"]);
}

/// Each of the pieces has its path, of which the last steps say most.
#[test]
fn long_paths_are_cut_at_their_beginning() {
    let text = format!(r#"{{"{}": [{}]}}"#, "k".repeat(10_000), vec!["1"; 5_000].join(","));
    for (size, most) in [(50, 25 * text.len()), (400, 200 * text.len())] {
        let chunks = cut(Kind::Json, size, 0, &text);
        assert!(chunks.iter().map(String::len).sum::<usize>() < most);
        assert!(chunks[0].starts_with('…') && chunks[0].contains("k[0]: 1\n"), "{}", chunks[0]);
        assert!(chunks.iter().all(|chunk| approximate_starts(chunk).len() <= size));
    }
}

#[test]
fn what_is_no_json_is_text_and_depth_has_an_end() {
    assert_eq!(cut(Kind::Json, 50, 0, "{ // a comment\n}"), ["{ // a comment\n}"]);
    assert_eq!(cut(Kind::JsonLines, 50, 0, "{}\nnot json"), ["{}\nnot json"]);
    let deep = format!("{}{}", "[".repeat(20_000), "]".repeat(20_000));
    assert!(!cut(Kind::Json, 100, 0, &deep).is_empty());
}

#[test]
fn chunks_are_never_longer_than_asked_nor_is_text_lost() {
    let text = "# A\n\nSome words, and some more. ".repeat(400);
    for kind in [Kind::Text, Kind::Markdown, Kind::Code] {
        let chunks = cut(kind, 50, 0, &text);
        assert!(chunks.iter().all(|chunk| approximate_starts(chunk).len() <= 50));
        let letters = |text: &str| text.chars().filter(|letter| !letter.is_whitespace()).count();
        assert_eq!(chunks.iter().map(|chunk| letters(chunk)).sum::<usize>(), letters(&text));
    }
}

#[test]
fn cost_is_linear() {
    let paragraph = "Some words stand here, and a few more of them follow. ".repeat(6);
    let text = format!("## Heading\n\n{paragraph}\n\n").repeat(1500);
    assert!(text.len() > 450_000);
    let started = std::time::Instant::now();
    let chunks = cut(Kind::Markdown, 200, 20, &text);
    // A quadratic cutter takes minutes for this.
    assert!(chunks.len() > 500 && started.elapsed().as_secs() < 60, "{:?}", started.elapsed());
}
