//! Source code. Lengths are those of [`approximate_starts`].

use std::time::{Duration, Instant};

use super::*;

#[test]
fn code_is_cut_between_items() {
    for (language, text, expected) in [
        (
            "Rust",
            "use a::b;\n\nfn one() {\n    call(1);\n}\n\nfn two() {\n    call(2);\n}\n",
            vec!["use a::b;", "fn one() {\n    call(1);\n}", "fn two() {\n    call(2);\n}"],
        ),
        (
            "Python",
            "import a\n\ndef one():\n    return call(1, 2)\n\ndef two():\n    return call(3, 4)\n",
            vec!["import a", "def one():\n    return call(1, 2)", "def two():\n    return call(3, 4)"],
        ),
        (
            "JavaScript",
            "function one() { return 1; }\nfunction two() { return 2; }\n",
            vec!["function one() { return 1; }", "function two() { return 2; }"],
        ),
        (
            "TypeScript",
            "type A = { a: number };\nfunction two(a: A) { return a; }\n",
            vec!["type A = { a: number };", "function two(a: A) { return a; }"],
        ),
        (
            "Tsx",
            "const A = () => <p>{1}</p>;\nconst B = () => <p>{2}</p>;\n",
            vec!["const A = () => <p>{1}</p>;", "const B = () => <p>{2}</p>;"],
        ),
        (
            "Go",
            "func one() int { return 1 }\n\nfunc two() int { return 2 }\n",
            vec!["func one() int { return 1 }", "func two() int { return 2 }"],
        ),
        (
            "Java",
            "class A { int a() { return 1; } }\nclass B { int b() { return 2; } }\n",
            vec!["class A { int a() { return 1; } }", "class B { int b() { return 2; } }"],
        ),
        (
            "C",
            "int one(void) { return 1; }\n\nint two(void) { return 2; }\n",
            vec!["int one(void) { return 1; }", "int two(void) { return 2; }"],
        ),
        (
            "C++",
            "#include <a>\n\ntemplate <typename T>\nT one(T a)\n{\n    return a;\n}\n\nclass Two {\npublic:\n    int a;\n};\n",
            vec![
                "#include <a>",
                "template <typename T>\nT one(T a)\n{\n    return a;\n}",
                "class Two {\npublic:\n    int a;\n};",
            ],
        ),
        (
            "Ruby",
            "require 'a'\n\ndef one(a)\n  a + 1\nrescue A\n  2\nend\n\ndef two\n  a = call(3)\n  a * 3\nend\n",
            vec!["require 'a'", "def one(a)\n  a + 1\nrescue A\n  2\nend", "def two\n  a = call(3)\n  a * 3\nend"],
        ),
        (
            "shell",
            "export A=1 B=2\n\none() {\n\tif a; then\n\t\tb\n\tfi\n}\n\nfor a in b; do\n\tc \"$a\" d e\ndone\n",
            vec!["export A=1 B=2", "one() {\n\tif a; then\n\t\tb\n\tfi\n}", "for a in b; do\n\tc \"$a\" d e\ndone"],
        ),
    ] {
        let largest = expected.iter().map(|chunk| approximate_starts(chunk).len()).max().unwrap_or(0);
        assert_eq!(cut(Kind::Code, largest, 0, text), expected, "{language}");
    }
}

/// The largest chunk that there should be is the size that is asked for.
fn cut_like(text: &str, expected: &[&str]) {
    let largest = expected.iter().map(|chunk| approximate_starts(chunk).len()).max().unwrap_or(0);
    assert_eq!(cut(Kind::Code, largest, 0, text), expected);
}

#[test]
fn what_stands_before_an_item_stays_with_it() {
    cut_like(
        "a = call(1, 2, 3, 4)\n# About b.\n@first\n@second(\n    1,\n)\ndef b():\n    pass\n\n\n# About c.\n#\n# More.\ndef c():\n    pass\n",
        &[
            "a = call(1, 2, 3, 4)",
            "# About b.\n@first\n@second(\n    1,\n)\ndef b():\n    pass",
            "# About c.\n#\n# More.\ndef c():\n    pass",
        ],
    );
    cut_like(
        "/* a licence,\nsay */\n\n/**\n * About a.\n\nMore of it.\n */\n#[inline]\nfn a() {}\n/// About b, at length.\nfn b() {}\n",
        &[
            "/* a licence,\nsay */",
            "/**\n * About a.\n\nMore of it.\n */\n#[inline]\nfn a() {}",
            "/// About b, at length.\nfn b() {}",
        ],
    );
    // Within an item, too; and what ends an item is not said about the next.
    cut_like(
        "class A {\n  // About b.\n  b() {\n    call(1);\n  }\n  // About c.\n  c() {\n    call(2);\n    // The end.\n  }\n}\n",
        &[
            "class A {\n  // About b.\n  b() {\n    call(1);\n  }",
            "  // About c.\n  c() {\n    call(2);\n    // The end.\n  }\n}",
        ],
    );
}

