//! Calendar months in UTC.

use std::time::{Duration, SystemTime};

use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};

/// A calendar month in UTC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Month {
    /// As `2026-11`
    name: String,
    end: Timestamp,
}

impl Month {
    /// The month of a time.
    pub(crate) fn of(now: SystemTime) -> Self {
        let now = Timestamp::try_from(now).unwrap_or_default().to_zoned(TimeZone::UTC);
        let first = now.first_of_month().and_then(|day| day.start_of_day());
        let end = first.and_then(|first| first.checked_add(1.month()));
        Month { name: now.strftime("%Y-%m").to_string(), end: end.map_or(Timestamp::MAX, |end| end.timestamp()) }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.name
    }

    /// When it began.
    pub(crate) fn begin(&self) -> SystemTime {
        let first = format!("{}-01T00:00:00Z", self.name).parse::<Timestamp>();
        first.map_or(SystemTime::UNIX_EPOCH, SystemTime::from)
    }

    /// When it ends, and how long that is from now.
    pub(crate) fn ends(&self, now: SystemTime) -> (String, Duration) {
        let wait = SystemTime::from(self.end).duration_since(now).unwrap_or_default();
        (self.end.to_string(), wait)
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use jiff::Timestamp;

    use super::Month;

    #[test]
    fn months_begin_and_end_in_utc() {
        for (now, name, end) in [
            ("2030-11-30T23:59:59Z", "2030-11", "2030-12-01T00:00:00Z"),
            ("2030-12-01T00:00:00Z", "2030-12", "2031-01-01T00:00:00Z"),
            ("2028-02-29T12:00:00Z", "2028-02", "2028-03-01T00:00:00Z"),
        ] {
            let at = SystemTime::from(now.parse::<Timestamp>().expect("a time"));
            let month = Month::of(at);
            assert_eq!((month.as_str(), month.ends(at).0.as_str()), (name, end), "{now}");
            assert_eq!(Month::of(month.begin()), month);
            assert_eq!(
                Month::of(month.begin() - Duration::from_secs(1)).ends(at).0,
                Timestamp::try_from(month.begin()).expect("a time").to_string()
            );
        }
    }
}
