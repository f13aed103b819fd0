//! Which model a step asks.

use std::sync::Arc;

use hotcell_graph::Key;
use hotcell_graph::ir::{ModelServer, ModelSettings, RecordedModel};

use super::schema::Config;
use crate::document::{Fields, SourceText};

/// The provider whose replies are in a file.
pub(super) const MOCK: &str = "mock";
/// What is asked where nothing is said.
const DEFAULT_MODEL: &str = "gpt-4o-mini";
/// Providers as files name them, and as hotcell does.
const PROVIDERS: [(&str, &str); 7] = [
    ("openai", "openai"),
    ("anthropic", "anthropic"),
    ("google", "gemini"),
    ("gemini", "gemini"),
    ("ollama", "ollama"),
    ("deepseek", "deepseek"),
    (MOCK, MOCK),
];
/// How the names of models begin that only one provider has.
const FAMILIES: [(&str, &str); 8] = [
    ("gpt-", "openai"),
    ("chatgpt-", "openai"),
    ("o1", "openai"),
    ("o3", "openai"),
    ("o4", "openai"),
    ("claude-", "anthropic"),
    ("gemini-", "gemini"),
    ("deepseek-", "deepseek"),
];

/// The provider of that name.
pub(super) fn provider(fields: &Fields<'_, '_>, name: &SourceText) -> Option<&'static str> {
    let found = PROVIDERS.iter().find(|(known, _)| *known == &**name);
    if found.is_none() {
        let known: Vec<&str> = PROVIDERS.iter().map(|(known, _)| *known).collect();
        fields.reader().report(fields.unknown_word("provider", name, &known));
    }
    found.map(|(_, own)| *own)
}

/// Settings of requests: to a model that is named where they are made, or to that of the workflow; `name` is who asks.
pub(super) fn settings(config: &Config, model: Option<&Arc<str>>, name: &str) -> ModelSettings {
    let own = model.or(config.model.as_ref()).map_or(DEFAULT_MODEL, |model| model);
    let (named, own) = match own.split_once([':', '/']) {
        Some((prefix, rest)) => match PROVIDERS.iter().find(|(known, _)| *known == prefix) {
            Some((_, provider)) => (Some(*provider), rest),
            None => (None, own),
        },
        None => (None, own),
    };
    let family = FAMILIES.iter().find(|(start, _)| own.starts_with(start)).map(|(_, provider)| *provider);
    // What a place says by itself counts for more than what holds for all.
    let provider = match model {
        Some(_) => named.or(family).or(config.provider),
        None => named.or(config.provider).or(family),
    };
    let server = match (&config.recording, config.provider) {
        (Some(recording), Some(MOCK)) => {
            ModelServer::Recorded(RecordedModel { recording: recording.clone(), name: Key::from(name) })
        }
        _ => ModelServer::Provider(provider.unwrap_or("openai")),
    };
    ModelSettings { model: Some(own.to_owned()), server: Some(server), ..ModelSettings::default() }
}
