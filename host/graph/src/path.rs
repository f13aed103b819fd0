//! Paths into a value: `a.b[0].c`.

use std::fmt;

use crate::value::{Key, Value};

/// A path as authors write it in templates. The first part is a key of the state or a scoped variable.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    text: Key,
    /// `None` when the text has no meaning as a path (`a[x]`, `a..b`): it then names nothing.
    steps: Option<Vec<Step>>,
}

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Key(Key),
    Index(usize),
}

impl Path {
    /// Reads a path. A text that is no path is kept and names nothing, like a key that is not there.
    pub fn parse(text: &str) -> Self {
        Path { text: text.into(), steps: parse_steps(text) }
    }

    /// The path as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the text has the form of a path.
    pub fn is_well_formed(&self) -> bool {
        self.steps.is_some()
    }

    /// The key the path starts with.
    pub fn root(&self) -> Option<&str> {
        match self.steps.as_deref()?.first()? {
            Step::Key(key) => Some(key),
            Step::Index(_) => None,
        }
    }

    /// The value that the steps behind the root lead to, from the value of the root; `None` if any step is missing.
    pub fn follow<'v>(&self, root: &'v Value) -> Option<&'v Value> {
        self.steps.as_deref()?.iter().skip(1).try_fold(root, |value, step| match (step, value) {
            (Step::Key(key), Value::Object(object)) => object.get(key),
            (Step::Index(index), Value::List(list)) => list.get(*index),
            _ => None,
        })
    }

    /// Like [`Path::follow`], but a number between dots selects from a list too (`items.0.name`), which is how plugins
    /// write paths.
    pub fn follow_dotted<'v>(&self, root: &'v Value) -> Option<&'v Value> {
        self.steps.as_deref()?.iter().skip(1).try_fold(root, |value, step| match (step, value) {
            (Step::Key(key), Value::Object(object)) => object.get(key),
            (Step::Key(key), Value::List(list)) => list.get(key.parse().ok()?),
            (Step::Index(index), Value::List(list)) => list.get(*index),
            _ => None,
        })
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn parse_steps(text: &str) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    for part in text.split('.') {
        let (key, mut indexes) = match part.find('[') {
            Some(at) => part.split_at(at),
            None => (part, ""),
        };
        if key.is_empty() || key.contains(']') {
            return None;
        }
        steps.push(Step::Key(key.into()));
        while !indexes.is_empty() {
            let (index, rest) = indexes.strip_prefix('[')?.split_once(']')?;
            if !index.bytes().all(|byte| byte.is_ascii_digit()) {
                return None;
            }
            steps.push(Step::Index(index.parse().ok()?));
            indexes = rest;
        }
    }
    Some(steps)
}
