//! What clients are shown: agents, threads, runs, entries and questions as JSON.

mod agent;
mod entry;
mod question;
mod run;

pub(crate) use self::agent::{AgentSchemas, AgentView};
pub(crate) use self::entry::EntryView;
pub(crate) use self::question::{InboxItem, response_schema};
pub(crate) use self::run::{RunResult, RunView, Standing, StatusView, WithheldView};
pub(crate) use crate::object::{Object, object};
pub(crate) use crate::rfc3339::time;
