//! Places within a value: `a.b[0].c`, to read from and to write to.

use std::fmt;

use crate::value::{Key, List, Object, Value};

/// Steps that a place may have: far more than anybody writes, and few enough for a stack.
const MAX_STEPS: usize = 64;

/// A place within a value. An index below zero counts from the end of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    steps: Vec<Step>,
}

/// One step further in.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// The entry of an object
    Key(Key),
    /// The item of a list
    Index(i64),
}

impl Place {
    /// Reads a place: names with dots between them, and indexes in brackets.
    ///
    /// # Errors
    /// When the text is none; says why.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut steps = Vec::new();
        for part in text.split('.') {
            let (name, mut indexes) = match part.find('[') {
                Some(at) => part.split_at(at),
                None => (part, ""),
            };
            if !is_name(name) {
                return Err(match name {
                    "" => "a name is missing".to_owned(),
                    name => format!("`{name}` is not a valid name"),
                });
            }
            steps.push(Step::Key(name.into()));
            while !indexes.is_empty() {
                let inside = indexes.strip_prefix('[').and_then(|rest| rest.split_once(']'));
                let (inside, rest) = inside.ok_or_else(|| format!("`{indexes}` is not an index in brackets"))?;
                let quoted = |quote: char| inside.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
                steps.push(match (inside.parse(), quoted('\'').or_else(|| quoted('"'))) {
                    (Ok(index), _) => Step::Index(index),
                    (_, Some(key)) => Step::Key(key.into()),
                    (_, None) if is_name(inside) => Step::Key(inside.into()),
                    (_, None) => return Err(format!("`[{inside}]` is neither an index nor a key")),
                });
                indexes = rest;
            }
        }
        if steps.len() > MAX_STEPS {
            return Err(format!("it has more than {MAX_STEPS} steps"));
        }
        Ok(Place { steps })
    }

    /// The key that it begins with.
    pub fn root(&self) -> &Key {
        match self.steps.first() {
            Some(Step::Key(key)) => key,
            // `parse` begins with a name.
            _ => unreachable!("a place begins with a name"),
        }
    }

    /// The steps behind the key that it begins with.
    pub fn inner(&self) -> &[Step] {
        &self.steps[1..]
    }

    /// The same place without the key that it begins with, if it goes on with another one.
    #[must_use]
    pub fn without_root(&self) -> Option<Place> {
        match self.steps.get(1) {
            Some(Step::Key(_)) => Some(Place { steps: self.steps[1..].to_vec() }),
            _ => None,
        }
    }

    /// What is there, from the value of the key that it begins with; none if nothing is.
    pub fn follow<'v>(&self, root: &'v Value) -> Option<&'v Value> {
        self.inner().iter().try_fold(root, |value, step| match (step, value) {
            (Step::Key(key), Value::Object(object)) => object.get(key),
            (Step::Index(index), Value::List(list)) => list.get(position(*index, list.len())?),
            // A number in brackets may be the key of an entry.
            (Step::Index(index), Value::Object(object)) => object.get(&index.to_string()),
            _ => None,
        })
    }

    /// The value of the key that it begins with, with `new` put in its place. Objects that are not there are made; lists
    /// do not grow.
    ///
    /// # Errors
    /// When a step leads into what has no such places; says which.
    pub fn set(&self, root: Option<&Value>, new: Value) -> Result<Value, String> {
        set(self.inner(), root, new).map_err(|problem| format!("cannot write to `{self}`: {problem}"))
    }
}

