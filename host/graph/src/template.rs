//! Templates: text with `{{path}}` references.
//!
//! Expansion is one pass over the parsed template. A value that is put in is data and is never looked at again, so
//! braces in a model's answer or a person's text stay braces.

use std::fmt;
use std::ops::Range;

use crate::path::Path;
use crate::value::Value;

/// Where a reference finds its value.
pub trait Lookup {
    /// The value of a top-level name.
    fn lookup(&self, name: &str) -> Option<&Value>;
}

/// Bytes that a text may have which a template becomes.
pub(crate) const MAX_EXPANDED: usize = 16 << 20;

/// A parsed template.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq)]
enum Part {
    Text(Box<str>),
    Reference(Path),
}

/// The references of a template that name nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct Missing(pub Vec<String>);

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.0.iter().map(|name| format!("`{name}`")).collect();
        let (verb, noun) = if names.len() == 1 { ("is", "a name that") } else { ("are", "names that") };
        write!(f, "the template uses {noun} {verb} not in state: {}", names.join(", "))
    }
}

impl Template {
    /// Parses a template. This cannot fail: what is not a reference is text.
    ///
    /// A reference is `{{`, optional blanks, a path of letters, digits, `_`, `-`, `.`, `[`, `]`, optional blanks, `}}`.
    pub fn parse(source: &str) -> Self {
        Self::parse_only(source, |_| true)
    }

    /// Parses a template in which only references count whose first name (none for what is no path) is `known`; every
    /// other one is text.
    pub fn parse_only(source: &str, known: impl Fn(Option<&str>) -> bool) -> Self {
        let mut parts = Vec::new();
        let mut text = String::new();
        let mut rest = source;
        while let Some(at) = rest.find("{{") {
            let (before, from) = rest.split_at(at);
            text.push_str(before);
            match reference(from) {
                Some((path, after)) if known(Path::parse(path).root()) => {
                    if !text.is_empty() {
                        parts.push(Part::Text(std::mem::take(&mut text).into()));
                    }
                    parts.push(Part::Reference(Path::parse(path)));
                    rest = after;
                }
                _ => {
                    text.push('{');
                    rest = &from[1..];
                }
            }
        }
        text.push_str(rest);
        if !text.is_empty() {
            parts.push(Part::Text(text.into()));
        }
        Template { parts }
    }

    /// The same template with texts in the place of the references for which `fill` has one. Such a text is data: braces in it
    /// are no references.
    #[must_use]
    pub fn filled(mut self, fill: impl Fn(&str) -> Option<String>) -> Self {
        for part in &mut self.parts {
            if let Part::Reference(path) = part
                && let Some(text) = fill(path.as_str())
            {
                *part = Part::Text(text.into());
            }
        }
        self
    }

    /// The text that this template is, with every reference in the shortest way to write it.
    pub fn source(&self) -> String {
        let part = |part: &Part| match part {
            Part::Text(text) => text.to_string(),
            Part::Reference(path) => format!("{{{{{}}}}}", path.as_str()),
        };
        self.parts.iter().map(part).collect()
    }

    /// All references, in order.
    pub fn references(&self) -> impl Iterator<Item = &Path> {
        self.parts.iter().filter_map(|part| match part {
            Part::Reference(path) => Some(path),
            Part::Text(_) => None,
        })
    }

    /// The reference, if the template is exactly one and nothing else but white space around it.
    pub fn single_reference(&self) -> Option<&Path> {
        let mut found = None;
        for part in &self.parts {
            match part {
                Part::Reference(path) if found.is_none() => found = Some(path),
                Part::Text(text) if text.trim().is_empty() => {}
                _ => return None,
            }
        }
        found
    }

