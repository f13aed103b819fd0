//! Any text as a template, an expression, a condition, a path, a schema or a value, evaluated over a small state: it is
//! refused, or ends soon with a value or an error.
#![no_main]

use std::sync::LazyLock;

use hotcell_graph::formula::{Formula, Vocabulary};
use hotcell_graph::json_schema::JsonSchema;
use hotcell_graph::python::PythonExpression;
use hotcell_graph::value::parse_json;
use hotcell_graph::{BraceTemplate, Jinja, Object, Path, Place, State, Template};
use libfuzzer_sys::fuzz_target;

const VALUES: &str = r#"{"a":1,"b":"text","c":[1,2.5,null,{"d":true}],"e":{"f":{"g":[]}},"n":-3,"long":"xxxxxxxxxxxxxxxx"}"#;

static STATE: LazyLock<(Object, State)> = LazyLock::new(|| {
    let values = parse_json(VALUES).ok().and_then(|values| values.as_object().cloned()).expect("the values are wrong");
    let mut state = State::default();
    for (key, value) in values.iter() {
        state.set(key.clone(), value.clone());
    }
    (values, state)
});

/// The same values, as a schema takes them.
static INSTANCE: LazyLock<serde_json::Value> =
    LazyLock::new(|| serde_json::from_str(VALUES).expect("the values are wrong"));

fuzz_target!(|text: &str| {
    let (values, state) = &*STATE;
    drop(Template::parse(text).evaluate_lenient(state));
    drop(BraceTemplate::parse(text));
    drop(Jinja::parse(text).map(|template| template.render(values)));
    drop(Formula::compile(text, &Vocabulary::default()).map(|formula| formula.evaluate(state)));
    match PythonExpression::parse(text, &[("a", "a"), ("b", "b"), ("c", "c"), ("e", "e")]) {
        Ok(expression) => drop(expression.evaluate(state)),
        Err(problem) => assert!(problem.range.start <= problem.range.end && problem.range.end <= text.len() + 1),
    }
    let _ = (Path::parse(text), Place::parse(text));
    if let Ok(value) = parse_json(text) {
        assert_eq!(parse_json(&value.to_json()).as_ref(), Ok(&value), "what was written is something else");
    }
    if let Ok(schema) = serde_json::from_str(text) {
        drop(JsonSchema::compile(&schema).map(|schema| schema.problems(&INSTANCE, 10)));
    }
});
