//! Templates in the language of Jinja, rendered within bounds: so many steps, so many bytes, nothing read from anywhere.
//!
//! Whoever writes a template may be a stranger, and what is filled in certainly is. Values are data: they are never read as
//! a template. The engine that renders counts steps and not bytes, so what could make a small text large is left out: blocks
//! that are kept for later, joining inside of tags, multiplication; filters are watched.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use minijinja::machinery::ast::{BinOpKind, CallArg, Expr, Stmt};
use minijinja::machinery::{WhitespaceConfig, parse};
use minijinja::value::Rest;
use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior, Value as Rendered};

use crate::value::{Object, Value};

/// Bytes that a template may have.
const MAX_SOURCE: usize = 64 << 10;
/// Bytes that a value in a template may have, and that come out of one.
const MAX_TEXT: usize = 1 << 20;
/// Bytes that all filters of one rendering may take and give.
const MAX_FILTERED: u64 = 64 << 20;
/// Steps of one rendering whose values are no larger than this together, in bytes. A step may take time in proportion to the
/// values, so there are fewer with larger ones, down to a fifth.
const FUEL: u64 = 100_000;
const USUAL_VALUES: usize = 128 << 10;
/// Steps of a rendering that is to be brief.
const BRIEF: u64 = 200;
/// How often one expression may join texts.
const MAX_JOINS: usize = 8;
/// How deep tags may be nested.
const MAX_DEPTH: usize = 64;

/// Filters that give about as much as they take.
const FILTERS: &[&str] = &[
    "abs",
    "attr",
    "bool",
    "capitalize",
    "count",
    "d",
    "default",
    "dictsort",
    "e",
    "escape",
    "first",
    "float",
    "int",
    "items",
    "last",
    "length",
    "list",
    "lower",
    "max",
    "min",
    "reverse",
    "round",
    "safe",
    "sort",
    "string",
    "title",
    "trim",
    "unique",
    "upper",
];

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

/// What renders: no loader, no functions but `range`, filters that are watched.
fn environment(fuel: u64) -> Environment<'static> {
    let mut environment = Environment::empty();
    environment.set_fuel(Some(fuel));
    environment.set_recursion_limit(MAX_DEPTH);
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    let spent = Arc::new(AtomicU64::new(0));
    for name in FILTERS {
        let spent = spent.clone();
        let filter = move |arguments: Rest<Rendered>| -> Result<Rendered, Error> {
            arguments.iter().try_for_each(|argument| charge(argument, &spent))?;
            // The filters as they are, in a place without anything else.
            bounded(Environment::new().empty_state().apply_filter(name, &arguments)?, &spent)
        };
        environment.add_filter(*name, filter);
    }
    let (joined, replaced, json) = (spent.clone(), spent.clone(), spent);
    environment
        .add_filter("join", move |list: Rendered, by: Option<String>| join(&list, &by.unwrap_or_default(), &joined));
    environment
        .add_filter("replace", move |text: String, from: String, to: String| replace(&text, &from, &to, &replaced));
    environment.add_filter("tojson", move |value: Rendered| {
        let text = serde_json::to_string(&value)
            .map_err(|error| Error::new(ErrorKind::InvalidOperation, error.to_string()))?;
        bounded(Rendered::from(text), &json)
    });
    environment.add_function("range", minijinja::functions::range);
    for (name, test) in [("defined", true), ("undefined", false)] {
        environment.add_test(name, move |value: &Rendered| value.is_undefined() != test);
    }
    environment.add_test("none", |value: &Rendered| value.is_none());
    environment.add_test("string", |value: &Rendered| value.as_str().is_some());
    environment.add_test("number", |value: &Rendered| value.is_number());
    environment.add_test("true", |value: &Rendered| *value == Rendered::from(true));
    environment.add_test("false", |value: &Rendered| *value == Rendered::from(false));
    environment
}

fn too_long() -> Error {
    Error::new(ErrorKind::InvalidOperation, "filters take or give too much")
}

/// A value that a filter gave, if it is not too large and not one of too many.
fn bounded(value: Rendered, spent: &AtomicU64) -> Result<Rendered, Error> {
    charge(&value, spent)?;
    Ok(value)
}

/// Takes note of what a filter takes or gives.
fn charge(value: &Rendered, spent: &AtomicU64) -> Result<(), Error> {
    let size = value.as_str().map_or_else(|| value.len().unwrap_or(1), str::len);
    let all = spent.fetch_add(size as u64, Ordering::Relaxed) + size as u64;
    if size > MAX_TEXT || all > MAX_FILTERED { Err(too_long()) } else { Ok(()) }
}

fn join(list: &Rendered, by: &str, spent: &AtomicU64) -> Result<Rendered, Error> {
    charge(list, spent)?;
    let mut text = String::new();
    for (place, item) in list.try_iter()?.enumerate() {
        if place > 0 {
            text.push_str(by);
        }
        text.push_str(&item.to_string());
        if text.len() > MAX_TEXT {
            return Err(too_long());
        }
    }
    bounded(Rendered::from(text), spent)
}

fn replace(text: &str, from: &str, to: &str, spent: &AtomicU64) -> Result<Rendered, Error> {
    charge(&Rendered::from(text), spent)?;
    let found = if from.is_empty() { text.len() + 1 } else { text.matches(from).count() };
    if text.len() + found.saturating_mul(to.len()) > MAX_TEXT {
        return Err(too_long());
    }
    bounded(Rendered::from(text.replace(from, to)), spent)
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

/// Looks for what could make a small text large, which bounds on steps do not see.
#[derive(Default)]
struct Inspection {
    joins: usize,
}

/// What the values of names are made of may not grow: a name can be used again and again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Output,
    Binding,
}

