//! When something comes: a cron expression in a time zone.

use std::time::SystemTime;

use hotcell_runtime::leafmesh::{Cron, LocalMinute};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};

/// The times of a cron expression in a time zone.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Times {
    pub(crate) cron: Cron,
    pub(crate) zone: TimeZone,
}

impl Times {
    /// The first time after another one. A local time that does not exist is the first minute after the gap, and of one that comes twice it
    /// is the first.
    pub(crate) fn next(&self, after: Timestamp) -> Option<Timestamp> {
        let local = self.zone.to_datetime(after);
        let mut minute = LocalMinute {
            year: local.year(),
            month: local.month(),
            day: local.day(),
            hour: local.hour(),
            minute: local.minute(),
        };
        loop {
            minute = self.cron.next_after(minute)?;
            let LocalMinute { year, month, day, hour, minute: at } = minute;
            let time = DateTime::new(year, month, day, hour, at, 0, 0).ok()?;
            let due = match self.zone.to_ambiguous_timestamp(time).offset() {
                AmbiguousOffset::Unambiguous { offset } | AmbiguousOffset::Fold { before: offset, .. } => {
                    offset.to_timestamp(time).ok()?
                }
                AmbiguousOffset::Gap { after, .. } => {
                    let before = after.to_timestamp(time).ok()?;
                    self.zone.following(before).next()?.timestamp()
                }
            };
            if due > after {
                return Some(due);
            }
        }
    }
}

/// A time of the clock.
pub(crate) fn instant(time: SystemTime) -> Timestamp {
    Timestamp::try_from(time).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(cron: &str, zone: &str, after: &str, count: usize) -> Vec<String> {
        let zone = TimeZone::get(zone).expect("a zone");
        let wake = Times { cron: Cron::parse(cron).expect("an expression"), zone };
        let mut times = Vec::new();
        let mut after: Timestamp = after.parse().expect("a time");
        for _ in 0..count {
            after = wake.next(after).expect("one more");
            times.push(after.to_string());
        }
        times
    }

    #[test]
    fn a_time_that_does_not_exist_is_after_the_gap_and_one_that_comes_twice_is_the_first() {
        let berlin = "Europe/Berlin";
        let gap = times("30 2 * * *", berlin, "2026-03-28T12:00:00Z", 2);
        assert_eq!(gap, ["2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"]);
        let twice = times("30 2 * * *", berlin, "2026-10-24T12:00:00Z", 2);
        assert_eq!(twice, ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]);
        // Every half hour of the night in which an hour comes twice.
        let often = times("*/30 2 * * *", berlin, "2026-10-24T23:00:00Z", 3);
        assert_eq!(often, ["2026-10-25T00:00:00Z", "2026-10-25T00:30:00Z", "2026-10-26T01:00:00Z"]);
        assert_eq!(times("0 9 * * *", "Asia/Kolkata", "2026-01-01T00:00:00Z", 1), ["2026-01-01T03:30:00Z"]);
    }
}
