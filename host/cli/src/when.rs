//! Points in time as a person reads them, in the person's time zone.

use std::time::SystemTime;

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// `2026-03-01 14:05:09`
pub(crate) fn local(time: SystemTime) -> String {
    match Timestamp::try_from(time) {
        Ok(time) => time.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string(),
        Err(_) => "?".into(),
    }
}

/// `2026-03-01T14:05:09.123Z`, for programs.
pub(crate) fn exact(time: SystemTime) -> Option<String> {
    Timestamp::try_from(time).ok().map(|time| format!("{time:.3}"))
}

/// `just now`, `5 min ago`, `3 h ago`, `12 d ago`.
pub(crate) fn ago(time: SystemTime, now: SystemTime) -> String {
    let seconds = now.duration_since(time).map_or(0, |since| since.as_secs());
    match seconds {
        0..60 => "just now".into(),
        60..3_600 => format!("{} min ago", seconds / 60),
        3_600..86_400 => format!("{} h ago", seconds / 3_600),
        _ => format!("{} d ago", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn ages_are_rounded_down() {
        let now = UNIX_EPOCH + Duration::from_secs(1_000_000);
        let cases = [(59, "just now"), (60, "1 min ago"), (7_199, "1 h ago"), (200_000, "2 d ago")];
        for (seconds, expected) in cases {
            assert_eq!(ago(now - Duration::from_secs(seconds), now), expected);
        }
        assert_eq!(ago(now + Duration::from_secs(5), now), "just now");
    }

    #[test]
    fn exact_times_are_in_utc_with_milliseconds() {
        let time = UNIX_EPOCH + Duration::from_micros(1_000_500_999);
        assert_eq!(exact(time).as_deref(), Some("1970-01-01T00:16:40.500Z"));
    }
}
