//! What is known of redacted values: the texts by which they would be recognized elsewhere.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use aho_corasick::{AhoCorasick, MatchKind};
use hotcell_graph::Value;

/// Shorter texts are found in too much that is something else: they are redacted by their names alone.
const SHORTEST: usize = 4;
/// So many texts are looked for. With more, every text counts as one of them.
const MOST: usize = 4096;
/// They have so many bytes in all. With more, every text counts as one of them.
const MOST_BYTES: usize = 1 << 20;

/// The texts of redacted values, and what finds them.
#[derive(Default)]
pub(super) struct Known {
    texts: BTreeSet<Arc<str>>,
    bytes: usize,
    /// Made when something is looked for; none if the texts are too much for that
    finder: OnceLock<Option<AhoCorasick>>,
    is_full: bool,
}

impl Known {
    /// Adds what a redacted value consists of.
    pub(super) fn add(&mut self, value: &Value) {
        match value {
            Value::Text(text) => self.add_text(text),
            Value::Number(_) => self.add_text(&value.to_json()),
            // As a whole, too: what is in it may be too short to be recognized.
            Value::List(list) => {
                self.add_text(&value.to_json());
                list.iter().for_each(|item| self.add(item));
            }
            Value::Object(object) => {
                self.add_text(&value.to_json());
                object.iter().for_each(|(_, item)| self.add(item));
            }
            Value::Null | Value::Bool(_) => {}
        }
    }

    /// Within JSON, and within JSON in a text of JSON, a text looks different.
    fn add_text(&mut self, text: &str) {
        if text.len() < SHORTEST || self.is_full || self.texts.contains(text) {
            return;
        }
        let once = escaped(text);
        let twice = escaped(&once);
        for form in [text, &once, &twice] {
            if self.texts.insert(form.into()) {
                self.bytes += form.len();
            }
        }
        self.finder = OnceLock::new();
        self.is_full = self.texts.len() > MOST || self.bytes > MOST_BYTES;
    }

    fn finder(&self) -> Option<&AhoCorasick> {
        if self.is_full {
            return None;
        }
        let made = || {
            let mut builder = AhoCorasick::builder();
            builder.match_kind(MatchKind::LeftmostLongest).build(self.texts.iter().map(|text| &**text)).ok()
        };
        self.finder.get_or_init(made).as_ref()
    }

    /// Whether a number is one of them.
    pub(super) fn is_known(&self, number: &Value) -> bool {
        let text = number.to_json();
        text.len() >= SHORTEST && (self.is_full || self.texts.contains(&*text))
    }

    /// A text with `shown` in the place of each that is known; none if there is none in it.
    pub(super) fn replaced(&self, text: &str, shown: impl Fn(&str) -> String) -> Option<String> {
        if self.texts.is_empty() {
            return None;
        }
        let Some(finder) = self.finder() else { return (text.len() >= SHORTEST).then(|| shown(text)) };
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

#[cfg(test)]
mod tests {
    use hotcell_graph::Value;

    use super::{Known, MOST, MOST_BYTES};

    fn shown(known: &Known, text: &str) -> Option<String> {
        known.replaced(text, |_| "X".to_owned())
    }

    #[test]
    fn what_comes_later_is_found_too() {
        let mut known = Known::default();
        assert_eq!(shown(&known, "first and second"), None);
        known.add(&Value::text("first"));
        assert_eq!(shown(&known, "first and second").as_deref(), Some("X and second"));
        known.add(&Value::text("second"));
        assert_eq!(shown(&known, "first and second").as_deref(), Some("X and X"));
        assert_eq!(shown(&known, "nothing"), None);
    }

    #[test]
    fn with_too_much_to_look_for_everything_is_one_of_them() {
        let mut many = Known::default();
        (0..=MOST).for_each(|number| many.add(&Value::text(format!("secret {number}"))));
        let mut long = Known::default();
        long.add(&Value::text("x".repeat(MOST_BYTES + 1)));
        for known in [many, long] {
            assert_eq!(shown(&known, "any text").as_deref(), Some("X"));
            assert_eq!(shown(&known, "ok"), None);
            assert!(known.is_known(&Value::from(12345_i64)) && !known.is_known(&Value::from(12_i64)));
        }
    }
}