fn set(steps: &[Step], current: Option<&Value>, new: Value) -> Result<Value, String> {
    let Some((step, rest)) = steps.split_first() else { return Ok(new) };
    match (step, current) {
        (Step::Key(key), None | Some(Value::Null)) => {
            let value = set(rest, None, new)?;
            Ok(Value::Object([(key.clone(), value)].into_iter().collect::<Object>()))
        }
        (Step::Key(key), Some(Value::Object(object))) => {
            let value = set(rest, object.get(key), new)?;
            let mut object = object.clone();
            object.insert(key.clone(), value);
            Ok(Value::Object(object))
        }
        (Step::Index(index), Some(Value::List(list))) => {
            let at = position(*index, list.len())
                .ok_or_else(|| format!("the list has {} items, and there is no `[{index}]`", list.len()))?;
            let value = set(rest, list.get(at), new)?;
            let mut list: List = list.clone();
            list.set(at, value);
            Ok(Value::List(list))
        }
        (Step::Key(key), Some(other)) => Err(format!("`{key}` would be an entry of {}", other.a_kind())),
        (Step::Index(index), other) => {
            let kind = other.map_or("nothing", Value::a_kind);
            Err(format!("`[{index}]` would be an item of {kind}"))
        }
    }
}

/// Where the index points in a list of that length.
pub(crate) fn position(index: i64, length: usize) -> Option<usize> {
    let length = i64::try_from(length).ok()?;
    let at = if index < 0 { length.checked_add(index)? } else { index };
    usize::try_from(at).ok().filter(|_| at < length)
}

/// Letters, digits, `_` and `-`, beginning with a letter or `_`.
pub(crate) fn is_name(text: &str) -> bool {
    let mut letters = text.chars();
    letters.next().is_some_and(|first| first.is_alphabetic() || first == '_')
        && letters.all(|letter| letter.is_alphanumeric() || matches!(letter, '_' | '-'))
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, step) in self.steps.iter().enumerate() {
            match step {
                Step::Key(key) if number == 0 => f.write_str(key)?,
                Step::Key(key) if is_name(key) => write!(f, ".{key}")?,
                Step::Key(key) => write!(f, "['{key}']")?,
                Step::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Place;
    use crate::value::{Value, parse_json};

    fn json(text: &str) -> Value {
        parse_json(text).unwrap()
    }

    #[test]
    fn places_are_read_and_written() {
        for (place, before, read, after) in [
            ("a", "1", "1", "9"),
            ("a.b", r#"{"b":1,"c":2}"#, "1", r#"{"b":9,"c":2}"#),
            ("a.b.c", "null", "-", r#"{"b":{"c":9}}"#),
            ("a.b.c", r#"{"b":null}"#, "-", r#"{"b":{"c":9}}"#),
            ("a[0]", "[1,2]", "1", "[9,2]"),
            ("a[-1].x", r#"[1,{"x":3}]"#, "3", r#"[1,{"x":9}]"#),
            ("a['k l']", r#"{"k l":1}"#, "1", r#"{"k l":9}"#),
            ("a[b]", r#"{"b":1}"#, "1", r#"{"b":9}"#),
        ] {
            let parsed = Place::parse(place).unwrap();
            let before = json(before);
            let found = parsed.follow(&before).map_or_else(|| "-".to_owned(), Value::to_json);
            assert_eq!(found, read, "{place}");
            assert_eq!(parsed.set(Some(&before), 9.into()).unwrap().to_json(), after, "{place}");
        }
    }

    #[test]
    fn what_has_no_such_place_is_an_error_that_names_it() {
        for (place, before, error) in [
            ("a.b", "1", "cannot write to `a.b`: `b` would be an entry of a number"),
            ("a[0]", "null", "cannot write to `a[0]`: `[0]` would be an item of null"),
            ("a[2]", "[1,2]", "cannot write to `a[2]`: the list has 2 items, and there is no `[2]`"),
            ("a[-3]", "[1,2]", "cannot write to `a[-3]`: the list has 2 items, and there is no `[-3]`"),
        ] {
            let set = Place::parse(place).unwrap().set(Some(&json(before)), Value::Null);
            assert_eq!(set.unwrap_err(), error);
        }
        for text in ["", "a..b", ".a", "a.", "a[", "a[]", "a[1.5]", "[0]", "a b", "a[0]b", "1a", "a[$]"] {
            assert!(Place::parse(text).is_err(), "{text}");
        }
    }
}
