//! Moments of three kinds: a day, a time of a day, a time at a place.

use hotcell_plugin::Error;
use jiff::civil::{Date, DateTime};
use jiff::fmt::temporal::{Pieces, PiecesOffset};
use jiff::tz::{Offset, TimeZone};
use jiff::{Span, SpanRelativeTo, Unit, Zoned};

#[derive(Clone, Debug)]
pub(crate) enum Moment {
    Date(Date),
    Local(DateTime),
    Zoned(Zoned),
}

/// The time zone of a name.
pub(crate) fn zone(name: &str) -> Result<TimeZone, Error> {
    TimeZone::get(name).map_err(|_| {
        Error::invalid_input(format!("there is no time zone `{name}`; write it as `Europe/Berlin` or `UTC`"))
    })
}

impl Moment {
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        let refuse = |error: jiff::Error| {
            let forms = "`2026-03-04`, `2026-03-04T09:30`, `2026-03-04T09:30Z` or `2026-03-04T09:30[Europe/Berlin]`";
            Error::invalid_input(format!("`{text}` is not a moment: {error}; write it as {forms}"))
        };
        let pieces = Pieces::parse(text.trim()).map_err(refuse)?;
        let local = pieces.time().map(|time| pieces.date().to_datetime(time));
        if pieces.time_zone_annotation().is_some() {
            let zoned = match pieces.offset() {
                Some(_) => text.trim().parse::<Zoned>().map_err(refuse)?,
                None => {
                    let zone = pieces.to_time_zone().map_err(refuse)?.unwrap_or(TimeZone::UTC);
                    local.unwrap_or(pieces.date().into()).to_zoned(zone).map_err(refuse)?
                }
            };
            return Ok(Self::Zoned(zoned));
        }
        let offset = match pieces.offset() {
            Some(PiecesOffset::Zulu) => Some(Offset::UTC),
            Some(PiecesOffset::Numeric(offset)) => Some(offset.offset()),
            _ => None,
        };
        match (local, offset) {
            (Some(local), Some(offset)) => {
                let zone = if offset == Offset::UTC { TimeZone::UTC } else { TimeZone::fixed(offset) };
                Ok(Self::Zoned(local.to_zoned(zone).map_err(refuse)?))
            }
            (Some(local), None) => Ok(Self::Local(local)),
            (None, _) => Ok(Self::Date(pieces.date())),
        }
    }

    pub(crate) fn add(self, by: Span) -> Result<String, Error> {
        let far = |error: jiff::Error| Error::invalid_input(format!("the moment cannot be shifted so far: {error}"));
        // A day to which hours are added becomes a time of a day.
        let has_time =
            by.get_hours() != 0 || by.get_minutes() != 0 || by.get_seconds() != 0 || by.get_milliseconds() != 0;
        match self {
            Self::Date(date) if has_time => Ok(date.at(0, 0, 0, 0).checked_add(by).map_err(far)?.to_string()),
            Self::Date(date) => Ok(date.checked_add(by).map_err(far)?.to_string()),
            Self::Local(local) => Ok(local.checked_add(by).map_err(far)?.to_string()),
            Self::Zoned(zoned) => Ok(zoned.checked_add(by).map_err(far)?.to_string()),
        }
    }

    pub(crate) fn until(&self, other: &Self, unit: Unit) -> Result<Span, Error> {
        Ok(match (self, other) {
            (Self::Zoned(from), Self::Zoned(to)) => from.until((unit, to))?,
            (from, to) => from.local().until((unit, to.local()))?,
        })
    }

    /// What years, months and days are counted from.
    pub(crate) fn relative(&self) -> SpanRelativeTo<'_> {
        match self {
            Self::Date(date) => SpanRelativeTo::from(*date),
            Self::Local(local) => SpanRelativeTo::from(*local),
            Self::Zoned(zoned) => SpanRelativeTo::from(zoned),
        }
    }

    pub(crate) fn format(&self, form: &str) -> Result<String, Error> {
        let text = match self {
            Self::Date(date) => jiff::fmt::strtime::format(form, *date),
            Self::Local(local) => jiff::fmt::strtime::format(form, *local),
            Self::Zoned(zoned) => jiff::fmt::strtime::format(form, zoned),
        };
        text.map_err(|error| Error::invalid_input(format!("the moment cannot be written as `{form}`: {error}")))
    }

    fn local(&self) -> DateTime {
        match self {
            Self::Date(date) => date.at(0, 0, 0, 0),
            Self::Local(local) => *local,
            Self::Zoned(zoned) => zoned.datetime(),
        }
    }
}

/// Two moments that can be compared: both with a place or both without.
pub(crate) fn of_one_kind(from: Moment, to: Moment) -> Result<(Moment, Moment), Error> {
    match (&from, &to) {
        (Moment::Zoned(one), Moment::Zoned(other)) => {
            // Days and months are counted on the calendar of the first place.
            let other = other.with_time_zone(one.time_zone().clone());
            Ok((from, Moment::Zoned(other)))
        }
        (Moment::Zoned(_), _) | (_, Moment::Zoned(_)) => {
            Err(Error::invalid_input("one moment says a time zone and the other does not; say it for both or for none"))
        }
        _ => Ok((from, to)),
    }
}
