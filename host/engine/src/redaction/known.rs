//! What is known of redacted values: the texts by which they would be recognized elsewhere.

use std::collections::BTreeSet;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, MatchKind};
use hotcell_graph::Value;

/// Shorter texts are found in too much that is something else: they are redacted by their names alone.
const SHORTEST: usize = 4;
/// So many texts are looked for. With more, every text counts as one of them.
const MOST: usize = 4096;

/// The texts of redacted values, and what finds them.
#[derive(Clone, Default)]
pub(super) struct Known {
    texts: BTreeSet<Arc<str>>,
    finder: Option<AhoCorasick>,
    is_full: bool,
}

impl Known {
    /// Adds what a redacted value consists of. Says whether something of it is new.
    pub(super) fn add(&mut self, value: &Value) -> bool {
        match value {
            Value::Text(text) => self.add_text(text),
            Value::Number(_) => self.add_text(&value.to_json()),
            // As a whole, too: what is in it may be too short to be recognized.
            Value::List(list) => list.iter().fold(self.add_text(&value.to_json()), |new, item| self.add(item) | new),
            Value::Object(object) => {
                object.iter().fold(self.add_text(&value.to_json()), |new, (_, item)| self.add(item) | new)
            }
            Value::Null | Value::Bool(_) => false,
        }
    }

    /// Within JSON, and within JSON in a text of JSON, a text looks different.
    fn add_text(&mut self, text: &str) -> bool {
        if text.len() < SHORTEST || self.texts.contains(text) || self.is_full {
            return false;
        }
        let once = escaped(text);
        let twice = escaped(&once);
        self.texts.extend([text.into(), once.into(), twice.into()]);
        self.finder = None;
        self.is_full = self.texts.len() > MOST;
        true
    }

    /// Makes what finds the texts, after something new came.
    pub(super) fn prepare(&mut self) {
        if self.finder.is_none() && !self.texts.is_empty() && !self.is_full {
            let mut builder = AhoCorasick::builder();
            let finder = builder.match_kind(MatchKind::LeftmostLongest).build(self.texts.iter().map(|text| &**text));
            // Too much to be looked for: then it is found everywhere.
            self.is_full = finder.is_err();
            self.finder = finder.ok();
        }
    }

    /// Whether a number is one of them.
    pub(super) fn is_known(&self, number: &Value) -> bool {
        self.texts.contains(&*number.to_json())
    }

    /// A text with `shown` in the place of each that is known; none if there is none in it.
    pub(super) fn replaced(&self, text: &str, shown: impl Fn(&str) -> String) -> Option<String> {
        if self.is_full {
            return (text.len() >= SHORTEST).then(|| shown(text));
        }
        let finder = self.finder.as_ref()?;
        let mut found = finder.find_iter(text).peekable();
        found.peek()?;
        let (mut replaced, mut from) = (String::with_capacity(text.len()), 0);
        for one in found {
            replaced.push_str(&text[from..one.start()]);
            replaced.push_str(&shown(&text[one.range()]));
            from = one.end();
        }
        Some(replaced + &text[from..])
    }
}

/// A text as JSON writes it, without the quotes.
fn escaped(text: &str) -> String {
    let json = Value::text(text).to_json();
    json[1..json.len() - 1].to_owned()
}
