//! The host's own functions.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::bindings::imports::hotcell::plugin as host;
use crate::bindings::{parsed, taken};
use crate::log::Level;
use crate::{Error, Json};

pub(crate) fn state_get(path: &str) -> Result<Option<Json>, Error> {
    host::state::get(path).map(|text| parsed(&text, "a value of the state")).transpose()
}

pub(crate) fn state_all() -> Result<Json, Error> {
    parsed(&host::state::all(), "the state")
}

pub(crate) fn log(level: Level, message: &str) {
    let level = match level {
        Level::Trace => host::log::Level::Trace,
        Level::Debug => host::log::Level::Debug,
        Level::Info => host::log::Level::Info,
        Level::Warn => host::log::Level::Warn,
        Level::Error => host::log::Level::Error,
    };
    host::log::log(level, message);
}

pub(crate) fn progress(done: u64, total: Option<u64>, message: &str) {
    host::progress::report(done, total, message);
}

pub(crate) fn config(key: &str) -> Option<String> {
    host::config::get(key)
}

pub(crate) fn ask(question: &str) -> Result<String, Error> {
    host::ask::ask(question).map_err(taken)
}

pub(crate) fn kv_get(key: &str) -> Result<Option<Vec<u8>>, Error> {
    host::kv::get(key).map_err(taken)
}

pub(crate) fn kv_set(key: &str, value: &[u8]) -> Result<(), Error> {
    host::kv::set(key, value).map_err(taken)
}

pub(crate) fn kv_delete(key: &str) -> Result<(), Error> {
    host::kv::delete(key).map_err(taken)
}

pub(crate) fn kv_keys(prefix: &str) -> Result<Vec<String>, Error> {
    host::kv::keys(prefix).map_err(taken)
}

pub(crate) fn secret(name: &str) -> Result<String, Error> {
    host::secrets::placeholder(name).map_err(taken)
}

pub(crate) fn time() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

pub(crate) fn complete(request: Json) -> Result<Json, Error> {
    parsed(&host::llm::complete(&request.to_string()).map_err(taken)?, "the model's reply")
}

pub(crate) fn call_tool(name: &str, arguments: Json) -> Result<Json, Error> {
    parsed(&host::other_tools::call(name, &arguments.to_string()).map_err(taken)?, "the result of the tool")
}
