//! Looking at a value where it is, for expressions that only name one.

use super::{Composed, Expression};
use crate::template::Lookup;
use crate::value::Value;

/// What an expression names.
pub(super) enum Named<'s> {
    /// A value that is there
    There(&'s Value),
    /// Nothing: evaluated, the expression is [`super::NoValue::Absent`]
    Absent,
    /// It has to be evaluated: it makes a value, or says what is wrong
    Made,
}

impl<'s> From<Option<&'s Value>> for Named<'s> {
    fn from(found: Option<&'s Value>) -> Self {
        found.map_or(Named::Absent, Named::There)
    }
}

impl Expression {
    /// What it names. Nothing is copied, and no words are made for what is not there: a default often stands in for it.
    pub(super) fn named<'s>(&'s self, scope: &'s dyn Lookup) -> Named<'s> {
        match self {
            Expression::Value(value) => Named::There(value),
            Expression::Key(key) => scope.lookup(key).into(),
            Expression::Entry(of, key) => match of.named(scope) {
                Named::There(Value::Object(object)) => object.get(key).into(),
                Named::There(_) => Named::Made,
                other => other,
            },
            Expression::Composed(composed) => match &**composed {
                Composed::Last(of) => match of.named(scope) {
                    Named::There(Value::List(list)) => list.len().checked_sub(1).and_then(|last| list.get(last)).into(),
                    Named::There(_) => Named::Made,
                    other => other,
                },
                _ => Named::Made,
            },
            _ => Named::Made,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::NoValue;
    use super::*;
    use crate::state::State;
    use crate::value::{Object, parse_json};

    #[test]
    fn what_is_named_is_what_it_evaluates_to() {
        let seed = r#"{"one":{"a":1,"b":{"c":2}},"came":[{"n":1},{"n":2}],"none":[],"text":"t"}"#;
        let object: Object = parse_json(seed).unwrap().as_object().cloned().unwrap_or_default();
        let state = State::from_object(&object);
        let key = |name: &str| Expression::Key(name.into());
        let entry = |of: Expression, name: &str| Expression::Entry(Box::new(of), name.into());
        let last = |of: Expression| Expression::Composed(Box::new(Composed::Last(of)));
        let or = |first: Expression| Expression::Else(Box::new(first), Box::new(Expression::Value("or".into())));
        for (expression, is_there) in [
            (key("one"), true),
            (key("two"), false),
            (entry(entry(key("one"), "b"), "c"), true),
            (entry(entry(key("one"), "z"), "c"), false),
            (entry(key("two"), "a"), false),
            (entry(last(key("came")), "n"), true),
            (entry(last(key("none")), "n"), false),
            (last(key("two")), false),
        ] {
            let evaluated = expression.evaluate(&state);
            match expression.named(&state) {
                Named::There(value) => assert_eq!(evaluated, Ok(value.clone())),
                Named::Absent => assert!(matches!(evaluated, Err(NoValue::Absent(_))), "{evaluated:?}"),
                Named::Made => panic!("{expression:?} names something"),
            }
            assert_eq!(evaluated.is_ok(), is_there, "{expression:?}");
            let value = evaluated.unwrap_or_else(|_| "or".into());
            assert_eq!(or(expression).evaluate(&state), Ok(value));
        }
        // What is wrong is said, and no default stands in for it.
        for wrong in [entry(key("text"), "a"), last(key("text")), entry(last(key("one")), "a")] {
            assert!(matches!(wrong.named(&state), Named::Made), "{wrong:?}");
            assert!(matches!(or(wrong).evaluate(&state), Err(NoValue::Unfit(_))));
        }
    }
}
