//! Whether the schedules of a folder mean something.

use std::collections::BTreeSet;

use hotcell_dialects::leafmesh::Cron;
use hotcell_graph::diagnostic::Diagnostic;
use hotcell_plugins::{SETTINGS_FILE, ScheduleSettings};
use jiff::tz::TimeZone;

/// Schedules of a folder.
const MOST: usize = 100;

/// What is wrong with the schedules of a folder.
pub(crate) fn check(schedules: &[ScheduleSettings]) -> Vec<Diagnostic> {
    let mut wrong = Vec::new();
    let mut names = BTreeSet::new();
    if schedules.len() > MOST {
        wrong.push(Diagnostic::error(format!("`{SETTINGS_FILE}` has more than {MOST} schedules")));
    }
    for schedule in schedules {
        let mut refuse = |reason: String| {
            wrong.push(Diagnostic::error(format!("schedule `{}` in `{SETTINGS_FILE}`: {reason}", schedule.name)));
        };
        if schedule.name.is_empty() || schedule.name.len() > 64 {
            refuse("its name has to have 1 to 64 characters".to_owned());
        }
        if !names.insert(&schedule.name) {
            refuse("another one has this name".to_owned());
        }
        if let Err(reason) = Cron::parse(&schedule.cron) {
            refuse(format!("`{}` is not a valid time: {reason}", schedule.cron));
        }
        if TimeZone::get(schedule.zone()).is_err() {
            refuse(format!("there is no time zone `{}`; write one such as `Europe/Berlin`", schedule.zone()));
        }
        if !matches!(&schedule.input, None | Some(toml::Value::String(_) | toml::Value::Table(_))) {
            refuse("`input` has to be a text or a table".to_owned());
        }
    }
    wrong
}
