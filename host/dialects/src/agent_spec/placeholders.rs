//! Placeholders: a name in double braces, white space around it allowed. Nothing else is a template language here.

use hotcell_graph::Value;
use indexmap::IndexSet;

/// How many names the texts of one field may have.
pub(super) const MOST: usize = 1_000;

/// A part of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece<'t> {
    /// A text that stands for itself
    Literal(&'t str),
    /// A name in double braces
    Name(&'t str),
}

/// The parts of a template, in order.
pub(super) fn pieces(template: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = template;
    let mut name = None;
    std::iter::from_fn(move || {
        if let Some(name) = name.take() {
            return Some(Piece::Name(name));
        }
        if rest.is_empty() {
            return None;
        }
        let Some((literal, found, behind)) = first_name(rest) else {
            return Some(Piece::Literal(std::mem::take(&mut rest)));
        };
        rest = behind;
        if literal.is_empty() {
            return Some(Piece::Name(found));
        }
        name = Some(found);
        Some(Piece::Literal(literal))
    })
}

/// The names of a template, each once, in the order in which they occur; one more than may be there at most.
pub(super) fn names(template: &str) -> Vec<&str> {
    let name = |piece| match piece {
        Piece::Name(name) => Some(name),
        Piece::Literal(_) => None,
    };
    let mut names = IndexSet::new();
    for name in pieces(template).filter_map(name) {
        if names.len() > MOST {
            break;
        }
        names.insert(name);
    }
    names.into_iter().collect()
}

/// The names of the placeholders in keys and values of any depth.
pub(super) fn names_in<'v>(value: &'v Value, found: &mut IndexSet<&'v str>) {
    match value {
        Value::Text(text) => found.extend(names(text)),
        Value::List(items) => items.iter().for_each(|item| names_in(item, found)),
        Value::Object(object) => {
            for (key, value) in object.iter() {
                found.extend(names(key));
                names_in(value, found);
            }
        }
        _ => {}
    }
}

/// What in a text is no placeholder and looks like one of a template language with more: filters, conditions, comments.
pub(super) fn more_than_placeholders(text: &str) -> Vec<&str> {
    /// Bytes that are looked through for the end of each piece. In what is behind them only tags and comments are looked for: a template
    /// that is so long is refused all the same.
    const LOOKED_THROUGH: usize = 64 << 10;
    let mut found = Vec::new();
    let mut from = 0;
    let (text, rest) = text.split_at(text.floor_char_boundary(LOOKED_THROUGH.min(text.len())));
    found.extend(
        ["{%", "{#"].into_iter().filter_map(|begin| rest.get(rest.find(begin)?..).and_then(|tag| tag.get(..2))),
    );
    // Where each of them is last: behind that nothing is looked for.
    let last = |close: &str| text.rfind(close).unwrap_or(0);
    let lasts = [("%}", last("%}")), ("#}", last("#}")), ("}}", last("}}"))];
    while let Some(open) = text[from..].find('{').map(|offset| from + offset) {
        let end = |close: usize| {
            let (close, last) = lasts[close];
            let found = if open + 2 <= last { text[open + 2..].find(close) } else { None };
            found.map(|offset| open + 2 + offset + close.len())
        };
        let piece = match text[open..].get(..2) {
            Some("{%") => end(0).map(|end| &text[open..end]),
            Some("{#") => end(1).map(|end| &text[open..end]),
            Some("{{") => end(2).map(|end| &text[open..end]).filter(|piece| {
                let inside = piece[2..piece.len() - 2].trim_start_matches('-').trim_start();
                // Braces of JSON, doubled for other formatters, begin with a quote.
                names(piece).is_empty() && inside.starts_with(|first: char| first.is_alphabetic() || first == '_')
            }),
            _ => None,
        };
        from = open + piece.map_or(1, str::len);
        found.extend(piece.filter(|piece| !piece.contains('\n') || piece.len() < 400));
    }
    found
}

/// What is before the first placeholder, its name, and what is behind it.
fn first_name(text: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    while let Some(offset) = text[from..].find("{{") {
        let open = from + offset;
        let inside = text[open + 2..].trim_start();
        let length = inside.find(|character: char| !(character.is_alphanumeric() || character == '_'));
        let (name, rest) = inside.split_at(length.unwrap_or(inside.len()));
        match rest.trim_start().strip_prefix("}}") {
            Some(behind) if !name.is_empty() => return Some((&text[..open], name, behind)),
            // The second of three braces may begin one.
            _ => from = open + 1,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_like_more_than_placeholders() {
        for (text, found) in [
            ("a {{ x | tojson }} b {{y}}", &["{{ x | tojson }}"][..]),
            ("{% for a in b %}{{ a.c }}{% endfor %}", &["{% for a in b %}", "{{ a.c }}", "{% endfor %}"]),
            ("{# no #}{{- x -}}", &["{# no #}", "{{- x -}}"]),
            ("{{\"a\": 1}} { % } {{}} {x} {{ 1 }} {{{x}}} {%", &[]),
            ("ü{{ü|e}}", &["{{ü|e}}"]),
        ] {
            assert_eq!(more_than_placeholders(text), found, "{text}");
        }
    }

    #[test]
    fn names_in_double_braces_and_nothing_else() {
        use Piece::{Literal, Name};
        let cases: [(&str, &[Piece<'_>]); 8] = [
            ("a {{x}} b", &[Literal("a "), Name("x"), Literal(" b")]),
            ("{{ x\n}}{{y_2}}", &[Name("x"), Name("y_2")]),
            ("{{{x}}}", &[Literal("{"), Name("x"), Literal("}")]),
            ("{{x.y}} {{}} {{a b}}", &[Literal("{{x.y}} {{}} {{a b}}")]),
            ("{{ straße }}", &[Name("straße")]),
            ("{{x", &[Literal("{{x")]),
            ("{{ {{x}}", &[Literal("{{ "), Name("x")]),
            ("", &[]),
        ];
        for (template, expected) in cases {
            assert_eq!(pieces(template).collect::<Vec<_>>(), expected, "{template:?}");
        }
        assert_eq!(names("{{b}}{{a}}{{b}}"), ["b", "a"]);
    }
}
