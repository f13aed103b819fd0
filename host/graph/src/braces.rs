//! Templates with single braces: `{state.a.b[0]}`, `{a}`; `{{` and `}}` are braces.

use std::ops::Range;

use crate::place::Place;
use crate::python;
use crate::template::{Lookup, MAX_EXPANDED};

/// The name that stands for the state in a reference.
const STATE: &str = "state";

/// References of one template.
const MOST_REFERENCES: usize = 10_000;
/// Braces of one template that are told to be no reference. One is enough for it not to expand.
const MOST_BROKEN: usize = 100;

/// A parsed template.
#[derive(Clone, Debug, PartialEq)]
pub struct BraceTemplate {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq)]
enum Part {
    Text(String),
    /// A place of the state; nothing where it is not there
    Place(Place),
    /// The same, by a name that stays as it is written where the state has no such key
    Name(Place, String),
    /// Braces that are no reference, with the reason
    Broken(BrokenBraces),
}

/// Braces that are no reference.
#[derive(Clone, Debug, PartialEq)]
pub struct BrokenBraces {
    /// Where they are in the source, in bytes
    pub range: Range<usize>,
    /// What is wrong
    pub problem: String,
}

impl BraceTemplate {
    /// Parses a template. What is wrong with its braces is an error when it is expanded, see [`BraceTemplate::broken`].
    pub fn parse(source: &str) -> Self {
        let mut parts = Vec::new();
        let mut text = String::new();
        let mut at = 0;
        let (mut references, mut broken) = (0, 0);
        while let Some(found) = source[at..].find(['{', '}']).filter(|_| broken < MOST_BROKEN) {
            text.push_str(&source[at..at + found]);
            at += found;
            let rest = &source[at..];
            if rest.starts_with("{{") || rest.starts_with("}}") {
                text.push_str(&rest[..1]);
                at += 2;
                continue;
            }
            let (mut part, length) = part(rest, at);
            references += 1;
            if references > MOST_REFERENCES {
                let problem = format!("the template has more than {MOST_REFERENCES} references");
                part = Part::Broken(BrokenBraces { range: at..at + length, problem });
                broken = MOST_BROKEN;
            } else if matches!(part, Part::Broken(_)) {
                broken += 1;
            }
            if !text.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut text)));
            }
            parts.push(part);
            at += length;
        }
        text.push_str(&source[at..]);
        if !text.is_empty() {
            parts.push(Part::Text(text));
        }
        BraceTemplate { parts }
    }

    /// The braces that are no reference.
    pub fn broken(&self) -> impl Iterator<Item = &BrokenBraces> {
        self.parts.iter().filter_map(|part| match part {
            Part::Broken(broken) => Some(broken),
            _ => None,
        })
    }

    /// The places of the state that it names, and whether it names them with `state` in front.
    pub fn places(&self) -> impl Iterator<Item = (&Place, bool)> {
        self.parts.iter().filter_map(|part| match part {
            Part::Place(place) => Some((place, true)),
            Part::Name(place, _) => Some((place, false)),
            Part::Text(_) | Part::Broken(_) => None,
        })
    }

    /// The text that it is, if it refers to nothing.
    pub fn literal(&self) -> Option<&str> {
        match &self.parts[..] {
            [] => Some(""),
            [Part::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// Expands to text.
    ///
    /// # Errors
    /// When it has braces that are no reference, or becomes too long.
    pub fn expand(&self, scope: &dyn Lookup) -> Result<String, String> {
        let mut text = String::new();
        for part in &self.parts {
            match part {
                Part::Text(literal) => text.push_str(literal),
                Part::Place(place) => {
                    if let Some(value) = scope.lookup(place.root()).and_then(|root| place.follow(root)) {
                        python::write_text(value, &mut text);
                    }
                }
                Part::Name(place, written) => match scope.lookup(place.root()) {
                    None => text.push_str(written),
                    Some(root) => {
                        if let Some(value) = place.follow(root) {
                            python::write_text(value, &mut text);
                        }
                    }
                },
                Part::Broken(broken) => return Err(broken.problem.clone()),
            }
            if text.len() > MAX_EXPANDED {
                return Err(format!("the text becomes longer than {MAX_EXPANDED} bytes"));
            }
        }
        Ok(text)
    }
}

/// What begins with a brace that is not doubled, and how many bytes of the source it is. Stops at the first brace, so that
/// many of them cost no more than other text.
fn part(rest: &str, at: usize) -> (Part, usize) {
    let broken = |length: usize, problem: String| {
        let problem = format!("{problem}; write `{{{{` and `}}}}` for braces");
        (Part::Broken(BrokenBraces { range: at..at + length, problem }), length)
    };
    if rest.starts_with('}') {
        return broken(1, "the template has a `}` that closes nothing".to_owned());
    }
    let Some(end) = rest[1..].find(['{', '}']).map(|end| end + 1).filter(|end| rest[*end..].starts_with('}')) else {
        return broken(1, "the template has a `{` that nothing closes".to_owned());
    };
    let (inside, length) = (&rest[1..end], end + 1);
    match Place::parse(inside) {
        Ok(place) if &**place.root() == STATE => match place.without_root() {
            Some(place) => (Part::Place(place), length),
            None => broken(length, format!("`{{{inside}}}` does not name an entry of the state")),
        },
        Ok(place) => (Part::Name(place, rest[..length].to_owned()), length),
        Err(problem) => {
            let shown: String = inside.chars().take(60).collect();
            broken(length, format!("`{{{}}}` is not a valid reference ({problem})", shown.escape_debug()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BraceTemplate, BrokenBraces, MOST_BROKEN, MOST_REFERENCES};
    use crate::state::State;
    use crate::value::{Value, parse_json};

    /// Each of them would be told, with its place.
    #[test]
    fn of_braces_without_end_a_few_are_told() {
        for text in ["{x ", "x} "] {
            assert_eq!(BraceTemplate::parse(&text.repeat(1_000_000)).broken().count(), MOST_BROKEN, "{text}");
        }
        let many = BraceTemplate::parse(&"{a}".repeat(20_000));
        let told: Vec<&BrokenBraces> = many.broken().collect();
        assert_eq!((many.places().count(), told.len()), (MOST_REFERENCES, 1));
        assert!(told[0].problem.contains("more than 10000 references") && told[0].range == (30_000..30_003));
    }

    fn expand(template: &str) -> Result<String, String> {
        let seed = r#"{"a":"x","n":3,"f":0.5,"yes":true,"none":null,"xs":["p",{"q":1.0}],"o":{"k":"it's"},"t":"{a}"}"#;
        let Ok(Value::Object(object)) = parse_json(seed) else { unreachable!("the seed is an object") };
        BraceTemplate::parse(template).expand(&State::from_object(&object))
    }

    #[test]
    fn every_form_expands() {
        for (template, expected) in [
            ("", ""),
            ("plain", "plain"),
            ("{state.a} {a} {state.n} {f} {yes} {none}", "x x 3 0.5 True None"),
            ("{state.xs} {xs[-1].q} {xs[0]}", "['p', {'q': 1.0}] 1.0 p"),
            ("{o} {o.k}", "{'k': \"it's\"} it's"),
            ("[{state.gone}] [{state.a.b.c}] {gone} {gone.more}", "[] [] {gone} {gone.more}"),
            ("{{a}} {{{a}}} }} {{", "{a} {x} } {"),
            ("{t}", "{a}"),
            (r#"Return {{"n": {state.n}}} please"#, r#"Return {"n": 3} please"#),
        ] {
            assert_eq!(expand(template).as_deref(), Ok(expected), "{template}");
        }
    }

    #[test]
    fn other_braces_are_errors() {
        for template in
            ["{", "}", "a { b", "{}", "{0}", "{n:03d}", "{a!r}", r#"{"a": 1}"#, "{state}", "{a b}", "{ a }", "{a{b}}"]
        {
            assert!(expand(template).is_err(), "{template}");
            assert!(BraceTemplate::parse(template).broken().count() > 0, "{template}");
        }
        let many = "{ ".repeat(100_000);
        assert!(expand(&many).is_err());
    }
}