    /// Expands to text; every reference that names nothing is reported at once. A text that has become longer than
    /// [`MAX_EXPANDED`] is not gone on with: [`Expression`](crate::ir::Expression) refuses it.
    pub fn expand(&self, scope: &dyn Lookup) -> Result<String, Missing> {
        let mut text = String::new();
        let mut missing = Vec::new();
        for part in &self.parts {
            if text.len() > MAX_EXPANDED {
                break;
            }
            match part {
                Part::Text(literal) => text.push_str(literal),
                Part::Reference(path) => match resolve(path, scope) {
                    Some(value) => text.push_str(&value.to_display()),
                    None if missing.iter().any(|name| name == path.as_str()) => {}
                    None => missing.push(path.as_str().to_owned()),
                },
            }
        }
        if missing.is_empty() { Ok(text) } else { Err(Missing(missing)) }
    }

    /// Expands to text; a reference that names nothing becomes the empty text.
    pub fn expand_lenient(&self, scope: &dyn Lookup) -> String {
        let mut text = String::new();
        for part in &self.parts {
            if text.len() > MAX_EXPANDED {
                break;
            }
            match part {
                Part::Text(literal) => text.push_str(literal),
                Part::Reference(path) => {
                    if let Some(value) = resolve(path, scope) {
                        text.push_str(&value.to_display());
                    }
                }
            }
        }
        text
    }

    /// Expands to a value: exactly one reference, with nothing but blanks around it, keeps its JSON type, anything else becomes text.
    /// Every reference has to name something, as in [`Template::expand`].
    pub fn evaluate(&self, scope: &dyn Lookup) -> Result<Value, Missing> {
        match self.single_reference() {
            Some(path) => resolve(path, scope).cloned().ok_or_else(|| Missing(vec![path.as_str().to_owned()])),
            None => self.expand(scope).map(Value::text),
        }
    }

    /// Expands to a value: exactly one reference keeps its JSON type (the empty text if it names nothing), anything
    /// else becomes text as in [`Template::expand_lenient`].
    pub fn evaluate_lenient(&self, scope: &dyn Lookup) -> Value {
        match &self.parts[..] {
            [Part::Reference(path)] => resolve(path, scope).cloned().unwrap_or_else(|| Value::text("")),
            _ => Value::text(self.expand_lenient(scope)),
        }
    }
}

/// Something between double braces in a template's source.
#[derive(Clone, Debug, PartialEq)]
pub struct Braces {
    /// The bytes from the opening to behind the closing braces
    pub range: Range<usize>,
    /// The path; none when what is inside has not the form of a reference, so that all of it is text
    pub path: Option<Path>,
}

impl Braces {
    /// Everything between double braces in a template's source, in order, references and what only looks like one.
    /// Empty braces and braces over several lines that hold no reference are left out.
    pub fn find(source: &str) -> Vec<Braces> {
        let mut found = Vec::new();
        let mut at = 0;
        while let Some(offset) = source[at..].find("{{") {
            let start = at + offset;
            let from = &source[start..];
            if let Some((path, after)) = reference(from) {
                at = source.len() - after.len();
                found.push(Braces { range: start..at, path: Some(Path::parse(path)) });
                continue;
            }
            // What only looks like a reference ends on its line and before other braces.
            let inside = &from[2..];
            let inside = &inside[..inside.find(['\n', '{']).unwrap_or(inside.len())];
            if let Some(end) = inside.find("}}")
                && !inside[..end].trim().is_empty()
            {
                at = start + 2 + end + 2;
                found.push(Braces { range: start..at, path: None });
                continue;
            }
            at = start + 1;
        }
        found
    }
}

/// The value that a path names in a scope.
pub fn resolve<'s>(path: &Path, scope: &'s dyn Lookup) -> Option<&'s Value> {
    path.follow(scope.lookup(path.root()?)?)
}