impl Inspection {
    fn statements(&mut self, statements: &[Stmt<'_>]) -> Result<(), String> {
        statements.iter().try_for_each(|statement| self.statement(statement))
    }

    fn statement(&mut self, statement: &Stmt<'_>) -> Result<(), String> {
        match statement {
            Stmt::Template(template) => self.statements(&template.children),
            Stmt::EmitRaw(_) => Ok(()),
            Stmt::EmitExpr(emit) => self.whole(&emit.expr),
            Stmt::ForLoop(each) if each.recursive => left_out("a recursive loop"),
            Stmt::ForLoop(each) => {
                self.expression(&each.iter, Place::Binding)?;
                each.filter_expr.iter().try_for_each(|expression| self.whole(expression))?;
                self.statements(&each.body)?;
                self.statements(&each.else_body)
            }
            Stmt::IfCond(either) => {
                self.whole(&either.expr)?;
                self.statements(&either.true_body)?;
                self.statements(&either.false_body)
            }
            Stmt::WithBlock(with) => {
                with.assignments.iter().try_for_each(|(_, value)| self.expression(value, Place::Binding))?;
                self.statements(&with.body)
            }
            Stmt::Set(set) => self.expression(&set.expr, Place::Binding),
            Stmt::SetBlock(_) => left_out("`set` of a block"),
            Stmt::AutoEscape(_) => left_out("`autoescape`"),
            Stmt::FilterBlock(_) => left_out("`filter` of a block"),
            _ => left_out("a statement of this kind (`do`, `macro`, `include` and the like)"),
        }
    }

    /// An expression that is not a part of another one.
    fn whole(&mut self, expression: &Expr<'_>) -> Result<(), String> {
        self.joins = 0;
        self.expression(expression, Place::Output)
    }

    fn expressions<'e>(
        &mut self,
        expressions: impl IntoIterator<Item = &'e Expr<'e>>,
        place: Place,
    ) -> Result<(), String> {
        expressions.into_iter().try_for_each(|expression| self.expression(expression, place))
    }

    fn arguments(&mut self, arguments: &[CallArg<'_>], place: Place) -> Result<(), String> {
        arguments.iter().try_for_each(|argument| match argument {
            CallArg::Pos(value) | CallArg::Kwarg(_, value) => self.expression(value, place),
            CallArg::PosSplat(_) | CallArg::KwargSplat(_) => left_out("arguments from a list"),
        })
    }

    fn expression(&mut self, expression: &Expr<'_>, place: Place) -> Result<(), String> {
        match expression {
            // A list of names in a name that is in a list again would stand for a list without end.
            Expr::List(_) | Expr::Map(_) if place == Place::Binding && expression.as_const().is_none() => {
                left_out("a list or object of names where a name gets its value")
            }
            Expr::Var(_) | Expr::Const(_) => Ok(()),
            Expr::Slice(slice) => {
                self.expression(&slice.expr, place)?;
                [&slice.start, &slice.stop, &slice.step]
                    .into_iter()
                    .flatten()
                    .try_for_each(|bound| self.expression(bound, place))
            }
            Expr::UnaryOp(unary) => self.expression(&unary.expr, place),
            Expr::BinOp(binary) => {
                match binary.op {
                    BinOpKind::Mul | BinOpKind::Pow => return left_out("multiplication"),
                    BinOpKind::Add | BinOpKind::Concat if place == Place::Binding => {
                        return left_out("joining or adding where a name gets its value");
                    }
                    BinOpKind::Add | BinOpKind::Concat => self.joins += 1,
                    _ => {}
                }
                if self.joins > MAX_JOINS {
                    return left_out(&format!("joining texts more than {MAX_JOINS} times in one expression"));
                }
                self.expressions([&binary.left, &binary.right], place)
            }
            Expr::Compare(compare) => {
                self.expression(&compare.expr, place)?;
                compare.ops.iter().try_for_each(|one| self.expression(&one.expr, place))
            }
            Expr::IfExpr(either) => {
                self.expressions([&either.test_expr, &either.true_expr], place)?;
                either.false_expr.iter().try_for_each(|expression| self.expression(expression, place))
            }
            Expr::Filter(filter) => {
                filter.expr.iter().try_for_each(|expression| self.expression(expression, place))?;
                self.arguments(&filter.args, place)
            }
            Expr::Test(test) => {
                self.expression(&test.expr, place)?;
                self.arguments(&test.args, place)
            }
            Expr::GetAttr(get) => self.expression(&get.expr, place),
            Expr::GetItem(get) => self.expressions([&get.expr, &get.subscript_expr], place),
            Expr::Call(call) => {
                if !matches!(&call.expr, Expr::Var(name) if name.id == "range") {
                    return left_out("a call of anything but `range`");
                }
                self.arguments(&call.args, place)
            }
            Expr::List(list) => list.items.iter().try_for_each(|item| self.expression(item, place)),
            Expr::Map(map) => map.keys.iter().chain(&map.values).try_for_each(|item| self.expression(item, place)),
        }
    }
}

fn left_out(what: &str) -> Result<(), String> {
    Err(format!("{what} is left out of templates here"))
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
        ] {
            let error = rendered(&template, &given).unwrap_err();
            assert!(error.contains(problem), "{}: {error}", &template[..template.len().min(80)]);
        }
        let huge = format!(r#"{{"x": "{}"}}"#, "x".repeat(1_100_000));
        assert!(rendered("{{ x }}", &huge).unwrap_err().contains("`x` has more than"));
    }
}
