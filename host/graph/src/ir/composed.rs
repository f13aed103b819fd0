//! Values that are put together from objects and lists.

use super::{Expression, Fit, NoValue, Pattern, Recall, Way};
use crate::searching::Patience;
use crate::template::Lookup;
use crate::value::{Key, List, Object, Value, parse_json};

/// What stands for what was taken out of a text.
const REDACTED: &str = "[redacted]";
/// Bytes of all texts of a value out of which something is taken.
const MOST_REDACTED: usize = 64 << 20;

/// A value that is put together from others.
#[derive(Clone, Debug, PartialEq)]
pub enum Composed {
    /// One object of several; of entries with one key the last one counts
    Overlaid(Vec<Expression>),
    /// The entries of an object under these keys, as far as they are there
    Only(Expression, Vec<Key>),
    /// The entries of an object under all other keys
    Without(Expression, Vec<Key>),
    /// The entries of an object whose names do not begin with `_`, and those under these keys
    Public(Expression, Vec<Key>),
    /// A value without what of its texts fits one of these patterns
    Redacted(Expression, Vec<Pattern>),
    /// The last item of a list
    Last(Expression),
    /// The last items of a list, at most so many
    Newest(Expression, usize),
    /// One of two values
    Either {
        /// Which one
        condition: Expression,
        /// The value where that is true
        then: Expression,
        /// The value where it is not, or has no value
        otherwise: Expression,
    },
    /// The items of several lists, one after the other
    Concat(Vec<Expression>),
    /// Whether a list has an item
    Contains(Expression, Expression),
    /// The items of a list that have this value as an entry, or those that do not
    Having {
        /// The list
        list: Expression,
        /// The entry
        key: Key,
        /// The value
        value: Expression,
        /// Whether those are meant that have it
        is: bool,
    },
    /// Items of lists that are worth recalling for a text
    Recalled(Box<Recall>),
    /// An object of the items of a list: of each the entry `value`, under the text that is its entry `key`. Items without such a
    /// text are left out
    Keyed {
        /// The list
        list: Expression,
        /// The entry with the name
        key: Key,
        /// The entry with the value
        value: Key,
    },
    /// One object of those that the items of a list have as this entry; of entries with one key the last one counts
    Gathered(Expression, Key),
    /// The object that a text is as JSON, or an object with the text under this key
    ObjectOf(Expression, Key),
    /// What is wrong with a value by a schema, as a list of texts
    Misfits(Expression, Fit),
    /// A value, if it fits a schema. What is wrong with another one is told behind these words
    Fitting(Expression, Fit, String),
    /// The items of a list that are not `null`
    Present(Expression),
    /// How many items of a list are `null`
    AbsentCount(Expression),
    /// One object of the objects in a list: lists one after the other, numbers added up, everything else as the last one has it.
    /// Items that are `null` are left out; without any other item it has no value
    Merged(Expression),
    /// The text that names one of a few ways in which an object may be taken, if the object may go that way
    Way(Box<Way>),
}

