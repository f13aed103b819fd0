//! Values that a case keeps under names, and the places in which they stand.

use std::sync::{Mutex, MutexGuard, PoisonError};

use indexmap::IndexMap;
use serde_json::Value;

/// The session of the first reply that names one.
const SESSION: &str = "SESSION";

/// What was kept so far.
#[derive(Debug, Default)]
pub(super) struct Saved(Mutex<IndexMap<String, Value>>);

impl Saved {
    fn values(&self) -> MutexGuard<'_, IndexMap<String, Value>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the session that a reply names, if none did before.
    pub(super) fn note_session(&self, reply: &Value) {
        if let Some(session @ Value::String(_)) = reply.get("session_id") {
            self.values().entry(SESSION.to_owned()).or_insert_with(|| session.clone());
        }
    }

    /// Keeps values of a document under names; gives the paths at which there is nothing.
    pub(super) fn keep(&self, wanted: &IndexMap<String, String>, document: &Value) -> Vec<String> {
        let mut missing = Vec::new();
        for (name, path) in wanted {
            match at(document, path) {
                Some(value) => drop(self.values().insert(name.clone(), value.clone())),
                None => missing.push(path.clone()),
            }
        }
        missing
    }

    /// A text in which the names stand for their values.
    pub(super) fn fill_text(&self, text: &str) -> String {
        fill_text(text, &self.values())
    }

    /// The same for all texts of a value. A text that is nothing but a name becomes the value.
    pub(super) fn fill(&self, value: &Value) -> Value {
        fill(value, &self.values())
    }

    /// The same, with one more name.
    pub(super) fn fill_with(&self, value: &Value, name: &str, means: Value) -> Value {
        let mut values = self.values().clone();
        values.insert(name.to_owned(), means);
        fill(value, &values)
    }
}

fn fill(value: &Value, values: &IndexMap<String, Value>) -> Value {
    match value {
        Value::String(text) => {
            let whole =
                text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).and_then(|name| values.get(name));
            whole.cloned().unwrap_or_else(|| Value::String(fill_text(text, values)))
        }
        Value::Array(items) => items.iter().map(|item| fill(item, values)).collect(),
        Value::Object(entries) => {
            entries.iter().map(|(key, value)| (fill_text(key, values), fill(value, values))).collect()
        }
        other => other.clone(),
    }
}

/// Goes over the text once: what a value brings along is not looked at again.
fn fill_text(text: &str, values: &IndexMap<String, Value>) -> String {
    let mut filled = String::new();
    let mut rest = text;
    while let Some(begin) = rest.find('{') {
        filled += &rest[..begin];
        rest = &rest[begin..];
        let name = rest.find('}').map(|end| &rest[1..end]);
        match name.and_then(|name| Some((name, values.get(name)?))) {
            Some((name, value)) => {
                filled += &value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                rest = &rest[name.len() + 2..];
            }
            None => {
                filled.push('{');
                rest = &rest[1..];
            }
        }
    }
    filled + rest
}

/// The value at a dotted path; parts that are numbers count items of lists.
pub(super) fn at<'v>(document: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.').try_fold(document, |value, part| match value {
        Value::Array(items) => items.get(part.parse::<usize>().ok()?),
        other => other.get(part),
    })
}

#[cfg(test)]
mod tests {
    use indexmap::IndexMap;
    use serde_json::json;

    use super::Saved;

    #[test]
    fn names_stand_for_values_wherever_a_text_is() {
        let saved = Saved::default();
        saved.note_session(&json!({"session_id": "s{ID}"}));
        saved.note_session(&json!({"session_id": "other"}));
        let wanted = [("ID", "items.1.id"), ("GONE", "items.9")];
        let wanted: IndexMap<String, String> = wanted.map(|(name, path)| (name.to_owned(), path.to_owned())).into();
        let document = json!({"items": [{}, {"id": 7}]});
        assert_eq!(saved.keep(&wanted, &document), ["items.9"]);
        for (text, filled) in [
            ("/a/{SESSION}?x={ID}", "/a/s{ID}?x=7"),
            ("{OTHER} {", "{OTHER} {"),
            ("{{ID}}", "{7}"),
            ("{\"a\": \"{ID}\"}", "{\"a\": \"7\"}"),
        ] {
            assert_eq!(saved.fill_text(text), filled);
        }
        assert_eq!(saved.fill(&json!({"a{ID}": ["{ID}", "x{ID}", 1]})), json!({"a7": [7, "x7", 1]}));
        let filled = saved.fill_with(&json!(["{RPC_ID}", "{ID}"]), "RPC_ID", json!("a"));
        assert_eq!(filled, json!(["a", 7]));
    }
}
