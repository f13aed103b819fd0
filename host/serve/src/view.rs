//! What clients are shown: agents, threads, runs, entries and questions as JSON.

mod agent;
mod entry;
mod question;
mod run;

use std::time::SystemTime;

pub(crate) use self::agent::{AgentSchemas, AgentView};
pub(crate) use self::entry::EntryView;
pub(crate) use self::question::{InboxItem, response_schema};
pub(crate) use self::run::{RunResult, RunView, Standing, StatusView, WithheldView};
pub(crate) use crate::object::{Object, object};

/// A time as RFC 3339 has it.
pub(crate) fn time(at: SystemTime) -> String {
    jiff::Timestamp::try_from(at).unwrap_or_default().to_string()
}