impl Composed {
    pub(super) fn evaluate(&self, scope: &dyn Lookup) -> Result<Value, NoValue> {
        Ok(match self {
            Composed::Overlaid(parts) => {
                let mut whole = Object::default();
                for part in parts {
                    let object = object_of(part, scope)?;
                    if whole.is_empty() {
                        whole = object;
                        continue;
                    }
                    object.iter().for_each(|(key, value)| whole.insert(key.clone(), value.clone()));
                }
                Value::Object(whole)
            }
            Composed::Only(of, keys) => {
                let object = object_of(of, scope)?;
                let entry = |key: &Key| Some((key.clone(), object.get(key)?.clone()));
                Value::Object(keys.iter().filter_map(entry).collect())
            }
            Composed::Without(of, keys) => {
                let mut object = object_of(of, scope)?;
                for key in keys.iter().filter(|key| object.get(key).is_some()).collect::<Vec<_>>() {
                    object.remove(key);
                }
                Value::Object(object)
            }
            Composed::Public(of, kept) => {
                let object = object_of(of, scope)?;
                let is_public = |key: &Key| !key.starts_with('_') || kept.contains(key);
                Value::Object(
                    object.iter().filter(|(key, _)| is_public(key)).map(|(k, v)| (k.clone(), v.clone())).collect(),
                )
            }
            Composed::Redacted(of, patterns) => {
                let mut redaction = Redaction { patterns, bytes_left: MOST_REDACTED, patience: Patience::begin() };
                redaction.of(&of.evaluate(scope)?)
            }
            Composed::Last(of) => {
                let list = list_of(of, scope)?;
                let last = list.len().checked_sub(1).and_then(|last| list.get(last)).cloned();
                last.ok_or_else(|| NoValue::Absent("the last item of an empty list".to_owned()))?
            }
            Composed::Newest(of, most) => {
                let list = list_of(of, scope)?;
                Value::List(list.iter().skip(list.len().saturating_sub(*most)).cloned().collect())
            }
            Composed::Either { condition, then, otherwise } => match condition.evaluate(scope) {
                Ok(Value::Bool(true)) => then.evaluate(scope)?,
                _ => otherwise.evaluate(scope)?,
            },
            Composed::Concat(lists) => {
                let mut whole = List::default();
                for list in lists {
                    whole.extend(&list_of(list, scope)?);
                }
                Value::List(whole)
            }
            Composed::Contains(list, item) => {
                let item = item.evaluate(scope)?;
                Value::Bool(list_of(list, scope)?.iter().any(|known| *known == item))
            }
            Composed::Having { list, key, value, is } => {
                let value = value.evaluate(scope)?;
                let has = |item: &&Value| item.as_object().and_then(|item| item.get(key)) == Some(&value);
                Value::List(list_of(list, scope)?.iter().filter(|item| has(item) == *is).cloned().collect())
            }
            Composed::Recalled(recall) => recall.evaluate(scope)?,
            Composed::Keyed { list, key, value } => {
                let mut object = Object::default();
                for item in list_of(list, scope)?.iter().filter_map(Value::as_object) {
                    if let (Some(Value::Text(name)), Some(value)) = (item.get(key), item.get(value)) {
                        object.insert(name.clone(), value.clone());
                    }
                }
                Value::Object(object)
            }
            Composed::Gathered(list, key) => {
                let mut whole = Object::default();
                let items = list_of(list, scope)?;
                for object in items.iter().filter_map(|item| item.as_object()?.get(key)?.as_object()) {
                    object.iter().for_each(|(key, value)| whole.insert(key.clone(), value.clone()));
                }
                Value::Object(whole)
            }
            Composed::ObjectOf(of, otherwise) => {
                let value = of.evaluate(scope)?;
                match value.as_text().map(read_object) {
                    Some(Some(object)) => object,
                    Some(None) => Value::Object([(otherwise.clone(), value)].into_iter().collect()),
                    None => value,
                }
            }
            Composed::Misfits(of, fit) => {
                let value = of.evaluate(scope)?;
                Value::List(fit.problems(&value).into_iter().map(Value::from).collect())
            }
            Composed::Fitting(of, fit, words) => {
                let value = of.evaluate(scope)?;
                match &fit.problems(&value)[..] {
                    [] => value,
                    problems => return Err(NoValue::Unfit(format!("{words}{}", problems.join("; ")))),
                }
            }
            Composed::Present(of) => Value::List(present(&list_of(of, scope)?).cloned().collect()),
            Composed::AbsentCount(of) => {
                let list = list_of(of, scope)?;
                Value::from((list.len() - present(&list).count()) as i64)
            }
            Composed::Merged(of) => merged(&list_of(of, scope)?)?,
            Composed::Way(way) => way.evaluate(scope)?,
        })
    }
}

/// Taking what fits patterns out of all texts of a value.
struct Redaction<'p> {
    patterns: &'p [Pattern],
    bytes_left: usize,
    patience: Patience,
}

impl Redaction<'_> {
    fn of(&mut self, value: &Value) -> Value {
        match value {
            Value::Text(text) => self.of_text(text),
            Value::List(list) => Value::List(list.iter().map(|item| self.of(item)).collect()),
            Value::Object(object) => {
                Value::Object(object.iter().map(|(key, value)| (key.clone(), self.of(value))).collect())
            }
            other => other.clone(),
        }
    }

    /// Nothing is left of a text that there is no time to look at.
    fn of_text(&mut self, text: &str) -> Value {
        if text.len() > self.bytes_left {
            return Value::from(REDACTED);
        }
        let (most, patience) = (self.bytes_left, &mut self.patience);
        let without = |text: String, pattern: &Pattern| pattern.without(&text, REDACTED, most, patience);
        let clean = self.patterns.iter().fold(text.to_owned(), without);
        self.bytes_left = self.bytes_left.saturating_sub(clean.len());
        Value::text(clean)
    }
}

