//! Taking down what a call takes from the host, while it runs.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hotcell_budget::{Budget, Fuel};
use serde::Serialize;
use serde_json::Value;

use super::http::HttpNotes;
use super::{Called, Gap, Gave, HostFunction, RECORDING_LAYOUT, Random, Readings, Recording, Taken, text};
use crate::call::Terms;
use crate::clock::ReadingsLog;
use crate::engine::ENGINE;
use crate::record::RecordTerms;
use crate::secrets::Vault;

/// What is known of a call before it begins.
pub(crate) struct Begun {
    component: String,
    source: Option<String>,
    called: Called,
}

impl Begun {
    /// What is to be recorded of a call of the component with this digest, if anything is.
    pub(crate) fn new(component: &str, terms: &Terms, called: impl FnOnce() -> Called) -> Option<Self> {
        terms.record?;
        Some(Begun { component: component.to_owned(), source: None, called: called() })
    }

    /// The script that an interpreter runs.
    pub(crate) fn with_source(mut self, source: Option<&str>) -> Self {
        self.source = source.map(|source| crate::cache::digest(source.as_bytes()));
        self
    }

    /// The state that a script is told whole.
    pub(crate) fn with_state(mut self, whole: &str) -> Self {
        if let Called::Script { state, .. } = &mut self.called {
            *state = Some(whole.to_owned());
        }
        self
    }
}

/// How a recorded call ended.
pub(crate) struct Ended<'a> {
    pub(crate) gave: Gave,
    pub(crate) fuel: Fuel,
    pub(crate) gap: Option<Gap>,
    pub(crate) denied: Vec<String>,
    pub(crate) exhausted: Option<String>,
    pub(crate) vault: &'a Vault,
}

/// Takes down what one call takes from the host.
pub(crate) struct Recorder {
    terms: RecordTerms,
    /// Everything that is known from the start; it goes when the call is over
    recording: Mutex<Option<Recording>>,
    log: Mutex<Log>,
}

#[derive(Default)]
struct Log {
    taken: Vec<Taken>,
    size: usize,
    readings: Readings,
    last: (i64, i64),
    http: HttpNotes,
}

impl Recorder {
    /// A recorder for a call that is about to begin.
    pub(crate) fn new(begun: Begun, terms: &Terms, budget: &Budget, random: Random, vault: &Vault) -> Arc<Self> {
        let Begun { component, source, called } = begun;
        let secrets = vault.recorded();
        let recording = Recording {
            layout: RECORDING_LAYOUT,
            engine: ENGINE.to_owned(),
            component,
            source,
            plugin: terms.plugin.clone(),
            origin: terms.origin.as_deref().map(str::to_owned),
            call: called,
            gave: Gave::Proceed,
            fuel: Fuel(0),
            gap: (!terms.grants.fs.is_empty()).then_some(Gap::Directories),
            grants: (*terms.grants).clone(),
            env: terms.env.clone(),
            config: (*terms.config).clone(),
            budget: budget.clone(),
            depth: terms.depth,
            secrets,
            random,
            taken: Vec::new(),
            readings: Readings::default(),
            denied: Vec::new(),
            exhausted: None,
        };
        Arc::new(Recorder {
            terms: terms.record.unwrap_or_default(),
            recording: Mutex::new(Some(recording)),
            log: Mutex::default(),
        })
    }

    /// Takes down a reply of the host.
    pub(crate) fn note<T: Serialize>(&self, from: HostFunction, asked: String, gave: &T) {
        if self.is_full() {
            return;
        }
        let gave = serde_json::to_value(gave).unwrap_or_default();
        let mut log = self.log();
        log.size += asked.len() + size(&gave) + 24;
        log.taken.push(Taken { from, asked, gave });
    }

