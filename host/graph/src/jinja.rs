//! Templates in the language of Jinja, rendered within bounds: so many steps, so many bytes, nothing read from anywhere.
//!
//! Whoever writes a template may be a stranger, and what is filled in certainly is. Values are data: they are never read as
//! a template. The engine that renders counts steps and not bytes, so what could make a small text large is left out: blocks
//! that are kept for later, joining inside of tags, multiplication; filters are watched.

mod environment;
mod inspection;

use std::fmt;
use std::io;
use std::sync::Arc;

use minijinja::machinery::{WhitespaceConfig, parse};
use minijinja::{Error, ErrorKind, Value as Rendered};

use self::environment::environment;
use self::inspection::Inspection;
use crate::value::{Object, Value};

/// Bytes that a template may have.
const MAX_SOURCE: usize = 64 << 10;
/// Bytes that a value in a template may have, and that come out of one.
const MAX_TEXT: usize = 1 << 20;
/// Steps of one rendering whose values are no larger than this together, in bytes. A step may take time in proportion to the
/// values, so there are fewer with larger ones, down to a fifth.
const FUEL: u64 = 100_000;
const USUAL_VALUES: usize = 128 << 10;
/// Steps of a rendering that is to be brief.
const BRIEF: u64 = 200;
/// A template.
#[derive(Clone, PartialEq)]
pub struct Jinja {
    source: Arc<str>,
}

impl fmt::Debug for Jinja {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.source, f)
    }
}

impl Jinja {
    /// Reads a template.
    ///
    /// # Errors
    /// When it is not well formed or has what is left out here.
    pub fn parse(source: &str) -> Result<Jinja, String> {
        if source.len() > MAX_SOURCE {
            return Err(format!("a template may have {MAX_SOURCE} bytes, and this one has {}", source.len()));
        }
        inspection::depth(source)?;
        let parsed = parse(source, "template", Default::default(), WhitespaceConfig::default());
        Inspection::default().statement(&parsed.map_err(|error| said(&error))?)?;
        environment(FUEL).template_from_str(source).map_err(|error| said(&error))?;
        Ok(Jinja { source: source.into() })
    }

    /// The names whose values it needs, sorted.
    pub fn names(&self) -> Vec<String> {
        let environment = environment(FUEL);
        let names = environment.template_from_str(&self.source).map(|template| template.undeclared_variables(false));
        // What a function is called is no value.
        let mut names: Vec<String> = names.into_iter().flatten().filter(|name| name != "range").collect();
        names.sort();
        names
    }

    /// The text with these values.
    ///
    /// # Errors
    /// When a name has no value, a filter cannot take one, or a bound is reached.
    pub fn render(&self, values: &Object) -> Result<String, String> {
        self.render_within(values, FUEL).map_err(|failure| match failure {
            Failure::OutOfSteps(most) => format!("the template takes more than {most} steps"),
            Failure::Other(problem) => problem,
        })
    }

    /// The text with these values, or why there is none, if a few steps are enough to know it: a file may have any number of
    /// templates.
    pub fn render_briefly(&self, values: &Object) -> Option<Result<String, String>> {
        match self.render_within(values, BRIEF) {
            Ok(text) => Some(Ok(text)),
            Err(Failure::OutOfSteps(_)) => None,
            Err(Failure::Other(problem)) => Some(Err(problem)),
        }
    }

    fn render_within(&self, values: &Object, most: u64) -> Result<String, Failure> {
        let mut all = 0;
        for (name, value) in values.iter() {
            match value.check_size() {
                Ok(size) if size <= MAX_TEXT => all += size,
                _ => {
                    let problem = format!("`{name}` has more than {MAX_TEXT} bytes, which is the most in a template");
                    return Err(Failure::Other(problem));
                }
            }
        }
        let fuel = if all > USUAL_VALUES { most * USUAL_VALUES as u64 / all as u64 } else { most }.max(most / 5);
        let values = filled(&Value::Object(values.clone()));
        let environment = environment(fuel);
        let failed = |error: &Error| Failure::Other(said(error));
        let template = environment.template_from_str(&self.source).map_err(|error| failed(&error))?;
        let mut text = Bounded(Vec::new());
        match template.render_captured_to(values, &mut text) {
            // A template is text, and so is all that it is filled with.
            Ok(_) => Ok(String::from_utf8_lossy(&text.0).into_owned()),
            Err(_) if text.0.len() >= MAX_TEXT => {
                Err(Failure::Other(format!("the template gives more than {MAX_TEXT} bytes")))
            }
            Err(error) if error.kind() == ErrorKind::OutOfFuel => Err(Failure::OutOfSteps(fuel)),
            Err(error) => Err(failed(&error)),
        }
    }
}