pub(super) fn object_of(of: &Expression, scope: &dyn Lookup) -> Result<Object, NoValue> {
    match of.evaluate(scope)? {
        Value::Object(object) => Ok(object),
        other => Err(NoValue::Unfit(format!("an object is needed here, not {}", other.a_kind()))),
    }
}

pub(super) fn list_of(of: &Expression, scope: &dyn Lookup) -> Result<List, NoValue> {
    match of.evaluate(scope)? {
        Value::List(list) => Ok(list),
        other => Err(NoValue::Unfit(format!("a list is needed here, not {}", other.a_kind()))),
    }
}

/// The object that a text is as JSON, also within the fences that models like to put around it.
fn read_object(text: &str) -> Option<Value> {
    let inner = text.trim();
    let inner = match inner.strip_prefix("```") {
        Some(fenced) => fenced.strip_prefix("json").unwrap_or(fenced).trim_end().strip_suffix("```")?,
        None => inner,
    };
    parse_json(inner.trim()).ok().filter(|value| matches!(value, Value::Object(_)))
}

fn present(list: &List) -> impl Iterator<Item = &Value> {
    list.iter().filter(|item| **item != Value::Null)
}

fn merged(list: &List) -> Result<Value, NoValue> {
    let mut whole: Option<Object> = None;
    for object in present(list).filter_map(Value::as_object) {
        let Some(whole) = &mut whole else {
            whole = Some(object.clone());
            continue;
        };
        for (key, value) in object.iter() {
            let joined = match (whole.get(key), value) {
                (Some(Value::List(before)), Value::List(more)) => {
                    let mut list = before.clone();
                    list.extend(more);
                    Some(Value::List(list))
                }
                (Some(Value::Number(before)), Value::Number(more)) => before.add(more).map(Value::Number),
                _ => None,
            };
            whole.insert(key.clone(), joined.unwrap_or_else(|| value.clone()));
        }
    }
    whole.map(Value::Object).ok_or_else(|| NoValue::Unfit("none of them gave anything".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::super::WayCase;
    use super::*;
    use crate::python::ObjectCondition;
    use crate::state::State;

    fn state() -> State {
        let seed = r#"{"hidden":{"_a":1,"_b":2,"c":"+43 1 and +43 2"},"one":{"a":1,"b":{"c":2}},"two":{"a":3,"d":null},
            "came":[{"from":"x","output":{"n":1}},{"output":{"n":2}},{"from":"y","output":{"n":3}}],
            "copies":[{"l":[1],"n":1,"t":"a"},null,{"l":[2],"n":2.5,"t":"b","m":true}],
            "words":["a","b"],"text":"```json\n{\"k\": 1}\n```","prose":"hello {\"k\"}"}"#;
        match parse_json(seed).unwrap() {
            Value::Object(object) => State::from_object(&object),
            _ => unreachable!("the seed is an object"),
        }
    }

    fn key(name: &str) -> Expression {
        Expression::Key(name.into())
    }

    #[test]
    fn objects_and_lists_are_put_together() {
        let way = |chosen: &str| {
            let condition = ObjectCondition::parse("a == 1", "whole").unwrap();
            let schema = parse_json(r#"{"type":"object","required":["z"]}"#).unwrap();
            let way = |name: &str| WayCase { name: name.into(), condition: None, fit: None };
            let ways = vec![
                WayCase { condition: Some(condition), ..way("open") },
                WayCase { condition: Some(ObjectCondition::parse("gone == 1", "whole").unwrap()), ..way("closed") },
                WayCase { fit: Some(Fit::new(schema).unwrap()), ..way("narrow") },
            ];
            let chosen = Expression::Value(chosen.into());
            Composed::Way(Box::new(Way { noun: "entry point", chosen, object: key("one"), ways }))
        };
        for (composed, expected) in [
            (Composed::Overlaid(vec![key("one"), key("two")]), Ok(r#"{"a":3,"b":{"c":2},"d":null}"#)),
            (Composed::Only(key("one"), vec!["b".into(), "z".into()]), Ok(r#"{"b":{"c":2}}"#)),
            (Composed::Without(key("one"), vec!["b".into(), "z".into()]), Ok(r#"{"a":1}"#)),
            (Composed::Public(key("hidden"), vec!["_b".into()]), Ok(r#"{"_b":2,"c":"+43 1 and +43 2"}"#)),
            (
                Composed::Redacted(key("hidden"), vec![Pattern::new(r"\+\d+ \d").unwrap()]),
                Ok(r#"{"_a":1,"_b":2,"c":"[redacted] and [redacted]"}"#),
            ),
            (Composed::Last(key("came")), Ok(r#"{"from":"y","output":{"n":3}}"#)),
            (Composed::Contains(key("words"), Expression::Value("b".into())), Ok("true")),
            (Composed::Contains(key("words"), Expression::Value("z".into())), Ok("false")),
            (Composed::Concat(vec![key("words"), key("words")]), Ok(r#"["a","b","a","b"]"#)),
            (
                Composed::Having {
                    list: key("came"),
                    key: "from".into(),
                    value: Expression::Value("x".into()),
                    is: true,
                },
                Ok(r#"[{"from":"x","output":{"n":1}}]"#),
            ),
            (
                Composed::Having {
                    list: key("came"),
                    key: "from".into(),
                    value: Expression::Value("x".into()),
                    is: false,
                },
                Ok(r#"[{"output":{"n":2}},{"from":"y","output":{"n":3}}]"#),
            ),
            (
                Composed::Either {
                    condition: key("gone"),
                    then: key("one"),
                    otherwise: Expression::Value(Value::Null),
                },
                Ok("null"),
            ),
            (Composed::Newest(key("came"), 2), Ok(r#"[{"output":{"n":2}},{"from":"y","output":{"n":3}}]"#)),
            (
                Composed::Newest(key("came"), 9),
                Ok(r#"[{"from":"x","output":{"n":1}},{"output":{"n":2}},{"from":"y","output":{"n":3}}]"#),
            ),
            (
                Composed::Either { condition: Expression::Has("one".into()), then: key("one"), otherwise: key("gone") },
                Ok(r#"{"a":1,"b":{"c":2}}"#),
            ),
            (
                Composed::Either {
                    condition: Expression::Has("gone".into()),
                    then: key("gone"),
                    otherwise: key("two"),
                },
                Ok(r#"{"a":3,"d":null}"#),
            ),
            (
                Composed::Keyed { list: key("came"), key: "from".into(), value: "output".into() },
                Ok(r#"{"x":{"n":1},"y":{"n":3}}"#),
            ),
            (Composed::Gathered(key("came"), "output".into()), Ok(r#"{"n":3}"#)),
            (Composed::ObjectOf(key("text"), "message".into()), Ok(r#"{"k":1}"#)),
            (Composed::ObjectOf(key("prose"), "message".into()), Ok(r#"{"message":"hello {\"k\"}"}"#)),
            (Composed::Present(key("copies")), Ok(r#"[{"l":[1],"n":1,"t":"a"},{"l":[2],"n":2.5,"t":"b","m":true}]"#)),
            (Composed::AbsentCount(key("copies")), Ok("1")),
            (Composed::Merged(key("copies")), Ok(r#"{"l":[1,2],"n":3.5,"t":"b","m":true}"#)),
            (way("open"), Ok(r#""open""#)),
            (way("opne"), Err("did you mean `open`?")),
            (way("closed"), Err("there is no `gone`")),
            (way("narrow"), Err("\"z\" is a required property")),
            (Composed::Overlaid(vec![key("came")]), Err("an object is needed here, not a list")),
        ] {
            match (composed.evaluate(&state()), expected) {
                (Ok(value), Ok(expected)) => assert_eq!(value.to_json(), expected),
                (Err(problem), Err(part)) => assert!(problem.to_string().contains(part), "{problem}"),
                (got, expected) => panic!("{composed:?}: {got:?}, {expected:?}"),
            }
        }
    }

    #[test]
    fn what_is_wrong_with_a_value_is_told_with_its_place() {
        let schema = r#"{"type":"object","properties":{"b":{"properties":{"c":{"type":"string"}}}},"required":["q"]}"#;
        let fit = Fit::new(parse_json(schema).unwrap()).unwrap();
        let misfits = Composed::Misfits(key("one"), fit).evaluate(&state()).unwrap();
        let told: Vec<&str> = misfits.as_list().unwrap().iter().filter_map(Value::as_text).collect();
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told.iter().any(|misfit| misfit.starts_with("/b/c: ")), "{told:?}");
        assert!(Fit::new(Value::from("no schema")).is_err());
    }
}
