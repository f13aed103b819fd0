//! A job as connectors see it.

use std::time::Duration;

use hotcell_plugin::{Json, json, secrets};

use crate::failure::Failure;

/// What came of a step.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// It is done
    Done(Json),
    /// It is under way: what to ask with, and when
    Again {
        /// What the next step needs to know
        state: Json,
        /// After so many milliseconds; 0 for at once
        after_ms: u64,
    },
    /// It is under way, and the callback says when it is done
    Accepted(Json),
}

/// A job.
#[derive(Clone, Debug)]
pub struct Job {
    /// What no other job is called
    pub name: String,
    /// How the connector was set up
    pub settings: Settings,
    /// What is to be done: an object. In callback mode the fields of the callback are in it
    pub input: Json,
    /// Where the result is to be sent, in callback mode
    pub callback: Option<Json>,
}

impl Job {
    pub(crate) fn new(name: &str, settings: Json, arguments: Json, callback: Option<Json>) -> Self {
        let settings = Settings(settings);
        let mut input = match arguments {
            Json::Object(entries) => entries,
            _ => Default::default(),
        };
        let form = if settings.flag("form_apart") { &Json::Null } else { settings.get("request_form") };
        for (name, value) in form.as_object().into_iter().flatten() {
            input.insert(name.clone(), value.clone());
        }
        if let (Some(callback), Some(field)) = (&callback, settings.text("callback_field")) {
            input.insert(field.to_owned(), callback["url"].clone());
        }
        Job { name: name.to_owned(), settings, input: Json::Object(input), callback }
    }

    /// The step after which it is asked again, or the callback is waited for.
    pub fn begun(&self, state: Json, poll_ms: u64) -> Step {
        match self.callback {
            Some(_) => Step::Accepted(state),
            None => self.again(state, poll_ms),
        }
    }

    /// The step after which it is asked again, as often as the settings say.
    pub fn again(&self, state: Json, poll_ms: u64) -> Step {
        Step::Again { state, after_ms: self.settings.milliseconds("poll_interval").unwrap_or(poll_ms) }
    }

    /// The name under which something is kept for the session that the job belongs to; none if it belongs to none.
    pub fn of_session(&self, what: &str) -> Option<String> {
        let scope = self.settings.text("scope")?;
        // A key has no more than 256 bytes.
        let mut hash: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
        for byte in scope.bytes() {
            hash = (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
        }
        Some(format!("{what}/{hash:032x}"))
    }
}

/// How a connector was set up.
#[derive(Clone, Debug, Default)]
pub struct Settings(pub Json);

impl Settings {
    /// A setting; null where it is left out.
    pub fn get(&self, name: &str) -> &Json {
        self.0.get(name).unwrap_or(&Json::Null)
    }

    /// A text that is not empty.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name).as_str().filter(|text| !text.is_empty())
    }

    /// A text that has to be there.
    pub fn needed(&self, name: &str) -> Result<&str, Failure> {
        self.text(name).ok_or_else(|| Failure::new(format!("`{name}` is not set")))
    }

    /// An address without the `/` at its end.
    pub fn address(&self, name: &str) -> Result<&str, Failure> {
        Ok(self.needed(name)?.trim_end_matches('/'))
    }

    /// A whole number.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.get(name).as_u64()
    }

    /// Seconds as milliseconds.
    pub fn milliseconds(&self, name: &str) -> Option<u64> {
        let length = Duration::try_from_secs_f64(self.get(name).as_f64()?).ok()?;
        u64::try_from(length.as_millis()).ok()
    }

    /// Whether it is `true`.
    pub fn flag(&self, name: &str) -> bool {
        self.get(name) == &json!(true)
    }

    /// The placeholder of the first of these secrets that is there.
    pub fn secret(&self, names: &[&str]) -> Result<Option<String>, Failure> {
        let is_there = |name: &&&str| {
            let known = self.get("secrets").as_array();
            known.is_some_and(|known| known.iter().any(|known| known == **name))
        };
        match names.iter().find(is_there) {
            Some(name) => Ok(Some(secrets::placeholder(name)?)),
            None => Ok(None),
        }
    }
}

/// A value in words: a text as it is, a `message` in an object, else its JSON.
pub fn text_of(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        Json::Object(_) if value["message"].is_string() => text_of(&value["message"]),
        other => other.to_string(),
    }
}

/// The word of a status as it is compared: small letters, and `-` between words.
pub fn words(status: &Json) -> String {
    status.as_str().unwrap_or_default().trim().to_ascii_lowercase().replace(['_', ' '], "-")
}
