//! What the host offers, one plain module for each interface.

/// Notes for whoever watches the run. They never become part of the result.
pub mod log {
    pub use crate::{debug, error, info, trace, warn};

    /// How much a note matters.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Level {
        /// Every step; for the plugin's author.
        Trace,
        /// What helps to find a mistake.
        Debug,
        /// What happened, in the order of things.
        Info,
        /// Something is not as it should be, and the call goes on.
        Warn,
        /// Something failed.
        Error,
    }

    /// Writes one line. Line breaks are shown escaped, long lines are cut off.
    pub fn write(level: Level, message: &str) {
        crate::system::log(level, message);
    }
}

/// How far long work has come.
pub mod progress {
    /// Says that `done` of `total` steps are done, with a word on the present one; it counts as a log line.
    pub fn report(done: u64, total: Option<u64>, message: &str) {
        crate::system::progress(done, total, message);
    }
}

/// Settings that the operator wrote for this plugin in `hotcell.toml`.
pub mod config {
    use crate::{Error, Json, Mismatch, Value};

    /// The setting of that name, or none.
    pub fn get(key: &str) -> Option<String> {
        crate::system::config(key)
    }

    /// The setting of that name, read as JSON where it is not a text: `true`, `7`, `["a"]`. An `Option` is `None`
    /// where there is no such setting.
    ///
    /// # Errors
    /// `invalid-input` where the setting is missing or does not fit.
    pub fn read<T: Value>(key: &str) -> Result<T, Error> {
        let Some(text) = get(key) else {
            return T::absent().ok_or_else(|| Mismatch::missing(key, T::SCHEMA).into_error("setting"));
        };
        // A text that also is JSON, such as `7`, stays a text where one is wanted.
        if let Ok(value) = T::decode(Json::String(text.clone())) {
            return Ok(value);
        }
        let json = serde_json::from_str(&text).unwrap_or(Json::String(text));
        T::decode(json).map_err(|mismatch| mismatch.in_field(key).into_error("setting"))
    }
}

/// A small store of the plugin's own that outlives the call and the run. Capability `kv`.
///
/// All functions fail with `denied` where the capability was not granted.
pub mod kv {
    use crate::{Error, Json, Value};

    /// The bytes under `key`, or none. A key has 1 to 256 bytes.
    ///
    /// # Errors
    /// `denied`, `invalid-input`.
    pub fn get(key: &str) -> Result<Option<Vec<u8>>, Error> {
        crate::system::kv_get(key)
    }

    /// Puts bytes under `key`, in the place of what was there; they are kept once this returns.
    ///
    /// # Errors
    /// `denied`, `invalid-input`, or `other` where the store is full.
    pub fn set(key: &str, value: &[u8]) -> Result<(), Error> {
        crate::system::kv_set(key, value)
    }

    /// Removes what is under `key`; without anything there it does nothing.
    ///
    /// # Errors
    /// `denied`, `invalid-input`.
    pub fn delete(key: &str) -> Result<(), Error> {
        crate::system::kv_delete(key)
    }

    /// The keys that begin with `prefix`, in order, 1,000 at most.
    ///
    /// # Errors
    /// `denied`.
    pub fn keys(prefix: &str) -> Result<Vec<String>, Error> {
        crate::system::kv_keys(prefix)
    }

    /// The value under `key`, kept as JSON, or none.
    ///
    /// # Errors
    /// `denied`, or `other` where something else is kept there.
    pub fn read<T: Value>(key: &str) -> Result<Option<T>, Error> {
        let Some(bytes) = get(key)? else { return Ok(None) };
        let json: Json = serde_json::from_slice(&bytes)
            .map_err(|error| Error::other(format!("what is kept under `{key}` is not JSON: {error}")))?;
        T::decode(json)
            .map(Some)
            .map_err(|mismatch| Error::other(format!("what is kept under `{key}` does not fit: {mismatch}")))
    }

    /// Keeps a value as JSON under `key`.
    ///
    /// # Errors
    /// As [`set`].
    pub fn write<T: Value>(key: &str, value: T) -> Result<(), Error> {
        set(key, value.encode()?.to_string().as_bytes())
    }
}

/// Secrets of the operator's, which never enter the plugin. Capability `secret`.
pub mod secrets {
    use crate::Error;

    /// A placeholder for the secret `name`: put it into a header, the query or the body of an HTTP request. On the
    /// way out it is replaced by the value, only towards servers that the grant of this secret names.
    ///
    /// # Errors
    /// `denied` where the secret was not granted.
    pub fn placeholder(name: &str) -> Result<String, Error> {
        crate::system::secret(name)
    }
}

/// Questions to the person the graph works for.
pub mod ask {
    use crate::Error;

    /// Puts a question and gives the answer.
    ///
    /// Where there is no answer yet, the call ends inside this function and starts again from its beginning once the
    /// person has answered. So ask the same questions in the same order, and before anything that must not be done
    /// twice.
    ///
    /// # Errors
    /// `denied` where nobody may be asked.
    pub fn question(text: &str) -> Result<String, Error> {
        crate::system::ask(text)
    }
}

/// Tools of other plugins within reach of the run. Capability `tool`.
pub mod tools {
    use crate::{Error, Json, Value};

    /// Calls the tool `name` with `arguments`, an object, and reads its result.
    ///
    /// # Errors
    /// What the tool fails with; `denied` where it may not be called; `other` where its result does not fit.
    pub fn call<T: Value>(name: &str, arguments: Json) -> Result<T, Error> {
        let result = crate::system::call_tool(name, arguments)?;
        T::decode(result)
            .map_err(|mismatch| Error::other(format!("the result of the tool `{name}` does not fit: {mismatch}")))
    }
}

/// The wall clock. Without the capability `clock` it stands at a time that the host sets.
pub mod time {
    use std::time::Duration;

    /// The time since the beginning of 1970, UTC.
    pub fn since_1970() -> Duration {
        crate::system::time()
    }
}

/// Writes a note of the level `trace`; takes what `format!` takes.
#[macro_export]
macro_rules! trace {
    ($($text:tt)*) => { $crate::log::write($crate::log::Level::Trace, &::std::format!($($text)*)) };
}

/// Writes a note of the level `debug`; takes what `format!` takes.
#[macro_export]
macro_rules! debug {
    ($($text:tt)*) => { $crate::log::write($crate::log::Level::Debug, &::std::format!($($text)*)) };
}

/// Writes a note of the level `info`; takes what `format!` takes.
#[macro_export]
macro_rules! info {
    ($($text:tt)*) => { $crate::log::write($crate::log::Level::Info, &::std::format!($($text)*)) };
}

/// Writes a note of the level `warn`; takes what `format!` takes.
#[macro_export]
macro_rules! warn {
    ($($text:tt)*) => { $crate::log::write($crate::log::Level::Warn, &::std::format!($($text)*)) };
}

/// Writes a note of the level `error`; takes what `format!` takes.
#[macro_export]
macro_rules! error {
    ($($text:tt)*) => { $crate::log::write($crate::log::Level::Error, &::std::format!($($text)*)) };
}
