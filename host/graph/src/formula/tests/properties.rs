//! Whatever the expression and whatever the values: what is refused has no value, and what has a value has one of the
//! type that was found.

use proptest::prelude::*;

use super::super::check::{check, inferred};
use super::super::compile::Compiler;
use super::super::functions::Function;
use super::super::{Compiled, Formula, Part, ValueType, Variable, Vocabulary, Wanted, parse};
use crate::state::State;
use crate::value::{Value, parse_json};

/// Names, and what they hold where that is enforced.
static NAMES: [(&str, ValueType); 8] = [
    ("n", ValueType::int()),
    ("x", ValueType::double()),
    ("s", ValueType::string()),
    ("b", ValueType::bool()),
    ("l", ValueType::list()),
    ("m", ValueType::map()),
    ("u", ValueType::any()),
    // A name that loops hide.
    ("v", ValueType::any()),
];

/// JSON texts of values of every kind.
const VALUES: [&str; 20] = [
    "0",
    "3",
    "-9223372036854775808",
    "99999999999999999999",
    "0.0",
    "2.5",
    r#""""#,
    r#""a""#,
    r#""1""#,
    r#""true""#,
    "true",
    "false",
    "null",
    "[]",
    "[1, 2]",
    r#"["a", 1.5, null]"#,
    "[[1], {\"a\": true}]",
    "{}",
    r#"{"a": 1, "b": {"a": "x"}}"#,
    r#"{"type": "ai", "content": "a"}"#,
];

fn vocabulary(enforced: bool) -> Vocabulary {
    let variable = |(name, holds): (&str, ValueType)| Variable { name: name.into(), holds, enforced };
    Vocabulary { fields: NAMES.clone().into_iter().map(variable).collect(), bare: true, ..Vocabulary::default() }
}

/// A state that holds what is declared, or anything.
fn state(seed: usize, as_declared: bool) -> State {
    let values: Vec<Value> = VALUES.iter().map(|text| parse_json(text).unwrap()).collect();
    let mut state = State::default();
    for (place, (name, holds)) in NAMES.clone().into_iter().enumerate() {
        let fitting: Vec<&Value> = values.iter().filter(|value| !as_declared || holds.admits(value)).collect();
        state.set(name.into(), fitting[(seed * 7 + place * 5 + seed / 3) % fitting.len()].clone());
    }
    state
}

fn expressions() -> impl Strategy<Value = String> {
    let literal = prop::sample::select(&VALUES[..]).prop_filter("no literal", |text| !text.starts_with("99"));
    let name = prop::sample::select(&NAMES[..]).prop_map(|(name, _)| name.to_owned());
    let leaf = prop_oneof![3 => name, 2 => literal.prop_map(str::to_owned)];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let operator =
            prop::sample::select(&["+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "in", "&&", "||"][..]);
        let macros = prop::sample::select(&["map", "filter", "all", "exists", "exists_one"][..]);
        let functions: Vec<&str> = Function::names().collect();
        prop_oneof![
            8 => (inner.clone(), operator, inner.clone()).prop_map(|(a, sign, b)| format!("({a} {sign} {b})")),
            1 => inner.clone().prop_map(|a| format!("!({a})")),
            1 => inner.clone().prop_map(|a| format!("-({a})")),
            2 => (inner.clone(), inner.clone(), inner.clone()).prop_map(|(a, b, c)| format!("(({a}) ? {b} : {c})")),
            2 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a})[{b}]")),
            1 => inner.clone().prop_map(|a| format!("({a}).a")),
            1 => inner.clone().prop_map(|a| format!("has(({a}).a)")),
            1 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("default({a}, {b})")),
            1 => prop::collection::vec(inner.clone(), 0..3).prop_map(|all| format!("[{}]", all.join(", "))),
            1 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{{\"a\": {a}, \"b\": {b}}}")),
            3 => (inner.clone(), macros, inner.clone()).prop_map(|(a, name, b)| format!("({a}).{name}(v, {b})")),
            4 => (prop::sample::select(functions), prop::collection::vec(inner, 4..5)).prop_map(|(name, all)| {
                let most = Function::of_name(name).map_or(0, |function| function.arity().1);
                format!("{name}({})", all[..most].join(", "))
            }),
        ]
    })
}

/// Compiles without a check.
fn compiled(source: &str) -> Option<Part> {
    let vocabulary = vocabulary(false);
    parse::with_parsed(source, |tree, offsets| Compiler::new(source, &vocabulary, offsets).compile(tree)).ok()?.ok()
}

fn sound(source: &str) -> Result<(), TestCaseError> {
    let Some(root) = compiled(source) else { return Ok(()) };
    let formula = Formula(std::sync::Arc::new(Compiled { source: source.into(), root: root.clone() }));
    for enforced in [true, false] {
        let vocabulary = vocabulary(enforced);
        let outcome = check(&root, source, &vocabulary, &Wanted::Anything);
        let places = match &outcome {
            Ok(doubts) => doubts.iter().map(|doubt| &doubt.error).collect(),
            Err(error) => vec![error],
        };
        for error in places {
            prop_assert!(source.get(error.range.clone()).is_some_and(|text| !text.is_empty()), "{source}: {error:?}");
        }
        let found = inferred(&root, &vocabulary);
        // What fails by its values and not by their kinds is a doubt.
        let is_said = outcome.as_ref().map_or(true, |doubts| !doubts.is_empty());
        prop_assert!(if found.is_some() { outcome.is_ok() } else { is_said }, "{source}: {outcome:?}");
        for seed in 0..12 {
            let state = state(seed, enforced);
            let Ok(value) = formula.evaluate(&state) else { continue };
            prop_assert!(
                outcome.is_ok(),
                "{source} is refused and gives {value} in {:?}: {outcome:?}",
                state.to_object()
            );
            if let Some(found) = &found {
                prop_assert!(found.admits(&value), "{source} gives {value} in {:?}: {found:?}", state.to_object());
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_has_a_value_is_not_refused(source in expressions()) {
        sound(&source)?;
    }
}