/// Why there is no text.
enum Failure {
    /// There were so many steps
    OutOfSteps(u64),
    Other(String),
}

/// A value as the engine that renders has it.
fn filled(value: &Value) -> Rendered {
    match value {
        Value::Null => Rendered::from(()),
        Value::Bool(value) => Rendered::from(*value),
        Value::Number(number) => match value.to_json().parse::<i128>() {
            Ok(whole) => Rendered::from(whole),
            Err(_) => Rendered::from(number.to_f64()),
        },
        Value::Text(text) => Rendered::from(&**text),
        Value::List(list) => list.iter().map(filled).collect(),
        Value::Object(object) => object.iter().map(|(name, value)| (name.to_string(), filled(value))).collect(),
    }
}

/// A text that grows only so far.
struct Bounded(Vec<u8>);

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = MAX_TEXT - self.0.len();
        self.0.extend_from_slice(&bytes[..bytes.len().min(room)]);
        if bytes.len() > room { Err(io::Error::other("too long")) } else { Ok(bytes.len()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// An error in one line.
fn said(error: &Error) -> String {
    let detail =
        error.detail().map_or_else(|| error.kind().to_string(), |detail| format!("{}: {detail}", error.kind()));
    match error.line() {
        Some(line) => format!("{detail} (line {line} of the template)"),
        None => detail,
    }
}

#[cfg(test)]
mod tests {
    use super::Jinja;
    use crate::value::{Object, Value, parse_json};

    fn values(json: &str) -> Object {
        match parse_json(json).unwrap() {
            Value::Object(object) => object,
            other => panic!("{other}"),
        }
    }

    fn rendered(template: &str, given: &str) -> Result<String, String> {
        Jinja::parse(template)?.render(&values(given))
    }

    #[test]
    fn a_template_that_takes_many_steps_is_not_rendered_briefly() {
        let brief = |template: &str| Jinja::parse(template).unwrap().render_briefly(&values(r#"{"x": ""}"#));
        assert_eq!(brief("{% if x %}Do {{ x }}{% endif %}!"), Some(Ok("!".to_owned())));
        assert!(matches!(brief("{{ x | abs }}"), Some(Err(_))));
        assert_eq!(brief("{% for a in range(1000) %}{% endfor %}"), None);
    }

    #[test]
    fn templates_are_rendered() {
        for (template, given, expected) in [
            ("Hi {{ name }}!", r#"{"name": "Ann"}"#, "Hi Ann!"),
            ("{{ x | tojson }}", r#"{"x": {"a": ["b", 1]}}"#, r#"{"a":["b",1]}"#),
            (
                "{# no #}{% for a in b %}- {{ a.c|upper }}\n{% endfor %}",
                r#"{"b": [{"c": "x"}, {"c": "y"}]}"#,
                "- X\n- Y\n",
            ),
            ("{% if n %}yes{% else %}no{% endif %}", r#"{"n": 0}"#, "no"),
            ("{% raw %}{{ x * 2 }}{% endraw %}", "{}", "{{ x * 2 }}"),
            ("{{ list|join(', ') }} {{ s|replace('a', 'b') }}", r#"{"list": [1, 2], "s": "aa"}"#, "1, 2 bb"),
            ("{{ 'a' ~ b }} 2 * 3 ~ 4", r#"{"b": "c"}"#, "ac 2 * 3 ~ 4"),
            // What is filled in is no template.
            ("{{ x }}", r#"{"x": "{{ y }}{% for a in b %}"}"#, "{{ y }}{% for a in b %}"),
        ] {
            assert_eq!(rendered(template, given).as_deref(), Ok(expected), "{template}");
        }
        assert_eq!(
            Jinja::parse("{% for a in b %}{{ a }}{{ c|length }}{% endfor %}{{ range(2) }}").unwrap().names(),
            ["b", "c"]
        );
    }

    /// None of them is deep.
    #[test]
    fn long_lists_and_many_conditions_beside_each_other_are_rendered() {
        let entries: Vec<String> = (0..300).map(|at| format!("'k{at}': {at}")).collect();
        let listed = format!("{{% set all = {{{}}} %}}{{{{ all[x] }}}}", entries.join(", "));
        assert_eq!(rendered(&listed, r#"{"x": "k299"}"#).as_deref(), Ok("299"));
        let chosen = "{% if x == 'de' %}a{% elif x == 'fr' %}b{% elif x == 'es' %}c{% endif %}".repeat(70);
        assert_eq!(rendered(&chosen, r#"{"x": "es"}"#), Ok("c".repeat(70)));
    }

    #[test]
    fn what_is_wrong_or_left_out_is_said() {
        for (template, problem) in [
            ("{{ x", "syntax error"),
            ("{% for a in b %}", "syntax error"),
            ("{{ missing }}", "undefined"),
            ("{% include 'x' %}", ""),
            ("{% macro m() %}{% endmacro %}", ""),
            ("{{ open('/etc/passwd') }}", "a call of anything but `range`"),
            ("{{ x.upper() }}", "a call of anything but `range`"),
            ("{{ '}}' * 1000000000 }}", "multiplication"),
            ("{{ x|indent(1000000000) }}", "unknown filter"),
            ("{{ 'a' * 1000000000 }}", "multiplication"),
        ] {
            let error = rendered(template, r#"{"x": "a", "b": [1]}"#).unwrap_err();
            assert!(error.contains(problem), "{template}: {error}");
        }
    }

    #[test]
    fn every_bound_holds() {
        let large = "x".repeat(600_000);
        let given = format!(r#"{{"x": "{large}", "l": {:?}}}"#, vec![1; 1_000]);
        let long_list = "{% for a in l %}{% for b in l %}{% for c in l %}{{ c }}{% endfor %}{% endfor %}{% endfor %}";
        for (template, problem) in [
            (long_list.to_owned(), "steps"),
            ("{{ x }}{{ x }}".to_owned(), "gives more than"),
            ("{{ x|replace('x', 'xxxx') }}".to_owned(), "too much"),
            ("{{ l|join(x) }}".to_owned(), "too much"),
            (format!("{{{{ '{}'|{} }}}}", "\\\\", ["tojson"; 40].join("|")), "too much"),
            ("{% for a in l %}{{ x|upper|length }}{% endfor %}".to_owned(), "too much"),
            // What is taken counts as well as what is given.
            ("{% for a in l %}{{ x|length }}{% endfor %}".to_owned(), "too much"),
            // With large values there are fewer steps.
            (
                "{% for a in l %}{% for b in l %}{% if x == a %}{% endif %}{% endfor %}{% endfor %}".to_owned(),
                "21700 steps",
            ),
            (format!("{{{{ {} }}}}", ["x"; 10].join(" ~ ")), "more than 8 times"),
            ("{% set x = x ~ x %}{% set x = x ~ x %}".to_owned(), "where a name gets its value"),
            ("{% for x in [x ~ x] %}{{ x }}{% endfor %}".to_owned(), "where a name gets its value"),
            ("{% set a = [x, x] %}{% set a = [a, a] %}{{ a|tojson }}".to_owned(), "where a name gets its value"),
            ("{% set x %}{{ x }}{{ x }}{% endset %}".to_owned(), "`set` of a block"),
            ("y".repeat(70_000), "65536 bytes"),
            // Each of these would take more stack than a thread has.
            (format!("{{{{ {}x }}}}", "-".repeat(60_000)), "more than 500 words and signs"),
            (format!("{{{{ {}x }}}}", "not ".repeat(15_000)), "more than 500 words and signs"),
            (format!("{{{{ x{} }}}}", ".x".repeat(30_000)), "more than 500 words and signs"),
            (format!("{{{{ x{} }}}}", "|e".repeat(30_000)), "more than 500 words and signs"),
            (format!("{{{{ x{} }}}}", " -x".repeat(20_000)), "more than 500 words and signs"),
            (format!("{{{{ {}x }}}}", "x if x else ".repeat(5_000)), "more than 500 words and signs"),
            (format!("{{{{ {}x }}}}", "[x, ".repeat(5_000)), "more than 500 words and signs"),
            (format!("{{{{ {}x }}}}", format!("[x, {}", "-".repeat(300)).repeat(100)), "more than 500 words and signs"),
            (format!("{{{{ [1, 2]{} }}}}", "[x, x]".repeat(5_000)), "more than 500 words and signs"),
            (format!("{{% if x %}}{}{{% endif %}}", "{% elif x %}".repeat(5_000)), "`elif` more than 100 times"),
            (format!("{{% if x %}}{}", "{% elif x %}{{ endif }}".repeat(2_000)), "`elif` more than 100 times"),
            ("{% if x %}{% elif x %}{% elif x %}".repeat(60), "`elif` more than 100 times"),
        ] {
            let error = rendered(&template, &given).unwrap_err();
            assert!(error.contains(problem), "{}: {error}", &template[..template.len().min(80)]);
        }
        let huge = format!(r#"{{"x": "{}"}}"#, "x".repeat(1_100_000));
        assert!(rendered("{{ x }}", &huge).unwrap_err().contains("`x` has more than"));
    }
}
