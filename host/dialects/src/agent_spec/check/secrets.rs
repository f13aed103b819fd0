//! Secrets that are written where everybody reads them.

use hotcell_graph::Value;
use hotcell_graph::diagnostic::Diagnostic;

use super::super::model::{ComponentId, Field};
use super::super::placeholders;
use super::Checker;

/// Where secrets are found, beside what is meant to be there.
const FIELDS: &[&str] =
    &["headers", "query_params", "env", "data", "default_generation_parameters", "session_parameters"];

/// Parts of names, in lower case without what separates words, of what is secret.
const SECRET: &[&str] = &["authorization", "apikey", "password", "secret", "accesstoken", "authtoken", "cookie"];

impl Checker<'_> {
    /// Warns of values that look like secrets and are part of the configuration itself.
    pub(super) fn secrets(&mut self, id: ComponentId) {
        let component = self.component(id);
        let root = &self.written(self.configuration.root).id.file;
        // Written beside the model, it is a secret whatever it is.
        if let Some(Field::Value { value: Value::Text(key), span }) = component.fields.get("api_key") {
            let is_given = !key.is_empty();
            if is_given {
                let warning = Diagnostic::warning(
                    "`api_key` is not used: hotcell takes the keys of models from its own environment",
                );
                self.report(id, warning.at(span).help("remove it: a configuration should hold no secrets"));
            }
        }
        for field in FIELDS {
            let Some(Field::Value { value: Value::Object(entries), span }) = component.fields.get(*field) else {
                continue;
            };
            // What is handed in beside the configuration is where secrets belong.
            if span.file != *root {
                continue;
            }
            let raw = root.text.get(span.start..span.end).unwrap_or_default();
            let secrets: Vec<_> = entries.iter().filter(|(key, value)| is_secret(key, value, raw)).collect();
            for (key, _) in secrets {
                let warning = Diagnostic::warning(format!("`{key}` in `{field}` looks like a secret")).at(span).help(
                    "a configuration should hold none: write a placeholder, or a `$component_ref` to a value that is \
                         handed in beside it",
                );
                self.report(id, warning);
            }
        }
    }
}

fn is_secret(key: &str, value: &Value, raw: &str) -> bool {
    let letters: String = key.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase();
    let is_written = match value {
        Value::Text(text) => !text.is_empty() && placeholders::names(text).is_empty() && raw.contains(&**text),
        _ => false,
    };
    is_written && SECRET.iter().any(|name| letters.contains(name))
}
