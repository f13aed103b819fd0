//! What a schedule says.

use std::time::{Duration, SystemTime};

use hotcell_runtime::leafmesh::Cron;
use hotcell_runtime::plugins::{Misfire, ScheduleSettings};
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::go_on::{MINUTE, Missed};
use super::times::Times;
use crate::object::Object;
use crate::problem::Problem;
use crate::runs::IfBusy;

/// The longest name of a time zone, and expression.
const MAX_TEXT: usize = 200;
/// How late a run may begin at most.
const MAX_GRACE: u64 = 366 * 24 * 3600;

/// What a schedule says, as it is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Body {
    pub(crate) agent_id: String,
    pub(crate) cron: String,
    pub(crate) zone: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) input: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) thread_id: Option<String>,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    pub(crate) metadata: Object,
    #[serde(default)]
    pub(crate) misfire: Misfire,
    pub(crate) grace_seconds: u64,
    #[serde(default)]
    pub(crate) if_busy: IfBusy,
    pub(crate) enabled: bool,
    /// Until when it counts, in microseconds of the epoch
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) until: Option<i64>,
}

/// A schedule.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Definition {
    pub(crate) id: String,
    pub(crate) body: Body,
    pub(crate) times: Times,
    /// What it is called in `hotcell.toml`, if it is there
    pub(crate) in_file: Option<String>,
    pub(crate) created: SystemTime,
    pub(crate) updated: SystemTime,
}

impl Body {
    /// When it comes.
    ///
    /// # Errors
    /// When that is no time, or something else of it has no meaning.
    pub(crate) fn times(&self) -> Result<Times, Problem> {
        if self.cron.len() > MAX_TEXT || self.zone.len() > MAX_TEXT {
            return Err(Problem::unprocessable(format!("`cron` and `zone` have {MAX_TEXT} characters at most")));
        }
        if self.grace_seconds > MAX_GRACE {
            return Err(Problem::unprocessable(format!("`grace_seconds` has to be from 0 to {MAX_GRACE}")));
        }
        let cron = Cron::parse(&self.cron).map_err(|reason| Problem::unprocessable(format!("`cron`: {reason}")))?;
        let zone = TimeZone::get(&self.zone).map_err(|_| {
            let detail = "`zone` has to be the name of a time zone, such as `Europe/Berlin`";
            Problem::unprocessable(detail)
        })?;
        Ok(Times { cron, zone })
    }

    /// What becomes of times that were missed.
    pub(crate) fn missed(&self) -> Missed {
        let grace = match self.misfire {
            // As late as a time is exact.
            Misfire::Skip => MINUTE,
            Misfire::Last | Misfire::All => Duration::from_secs(self.grace_seconds).max(MINUTE),
        };
        Missed { all: self.misfire == Misfire::All, grace }
    }
}

impl Definition {
    /// A schedule of an agent's folder.
    pub(crate) fn in_file(agent: &str, settings: &ScheduleSettings, loaded: SystemTime) -> Result<Self, Problem> {
        let body = Body {
            agent_id: agent.to_owned(),
            cron: settings.cron.clone(),
            zone: settings.zone().to_owned(),
            input: settings.input.as_ref().and_then(|input| serde_json::to_value(input).ok()),
            thread_id: settings.thread.clone(),
            metadata: Object::new(),
            misfire: settings.misfire,
            grace_seconds: settings.grace_seconds,
            if_busy: IfBusy::default(),
            enabled: true,
            until: None,
        };
        let times = body.times()?;
        let id = format!("{agent}:{}", settings.name);
        Ok(Definition { id, body, times, in_file: Some(settings.name.clone()), created: loaded, updated: loaded })
    }
}