/// `from` starts with `{{`: the path inside and what follows the closing braces, if this is a reference. Stops at the
/// first character that cannot belong to one, so that many braces in a row cost no more than other text.
fn reference(from: &str) -> Option<(&str, &str)> {
    let inside = from[2..].trim_start();
    let allowed = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '[' | ']');
    let (path, rest) = inside.split_at(inside.find(|c| !allowed(c))?);
    let after = rest.trim_start().strip_prefix("}}")?;
    (!path.is_empty()).then_some((path, after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::State;
    use crate::value::parse_json;

    fn state() -> State {
        let seed = r#"{"name":"Ada","n":42,"xs":[1,{"y":"deep"}],"none":null,"yes":true,"o":{"k":"v","n":{"z":1.0}},
            "tricky":"{{name}}","ключ":"да","with-dash":"d"}"#;
        match parse_json(seed).unwrap() {
            Value::Object(object) => State::from_object(&object),
            _ => unreachable!("the seed is an object"),
        }
    }

    #[test]
    fn every_form_expands() {
        for (template, expected) in [
            ("{{name}}", "Ada"),
            ("a {{ name }} b {{n}}", "a Ada b 42"),
            ("{{xs}} {{none}} {{yes}} {{o}}", r#"[1,{"y":"deep"}] null true {"k":"v","n":{"z":1.0}}"#),
            ("{{xs[0]}} {{xs[1].y}} {{o.n.z}}", "1 deep 1.0"),
            ("{name} { {name}} {{}} {{ }} {{a b}} {{name", "{name} { {name}} {{}} {{ }} {{a b}} {{name"),
            ("{{{name}}}", "{Ada}"),
            ("{{tricky}} {{name}}", "{{name}} Ada"),
            ("{{ключ}} {{with-dash}}", "да d"),
            ("{{\n name\t}}", "Ada"),
        ] {
            assert_eq!(Template::parse(template).expand(&state()).unwrap(), expected, "{template}");
        }
    }

    #[test]
    fn what_is_not_there_is_listed_once() {
        let template = Template::parse("{{a}} {{name.x}} {{xs[7]}} {{n[0]}} {{a}} {{xs[x]}} {{o.}} {{xs.0}}");
        let missing = template.expand(&state()).unwrap_err();
        assert_eq!(missing.0, ["a", "name.x", "xs[7]", "n[0]", "xs[x]", "o.", "xs.0"]);
        assert_eq!(template.expand_lenient(&state()), "       ");
    }

    #[test]
    fn many_braces_cost_no_more_than_other_text() {
        let source = "{{ ".repeat(400_000) + "}}";
        assert_eq!(Template::parse(&source).expand(&state()).unwrap(), source);
        assert_eq!(Braces::find(&source), []);
    }

    #[test]
    fn braces_are_found_with_their_place() {
        let found = |source: &str| -> Vec<String> {
            Braces::find(source)
                .into_iter()
                .map(|braces| {
                    let kind = if braces.path.is_some() { "reference" } else { "text" };
                    format!("{kind} {}", &source[braces.range])
                })
                .collect()
        };
        assert_eq!(
            found("a {{ x }} {{a b}} {{{y}}} {{}} {{é.z[0]}}"),
            ["reference {{ x }}", "text {{a b}}", "reference {{y}}", "reference {{é.z[0]}}"]
        );
        assert_eq!(found("{{x | upper}} {{'a': {1}}} {{\n a b\n}} {{open"), ["text {{x | upper}}"]);
    }

    #[test]
    fn a_single_reference_keeps_its_type() {
        let evaluate = |template: &str| Template::parse(template).evaluate_lenient(&state()).to_json();
        assert_eq!(evaluate("{{xs}}"), r#"[1,{"y":"deep"}]"#);
        assert_eq!(evaluate("{{ n }}"), "42");
        assert_eq!(evaluate(" {{n}}"), r#"" 42""#);
        assert_eq!(evaluate("{{gone}}"), r#""""#);
        assert_eq!(evaluate("{{n}}{{n}}"), r#""4242""#);
        assert_eq!(evaluate(""), r#""""#);
    }
}
