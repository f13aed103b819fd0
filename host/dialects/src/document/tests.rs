use std::sync::Arc;

use hotcell_graph::diagnostic::SourceFile;

use super::*;

fn parse_ok(name: &str, text: &str) -> Document {
    let file = Arc::new(SourceFile { name: name.into(), text: text.into() });
    let (document, diagnostics) = parse(&file);
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    document.unwrap()
}

/// Every key and value with the text of its place, by path.
fn places(document: &Document) -> Vec<(String, String)> {
    fn walk(document: &Document, path: &str, node: &Node, found: &mut Vec<(String, String)>) {
        found.push((path.to_owned(), document.raw(node.place).to_owned()));
        match &node.kind {
            Kind::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    walk(document, &format!("{path}[{index}]"), item, found);
                }
            }
            Kind::Map(entries) => {
                for entry in entries {
                    let path = format!("{path}.{}", entry.key);
                    found.push((format!("{path}:"), document.raw(entry.key_place).to_owned()));
                    walk(document, &path, &entry.value, found);
                }
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    walk(document, "", &document.root, &mut found);
    found
}

#[test]
fn yaml_places() {
    let text = "\u{feff}# first\na: one two  # c\n'b': \"x\\ny\"\nc:\n  - 5\n  - [x, {k: v}]\nd: |\n  lines\n\n  more {{x}}\n\ne: &n !!str 7\nf: *n\né:\n";
    let document = parse_ok("x.yaml", text);
    let found = places(&document);
    let place = |path: &str| &*found.iter().find(|(known, _)| known == path).unwrap().1;
    for (path, expected) in [
        (".a:", "a"),
        (".a", "one two"),
        (".b:", "'b'"),
        (".b", "\"x\\ny\""),
        (".c:", "c"),
        (".c", "- 5\n  - [x, {k: v}]"),
        (".c[0]", "5"),
        (".c[1]", "[x, {k: v}]"),
        (".c[1][1]", "{k: v}"),
        (".c[1][1].k:", "k"),
        (".c[1][1].k", "v"),
        (".d", "|\n  lines\n\n  more {{x}}"),
        (".e", "7"),
        (".f:", "f"),
        (".f", "7"),
        (".é:", "é"),
        (".é", ""),
    ] {
        assert_eq!(place(path), expected, "{path}");
    }
    assert_eq!(document.root.get("e").unwrap().value.to_value(), hotcell_graph::Value::text("7"));
}

#[test]
fn json_places_and_values() {
    let text = "\u{feff}{ \"a\" : [1, -2.5e0 , \"x\\\"y\"], \"b\\n\":{\"k\": null},\n\"c\":true}\n";
    let document = parse_ok("x.JSON", text);
    let found = places(&document);
    let place = |path: &str| &*found.iter().find(|(known, _)| known == path).unwrap().1;
    for (path, expected) in [
        ("", text.trim_start_matches('\u{feff}').trim_end()),
        (".a:", "\"a\""),
        (".a", "[1, -2.5e0 , \"x\\\"y\"]"),
        (".a[1]", "-2.5e0"),
        (".a[2]", "\"x\\\"y\""),
        (".b\n:", "\"b\\n\""),
        (".b\n.k", "null"),
        (".c", "true"),
    ] {
        assert_eq!(place(path), expected, "{path}");
    }
    assert_eq!(document.root.to_value().to_json(), r#"{"a":[1,-2.5,"x\"y"],"b\n":{"k":null},"c":true}"#);
}

#[test]
fn json_mistakes_have_their_place() {
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    for (text, message, at) in [
        ("", "not valid JSON", 0),
        ("{\"a\": 1,}", "not valid JSON", 8),
        ("{\"a\": 1} x", "not valid JSON", 9),
        ("{\"a\": 1, \"b\": 2, \"a\": 3}", "the key `a` occurs twice", 17),
        ("[1e999]", "too large", 1),
        (&deep, "more than 128 levels", 129),
    ] {
        let file = Arc::new(SourceFile { name: "x.json".into(), text: text.into() });
        let (_, diagnostics) = parse(&file);
        let [diagnostic] = &diagnostics[..] else { panic!("{text}: {diagnostics:?}") };
        assert!(diagnostic.message.contains(message), "{diagnostic}");
        assert_eq!(diagnostic.span.as_ref().unwrap().start, at, "{diagnostic}");
    }
}

#[test]
fn a_part_of_a_text_leads_to_its_place() {
    let text = "a: >-\n  some\n  folded {{x.y}} text\nb: 'it''s {{ z }}'\n";
    let document = parse_ok("x.yaml", text);
    let reader = Reader::new(&document);
    let owner = Owner { what: "the file".into(), node: None, place: Place::default() };
    for (key, part) in [("a", "{{x.y}}"), ("b", "{{ z }}")] {
        let source = reader.text(&document.root.get(key).unwrap().value, || key.to_owned(), &owner).unwrap();
        let start = source.find(part).unwrap();
        let span = source.span_of(start..start + part.len());
        assert_eq!(&text[span.start..span.end], part);
    }
}

#[test]
fn the_way_to_a_value_ends_where_it_stops() {
    let document = parse_ok("x.yaml", "a: [{ b: 1 }]\n");
    let raw = |path: &[&str]| document.raw(document.root.nearest(path.iter().copied()).place).to_owned();
    assert_eq!(raw(&["a", "0", "b"]), "1");
    assert_eq!(raw(&["a", "0", "gone", "b"]), "{ b: 1 }");
    assert_eq!(raw(&["a", "7"]), "[{ b: 1 }]");
}