#[test]
fn an_item_longer_than_a_chunk_is_cut_where_it_is_indented_least() {
    let method = |name: &str| {
        format!("    int {name}() {{\n        if (a) {{\n            b();\n        }}\n        return c;\n    }}")
    };
    let methods = [method("one"), method("two"), method("three")];
    let text = format!("class A {{\n    int a;\n\n{}\n}};\n", methods.join("\n"));
    let chunks = cut(Kind::Code, 30, 0, &text);
    assert_eq!(
        chunks,
        [format!("class A {{\n    int a;\n\n{}", methods[0]), methods[1].clone(), format!("{}\n}};", methods[2])]
    );
    // At blank lines before others.
    let text = "fn a() {\n    b(1);\n    c(2);\n\n    d(3);\n    e(4);\n    f(5);\n}\n";
    assert_eq!(cut(Kind::Code, 20, 0, text), ["fn a() {\n    b(1);\n    c(2);", "    d(3);\n    e(4);\n    f(5);\n}"]);
    // A line that is too long is cut as text.
    let long = format!("a = 1\nb = [{}]\nc = 2\n", "word, ".repeat(30));
    let chunks = cut(Kind::Code, 20, 0, &long);
    assert_eq!((chunks[0].as_str(), chunks.last().map(String::as_str)), ("a = 1", Some("c = 2")));
    assert!(chunks.len() > 4 && chunks[1].starts_with("b = [word"), "{chunks:?}");
}

#[test]
fn line_ends_and_tabs_do_not_matter() {
    let text = "// About a.\nfn a() {\n\tcall(1);\n}\n\nfn b() {\n\tcall(2);\n}\n";
    assert_eq!(cut(Kind::Code, 16, 0, text), ["// About a.\nfn a() {\n\tcall(1);\n}", "fn b() {\n\tcall(2);\n}"]);
    let windows = text.replace('\n', "\r\n");
    assert_eq!(
        cut(Kind::Code, 16, 0, &windows),
        ["// About a.\r\nfn a() {\r\n\tcall(1);\r\n}", "fn b() {\r\n\tcall(2);\r\n}"]
    );
}

#[test]
fn small_items_share_chunks_and_overlap() {
    let text = "a = 1\nb = 2\nc = 3\nd = 4\ne = 5\n";
    assert_eq!(cut(Kind::Code, 9, 0, text), ["a = 1\nb = 2\nc = 3", "d = 4\ne = 5"]);
    assert_eq!(cut(Kind::Code, 9, 4, text), ["a = 1\nb = 2\nc = 3", "c = 3\nd = 4\ne = 5"]);
    // Not where an item would be cut in two for it.
    let text = "a = 1\nb = 2\ndef c():\n  d()\n  e()\n";
    assert_eq!(cut(Kind::Code, 11, 4, text), ["a = 1\nb = 2", "def c():\n  d()\n  e()"]);
}

#[test]
fn hostile_code_is_cut_quickly() {
    let staircase: String = (0..1400).map(|indent| format!("{}x\n", " ".repeat(indent))).collect();
    for (text, size) in [
        ("}\n".repeat(100_000), 50),
        ("x".repeat(1 << 20), 50),
        ("a b ".repeat(1 << 18), 50),
        ("/*\n".repeat(300_000), 200),
        ("@a(\n".repeat(200_000), 200),
        ("a\n\n b\n".repeat(100_000), 200),
        (staircase, 200),
    ] {
        let started = Instant::now();
        let chunks = cut(Kind::Code, size, size / 5, &text);
        // One more where a word was cut.
        assert!(chunks.iter().all(|chunk| approximate_starts(chunk).len() <= size + 1));
        assert!(chunks.len() > 3 && started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
    }
}