    /// Works on what is noted of requests, with the bytes that are left for them. What is over the limit is not kept: the
    /// recording is not used then.
    pub(super) fn http<T>(&self, act: impl FnOnce(&mut HttpNotes, usize) -> T) -> T {
        let log = &mut *self.log();
        let left = self.terms.max_bytes.as_usize().saturating_sub(log.size);
        act(&mut log.http, left)
    }

    /// Whether there is more already than a recording may have: nothing is added any more, so that no guest fills the host's memory
    /// with what it asks.
    pub(super) fn is_full(&self) -> bool {
        let log = self.log();
        log.size + log.http.size() + log.readings.size() > self.terms.max_bytes.as_usize()
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The recording, with no value of a secret in it. None if it was given away before.
    pub(crate) fn finish(&self, ended: Ended<'_>) -> Option<String> {
        let mut recording = self.recording.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        let is_full = self.is_full();
        let Log { taken, readings, http, .. } = std::mem::take(&mut *self.log());
        let Ended { gave, fuel, gap, denied, exhausted, vault } = ended;
        recording.gap = recording.gap.or(gap);
        recording = Recording { gave, fuel, denied, exhausted, taken, readings, ..recording };
        recording.taken.extend(http.taken());
        let too_large = || Gap::TooLarge { limit: self.terms.max_bytes.0 };
        if self.terms.is_private {
            recording.strip(Gap::Private);
        } else if is_full {
            recording.strip(too_large());
        }
        let mut text = write(&recording)?;
        if text.len() > self.terms.max_bytes.as_usize() && !self.terms.is_private && !is_full {
            recording.strip(too_large());
            text = write(&recording)?;
        }
        if !tells_secret(&recording, vault) {
            return Some(text);
        }
        // What is left is not what the guest was given, so nothing of it is kept.
        if !self.terms.is_private {
            recording.strip(Gap::Secret);
        }
        write(&recording).map(|text| vault.scrub(text))
    }
}

impl ReadingsLog for Recorder {
    fn wall(&self, reading: Duration) {
        let log = &mut *self.log();
        if log.readings.size() <= self.terms.max_bytes.as_usize() {
            log.readings.wall.add(&mut log.last.0, reading);
        }
    }

    fn monotonic(&self, reading: Duration) {
        let log = &mut *self.log();
        if log.readings.size() <= self.terms.max_bytes.as_usize() {
            log.readings.monotonic.add(&mut log.last.1, reading);
        }
    }
}

fn write(recording: &Recording) -> Option<String> {
    serde_json::to_string(recording).ok()
}

/// Whether a value of a secret is in a recording: in a text, in JSON within a text, however deep, or in bytes that are no text.
fn tells_secret(recording: &Recording, vault: &Vault) -> bool {
    fn in_value(value: &Value, vault: &Vault) -> bool {
        match value {
            Value::String(text) => {
                let is_json = text.starts_with(['{', '[', '"']);
                let inner = is_json.then(|| serde_json::from_str::<Value>(text).ok()).flatten();
                vault.is_told_in(text.as_bytes()) || inner.is_some_and(|inner| in_value(&inner, vault))
            }
            Value::Object(fields) => fields.iter().any(|(name, value)| {
                let hidden = |hex: &str| text::from_hex(hex).is_some_and(|bytes| vault.is_told_in(&bytes));
                let is_hex = name == "hex" && value.as_str().is_some_and(hidden);
                is_hex || vault.is_told_in(name.as_bytes()) || in_value(value, vault)
            }),
            Value::Array(items) => items.iter().any(|value| in_value(value, vault)),
            _ => false,
        }
    }
    vault.has_values() && serde_json::to_value(recording).is_ok_and(|recording| in_value(&recording, vault))
}

/// How much of a recording a value takes, roughly, in bytes.
fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(|item| size(item) + 1).sum::<usize>() + 2,
        Value::Object(fields) => fields.iter().map(|(name, value)| name.len() + size(value) + 4).sum::<usize>() + 2,
        _ => 5,
    }
}
